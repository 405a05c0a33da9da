"""Texels that the launch itself has written, read through a texture or a surface.

CUDA Programming Guide, "Read/Write Coherency": the cache of textures and surfaces is not kept
coherent with writes of the same kernel call, by whichever thread and way, so such a read gives
undefined data. Barriers and fences change nothing.

As for texels that nothing has written (`unwritten_texels`), a fetch is made again of a texture
whose texels are 1 where that is so.
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
from ptx.emulate.texture.unwritten_texels import NO_BORDER, marked
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

Bytes = NDArray[np.uint8]


def check_stale_fetch(
    threads: Fibre, instruction: Instruction, texture: Texture,
    fetched_of: Callable[[Texture], Words],
) -> None:  # fmt: skip
    """Report a thread that gets a texel which the launch has written.

    `fetched_of` makes the fetch of another texture of the same shape.
    """
    if threads.blocks.races is None:
        return
    written = [_written(threads, image) for image in texture.levels]
    if all(each is None for each in written):
        return
    levels = tuple(
        marked(image, np.zeros(image.nbytes, np.uint8) if each is None else each)
        for image, each in zip(texture.levels, written, strict=True)
    )
    other = replace(texture, levels=levels, as_integer=False, srgb=False, border=NO_BORDER)
    stale = fetched_of(other).any(axis=1)
    if stale.any():
        _report(threads, instruction, texture.levels[0], int(np.argmax(stale)))


def check_stale_load(
    threads: Fibre, instruction: Instruction, image: Image, words: Integers,
    dtype: np.dtype[Any], inside: Bools | None, here: Integers | None,
) -> None:  # fmt: skip
    """Report a thread that loads from a surface what the launch has written.

    `words`: (n, words) where each thread's lie, counted in elements of `dtype`.
    """
    written = _written(threads, image)
    if written is None:
        return
    stale = _as(written, dtype).take(words).any(axis=1)
    if inside is not None:
        stale &= inside
    if stale.any():
        at = int(np.argmax(stale))
        _report(threads, instruction, image, at if here is None else int(here[at]))


def note_stored(threads: Fibre, image: Image, words: Integers, dtype: np.dtype[Any]) -> None:
    """The launch has written elements of an image by a surface."""
    races = threads.blocks.races
    if races is not None:
        _as(races.stored_texels(image.address, image.nbytes), dtype)[words] = 1


def _written(threads: Fibre, image: Image) -> Bytes | None:
    """Which of an image's bytes the launch has written, not 0 for those; None if it has none."""
    races = threads.blocks.races
    if races is None:
        return None
    found: Bytes | None = races.written_bytes(image.memory, image.address, image.nbytes)
    return found


def _as(flags: Bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    return flags[: len(flags) // dtype.itemsize * dtype.itemsize].view(f"u{dtype.itemsize}")


def _report(threads: Fibre, instruction: Instruction, image: Image, position: int) -> None:
    races = threads.blocks.races
    if races is not None:
        where = threads.where(position, instruction)
        races.report_texel(where, image.memory, image.address, image.texel_bytes)
