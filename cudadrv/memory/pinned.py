"""Pinned host memory: arrays that the device can access, copied without staging.

Memory of one NUMA node comes from a pool of the driver's, one a node: CUDA Driver API, "Stream
Ordered Memory Allocator".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final, SupportsInt, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import border, errors
from ..driver._api import (
    CUdeviceptr,
    CUmemAllocationType,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPoolProps,
    CUresult,
)
from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.device import device_at_work, list_devices, require_feature
from ..driver.driver_api import DriverApi
from ..driver.driver_selection import Driver, current, failure
from ..driver.handle import Handle, check
from ..driver.stream_handle import private_stream
from ..errors import CudaError
from .driver_pool import grant
from .dtypes import AnyArray, TypedDType, checked_dtype
from .layout import Shape, checked_shape

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_RawT = TypeVar("_RawT", bound=SupportsInt)
_PORTABLE = 0x01  # CU_MEMHOSTALLOC_PORTABLE: pinned for every context
# The bindings of CUDA 12 lack CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED.
_NODE_POOLS: Final = 142


@overload
def pinned_empty(
    shape: Shape, dtype: TypedDType[_ScalarT], *, numa_node: int | None = None
) -> npt.NDArray[_ScalarT]: ...
# A dtype given as text has no static type.
@overload
def pinned_empty(
    shape: Shape, dtype: npt.DTypeLike, *, numa_node: int | None = None
) -> AnyArray: ...
def pinned_empty(shape: Shape, dtype: npt.DTypeLike, *, numa_node: int | None = None) -> AnyArray:
    """Return a C-contiguous host array in pinned memory, not initialised.

    The memory is pinned for every device, by the context of the one that the calling thread works
    on. It is freed with the last array over it. That waits for the work of every context, since any
    may use it.

    Args:
        shape: the shape.
        dtype: the type of the elements.
        numa_node: the number of a NUMA node of the host, whose memory it is; None is any node.
            `DeviceAttribute.HOST_NUMA_ID` has the node that is nearest to a device.

    Raises:
        OutOfMemoryError: the system cannot pin so much.
        DTypeError: the dtype holds Python objects.
        UnsupportedError: `numa_node` was given, and the driver has no pools of NUMA nodes.
    """
    return array_over(shape, dtype, source_of_pages("pinned_empty", numa_node))


def source_of_pages(where: str, numa_node: int | None) -> Callable[[int], npt.NDArray[np.uint8]]:
    """Return the function that pins memory, of any NUMA node or of one.

    Raises:
        UnsupportedError: a node was given, and the driver has no pools of nodes.
    """
    if numa_node is None:
        return _pinned_for_all
    number = border.int_in_range(f"{where}: numa_node", numa_node, most=2**31 - 1)
    require_feature(f"{where}: numa_node", device_at_work(), _NODE_POOLS)
    return partial(_pinned_on, number)


def _pinned_for_all(nbytes: int) -> npt.NDArray[np.uint8]:
    return _pinned(_PinnedHandle(host_context(), nbytes), nbytes)


def pinned_in(context: ContextHandle, nbytes: int) -> npt.NDArray[np.uint8]:
    """Return pinned memory for use in one context, as an array of bytes.

    Raises:
        OutOfMemoryError: the system cannot pin so much.
    """
    return _pinned(_StagingHandle(context, nbytes), nbytes)


def _pinned(handle: _StagingHandle, nbytes: int) -> npt.NDArray[np.uint8]:
    doing = f"pinning {nbytes} bytes of host memory"
    if nbytes > border.LARGEST:
        raise errors.OutOfMemoryError._of_host(doing)
    context = handle.context
    code = handle.make(context.api.cuMemHostAlloc, nbytes, _PORTABLE)
    if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise errors.OutOfMemoryError._of_host(doing, "cuMemHostAlloc")
    if code:
        raise failure(context.api, code, "cuMemHostAlloc", doing)
    return np.asarray(handle)


class HostHandle(ChildHandle[_RawT]):
    """Owns memory that the host can access; arrays over it hold it.

    The driver's functions that free it wait for the work of the context that it was made in, and of
    no other (measured, driver 580).
    """

    __slots__ = ("_nbytes",)

    kind: ClassVar[str] = "pinned"

    def __init__(self, context: ContextHandle, nbytes: int) -> None:
        super().__init__(context)
        self._nbytes = nbytes
        context.driver.host_memory.add(self)

    def __repr__(self) -> str:
        return f"<{self.kind} memory of {self._nbytes} bytes>"

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
            context.call(_wait_unless_broken, context.api)


def _wait_unless_broken(api: DriverApi) -> None:
    """Wait for the work of the current context, unless it is broken and executes nothing more.

    Raises:
        CudaError: the driver reported another error, so that the wait did not happen.
    """
    try:
        _wait(api)
    except CudaError as error:
        if not error.sticky:
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


class _NodePool(Handle[CUmemoryPool]):
    """Owns the pool of a NUMA node of the host, whose memory every device can access.

    Attributes:
        node: the number of the node.
    """

    __slots__ = ("_driver", "node")

    def __init__(self, driver: Driver, node: int) -> None:
        super().__init__(None)
        self._driver: Driver = driver
        self.node: int = node

    @classmethod
    def of(cls, context: ContextHandle, node: int) -> _NodePool:
        """Return the pool of a node, one a driver; made with a context that is current then."""
        driver = current()
        pools = driver.cache(cls)
        with driver.lock:
            pool = pools.get(node)
            if pool is None:
                pool = cls(driver, node)
                pool._create(context)
                pools[node] = pool
        return pool

    @property
    def driver(self) -> Driver:
        """The driver that made the pool."""
        return self._driver

    def _create(self, context: ContextHandle) -> None:
        api, properties = self.api, CUmemPoolProps()
        properties.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA
        properties.location.id = self.node
        code, self.raw = context.call(api.cuMemPoolCreate, properties)
        if code:
            doing = f"making a pool of memory of NUMA node {self.node} of the host"
            raise failure(api, code, "cuMemPoolCreate", doing)
        for device in list_devices():
            code = grant(api, self.raw, device)
            if code:
                doing = f"letting {device!r} use memory of NUMA node {self.node} of the host"
                raise failure(api, code, "cuMemPoolSetAccess", doing)

    def _destroy(self) -> None:
        (code,) = self.api.cuMemPoolDestroy(self.raw)
        check(self, code, "cuMemPoolDestroy", f"destroying the pool of NUMA node {self.node}")


class _NodeHandle(HostHandle[CUdeviceptr]):
    """Owns page-locked memory of a NUMA node."""

    __slots__ = ()

    def _destroy(self) -> None:
        self._wait_elsewhere()
        (code,) = self.context.call(self._wait_and_free)
        check(self, code, "cuMemFree", f"freeing {self._nbytes} bytes of pinned memory")

    def _wait_and_free(self) -> tuple[CUresult]:
        _wait_unless_broken(self.api)  # the free of a pool's memory waits for nothing
        return self.api.cuMemFree(self.raw)


def _pinned_on(node: int, nbytes: int) -> npt.NDArray[np.uint8]:
    """Return pinned memory of a NUMA node as an array of bytes."""
    doing = f"pinning {nbytes} bytes of NUMA node {node} of the host"
    if nbytes > border.LARGEST:
        raise errors.OutOfMemoryError(doing)
    box = _NodeHandle(host_context(), nbytes)
    pool = _NodePool.of(box.context, node)
    stream, call = private_stream(box.context), "cuMemAllocFromPoolAsync"
    code = box.make(box.api.cuMemAllocFromPoolAsync, nbytes, pool.raw, stream.raw)
    if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise errors.OutOfMemoryError(doing, call=call)
    if not code:
        call, (code,) = "cuStreamSynchronize", box.api.cuStreamSynchronize(stream.raw)
    if code:
        raise failure(box.api, code, call, doing)
    return np.asarray(box)


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
        empty = np.empty((0,) * len(extents) if nbytes else extents, kind)
    except (ValueError, OverflowError) as error:
        raise errors.ArgumentValueError(f"NumPy has no array of shape {extents}: {error}") from None
    return allocate(nbytes).view(kind).reshape(extents) if nbytes else empty
