"""Reads, writes and reductions of images through surfaces. PTX ISA, "suld", "sust", "sured".

Byte addressing (`.b`) counts x in bytes; formatted access (`.p`) in texels. An access outside the
surface stops the kernel (`.trap`), uses the nearest element (`.clamp`), or reads zeros and writes
nothing (`.zero`). A layer's number has 16 bits, as on an H100; its saturation and rounding of
formatted stores are measured there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.texture_object import TexelImage
from ptx.emulate.model.errors import Misaligned, OutOfBounds
from ptx.emulate.model.geometry import Value
from ptx.emulate.texture.handles import (
    by_handle,
    check_live,
    check_load,
    note_stored,
    rows_of,
    unsupported,
)
from ptx.emulate.texture.texels import Bools, Integers, elements_of
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}
_LAYERS = 0xFFFF
_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SurfaceForm:
    """One surface instruction.

    Attributes:
        mode: "trap", "clamp" or "zero".
        formatted: x counts texels, and values are converted to the image's type.
        dtype, count: of the vector that each thread moves.
        reduction: of `sured`, else "".
    """

    instruction: Instruction
    geometry: str
    mode: str
    formatted: bool
    dtype: np.dtype[Any]
    count: int
    writes: bool
    reduction: str = ""

    @property
    def nbytes(self) -> int:
        """The bytes that each thread accesses if x counts bytes."""
        return self.count * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class SurfacePlaces:
    """(n,) byte offsets into the image; `inside`: which threads access it, None for all."""

    offsets: Integers
    inside: Bools | None


def load(threads: Fibre, form: SurfaceForm, handle: Value, *coordinates: Value) -> list[Value]:
    """`suld.b`: the elements of each thread's vector.

    Raises:
        OutOfBounds, Misaligned: a thread's place is wrong.
        InvalidTextureHandle, UseAfterFree: there is no such image.
    """
    elements_read = np.zeros((threads.n, form.count), dtype=form.dtype)
    for positions, image, texels in _images(threads, form, handle, coordinates):
        elements, index = _elements(image, texels, form.nbytes)
        check_load(
            threads, form.instruction, image, index, elements.dtype, texels.inside, positions
        )
        elements_loaded = np.ascontiguousarray(elements.take(index)).view(form.dtype)
        if texels.inside is not None:
            elements_loaded = np.where(
                texels.inside[:, None], elements_loaded, np.zeros(1, dtype=form.dtype)
            )
        elements_read[rows_of(positions)] = elements_loaded
    return list(elements_read.T)


def store(threads: Fibre, form: SurfaceForm, handle: Value, axes: int, *values: Value) -> None:
    """`sust`: `axes` coordinates, then the elements of each thread's vector.

    Raises:
        OutOfBounds, Misaligned: a thread's place is wrong.
        InvalidTextureHandle, UseAfterFree: there is no such image.
    """
    vector = np.stack([np.broadcast_to(value, (threads.n,)) for value in values[axes:]], axis=1)
    for positions, image, texels in _images(threads, form, handle, values[:axes]):
        rows = vector[rows_of(positions)]
        if form.formatted:
            rows = _converted(image, rows)
        elements, index = _elements(image, texels, rows.shape[1] * rows.itemsize)
        words = np.ascontiguousarray(rows).view(elements.dtype)
        if texels.inside is not None:
            index, words = index[texels.inside], words[texels.inside]
        elements[index] = words
        note_stored(threads, image, index, elements.dtype)


def reduce(threads: Fibre, form: SurfaceForm, handle: Value, axes: int, *values: Value) -> None:
    """`sured`: `axes` coordinates, then the value that each thread combines with the image.

    Raises:
        OutOfBounds, Misaligned: a thread's place is wrong.
        InvalidTextureHandle, UseAfterFree: there is no such image.
    """
    value = np.broadcast_to(values[axes], (threads.n,))
    for positions, image, texels in _images(threads, form, handle, values[:axes]):
        dtype = form.dtype
        if form.formatted:
            if image.channels != 1 or image.dtype.kind not in "iu" or image.dtype.itemsize != 4:
                words = "sured.p needs an image of one channel of 32-bit integers"
                raise unsupported(threads, form.instruction, words)
            dtype = image.dtype
        elements, index = _elements(image, texels, dtype.itemsize)
        if elements.dtype.itemsize < dtype.itemsize:
            words = f"its rows of {image.pitch} bytes are no multiple of {dtype.itemsize}"
            raise unsupported(threads, form.instruction, words)
        operands = value[rows_of(positions)].view(dtype)
        check_load(
            threads, form.instruction, image, index, elements.dtype, texels.inside, positions
        )
        flat = index[:, 0]
        if texels.inside is not None:
            flat, operands = flat[texels.inside], operands[texels.inside]
        _REDUCTIONS[form.reduction].at(elements.view(dtype), flat, operands)
        note_stored(threads, image, flat, dtype)


def _images(
    threads: Fibre, form: SurfaceForm, handle: Value, coordinates: tuple[Value, ...]
) -> Any:
    """Yield for each image that threads name their positions, the image, and their texels in it."""
    surfaces = threads.device.surfaces
    spread = [np.broadcast_to(value, (threads.n,)).astype(np.int64) for value in coordinates]
    for positions, image in by_handle(threads, handle, surfaces, "surface", form.instruction):
        check_live(threads, image, form.instruction, writes=form.writes)
        if image.geometry != form.geometry:
            words = f"a {image.geometry} surface is accessed by an instruction for {form.geometry}"
            raise unsupported(threads, form.instruction, words)
        selected = spread if positions is None else [value.take(positions) for value in spread]
        yield positions, image, _places(threads, form, positions, image, selected)


def _places(
    threads: Fibre,
    form: SurfaceForm,
    positions: Any,
    image: TexelImage,
    coordinates: list[Integers],
) -> SurfacePlaces:
    layered = form.geometry[0] == "a"
    unit = image.texel_bytes if form.formatted else form.nbytes
    x = coordinates[layered]
    if form.formatted:
        x = x * unit
    numbers = [x // unit, *coordinates[layered + 1 :]]
    width = image.width * image.texel_bytes // unit
    extents = [width, image.height, image.depth][: len(numbers)]
    if layered:
        numbers.append(coordinates[0] & _LAYERS)
        extents.append(image.layers)
    outside = np.zeros(len(x), dtype=np.bool_)
    for number, extent in zip(numbers, extents, strict=True):
        outside |= (number < 0) | (number >= extent)
    if form.mode == "trap" and outside.any():
        _raise_outside(threads, form, positions, image, numbers, int(np.argmax(outside)))
    if (x % unit).any():
        _raise_misaligned(threads, form, positions, x, unit)
    clamped = [np.clip(n, 0, extent - 1) for n, extent in zip(numbers, extents, strict=True)]
    offsets = clamped[0] * unit
    if image.height:
        offsets = offsets + clamped[1] * image.pitch
    if len(clamped) > 1 and (layered or image.depth):
        offsets = offsets + clamped[-1] * (image.pitch * (image.height or 1))
    drops = form.mode == "zero" and bool(outside.any())
    return SurfacePlaces(offsets, ~outside if drops else None)


def _elements(
    image: TexelImage, texels: SurfacePlaces, nbytes: int
) -> tuple[NDArray[Any], Integers]:
    """The image as words, and (n, words) where those of each thread are."""
    size = min(nbytes, 8)
    while image.pitch % size or image.nbytes % size:
        size //= 2
    elements = elements_of(image, np.dtype(f"u{size}"))
    return elements, (texels.offsets // size)[:, None] + np.arange(nbytes // size)


def _converted(image: TexelImage, rows: NDArray[np.uint32]) -> NDArray[Any]:
    """(n, channels) of the image's type: integers saturate, floats are cut to float16."""
    words = np.zeros((len(rows), image.channels), dtype=np.uint32)
    count = min(image.channels, rows.shape[1])
    words[:, :count] = rows[:, :count]
    dtype = image.dtype
    if dtype.itemsize == 4:
        return words.view(dtype)
    if dtype.kind == "f":
        return _cut_to_half(words.view(np.float32))
    info = np.iinfo(dtype)
    source = words if dtype.kind == "u" else words.view(np.int32)
    return np.clip(source, info.min, info.max).astype(dtype)


def _cut_to_half(values: NDArray[np.float32]) -> NDArray[np.float16]:
    with np.errstate(all="ignore"):
        half = values.astype(np.float16)
        beyond = np.abs(half.astype(np.float32)) > np.abs(values)
        return np.where(beyond, np.nextafter(half, np.float16(0)), half)


def _position(positions: Any, index: int) -> int:
    return index if positions is None else int(positions[index])


def _raise_outside(
    threads: Fibre,
    form: SurfaceForm,
    positions: Any,
    image: TexelImage,
    numbers: list[Integers],
    index: int,
) -> None:
    position = ", ".join(str(int(number[index])) for number in numbers)
    access = "write" if form.writes else "read"
    raise OutOfBounds(
        f"out-of-bounds surface {access} at ({position}), counted in elements, of an image of"
        f" {image.width} x {image.height or 1} x {image.slices} texels with boundary mode trap",
        threads.where(_position(positions, index), form.instruction),
        address=image.address,
        nbytes=form.nbytes,
        space="surface",
    )


def _raise_misaligned(
    threads: Fibre, form: SurfaceForm, positions: Any, x: Integers, unit: int
) -> None:
    index = int(np.argmax(x % unit != 0))
    raise Misaligned(
        f"misaligned surface access of {unit} bytes at byte {int(x[index])} of a row: the x"
        " coordinate of a surface counts bytes",
        threads.where(_position(positions, index), form.instruction),
        address=int(x[index]),
        nbytes=unit,
        space="surface",
    )
