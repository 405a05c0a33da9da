"""NVRTC's warnings as warnings of Python."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ptx.diagnostics import Diagnostic, parse_log
from ptx.image import Image
from ptx.request import CompileRequest

__all__ = ["CompileWarning"]

_SHOWN: Final = 4
_PACKAGES: Final = ("ptx", "cudadrv")
"""Frames of these packages are not the caller's code."""
_MOST_WARNED: Final = 4096

_warned: Final[dict[int, None]] = {}
"""Hashes of sources with their warnings that were raised; cleared at `_MOST_WARNED`."""
_collectors: Final[dict[object, list[CompileWarning]]] = {}
"""Lists that all warnings are added to, each by a key of its block; changed in atomic steps."""


class CompileWarning(UserWarning):
    """NVRTC compiled a source and warned of it, such as of a comparison that is always true.

    Each process is warned once of the warnings of a source, whether NVRTC or the cache gave the
    image. `diagnostics` has every warning, `name` is what the source is called.
    """

    def __init__(
        self, message: str, *, name: str = "", diagnostics: Sequence[Diagnostic] = ()
    ) -> None:
        super().__init__(message)
        self.name = name
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


def warn_of(image: Image, request: CompileRequest) -> None:
    """Raise a `CompileWarning` in the caller's code for NVRTC's warnings about an image."""
    log = parse_log(image.log, name=request.name, source=request.source)
    found = tuple(each for each in log if each.severity == "warning")
    if not found:
        return
    warning = CompileWarning(_text(found), name=request.name, diagnostics=found)
    for collected in tuple(_collectors.values()):
        collected.append(warning)
    key = hash((request.source, tuple((each.line, each.message) for each in found)))
    if key in _warned:
        return
    warnings.warn(warning, stacklevel=_frames_to_caller())
    # After it: a filter that makes it an error does so every time.
    if len(_warned) >= _MOST_WARNED:
        _warned.clear()
    _warned[key] = None


@contextmanager
def collected() -> Iterator[list[CompileWarning]]:
    """Give a list of all warnings of this block in every thread, also of those seen before."""
    key, found = object(), list[CompileWarning]()
    _collectors[key] = found
    try:
        yield found
    finally:
        _collectors.pop(key, None)


def _text(found: Sequence[Diagnostic]) -> str:
    """The first warnings with their lines, and how to silence them."""
    texts = [each.pointer() for each in found[:_SHOWN]]
    if len(found) > _SHOWN:
        texts.append(f"and {len(found) - _SHOWN} more: see Image.log")
    codes = dict.fromkeys(each.code.partition("-")[0] for each in found if each.code)
    if codes:
        option = f"--diag-suppress={','.join(codes)}"
        texts.append(f"  correct the source, or compile it with extra=({option!r},)")
    return "\n".join(texts)


def _frames_to_caller() -> int:
    """The stack level, for whoever calls this, of the first frame outside of the packages."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None:
        name: object = frame.f_globals.get("__name__", "")
        if str(name).partition(".")[0] not in _PACKAGES:
            return level
        frame, level = frame.f_back, level + 1
    return level
