"""Compiled images kept in memory and on disk, so that a source is compiled once."""

from __future__ import annotations

import functools
import os
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptx.cache.dependencies import Dependencies
from ptx.cache.entry import decode, decode_key, encode
from ptx.cache.folder import (
    DEFAULT_MAX_BYTES,
    folder_from_environment,
    max_bytes_from_environment,
)
from ptx.cache.key import (
    Key,
    UncacheableError,
    differences,
    link_key,
    refuse_side_effects,
)
from ptx.cache.memory import MemoryImages
from ptx.cache.statistics import Counter, add_counts, sum_of_file
from ptx.cache.store import Store
from ptx.cache.toolchain import Build, Folders, build_of
from ptx.image import Image, ImageOrigin
from ptx.options import CompileOptions
from ptx.request import CompileRequest
from ptx.target import Target

if TYPE_CHECKING:
    from ptx.cache.cache_report import CacheStatistics, Explanation, Verification
    from ptx.link_options import LinkOptions

_DEBUG, _INFO = 10, 20  # logging's levels
DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024
_OPTIONS = CompileOptions()


class ImageCache:
    """A folder of images, shared by any number of processes, below an in-memory cache.

    `directory` None takes `CUDADRV_CACHE_DIR` or the platform's cache folder; `max_bytes` bounds
    the files, 0 keeps nothing on disk. Faults of the disk cost speed and one `CacheWarning`, never
    an error. Methods may be called from any thread.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> None:
        path = folder_from_environment() if directory is None else Path(directory)
        self._store = Store(path.absolute(), max_bytes) if max_bytes > 0 else None
        self._memory = MemoryImages(memory_bytes)
        self._dependencies = Dependencies(self._store, _look_for_headers)
        self._counter = Counter()
        self._warned = False
        if self._store is not None:
            top = self._store.top.path
            self._at_exit = weakref.finalize(self, add_counts, top, self._counter)

    @property
    def folder(self) -> Path | None:
        """Where images are kept, None for a cache in memory alone."""
        return self._store.top.path if self._store else None

    @property
    def max_bytes(self) -> int:
        """The bound of the files on disk, 0 for a cache in memory alone."""
        return self._store.max_bytes if self._store else 0

    def close(self) -> None:
        """Write this process's counts to the folder, as its end does otherwise; idempotent."""
        if self._store is not None:
            self._at_exit()

    def nvrtc(self) -> Build:
        """Version and architectures of the NVRTC that misses use; a warm cache knows it unloaded.

        Raises:
            NvrtcNotFoundError: there is no NVRTC.
        """
        return self._dependencies.nvrtc()

    def get_or_compile(
        self,
        source: str,
        options: CompileOptions = _OPTIONS,
        *,
        name: str = "kernel.cu",
        name_expressions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Image:
        """The image of a source, compiled only where neither memory nor disk has it.

        Raises: what `ptx.compile` does.
        """
        return self.get_or_build(
            CompileRequest.of(source, options, name, name_expressions, headers)
        )

    def get_or_build(self, request: CompileRequest) -> Image:
        """`get_or_compile` for a request that is one value."""

        def make() -> Image:
            # Saves a hit 12 ms: NVRTC's log, headers and the PTX parser.
            from ptx.nvrtc_build import build

            self._counter.add(compiled=1)
            folders = self._dependencies.folders(request)
            return build(request, tuple(path for path, _ in folders))

        try:
            key = self._key(request)
        except UncacheableError as error:
            self._counter.add(uncacheable=1)
            _log(_INFO, "%s is not cached: %s", request.name, error)
            return make()

        def unchanged() -> bool:
            try:
                return not key.headers or self._key(request).digest == key.digest
            except UncacheableError:
                return False

        return self._get(key, request.name, make, unchanged)

    def get_or_link(
        self, images: Sequence[Image], target: Target, options: LinkOptions | None = None
    ) -> Image:
        """The image that these give when linked; kept like a compiled one.

        Raises: what `ptx.link` does.
        """
        # Saves a start that does not link 12 ms, most of them the PTX parser's.
        from ptx.link_options import LinkOptions
        from ptx.linker import link_images

        chosen = options or LinkOptions()

        def make() -> Image:
            self._counter.add(linked=1)
            return link_images(images, target, chosen)

        top = self._store.top if self._store else None
        key = link_key(images, target, chosen, build_of("nvJitLink", top))
        return self._get(key, f"link of {len(images)}", make, lambda: True)

    def explain(self, request: CompileRequest) -> Explanation:
        """Whether a request would hit the disk, and if not, what differs from the nearest entry."""
        # Saves a start that does not ask 3 ms, here and below.
        from ptx.cache.cache_report import Explanation

        try:
            key = self._key(request)
        except UncacheableError as error:
            return Explanation("", False, reason=str(error))
        if self._store is None:
            return Explanation(key.digest, False, reason="there is no cache on disk")
        if self._read(key, counted=False) is not None:
            return Explanation(key.digest, True)
        found = [(differences(old, key), old.digest) for old in self._keys()]
        if not found:
            return Explanation(key.digest, False)
        # Another source or another kind of entry is far away, whatever else agrees.
        differing, nearest = min(found, key=lambda f: len(f[0]) + 100 * ("source" in f[0]))
        return Explanation(key.digest, False, nearest, differing)

    def stats(self) -> CacheStatistics:
        """Counts of this cache, and what lies on disk."""
        from ptx.cache.cache_report import CacheStatistics, Tally

        entries, nbytes = self._store.usage() if self._store else (0, 0)
        tally = Tally.of(self._counter.read())
        ended = Tally.of(sum_of_file(self._store.top.path) if self._store else {})
        return CacheStatistics(
            folder=self.folder,
            max_bytes=self.max_bytes,
            entries=entries,
            disk_bytes=nbytes,
            memory_images=len(self._memory),
            memory_bytes=self._memory.nbytes,
            process=tally,
            lifetime=ended + tally,
        )

    def verify(self, *, remove: bool = False) -> Verification:
        """Read every entry and check it whole; damaged ones are removed if that is wanted."""
        from ptx.cache.cache_report import Verification

        if self._store is None:
            return Verification(0, ())
        digests = self._store.digests()
        damaged = []
        for digest in digests:
            data = self._data(digest)
            key = decode_key(data) if data is not None else None
            if data is None or key is None or decode(data, digest) is None:
                damaged.append(digest)
                if remove:
                    self._store.remove(digest)
        return Verification(len(digests), tuple(damaged))

    def clear(self) -> int:
        """Forget every image in memory and on disk; how many entries of the disk went."""
        self._memory.clear()
        return self._store.clear() if self._store else 0

    def _key(self, request: CompileRequest) -> Key:
        refuse_side_effects(request.options)
        return self._dependencies.key(request)

    def _keys(self) -> Iterable[Key]:
        for digest in self._store.digests() if self._store else ():
            data = self._data(digest)
            key = decode_key(data) if data is not None else None
            if key is not None:
                yield key

    def _get(
        self, key: Key, what: str, make: Callable[[], Image], unchanged: Callable[[], bool]
    ) -> Image:
        image = self._memory.get(key.digest)
        if image is not None:
            self._counter.add(memory_hits=1, saved_ms=image.build_ms)
            return image.from_origin(ImageOrigin.MEMORY)
        image, shared = self._memory.make_once(
            key.digest, lambda: self._disk_or_make(key, what, make, unchanged)
        )
        if not shared:
            return image
        self._counter.add(memory_hits=1, waited=1, saved_ms=image.build_ms)
        return image.from_origin(ImageOrigin.MEMORY)

    def _disk_or_make(
        self, key: Key, what: str, make: Callable[[], Image], unchanged: Callable[[], bool]
    ) -> Image:
        image = self._memory.get(key.digest)  # made while this thread came here
        if image is not None:
            return image
        if self._store is None:
            return self._made(key, what, make)
        image = self._read(key)
        if image is not None:
            return image
        if self._store.has(key.digest):
            self._counter.add(refused=1)
            _log(_INFO, "entry %.12s is damaged or not to be trusted", key.digest)
        with self._store.lock(key.digest):
            image = self._read(key)
            if image is not None:
                self._counter.add(waited=1)
                return image
            image = self._made(key, what, make)
            if unchanged():
                self._write(key, image)
            else:
                _log(_INFO, "%s is not kept: a header changed while it was compiled", what)
        return image

    def _made(self, key: Key, what: str, make: Callable[[], Image]) -> Image:
        self._counter.add(misses=1)
        image = make()
        self._counter.add(build_ms=image.build_ms)
        _log(_INFO, "miss: made %s in %.1f ms as %.12s", what, image.build_ms, key.digest)
        return image

    def _read(self, key: Key, *, counted: bool = True) -> Image | None:
        started = time.perf_counter()
        data = self._data(key.digest)
        image = decode(data, key.digest) if data is not None else None
        if not counted:
            return image
        if image is not None and data is not None:
            took = (time.perf_counter() - started) * 1e3
            saved = max(0.0, image.build_ms - took)
            self._counter.add(disk_hits=1, bytes_read=len(data), saved_ms=saved)
            _log(_DEBUG, "hit: %.12s read in %.2f ms", key.digest, took)
        return image

    def _data(self, digest: str) -> bytes | None:
        try:
            return self._store.read(digest) if self._store else None
        except OSError as error:
            self._warn(error)
            return None

    def _write(self, key: Key, image: Image) -> None:
        if self._store is None:
            return
        data = encode(image, key)
        if len(data) > self._store.max_bytes:
            _log(_INFO, "entry %.12s of %d bytes is above the cache's bound", key.digest, len(data))
            return
        try:
            evicted = self._store.write(key.digest, data)
            self._counter.add(evicted=evicted, bytes_written=len(data))
        except OSError as error:
            self._counter.add(failed=1)
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        _log(_INFO, "cache folder: %s", error)
        if self._warned:
            return
        self._warned = True
        from ptx.cache.cache_report import CacheWarning

        warnings.warn(
            f"compiled images are not kept on disk: {error}. Set CUDADRV_CACHE_DIR to a folder of "
            "your own, or CUDADRV_CACHE_MAX_MB=0 to do without",
            CacheWarning,
            stacklevel=2,
        )


def _look_for_headers(
    named: tuple[str, ...], nvrtc: tuple[int, int], folder: Path | None
) -> Folders:
    from ptx.headers import find_headers  # a hit knows them from a note in the folder

    found = find_headers(named, nvrtc, folder)
    return tuple((folder.path, folder.contents()) for folder in found.folders)


def _log(level: int, message: str, *values: object) -> None:
    """Log as "ptx.image_cache", without being the one to import `logging`.

    Where nobody has imported it, nobody can have asked for records.
    """
    if logging := sys.modules.get("logging"):
        logging.getLogger(__name__).log(level, message, *values)


def default_cache() -> ImageCache:
    """The process's cache, as `CUDADRV_CACHE_DIR` and `CUDADRV_CACHE_MAX_MB` say now.

    Raises:
        ValueError: `CUDADRV_CACHE_MAX_MB` is not a number.
    """
    return _default(folder_from_environment(), max_bytes_from_environment())


@functools.lru_cache(maxsize=4)
def _default(folder: Path, max_bytes: int) -> ImageCache:
    return ImageCache(folder, max_bytes=max_bytes)
