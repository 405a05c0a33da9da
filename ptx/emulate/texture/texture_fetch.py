"""Texture instructions as generated code calls them: registers in, a word of each channel out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.texture_object import TextureObject
from ptx.emulate.model.geometry import Value
from ptx.emulate.texture.handles import by_handle, check_fetch, check_live, rows_of, unsupported
from ptx.emulate.texture.sampling import (
    FACES,
    Fetch,
    face_place,
    gather,
    level_of,
    read,
    read_level,
    sample,
)
from ptx.emulate.texture.texels import Words, can_filter
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

CHANNELS = 4
AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3}
_QUIET_NAN = 0x7FFF  # the result of converting any NaN to float16


@dataclass(frozen=True, slots=True)
class TextureForm:
    """One texture instruction.

    Attributes:
        geometry: "1d" to "acube"; component: of `tld4`, else "".
        by_number: coordinates are integers.
        has_offset, has_level, has_gradients: what follows the coordinates, in the order level or
            gradients, offset.
        halves: results are pairs of float16.
    """

    instruction: Instruction
    geometry: str
    component: str
    by_number: bool
    has_level: bool
    has_gradients: bool
    has_offset: bool
    halves: bool


def fetch(threads: Fibre, form: TextureForm, handle: Value, *values: Value) -> list[Value]:
    """`tex` and `tld4`: four words, or two of packed halves, for each thread.

    `values`: the layer of an array, the coordinates, the level or the gradients, the offset.

    Raises:
        InvalidTextureHandle: a handle is no texture object.
        UnsupportedFetch: the result on a GPU was never measured.
        UseAfterFree: the image's memory was freed.
    """
    scalar = handle.ndim == 0 and all(value.ndim == 0 for value in values)
    count = 1 if scalar else threads.n
    spread = [np.broadcast_to(value, (count,)) for value in values]
    words = np.zeros((count, CHANNELS), dtype=np.uint32)
    textures = threads.device.textures
    for positions, texture in by_handle(threads, handle, textures, "texture", form.instruction):
        for image in texture.levels:
            check_live(threads, image, form.instruction, writes=False)
        _check(threads, form, texture)
        selected = spread if positions is None else [value.take(positions) for value in spread]
        fetched = _fetch(form, texture, selected)
        check_fetch(threads, form.instruction, texture, partial(_marks, form, selected), positions)
        words[rows_of(positions), : fetched.shape[1]] = fetched
    columns: list[Any] = list(_packed(words).T if form.halves else words.T)
    return [column[0] for column in columns] if scalar else columns


def _marks(form: TextureForm, values: list[NDArray[Any]], texture: TextureObject) -> Words:
    """The fetch of a texture of one channel."""
    return _fetch(replace(form, component=form.component and "r"), texture, values)


def _check(threads: Fibre, form: TextureForm, texture: TextureObject) -> None:
    image = texture.levels[0]
    words = ""
    if form.geometry == "1d" and form.by_number != texture.is_linear_memory:
        words = (
            "integer coordinates read linear memory, and nothing else does; use tex1D for arrays"
            " and tex1Dfetch for linear memory (a GPU reads zeros)"
        )
    elif form.by_number and form.has_level and texture.is_linear_memory:
        words = "integer coordinates with a level of linear memory are not emulated"
    elif form.geometry != _geometry(texture) and not (image.cube and form.geometry == "acube"):
        words = f"a {_geometry(texture)} texture is read by an instruction for {form.geometry}"
    elif form.component and texture.seamless_cube and image.cube:
        words = "gathering across the edges of a seamless cubemap is not emulated"
    elif form.has_gradients and image.cube and len(texture.levels) > 1:
        words = (
            "gradients of a cubemap with mipmaps are not emulated; give the level (texCubemapLod)"
        )
    elif (
        texture.max_anisotropy > 1
        and len(texture.levels) > 1
        and (form.has_gradients or form.has_level)
    ):
        words = "mipmaps with anisotropic filtering are not emulated; set max_anisotropy to 1"
    elif texture.linear and _filters(form) and not can_filter(texture, image.dtype):
        words = "linear filtering needs floats, or integers of 8 or 16 bits read as floats"
    if words:
        raise unsupported(threads, form.instruction, words)


def _filters(form: TextureForm) -> bool:
    return not form.by_number and not form.component


def _geometry(texture: TextureObject) -> str:
    image = texture.levels[0]
    if image.cube:
        return "acube" if image.layers > FACES else "cube"
    return image.geometry


def _fetch(form: TextureForm, texture: TextureObject, values: list[NDArray[Any]]) -> Words:
    remaining = list(values)

    def some(number: int, kind: Any) -> tuple[NDArray[Any], ...]:  # a NumPy type
        operands = tuple(value.view(kind) for value in remaining[:number])
        del remaining[:number]
        return operands

    axes = AXES[form.geometry]
    layer = some(1, np.uint32)[0].astype(np.int64) if form.geometry[0] == "a" else None
    kind = np.int32 if form.by_number else np.float32
    coordinates = some(axes, kind)
    level = some(1, kind)[0] if form.has_level else None
    gradients = (some(axes, np.float32), some(axes, np.float32)) if form.has_gradients else None
    offsets = tuple(offset.astype(np.int64) for offset in some(len(remaining), np.int32))
    if not form.component:
        # Only four bits of an offset count, as on an H100; the ISA allows -8 to 7.
        offsets = tuple((offset + 8 & 15) - 8 for offset in offsets)
    if form.by_number:
        numbers = tuple(number.astype(np.int64) for number in coordinates)
        if offsets:
            numbers = tuple(a + b for a, b in zip(numbers, offsets, strict=True))
        if level is not None:
            return read_level(texture, numbers, layer, level)
        return read(texture, numbers, layer)
    face = None
    if form.geometry in ("cube", "acube"):
        face, *coordinates_2d = face_place(*coordinates)
        coordinates = tuple(coordinates_2d)
    with np.errstate(all="ignore"):
        first, share = level_of(texture, len(values[0]), level, gradients)
        request = Fetch(coordinates, layer, face, offsets, first, share)
        if form.component:
            return gather(texture, request, form.component)
        return sample(texture, request)


def _packed(words: Words) -> Words:
    """(n, 2): pairs of float32 as float16."""
    with np.errstate(all="ignore"):
        floats = words.view(np.float32)
        halves = floats.astype(np.float16).view(np.uint16).astype(np.uint32)
    halves = np.where(np.isnan(floats), np.uint32(_QUIET_NAN), halves)
    pairs: Words = halves[:, 0::2] | halves[:, 1::2] << np.uint32(16)
    return pairs
