"""Copies and fills.

CUDA Driver API: "Memory Management". Unified addressing: a device pointer may stand where a host
pointer does, and pinned host memory where a device pointer does. Ranges are checked against the
allocation they lie in.
"""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager, nullcontext

from ...driver._api import CUcontext, CUdeviceptr, CUresult, CUstream
from ..capture_rules import CaptureRules
from ..emulated_device import DeviceState, Owner
from ..graphs import NodeKind
from ..refusal import OK, call, invalid_value
from ..streams import Stream


class CopyCalls(CaptureRules):
    """Copies and fills."""

    @call()
    def cuMemcpyHtoDAsync(
        self, dst_device: CUdeviceptr, src_host: int, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Host to device."""
        self._refuse_foreign_pool(int(dst_device))
        self._copy(int(dst_device), src_host, byte_count, h_stream, from_host=True)
        return OK

    @call()
    def cuMemcpyDtoHAsync(
        self, dst_host: int, src_device: CUdeviceptr, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Device to host."""
        self._refuse_foreign_pool(int(src_device))
        self._copy(dst_host, int(src_device), byte_count, h_stream, to_host=True)
        return OK

    @call()
    def cuMemcpyDtoDAsync(
        self,
        dst_device: CUdeviceptr,
        src_device: CUdeviceptr,
        byte_count: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Device to device, also between devices."""
        self._refuse_foreign_pool(int(dst_device), int(src_device))
        self._copy(int(dst_device), int(src_device), byte_count, h_stream)
        return OK

    @call()
    def cuMemcpyPeerAsync(
        self,
        dst_device: CUdeviceptr,
        dst_context: CUcontext,
        src_device: CUdeviceptr,
        src_context: CUcontext,
        byte_count: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Between contexts; the pointers say on which devices, null contexts are fine."""
        for context in (dst_context, src_context):
            if int(context):
                self._usable(self._context(context))
        self._copy(int(dst_device), int(src_device), byte_count, h_stream)
        return OK

    def _refuse_foreign_pool(self, *addresses: int) -> None:
        """Refuse pool memory that the device of the current context cannot reach.

        The stream does not matter, and without a current context all is taken: measured with
        driver 580 on two devices.
        """
        stack = self._thread.stack
        if not stack:
            return
        own = stack[-1].device
        for address in addresses:
            device = self._device_of(address)
            if device is None or device is own:
                continue
            with device.lock:
                found = device.memory.find(address)
                piece = None if found is None else device.pieces.get(found.address)
            if piece is not None and piece.owner is Owner.POOL:
                raise invalid_value(
                    f"memory of a pool of device {device.ordinal} was given while a context of "
                    f"device {own.ordinal} is current, which cannot reach it"
                )

    def _copy(
        self,
        dst: int,
        src: int,
        nbytes: int,
        h_stream: CUstream,
        *,
        to_host: bool = False,
        from_host: bool = False,
    ) -> None:
        stream = self._stream(h_stream)
        if nbytes <= 0:
            return
        dst_device, src_device = self._device_of(dst), self._device_of(src)
        recording = stream.capture is not None

        def places() -> tuple[int, int]:
            return (
                self._place(dst_device, dst, nbytes, to_host, recording),
                self._place(src_device, src, nbytes, from_host, recording),
            )

        def run() -> None:
            first, second = locks_of(dst_device, src_device)
            with first, second:
                ctypes.memmove(*places(), nbytes)

        if recording:
            first, second = locks_of(dst_device, src_device)
            with first, second:
                places()
        self._submit(stream, NodeKind.COPY, run)

    def _place(
        self, device: DeviceState | None, address: int, nbytes: int, any_host: bool, recording: bool
    ) -> int:
        """Where the host finds a range; locks are held.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if the range does not lie in one allocation.
        """
        if device is not None:
            return device.place(address, nbytes, in_graph=recording)
        piece = self._host.find(address)
        if piece is not None:
            if address + nbytes > piece.address + piece.nbytes:
                raise invalid_value(
                    f"{nbytes} bytes at {address:#x} go beyond the pinned host memory of "
                    f"{piece.nbytes} bytes at {piece.address:#x}"
                )
            return address
        if not any_host:
            raise invalid_value(f"{address:#x} is neither device memory nor pinned host memory")
        if not address:
            raise invalid_value("the host pointer is null")
        return address

    @call()
    def cuMemsetD8Async(
        self, dst_device: CUdeviceptr, uc: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Set `n` bytes."""
        self._fill(int(dst_device), uc, 1, n, self._stream(h_stream))
        return OK

    @call()
    def cuMemsetD16Async(
        self, dst_device: CUdeviceptr, us: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Set `n` 16-bit values at a multiple of 2."""
        self._fill(int(dst_device), us, 2, n, self._stream(h_stream))
        return OK

    @call()
    def cuMemsetD32Async(
        self, dst_device: CUdeviceptr, ui: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Set `n` 32-bit values at a multiple of 4."""
        self._fill(int(dst_device), ui, 4, n, self._stream(h_stream))
        return OK

    def _fill(self, address: int, value: int, width: int, count: int, stream: Stream) -> None:
        if not 0 <= value < 1 << 8 * width:
            raise OverflowError(f"{value} does not fit in {width} unsigned bytes")
        if count <= 0:
            return
        if address % width:
            raise invalid_value(f"{address:#x} is not a multiple of {width}")
        device = self._device_of(address)
        pattern = value.to_bytes(width, "little")
        nbytes = width * count
        recording = stream.capture is not None

        def run() -> None:
            with _lock_of(device):
                _set(self._place(device, address, nbytes, False, recording), pattern, nbytes)

        if recording:
            with _lock_of(device):
                self._place(device, address, nbytes, False, recording)
        self._submit(stream, NodeKind.SET, run)


def _set(place: int, pattern: bytes, nbytes: int) -> None:
    """Repeat a pattern over host memory: whole bytes at once, others by doubling."""
    if len(set(pattern)) == 1:
        ctypes.memset(place, pattern[0], nbytes)
        return
    done = len(pattern)
    ctypes.memmove(place, pattern, done)
    while done < nbytes:
        more = min(done, nbytes - done)
        ctypes.memmove(place + done, place, more)
        done += more


def locks_of(
    one: DeviceState | None, other: DeviceState | None
) -> tuple[AbstractContextManager[object], AbstractContextManager[object]]:
    """The locks of the devices, in the order of ordinals, for one `with`.

    It takes no lock itself, so that an exception between two lines cannot lose one.
    """
    if one is other:
        other = None
    if one is not None and other is not None and one.ordinal > other.ordinal:
        one, other = other, one
    return _lock_of(one), _lock_of(other)


def _lock_of(device: DeviceState | None) -> AbstractContextManager[object]:
    return nullcontext() if device is None else device.lock
