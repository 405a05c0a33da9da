"""Copies.

CUDA Driver API: "Memory Management". Unified addressing: a device pointer may stand where a host
pointer does, and pinned host memory where a device pointer does. Ranges are checked against the
allocation they lie in.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...driver._api import CUcontext, CUdeviceptr, CUresult, CUstream
from ..device_state import DeviceState
from ..host_memory import HostRange
from ..node_kind import NodeKind
from ..refusal import OK, invalid_value
from ..streams import Stream
from .call import call
from .device_sides import DeviceSides


@dataclass(frozen=True, slots=True)
class HostSide:
    """What a side of a copy is on the host; nothing of device memory.

    Attributes:
        is_pageable: whether the driver knows nothing of the memory.
    """

    range: HostRange | None
    is_pageable: bool


Ranges = tuple[DeviceState | None, list[tuple[int, int]]]
"""Addresses and sizes, on a device or the host."""
End = tuple[DeviceState | None, int, int]
"""One end of a copy: its device, or None for the host, its address, and its size in bytes."""
Staged = ctypes.Array[ctypes.c_char]
"""What the driver took over from pageable memory."""
_ON_DEVICE: Final = HostSide(None, False)
_HOST, _DEVICE = 1, 2  # CUmemorytype
_COPY: Final = struct.Struct("<4Qi4x6Q4Qi4x6Q3Q")  # CUDA_MEMCPY3D


class Move(NamedTuple):
    """What a copy is going to do.

    Attributes:
        places: refuses what cannot be moved, and gives where the host finds source and target; told
            whether that is done later than the call. Locks are held.
        run: moves, from what is given if the source was staged.
        source, target: where from, and where to.
    """

    places: Callable[[bool], tuple[int, int]]
    run: Callable[[bool, Staged | None], None]
    source: End
    target: End


class CopyCalls(DeviceSides):
    """Copies."""

    @call()
    def cuMemcpyHtoDAsync(
        self, dst_device: CUdeviceptr, src_host: int, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Host to device."""
        self._refuse_by_context(byte_count, int(dst_device))
        self._copy(int(dst_device), src_host, byte_count, h_stream, from_host=True)
        return OK

    @call()
    def cuMemcpyDtoHAsync(
        self, dst_host: int, src_device: CUdeviceptr, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Device to host."""
        self._refuse_by_context(byte_count, int(src_device))
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
        self._refuse_by_context(byte_count, int(dst_device), int(src_device))
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
        self._refuse_dead(dst_context, src_context)
        self._copy(int(dst_device), int(src_device), byte_count, h_stream)
        return OK

    def _refuse_dead(self, *contexts: CUcontext) -> None:
        """Refuse contexts that are destroyed or broken; null ones are fine."""
        for context in contexts:
            if int(context):
                self._usable(self._context(context))

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
        if nbytes > 0:
            move = self._move(dst, src, nbytes, to_host=to_host, from_host=from_host)
            self._submit_move(stream, move)
            if stream.capture is not None:
                self._tell_of_copy(stream, _flat(move))

    @staticmethod
    def _tell_of_copy(stream: Stream, copy: bytes) -> None:
        """Say what was recorded: a CUDA_MEMCPY_NODE_PARAMS with this CUDA_MEMCPY3D."""
        if stream.capture is not None:
            stream.capture.tell(stream, struct.pack("<8xQ", stream.context.handle) + copy)

    def _move(self, dst: int, src: int, nbytes: int, *, to_host: bool, from_host: bool) -> Move:
        """A copy of bytes; `to_host` and `from_host` say that any memory of the host will do."""
        dst_device, src_device = self._device_of(dst), self._device_of(src)

        if not from_host:
            self._refuse_host_pool(src_device, src)
        if not to_host:
            self._refuse_host_pool(dst_device, dst)

        def places(later: bool) -> tuple[int, int]:
            return (
                self._place(src_device, src, nbytes, from_host, later),
                self._place(dst_device, dst, nbytes, to_host, later),
            )

        def run(later: bool, staged: Staged | None) -> None:
            first, second = locks_of(dst_device, src_device)
            with first, second:
                of, to = places(later)
                ctypes.memmove(to, of if staged is None else staged, nbytes)
                if dst_device is not None:
                    flags = self._flags_of(src_device, src, nbytes)
                    _copy_flags(dst_device, dst, flags, nbytes)
            self._note_move((src_device, [(src, nbytes)]), (dst_device, [(dst, nbytes)]))

        return Move(places, run, (src_device, src, nbytes), (dst_device, dst, nbytes))

    def _submit_move(self, stream: Stream, move: Move) -> None:
        """Move bytes in the order of a stream, and wait where the driver does."""
        _, run, source, target = move
        recording = stream.capture is not None
        if self._timeline is None and not recording:
            operation = self._submit(stream, NodeKind.COPY, lambda: run(False, None))
            if operation is not None:  # another thread's nested call has just queued something
                self._wait_for([operation], stream.context)
            self._wait_if_it_blocks(stream, source, target)
            return
        look_at(move, later=recording)
        of = self._host_side(*source, is_written=False)
        to = self._host_side(*target, is_written=True)
        staged = None
        if not recording and of.is_pageable:
            staged = ctypes.create_string_buffer(ctypes.string_at(*source[1:]))
        self._submit_copy(stream, lambda: run(True, staged), of, to)

    def _wait_if_it_blocks(
        self,
        stream: Stream,
        source: End,
        target: End,
    ) -> None:
        """A copy that ran at its call has let the host wait, by the rules of `_submit_copy`."""
        if target[0] is None and (source[0] is None or self._host.find(target[1]) is None):
            self._host_has_waited(stream)

    def _note_move(self, read: Ranges, written: Ranges) -> None:
        """A copy or a fill has read and written these, where accesses are compared."""
        if self._accesses is None:
            return
        known = [
            [r for r in ranges if device is not None or self._host.find(r[0]) is not None]
            for device, ranges in (read, written)
        ]
        self._accesses.moved(*known)

    def _host_side(
        self, device: DeviceState | None, address: int, nbytes: int, *, is_written: bool
    ) -> HostSide:
        """What a copy uses of the host's memory, and whether the driver knows that.

        Where races are looked for, what the host does to memory that it knows is one of them.
        """
        if device is not None:
            return _ON_DEVICE
        piece = self._host.find(address)
        is_watched = piece is None or self._accesses is None
        return HostSide(HostRange(address, nbytes, is_written, piece, is_watched), piece is None)

    def _flags_of(
        self, device: DeviceState | None, address: int, nbytes: int
    ) -> NDArray[np.uint8] | None:
        """Which bytes of a copy's source were written; None where all count as written."""
        if device is not None:
            return device.flags(address, nbytes)
        piece = self._host.find(address)
        if piece is None or piece.written is None:
            return None
        return piece.written.settled(address - piece.address, nbytes)

    def _submit_copy(
        self, stream: Stream, run: Callable[[], None], source: HostSide, target: HostSide
    ) -> None:
        """Queue or record a copy.

        What comes from pageable memory was staged, and is watched in a graph only. A copy to
        pageable memory returns once it is complete, and so does one within the host (CUDA Driver
        API, "API synchronization behavior").
        """
        recording = stream.capture is not None
        used = tuple(
            replace(
                side.range,
                is_watched=side.range.is_watched and (recording or not side.is_pageable),
            )
            for side in (source, target)
            if side.range is not None
        )
        waits = not recording and (target.is_pageable or len(used) == 2)
        if waits:
            self._queued.refuse_to_wait(stream)
        operation = self._submit(stream, NodeKind.COPY, run, used)
        if operation is not None and waits:
            self._wait_for([operation], stream.context)
            self._host_has_waited(stream)

    def _place(
        self, device: DeviceState | None, address: int, nbytes: int, any_host: bool, later: bool
    ) -> int:
        """Where the host finds a range; locks are held.

        Of what runs later than its call, or in a graph, the call has looked whether a graph's
        memory is allocated.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if the range does not lie in one allocation.
        """
        if device is not None:
            return device.place(address, nbytes, in_graph=later)
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


def _flat(move: Move) -> bytes:
    """A copy of bytes as a CUDA_MEMCPY3D of one row."""
    sides: list[int] = []
    for device, address, _ in (move.source, move.target):
        host, on_device = (address, 0) if device is None else (0, address)
        sides += (0, 0, 0, 0, _HOST if device is None else _DEVICE, host, on_device, 0, 0, 0, 0)
    return _COPY.pack(*sides, move.source[2], 1, 1)


def look_at(move: Move, *, later: bool) -> tuple[int, int]:
    """Where the host finds source and target of a copy.

    Raises:
        Refusal: it cannot be made.
    """
    first, second = locks_of(move.source[0], move.target[0])
    with first, second:
        return move.places(later)


def _copy_flags(to: DeviceState, dst: int, flags: NDArray[np.uint8] | None, nbytes: int) -> None:
    """What was not written at the source is not at the target."""
    written = to.memory.written
    if written is None:
        return
    if flags is None:
        written.mark(dst - to.memory.base, nbytes)
    else:
        written.put(dst - to.memory.base, flags)


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
    return lock_of(one), lock_of(other)


def lock_of(device: DeviceState | None) -> AbstractContextManager[object]:
    """The lock of a device, or of the host, which needs none."""
    return nullcontext() if device is None else device.lock
