"""What pools of host memory give and get back.

CUDA Driver API: cuMemAllocFromPoolAsync, cuMemFreeAsync, cuMemFree.
"""

from __future__ import annotations

from functools import partial

from ...driver._api import CUdeviceptr, CUresult
from ..host_memory import HostPiece
from ..node_kind import NodeKind
from ..pools import Pool
from ..refusal import Refusal, invalid_value
from ..streams import Stream
from .pool import DEVICE
from .pool_choice import PoolChoiceCalls


class HostPoolMemory(PoolChoiceCalls):
    """Page-locked and managed memory that is taken and freed in the order of a stream."""

    def _allocate_of_host(self, pool: Pool, stream: Stream, nbytes: int) -> CUdeviceptr:
        """An address at once; no bytes give null, as of a device's pool."""
        if stream.capture is not None:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                "the emulator's graphs allocate memory of devices alone: allocate this before the "
                "capture",
            )
        if self._captures:
            self._refuse_if_implicit(stream)
            self._refuse_unsafe()
        if nbytes <= 0:
            return CUdeviceptr(0)
        piece = self._host_piece(pool, nbytes)
        if self._accesses is not None:
            self._accesses.allocated(stream, piece.address, nbytes)
        return CUdeviceptr(piece.address)

    def _host_piece(self, pool: Pool, nbytes: int) -> HostPiece:
        place = pool.place
        assert place is not None
        ordinal = place.number if place.kind == DEVICE else 0
        with self._lock:
            if not self._host_pools.take(pool, nbytes):
                raise Refusal(
                    CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                    f"out of memory: {nbytes} bytes asked for of a pool of {pool.most} bytes",
                )
            try:
                piece = self._host.allocate(nbytes, 0, ordinal, managed=place.is_managed, pool=pool)
            except (OSError, ValueError, OverflowError) as error:
                self._host_pools.give(pool, nbytes)
                raise Refusal(
                    CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                    f"out of memory: {nbytes} bytes of host memory asked for ({error})",
                ) from error
        return piece

    def _free_of_host_pool(self, address: int, stream: Stream | None = None) -> None:
        """Free memory, in the order of a stream if one is given; without one nothing is waited for.

        So it is with memory of a device's pool: measured.
        """
        self._refuse_unsafe()
        with self._lock:
            piece = self._host.of_pool(address)
            if piece is None:
                raise invalid_value(
                    f"cannot free {address:#x}: it was freed before, or lies inside an allocation"
                )
            self._host.leave(piece)
        if self._accesses is not None:
            self._accesses.freed(stream, address, piece.nbytes)
        timeline = self._timeline
        if stream is None or timeline is None:
            self._leave_pool(piece)
        else:
            leaving = partial(self._leave_pool, piece)
            timeline.submit(stream, NodeKind.FREE, leaving, always=True)

    def _leave_pool(self, piece: HostPiece) -> None:
        with self._lock:
            self._host.leave_for_good(piece)
            if piece.pool is not None:
                self._host_pools.give(piece.pool, piece.nbytes)
