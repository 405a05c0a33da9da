"""Fills of rows of memory with one value.

CUDA Driver API: "Memory Management", cuMemsetD8Async and the like.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Final, NamedTuple

from ...driver._api import CUdeviceptr, CUresult, CUstream
from ..call_error import OK, invalid_value
from ..copies import host_address_of, host_side, lock_of, record_copy
from ..device_state import DeviceState
from ..driver_state import DriverState
from ..node_kind import NodeKind
from ..streams import Stream
from .call import DriverCalls, call

_PARAMS: Final = struct.Struct("<QQIIQQQ")  # CUDA_MEMSET_NODE_PARAMS_v2


class Rows(NamedTuple):
    """The rows of a fill.

    Attributes:
        elements: the number per row.
        height: the number of rows.
        pitch: bytes from a row to the next; unused for a single row.
    """

    elements: int
    height: int = 1
    pitch: int = 0


class FillCalls(DriverCalls):
    """Fills; those without a stream run in the legacy stream."""

    @call
    def cuMemsetD8(self, dst_device: CUdeviceptr, uc: int, n: int, /) -> tuple[CUresult]:
        """Set `n` bytes; the host does not wait for device memory, but for SYNC_MEMOPS."""
        self._fill(int(dst_device), uc, 1, Rows(n))
        return OK

    @call
    def cuMemsetD16(self, dst_device: CUdeviceptr, us: int, n: int, /) -> tuple[CUresult]:
        """Set `n` 16-bit values."""
        self._fill(int(dst_device), us, 2, Rows(n))
        return OK

    @call
    def cuMemsetD32(self, dst_device: CUdeviceptr, ui: int, n: int, /) -> tuple[CUresult]:
        """Set `n` 32-bit values."""
        self._fill(int(dst_device), ui, 4, Rows(n))
        return OK

    @call
    def cuMemsetD2D8(
        self, dst_device: CUdeviceptr, dst_pitch: int, uc: int, width: int, height: int, /
    ) -> tuple[CUresult]:
        """Set `width` bytes of each of `height` rows, `dst_pitch` bytes apart."""
        self._fill(int(dst_device), uc, 1, Rows(width, height, dst_pitch))
        return OK

    @call
    def cuMemsetD2D16(
        self, dst_device: CUdeviceptr, dst_pitch: int, us: int, width: int, height: int, /
    ) -> tuple[CUresult]:
        """Set `width` 16-bit values of each of `height` rows, `dst_pitch` bytes apart."""
        self._fill(int(dst_device), us, 2, Rows(width, height, dst_pitch))
        return OK

    @call
    def cuMemsetD2D32(
        self, dst_device: CUdeviceptr, dst_pitch: int, ui: int, width: int, height: int, /
    ) -> tuple[CUresult]:
        """Set `width` 32-bit values of each of `height` rows, `dst_pitch` bytes apart."""
        self._fill(int(dst_device), ui, 4, Rows(width, height, dst_pitch))
        return OK

    def _fill(self, address: int, value: int, width: int, rows: Rows) -> None:
        """Fill in the default stream; the host waits for a fill of its own or managed memory."""
        stream = self._state.handles.stream(self._state.thread.default_stream)
        waits = self._state.memory.host.find(address) is not None
        if waits:
            self._state.operations.queue.reject_to_wait(stream)
        fill_rows(self._state, address, value, width, rows, stream)
        if waits:
            self._state.operations.wait_for_stream(stream)
        else:
            self._state.operations.wait_if_synchronous(address)

    def _queue_fill(
        self, address: CUdeviceptr, value: int, width: int, rows: Rows, stream: CUstream
    ) -> None:
        queue = self._state.handles.stream(stream)
        fill_rows(self._state, int(address), value, width, rows, queue)

    @call
    def cuMemsetD8Async(
        self, dst_device: CUdeviceptr, uc: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Set `n` bytes."""
        self._queue_fill(dst_device, uc, 1, Rows(n), h_stream)
        return OK

    @call
    def cuMemsetD16Async(
        self, dst_device: CUdeviceptr, us: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Set `n` 16-bit values at a multiple of 2."""
        self._queue_fill(dst_device, us, 2, Rows(n), h_stream)
        return OK

    @call
    def cuMemsetD32Async(
        self, dst_device: CUdeviceptr, ui: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Set `n` 32-bit values at a multiple of 4."""
        self._queue_fill(dst_device, ui, 4, Rows(n), h_stream)
        return OK

    @call
    def cuMemsetD2D8Async(
        self,
        dst_device: CUdeviceptr,
        dst_pitch: int,
        uc: int,
        width: int,
        height: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Set `width` bytes of each of `height` rows, `dst_pitch` bytes apart."""
        self._queue_fill(dst_device, uc, 1, Rows(width, height, dst_pitch), h_stream)
        return OK

    @call
    def cuMemsetD2D16Async(
        self,
        dst_device: CUdeviceptr,
        dst_pitch: int,
        us: int,
        width: int,
        height: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Same for 16-bit values, at multiples of 2."""
        self._queue_fill(dst_device, us, 2, Rows(width, height, dst_pitch), h_stream)
        return OK

    @call
    def cuMemsetD2D32Async(
        self,
        dst_device: CUdeviceptr,
        dst_pitch: int,
        ui: int,
        width: int,
        height: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Same for 32-bit values, at multiples of 4."""
        self._queue_fill(dst_device, ui, 4, Rows(width, height, dst_pitch), h_stream)
        return OK


def _reject_if_shut(
    driver: DriverState, device: DeviceState | None, address: int, stream: Stream
) -> None:
    """Reject host memory that the stream's device may not access."""
    piece = driver.memory.host.find(address) if device is None else None
    ordinal = stream.context.device.ordinal
    if piece is not None and not piece.is_open_to(ordinal):
        raise invalid_value(
            f"{address:#x} is memory of a pool that cuMemPoolSetAccess has not opened to "
            f"device {ordinal}"
        )


def _checked_pitch(address: int, width: int, rows: Rows) -> int:
    """Return the bytes from row to row; a single row's own."""
    count, height, pitch = rows
    if address % width:
        raise invalid_value(f"{address:#x} is not a multiple of {width}")
    nbytes = width * count
    if height == 1:
        return nbytes
    if pitch % width or pitch < nbytes:
        raise invalid_value(
            f"rows of {nbytes} bytes cannot begin {pitch} bytes apart: a pitch is a multiple "
            f"of {width} and no less than a row"
        )
    return pitch


def fill_rows(
    driver: DriverState, address: int, value: int, width: int, rows: Rows, stream: Stream
) -> None:
    """Fill rows of memory in the order of a stream, or record the fill."""
    if not 0 <= value < 1 << 8 * width:
        raise OverflowError(f"{value} does not fit in {width} unsigned bytes")
    count, height, _ = rows
    if count <= 0 or height <= 0:
        return
    nbytes, pitch = width * count, _checked_pitch(address, width, rows)
    device, span = driver.devices.holding(address), pitch * (height - 1) + nbytes
    _reject_if_shut(driver, device, address, stream)
    pattern = value.to_bytes(width, "little")
    recording = stream.capture is not None
    later = recording or driver.operations.timeline is not None

    def run() -> None:
        with lock_of(device):
            host_address = host_address_of(driver, device, address, span, False, later)
            # Only now: an absurd height has been rejected.
            ranges = [(address + row * pitch, nbytes) for row in range(height)]
            if pitch == nbytes:
                ranges = [(address, span)]
            for start, length in ranges:
                _set(host_address + start - address, pattern, length)
                if device is not None:
                    device.memory.mark_written(start, length)
        record_copy(driver, (device, []), (device, ranges))

    if not later:
        driver.operations.submit(stream, NodeKind.SET, run)
        return
    with lock_of(device):
        host_address_of(driver, device, address, span, False, recording)
    target = host_side(driver, device, address, span, is_written=True)
    driver.operations.submit(
        stream, NodeKind.SET, run, () if target.range is None else (target.range,)
    )
    if stream.capture is not None:
        fields = (address, rows.pitch, value, width, count, height, stream.context.handle)
        stream.capture.set_params(stream, _PARAMS.pack(*fields))


def _set(host_address: int, pattern: bytes, nbytes: int) -> None:
    """Repeat a pattern over host memory: whole bytes at once, others by doubling."""
    if len(set(pattern)) == 1:
        ctypes.memset(host_address, pattern[0], nbytes)
        return
    filled = len(pattern)
    ctypes.memmove(host_address, pattern, filled)
    while filled < nbytes:
        nbytes_more = min(filled, nbytes - filled)
        ctypes.memmove(host_address + filled, host_address, nbytes_more)
        filled += nbytes_more
