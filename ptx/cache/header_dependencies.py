"""Every header file that a source can reach, by content; found without NVRTC.

What they hold is remembered on disk from process to process.

NVRTC looks for a header, as tried on it: first among the headers given in memory, by their exact
name; a name in quotes then in the folder of the file that includes it (for the source, the folder
of its name); then in the include folders in order.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field
from hashlib import sha256
from itertools import chain

from ptx.cache.header_memo import Header, HeaderMemo
from ptx.cache.key import UncacheableError
from ptx.cache.scan import References, defined_otherwise, scan
from ptx.cache.store import Store
from ptx.request import CompileRequest

MAX_FILES = 20_000
MAX_BYTES = 256 * 1024 * 1024
"""More than this in reach, and the image is not cached: only a computed name does that."""

_PRE_INCLUDE = ("--pre-include", "-include")


class HeaderDependencies:
    """Finds header files; those that did not change since are not read again."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._memo = HeaderMemo()
        self._loaded: set[str] = set()

    def files(self, request: CompileRequest, folders: tuple[str, ...]) -> dict[str, Header]:
        """Every header in reach by its path, sorted by path.

        Raises:
            UncacheableError: a computed name could mean too many files.
            FileNotFoundError: the working folder, which relative names begin from, was removed.
        """
        if self._store is None:
            return header_dependencies(request, folders, self._memo)
        name = _memo_name(request, folders)
        if name not in self._loaded:
            self._loaded.add(name)
            with contextlib.suppress(OSError):
                self._memo.add(self._store.memos.read(name) or b"")
        before = self._memo.read_count
        files = header_dependencies(request, folders, self._memo)
        if self._memo.read_count > before:
            with contextlib.suppress(OSError):  # the next process reads the headers again
                self._store.memos.write(name, self._memo.to_bytes(list(files)))
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
    return dict(sorted(walk.found.items()))


def pre_included(extra: Iterable[str]) -> tuple[str, ...]:
    """The headers that further options include ahead of the source."""
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
    found: dict[str, Header] = field(default_factory=dict)
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
        own = (os.path.abspath(path) for path in request.options.include_paths)
        self._paths = (*own, *self.folders)
        self._in_memory = frozenset(name for name, _ in request.headers)
        home = os.path.dirname(os.path.abspath(request.name))
        self._take(scan(request.source.encode()), home)
        for name, text in request.headers:
            references = scan(text.encode())
            self._take(references, home)
            # NVRTC does not look beside a header in memory; another version of it might.
            self._take(references, os.path.dirname(os.path.join(home, name)))
        for name in pre_included(request.options.extra):
            self._quoted(name, home)
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
        if path in self.found:
            return True
        if ".." in path:
            # The same file by ever longer names would never end.
            folder, name = os.path.split(path)
            path = os.path.join(os.path.realpath(folder), name)
            if path in self.found:
                return True
        header = self.memo.header(path)
        if header is None:
            return False
        if len(self.found) >= MAX_FILES:
            raise UncacheableError(f"more than {MAX_FILES} header files are in reach")
        self.found[path] = header
        self._waiting.append((path, header.references))
        return True

    def _resolve_computed(self) -> bool:
        """Follow the names that macros stand for; True when that reached anything new."""
        before = len(self.found)
        for macro in self._built_macros():
            for folder in self._computed[macro]:
                self._whole_folders(folder)
        defined = self.request.options.defines
        for macro, folders in self._computed.items():
            given = {str(defined[macro])} if macro in defined else set()
            for header in self._definitions.get(macro, set()) | given:
                for folder in folders:
                    self._quoted(header.strip('<>"'), folder)
        return len(self.found) > before

    def _built_macros(self) -> set[str]:
        """The macros in a name's place that somewhere are more than one header's name."""
        if not self._computed or self._took_paths_whole:
            # Whatever they stand for in the include folders is in reach already.
            return set(self._computed) if self._took_paths_whole else set()
        defined = self.request.options.defines
        given = {m for m in self._computed if m in defined and str(defined[m])[:1] not in '<"'}
        own = (self.request.source, *(text for _, text in self.request.headers))
        texts = chain((text.encode() for text in own), map(_content, list(self.found)))
        macros = frozenset(self._computed)
        return given.union(*(defined_otherwise(text, macros) for text in texts))

    def _whole_folders(self, own: str) -> None:
        """Everything that a name could mean which is put together by the preprocessor."""
        for folder in (*self._paths, own):
            if any(folder == done or folder.startswith(done + os.sep) for done in self._whole):
                continue
            self._whole.add(folder)
            for path in _files_below(folder, MAX_FILES - len(self.found)):
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
    found: list[str] = []
    nbytes = 0
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):
                nbytes += os.stat(path).st_size
            found.append(path)
        if len(found) > most or nbytes > MAX_BYTES:
            raise UncacheableError(f"a computed include could mean any file in {folder}")
    return found


def _memo_name(request: CompileRequest, folders: tuple[str, ...]) -> str:
    """One memo for all sources that begin from the same includes in the same folders."""
    begins = [astuple(scan(request.source.encode()))]
    begins += [astuple(scan(text.encode())) for _, text in request.headers]
    home = os.path.dirname(os.path.abspath(request.name))
    own = [os.path.abspath(path) for path in request.options.include_paths]
    parts = json.dumps([begins, home, own, folders, request.options.extra])
    return sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32] + ".memo"
