"""`compile_report`: compile anew, with the time of each phase and the state of the headers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ptx import _nvrtc
from ptx.cache.key import CompileKeys, Key
from ptx.image import Image
from ptx.image_cache import warned_of
from ptx.options import (
    Cancel,
    CompileOptions,
    CompileRequest,
    UncacheableError,
    cancel_function,
)
from ptx.precompiled_headers import PchState, folder_of, forget, state_of

__all__ = ["CompilePhase", "CompileReport", "compile_report"]

_DEFAULT: Final = CompileOptions()


@dataclass(frozen=True, slots=True)
class CompilePhase:
    """A phase of a compilation, such as "CUDA C++ Frontend", and its time."""

    name: str
    ms: float


@dataclass(frozen=True, slots=True)
class CompileReport:
    """The phases of a compilation, and their times.

    Attributes:
        image: its result.
        phases: the times of NVRTC's phases.
        pch: the use of its precompiled header.
        pch_heap_bytes: the heap that its precompiled header needs; 0 if none was created.
    """

    image: Image
    phases: tuple[CompilePhase, ...]
    pch: PchState
    pch_heap_bytes: int


def compile_report(
    source: str,
    options: CompileOptions = _DEFAULT,
    *,
    name: str = "kernel.cu",
    name_expressions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    cancel: Cancel | None = None,
) -> CompileReport:
    """Compile as `ptx.compile` does without a cache, and report the phases with their times.

    Raises: what `ptx.compile` does.
    """
    from ptx.nvrtc_build import build  # as in the cache

    request = CompileRequest.of(source, options, name, name_expressions, headers)
    keys = CompileKeys(None)
    key = _key(keys, request)
    folder = None if key is None else folder_of(key, options.pch_dir)
    states: list[tuple[PchState, int]] = [(PchState.NONE, 0)]

    def read(program: _nvrtc.NvrtcProgram) -> None:
        if folder is not None:
            states.append(state_of(program, folder))

    with tempfile.TemporaryDirectory(prefix="cudadrv-") as temporary_folder:
        times = Path(temporary_folder, "times.csv")
        image = build(
            request,
            cancel=cancel_function(cancel),
            pch_folder=folder,
            also=(f"--time={times}",),
            read=read,
        )
        phases = tuple(phases_in(times.read_text(errors="replace")))
    if key is not None and not key.still_holds(_key(keys, request) or key):
        forget(key)
    return CompileReport(warned_of(image, request.name, request.source), phases, *states[-1])


def _key(keys: CompileKeys, request: CompileRequest) -> Key | None:
    """Return the key of a request with precompiled headers."""
    if not request.options.pch:
        return None
    try:
        return keys.key(request)
    except UncacheableError:
        return None


def phases_in(table: str) -> Iterator[CompilePhase]:
    """Yield the phases of NVRTC's table: file, phase, time, unit; a file can contain commas."""
    for line in table.split("\n"):
        cells = [cell.strip() for cell in line.rsplit(",", 3)]
        if len(cells) == 4 and cells[3] == "ms" and cells[2].replace(".", "", 1).isdigit():
            yield CompilePhase(cells[1], float(cells[2]))
