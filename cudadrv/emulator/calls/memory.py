"""Device memory, pinned and managed memory.

CUDA Driver API: "Memory Management", "Stream Ordered Memory Allocator".
"""

from __future__ import annotations

from typing import Final

from ...driver._api import (
    CUdeviceptr,
    CUmemoryPool,
    CUresult,
    CUstream,
)
from ..device_state import DeviceState, GraphMemory, Owner, Piece
from ..node_kind import NodeKind
from ..pools import Pool
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from ..streams import Capture, Stream
from ..timeline.freed_memory import FreedMemory
from .call import call
from .host_pool_memory import HostPoolMemory

_HOST_FLAGS: Final = 7
_ATTACH: Final = (1, 2)  # globally, or to the host; CU_MEM_ATTACH_GLOBAL, _HOST


class MemoryCalls(HostPoolMemory):
    """Device memory, pinned and managed memory."""

    @call(2)
    def cuMemGetInfo(self) -> tuple[CUresult, int, int]:
        """Free and total bytes; what a pool reserves is not free."""
        device = self._current().device
        with device.lock:
            return SUCCESS, device.account.free_bytes, device.profile.total_memory

    @call(1)
    def cuMemAlloc(self, bytesize: int, /) -> tuple[CUresult, CUdeviceptr]:
        """Memory of the current context."""
        context = self._current()
        self._refuse_unsafe()
        if bytesize <= 0:
            raise invalid_value("cuMemAlloc was asked for no bytes")
        with context.device.lock:
            piece = context.device.allocate(bytesize, Owner.PLAIN, context=context.handle)
        return SUCCESS, CUdeviceptr(piece.address)

    @call()
    def cuMemFree(self, dptr: CUdeviceptr, /) -> tuple[CUresult]:
        """Free what cuMemAlloc, cuMemAllocManaged or a pool gave; null is fine."""
        address = int(dptr)
        if address:
            self._free_anywhere(address)
        elif self._thread.stack:
            self._current()
        return OK

    def _free_anywhere(self, address: int) -> None:
        host = self._host.find(address)
        if host is not None and host.pool is not None:
            self._free_of_host_pool(address)
            return
        if host is not None and host.managed and host.address == address:
            self._finish_context_of(host.context)
        with self._lock:
            managed = self._host.free(address, managed=True)
        if not managed:
            self._free(address)

    @call(1)
    def cuMemAllocAsync(self, bytesize: int, h_stream: CUstream, /) -> tuple[CUresult, CUdeviceptr]:
        """Memory of the pool in use on the stream's device; no bytes give null (measured).

        In a capture it becomes a node, and the memory is the graph's.
        """
        stream = self._stream(h_stream)
        device = stream.context.device
        return SUCCESS, self._allocate_of(device, device.pool_in_use, stream, bytesize)

    @call(1)
    def cuMemAllocFromPoolAsync(
        self, bytesize: int, pool: CUmemoryPool, h_stream: CUstream, /
    ) -> tuple[CUresult, CUdeviceptr]:
        """The same of a pool."""
        stream = self._stream(h_stream)
        device, found = self._pool(pool)
        if found.is_foreign:
            raise invalid_value("the pool is another process's, which alone has memory of it")
        if device is None:
            return SUCCESS, self._allocate_of_host(found, stream, bytesize)
        return SUCCESS, self._allocate_of(device, found, stream, bytesize)

    def _allocate_of(
        self, device: DeviceState, pool: Pool, stream: Stream, bytesize: int
    ) -> CUdeviceptr:
        if stream.capture is not None:
            return CUdeviceptr(self._allocate_in(stream.capture, stream, bytesize))
        if self._captures:
            self._refuse_if_implicit(stream)
            self._refuse_unsafe()
        if bytesize <= 0:
            return CUdeviceptr(0)
        if self._freed is not None:
            piece = self._freed.allocate(device, stream, bytesize, pool)
        else:
            with device.lock:
                piece = device.allocate(bytesize, Owner.POOL, pool=pool)
        if self._accesses is not None:
            self._accesses.allocated(stream, piece.address, bytesize)
        return CUdeviceptr(piece.address)

    def _allocate_in(self, capture: Capture, stream: Stream, nbytes: int) -> int:
        self._refuse_if_invalid(capture)
        if nbytes <= 0:
            return 0
        memory = GraphMemory(stream.context.device, nbytes)
        try:
            with self._lock:
                self._refuse_if_invalid(capture)
                capture.add(stream, NodeKind.ALLOC, memory.allocate, memory)
        except Refusal:
            memory.release()
            raise
        return memory.piece.address

    @call()
    def cuMemFreeAsync(self, dptr: CUdeviceptr, h_stream: CUstream, /) -> tuple[CUresult]:
        """Free memory; in a capture, only what the same capture allocated.

        The stream is any of the device; driver 580 takes another device's too, and then nothing
        orders the free after the memory's uses.
        """
        stream = self._stream(h_stream)
        address = int(dptr)
        if stream.capture is not None:
            self._free_in(stream.capture, stream, address)
            return OK
        if self._captures:
            self._refuse_if_implicit(stream)
        if address:
            host = self._host.find(address)
            if host is not None and host.pool is not None:
                self._free_of_host_pool(address, stream)
                return OK
            device = self._device_of(address)
            if device is not None and device is not stream.context.device:
                raise invalid_value(
                    f"{address:#x} is memory of device {device.ordinal}, the stream is of device "
                    f"{stream.context.device.ordinal}"
                )
            self._free(address, stream)
        return OK

    def _free_in(self, capture: Capture, stream: Stream, address: int) -> None:
        with self._lock:
            self._refuse_if_invalid(capture)
            freed = {id(n.memory) for n in capture.graph.nodes if n.kind is NodeKind.FREE}
            for node in capture.graph.nodes:
                memory = node.memory
                if (
                    node.kind is NodeKind.ALLOC
                    and memory is not None
                    and memory.piece.address == address
                    and id(memory) not in freed
                ):
                    capture.add(stream, NodeKind.FREE, memory.free, memory)
                    return
        if address:
            raise invalid_value(
                f"{address:#x} was not allocated in this capture, so the graph cannot free it"
            )

    def _free(self, address: int, stream: Stream | None = None) -> None:
        """Free memory, in the order of a stream if one is given."""
        device = self._device_of(address)
        if device is None:
            raise invalid_value(f"cannot free {address:#x}: it is no device address")
        if device.fault is not None:
            raise Refusal(device.fault.code, device.fault.text, device.fault.cause)
        self._refuse_unsafe()
        if self._accesses is not None:
            with device.lock:
                found = _freeable(device, address)
            if stream is not None:
                self._accesses.freed(stream, address, found.nbytes)
            elif found.owner is Owner.GRAPH:
                self._finish_device(device)
            elif found.owner is Owner.POOL:
                self._accesses.freed(None, address, found.nbytes)
            else:
                self._finish_context_of(found.context)
        if stream is not None and self._freed is not None:
            self._free_in_order(self._freed, device, address, stream)
            return
        if self._timeline is not None:
            with device.lock:
                piece = _freeable(device, address)
            if piece.owner is Owner.GRAPH:
                self._finish_device(device)
            elif piece.owner is not Owner.POOL:  # for that cuMemFree waits for nothing: measured
                self._finish_context_of(piece.context)
        with device.lock:
            piece = _freeable(device, address)
            if piece.graph is not None:
                piece.graph.free()
            else:
                device.free(piece)

    @staticmethod
    def _free_in_order(
        freed: FreedMemory, device: DeviceState, address: int, stream: Stream
    ) -> None:
        """Free memory when the stream gets there."""
        with device.lock:
            piece = _freeable(device, address)
            if piece.graph is not None:
                piece.graph.free_later()
            else:
                device.drop(piece)
        if piece.graph is not None:
            freed.free_of_graph(piece.graph, stream)
        else:
            freed.free(device, piece, stream)

    @call(1)
    def cuMemAllocManaged(self, bytesize: int, flags: int, /) -> tuple[CUresult, CUdeviceptr]:
        """Memory of host and devices alike, at one address."""
        if flags not in _ATTACH:
            raise invalid_value(f"invalid attachment flags of managed memory {flags:#x}")
        if bytesize <= 0:
            raise invalid_value("cuMemAllocManaged was asked for no bytes")
        return SUCCESS, CUdeviceptr(self._allocate_host(bytesize, managed=True))

    @call(1)
    def cuMemHostAlloc(self, bytesize: int, flags: int, /) -> tuple[CUresult, int]:
        """Pinned host memory, which kernels reach at its address; no bytes give null."""
        if flags & ~_HOST_FLAGS:
            raise invalid_value(f"invalid flags of host memory {flags:#x}")
        return SUCCESS, self._allocate_host(bytesize, flags=flags) if bytesize > 0 else 0

    def _allocate_host(self, nbytes: int, *, managed: bool = False, flags: int = 0) -> int:
        context = self._current()
        self._refuse_unsafe()
        try:
            with self._lock:
                piece = self._host.allocate(
                    nbytes, context.handle, context.device.ordinal, managed=managed, flags=flags
                )
            if self._accesses is not None:
                self._accesses.born(piece.address)
        except (OSError, ValueError, OverflowError) as error:
            raise Refusal(
                CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                f"out of memory: {nbytes} bytes of host memory asked for ({error})",
            ) from error
        return piece.address

    @call()
    def cuMemFreeHost(self, p: int, /) -> tuple[CUresult]:
        """Free pinned host memory; null is fine."""
        if not p:
            return OK
        if self._thread.stack:
            self._usable(self._top())
        self._refuse_unsafe()
        host = self._host.find(p)
        if host is not None and host.address == p and not host.managed:
            self._finish_context_of(host.context)
        with self._lock:
            if not self._host.free(p):
                raise invalid_value(f"cannot free {p:#x}: no pinned memory starts there")
        return OK


def _freeable(device: DeviceState, address: int) -> Piece:
    """The allocation to free; the lock is held.

    Raises:
        Refusal: CUDA_ERROR_INVALID_VALUE, if none begins there.
    """
    piece = device.pieces.get(address)
    if piece is None:
        raise invalid_value(f"cannot free {address:#x}: {device.why_not_free(address)}")
    if piece.owner is Owner.OPENED:
        raise invalid_value(
            f"cannot free {address:#x}: it is another process's; cuIpcCloseMemHandle closes it"
        )
    return piece
