"""Device memory, pinned and managed memory and what a pointer is.

CUDA Driver API: "Memory Management", "Stream Ordered Memory Allocator", "Unified Addressing".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...driver._api import (
    CUcontext,
    CUdeviceptr,
    CUmemoryPool,
    CUmemorytype,
    CUpointer_attribute,
    CUresult,
    CUstream,
)
from ..emulated_device import DeviceState
from ..graph_memory import GraphMemory
from ..host_memory import HostPiece
from ..node_kind import NodeKind
from ..pieces import Owner, Piece
from ..pools import Pool
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from ..streams import Capture, Stream
from ..timeline.freed_memory import FreedMemory
from .call import call
from .pool import PoolCalls

_HOST_FLAGS: Final = 7
_ATTACH: Final = (1, 2)  # globally, or to the host; CU_MEM_ATTACH_GLOBAL, _HOST


# The attributes that cuPointerGetAttributes gives, for what is no memory of the driver's.
_NULLS: Final[dict[int, object]] = {
    int(getattr(CUpointer_attribute, f"CU_POINTER_ATTRIBUTE_{name}")): null
    for name, null in {
        "CONTEXT": CUcontext(0),
        "MEMORY_TYPE": 0,
        "DEVICE_POINTER": CUdeviceptr(0),
        "HOST_POINTER": 0,
        "SYNC_MEMOPS": False,
        "BUFFER_ID": 0,
        "IS_MANAGED": False,
        "DEVICE_ORDINAL": 0,
        "IS_LEGACY_CUDA_IPC_CAPABLE": False,
        "RANGE_START_ADDR": CUdeviceptr(0),
        "RANGE_SIZE": 0,
        "MAPPED": False,
        "ALLOWED_HANDLE_TYPES": 0,
        "IS_GPU_DIRECT_RDMA_CAPABLE": False,
        "MEMPOOL_HANDLE": CUmemoryPool(0),
    }.items()
}


class MemoryCalls(PoolCalls):
    """Device memory, pinned and managed memory and what a pointer is."""

    @call(2)
    def cuMemGetInfo(self) -> tuple[CUresult, int, int]:
        """Free and total bytes; what a pool reserves is not free."""
        device = self._current().device
        with device.lock:
            return SUCCESS, device.free_bytes, device.profile.total_memory

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
        """Free what cuMemAlloc, cuMemAllocManaged or cuMemAllocAsync gave; null is fine."""
        address = int(dptr)
        if address:
            host = self._host.find(address)
            if host is not None and host.managed and host.address == address:
                self._finish_context_of(host.context)
            with self._lock:
                managed = self._host.free(address, managed=True)
            if not managed:
                self._free(address)
        elif self._thread.stack:
            self._current()
        return OK

    @call(1)
    def cuMemAllocAsync(self, bytesize: int, h_stream: CUstream, /) -> tuple[CUresult, CUdeviceptr]:
        """Memory of the stream's device's pool; no bytes give null (measured).

        In a capture it becomes a node, and the memory is the graph's.
        """
        stream = self._stream(h_stream)
        device = stream.context.device
        return SUCCESS, self._allocate_of(device, device.pool, stream, bytesize)

    @call(1)
    def cuMemAllocFromPoolAsync(
        self, bytesize: int, pool: CUmemoryPool, h_stream: CUstream, /
    ) -> tuple[CUresult, CUdeviceptr]:
        """The same of a pool."""
        stream = self._stream(h_stream)
        return SUCCESS, self._allocate_of(*self._pool(pool), stream, bytesize)

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

    @call(1)
    def cuPointerGetAttributes(
        self, num_attributes: int, attributes: Sequence[CUpointer_attribute], ptr: int, /
    ) -> tuple[CUresult, list[object]]:
        """What the memory at an address is, in the Python types of cuda.bindings.

        By the manual it does not fail for what is no memory of the driver's: nulls are given then,
        and for what the memory has no value of.
        """
        if not 0 < num_attributes <= len(attributes):
            raise invalid_value(f"{num_attributes} of {len(attributes)} attributes were asked for")
        address = int(ptr)
        values = self._pointer_attributes(address) or _NULLS
        asked = [int(attribute) for attribute in attributes[:num_attributes]]
        for number in asked:
            if number not in _NULLS:
                raise invalid_value(f"cuPointerGetAttributes knows no pointer attribute {number}")
        return SUCCESS, [values[number] for number in asked]

    def _pointer_attributes(self, address: int) -> dict[int, object] | None:
        host = self._host.find(address)
        if host is not None:
            return _of_host_memory(host, address)
        device = self._device_of(address)
        return None if device is None else self._of_device_memory(device, address)

    def _of_device_memory(self, device: DeviceState, address: int) -> dict[int, object] | None:
        with device.lock:
            found = device.memory.find(address)
            if found is None:
                return None
            piece = device.pieces.get(found.address)
        if piece is not None and piece.graph is not None and not piece.graph.live:
            return None
        pooled = piece is not None and piece.owner is Owner.POOL
        return {
            # Of pool memory driver 580 says ordinal 0, wherever it lies.
            **_common_attributes(
                address, found.address, found.nbytes, 0 if pooled else device.ordinal
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT): CUcontext(
                piece.context if piece is not None else self._owner_of_variable(found.address)
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE): int(
                CUmemorytype.CU_MEMORYTYPE_DEVICE
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_BUFFER_ID): (
                0 if piece is None else piece.number
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE): CUmemoryPool(
                piece.pool.handle if piece is not None and piece.pool is not None else 0
            ),
        }

    def _owner_of_variable(self, address: int) -> int:
        """The context of the module whose variable starts at an address."""
        for module in list(self._modules.values()):
            if module.holds(address):
                return module.context.handle
        return 0


def _freeable(device: DeviceState, address: int) -> Piece:
    """The allocation to free; the lock is held.

    Raises:
        Refusal: CUDA_ERROR_INVALID_VALUE, if none begins there.
    """
    piece = device.pieces.get(address)
    if piece is None:
        raise invalid_value(f"cannot free {address:#x}: {device.why_not_free(address)}")
    return piece


def _common_attributes(address: int, start: int, nbytes: int, ordinal: int) -> dict[int, object]:
    return {
        **_NULLS,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_POINTER): CUdeviceptr(address),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL): ordinal,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR): CUdeviceptr(start),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE): nbytes,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MAPPED): True,
    }


def _of_host_memory(piece: HostPiece, address: int) -> dict[int, object]:
    kind = CUmemorytype.CU_MEMORYTYPE_DEVICE if piece.managed else CUmemorytype.CU_MEMORYTYPE_HOST
    return {
        **_common_attributes(address, piece.address, piece.nbytes, piece.ordinal),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT): CUcontext(piece.context),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE): int(kind),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_HOST_POINTER): address,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_BUFFER_ID): piece.number,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED): piece.managed,
    }
