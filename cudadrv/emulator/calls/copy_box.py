"""Copies of boxes of bytes between host memory, device memory and CUDA arrays.

CUDA Driver API: cuMemcpy3DAsync. What is checked, and how, was measured with driver 580 on an H100.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...driver._api import (
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_PEER,
    CUarray,
    CUdeviceptr,
    CUmemorytype,
    CUresult,
    CUstream,
)
from ..arrays import Array
from ..device_state import DeviceState
from ..refusal import OK, invalid_value
from ..streams import Stream
from .call import call
from .copy import CopyCalls, Move, Staged, locks_of

_BoxCopy: TypeAlias = CUDA_MEMCPY3D | CUDA_MEMCPY3D_PEER
_COPY_BYTES: Final = 200  # sizeof(CUDA_MEMCPY3D), and of CUDA_MEMCPY3D_PEER
_CONTEXTS: Final = (64, 152)  # of contexts in the latter, where the former has nothing
Box: TypeAlias = tuple[int, int, int]
"""Bytes of a row, rows, slices."""


@dataclass(frozen=True, slots=True)
class BoxSide:
    """One side of a copy: where its box begins, and the steps to the next row and slice in bytes.

    Attributes:
        array: the array that it lies in; its address may then be anything that was copied before.
        any_host: whether ordinary memory of the host will do.
    """

    address: int
    row: int
    slice: int
    array: Array | None = None
    any_host: bool = False

    def span(self, box: Box) -> int:
        """Bytes from the first to the last of the box."""
        width, height, depth = box
        return (depth - 1) * self.slice + (height - 1) * self.row + width

    def ranges(self, box: Box) -> list[tuple[int, int]]:
        """Addresses and sizes of the rows; one where they follow each other."""
        width, height, depth = box
        if self.span(box) == width * height * depth:
            return [(self.address, self.span(box))]
        return [
            (self.address + z * self.slice + y * self.row, width)
            for z in range(depth)
            for y in range(height)
        ]

    def rows(self, memory: memoryview, box: Box) -> NDArray[np.uint8]:
        """(depth, height, width) the bytes of the box in memory that begins where it does."""
        width, height, depth = box
        return np.ndarray((depth, height, width), np.uint8, memory, 0, (self.slice, self.row, 1))


class BoxCopyCalls(CopyCalls):
    """Copies of boxes."""

    @call()
    def cuMemcpy3DAsync(self, copy: CUDA_MEMCPY3D | None, h_stream: CUstream, /) -> tuple[CUresult]:
        """Copy `WidthInBytes` of `Height` rows of `Depth` slices; an empty box copies nothing."""
        self._submit_box(copy, h_stream)
        return OK

    @call()
    def cuMemcpy3DPeerAsync(
        self, copy: CUDA_MEMCPY3D_PEER | None, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """The same between contexts; the pointers say on which devices, null contexts are fine."""
        if copy is not None:
            self._refuse_dead(copy.dstContext, copy.srcContext)
        self._submit_box(copy, h_stream)
        return OK

    def _submit_box(self, copy: _BoxCopy | None, h_stream: CUstream) -> None:
        if copy is None:
            raise invalid_value("the copy's parameters are null")
        self._copy_boxes(copy, self._stream(h_stream))

    def _copy_boxes(self, copy: _BoxCopy, stream: Stream) -> None:
        box = int(copy.WidthInBytes), int(copy.Height), int(copy.Depth)
        if 0 in box:
            return
        source, target = self._source(copy, box), self._target(copy, box)
        self._submit_move(stream, self._move_box(source, target, box))
        if stream.capture is not None:
            told = bytearray(ctypes.string_at(copy.getPtr(), _COPY_BYTES))
            for at in _CONTEXTS:
                told[at : at + 8] = bytes(8)
            self._tell_of_copy(stream, bytes(told))

    def _move_box(self, source: BoxSide, target: BoxSide, box: Box) -> Move:
        """A copy of a box from one side to the other."""
        devices = self._device_of(source.address), self._device_of(target.address)

        def places(later: bool) -> tuple[int, int]:
            return (
                self._place_side(source, devices[0], box, later),
                self._place_side(target, devices[1], box, later),
            )

        def run(later: bool, staged: Staged | None) -> None:
            first, second = locks_of(*devices)
            with first, second:
                of, to = places(later)
                if staged is not None:
                    of = ctypes.addressof(staged)
                _copy_box(of, source, to, target, box)
                flags = self._flags_of(devices[0], source.address, source.span(box))
                _copy_flags(flags, source, devices[1], target, box)
            self._note_move((devices[0], source.ranges(box)), (devices[1], target.ranges(box)))

        of = devices[0], source.address, source.span(box)
        to = devices[1], target.address, target.span(box)
        return Move(places, run, of, to)

    def _source(self, copy: _BoxCopy, box: Box) -> BoxSide:
        at = int(copy.srcXInBytes), int(copy.srcY), int(copy.srcZ)
        try:
            kind = copy.srcMemoryType
        except ValueError as error:
            raise invalid_value(f"the kind of the source: {error}") from None
        if kind == CUmemorytype.CU_MEMORYTYPE_ARRAY:
            return self._in_array(copy.srcArray, int(copy.srcLOD), at, box)
        pitch, height = int(copy.srcPitch), int(copy.srcHeight)
        return _in_memory(kind, int(copy.srcHost), copy.srcDevice, pitch, height, at, box)

    def _target(self, copy: _BoxCopy, box: Box) -> BoxSide:
        at = int(copy.dstXInBytes), int(copy.dstY), int(copy.dstZ)
        try:
            kind = copy.dstMemoryType
        except ValueError as error:
            raise invalid_value(f"the kind of the destination: {error}") from None
        if kind == CUmemorytype.CU_MEMORYTYPE_ARRAY:
            return self._in_array(copy.dstArray, int(copy.dstLOD), at, box)
        pitch, height = int(copy.dstPitch), int(copy.dstHeight)
        return _in_memory(kind, int(copy.dstHost), copy.dstDevice, pitch, height, at, box)

    def _in_array(self, handle: CUarray, level: int, at: Box, box: Box) -> BoxSide:
        array = self._arrays.get(int(handle))
        if array is None:
            raise invalid_value(f"{int(handle):#x} is no live array")
        if level:
            raise invalid_value(f"level {level} of an array that is not mipmapped")
        layout = array.layout
        row = layout.width * layout.texel_bytes
        whole = row, layout.rows, layout.slices
        if any(start + n > most for start, n, most in zip(at, box, whole, strict=True)):
            raise invalid_value(
                f"a box of {box} (bytes, rows, slices) at {at} goes beyond the array of {whole}"
            )
        x, y, z = at
        step = row * layout.rows
        return BoxSide(array.address + z * step + y * row + x, row, step, array)

    def _place_side(
        self, side: BoxSide, device: DeviceState | None, box: Box, recording: bool
    ) -> int:
        if side.array is not None and side.array.destroyed:
            raise invalid_value("the array of the copy was destroyed")
        if not side.any_host:
            self._refuse_host_pool(device, side.address)
        return self._place(device, side.address, side.span(box), side.any_host, recording)


def _in_memory(
    kind: CUmemorytype,
    host: int,
    device: CUdeviceptr,
    pitch: int,
    height: int,
    at: Box,
    box: Box,
) -> BoxSide:
    (x, y, z), (width, rows, slices) = at, box
    pitch = pitch or x + width
    height = height or y + rows
    if x + width > pitch or (y + rows > height and (slices > 1 or z)):
        raise invalid_value(
            f"a box of {box} (bytes, rows, slices) at {at} goes beyond rows of {pitch} bytes and "
            f"slices of {height} rows"
        )
    is_host = kind == CUmemorytype.CU_MEMORYTYPE_HOST
    address = host if is_host else int(device)
    if not address:
        raise invalid_value("the pointer of one side of the copy is null")
    any_host = kind != CUmemorytype.CU_MEMORYTYPE_DEVICE
    start = address + z * pitch * height + y * pitch + x
    return BoxSide(start, pitch, pitch * height, any_host=any_host)


def _copy_box(of: int, source: BoxSide, to: int, target: BoxSide, box: Box) -> None:
    width, height, depth = box
    packed = width * height * depth
    if source.span(box) == target.span(box) == packed:
        ctypes.memmove(to, of, packed)
        return
    written, read = (
        side.rows(memoryview((ctypes.c_ubyte * side.span(box)).from_address(address)), box)
        for address, side in ((to, target), (of, source))
    )
    np.copyto(written, read)


def _copy_flags(
    read: NDArray[np.uint8] | None,
    source: BoxSide,
    to: DeviceState | None,
    target: BoxSide,
    box: Box,
) -> None:
    """What was not written at the source is not at the target."""
    if to is None or to.memory.written is None:
        return
    flags = to.memory.written.of(target.address - to.memory.base, target.span(box))
    target.rows(flags.data, box)[...] = 1 if read is None else source.rows(read.data, box)
    to.memory.written.version += 1
