"""Texture and surface objects by the handles in registers, and checks of the texels that are read.

Two kinds of texels are reported:

- Texels that nothing has written.
- Texels that the launch itself has written. CUDA Programming Guide, "Read/Write Coherency": the
  cache of textures and surfaces is not coherent with writes of the same kernel call. Such a read
  returns undefined data, whichever thread wrote, and however. Barriers and fences change nothing.

To check a fetch, it is repeated on a texture whose texels are 1 if they are wrong, and else 0. The
same filter, levels and borders apply, so each texel counts as in the fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.texture_object import TexelImage, TextureObject
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import (
    InvalidTextureHandle,
    OutOfBounds,
    UnsupportedFetch,
    UseAfterFree,
    Where,
)
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Threads
from ptx.emulate.texture.texels import Bools, Integers, Words
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_Object = TypeVar("_Object", TextureObject, TexelImage)
_SHOWN = 4


def by_handle(
    threads: Threads, handle: Value, objects: Mapping[int, _Object], kind: str, i: Instruction
) -> Iterator[tuple[Index | None, _Object]]:
    """Each object that threads name, with the positions of these threads; None: all of them.

    Raises:
        InvalidTextureHandle: a handle is no live object of this kind.
    """
    if handle.ndim == 0:
        yield None, _find(threads, 0, int(handle), objects, kind, i)
        return
    values, firsts = np.unique(handle, return_index=True)
    for value, first in zip(values.tolist(), firsts.tolist(), strict=True):
        found = _find(threads, first, value, objects, kind, i)
        yield (None if len(values) == 1 else (handle == value).nonzero()[0]), found


def _find(
    threads: Threads, position: int, handle: int, objects: Mapping[int, _Object], kind: str,
    i: Instruction,
) -> _Object:  # fmt: skip
    found = objects.get(handle)
    if found is not None:
        return found
    live = ", ".join(f"{each:#x}" for each in sorted(objects)[:_SHOWN])
    more = f" and {len(objects) - _SHOWN} more" if len(objects) > _SHOWN else ""
    known = f"live {kind} objects are {live}{more}" if live else f"there is no live {kind} object"
    raise InvalidTextureHandle(
        f"{handle:#x} is no {kind} object; {known}", threads.where(position, i), handle=handle
    )


def rows_of(here: Index | None) -> Any:  # an index of rows
    """The rows of an array that stand for the threads at these positions; None: all."""
    return slice(None) if here is None else here


def check_live(threads: Threads, image: TexelImage, i: Instruction, *, writes: bool) -> None:
    """Raise if an image's memory was freed.

    Raises:
        UseAfterFree, OutOfBounds: it is in no live allocation.
    """
    memory, address = image.memory, image.address
    allocation = memory.find(address)
    if allocation is not None and address + image.nbytes <= allocation.end:
        return
    where = threads.where(0, i)
    access = "write" if writes else "read"
    words = f"{access} of an image of {image.nbytes} bytes at {address:#x}"
    freed = memory.find_freed(address)
    if allocation is None and freed is not None:
        raise UseAfterFree(
            f"{words} after its memory was freed", where, address=address, nbytes=image.nbytes,
            space="global", nearest=f"it belonged to the allocation of {freed}",
        )  # fmt: skip
    raise OutOfBounds(
        f"{words}, which is in no live allocation", where, address=address, nbytes=image.nbytes,
        space="global",
    )  # fmt: skip


def unsupported(threads: Threads, i: Instruction, why: str) -> UnsupportedFetch:
    """Return the fault of a fetch whose result was never measured."""
    return UnsupportedFetch(why, threads.where(0, i))


Bytes = NDArray[np.uint8]
_NO_BORDER = (0.0, 0.0, 0.0, 0.0)


def check_fetch(
    threads: Fibre, instruction: Instruction, texture: TextureObject,
    fetched_of: Callable[[TextureObject], Words], here: Index | None,
) -> None:  # fmt: skip
    """Report a thread that gets a texel which nothing has written, or the launch itself.

    `fetched_of` makes the fetch of another texture of the same shape. `here`: the positions of the
    threads that fetch; None: all.
    """
    unwritten, races, images = threads.blocks.unwritten, threads.blocks.races, texture.levels
    if unwritten is not None and not all(_flags(image).all() for image in images):
        marks = (_lacks_of(image) for image in images)
        at = _first(_fetched(texture, marks, fetched_of), None, here)
        if at is not None:
            unwritten.note_texel(*_texel(threads, instruction, images[0], at))
    if races is not None:
        written = [races.written_bytes(each.memory, each.address, each.nbytes) for each in images]
        if all(each is None for each in written):
            return
        marks = (
            _marked(image, np.zeros(image.nbytes, np.uint8) if each is None else each)
            for image, each in zip(images, written, strict=True)
        )
        at = _first(_fetched(texture, marks, fetched_of), None, here)
        if at is not None:
            races.report_texel(*_texel(threads, instruction, images[0], at))


def check_load(
    threads: Fibre, instruction: Instruction, image: TexelImage, words: Integers,
    dtype: np.dtype[Any], inside: Bools | None, here: Index | None,
) -> None:  # fmt: skip
    """Report a thread that loads from a surface what nothing has written, or the launch itself.

    `words`: (n, words) where each thread's lie, counted in elements of `dtype`.
    """
    unwritten, races = threads.blocks.unwritten, threads.blocks.races
    if unwritten is not None and image.memory.written is not None:
        at = _first(~_elements(_flags(image), dtype).take(words).any(axis=1), inside, here)
        if at is not None:
            unwritten.note_texel(*_texel(threads, instruction, image, at))
    if races is not None:
        written = races.written_bytes(image.memory, image.address, image.nbytes)
        if written is not None:
            at = _first(_elements(written, dtype).take(words).any(axis=1), inside, here)
            if at is not None:
                races.report_texel(*_texel(threads, instruction, image, at))


def note_stored(threads: Fibre, image: TexelImage, words: Integers, dtype: np.dtype[Any]) -> None:
    """The launch has written elements of an image by a surface."""
    if image.memory.written is not None:
        written = int.from_bytes(b"\1" * dtype.itemsize, "little")
        _elements(_flags(image), dtype)[words] = written
    races = threads.blocks.races
    if races is not None:
        _elements(races.stored_texels(image.address, image.nbytes), dtype)[words] = 1


def _texel(
    threads: Fibre, instruction: Instruction, image: TexelImage, position: int
) -> tuple[Where, DeviceMemory, int, int]:
    """A texel that a thread reads, as the checks report it."""
    where = threads.where(position, instruction)
    return where, image.memory, image.address, image.texel_bytes


def _fetched(
    texture: TextureObject,
    marks: Iterable[TexelImage],
    fetched_of: Callable[[TextureObject], Words],
) -> Bools:
    """(n,) whether a thread's fetch reads a texel that is marked."""
    other = replace(texture, levels=tuple(marks), as_integer=False, srgb=False, border=_NO_BORDER)
    return np.asarray(fetched_of(other).any(axis=1))


def _first(
    wrong: NDArray[np.bool_] | np.bool_, inside: Bools | None, here: Index | None
) -> int | None:
    """The position of the first thread that reads a wrong texel within the image."""
    if inside is not None:
        wrong = wrong & inside
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    return at if here is None else int(here[at])


def _flags(image: TexelImage) -> Bytes:
    """The flags of the image's written bytes; all set where memory has no such flags."""
    written = image.memory.written
    if written is None:
        return np.ones(1, np.uint8)
    return written.of(image.address - image.memory.base, image.nbytes)


def _elements(flags: Bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Flags by elements: each has the flags of all its bytes."""
    return flags[: len(flags) // dtype.itemsize * dtype.itemsize].view(f"u{dtype.itemsize}")


def _lacks_of(image: TexelImage) -> TexelImage:
    """An image of the same shape: 1 for each texel of which nothing was written."""
    if image.memory.written is None:
        return _marked(image, np.zeros(image.nbytes, np.uint8))
    return _marked(image, _flags(image), without=True)


def _marked(image: TexelImage, flags: Bytes, *, without: bool = False) -> TexelImage:
    """An image of the same shape: 1 for each texel of which any byte has a flag, or none has."""
    rows, size = (image.height or 1) * image.slices, image.texel_bytes
    shape, strides = (rows, image.width, size), (image.pitch, size, 1)
    texels = np.lib.stride_tricks.as_strided(flags, shape, strides, writeable=False)
    marks = (texels.any(axis=2) != without).astype(np.float32)
    return replace(image, dtype=np.dtype(np.float32), channels=1, row_bytes=0, values=marks.ravel())
