"""Memory freed in the order of a stream, and its reuse before the stream executes the free.

The driver reuses memory that was freed before the allocation in the same stream, or in a stream
that it comes after by events (CUDA Programming Guide, "Memory Reuse Policies"). It may also reuse
memory that a stream still works on, if the allocation then waits for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from ..call_error import CallError
from ..device_state import DeviceState, GraphAllocation, Owner, Piece
from ..memory_patterns import FREED, FRESH
from ..node_kind import NodeKind
from ..pools import Pool

if TYPE_CHECKING:
    from ..streams import Stream
    from .queues import QueuedOperation
    from .timeline import Timeline

# CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES and _ALLOW_INTERNAL_DEPENDENCIES. Memory whose
# free has executed (_ALLOW_OPPORTUNISTIC) is free for all.
_FOLLOW_EVENTS: Final = 1
_INTERNAL: Final = 3


@dataclass(eq=False, repr=False, slots=True)
class FreedPiece:
    """Memory whose free is queued.

    Attributes:
        operation: the free; None while it is being queued.
        is_taken: whether an allocation that comes after the free reuses it already.
    """

    device: DeviceState
    piece: Piece
    operation: QueuedOperation | None = None
    is_taken: bool = False


class FreedMemory:
    """The queued frees of all devices; the lock of the memory's device guards each change."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._freed: list[FreedPiece] = []

    def free(self, device: DeviceState, piece: Piece, stream: Stream) -> None:
        """Free memory when a stream executes the free; the lock is not held."""
        freed = FreedPiece(device, piece)
        self._freed.append(freed)
        freed.operation = self._timeline.submit(
            stream, NodeKind.FREE, partial(self._free_now, freed), always=True
        )

    def free_of_graph(self, memory: GraphAllocation, stream: Stream) -> None:
        """Same for a graph's memory."""
        self._timeline.submit(stream, NodeKind.FREE, memory.freed, always=True)

    def _free_now(self, freed: FreedPiece) -> None:
        with freed.device.lock:
            self._freed.remove(freed)
            if freed.is_taken:
                freed.device.fill(freed.piece, FREED)
            else:
                freed.device.free_addresses(freed.piece)

    def allocate(self, device: DeviceState, stream: Stream, nbytes: int, pool: Pool) -> Piece:
        """Return an address at once; the memory exists when the stream executes the allocation.

        Raises:
            CallError: CUDA_ERROR_OUT_OF_MEMORY.
        """
        freed = self._reusable(device, stream, nbytes, pool)
        piece: Piece | None = None
        dependencies: tuple[QueuedOperation, ...] = ()
        if freed is not None and freed.operation is not None:
            with device.lock:
                if freed in self._freed and not freed.is_taken:
                    freed.is_taken = True
                    piece, dependencies = device.hand_over(freed.piece), (freed.operation,)
        if piece is None:
            piece = self._allocate_new(device, nbytes, pool)
        self._timeline.submit(
            stream, NodeKind.ALLOC, partial(_fill, device, piece), after=dependencies
        )
        return piece

    def _allocate_new(self, device: DeviceState, nbytes: int, pool: Pool) -> Piece:
        """Return memory without pending work; waits for pending frees before it fails."""
        try:
            with device.lock:
                return device.allocate(nbytes, Owner.POOL, pool=pool)
        except CallError:
            pending = [freed.operation for freed in list(self._freed) if freed.device is device]
            if not pending or self._timeline.is_nested:
                raise
        self._timeline.need([operation for operation in pending if operation is not None])
        with device.lock:
            return device.allocate(nbytes, Owner.POOL, pool=pool)

    def _reusable(
        self, device: DeviceState, stream: Stream, nbytes: int, pool: Pool
    ) -> FreedPiece | None:
        scheduler, reuse = self._timeline.scheduler, pool.reuse
        fitting = [
            candidate
            for candidate in list(self._freed)
            if candidate.piece.pool is pool
            and candidate.piece.nbytes == nbytes
            and not candidate.is_taken
        ]
        if not fitting or self._timeline.is_nested or not scheduler.flips():
            return None
        for freed in fitting:
            operation = freed.operation
            if operation is not None and (
                operation.stream is stream
                or (reuse[_FOLLOW_EVENTS] and self._timeline.comes_after(stream, operation))
            ):
                return freed
        return fitting[0] if reuse[_INTERNAL] and scheduler.widens() else None


def _fill(device: DeviceState, piece: Piece) -> None:
    with device.lock:
        device.fill(piece, FRESH)
