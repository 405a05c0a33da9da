"""`SourceText`: the lines of source that the line information of an image names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from ptx.cache.header_dependencies import HeaderMemo, header_dependencies, read_regular
from ptx.cache.key import CompileKeys
from ptx.options import CompileRequest, UncacheableError


class SourceText:
    """The text of a source and of the headers that its compilation reads.

    Line information can come from other people, and can name any file. So a name alone opens none:
    the text of all other files is unknown.

    Args:
        name: the name of the source; a file of this name in another folder is the same.
        text: the source; None if it is unknown.
        request: the compilation, whose headers may be read; None for no headers.
    """

    def __init__(
        self, name: str, text: str | None = None, request: CompileRequest | None = None
    ) -> None:
        self._name = PurePath(name).name
        self._texts: dict[str, Sequence[str]] = {}
        if text is not None:
            self._texts[self._name] = text.split("\n")
        self._request = request
        self._headers: Mapping[str, str] | None = None

    @classmethod
    def of(cls, request: CompileRequest) -> SourceText:
        """Return the text of a compilation."""
        return cls(request.name, request.source, request)

    def line(self, file: str | None, number: int | None) -> str:
        """Return a line, from 1, without the spaces around it; "" if it is unknown."""
        if file is None or number is None:
            return ""
        lines = self._lines(file)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def _lines(self, file: str) -> Sequence[str]:
        key = self._name if PurePath(file).name == self._name else file
        lines = self._texts.get(key)
        if lines is None:
            lines = self._texts[key] = () if key == self._name else self._header(file).split("\n")
        return lines

    def _header(self, file: str) -> str:
        """Return the text of a header of the compilation; "" of any other file."""
        if self._request is None:
            return ""
        given = dict(self._request.headers)
        if file in given:
            return given[file]
        if self._headers is None:
            self._headers = _files_in_reach(self._request)
        try:
            path = self._headers.get(os.path.realpath(file))
        except ValueError:  # a null character, which no path has
            return ""
        read = None if path is None else read_regular(path)
        return "" if read is None else read[1].decode("utf-8", "replace")


def _files_in_reach(request: CompileRequest) -> Mapping[str, str]:
    """Return the paths of the headers that a compilation can read, by their real paths."""
    try:
        folders = tuple(path for path, _ in CompileKeys(None).folders(request))
        headers = header_dependencies(request, folders, HeaderMemo())
    except (OSError, UncacheableError):
        return {}
    return {os.path.realpath(path): path for path in headers}
