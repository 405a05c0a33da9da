"""`DeviceArena`: reusable device slabs in power-of-two buckets, after gam's arena of that name."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ... import border
from ...driver.handle import NotCopyable
from ...driver.registry import Registry
from ...driver.stream import BaseStream, require_stream
from ...errors import (
    ArgumentValueError,
    ClosedError,
    CudadrvError,
    DriverCallFailed,
    InvalidValueError,
    OutOfMemoryError,
    StreamCaptureUnsupportedError,
)
from ..array import DeviceArray
from ..dtypes import AnyDType, checked_dtype
from ..fill import fill
from ..order import AnyMemory, use
from ..resource import MemoryStream, given_stream, without_choices
from .free_lists import FreeList
from .slabs import Lease, SlabArena
from .watched import WatchedHold


# The dtype is the arena's, which is known when it is made.
class ArenaSlab(DeviceArray[Any]):
    """A device array of `(bucket,)` elements that an arena lends.

    Closing it, or one of its views, gives the memory back to the driver while it is in hand; once
    released it is the arena's, and closing does nothing. Dropping it without a release frees it.
    """

    __slots__ = ("arena", "bucket", "lease", "shelf")

    arena: object
    bucket: int
    shelf: FreeList[Any]  # of ArenaSlab: as the `Slab` protocol has it
    lease: Lease

    def close(self) -> None:
        """Give the memory to the driver, unless the slab was released to its arena. Idempotent."""
        try:
            self.lease.held.pop()
        except IndexError:
            return
        self.lease.end()
        super().close()


arenas: Final[Registry[DeviceArena]] = Registry()
"""The arenas that live, for a reset of a context."""


class DeviceArena(NotCopyable, SlabArena[BaseStream, ArenaSlab]):
    """Free device slabs in power-of-two buckets counted in elements, safe to use from any thread.

    A slab is zeroed when it is fresh and not when it is reused. It is reused first on the stream
    that it was last used on; on another one that stream first waits for what the former holds.
    Streams of several devices may use one arena, which keeps them alive until they are closed.
    Nothing is locked on the way of a hit.

    Args:
        dtype: the elements' type.
        max_cached_bytes: the most that free slabs may take; None is no cap.
    """

    def __init__(
        self, dtype: npt.DTypeLike = np.float64, *, max_cached_bytes: int | None = None
    ) -> None:
        if max_cached_bytes is not None:
            max_cached_bytes = border.integer("DeviceArena: max_cached_bytes", max_cached_bytes)
        if max_cached_bytes is not None and max_cached_bytes < 0:
            raise InvalidValueError(f"an arena's cap of {max_cached_bytes} bytes: 0 or more")
        self.dtype: AnyDType = checked_dtype(dtype)
        super().__init__(self.dtype.itemsize, max_cached_bytes)
        arenas.add(self)

    def __repr__(self) -> str:
        now = self.statistics()
        return (
            f"<DeviceArena {self.dtype}: {now.in_use_bytes} bytes in use, "
            f"{now.cached_bytes} cached>"
        )

    def __enter__(self) -> DeviceArena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_stream(self, stream: BaseStream) -> None:
        require_stream("DeviceArena.alloc: stream", stream)

    def _fresh(self, stream: BaseStream, bucket: int, lease: Lease, label: str) -> ArenaSlab:
        try:
            return self._zeroed(stream, bucket, lease)
        except OutOfMemoryError:
            # What is cached may be what is missing; the driver waits for its streams.
            self.trim()
        except ClosedError:
            raise  # another thread closed the stream meanwhile
        except CudadrvError as error:
            raise DriverCallFailed(f"{label} arena alloc_zeros<{bucket}>: {error}") from error
        try:
            return self._zeroed(stream, bucket, lease)
        except ClosedError:
            raise
        except CudadrvError as error:
            raise DriverCallFailed(f"{label} arena alloc_zeros<{bucket}>: {error}") from error

    def _zeroed(self, stream: BaseStream, bucket: int, lease: Lease) -> ArenaSlab:
        slab: ArenaSlab = object.__new__(ArenaSlab)
        slab.shape, slab.dtype, slab.lease = (bucket,), self.dtype, lease
        with without_choices():  # the arena may be what was chosen
            slab._allocate(stream, bucket * self.dtype.itemsize)
        watch = stream.context.device.driver.memory_watch
        if watch is not None:
            lease.held = WatchedHold(lease.held, watch, slab.ptr, slab.nbytes)
        fill(stream, slab, 0)
        return slab

    def _may_move(self, former: BaseStream, stream: BaseStream) -> bool:
        return former.context is stream.context and not former.capturing

    def _move(self, slab: ArenaSlab, former: BaseStream, stream: BaseStream) -> None:
        use(slab._memory, stream._handle)
        slab.stream = stream

    def _discard(self, slab: ArenaSlab) -> None:
        slab.close()

    def _capture_error(self, label: str) -> CudadrvError:
        return StreamCaptureUnsupportedError(
            f"{label} arena alloc on a stream that is capturing: a graph would keep the address "
            "of a slab that is reused; allocate before the capture, or use "
            "CudaClient.capture_graph"
        )


class ArenaMemory(NotCopyable):
    """Slabs of an arena of bytes as what new memory comes from: see `using_memory`.

    Each size is rounded up to a power of two; what is given back is kept for the next request.

    Args:
        max_cached_bytes: the most that free slabs may take; None is no cap.

    Attributes:
        arena: the arena, with its statistics.
    """

    def __init__(self, max_cached_bytes: int | None = None) -> None:
        self.arena: DeviceArena = DeviceArena(np.uint8, max_cached_bytes=max_cached_bytes)
        # With the box, which a context that closes takes from the slab too early.
        self._lent: dict[int, tuple[int, ArenaSlab, AnyMemory]] = {}

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """A slab of at least `nbytes` bytes, not zeroed where it is used again."""
        owner = given_stream("ArenaMemory.allocate", stream, nbytes).owner
        bucket, slab = self.arena.alloc(owner, nbytes, "ArenaMemory")
        address, memory = slab.ptr, slab._memory
        self._lent[address] = bucket, slab, memory
        return address

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Give a slab back to the arena.

        Raises:
            ArgumentValueError: it is none of the arena's.
        """
        given_stream("ArenaMemory.deallocate", stream, nbytes, address)
        lent = self._lent.pop(address, None)
        if lent is None:
            raise ArgumentValueError(
                f"{int(address):#x} is no address that this resource has given"
            )
        bucket, slab, _ = lent
        if not slab.closed:
            self.arena.release(bucket, slab)
