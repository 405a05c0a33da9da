"""Host arrays that the device reaches: pinned memory, copied without staging, and managed."""

from __future__ import annotations

import contextlib
import ctypes
import math
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import errors
from ..driver._api import CUcontext, CUdeviceptr, CUresult, DriverApi
from ..driver.device import Device
from ..driver.in_use import Bound, failure
from ..errors import CudadrvError
from .array import AnyArray, Shape, TypedDType, checked_dtype, checked_shape

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_P = ParamSpec("_P")
# The dtype is the caller's affair, as that of `AnyArray` is.
AnyDType: TypeAlias = np.dtype[Any]
_PORTABLE = 0x01  # CU_MEMHOSTALLOC_PORTABLE: pinned for every context
_GLOBAL = 0x01  # CU_MEM_ATTACH_GLOBAL: every stream of every device may use it


@overload
def pinned_empty(shape: Shape, dtype: TypedDType[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
# A dtype given as text says nothing to a type checker.
@overload
def pinned_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray: ...
def pinned_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray:
    """A C-contiguous host array in pinned memory, not initialised.

    The memory is pinned for every device, and is given back when the last array over it goes.

    Raises:
        OutOfMemoryError: the system cannot pin so much.
        DTypeError: the dtype holds Python objects.
    """
    kind = checked_dtype(dtype)
    extents = checked_shape(shape)
    nbytes = math.prod(extents) * kind.itemsize
    if nbytes == 0:
        return np.empty(extents, kind)
    device = Device.get(0)
    api = device.driver.api
    with Bound(api, device.primary_context()):
        code, address = api.cuMemHostAlloc(nbytes, _PORTABLE)
    if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise errors.OutOfMemoryError(
            f"pinning {nbytes} bytes of host memory", call="cuMemHostAlloc"
        )
    if code:
        raise failure(api, code, "cuMemHostAlloc", f"pinning {nbytes} bytes of host memory")
    return _array_over(int(address), nbytes, extents, kind, api.cuMemFreeHost, int(address))


@overload
def managed_empty(shape: Shape, dtype: TypedDType[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
# A dtype given as text says nothing to a type checker.
@overload
def managed_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray: ...
def managed_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray:
    """A C-contiguous array in managed memory, not initialised: one of the host and of every device.

    Kernels take it as a pointer; the driver moves its pages to where they are used. While one uses
    it the host may touch it only where each device has `CONCURRENT_MANAGED_ACCESS`; synchronise
    first. The memory is given back when the last array over it goes.

    Raises:
        OutOfMemoryError: there is not so much.
        NotSupportedError: the device has no managed memory.
        DTypeError: the dtype holds Python objects.

    Source: CUDA Programming Guide, "Unified Memory".
    """
    kind = checked_dtype(dtype)
    extents = checked_shape(shape)
    nbytes = math.prod(extents) * kind.itemsize
    if nbytes == 0:
        return np.empty(extents, kind)
    device = Device.get(0)
    api, doing = device.driver.api, f"allocating {nbytes} bytes of managed memory"
    with Bound(api, device.primary_context()):
        code, pointer = api.cuMemAllocManaged(nbytes, _GLOBAL)
    if code:
        raise failure(api, code, "cuMemAllocManaged", doing)
    return _array_over(
        int(pointer), nbytes, extents, kind, _free_managed, api, device.primary_context(), pointer
    )


def _array_over(
    address: int,
    nbytes: int,
    extents: tuple[int, ...],
    kind: AnyDType,
    free: Callable[_P, object],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> AnyArray:
    """An array over memory of the driver that `free` gives back once no array uses it."""
    block = (ctypes.c_byte * nbytes).from_address(address)
    weakref.finalize(block, free, *args, **kwargs).atexit = False
    return np.frombuffer(memoryview(block), dtype=kind).reshape(extents)


def _free_managed(api: DriverApi, context: CUcontext, pointer: CUdeviceptr) -> None:
    with contextlib.suppress(CudadrvError), Bound(api, context):
        api.cuMemFree(pointer)
