"""The key of a request, with what is remembered of headers and libraries from one to the next."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import astuple

from ptx.cache.closure import Closure, closure_of
from ptx.cache.header_memo import HeaderMemo
from ptx.cache.key import Key, key_of
from ptx.cache.scan import scan
from ptx.cache.store import Store
from ptx.cache.toolchain import Build, Library, build_of, folders_of_headers
from ptx.headers import includes_anything
from ptx.request import CompileRequest


class Reach:
    """What requests reach: the NVRTC, the header folders, the header files.

    Kept for the process: NVRTC's build and CUDA's header folders, which are looked for once. Header
    files are looked at for every key.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._memo = HeaderMemo()
        self._loaded: set[str] = set()
        self._nvrtc: Build | None = None
        self._folders: tuple[str, ...] | None = None

    def key(self, request: CompileRequest) -> Key:
        """The key of a request, as the file system is now.

        Raises:
            UncacheableError: what the image depends on cannot be told.
        """
        if self._nvrtc is None:
            self._nvrtc = build_of(Library.NVRTC, self._store.top if self._store else None)
        closure = self._closure(request) if includes_anything(request) else Closure()
        return key_of(request, self._nvrtc, closure.files)

    def folders(self, request: CompileRequest) -> tuple[str, ...]:
        """The folders of CUDA's headers, none for a request that includes nothing."""
        if not includes_anything(request):
            return ()
        if self._folders is None:
            self._folders = folders_of_headers(self._store.top if self._store else None)
        return self._folders

    def _closure(self, request: CompileRequest) -> Closure:
        folders = self.folders(request)
        if self._store is None:
            return closure_of(request, folders, self._memo)
        name = _memo_name(request, folders)
        if name not in self._loaded:
            self._loaded.add(name)
            with contextlib.suppress(OSError):
                self._memo.add(self._store.memos.read(name) or b"")
        before = self._memo.read_count
        closure = closure_of(request, folders, self._memo)
        if self._memo.read_count > before:
            with contextlib.suppress(OSError):  # the next process reads the headers again
                self._store.top.ensure()
                data = self._memo.to_bytes([path for path, _ in closure.files])
                self._store.memos.write(name, data)
        return closure


def _memo_name(request: CompileRequest, folders: tuple[str, ...]) -> str:
    """One memo for all sources that begin from the same includes in the same folders."""
    begins = [astuple(scan(request.source.encode()))]
    begins += [astuple(scan(text.encode())) for _, text in request.headers]
    home = os.path.dirname(os.path.abspath(request.name))
    own = [os.path.abspath(path) for path in request.options.include_paths]
    parts = json.dumps([begins, home, own, folders, request.options.extra])
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32] + ".memo"
