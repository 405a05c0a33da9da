"""Pinned host memory, which the device copies from and to without staging."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import errors
from .._api import CUresult, DriverApi
from .._driver import Bound, failure
from ..device import Device
from .array import AnyArray, Shape, TypedDType, checked_dtype, checked_shape

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_PORTABLE = 0x01  # CU_MEMHOSTALLOC_PORTABLE: pinned for every context


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
    block = (ctypes.c_byte * nbytes).from_address(int(address))
    weakref.finalize(block, _unpin, api, int(address)).atexit = False
    return np.frombuffer(memoryview(block), dtype=kind).reshape(extents)


def _unpin(api: DriverApi, address: int) -> None:
    api.cuMemFreeHost(address)
