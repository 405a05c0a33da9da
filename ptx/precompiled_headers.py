"""NVRTC's precompiled headers: where they are stored, and the heap that they need.

NVRTC manual, "Precompiled Headers". NVRTC reuses a precompiled header by the text of the #include
lines and the options alone: a header that has changed since would be ignored. So each content of
the headers in reach has a folder of its own. Precompiled headers serve the process that made them.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections import Counter
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Final

from ptx import _nvrtc
from ptx.argument_checks import checks
from ptx.cache.key import Key
from ptx.errors import PtxArgumentValueError

__all__ = ["PchState", "pch_heap_bytes", "set_pch_heap_bytes"]

_OF_SOURCE: Final = frozenset({"source", "name", "name expressions"})
_bases: Final[dict[tuple[int, int, str], str]] = {}
"""The folder by process, by number of the heap, and by the folder that the user named."""
_heaps: Final[list[int]] = [0]
"""The number of the heap: a heap of another size cannot use what was made before."""
_changed: Final[Counter[str]] = Counter()
"""How often headers of a content changed while they were compiled; grows by one for each."""


class PchState(Enum):
    """The use of a precompiled header in a compilation."""

    NONE = "none"
    CREATED = "created"
    USED = "used"
    HEAP_EXHAUSTED = "the heap is too small"
    FAILED = "failed"


_STATES: Final = {0: PchState.CREATED, 14: PchState.HEAP_EXHAUSTED, 15: PchState.FAILED}


def pch_heap_bytes() -> int:
    """Return the size of the heap for precompiled headers, by default 256 MiB.

    Raises:
        NvrtcNotFoundError: there is no NVRTC.
        NvrtcVersionError: NVRTC is older than 12.8.
    """
    return _nvrtc.pch_heap_bytes()


def set_pch_heap_bytes(nbytes: int) -> None:
    """Set the size of the heap; headers that were precompiled before are not used any more.

    `CompileReport.pch_heap_bytes` has the size that a compilation needs.

    Raises:
        NvrtcNotFoundError: there is no NVRTC.
        NvrtcVersionError: NVRTC is older than 12.8.
        ValueError: the size is negative, or no size of memory.
    """
    _nvrtc.set_pch_heap_bytes(checks.int_in_range("set_pch_heap_bytes: nbytes", nbytes))
    _heaps[0] += 1


def folder_of(key: Key, parent: str | os.PathLike[str] | None) -> str:
    """Return the folder for the headers of a request, which the end of the process removes.

    Raises:
        OSError: no folder can be made among temporary files.
        PtxArgumentValueError: no folder can be made in `parent`.
    """
    digest = _digest(key)
    where = os.getpid(), _heaps[0], "" if parent is None else os.fspath(parent)
    base = _bases.get(where)
    if base is None:
        try:
            new_folder = tempfile.mkdtemp(prefix="cudadrv-pch-", dir=parent)
        except OSError as error:
            if parent is None:
                raise
            raise PtxArgumentValueError(
                f"pch_dir: no folder can be made in it: {error}\n"
                "  give a folder that exists, and that you can write"
            ) from error
        atexit.register(functools.partial(_remove, os.getpid(), new_folder))
        base = _bases.setdefault(where, new_folder)  # two threads may come here
    folder = Path(base, f"{digest}-{_changed[digest]}")
    folder.mkdir(exist_ok=True)
    return str(folder)


def forget(key: Key) -> None:
    """Use the precompiled headers of a request no more: a header changed while it was compiled."""
    _changed[_digest(key)] += 1


def state_of(program: _nvrtc.NvrtcProgram, folder: str) -> tuple[PchState, int]:
    """Return what became of the headers of a compiled program, and the heap that they need."""
    status, nbytes = program.pch_status()
    if status in _STATES:
        return _STATES[status], nbytes
    # Without an attempt to create one: it is there already, or no header is included.
    is_there = any(Path(folder).glob("*.pch"))
    return (PchState.USED if is_there else PchState.NONE), nbytes


def _digest(key: Key) -> str:
    parts = sorted((name, text) for name, text in key.parts.items() if name not in _OF_SOURCE)
    return sha256(repr((parts, key.headers)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _remove(process: int, folder: str) -> None:
    if os.getpid() == process:  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)
