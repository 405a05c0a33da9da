"""Texels that nothing has written: which threads of a fetch or of a surface's load read some.

A fetch is made again of a texture whose texels are 1 where nothing of a texel was written, and else
0: so a texel counts as it does in the fetch, by the same filter, levels and borders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.texture import Image, Texture
from ptx.emulate.texture.texel_place import Bools, Integers
from ptx.emulate.texture.texels import Words
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

NO_BORDER = (0.0, 0.0, 0.0, 0.0)


def check_fetch(
    threads: Fibre, instruction: Instruction, texture: Texture,
    fetched_of: Callable[[Texture], Words],
) -> None:  # fmt: skip
    """Report a thread that gets a texel which nothing has written.

    `fetched_of` makes the fetch of another texture of the same shape.
    """
    check = threads.blocks.unwritten
    if check is None or all(_is_written(image) for image in texture.levels):
        return
    levels = tuple(_lacks_of(image) for image in texture.levels)
    other = replace(texture, levels=levels, as_integer=False, srgb=False, border=NO_BORDER)
    wrong = fetched_of(other).any(axis=1)
    if wrong.any():
        _report(threads, instruction, texture.levels[0], int(np.argmax(wrong)))


def _is_written(image: Image) -> bool:
    return bool(_flags(image).all())


def _flags(image: Image) -> NDArray[np.uint8]:
    """The flags of the image's bytes; all set where nobody has such."""
    written = image.memory.written
    if written is None:
        return np.ones(1, np.uint8)
    return written.of(image.address - image.memory.base, image.nbytes)


def _lacks_of(image: Image) -> Image:
    """An image of the same shape: 1 for each texel of which nothing was written."""
    if image.memory.written is None:
        return marked(image, np.zeros(image.nbytes, np.uint8))
    return marked(image, _flags(image), without=True)


def marked(image: Image, flags: NDArray[np.uint8], *, without: bool = False) -> Image:
    """An image of the same shape: 1 for each texel of which any byte has a flag, or none has."""
    rows, size = (image.height or 1) * image.slices, image.texel_bytes
    shape, strides = (rows, image.width, size), (image.pitch, size, 1)
    texels = np.lib.stride_tricks.as_strided(flags, shape, strides, writeable=False)
    marks = (texels.any(axis=2) != without).astype(np.float32)
    return replace(image, dtype=np.dtype(np.float32), channels=1, row_bytes=0, values=marks.ravel())


def check_load(
    threads: Fibre, instruction: Instruction, image: Image, words: Integers,
    dtype: np.dtype[Any], inside: Bools | None, here: Integers | None,
) -> None:  # fmt: skip
    """Report a thread that loads from a surface what nothing has written.

    `words`: (n, words) where each thread's lie, counted in elements of `dtype`.
    """
    check = threads.blocks.unwritten
    if check is None or image.memory.written is None:
        return
    wrong = ~_flags_as(image, dtype).take(words).any(axis=1)
    if inside is not None:
        wrong &= inside
    if wrong.any():
        at = int(np.argmax(wrong))
        _report(threads, instruction, image, at if here is None else int(here[at]))


def mark_stored(image: Image, words: Integers, dtype: np.dtype[Any]) -> None:
    """Elements of an image were written."""
    if image.memory.written is not None:
        _flags_as(image, dtype)[words] = int.from_bytes(b"\1" * dtype.itemsize, "little")


def _flags_as(image: Image, dtype: np.dtype[Any]) -> NDArray[Any]:
    flags = _flags(image)
    return flags[: len(flags) // dtype.itemsize * dtype.itemsize].view(dtype)


def _report(threads: Fibre, instruction: Instruction, image: Image, position: int) -> None:
    check = threads.blocks.unwritten
    if check is not None:
        where = threads.where(position, instruction)
        check.note_texel(where, image.memory, image.address, image.texel_bytes)
