"""What is told of managed memory.

CUDA Driver API: "Unified Addressing", "Stream Management". Here the memory is everywhere at once,
so that a prefetch moves nothing; what is discarded has any content until it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final

from ...driver._api import CUdeviceptr, CUmem_advise, CUresult, CUstream
from ..call_rules import CallRules
from ..host_memory import HostPiece, HostRange, Somewhere, Told
from ..memory_patterns import FREED, fill
from ..node_kind import NodeKind
from ..pools import Location
from ..refusal import OK, Refusal, invalid_value
from ..streams import LEGACY_HANDLE, Stream
from .batch_copy import first_ones
from .call import call
from .pool import DEVICE, HOST, HOST_NUMA

_HOST_NUMA_CURRENT: Final = 4  # CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
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
"""Managed memory, and a part of it: the first byte and how many."""


class ManagedCalls(CallRules):
    """Moving managed memory, advice for it, and attaching it to streams."""

    @call()
    def cuMemPrefetchAsync(
        self, dev_ptr: CUdeviceptr, count: int, location: Location, flags: int, h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:  # fmt: skip
        """Say where managed memory is used next; here it is everywhere at once."""
        self._refuse_to_record(self._stream(h_stream))
        found = self._managed(int(dev_ptr), count)
        place = self._place_of(location)
        if flags:
            raise invalid_value(f"invalid flags of a prefetch {flags:#x}")
        self._tell(found, lambda told: replace(told, prefetched=place))
        return OK

    @call()
    def cuMemPrefetchBatchAsync(
        self, dptrs: Sequence[CUdeviceptr] | None, sizes: Sequence[int], count: int,
        prefetch_locs: Sequence[Location] | None, prefetch_loc_idxs: Sequence[int],
        num_prefetch_locs: int, flags: int, h_stream: CUstream, /,
    ) -> tuple[CUresult]:  # fmt: skip
        """The same of several ranges; from `prefetch_loc_idxs[k]` on to `prefetch_locs[k]`."""
        _, ranges = self._batch(dptrs, sizes, count, flags, h_stream)
        places = self._places(prefetch_locs, prefetch_loc_idxs, num_prefetch_locs, count)
        self._tell_of_places(ranges, places)
        return OK

    @call()
    def cuMemDiscardBatchAsync(
        self, dptrs: Sequence[CUdeviceptr] | None, sizes: Sequence[int], count: int, flags: int,
        h_stream: CUstream, /,
    ) -> tuple[CUresult]:  # fmt: skip
        """Let several ranges have any content from here on in a stream, until they are written."""
        stream, ranges = self._batch(dptrs, sizes, count, flags, h_stream)
        self._discard(stream, ranges)
        return OK

    @call()
    def cuMemDiscardAndPrefetchBatchAsync(
        self, dptrs: Sequence[CUdeviceptr] | None, sizes: Sequence[int], count: int,
        prefetch_locs: Sequence[Location] | None, prefetch_loc_idxs: Sequence[int],
        num_prefetch_locs: int, flags: int, h_stream: CUstream, /,
    ) -> tuple[CUresult]:  # fmt: skip
        """Both."""
        stream, ranges = self._batch(dptrs, sizes, count, flags, h_stream)
        places = self._places(prefetch_locs, prefetch_loc_idxs, num_prefetch_locs, count)
        self._discard(stream, ranges)
        self._tell_of_places(ranges, places)
        return OK

    @call()
    def cuMemAdvise(
        self, dev_ptr: CUdeviceptr, count: int, advice: CUmem_advise | int, location: Location, /
    ) -> tuple[CUresult]:
        """Say how managed memory is used; here that changes nothing but what is told of it."""
        self._current()
        found, number = self._managed(int(dev_ptr), count), int(advice)
        change = self._advice(number, location)
        self._tell(found, change)
        return OK

    def _advice(self, number: int, location: Location) -> Callable[[Told], Told]:
        if number in (_SET_READ_MOSTLY, _UNSET_READ_MOSTLY):
            return lambda told: replace(told, is_read_mostly=number == _SET_READ_MOSTLY)
        if number == _PREFER_NOTHING:
            return lambda told: replace(told, preferred=None)
        place = self._place_of(location)
        if number == _PREFER:
            # On a host of one NUMA node that is the host: measured with driver 580.
            preferred = place if place.kind == DEVICE else Somewhere(HOST, 0)
            return lambda told: replace(told, preferred=preferred)
        if number not in (_ACCESSED, _NOT_ACCESSED):
            raise invalid_value(f"there is no advice {number}")
        if place.kind not in (DEVICE, HOST):
            raise invalid_value("memory is accessed by a device or the host, not by a NUMA node")
        by = frozenset((place.number if place.kind == DEVICE else _CPU,))
        if number == _ACCESSED:
            return lambda told: replace(told, accessed_by=told.accessed_by | by)
        return lambda told: replace(told, accessed_by=told.accessed_by - by)

    @call()
    def cuStreamAttachMemAsync(
        self, h_stream: CUstream, dptr: CUdeviceptr, length: int, flags: int, /
    ) -> tuple[CUresult]:
        """Say which stream uses managed memory; here every stream may at all times."""
        self._stream(h_stream)
        piece, _, _ = self._managed(int(dptr), length or 1)
        if flags not in _ATTACH_TO or length not in (0, piece.nbytes):
            raise invalid_value(
                f"attaching {length} of {piece.nbytes} bytes with flags {flags:#x}: managed "
                "memory is attached as a whole, globally (1), to the host (2) or a stream (4)"
            )
        if flags == _TO_STREAM and int(h_stream) in (0, 1):
            raise invalid_value("no managed memory is attached to the default stream alone")
        return OK

    def _refuse_to_record(self, stream: Stream) -> None:
        if stream.capture is not None:
            raise Refusal(
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
        stream = self._stream(handle)
        self._refuse_to_record(stream)
        if not dptrs or not 0 < count <= min(len(dptrs), len(sizes)) or flags:
            raise invalid_value(f"a batch of {count} ranges with flags {flags:#x}")
        given = zip(dptrs[:count], sizes, strict=False)
        return stream, [self._managed(int(address), nbytes) for address, nbytes in given]

    def _places(
        self, given: Sequence[Location] | None, starts: Sequence[int], number: int, count: int
    ) -> list[Somewhere]:
        """A place for each range of a batch."""
        starts = first_ones("prefetchLocIdxs", starts, given or (), number, count)
        found: list[Somewhere] = []
        for (start, end), each in zip(pairwise((*starts, count)), given or (), strict=False):
            found += [self._place_of(each)] * (end - start)
        return found

    def _tell_of_places(self, ranges: Sequence[_Range], places: Sequence[Somewhere]) -> None:
        for found, place in zip(ranges, places, strict=True):
            self._tell(found, partial(_prefetched, place))

    def _tell(self, found: _Range, change: Callable[[Told], Told]) -> None:
        piece, offset, nbytes = found
        assert piece.told is not None  # it is managed memory
        with self._lock:
            piece.told.change(offset, nbytes, change)

    def _discard(self, stream: Stream, ranges: Sequence[_Range]) -> None:
        for piece, offset, nbytes in ranges:
            run = partial(self._discarded, piece, offset, nbytes)
            used = HostRange(piece.address + offset, nbytes, True, piece, self._accesses is None)
            self._submit(stream, NodeKind.SET, run, (used,))

    def _discarded(self, piece: HostPiece, offset: int, nbytes: int) -> None:
        if self._timeline is not None:
            fill(piece.address + offset, nbytes, FREED)
        if self._accesses is not None:
            self._accesses.moved((), [(piece.address + offset, nbytes)])

    def _managed(self, address: int, count: int) -> _Range:
        """The managed memory that some bytes are of."""
        piece = self._host.find(address)
        if piece is None or not piece.managed or count <= 0:
            raise invalid_value(f"{count} bytes at {address:#x} are no managed memory")
        if address + count > piece.address + piece.nbytes:
            raise invalid_value(
                f"{count} bytes at {address:#x} go beyond the {piece.nbytes} bytes of managed "
                f"memory at {piece.address:#x}"
            )
        return piece, address - piece.address, count

    def _place_of(self, location: Location) -> Somewhere:
        try:
            kind = int(location.type)
        except ValueError:
            kind = 0
        if kind == DEVICE:
            return Somewhere(kind, self._device_at(location.id).ordinal)
        if kind == HOST_NUMA and location.id:
            raise invalid_value(f"the emulated host has NUMA node 0, and no node {location.id}")
        if kind not in (HOST, HOST_NUMA, _HOST_NUMA_CURRENT):
            raise invalid_value(f"managed memory is on a device or the host, not at type {kind}")
        return Somewhere(kind, 0)


def _prefetched(place: Somewhere, told: Told) -> Told:
    return replace(told, prefetched=place)
