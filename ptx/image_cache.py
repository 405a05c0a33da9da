"""Compiled images kept in memory and on disk, so that a source is compiled once."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptx import border
from ptx.cache.dependencies import Dependencies, Snapshot
from ptx.cache.disk import DiskImages
from ptx.cache.folder import (
    DEFAULT_MAX_BYTES,
    folder_from_environment,
    folder_in_use,
    max_bytes_from_environment,
)
from ptx.cache.key import (
    Key,
    UncacheableError,
    differences,
    refuse_side_effects,
    sealed_key,
)
from ptx.cache.log import INFO, log
from ptx.cache.memory import Made, MemoryImages
from ptx.cache.statistics import Counter
from ptx.cache.store import Store
from ptx.cache.toolchain import LIBRARIES, Build, Folders, Library, build_of
from ptx.errors import PtxArgumentValueError
from ptx.image import Image, ImageOrigin
from ptx.options import CompileOptions
from ptx.request import CompileRequest
from ptx.target import Target

if TYPE_CHECKING:
    from ptx.cache.cache_report import CacheStatistics, Explanation, Verification
    from ptx.linker import Linkable, LinkOptions, OtherLinker

DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024
_OPTIONS = CompileOptions()


class ImageCache:
    """A folder of images, shared by any number of processes, below an in-memory cache.

    `directory` None takes `CUDADRV_CACHE_DIR` or the platform's cache folder; `max_bytes` bounds
    the files, 0 keeps nothing on disk. Faults of the disk cost speed and one `CacheWarning`, never
    an error; so does a folder that another user could have written to, or none at all. Methods may
    be called from any thread.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> None:
        max_bytes = border.integer("ImageCache: max_bytes", max_bytes)
        memory_bytes = border.integer("ImageCache: memory_bytes", memory_bytes)
        if directory is not None:
            directory = border.path_text("ImageCache: directory", directory)
        store, fault = None, None
        if max_bytes > 0:
            try:
                path = folder_from_environment() if directory is None else Path(directory)
                store = Store(path.absolute(), max_bytes)
            except OSError as error:  # no home, or a working folder that was removed
                fault = error
        self._counter = Counter()
        self._disk = DiskImages(store, self._counter, fault)
        self._memory = MemoryImages(memory_bytes)
        self._dependencies = Dependencies(store, _look_for_headers)

    def __repr__(self) -> str:
        images = f"{len(self._memory)} images in memory"
        if self.folder is None:
            return f"<ptx.ImageCache in memory alone, {images}>"
        return f"<ptx.ImageCache {str(self.folder)!r}, at most {self.max_bytes} bytes, {images}>"

    @property
    def folder(self) -> Path | None:
        """Where images are kept, None for a cache in memory alone."""
        return self._disk.path

    @property
    def max_bytes(self) -> int:
        """The bound of the files on disk, 0 for a cache in memory alone."""
        return self._disk.store.max_bytes if self._disk.store else 0

    def close(self) -> None:
        """Write this process's counts to the folder, as its end does otherwise; idempotent."""
        self._disk.close()

    def nvrtc(self) -> Build:
        """Version and architectures of the NVRTC that misses use; a warm cache knows it unloaded.

        Raises:
            NvrtcNotFoundError: there is no NVRTC.
        """
        return self._dependencies.nvrtc()

    def build_of(self, library: Library) -> Build:
        """Which "nvrtc", "nvJitLink" or "nvvm" misses use; a warm cache knows it unloaded.

        Raises:
            PtxError: it is not installed.
        """
        if border.text("ImageCache.build_of: library", library) not in LIBRARIES:
            raise PtxArgumentValueError(f"library is {library!r}: give one of {LIBRARIES}")
        return build_of(library, self._disk.top)

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

        NVRTC's warnings become a `CompileWarning`, once for each source and process.

        Raises: what `ptx.compile` does.
        """
        request = CompileRequest.of(source, options, name, name_expressions, headers)
        return warned_of(self.get_or_build(request), request)

    def get_or_build(self, request: CompileRequest) -> Image:
        """`get_or_compile` for a request that is one value; warnings are in `Image.log` alone."""
        border.instance("ImageCache.get_or_build: request", request, CompileRequest)
        try:
            snapshot = self._snapshot(request)
        except UncacheableError as error:
            self._counter.add(uncacheable=1)
            log(INFO, "%s is not cached: %s", request.name, error)
            return self._build(request)

        def make() -> Made:
            settled = snapshot.settle()
            image = self._build(request)
            if settled and self._still_holds(snapshot, request):
                return Made(image, lasting=True)
            log(INFO, "%s is not kept: a header changed while it was compiled", request.name)
            return Made(image, lasting=False)

        return self._get(snapshot, request.name, make)

    def get_or_link(
        self,
        images: Sequence[Linkable],
        target: Target,
        options: LinkOptions | None = None,
        *,
        linker: OtherLinker | None = None,
    ) -> Image:
        """The image that these give when linked; kept like a compiled one.

        Raises: what `ptx.link` does, such as a LinkError; an OSError where a file cannot be read.
        """
        # Saves a start that does not link 12 ms, most of them the PTX parser's.
        from ptx.linker import (
            LinkInput,
            LinkOptions,
            OtherLinker,
            link_inputs,
            link_parts,
            uses_nvjitlink,
        )

        given = border.several("link: images", images, object)
        inputs = [LinkInput.of(each, number) for number, each in enumerate(given, 1)]
        border.instance("link: target", target, Target)
        chosen = (
            LinkOptions() if options is None else border.instance("options", options, LinkOptions)
        )
        if linker is not None:
            border.instance("link: linker", linker, OtherLinker)
            identity, link = linker.identity, linker.linked
        else:
            needs = uses_nvjitlink(inputs, target)
            build = self.build_of("nvJitLink") if needs else "not needed"
            identity, link = f"nvJitLink {build}", link_inputs
        parts = link_parts(inputs, target, chosen, identity)
        return self._make(parts, "a link", lambda: link(inputs, target, chosen), linked=1)

    def get_or_make(self, parts: Mapping[str, str], make: Callable[[], Image]) -> Image:
        """The image that a function makes, which is called where neither memory nor disk has it.

        Args:
            parts: everything that the image depends on, by names that say what it is, the maker
                and its version among it.
            make: makes it.

        Raises: what `make` does.
        """
        border.instance("ImageCache.get_or_make: parts", parts, Mapping)
        for name, text in parts.items():
            border.text("ImageCache.get_or_make: a part", name)
            border.instance(f"ImageCache.get_or_make: {name}", text, str)
        border.function("ImageCache.get_or_make: make", make, takes=0)

        def image() -> Image:
            return border.instance("ImageCache.get_or_make: what `make` gave", make(), Image)

        return self._make({"made by": "a function", **parts}, "an image", image)

    def _make(
        self, parts: Mapping[str, str], what: str, make: Callable[[], Image], **counts: int
    ) -> Image:
        def made() -> Made:
            self._counter.add(**counts)
            return Made(make(), lasting=True)

        return self._get(Snapshot(sealed_key(parts)), what, made)

    def explain(self, request: CompileRequest) -> Explanation:
        """Whether a request would hit the disk, and if not, what differs from the nearest entry."""
        # Saves a start that does not ask 3 ms, here and below.
        from ptx.cache.cache_report import Explanation

        border.instance("ImageCache.explain: request", request, CompileRequest)
        try:
            key = self._snapshot(request).key
        except UncacheableError as error:
            return Explanation("", False, reason=str(error))
        if self.folder is None:
            return Explanation(key.digest, False, reason="there is no cache on disk")
        if self._disk.holds(key):
            return Explanation(key.digest, True)
        found = [(differences(old, key), digest) for digest, old in self._disk.entries() if old]
        if not found:
            return Explanation(key.digest, False)
        # Another source or another kind of entry is far away, whatever else agrees.
        differing, nearest = min(found, key=lambda f: len(f[0]) + 100 * ("source" in f[0]))
        return Explanation(key.digest, False, nearest, differing)

    def stats(self) -> CacheStatistics:
        """Counts of this cache, and what lies on disk."""
        from ptx.cache.cache_report import CacheStatistics, Tally

        entries, nbytes = self._disk.store.usage() if self._disk.store else (0, 0)
        tally = Tally.of(self._counter.read())
        return CacheStatistics(
            folder=self.folder,
            max_bytes=self.max_bytes,
            entries=entries,
            disk_bytes=nbytes,
            memory_images=len(self._memory),
            memory_bytes=self._memory.nbytes,
            process=tally,
            lifetime=Tally.of(self._disk.lifetime()) + tally,
        )

    def verify(self, *, remove: bool = False) -> Verification:
        """Read every entry and check it whole; damaged ones are removed if that is wanted."""
        from ptx.cache.cache_report import Verification

        found = list(self._disk.entries())
        damaged = tuple(digest for digest, key in found if key is None)
        if remove and self._disk.store:
            for digest in damaged:
                self._disk.store.remove(digest)
        return Verification(len(found), damaged)

    def clear(self) -> int:
        """Forget every image in memory and on disk; how many entries of the disk went.

        Raises:
            OSError: the folder cannot be read.
        """
        self._memory.clear()
        return self._disk.store.clear() if self._disk.store else 0

    def _snapshot(self, request: CompileRequest) -> Snapshot:
        refuse_side_effects(request.options)
        return self._dependencies.snapshot(request)

    def _still_holds(self, snapshot: Snapshot, request: CompileRequest) -> bool:
        if not request.includes_anything():
            return True
        try:
            return snapshot.still_holds(self._snapshot(request))
        except UncacheableError:
            return False

    def _build(self, request: CompileRequest) -> Image:
        # Saves a hit 12 ms: NVRTC's log, headers and the PTX parser.
        from ptx.nvrtc_build import build

        self._counter.add(compiled=1)
        folders = self._dependencies.folders(request)
        return build(request, tuple(path for path, _ in folders))

    def _get(self, snapshot: Snapshot, what: str, make: Callable[[], Made]) -> Image:
        key = snapshot.key
        image, shared = self._memory.get(key.digest), False
        if image is None:
            image, shared = self._memory.make_once(
                key.digest, lambda may_wait: self._disk_or_make(key, what, make, may_wait)
            )
            if not shared:
                return image
            self._counter.add(waited=1)
        self._counter.add(memory_hits=1, saved_ms=image.build_ms)
        return image.from_origin(ImageOrigin.MEMORY)

    def _disk_or_make(self, key: Key, what: str, make: Callable[[], Made], may_wait: bool) -> Made:
        image = self._memory.get(key.digest)  # made while this thread came here
        image = image or self._disk.get(key)
        if image is not None:
            return Made(image, lasting=True)
        with self._disk.making(key, may_wait=may_wait) as image:
            if image is not None:
                self._counter.add(waited=1)
                return Made(image, lasting=True)
            self._counter.add(misses=1)
            made = make()
            took = made.image.build_ms
            self._counter.add(build_ms=took)
            log(INFO, "miss: made %s in %.1f ms as %.12s", what, took, key.digest)
            if made.lasting:
                self._disk.keep(key, made.image)
            return made


def warned_of(image: Image, request: CompileRequest) -> Image:
    """Return an image, and warn of NVRTC's warnings about its source."""
    if ": warning" in image.log:
        from ptx.diagnostics import warn_of  # saves other starts reading logs

        warn_of(image.log, name=request.name, source=request.source)
    return image


def _look_for_headers(
    named: tuple[str, ...], nvrtc: tuple[int, int], folder: Path | None
) -> Folders:
    from ptx.headers import find_headers  # a hit knows them from a note in the folder

    found = find_headers(named, nvrtc, folder)
    return tuple((folder.path, folder.contents()) for folder in found.folders)


def default_cache() -> ImageCache:
    """The process's cache, as `CUDADRV_CACHE_DIR` and `CUDADRV_CACHE_MAX_MB` say now.

    Raises:
        ValueError: `CUDADRV_CACHE_MAX_MB` is not a number.
    """
    return _default(folder_in_use(), max_bytes_from_environment())


@functools.lru_cache(maxsize=4)
def _default(folder: Path | None, max_bytes: int) -> ImageCache:
    return ImageCache(folder, max_bytes=max_bytes)
