"""A cache of compiled images in memory and on disk, so that a source is compiled once."""

from __future__ import annotations

import copy
import functools
import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ptx.argument_checks import checks
from ptx.cache.folder import (
    DEFAULT_MAX_BYTES,
    cache_settings,
    folder_from_environment,
)
from ptx.cache.key import CompileKeys, Key, differences, sealed_key
from ptx.cache.store import INFO, Counter, Store, log, sum_of_file, warn_of
from ptx.cache.toolchain import LIBRARIES, Build, Library, build_of
from ptx.errors import CompileCancelledError, PtxArgumentValueError, PtxError
from ptx.image import Image, ImageOrigin
from ptx.options import (
    Cancel,
    CompileOptions,
    CompileRequest,
    UncacheableError,
    cancel_function,
)
from ptx.target import Target

if TYPE_CHECKING:
    from ptx.cache.cache_report import CacheStatistics, Explanation, Verification
    from ptx.linker import Linkable, LinkOptions, OtherLinker

__all__ = ["ImageCache", "default_cache"]

DEFAULT_MEMORY_BYTES = 256 * 1024 * 1024
_OPTIONS = CompileOptions()


class ImageCache:
    """A folder of images, shared by any number of processes, below an in-memory cache.

    `directory` None takes `CUDADRV_CACHE_DIR` or the platform's cache folder; `max_bytes` bounds
    the files, 0 stores nothing on disk. Faults of the disk cost speed and one `CacheWarning`, never
    an error; so does a folder that another user could have written to, or none at all. Methods may
    be called from any thread.
    """

    __slots__ = ("__weakref__", "_counter", "_fault", "_keys", "_memory", "_store")

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> None:
        max_bytes = checks.integer("ImageCache: max_bytes", max_bytes)
        memory_bytes = checks.integer("ImageCache: memory_bytes", memory_bytes)
        if directory is not None:
            directory = checks.path_text("ImageCache: directory", directory)
        self._store: Store | None = None
        self._fault: OSError | None = None  # why there is no store; cleared by the warning
        if max_bytes > 0:
            try:
                path = folder_from_environment() if directory is None else Path(directory)
                self._store = Store(path.absolute(), max_bytes)
            except OSError as error:  # no home, or a working folder that was removed
                self._fault = error
        self._counter = self._store.counter if self._store else Counter()
        self._memory = MemoryImages(memory_bytes)
        self._keys = CompileKeys(self._store.top if self._store else None)

    def __repr__(self) -> str:
        images = f"{len(self._memory)} images in memory"
        if self.folder is None:
            return f"<ptx.ImageCache in memory alone, {images}>"
        return f"<ptx.ImageCache {str(self.folder)!r}, at most {self.max_bytes} bytes, {images}>"

    @property
    def folder(self) -> Path | None:
        """The folder of the images, None for a cache in memory alone."""
        return self._store.top.path if self._store else None

    @property
    def max_bytes(self) -> int:
        """The bound of the files on disk, 0 for a cache in memory alone."""
        return self._store.max_bytes if self._store else 0

    def close(self) -> None:
        """Write this process's counts to the folder, as its end does otherwise; idempotent."""
        if self._store:
            self._store.close()

    def nvrtc(self) -> Build:
        """Return the NVRTC that misses use; a warm cache does not load it.

        Raises:
            NvrtcNotFoundError: there is no NVRTC.
        """
        return self._keys.nvrtc()

    def build_of(self, library: Library) -> Build:
        """Return the "nvrtc", "nvJitLink" or "nvvm" that misses use; a warm cache does not load it.

        Raises:
            PtxError: it is not installed.
        """
        if checks.text("ImageCache.build_of: library", library) not in LIBRARIES:
            raise PtxArgumentValueError(f"library is {library!r}: give one of {LIBRARIES}")
        return build_of(library, self._store.top if self._store else None)

    def get_or_compile(
        self,
        source: str,
        options: CompileOptions = _OPTIONS,
        *,
        name: str = "kernel.cu",
        name_expressions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        cancel: Cancel | None = None,
    ) -> Image:
        """Return the image of a source, compiled only where neither memory nor disk has it.

        NVRTC's warnings become a `CompileWarning`, once for each source and process.

        Raises: what `ptx.compile` does.
        """
        if headers is None and cancel is None:
            digest = self._keys.known(source, options, name, name_expressions)
            image = None if digest is None else self._memory_hit(digest)
            if image is not None:
                return warned_of(image, name, source)
        request = CompileRequest.of(source, options, name, name_expressions, headers)
        return warned_of(
            self._get_or_build(request, cancel, options if headers is None else None),
            request.name,
            request.source,
        )

    def get_or_build(self, request: CompileRequest, *, cancel: Cancel | None = None) -> Image:
        """`get_or_compile` for a request that is one value; warnings are in `Image.log` alone."""
        checks.instance_of("ImageCache.get_or_build: request", request, CompileRequest)
        return self._get_or_build(request, cancel, None)

    def _get_or_build(
        self, request: CompileRequest, cancel: Cancel | None, options: CompileOptions | None
    ) -> Image:
        """`get_or_build`; with the caller's own options, the next equal call finds it quickly."""
        cancelled = cancel_function(cancel)
        try:
            key = self._keys.key(request)
        except UncacheableError as error:
            self._counter.add(uncacheable=1)
            log(INFO, "%s is not cached: %s", request.name, error)
            return self._build(request, cancelled)
        image = self._get(key, request.name, lambda: self._compiled(key, request, cancelled))
        if options is not None:
            self._keys.remember(request, options, key)
        return image

    def get_or_link(
        self,
        images: Sequence[Linkable],
        target: Target,
        options: LinkOptions | None = None,
        *,
        linker: OtherLinker | None = None,
    ) -> Image:
        """Return the linked image, stored like a compiled one.

        Raises: what `ptx.link` does, such as a LinkError; an OSError where a file cannot be read.
        """
        from ptx.linker import LinkRequest  # saves a start that does not link 12 ms

        request = LinkRequest.of(images, target, options, linker)
        build = self.build_of("nvJitLink") if request.uses_nvjitlink else None
        return self._make(request.parts(build), "a link", request.link, linked=1)

    def get_or_make(self, parts: Mapping[str, str], make: Callable[[], Image]) -> Image:
        """Return the image that a function makes, called only where neither memory nor disk has it.

        Args:
            parts: everything that the image depends on, by descriptive names, including the maker
                and its version.
            make: makes it.

        Raises: what `make` does.
        """
        checks.instance_of("ImageCache.get_or_make: parts", parts, Mapping)
        for name, text in parts.items():
            checks.text("ImageCache.get_or_make: a part", name)
            checks.instance_of(f"ImageCache.get_or_make: {name}", text, str)
        checks.function("ImageCache.get_or_make: make", make, takes=0)

        def image() -> Image:
            return checks.instance_of("ImageCache.get_or_make: what `make` gave", make(), Image)

        return self._make({"made by": "a function", **parts}, "an image", image)

    def _make(
        self, parts: Mapping[str, str], description: str, make: Callable[[], Image], **counts: int
    ) -> Image:
        def made() -> Made:
            self._counter.add(**counts)
            return Made(make(), lasting=True)

        return self._get(sealed_key(parts), description, made)

    def explain(self, request: CompileRequest) -> Explanation:
        """Explain whether a request would hit the disk, and what differs from the nearest entry."""
        # Saves 3 ms at a start that does not explain, here and below.
        from ptx.cache.cache_report import Explanation

        checks.instance_of("ImageCache.explain: request", request, CompileRequest)
        try:
            key = self._keys.key(request)
        except UncacheableError as error:
            return Explanation("", False, reason=str(error))
        if self._store is None:
            return Explanation(key.digest, False, reason="there is no cache on disk")
        if self._store.holds(key.digest):
            return Explanation(key.digest, True)
        differing_entries = [
            (differences(old, key), digest) for digest, old in self._store.entries() if old
        ]
        if not differing_entries:
            return Explanation(key.digest, False)
        # Another source or another kind of entry is far away, even if all else agrees.
        differing, nearest = min(
            differing_entries, key=lambda f: len(f[0]) + 100 * ("source" in f[0])
        )
        return Explanation(key.digest, False, nearest, differing)

    def stats(self) -> CacheStatistics:
        """Counts of this cache, and what lies on disk."""
        from ptx.cache.cache_report import CacheStatistics, Tally

        entries, nbytes = self._store.usage() if self._store else (0, 0)
        tally = Tally.of(self._counter.read())
        return CacheStatistics(
            folder=self.folder,
            max_bytes=self.max_bytes,
            entries=entries,
            disk_bytes=nbytes,
            memory_images=len(self._memory),
            memory_bytes=self._memory.nbytes,
            process=tally,
            lifetime=Tally.of(sum_of_file(self._store.top) if self._store else {}) + tally,
        )

    def verify(self, *, remove: bool = False) -> Verification:
        """Read every entry and check it whole; damaged ones are removed if that is wanted."""
        from ptx.cache.cache_report import Verification

        entries = list(self._store.entries()) if self._store else []
        damaged = tuple(digest for digest, key in entries if key is None)
        if remove and self._store:
            for digest in damaged:
                self._store.remove(digest)
        return Verification(len(entries), damaged)

    def clear(self) -> int:
        """Drop every image in memory and on disk; return the number of entries on disk.

        Raises:
            OSError: the folder cannot be read.
        """
        self._memory.clear()
        return self._store.clear() if self._store else 0

    def _compiled(
        self, key: Key, request: CompileRequest, cancelled: Callable[[], bool] | None
    ) -> Made:
        settled = key.settle()
        image = self._build(request, cancelled, key)
        if settled and self._still_holds(key, request):
            return Made(image, lasting=True)
        if request.options.pch:
            from ptx.precompiled_headers import forget

            forget(key)
        log(INFO, "%s is not stored: a header changed while it was compiled", request.name)
        return Made(image, lasting=False)

    def _still_holds(self, key: Key, request: CompileRequest) -> bool:
        if not request.includes_anything():
            return True
        try:
            return key.still_holds(self._keys.key(request))
        except UncacheableError:
            return False

    def _build(
        self,
        request: CompileRequest,
        cancelled: Callable[[], bool] | None,
        key: Key | None = None,
    ) -> Image:
        # Saves a hit 12 ms: NVRTC's log, headers and the PTX parser.
        from ptx.nvrtc_build import build

        self._counter.add(compiled=1)
        folders = self._keys.folders(request) if request.includes_anything() else ()
        paths = tuple(path for path, _ in folders)
        pch_folder = None
        if request.options.pch and key is not None:
            from ptx.precompiled_headers import folder_of  # which few processes need

            pch_folder = folder_of(key, request.options.pch_dir)
        return build(request, paths, cancel=cancelled, pch_folder=pch_folder)

    def _get(self, key: Key, description: str, make: Callable[[], Made]) -> Image:
        """Return the image of a key: from memory, from disk, or made now."""
        image = self._memory_hit(key.digest)
        if image is not None:
            return image
        image = self._store.get(key) if self._store else None
        if image is not None:
            self._memory.keep(key.digest, image)
            return image
        image, shared = self._memory.make_once(
            key.digest, lambda may_wait: self._made(key, description, make, may_wait)
        )
        if not shared:
            return image
        self._counter.add(waited=1, memory_hits=1, saved_ms=image.build_ms)
        return image.from_origin(ImageOrigin.MEMORY)

    def _memory_hit(self, digest: str) -> Image | None:
        """Return the image of a key from memory, as one from there, and count the hit."""
        image = self._memory.hit(digest)
        if image is not None:
            self._counter.add(memory_hits=1, saved_ms=image.build_ms)
        return image

    def _made(self, key: Key, description: str, make: Callable[[], Made], may_wait: bool) -> Made:
        """Make an image, unless another process makes it first."""
        if self._store is None:
            if self._fault is not None:
                warn_of(self._fault)
                self._fault = None
            return self._missed(key, description, make)
        with self._store.making(key, may_wait=may_wait) as image:
            if image is not None:
                self._counter.add(waited=1)
                return Made(image, lasting=True)
            outcome = self._missed(key, description, make)
            if outcome.lasting:
                self._store.put(key, outcome.image)
            return outcome

    def _missed(self, key: Key, description: str, make: Callable[[], Made]) -> Made:
        self._counter.add(misses=1)
        outcome = make()
        took = outcome.image.build_ms
        self._counter.add(build_ms=took)
        log(INFO, "miss: made %s in %.1f ms as %.12s", description, took, key.digest)
        return outcome


def warned_of(image: Image, name: str, source: str) -> Image:
    """Return an image, and warn of NVRTC's warnings about its source."""
    if ": warning" in image.log:
        from ptx.diagnostics import warn_of  # saves other starts reading logs

        warn_of(image.log, name=name, source=source)
    return image


class Made(NamedTuple):
    """An image, and whether it is the key's for good: another thread may get it as well."""

    image: Image
    lasting: bool


class _Entry:
    """An image in memory; `used` is the number of its last use among all uses."""

    __slots__ = ("from_memory", "image", "nbytes", "used")

    def __init__(self, image: Image, used: int) -> None:
        self.image = image
        self.from_memory: Image | None = None  # the same, as hits return it
        self.nbytes = len(image.data) + (0 if image.ptx is None else len(image.ptx))
        self.used = used


class _Making:
    """A making under way. Its maker holds the lock, and others wait for it."""

    __slots__ = ("lock", "maker", "outcome")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.maker = 0
        self.outcome: Image | PtxError | None = None


class MemoryImages:
    """Images by key digest, the least recently used dropped first. Bound: `max_bytes` of them.

    The images need no lock: each change is one step of a dict. A maker that is interrupted leaves a
    lock that is free and no outcome: a thread that waited for it makes the image. A forked child
    has its parent's images, and none of its makings.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._entries: dict[str, _Entry] = {}
        self._makings: dict[tuple[int, str], _Making] = {}
        self._uses = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        """The bytes of the images."""
        return sum(map(attrgetter("nbytes"), list(self._entries.values())))

    def get(self, digest: str) -> Image | None:
        """Return the image of a key, or None."""
        entry = self._entries.get(digest)
        if entry is None:
            return None
        entry.used = next(self._uses)
        return entry.image

    def hit(self, digest: str) -> Image | None:
        """Return the image of a key with its origin, `ImageOrigin.MEMORY`, or None."""
        entry = self._entries.get(digest)
        if entry is None:
            return None
        entry.used = next(self._uses)
        image = entry.from_memory
        if image is None:
            entry.from_memory = image = entry.image.from_origin(ImageOrigin.MEMORY)
        return image

    def keep(self, digest: str, image: Image) -> None:
        """Keep an image, and drop the least recently used where there are too many."""
        new = _Entry(image, next(self._uses))
        if new.nbytes > self.max_bytes:
            return
        self._entries.setdefault(digest, new)
        while self.nbytes > self.max_bytes:
            oldest = min(
                self._entries.copy().items(), key=lambda entry: entry[1].used, default=None
            )
            if oldest is not None:
                self._entries.pop(oldest[0], None)

    def make_once(self, digest: str, make: Callable[[bool], Made]) -> tuple[Image, bool]:
        """Return the image of a key, made where it is not here, and whether another thread made it.

        Threads that want the same image at once wait for the first and share its image, or its
        error where that is one of the source's. `make` gets whether it may wait for others: a
        finalizer or signal handler in the middle of a making may not, as they may wait for it.
        """
        key, me = (os.getpid(), digest), threading.get_ident()
        if any(making.maker == me for making in list(self._makings.values())):
            return self._make((0, digest), _Making(), make, may_wait=False)
        while True:
            making = self._makings.setdefault(key, _Making())
            with making.lock:
                outcome = making.outcome
                # One with an outcome, or that was interrupted, has left the table.
                if outcome is None and self._makings.get(key) is making:
                    return self._make(key, making, make, may_wait=True)
            if isinstance(outcome, Image):
                return outcome, True
            if outcome is not None:
                raise _copied(outcome)

    def clear(self) -> None:
        """Drop every image."""
        self._entries.clear()

    def _make(
        self,
        key: tuple[int, str],
        making: _Making,
        make: Callable[[bool], Made],
        *,
        may_wait: bool,
    ) -> tuple[Image, bool]:
        outcome: Image | PtxError | None = None
        try:
            making.maker = threading.get_ident()
            image = self.get(key[1])
            if image is not None:  # made while this thread came here
                outcome = image
                return image, True
            built = make(may_wait)
            if built.lasting:
                outcome = built.image
                self.keep(key[1], built.image)
            return built.image, False
        except CompileCancelledError:
            raise  # the next thread that wants the image makes it
        except PtxError as error:
            outcome = _copied(error)
            raise
        finally:
            self._makings.pop(key, None)
            making.outcome = outcome


def _copied(error: PtxError) -> PtxError:
    """Return an error of its own, without the traceback, which leads to the frame of the making.

    Some libraries, tblib among them, have copies keep it.
    """
    return copy.copy(error).with_traceback(None)


def default_cache() -> ImageCache:
    """Return the process's cache by the present `CUDADRV_CACHE_DIR` and `CUDADRV_CACHE_MAX_MB`.

    Raises:
        ValueError: `CUDADRV_CACHE_MAX_MB` is not a number.
    """
    return _present(_settings_of_environment())


# What `cache_settings` and platformdirs read, as the table of os.environ has it.
_VARIABLES: Final = (
    "CUDADRV_CACHE_DIR", "CUDADRV_CACHE_MAX_MB", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA",
    "USERPROFILE",
)  # fmt: skip
_KEYS: Final = _VARIABLES if os.name == "nt" else tuple(map(os.fsencode, _VARIABLES))


def _settings_of_environment() -> tuple[object, ...]:
    """Return the variables that `cache_settings` depends on, only to compare them.

    It reads the table of os.environ: os.environ itself takes 1 to 3 µs a variable.
    """
    # An attribute of CPython; without it, the public way.
    table: Mapping[str | bytes, object] | None = getattr(os.environ, "_data", None)
    if table is None:
        return tuple(map(os.environ.get, _VARIABLES))
    return tuple(map(table.get, _KEYS))


# One entry: the present environment's. Reading the settings takes 15 µs, comparing them 0.5 µs.
@functools.lru_cache(maxsize=1)
def _present(_: tuple[object, ...]) -> ImageCache:
    return _default(*cache_settings())


@functools.lru_cache(maxsize=4)
def _default(folder: Path | None, max_bytes: int) -> ImageCache:
    return ImageCache(folder, max_bytes=max_bytes)
