"""The line of CUDA that is told of an instruction: the reader's own, if there is one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ptx.isa.model import SourceLocation

_OF_CUDA: Final = re.compile(r"[/\\](?:nvidia|cuda[-.\w]*|targets)[/\\](?:.*[/\\])?include[/\\]")


def source_place(
    location: SourceLocation | None, files: Mapping[int, str]
) -> tuple[str | None, int | None]:
    """The file and the line of a location; None where nothing tells.

    Code that was inlined from a header of CUDA has the line that calls it: such as that of an
    atomic operation of libcu++, and not one of its headers.
    """
    each = location
    while each is not None:
        file = files.get(each.file)
        if file is not None and not _OF_CUDA.search(file):
            return file, each.line
        each = each.caller
    return (None, None) if location is None else (files.get(location.file), location.line)
