"""The key of an image: everything that it depends on, part by part, and the hash of that."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ptx.cache.folder import PrivateFolder
from ptx.cache.time_macros import time_macro
from ptx.cache.toolchain import Build, Folders, build_of, folders_of_headers
from ptx.options import CompileOptions, CompileRequest, UncacheableError

if TYPE_CHECKING:
    from ptx.cache.header_dependencies import Header, HeaderDependencies, Stamp

FORMAT = "6"
"""Raised when an entry's meaning changes, so that older entries are not found."""

_SIDE_EFFECTS = frozenset(
    ("pch", "create-pch", "use-pch", "pch-dir", "time", "fdevice-time-trace", "options-file")
)
_NS: Final = 1_000_000_000
_TICK_NS: Final = 20_000_000
"""More than two steps of the clock that Linux dates files by (at most 10 ms)."""


class Key(NamedTuple):
    """The hash that names an image, and the parts that it is made of.

    Attributes:
        digest: the hash of parts and headers.
        parts: everything that the image depends on, by name.
        headers: path and hash of each header file in reach.
        stamps: the stamps of these files as they were read; not part of the hash.
    """

    digest: str
    parts: Mapping[str, str]
    headers: tuple[tuple[str, str], ...] = ()
    stamps: tuple[Stamp, ...] = ()

    @property
    def folder(self) -> str:
        """The working folder, "" where the image does not depend on it."""
        return self.parts.get("working folder", "")

    def settle(self) -> bool:
        """Wait until a later change of a header must show in its stamp; False if that takes long.

        Two changes within one step of the file system's clock have one stamp.
        """
        changed = max((stamp[2] for stamp in self.stamps), default=0)
        tick = _TICK_NS if changed % _NS else 2 * _NS  # whole seconds: a clock of such steps
        left_ns = changed + tick - time.time_ns()
        if left_ns > _TICK_NS:
            return False
        time.sleep(max(0, left_ns) / _NS)
        return True

    def still_holds(self, later: Key) -> bool:
        """Return whether no header changed in between: one that came back has a new stamp.

        Limitation: a file that was added to an earlier include folder and removed again is not
        detected.
        """
        return later.digest == self.digest and later.stamps == self.stamps


class _KnownKey(NamedTuple):
    """The digest of a request that reads no file.

    Attributes:
        options: those that the caller gave.
        folder: the working folder, "" where the image does not depend on it.
        digest: of the key.
    """

    options: CompileOptions
    folder: str
    digest: str


_Texts: TypeAlias = tuple[object, ...]
_MOST_SOURCES: Final = 512
_MOST_CHARACTERS: Final = 1 << 18
_MOST_OPTIONS: Final = 8


class CompileKeys:
    """Makes the keys of requests, as the file system is at each call.

    NVRTC's build and CUDA's header folders are found once. Header files are checked for every key.
    The digests of requests that can include nothing are cached: of 512 sources with 8 options each,
    but of no source of more than 256 Ki characters.
    """

    def __init__(self, folder: PrivateFolder | None) -> None:
        self._known: dict[_Texts, tuple[_KnownKey, ...]] = {}
        self._folder = folder
        self._headers: HeaderDependencies | None = None
        self._nvrtc: Build | None = None
        self._folders: Folders | None = None

    def key(self, request: CompileRequest) -> Key:
        """Return the key of a request.

        Raises:
            UncacheableError: the dependencies of its image cannot be known, or the clock is one.
        """
        options = request.options
        for option in options.extra:
            if option.lstrip("-").partition("=")[0] in _SIDE_EFFECTS:
                raise UncacheableError(f"option {option} reads or writes files of its own")
        _require_timeless(request)
        folders: Folders = ()
        digests: list[tuple[str, str]] = []
        stamps: tuple[Stamp, ...] = ()
        try:
            if request.includes_anything():
                folders = self.folders(request)
                headers = self._headers_in_reach(request, folders)
                for path, header in headers.items():
                    _require_no_macro(f"header {path}", header.references.time_macro)
                digests = [(path, header.digest) for path, header in headers.items()]
                stamps = tuple(header.stamp for header in headers.values())
            parts = {
                "source": _sha(request.source),
                "name": request.name,
                "target": str(request.target),
                "options": repr(options.flags()),
                "include folders": repr(list(map(os.path.abspath, options.include_paths))),
                "name expressions": repr(sorted(request.name_expressions)),
                "headers in memory": repr([[name, _sha(text)] for name, text in request.headers]),
                "CUDA headers": repr(folders),
                "NVRTC": str(self.nvrtc()),
            }
            if options.lineinfo or options.debug:
                # Line tables name the folder that relative names start from.
                parts["working folder"] = os.getcwd()
        except FileNotFoundError as error:
            raise UncacheableError(f"the working folder was removed: {error}") from error
        return sealed_key(parts, digests, stamps)

    def known(
        self, source: str, options: CompileOptions, name: str, name_expressions: Sequence[str]
    ) -> str | None:
        """Return the digest of a request's key if it is cached, else None.

        It saves a hit in memory to check and hash all parts again: 50 µs.
        """
        texts = _texts(source, options, name, name_expressions)
        for known in () if texts is None else self._known.get(texts, ()):
            if known.options is options or known.options == options:
                is_there = not known.folder or known.folder == _working_folder()
                return known.digest if is_there else None
        return None

    def remember(self, request: CompileRequest, options: CompileOptions, key: Key) -> None:
        """Cache the digest of a request, unless its image depends on a file.

        Args:
            request: without headers in memory.
            options: those that the caller gave: the request's have the default target, too.
            key: of the request.
        """
        if request.includes_anything() or request.options.include_paths:
            return
        texts = _texts(request.source, options, request.name, request.name_expressions)
        if texts is None or len(request.source) > _MOST_CHARACTERS:
            return
        known = _KnownKey(options, key.folder, key.digest)
        others = [each for each in self._known.get(texts, ()) if each.options != options]
        if len(self._known) >= _MOST_SOURCES:
            self._known.clear()
        self._known[texts] = (known, *others[: _MOST_OPTIONS - 1])

    def nvrtc(self) -> Build:
        """Return the NVRTC of this process; it is not loaded where a note names it."""
        if self._nvrtc is None:
            self._nvrtc = build_of("nvrtc", self._folder)
        return self._nvrtc

    def folders(self, request: CompileRequest) -> Folders:
        """Return the folders of CUDA's headers for a request that includes something."""
        version = self.nvrtc().version
        if cuda_headers := request.options.cuda_headers:
            return _look(tuple(map(str, cuda_headers)), version, None)
        if self._folders is None or not all(os.path.isdir(path) for path, _ in self._folders):
            self._folders = folders_of_headers(version, self._folder, _look)
        return self._folders

    def _headers_in_reach(self, request: CompileRequest, folders: Folders) -> Mapping[str, Header]:
        if self._headers is None:
            # Saves 4 ms where sources include nothing.
            from ptx.cache.header_dependencies import HeaderDependencies

            memos = self._folder.below("memos") if self._folder else None
            self._headers = HeaderDependencies(memos)
        return self._headers.files(request, tuple(path for path, _ in folders))


def _texts(
    source: str, options: CompileOptions, name: str, name_expressions: Sequence[str]
) -> _Texts | None:
    """Return the texts of a request; None where an argument is of another type than most.

    The macros stand here, too, as a caller could change the mapping that its options hold.
    """
    if (
        source.__class__ is not str
        or name.__class__ is not str
        or options.__class__ is not CompileOptions
        or name_expressions.__class__ not in (tuple, list)
        or any(each.__class__ is not str for each in name_expressions)
    ):
        return None
    return source, name, tuple(name_expressions), options.extra, tuple(options.defines.items())


def _working_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""  # it was removed


def _require_timeless(request: CompileRequest) -> None:
    """Raise if a text of the request has a macro whose value changes with the clock."""
    definitions = "\n".join((*request.options.flags(), *request.name_expressions))
    texts = [("the source", request.source), ("an option or a name", definitions)]
    texts += [(f"header {name}", text) for name, text in request.headers]
    for place, text in texts:
        _require_no_macro(place, time_macro(text.encode("utf-8", "surrogatepass")))


def _require_no_macro(place: str, macro: str) -> None:
    if macro:
        raise UncacheableError(f"{place} has {macro}, whose value changes with the clock")


def _look(cuda_headers: tuple[str, ...], nvrtc: tuple[int, int], folder: Path | None) -> Folders:
    from ptx.headers import find_headers  # a hit reads them from a note in the folder

    headers = find_headers(cuda_headers, nvrtc, folder)
    return tuple((folder.path, folder.contents()) for folder in headers.folders)


def sealed_key(
    parts: Mapping[str, str],
    headers: Sequence[tuple[str, str]] = (),
    stamps: tuple[Stamp, ...] = (),
) -> Key:
    """Return the key of these parts."""
    content = repr((FORMAT, sorted(parts.items()), list(map(tuple, headers))))
    return Key(_sha(content), dict(parts), tuple(headers), stamps)


def differences(old: Key, new: Key) -> tuple[str, ...]:
    """Return which parts differ, in words; for a header its path and how it changed."""
    reasons = []
    for part in dict.fromkeys((*new.parts, *old.parts)):
        former, current = old.parts.get(part), new.parts.get(part)
        if former != current:
            is_plain = part in ("source", "headers in memory")
            reasons.append(part if is_plain else f"{part}: {former} became {current}")
    before, after = dict(old.headers), dict(new.headers)
    for path in dict.fromkeys((*after, *before)):
        if path not in before:
            reasons.append(f"header {path}: newly in reach")
        elif path not in after:
            reasons.append(f"header {path}: no longer in reach")
        elif before[path] != after[path]:
            reasons.append(f"header {path}: changed")
    return tuple(reasons)


def _sha(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
