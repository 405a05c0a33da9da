"""Attributes of pointers, and managed memory: advice, prefetches, attachment to streams.

CUDA Driver API: "Unified Addressing", cuStreamAttachMemAsync. Managed memory is everywhere at once,
so a prefetch copies nothing. Discarded memory has undefined content until it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from ...driver._api import (
    CUcontext,
    CUdeviceptr,
    CUmem_advise,
    CUmemoryPool,
    CUmemorytype,
    CUpointer_attribute,
    CUresult,
    CUstream,
)
from ..call_error import OK, SUCCESS, CallError, invalid_value
from ..device_state import DeviceState, Owner
from ..host_memory import HostPiece, HostRange, MemoryLocation, PageAdvice
from ..memory_patterns import FREED, fill
from ..node_kind import NodeKind
from ..pools import DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT, Location
from ..streams import LEGACY_HANDLE, Stream
from .call import DriverCalls, call
from .memory_copy import first_indices

# The attributes that cuPointerGetAttributes returns for memory unknown to the driver.
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
        "ACCESS_FLAGS": 0,
        "MEMPOOL_HANDLE": CUmemoryPool(0),
    }.items()
}
_ACCESS_FLAGS: Final = int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_ACCESS_FLAGS)
_SYNC_MEMOPS: Final = int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
_NO_ACCESS, _READ_AND_WRITE = 0, 3  # CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS
_CPU: Final = -1  # CU_DEVICE_CPU
_TO_STREAM: Final = 4  # CU_MEM_ATTACH_SINGLE
_ATTACH_TO: Final = (1, 2, _TO_STREAM)  # globally, to the host; CU_MEM_ATTACH_GLOBAL, _HOST
_SET_READ_MOSTLY: Final = int(CUmem_advise.CU_MEM_ADVISE_SET_READ_MOSTLY)
_UNSET_READ_MOSTLY: Final = int(CUmem_advise.CU_MEM_ADVISE_UNSET_READ_MOSTLY)
_PREFER: Final = int(CUmem_advise.CU_MEM_ADVISE_SET_PREFERRED_LOCATION)
_PREFER_NOTHING: Final = int(CUmem_advise.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
_ACCESSED: Final = int(CUmem_advise.CU_MEM_ADVISE_SET_ACCESSED_BY)
_NOT_ACCESSED: Final = int(CUmem_advise.CU_MEM_ADVISE_UNSET_ACCESSED_BY)
_Range = tuple[HostPiece, int, int]
"""A part of managed memory: its allocation, the first byte and the count."""
_NOWHERE: Final = -2  # CU_DEVICE_INVALID
_READ_MOSTLY, _PREFERRED, _ACCESSED_BY, _PREFETCHED = 1, 2, 3, 4  # CUmem_range_attribute
# The bindings of CUDA 12 have no names for some of these.
_PREFERRED_TYPE, _PREFERRED_ID, _PREFETCHED_TYPE, _PREFETCHED_ID = 5, 6, 7, 8
_INT_BYTES: Final = 4


class UnifiedAddressingCalls(DriverCalls):
    """Attributes of pointers; prefetching managed memory, and advice for it."""

    @call
    def cuPointerGetAttributes(
        self, num_attributes: int, attributes: Sequence[CUpointer_attribute], ptr: int, /
    ) -> tuple[CUresult, list[object]]:
        """Return attributes of the memory at an address, in the Python types of cuda.bindings.

        By the manual it does not fail for memory unknown to the driver. Then it returns nulls, and
        for attributes that the memory does not have.
        """
        if not 0 < num_attributes <= len(attributes):
            raise invalid_value(f"{num_attributes} of {len(attributes)} attributes were asked for")
        address = int(ptr)
        values = self._pointer_attributes(address) or _NULLS
        numbers = [int(attribute) for attribute in attributes[:num_attributes]]
        for number in numbers:
            if number not in _NULLS:
                raise invalid_value(f"cuPointerGetAttributes knows no pointer attribute {number}")
        return SUCCESS, [values[number] for number in numbers]

    @call
    def cuPointerSetAttribute(
        self, value: bool | int, attribute: CUpointer_attribute | int, ptr: CUdeviceptr | int, /
    ) -> tuple[CUresult]:
        """Set whether synchronous copies and fills of an allocation always wait."""
        if int(attribute) != _SYNC_MEMOPS:
            raise invalid_value(f"pointer attribute {int(attribute)} cannot be set")
        address = int(ptr)
        host, device = self._state.memory.host.find(address), self._state.devices.holding(address)
        if host is not None:
            with self._state.lock:
                self._state.memory.host.set_synchronous(host, bool(value))
            return OK
        piece = None if device is None else device.piece_at(address)
        if device is None or piece is None:
            raise invalid_value(f"{address:#x} is no memory that the driver has allocated")
        device.set_synchronous(piece, bool(value))
        return OK

    def _pointer_attributes(self, address: int) -> dict[int, object] | None:
        """Return the attributes of an address; access is that of the current context's device."""
        host, device = self._state.memory.host.find(address), self._state.devices.holding(address)
        context = self._state.thread.stack[-1] if self._state.thread.stack else None
        attributes: dict[int, object] | None = None
        is_open = True
        if host is not None and (host.graph is None or host.graph.live):
            attributes = _of_host_memory(host, address)
            is_open = context is None or host.is_open_to(context.device.ordinal)
        elif device is not None:
            attributes = self._of_device_memory(device, address)
            if context is not None and context.device is not device:
                allocation = device.memory.find(address)
                is_open = allocation is not None and context.reaches(device, allocation)
        if attributes is not None:
            attributes[_ACCESS_FLAGS] = _READ_AND_WRITE if is_open else _NO_ACCESS
        return attributes

    def _of_device_memory(self, device: DeviceState, address: int) -> dict[int, object] | None:
        with device.lock:
            allocation = device.memory.find(address)
            if allocation is None:
                return None
            piece = device.pieces.get(allocation.address)
        if piece is not None and piece.graph is not None and not piece.graph.live:
            return None
        return {
            **_common_attributes(address, allocation.address, allocation.nbytes, device.ordinal),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT): CUcontext(
                piece.context if piece is not None else self._owner_of_variable(allocation.address)
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE): int(
                CUmemorytype.CU_MEMORYTYPE_DEVICE
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_BUFFER_ID): (
                0 if piece is None else piece.number
            ),
            _SYNC_MEMOPS: piece is not None and piece.is_synchronous,
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE): (
                piece is not None and piece.owner is Owner.PLAIN
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE): CUmemoryPool(
                piece.pool.handle if piece is not None and piece.pool is not None else 0
            ),
        }

    def _owner_of_variable(self, address: int) -> int:
        """Return the context of the module whose variable starts at an address."""
        for module in list(self._state.handles.modules.values()):
            if module.holds(address):
                return module.context.handle
        return 0

    @call
    def cuMemPrefetchAsync(
        self,
        dev_ptr: CUdeviceptr,
        count: int,
        location: Location,
        flags: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Set where managed memory is used next; here it is everywhere at once."""
        self._reject_to_record(self._state.handles.stream(h_stream))
        pages = self._managed(int(dev_ptr), count)
        target = self._location_of(location)
        if flags:
            raise invalid_value(f"invalid flags of a prefetch {flags:#x}")
        self._change_advice(pages, lambda advice: advice._replace(prefetched=target))
        return OK

    @call
    def cuMemPrefetchBatchAsync(
        self,
        dptrs: Sequence[CUdeviceptr] | None,
        sizes: Sequence[int],
        count: int,
        prefetch_locs: Sequence[Location] | None,
        prefetch_loc_idxs: Sequence[int],
        num_prefetch_locs: int,
        flags: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Same for several ranges; from `prefetch_loc_idxs[k]` on to `prefetch_locs[k]`."""
        _, ranges = self._batch(dptrs, sizes, count, flags, h_stream)
        targets = self._places(prefetch_locs, prefetch_loc_idxs, num_prefetch_locs, count)
        self._set_prefetch_targets(ranges, targets)
        return OK

    @call
    def cuMemDiscardBatchAsync(
        self,
        dptrs: Sequence[CUdeviceptr] | None,
        sizes: Sequence[int],
        count: int,
        flags: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Let several ranges have undefined content in a stream, until they are written."""
        stream, ranges = self._batch(dptrs, sizes, count, flags, h_stream)
        self._discard(stream, ranges)
        return OK

    @call
    def cuMemDiscardAndPrefetchBatchAsync(
        self,
        dptrs: Sequence[CUdeviceptr] | None,
        sizes: Sequence[int],
        count: int,
        prefetch_locs: Sequence[Location] | None,
        prefetch_loc_idxs: Sequence[int],
        num_prefetch_locs: int,
        flags: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Discard and prefetch."""
        stream, ranges = self._batch(dptrs, sizes, count, flags, h_stream)
        targets = self._places(prefetch_locs, prefetch_loc_idxs, num_prefetch_locs, count)
        self._discard(stream, ranges)
        self._set_prefetch_targets(ranges, targets)
        return OK

    @call
    def cuMemAdvise(
        self, dev_ptr: CUdeviceptr, count: int, advice: CUmem_advise | int, location: Location, /
    ) -> tuple[CUresult]:
        """Set how managed memory is used; here that changes only the reported advice."""
        self._state.handles.current()
        pages, number = self._managed(int(dev_ptr), count), int(advice)
        change = self._advice(number, location)
        self._change_advice(pages, change)
        return OK

    def _advice(self, number: int, location: Location) -> Callable[[PageAdvice], PageAdvice]:
        if number in (_SET_READ_MOSTLY, _UNSET_READ_MOSTLY):
            return lambda advice: advice._replace(is_read_mostly=number == _SET_READ_MOSTLY)
        if number == _PREFER_NOTHING:
            return lambda advice: advice._replace(preferred=None)
        target = self._location_of(location)
        if number == _PREFER:
            # On a host with one NUMA node that is the host: measured with driver 580.
            preferred = target if target.kind == DEVICE else MemoryLocation(HOST, 0)
            return lambda advice: advice._replace(preferred=preferred)
        if number not in (_ACCESSED, _NOT_ACCESSED):
            raise invalid_value(f"there is no advice {number}")
        if target.kind not in (DEVICE, HOST):
            raise invalid_value("memory is accessed by a device or the host, not by a NUMA node")
        by = frozenset((target.number if target.kind == DEVICE else _CPU,))
        if number == _ACCESSED:
            return lambda advice: advice._replace(accessed_by=advice.accessed_by | by)
        return lambda advice: advice._replace(accessed_by=advice.accessed_by - by)

    @call
    def cuStreamAttachMemAsync(
        self, h_stream: CUstream, dptr: CUdeviceptr, length: int, flags: int, /
    ) -> tuple[CUresult]:
        """Set the stream that uses managed memory; here every stream may at all times."""
        self._state.handles.stream(h_stream)
        piece, _, _ = self._managed(int(dptr), length or 1)
        if flags not in _ATTACH_TO or length not in (0, piece.nbytes):
            raise invalid_value(
                f"attaching {length} of {piece.nbytes} bytes with flags {flags:#x}: managed "
                "memory is attached as a whole, globally (1), to the host (2) or a stream (4)"
            )
        if flags == _TO_STREAM and int(h_stream) in (0, 1):
            raise invalid_value("no managed memory is attached to the default stream alone")
        return OK

    def _reject_to_record(self, stream: Stream) -> None:
        if stream.capture is not None:
            raise CallError(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a graph moves no managed memory"
            )

    def _batch(
        self,
        dptrs: Sequence[CUdeviceptr] | None,
        sizes: Sequence[int],
        count: int,
        flags: int,
        handle: CUstream,
    ) -> tuple[Stream, list[_Range]]:
        if int(handle) in (0, LEGACY_HANDLE):
            raise invalid_value("a batch needs a stream other than the legacy default stream")
        stream = self._state.handles.stream(handle)
        self._reject_to_record(stream)
        if not dptrs or not 0 < count <= min(len(dptrs), len(sizes)) or flags:
            raise invalid_value(f"a batch of {count} ranges with flags {flags:#x}")
        pairs = zip(dptrs[:count], sizes, strict=False)
        return stream, [self._managed(int(address), nbytes) for address, nbytes in pairs]

    def _places(
        self, locations: Sequence[Location] | None, starts: Sequence[int], number: int, count: int
    ) -> list[MemoryLocation]:
        """Return a location for each range of a batch."""
        starts = first_indices("prefetchLocIdxs", starts, locations or (), number, count)
        targets: list[MemoryLocation] = []
        for (start, end), location in zip(
            pairwise((*starts, count)), locations or (), strict=False
        ):
            targets += [self._location_of(location)] * (end - start)
        return targets

    def _set_prefetch_targets(
        self, ranges: Sequence[_Range], targets: Sequence[MemoryLocation]
    ) -> None:
        for pages, target in zip(ranges, targets, strict=True):
            self._change_advice(pages, partial(_prefetched, target))

    def _change_advice(self, pages: _Range, change: Callable[[PageAdvice], PageAdvice]) -> None:
        piece, offset, nbytes = pages
        assert piece.advice is not None  # it is managed memory
        with self._state.lock:
            piece.advice.change(offset, nbytes, change)

    def _discard(self, stream: Stream, ranges: Sequence[_Range]) -> None:
        for piece, offset, nbytes in ranges:
            run = partial(self._discarded, piece, offset, nbytes)
            host_range = HostRange(
                piece.address + offset, nbytes, True, piece, self._state.operations.accesses is None
            )
            self._state.operations.submit(stream, NodeKind.SET, run, (host_range,))

    def _discarded(self, piece: HostPiece, offset: int, nbytes: int) -> None:
        if self._state.operations.timeline is not None:
            fill(piece.address + offset, nbytes, FREED)
        if self._state.operations.accesses is not None:
            self._state.operations.accesses.moved((), [(piece.address + offset, nbytes)])

    def _managed(self, address: int, count: int) -> _Range:
        """Return the managed memory that contains some bytes."""
        piece = self._state.memory.host.find(address)
        if piece is None or not piece.managed or count <= 0:
            raise invalid_value(f"{count} bytes at {address:#x} are no managed memory")
        if address + count > piece.address + piece.nbytes:
            raise invalid_value(
                f"{count} bytes at {address:#x} go beyond the {piece.nbytes} bytes of managed "
                f"memory at {piece.address:#x}"
            )
        return piece, address - piece.address, count

    def _location_of(self, location: Location) -> MemoryLocation:
        try:
            kind = int(location.type)
        except ValueError:
            kind = 0
        if kind == DEVICE:
            return MemoryLocation(kind, self._state.devices.at(location.id).ordinal)
        if kind == HOST_NUMA and location.id:
            raise invalid_value(f"the emulated host has NUMA node 0, and no node {location.id}")
        if kind not in (HOST, HOST_NUMA, HOST_NUMA_CURRENT):
            raise invalid_value(f"managed memory is on a device or the host, not at type {kind}")
        return MemoryLocation(kind, 0)

    @call
    def cuMemRangeGetAttribute(
        self, data_size: int, attribute: int, dev_ptr: CUdeviceptr, count: int, /
    ) -> tuple[CUresult, int | list[int]]:
        """Return the advice for a range, as far as all of the range has it."""
        return SUCCESS, self._attribute_of_range(data_size, int(attribute), dev_ptr, count)

    @call
    def cuMemRangeGetAttributes(
        self,
        data_sizes: Sequence[int],
        attributes: Sequence[int] | None,
        num_attributes: int,
        dev_ptr: CUdeviceptr,
        count: int,
        /,
    ) -> tuple[CUresult, list[int | list[int]]]:
        """Return several attributes of a range."""
        if not attributes or not 0 < num_attributes <= min(len(attributes), len(data_sizes)):
            raise invalid_value(f"{num_attributes} attributes of a range were asked for")
        sizes_and_attributes = zip(data_sizes[:num_attributes], attributes, strict=False)
        return SUCCESS, [
            self._attribute_of_range(nbytes, int(attribute), dev_ptr, count)
            for nbytes, attribute in sizes_and_attributes
        ]

    def _attribute_of_range(
        self, nbytes: int, attribute: int, address: CUdeviceptr, count: int
    ) -> int | list[int]:
        piece, offset, _ = self._managed(int(address), count)
        assert piece.advice is not None  # it is managed memory
        with self._state.lock:
            advices = piece.advice.of(offset, count)
        max_bytes = nbytes if attribute == _ACCESSED_BY else _INT_BYTES
        if nbytes % _INT_BYTES or not 0 < nbytes <= max_bytes:
            raise invalid_value(f"attribute {attribute} of a range has no {nbytes} bytes")
        if attribute == _READ_MOSTLY:
            return int(all(advice.is_read_mostly for advice in advices))
        if attribute == _ACCESSED_BY:
            by = frozenset.intersection(*(advice.accessed_by for advice in advices))
            slots = nbytes // _INT_BYTES
            return [*sorted(by, key=lambda n: (n < 0, n)), *[_NOWHERE] * slots][:slots]
        if attribute in (_PREFERRED, _PREFERRED_TYPE, _PREFERRED_ID):
            targets = {advice.preferred for advice in advices}
        elif attribute in (_PREFETCHED, _PREFETCHED_TYPE, _PREFETCHED_ID):
            targets = {advice.prefetched for advice in advices}
        else:
            raise invalid_value(f"there is no attribute {attribute} of a range")
        target = targets.pop() if len(targets) == 1 else None
        return _number_of(attribute, target)


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
        _SYNC_MEMOPS: piece.is_synchronous,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED): piece.managed,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE): CUmemoryPool(
            0 if piece.pool is None else piece.pool.handle
        ),
    }


def _prefetched(target: MemoryLocation, advice: PageAdvice) -> PageAdvice:
    return advice._replace(prefetched=target)


def _number_of(attribute: int, target: MemoryLocation | None) -> int:
    if attribute in (_PREFERRED_TYPE, _PREFETCHED_TYPE):
        return 0 if target is None else target.kind  # CU_MEM_LOCATION_TYPE_INVALID
    if target is None:
        return _NOWHERE
    if target.kind == DEVICE:
        return target.number
    is_node = target.kind != HOST and attribute in (_PREFERRED_ID, _PREFETCHED_ID)
    return target.number if is_node else _CPU
