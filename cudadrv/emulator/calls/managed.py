"""What is told of managed memory.

CUDA Driver API: "Unified Addressing", "Stream Management". Here the memory is everywhere at once.
"""

from __future__ import annotations

from typing import Final

from ...driver._api import (
    CUdeviceptr,
    CUmem_advise,
    CUmemLocation,
    CUmemLocationType,
    CUresult,
    CUstream,
)
from ..capture_rules import CaptureRules
from ..host_memory import HostPiece
from ..refusal import OK, Refusal, invalid_value
from .call import call

_TO_STREAM: Final = 4  # CU_MEM_ATTACH_SINGLE
_ATTACH_TO: Final = (1, 2, _TO_STREAM)  # globally, to the host; CU_MEM_ATTACH_GLOBAL, _HOST
_READ_MOSTLY: Final = int(CUmem_advise.CU_MEM_ADVISE_SET_READ_MOSTLY)
_NOT_READ_MOSTLY: Final = int(CUmem_advise.CU_MEM_ADVISE_UNSET_READ_MOSTLY)
_NO_PREFERENCE: Final = int(CUmem_advise.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)


class ManagedCalls(CaptureRules):
    """Moving managed memory, advice for it, and attaching it to streams."""

    @call()
    def cuMemPrefetchAsync(
        self,
        dev_ptr: CUdeviceptr,
        count: int,
        location: CUmemLocation,
        flags: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Say where managed memory is used next; here it is everywhere at once."""
        stream = self._stream(h_stream)
        if stream.capture is not None:
            raise Refusal(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a graph moves no managed memory"
            )
        self._managed(int(dev_ptr), count)
        self._place_of(location)
        if flags:
            raise invalid_value(f"invalid flags of a prefetch {flags:#x}")
        return OK

    @call()
    def cuMemAdvise(
        self, dev_ptr: CUdeviceptr, count: int, advice: CUmem_advise, location: CUmemLocation, /
    ) -> tuple[CUresult]:
        """Say how managed memory is used; here that changes nothing."""
        self._current()
        self._managed(int(dev_ptr), count)
        if int(advice) not in (_READ_MOSTLY, _NOT_READ_MOSTLY, _NO_PREFERENCE):
            self._place_of(location)
        return OK

    @call()
    def cuStreamAttachMemAsync(
        self, h_stream: CUstream, dptr: CUdeviceptr, length: int, flags: int, /
    ) -> tuple[CUresult]:
        """Say which stream uses managed memory; here every stream may at all times."""
        self._stream(h_stream)
        piece = self._managed(int(dptr), length or 1)
        if flags not in _ATTACH_TO or length not in (0, piece.nbytes):
            raise invalid_value(
                f"attaching {length} of {piece.nbytes} bytes with flags {flags:#x}: managed "
                "memory is attached as a whole, globally (1), to the host (2) or a stream (4)"
            )
        if flags == _TO_STREAM and int(h_stream) in (0, 1):
            raise invalid_value("no managed memory is attached to the default stream alone")
        return OK

    def _managed(self, address: int, count: int) -> HostPiece:
        """The managed memory that some bytes are of."""
        piece = self._host.find(address)
        if piece is None or not piece.managed or count <= 0:
            raise invalid_value(f"{count} bytes at {address:#x} are no managed memory")
        if address + count > piece.address + piece.nbytes:
            raise invalid_value(
                f"{count} bytes at {address:#x} go beyond the {piece.nbytes} bytes of managed "
                f"memory at {piece.address:#x}"
            )
        return piece

    def _place_of(self, location: CUmemLocation) -> None:
        if location.type == CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
            self._device_at(location.id)
        elif location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST:
            raise invalid_value(f"managed memory is on a device or the host, not {location.type!r}")
