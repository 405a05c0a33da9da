"""Pinned host memory: arrays that the device can access, copied without staging."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import SupportsInt, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import border, errors
from ..driver._api import CUresult
from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.device import device_at_work
from ..driver.driver_api import DriverApi
from ..driver.driver_selection import Driver, failure
from ..driver.handle import check
from ..errors import CudaError
from .dtypes import AnyArray, TypedDType, checked_dtype
from .layout import Shape, checked_shape

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_RawT = TypeVar("_RawT", bound=SupportsInt)
_PORTABLE = 0x01  # CU_MEMHOSTALLOC_PORTABLE: pinned for every context


@overload
def pinned_empty(shape: Shape, dtype: TypedDType[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
# A dtype given as text has no static type.
@overload
def pinned_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray: ...
def pinned_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray:
    """Return a C-contiguous host array in pinned memory, not initialised.

    The memory is pinned for every device, by the context of the one that the calling thread works
    on. It is freed with the last array over it. That waits for the work of every context, since any
    may use it.

    Raises:
        OutOfMemoryError: the system cannot pin so much.
        DTypeError: the dtype holds Python objects.
    """
    return array_over(shape, dtype, _pinned_for_all)


def _pinned_for_all(nbytes: int) -> npt.NDArray[np.uint8]:
    return _pinned(_PinnedHandle(host_context(), nbytes), nbytes)


def pinned_in(context: ContextHandle, nbytes: int) -> npt.NDArray[np.uint8]:
    """Return pinned memory for use in one context, as an array of bytes.

    Raises:
        OutOfMemoryError: the system cannot pin so much.
    """
    return _pinned(_StagingHandle(context, nbytes), nbytes)


def _pinned(box: _StagingHandle, nbytes: int) -> npt.NDArray[np.uint8]:
    doing = f"pinning {nbytes} bytes of host memory"
    if nbytes > border.LARGEST:
        raise errors.OutOfMemoryError(doing)
    context = box.context
    code = box.make(context.api.cuMemHostAlloc, nbytes, _PORTABLE)
    if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise errors.OutOfMemoryError(doing, call="cuMemHostAlloc")
    if code:
        raise failure(context.api, code, "cuMemHostAlloc", doing)
    return np.asarray(box)


class HostHandle(ChildHandle[_RawT]):
    """Owns memory that the host can access; arrays over it hold it.

    The driver's functions that free it wait for the work of the context that it was made in, and of
    no other (measured, driver 580).
    """

    __slots__ = ("_nbytes",)

    def __init__(self, context: ContextHandle, nbytes: int) -> None:
        super().__init__(context)
        self._nbytes = nbytes
        context.driver.host_memory.add(self)

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The bytes in NumPy's protocol: the array made from it keeps this object."""
        address = int(self.raw)
        return {"shape": (self._nbytes,), "typestr": "|u1", "data": (address, False), "version": 3}

    def _wait_elsewhere(self) -> None:
        """Wait for the work of all other contexts, as nothing records where the memory is used."""
        wait_for_contexts(self.driver, int(self.context.raw))

    def _destroy(self) -> None:
        raise NotImplementedError


def wait_for_contexts(driver: Driver, but: int = 0) -> None:
    """Wait for the work of every context of a driver, except the one of this handle."""
    for context in driver.contexts.alive():
        assert isinstance(context, ContextHandle)
        if not context.is_gone and int(context.raw) != but:
            try:
                context.call(_wait, context.api)
            except CudaError as error:
                if not error.sticky:  # a broken context executes nothing more
                    raise


def _wait(api: DriverApi) -> None:
    """Wait for the work of the current context.

    cuCtxSynchronize would invalidate a capture of one of its streams. Freeing pinned memory that
    was made in the context waits for the same work, and does not.

    Raises:
        CudaError: the driver reported an error, so that the wait did not happen.
    """
    code, page = api.cuMemHostAlloc(1, 0)
    if code:  # such as on a host without free memory
        call, (code,) = "cuCtxSynchronize", api.cuCtxSynchronize()
    else:
        call, (code,) = "cuMemFreeHost", api.cuMemFreeHost(page)
    if code:
        raise failure(api, code, call, "waiting for the work of a context")


class _StagingHandle(HostHandle[int]):
    """Owns page-locked memory that one context uses."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.context.call(self.api.cuMemFreeHost, self.raw)
        check(self, code, "cuMemFreeHost", f"freeing {self._nbytes} bytes of pinned memory")


class _PinnedHandle(_StagingHandle):
    """Owns page-locked memory of every context."""

    __slots__ = ()

    def _destroy(self) -> None:
        self._wait_elsewhere()
        super()._destroy()


def host_context() -> ContextHandle:
    """Return a primary context for memory that belongs to no device."""
    device = device_at_work()
    return ContextHandle(device.driver, device.primary_context(), device.ordinal, is_primary=True)


def array_over(
    shape: Shape, dtype: npt.DTypeLike, allocate: Callable[[int], npt.NDArray[np.uint8]]
) -> AnyArray:
    """Return an array over new memory, allocated once NumPy is known to support the array.

    Raises:
        ArgumentValueError: NumPy does not support it.
        DTypeError: the dtype holds Python objects.
    """
    kind, extents = checked_dtype(dtype), checked_shape(shape)
    nbytes = math.prod(extents) * kind.itemsize
    try:
        nothing = np.empty((0,) * len(extents) if nbytes else extents, kind)
    except (ValueError, OverflowError) as error:
        raise errors.ArgumentValueError(f"NumPy has no array of shape {extents}: {error}") from None
    return allocate(nbytes).view(kind).reshape(extents) if nbytes else nothing
