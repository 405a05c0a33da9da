"""What a compilation depends on beside its request: the NVRTC, the header folders and files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ptx.cache.key import Key, key_of
from ptx.cache.store import Store
from ptx.cache.toolchain import Build, Folders, LookForHeaders, build_of, folders_of_headers
from ptx.request import CompileRequest

if TYPE_CHECKING:
    from ptx.cache.header_dependencies import HeaderDependencies


class Dependencies:
    """What requests depend on, in this process and on this machine.

    Kept for the process: NVRTC's build and CUDA's header folders, which are looked for once. Header
    files are looked at for every key.
    """

    def __init__(self, store: Store | None, look: LookForHeaders) -> None:
        self._store = store
        self._top = store.top if store else None
        self._look = look
        self._headers: HeaderDependencies | None = None
        self._nvrtc: Build | None = None
        self._folders: Folders | None = None

    def key(self, request: CompileRequest) -> Key:
        """The key of a request, as the file system is now.

        Raises:
            UncacheableError: what the image depends on cannot be told.
        """
        if not request.includes_anything():
            return key_of(request, self.nvrtc(), ())
        if self._headers is None:
            # Saves 4 ms where sources include nothing.
            from ptx.cache.header_dependencies import HeaderDependencies

            self._headers = HeaderDependencies(self._store)
        folders = self.folders(request)
        headers = self._headers.files(request, tuple(path for path, _ in folders))
        return key_of(request, self.nvrtc(), headers, folders)

    def nvrtc(self) -> Build:
        """The NVRTC of this process, which is not loaded for it where that is known already."""
        if self._nvrtc is None:
            self._nvrtc = build_of("nvrtc", self._top)
        return self._nvrtc

    def folders(self, request: CompileRequest) -> Folders:
        """The folders of CUDA's headers, none for a request that includes nothing."""
        if not request.includes_anything():
            return ()
        version = self.nvrtc().version
        if named := request.options.cuda_headers:
            return self._look(tuple(map(str, named)), version, None)
        if self._folders is None or not all(os.path.isdir(path) for path, _ in self._folders):
            self._folders = folders_of_headers(version, self._top, self._look)
        return self._folders
