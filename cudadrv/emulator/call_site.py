"""The position in the user's code of a driver call."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ptx.shown_path import shown_path

if TYPE_CHECKING:
    from ptx.emulate.check.findings import Place

PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_DEEPEST = 40
# Files whose frames are not the user's: this package, generated code, and `with` blocks of
# generators.
_NOT_USERS = (PACKAGE, "<", contextlib.__file__)


def user_call_site() -> str:
    """Return the file and line of the innermost frame outside this package, or ""."""
    frame = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
        if not frame.f_code.co_filename.startswith(_NOT_USERS):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return ""


def shown_call_site(call_site: str) -> str:
    """Return a result of `user_call_site` as messages show it."""
    return shown_path(call_site) or "an unknown place"


def host_place(access: str, call_site: str) -> Place:
    """Return the place for a result of `user_call_site`; other text is the name of a file."""
    from ptx.emulate.check.findings import Place

    file, _, line = call_site.rpartition(":")
    try:
        return Place(access, file or None, int(line))
    except ValueError:
        return Place(access, call_site or None, None)
