"""What a compilation depends on beside its request: the NVRTC, the header folders and files."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ptx.cache.key import Key, UncacheableError, key_of
from ptx.cache.store import Store
from ptx.cache.toolchain import Build, Folders, LookForHeaders, build_of, folders_of_headers
from ptx.request import CompileRequest

if TYPE_CHECKING:
    from ptx.cache.header_dependencies import HeaderDependencies, Stamp

_NS: Final = 1_000_000_000
_TICK_NS: Final = 20_000_000
"""More than two steps of the clock that Linux dates files by (at most 10 ms)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A request's key, and the stamps of the headers in reach from when it was made."""

    key: Key
    stamps: tuple[Stamp, ...] = ()

    def settle(self) -> bool:
        """Wait until a later change of a header must show in its stamp; False if that takes long.

        Two changes within one step of the file system's clock have one stamp.
        """
        changed = max((stamp[2] for stamp in self.stamps), default=0)
        tick = _TICK_NS if changed % _NS else 2 * _NS  # whole seconds: a clock of such steps
        left = changed + tick - time.time_ns()
        if left > _TICK_NS:
            return False
        time.sleep(max(0, left) / _NS)
        return True

    def still_holds(self, later: Snapshot) -> bool:
        """Whether no header in reach was another in between: one that came back has a new stamp.

        Not seen: a file that came to an earlier include folder in between, and went again.
        """
        return later.key.digest == self.key.digest and later.stamps == self.stamps


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

    def snapshot(self, request: CompileRequest) -> Snapshot:
        """The key of a request, as the file system is now.

        Raises:
            UncacheableError: what the image depends on cannot be told.
        """
        try:
            return self._snapshot(request)
        except FileNotFoundError as error:
            raise UncacheableError(f"the working folder was removed: {error}") from error

    def _snapshot(self, request: CompileRequest) -> Snapshot:
        if not request.includes_anything():
            return Snapshot(key_of(request, self.nvrtc(), ()))
        if self._headers is None:
            # Saves 4 ms where sources include nothing.
            from ptx.cache.header_dependencies import HeaderDependencies

            self._headers = HeaderDependencies(self._store)
        folders = self.folders(request)
        headers = self._headers.files(request, tuple(path for path, _ in folders))
        digests = [(path, header.digest) for path, header in headers.items()]
        stamps = tuple(header.stamp for header in headers.values())
        return Snapshot(key_of(request, self.nvrtc(), digests, folders), stamps)

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
