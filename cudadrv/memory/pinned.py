"""Host arrays that the device reaches: pinned memory, copied without staging, and managed."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, SupportsInt, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import border, errors
from ..driver._api import CUdeviceptr, CUresult
from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.device import device_at_work
from ..driver.driver_api import DriverApi
from ..driver.driver_selection import Driver, current, failure
from ..driver.handle import NotCopyable, check
from ..errors import CudaError
from .dtypes import AnyArray, TypedDType, checked_dtype
from .layout import Shape, checked_shape

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_RawT = TypeVar("_RawT", bound=SupportsInt)
_PORTABLE = 0x01  # CU_MEMHOSTALLOC_PORTABLE: pinned for every context
_GLOBAL = 0x01  # CU_MEM_ATTACH_GLOBAL: every stream of every device may use it


@overload
def pinned_empty(shape: Shape, dtype: TypedDType[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
# A dtype given as text says nothing to a type checker.
@overload
def pinned_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray: ...
def pinned_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray:
    """A C-contiguous host array in pinned memory, not initialised.

    The memory is pinned for every device, by the context of the one that the calling thread works
    on. It is given back when the last array over it goes, and that waits for the work of every
    context, since any may use it.

    Raises:
        OutOfMemoryError: the system cannot pin so much.
        DTypeError: the dtype holds Python objects.
    """
    return array_over(shape, dtype, _pinned_for_all)


def _pinned_for_all(nbytes: int) -> npt.NDArray[np.uint8]:
    return _pinned(_PinnedHandle(host_context(), nbytes), nbytes)


def pinned_in(context: ContextHandle, nbytes: int) -> npt.NDArray[np.uint8]:
    """Pinned memory that one context uses, as an array of bytes.

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


@overload
def managed_empty(shape: Shape, dtype: TypedDType[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
# A dtype given as text says nothing to a type checker.
@overload
def managed_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray: ...
def managed_empty(shape: Shape, dtype: npt.DTypeLike) -> AnyArray:
    """A C-contiguous array in managed memory, not initialised: one of the host and of every device.

    Kernels take it as a pointer; the driver moves its pages to where they are used. While one uses
    it the host may touch it only where each device has `CONCURRENT_MANAGED_ACCESS`; synchronise
    first. The memory is given back when the last array over it goes, which waits for the work of
    every context.

    Raises:
        OutOfMemoryError: there is not so much.
        NotSupportedError: the device has no managed memory.
        DTypeError: the dtype holds Python objects.

    Source: CUDA Programming Guide, "Unified Memory".
    """
    return array_over(shape, dtype, _managed)


def _managed(nbytes: int) -> npt.NDArray[np.uint8]:
    doing = f"allocating {nbytes} bytes of managed memory"
    if nbytes > border.LARGEST:
        raise errors.OutOfMemoryError(doing)
    box = _ManagedHandle(host_context(), nbytes)
    code = box.make(box.api.cuMemAllocManaged, nbytes, _GLOBAL)
    if code:
        raise failure(box.api, code, "cuMemAllocManaged", doing)
    return np.asarray(box)


class HostHandle(ChildHandle[_RawT]):
    """Owns memory that the host reaches; arrays over it hold it.

    The driver's functions that free it wait for the work of the context that it was made in, and
    of no other (measured, driver 580).
    """

    __slots__ = ("_nbytes",)

    def __init__(self, context: ContextHandle, nbytes: int) -> None:
        super().__init__(context)
        self._nbytes = nbytes
        context.driver.host_memory.add(self)

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The bytes, as NumPy takes them: the array made from it keeps this object."""
        address = int(self.raw)
        return {"shape": (self._nbytes,), "typestr": "|u1", "data": (address, False), "version": 3}

    def _wait_elsewhere(self) -> None:
        """Wait for the work of all other contexts, as nobody says where the memory is used."""
        wait_for_contexts(self.driver, int(self.context.raw))

    def _destroy(self) -> None:
        raise NotImplementedError


def wait_for_contexts(driver: Driver, but: int = 0) -> None:
    """Wait for the work of every context of a driver, but for one of this handle."""
    for context in driver.contexts.alive():
        assert isinstance(context, ContextHandle)
        if not context.is_gone and int(context.raw) != but:
            try:
                context.call(_wait, context.api)
            except CudaError as error:
                if not error.sticky:  # a broken context does nothing more
                    raise


def _wait(api: DriverApi) -> None:
    """Wait for the work of the current context.

    cuCtxSynchronize would spoil a capture of one of its streams; freeing pinned memory that was
    made in the context waits for the same, and does not.

    Raises:
        CudaError: the driver refused, so that nobody has waited.
    """
    code, page = api.cuMemHostAlloc(1, 0)
    if code:  # as on a host that is full
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


class _ManagedHandle(HostHandle[CUdeviceptr]):
    """Owns managed memory."""

    __slots__ = ()

    def _destroy(self) -> None:
        self._wait_elsewhere()
        (code,) = self.context.call(self.api.cuMemFree, self.raw)
        check(self, code, "cuMemFree", f"freeing {self._nbytes} bytes of managed memory")


def host_context() -> ContextHandle:
    """A primary context in which memory is made that belongs to no device."""
    device = device_at_work()
    return ContextHandle(device.driver, device.primary_context(), device.ordinal, is_primary=True)


def array_over(
    shape: Shape, dtype: npt.DTypeLike, allocate: Callable[[int], npt.NDArray[np.uint8]]
) -> AnyArray:
    """An array over new memory, which is allocated once NumPy is known to have such an array.

    Raises:
        ArgumentValueError: it has none.
        DTypeError: the dtype holds Python objects.
    """
    kind, extents = checked_dtype(dtype), checked_shape(shape)
    nbytes = math.prod(extents) * kind.itemsize
    try:
        nothing = np.empty((0,) * len(extents) if nbytes else extents, kind)
    except (ValueError, OverflowError) as error:
        raise errors.ArgumentValueError(f"NumPy has no array of shape {extents}: {error}") from None
    return allocate(nbytes).view(kind).reshape(extents) if nbytes else nothing


_LEAST_BYTES = 1 << 12
_MIB = 1 << 20


class PinnedStatistics(NamedTuple):
    """What a pool of pinned memory holds; sizes in bytes.

    Attributes:
        cached: pinned, and not in use.
        pinned: how often memory was pinned.
        reused: how often memory was lent again instead.
    """

    cached: int
    pinned: int
    reused: int


class _Shelves:
    """The free blocks of a pool, by size, of one driver.

    What comes back may still be used by work on any device, which nobody knows of. So it lies apart
    until all contexts were waited for.

    Attributes:
        most: bytes that may lie here; None is no limit.
    """

    def __init__(self, driver: Driver, most: int | None) -> None:
        self.driver: Driver = driver
        self.most: int | None = most
        self.ready: dict[int, deque[AnyArray]] = {}
        self.back: dict[int, deque[AnyArray]] = {}

    def cached_bytes(self) -> int:
        """Bytes that lie here."""
        shelves = (*tuple(self.ready.items()), *tuple(self.back.items()))
        return sum(nbytes * len(blocks) for nbytes, blocks in shelves)

    def take_back(self, block: AnyArray) -> None:
        """Keep a block, unless there are too many; a step of a finalizer, without a lock."""
        if self.most is None or self.cached_bytes() + block.nbytes <= self.most:
            self.back.setdefault(block.nbytes, deque()).append(block)

    def take(self, nbytes: int) -> AnyArray | None:
        """A block of a size that no work uses any more."""
        ready = self.ready.setdefault(nbytes, deque())
        try:
            return ready.popleft()
        except IndexError:
            pass
        if not self.back.get(nbytes):
            return None
        taken = [(size, blocks, len(blocks)) for size, blocks in tuple(self.back.items())]
        wait_for_contexts(self.driver)
        for size, blocks, count in taken:  # what comes back meanwhile was not waited for
            for _ in range(count):
                try:
                    self.ready.setdefault(size, deque()).append(blocks.popleft())
                except IndexError:
                    break  # another thread took it
        try:
            return ready.popleft()
        except IndexError:
            return None


class _Lease:
    """Holds a block for the arrays over it, and gives it back with the last of them."""

    __slots__ = ("_block", "_shelves")

    def __init__(self, block: AnyArray, shelves: _Shelves) -> None:
        self._block = block
        self._shelves = shelves

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The bytes, as NumPy takes them: the array made from it keeps this object."""
        return self._block.__array_interface__

    def __del__(self) -> None:
        self._shelves.take_back(self._block)


class PinnedPool(NotCopyable):
    """Pinned host memory that is lent again when the arrays over it have gone.

    Sizes are rounded up to powers of two, and from 1 MiB on to whole MiB. Memory is lent again only
    after the work of every context that was queued when it was given back: the first request that
    finds such memory waits for that.

    Args:
        max_cached_bytes: the most that may lie unused; None is no limit.
    """

    def __init__(self, max_cached_bytes: int | None = None) -> None:
        if max_cached_bytes is not None:
            max_cached_bytes = border.whole("PinnedPool: max_cached_bytes", max_cached_bytes)
        self._most = max_cached_bytes
        self._shelves: _Shelves | None = None
        self._pinned = self._reused = 0

    @overload
    def empty(self, shape: Shape, dtype: TypedDType[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
    # A dtype given as text says nothing to a type checker.
    @overload
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> AnyArray: ...
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> AnyArray:
        """A C-contiguous host array in pinned memory, not initialised: as of `pinned_empty`.

        Raises:
            OutOfMemoryError: the system cannot pin so much.
            DTypeError: the dtype holds Python objects.
        """
        return array_over(shape, dtype, self._lent)

    def _lent(self, nbytes: int) -> npt.NDArray[np.uint8]:
        if nbytes > border.LARGEST:
            return pinned_empty(nbytes, np.uint8)  # which refuses it
        shelves, driver = self._shelves, current()
        if shelves is None or shelves.driver is not driver:  # such as of an emulator that ended
            shelves = self._shelves = _Shelves(driver, self._most)
        size = _rounded(nbytes)
        block = shelves.take(size)
        if block is None:
            block = pinned_empty(size, np.uint8)
            self._pinned += 1
        else:
            self._reused += 1
        memory: npt.NDArray[np.uint8] = np.asarray(_Lease(block, shelves))
        return memory[:nbytes]

    def __repr__(self) -> str:
        cached, pinned, reused = self.statistics()
        return f"<PinnedPool {cached} bytes cached, pinned {pinned} times, reused {reused} times>"

    def statistics(self) -> PinnedStatistics:
        """What lies unused, and how often memory was pinned or lent again."""
        shelves = self._shelves
        cached = 0 if shelves is None else shelves.cached_bytes()
        return PinnedStatistics(cached, self._pinned, self._reused)

    def trim(self) -> None:
        """Give all that lies unused back to the system, which waits for the work of all contexts.

        What is in use goes on; the pool may be used again.
        """
        self._shelves = None


def _rounded(nbytes: int) -> int:
    if nbytes <= _MIB:
        return max(_LEAST_BYTES, 1 << (nbytes - 1).bit_length())
    return -(-nbytes // _MIB) * _MIB
