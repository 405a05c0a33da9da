"""What an image depends on, part by part, and the hash that names it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256

from ptx.cache.toolchain import Build, Folders
from ptx.options import CompileOptions
from ptx.request import CompileRequest

FORMAT = "4"
"""Raised when an entry's meaning changes, so that older entries are not found."""

_SIDE_EFFECTS = frozenset(
    ("pch", "create-pch", "use-pch", "pch-dir", "time", "fdevice-time-trace", "options-file")
)


class UncacheableError(Exception):
    """What an image depends on cannot be told; the text says why. Never leaves the cache."""


class Key:
    """The parts of a key by name, the header files in reach, and the digest of it all."""

    __slots__ = ("digest", "headers", "parts")

    def __init__(
        self, digest: str, parts: Mapping[str, str], headers: tuple[tuple[str, str], ...]
    ) -> None:
        self.digest: str = digest
        self.parts: Mapping[str, str] = parts
        self.headers: tuple[tuple[str, str], ...] = headers


def key_of(
    request: CompileRequest,
    nvrtc: Build,
    headers: Sequence[tuple[str, str]],
    folders: Folders = (),
) -> Key:
    """The key of a compilation; `headers` are path and hash of every file in reach.

    Raises:
        FileNotFoundError: the working folder, which relative names begin from, was removed.
    """
    options = request.options
    parts = {
        "source": _sha(request.source),
        "name": request.name,
        "target": str(request.target),
        "options": repr(options.flags()),
        "include folders": repr([os.path.abspath(path) for path in options.include_paths]),
        "name expressions": repr(sorted(request.name_expressions)),
        "headers in memory": repr([[name, _sha(text)] for name, text in request.headers]),
        "CUDA headers": repr(folders),
        "NVRTC": str(nvrtc),
    }
    if options.lineinfo or options.debug:
        # Line tables name the folder that relative names start from.
        parts["working folder"] = os.getcwd()
    return sealed_key(parts, headers)


def refuse_side_effects(options: CompileOptions) -> None:
    """Keep away from the cache what writes or reads files that no key can know.

    Raises:
        UncacheableError: a further option asks for such.
    """
    for option in options.extra:
        name = option.lstrip("-").partition("=")[0]
        if name in _SIDE_EFFECTS:
            raise UncacheableError(f"option {option} reads or writes files of its own")


def sealed_key(parts: Mapping[str, str], headers: Sequence[tuple[str, str]] = ()) -> Key:
    """The key of these parts."""
    whole = repr((FORMAT, sorted(parts.items()), [tuple(header) for header in headers]))
    return Key(_sha(whole), dict(parts), tuple(headers))


def differences(old: Key, new: Key) -> tuple[str, ...]:
    """Which parts differ, in words; for a header its path and what became of it."""
    found = []
    for part in dict.fromkeys((*new.parts, *old.parts)):
        was, now = old.parts.get(part), new.parts.get(part)
        if was != now:
            shown = part in ("source", "headers in memory")
            found.append(part if shown else f"{part}: {was} became {now}")
    before, after = dict(old.headers), dict(new.headers)
    for path in dict.fromkeys((*after, *before)):
        if path not in before:
            found.append(f"header {path}: newly in reach")
        elif path not in after:
            found.append(f"header {path}: no longer in reach")
        elif before[path] != after[path]:
            found.append(f"header {path}: changed")
    return tuple(found)


def _sha(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
