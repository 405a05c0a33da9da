"""The header files in a request's reach, with a memo of them on disk from process to process."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import astuple

from ptx.cache.dependencies import closure_of
from ptx.cache.folder import sha256
from ptx.cache.header_memo import HeaderMemo
from ptx.cache.scan import scan
from ptx.cache.store import Store
from ptx.request import CompileRequest


class HeaderReach:
    """Finds header files; those that did not change since are not read again."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._memo = HeaderMemo()
        self._loaded: set[str] = set()

    def files(
        self, request: CompileRequest, folders: tuple[str, ...]
    ) -> tuple[tuple[str, str], ...]:
        """Path and content hash of every header in reach, sorted by path.

        Raises:
            UncacheableError: a computed name could mean too many files.
        """
        if self._store is None:
            return closure_of(request, folders, self._memo)
        name = _memo_name(request, folders)
        if name not in self._loaded:
            self._loaded.add(name)
            with contextlib.suppress(OSError):
                self._memo.add(self._store.memos.read(name) or b"")
        before = self._memo.read_count
        files = closure_of(request, folders, self._memo)
        if self._memo.read_count > before:
            with contextlib.suppress(OSError):  # the next process reads the headers again
                self._store.top.ensure()
                data = self._memo.to_bytes([path for path, _ in files])
                self._store.memos.write(name, data)
        return files


def _memo_name(request: CompileRequest, folders: tuple[str, ...]) -> str:
    """One memo for all sources that begin from the same includes in the same folders."""
    begins = [astuple(scan(request.source.encode()))]
    begins += [astuple(scan(text.encode())) for _, text in request.headers]
    home = os.path.dirname(os.path.abspath(request.name))
    own = [os.path.abspath(path) for path in request.options.include_paths]
    parts = json.dumps([begins, home, own, folders, request.options.extra])
    return sha256(parts.encode("utf-8", "surrogatepass")).hex()[:32] + ".memo"
