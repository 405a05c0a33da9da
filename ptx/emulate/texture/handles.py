"""Texture and surface objects by the handles in registers, checked before use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np

from ptx.emulate.memory.texture import Image, Texture
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import (
    InvalidTextureHandle,
    OutOfBounds,
    UnsupportedFetch,
    UseAfterFree,
)
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Threads
from ptx.isa.model import Instruction

_Object = TypeVar("_Object", Texture, Image)
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
    threads: Threads,
    position: int,
    handle: int,
    objects: Mapping[int, _Object],
    kind: str,
    i: Instruction,
) -> _Object:
    found = objects.get(handle)
    if found is not None:
        return found
    live = ", ".join(f"{each:#x}" for each in sorted(objects)[:_SHOWN])
    more = f" and {len(objects) - _SHOWN} more" if len(objects) > _SHOWN else ""
    known = f"live {kind} objects are {live}{more}" if live else f"there is no live {kind} object"
    raise InvalidTextureHandle(
        f"{handle:#x} is no {kind} object; {known}",
        threads.where(position, i),
        handle=handle,
    )


def check_live(threads: Threads, image: Image, i: Instruction, *, writes: bool) -> None:
    """Refuse an image whose memory was given back.

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
    """The fault of a fetch whose result is not known."""
    return UnsupportedFetch(why, threads.where(0, i))
