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
from ptx.emulate.observer import TexelFlags
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
        object_of_handle = _find(threads, first, value, objects, kind, i)
        yield (None if len(values) == 1 else (handle == value).nonzero()[0]), object_of_handle


def _find(
    threads: Threads,
    position: int,
    handle: int,
    objects: Mapping[int, _Object],
    kind: str,
    i: Instruction,
) -> _Object:
    live_object = objects.get(handle)
    if live_object is not None:
        return live_object
    live = ", ".join(f"{number:#x}" for number in sorted(objects)[:_SHOWN])
    hidden_count = f" and {len(objects) - _SHOWN} more" if len(objects) > _SHOWN else ""
    live_objects = (
        f"live {kind} objects are {live}{hidden_count}"
        if live
        else f"there is no live {kind} object"
    )
    raise InvalidTextureHandle(
        f"{handle:#x} is no {kind} object; {live_objects}",
        threads.where(position, i),
        handle=handle,
    )


def rows_of(positions: Index | None) -> Any:  # an index of rows
    """The rows of an array that stand for the threads at these positions; None: all."""
    return slice(None) if positions is None else positions


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
            f"{words} after its memory was freed",
            where,
            address=address,
            nbytes=image.nbytes,
            space="global",
            nearest=f"it belonged to the allocation of {freed}",
        )
    raise OutOfBounds(
        f"{words}, which is in no live allocation",
        where,
        address=address,
        nbytes=image.nbytes,
        space="global",
    )


def unsupported(threads: Threads, i: Instruction, why: str) -> UnsupportedFetch:
    """Return the fault of a fetch whose result was never measured."""
    return UnsupportedFetch(why, threads.where(0, i))


Bytes = NDArray[np.uint8]
_NO_BORDER = (0.0, 0.0, 0.0, 0.0)


def check_fetch(
    threads: Fibre,
    instruction: Instruction,
    texture: TextureObject,
    fetched_of: Callable[[TextureObject], Words],
    positions: Index | None,
) -> None:
    """Report a thread that gets a texel which nothing has written, or the launch itself.

    `fetched_of` makes the fetch of another texture of the same shape. `positions`: those of the
    threads that fetch; None: all.
    """
    images = texture.levels
    for observer in threads.blocks.observers:
        flags_of = [observer.flag_texels(each.memory, each.address, each.nbytes) for each in images]
        if all(flags is None or (flags.are_good and flags.flags.all()) for flags in flags_of):
            continue
        marks = (_marked(*each) for each in zip(images, flags_of, strict=True))
        thread = _first(_fetched(texture, marks, fetched_of), None, positions)
        if thread is not None:
            observer.read_flagged(*_texel(threads, instruction, images[0], thread))


def check_load(
    threads: Fibre,
    instruction: Instruction,
    image: TexelImage,
    words: Integers,
    dtype: np.dtype[Any],
    inside: Bools | None,
    positions: Index | None,
) -> None:
    """Report a thread that loads from a surface what nothing has written, or the launch itself.

    `words`: (n, words) where each thread's lie, counted in elements of `dtype`.
    """
    for observer in threads.blocks.observers:
        flags = observer.flag_texels(image.memory, image.address, image.nbytes)
        if flags is None:
            continue
        has_flag = _elements(flags.flags, dtype).take(words).any(axis=1)
        position = _first(has_flag != flags.are_good, inside, positions)
        if position is not None:
            observer.read_flagged(*_texel(threads, instruction, image, position))


def note_stored(threads: Fibre, image: TexelImage, words: Integers, dtype: np.dtype[Any]) -> None:
    """The launch has written elements of an image by a surface."""
    flags = image.memory.written
    if flags is not None:
        written = int.from_bytes(b"\1" * dtype.itemsize, "little")
        of_image = flags.of(image.address - image.memory.base, image.nbytes)
        _elements(of_image, dtype)[words] = written
    for observer in threads.blocks.observers:
        observer.store_texels(image.address, image.nbytes, dtype, words)


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
    wrong: NDArray[np.bool_] | np.bool_, inside: Bools | None, positions: Index | None
) -> int | None:
    """The position of the first thread that reads a wrong texel within the image."""
    if inside is not None:
        wrong = wrong & inside
    if not wrong.any():
        return None
    first_wrong = int(np.argmax(wrong))
    return first_wrong if positions is None else int(positions[first_wrong])


def _elements(flags: Bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Flags by elements: each has the flags of all its bytes."""
    return flags[: len(flags) // dtype.itemsize * dtype.itemsize].view(f"u{dtype.itemsize}")


def _marked(image: TexelImage, flags: TexelFlags | None) -> TexelImage:
    """An image of the same shape: 1 for each texel that is wrong by its flags."""
    rows, size = (image.height or 1) * image.slices, image.texel_bytes
    shape, strides = (rows, image.width, size), (image.pitch, size, 1)
    of_bytes = np.zeros(image.nbytes, np.uint8) if flags is None else flags.flags
    texels = np.lib.stride_tricks.as_strided(of_bytes, shape, strides, writeable=False)
    are_good = flags is not None and flags.are_good
    marks = (texels.any(axis=2) != are_good).astype(np.float32)
    return replace(image, dtype=np.dtype(np.float32), channels=1, row_bytes=0, values=marks.ravel())
