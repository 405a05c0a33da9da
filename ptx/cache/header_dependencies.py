"""Every header file that a source can reach, by content; found without NVRTC.

NVRTC, by experiment, looks for a header in this order:

- Among the headers given in memory, by their exact name.
- For a name in quotes, in the folder of the file that includes it (for the source, the folder of
  its name).
- In the include folders in order.

The result is a superset, for all values of a text's conditionals. A directive in a comment or a raw
string is harmless; a missed one would give a stale image.

The text is not preprocessed. It is searched for everything that NVRTC's front end accepts as a
directive: after comments, with digraph, trigraph and spliced lines (all found by experiment).
Splicing depends on the standard and on blanks after the backslash, so a text with splices is
searched both ways.

Memos in memory and on disk hold the references of each file, by path, size and time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field
from hashlib import sha256
from itertools import chain
from typing import Any, TypeAlias

from ptx.cache.folder import UNREADABLE, PrivateFolder, seal, unseal
from ptx.cache.time_macros import time_macro
from ptx.options import CompileRequest, UncacheableError

_SPLICES = tuple(
    re.compile(splice) for splice in (rb"\\\r?\n", rb"(?:\\|\?\?/)\r?\n", rb"\\[ \t\v\f]*\r?\n")
)
_MARK_OF_UTF8 = b"\xef\xbb\xbf"
_FROM_COMPILER = (b"__FILE__", b"__BASE_FILE__", b"__FILE_NAME__")
# Atomic: a comment ends at its first */, and going back to look for another takes quadratic time.
_BLANK = rb"(?>[ \t\v\f]|/\*.*?\*/)*+"
# The tail is a lookahead, so that a seeming comment in it hides no directive.
_DIRECTIVE = re.compile(
    rb"(?:#|%:|\?\?=)(?=" + (_BLANK + rb"(include_next|include|embed)\b" + _BLANK + rb"([^\n]*))"),
    re.DOTALL,
)
_HEADER_NAME = re.compile(rb'<([^>\n]+)>|"([^"\n]+)"')
_OBJECT_MACRO = re.compile(rb"([A-Za-z_]\w*)[ \t]*(?:\r?$|//|/\*)")
_HAS = re.compile(rb"has_(?:include|embed)\w*" + _BLANK + rb"\(" + _BLANK + rb"([^\n]*)", re.DOTALL)
_IN_PARENTHESES = re.compile(
    rb"\(" + _BLANK + rb'(?:<([\w./+\-]+)>|"([\w./+\-]+)")' + _BLANK + rb"\)", re.DOTALL
)
_ONE_HEADER = re.compile(rb'[ \t]+(?:<[^>]+>|"[^"]+")[ \t]*\r?(?://|/\*|$)')
_DEFINITION = re.compile(
    rb"define" + _BLANK + rb'([A-Za-z_]\w*)[ \t]+(<[^>\n]+>|"[^"\n]+")[ \t]*\r?(?:\n|//|/\*|$)',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class References:
    """The headers that one text refers to.

    `quoted`, `angled` and `following` are the names in `#include "…"`, `<…>` and `#include_next`.
    `computed` are macros in the place of a name. `time_macro` is one whose value changes with the
    clock, "" without one. `opaque` is True if some name there is composed in
    a way that is not followed. `definitions` are (macro, header in its quotes or brackets) pairs,
    which a computed name may stand for.
    """

    quoted: tuple[str, ...] = ()
    angled: tuple[str, ...] = ()
    following: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()
    opaque: bool = False
    time_macro: str = ""


def scan(text: bytes) -> References:
    """The references of a header or a source."""
    references = _Found()
    for reading in _readings(text):
        for match in _DIRECTIVE.finditer(reading):
            if _begins_line(reading, match.start()):
                references.directive(match[1], match[2])
        for match in _HAS.finditer(reading):
            references.question(match[1])
        # HAVE(<x.h>), where HAVE wraps __has_include in another file.
        for match in _IN_PARENTHESES.finditer(reading):
            references.header(match)
        for match in _DEFINITION.finditer(reading):
            references.definitions[match[1].decode(), os.fsdecode(match[2])] = None
    return references.references(time_macro(text))


def _readings(text: bytes) -> Iterable[bytes]:
    """Return the text, and the text with its spliced lines joined."""
    return dict.fromkeys((text, *(splice.sub(b"", text) for splice in _SPLICES)))


@dataclass(slots=True)
class _Found:
    """References while they are collected, each once and in the order of the text."""

    quoted: dict[str, None] = field(default_factory=dict)
    angled: dict[str, None] = field(default_factory=dict)
    following: dict[str, None] = field(default_factory=dict)
    computed: dict[str, None] = field(default_factory=dict)
    definitions: dict[tuple[str, str], None] = field(default_factory=dict)
    opaque: bool = False

    def directive(self, kind: bytes, operand: bytes) -> None:
        if name := _HEADER_NAME.match(operand):
            if kind == b"include_next":
                self.following[os.fsdecode(name[1] or name[2])] = None
            else:
                self.header(name)
        elif macro := _OBJECT_MACRO.match(operand):
            self.macro(macro[1])
        elif operand.strip():
            self.opaque = True

    def question(self, operand: bytes) -> None:
        if name := _HEADER_NAME.match(operand):
            self.header(name)
        elif macro := re.match(rb"([A-Za-z_]\w*)\s*\)", operand):
            self.macro(macro[1])
        elif re.match(rb"[A-Za-z_]\w*\s*\(", operand):
            self.opaque = True

    def header(self, name: re.Match[bytes]) -> None:
        (self.angled if name[1] else self.quoted)[os.fsdecode(name[1] or name[2])] = None

    def macro(self, name: bytes) -> None:
        if name in _FROM_COMPILER:
            self.opaque = True
        else:
            self.computed[name.decode()] = None

    def references(self, time_macro: str) -> References:
        return References(
            tuple(self.quoted),
            tuple(self.angled),
            tuple(self.following),
            tuple(self.computed),
            tuple(self.definitions),
            self.opaque,
            time_macro,
        )


def defined_otherwise(text: bytes, macros: frozenset[str]) -> set[str]:
    """Return the macros that a text defines as something else than one header's name."""
    names = b"|".join(re.escape(macro.encode()) for macro in sorted(macros))
    pattern = rb"define" + _BLANK + rb"(" + names + rb")(?!\w)([^\n]*)"
    return {
        match[1].decode()
        for reading in _readings(text)
        for match in re.finditer(pattern, reading, re.DOTALL)
        if not _ONE_HEADER.match(match[2])
    }


def _begins_line(text: bytes, at: int) -> bool:
    """Return whether only blanks and comments precede this place of its line."""
    before = text[text.rfind(b"\n", 0, at) + 1 : at].removeprefix(_MARK_OF_UTF8)
    return not before[before.rfind(b"*/") + 2 if b"*/" in before else 0 :].strip()


RACY_NS = 2_000_000_000
"""A file changed less than this before it was read may change again under the same time stamp
(a file system's clock can be that coarse): it is used but not cached."""

Stamp: TypeAlias = tuple[int, int, int, int]
"""A file's size, times of its content and of its entry in the file system, and its number."""


@dataclass(frozen=True, slots=True)
class Header:
    """One header file: the time it was read, the hash of its bytes, and its references."""

    stamp: Stamp
    digest: str
    references: References


class HeaderMemo:
    """Headers by path. Bound: as many as sources reach, a few hundred bytes each.

    A lookup costs one `stat`. Threads may share it: a race reads a file twice at worst.
    """

    def __init__(self) -> None:
        self._headers: dict[str, Header] = {}
        self.read_count: int = 0

    def header(self, path: str) -> Header | None:
        """Return the header that a file holds now, or None where none can be read."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        memoised = self._headers.get(path)
        if memoised is not None and memoised.stamp == _stamp(status):
            return memoised
        if not stat.S_ISREG(status.st_mode):
            return None
        now = time.time_ns()
        read = read_regular(path)
        if read is None:
            return None
        stamp, content = read
        self.read_count += 1
        header = Header(stamp, sha256(content).hexdigest(), scan(content))
        if max(stamp[1:3]) + RACY_NS < now:
            self._headers[path] = header
        else:
            self._headers.pop(path, None)
        return header

    def to_bytes(self, paths: list[str]) -> bytes:
        """Return the memo of these files, to be stored on disk."""
        headers = self._headers.copy()  # another thread may drop one
        selected = {path: headers[path] for path in paths if path in headers}
        return seal(
            json.dumps(
                {p: [h.stamp, h.digest, astuple(h.references)] for p, h in selected.items()},
                separators=(",", ":"),
            ).encode("utf-8", "surrogatepass")
        )

    def add(self, data: bytes) -> None:
        """Add the memo of another process; damaged bytes add nothing."""
        content = unseal(data)
        if content is None:
            return
        try:
            headers = {path: _header(*value) for path, value in json.loads(content).items()}
        except UNREADABLE:
            return  # written by another version of this package
        for path, header in headers.items():
            self._headers.setdefault(path, header)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def read_regular(path: str) -> tuple[Stamp, bytes] | None:
    """A regular file's bytes, and its stamp from before they were read; None of anything else."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            return (_stamp(status), file.read()) if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting: a FIFO may stand there at any time."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


# Any: JSON as `to_bytes` writes it; another shape fails in here.
def _header(stamp: Any, digest: Any, references: Any) -> Header:
    quoted, angled, following, computed, definitions, opaque, time_macro = references
    size, changed, moved, inode = stamp
    return Header(
        (size, changed, moved, inode),
        digest,
        References(
            tuple(quoted),
            tuple(angled),
            tuple(following),
            tuple(computed),
            tuple((macro, header) for macro, header in definitions),
            opaque,
            str(time_macro),
        ),
    )


MAX_FILES = 20_000
MAX_BYTES = 256 * 1024 * 1024
"""More than this in reach, and the image is not cached: only a computed name does that."""

_PRE_INCLUDE = ("--pre-include", "-include")


class HeaderDependencies:
    """Finds header files; those that did not change since are not read again."""

    def __init__(self, memos: PrivateFolder | None) -> None:
        self._memos = memos
        self._memo = HeaderMemo()
        self._loaded: set[str] = set()

    def files(self, request: CompileRequest, folders: tuple[str, ...]) -> dict[str, Header]:
        """Every header in reach by its path, sorted by path.

        Raises:
            UncacheableError: a computed name could mean too many files.
            FileNotFoundError: the working folder, which relative names begin from, was removed.
        """
        if self._memos is None:
            return header_dependencies(request, folders, self._memo)
        name = _memo_name(request, folders)
        if name not in self._loaded:
            self._loaded.add(name)
            with contextlib.suppress(OSError):
                self._memo.add(self._memos.read(name) or b"")
        before = self._memo.read_count
        files = header_dependencies(request, folders, self._memo)
        if self._memo.read_count > before:
            with contextlib.suppress(OSError):  # the next process reads the headers again
                self._memos.write(name, self._memo.to_bytes(list(files)))
        return files


def header_dependencies(
    request: CompileRequest, folders: Iterable[str], memo: HeaderMemo
) -> dict[str, Header]:
    """Every header in reach of a request by its path, sorted by path.

    Includes are followed through the request's own folders and then `folders`.

    Raises:
        UncacheableError: there are too many files that a computed name could mean.
    """
    walk = _Walk(request, tuple(folders), memo)
    walk.run()
    return dict(sorted(walk.headers.items()))


def pre_included(extra: Iterable[str]) -> tuple[str, ...]:
    """The headers that further options include before the source."""
    names = []
    expect_value = False
    for option in extra:
        key, equals, value = option.partition("=")
        if expect_value:
            names.append(option)
            expect_value = False
        elif key in _PRE_INCLUDE:
            expect_value = not equals
            if equals:
                names.append(value)
    return tuple(names)


@dataclass(slots=True)
class _Walk:
    request: CompileRequest
    folders: tuple[str, ...]
    memo: HeaderMemo
    headers: dict[str, Header] = field(default_factory=dict)
    _waiting: list[tuple[str, References]] = field(default_factory=list)
    _angled: set[str] = field(default_factory=set)
    _definitions: dict[str, set[str]] = field(default_factory=dict)
    _computed: dict[str, set[str]] = field(default_factory=dict)
    _whole: set[str] = field(default_factory=set)
    _took_paths_whole: bool = False
    _paths: tuple[str, ...] = ()
    _in_memory: frozenset[str] = frozenset()

    def run(self) -> None:
        request = self.request
        include_paths = (os.path.abspath(path) for path in request.options.include_paths)
        self._paths = (*include_paths, *self.folders)
        self._in_memory = frozenset(name for name, _ in request.headers)
        source_folder = os.path.dirname(os.path.abspath(request.name))
        self._take(scan(request.source.encode()), source_folder)
        for name, text in request.headers:
            references = scan(text.encode())
            self._take(references, source_folder)
            # NVRTC does not look beside a header in memory; another version of it might.
            self._take(references, os.path.dirname(os.path.join(source_folder, name)))
        for name in pre_included(request.options.extra):
            self._quoted(name, source_folder)
        self._drain()
        while self._resolve_computed():
            self._drain()

    def _drain(self) -> None:
        while self._waiting:
            path, references = self._waiting.pop()
            self._take(references, os.path.dirname(path))

    def _take(self, references: References, folder: str) -> None:
        for name in references.quoted:
            self._quoted(name, folder)
        for name in references.angled:
            if name not in self._angled and name not in self._in_memory:
                self._angled.add(name)
                self._first(self._candidates(name))
        for name in references.following:
            for path in self._candidates(name):
                self._reach(path)
        for macro, header in references.definitions:
            self._definitions.setdefault(macro, set()).add(header)
        for macro in references.computed:
            self._computed.setdefault(macro, set()).add(folder)
        if references.opaque:
            self._whole_folders(folder)

    def _quoted(self, name: str, folder: str) -> None:
        if name not in self._in_memory:
            self._first((os.path.join(folder, name), *self._candidates(name)))

    def _candidates(self, name: str) -> Iterator[str]:
        for folder in self._paths:
            yield os.path.join(folder, name)

    def _first(self, candidates: Iterable[str]) -> None:
        for path in candidates:
            if self._reach(path):
                return

    def _reach(self, path: str) -> bool:
        """Put a file into the dependencies, if it is one that can be read."""
        if path in self.headers:
            return True
        if ".." in path:
            # The same file by ever longer names would never end.
            folder, name = os.path.split(path)
            path = os.path.join(os.path.realpath(folder), name)
            if path in self.headers:
                return True
        header = self.memo.header(path)
        if header is None:
            return False
        if len(self.headers) >= MAX_FILES:
            raise UncacheableError(f"more than {MAX_FILES} header files are in reach")
        self.headers[path] = header
        self._waiting.append((path, header.references))
        return True

    def _resolve_computed(self) -> bool:
        """Follow the names that macros stand for; True when that reached anything new."""
        before = len(self.headers)
        for macro in self._built_macros():
            for folder in self._computed[macro]:
                self._whole_folders(folder)
        defined = self.request.options.defines
        for macro, folders in self._computed.items():
            replacements = {str(defined[macro])} if macro in defined else set()
            for header in self._definitions.get(macro, set()) | replacements:
                for folder in folders:
                    self._quoted(header.strip('<>"'), folder)
        return len(self.headers) > before

    def _built_macros(self) -> set[str]:
        """The macros in a name's place that somewhere are more than one header's name."""
        if not self._computed or self._took_paths_whole:
            # All headers that they can name in the include folders are included already.
            return set(self._computed) if self._took_paths_whole else set()
        defined = self.request.options.defines
        replaced = {m for m in self._computed if m in defined and str(defined[m])[:1] not in '<"'}
        sources = (self.request.source, *(text for _, text in self.request.headers))
        texts = chain((text.encode() for text in sources), map(_content, list(self.headers)))
        macros = frozenset(self._computed)
        return replaced.union(*(defined_otherwise(text, macros) for text in texts))

    def _whole_folders(self, folder_of_includer: str) -> None:
        """Everything that a name could mean which is put together by the preprocessor."""
        for folder in (*self._paths, folder_of_includer):
            if any(
                folder == whole_folder or folder.startswith(whole_folder + os.sep)
                for whole_folder in self._whole
            ):
                continue
            self._whole.add(folder)
            for path in _files_below(folder, MAX_FILES - len(self.headers)):
                self._reach(path)
        self._took_paths_whole = True


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _files_below(folder: str, most: int) -> list[str]:
    """Every file in a folder and the folders in it; counted and weighed before any is read."""
    paths: list[str] = []
    nbytes = 0
    for folder_path, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(folder_path, name)
            with contextlib.suppress(OSError):
                nbytes += os.stat(path).st_size
            paths.append(path)
        if len(paths) > most or nbytes > MAX_BYTES:
            raise UncacheableError(f"a computed include could mean any file in {folder}")
    return paths


def _memo_name(request: CompileRequest, folders: tuple[str, ...]) -> str:
    """One memo for all sources that begin from the same includes in the same folders."""
    begins = [astuple(scan(request.source.encode()))]
    begins += [astuple(scan(text.encode())) for _, text in request.headers]
    source_folder = os.path.dirname(os.path.abspath(request.name))
    include_paths = [os.path.abspath(path) for path in request.options.include_paths]
    parts = json.dumps([begins, source_folder, include_paths, folders, request.options.extra])
    return sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32] + ".memo"
