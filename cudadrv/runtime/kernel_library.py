"""`KernelLibrary`: the kernels of a package, compiled when they are first taken."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

import ptx
from ptx.ordinary_files import with_line_feeds

from .. import border
from ..errors import ArgumentValueError
from ..launch.module_and_kernel import Kernel, Module
from ..stream import Context
from .module_cache import PtxModuleCache

KernelSource: TypeAlias = str | Callable[[], str] | Traversable
"""CUDA C++, a function that makes it, or a file: a `Path`, or one of `importlib.resources`."""

Headers: TypeAlias = Mapping[str, KernelSource] | Traversable
"""Headers by the names that `#include` has, or a folder: a `Path`, or of `importlib.resources`."""

_MOST_AT_ONCE: Final = 8  # compilations of `prewarm`
_PLAIN: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """A source of a library.

    Attributes:
        text: CUDA C++, or what reads or makes it.
        folder: where its headers are searched first; None where it is no file of the system.
    """

    text: str | Callable[[], str]
    folder: Path | None = None

    def read(self) -> str:
        """Return the text, read or made now."""
        return self.text() if callable(self.text) else self.text


class KernelLibrary:
    """The kernels of a package: CUDA C++ sources, compiled when a kernel is first taken.

    Hold it in a global. Each source is read and compiled once, and loaded once a context. A
    template instance that is not declared is compiled by itself when it is first taken, and cached
    like the others. Threads that call at once wait for one compilation. A forked child, another
    device and an emulator session, such as that of each test, load modules of their own.

    Args:
        sources: CUDA C++ by label, such as ``{"scale.cu": files("scaler") / "scale.cu"}``. A label
            names the source in messages. A file is read when it is needed; the folder of a `Path`
            is searched first for headers that it includes.
        options: how to compile; a target left open is the context's.
        instances: by label, the template instances, and kernels of a namespace, to compile
            together with the source, such as ``{"scale.cu": ["scale<float>", "scale<double>"]}``.
        headers: of all sources: by include name, such as ``{"sum.h": files("scaler") / "sum.h"}``,
            or the folder that has them, such as ``files("scaler") / "include"``. They are read with
            the first source. The text files of a folder that is no `Path`, as in a zip file, are
            read all.
    """

    __slots__ = (
        "__weakref__", "_caches", "_found", "_headers", "_instances", "_label_of", "_only_label",
        "_options", "_sources", "_texts_of_headers",
    )  # fmt: skip

    def __init__(
        self,
        sources: Mapping[str, KernelSource],
        options: ptx.CompileOptions | None = None,
        *,
        instances: Mapping[str, Sequence[str]] | None = None,
        headers: Headers | None = None,
    ) -> None:
        border.instance_of("KernelLibrary: sources", sources, Mapping)
        border.optional("KernelLibrary: options", options, ptx.CompileOptions)
        border.optional("KernelLibrary: instances", instances, Mapping)
        if not sources:
            raise ArgumentValueError("KernelLibrary: sources has no source")
        self._options = options or ptx.CompileOptions()
        self._sources = {
            border.text("KernelLibrary: a label", label): _source(source)
            for label, source in sources.items()
        }
        self._headers = _headers(headers)
        self._texts_of_headers: dict[str, str] | None = None
        self._only_label = next(iter(self._sources)) if len(self._sources) == 1 else ""
        self._instances: dict[str, tuple[str, ...]] = dict.fromkeys(self._sources, ())
        for label, names in (instances or {}).items():
            self._instances[self._label(label)] = border.sequence_of(
                f"KernelLibrary: instances of {label}", names, str
            )
        declared = [(name, label) for label in self._sources for name in self._instances[label]]
        files = [(PurePosixPath(label).stem, label) for label in self._sources]
        # The label of the source that alone has the name of a kernel, or declares an instance.
        self._label_of = _single(files) | _single(declared)
        # The cache of a label and of the one instance that is not declared; "" for the others.
        self._caches: dict[tuple[str, str], PtxModuleCache] = {}
        # The cache in which the kernel of a label and a name was found.
        self._found: dict[tuple[str, str], PtxModuleCache] = {}

    def __repr__(self) -> str:
        return f"<KernelLibrary of {', '.join(self._sources)}>"

    def kernel(self, context: Context, name: str, source: str | None = None) -> Kernel:
        """Return a kernel on a context; the first call compiles and loads what is missing.

        Args:
            context: of the device that runs it.
            name: the kernel's, or a template instance as C++ writes it: "scale<float>".
            source: the label of its source; None if there is one, if one declares the instance, or
                if one has the kernel's name: "scale.cu" for "scale" and "scale<float>".

        Raises:
            ArgumentValueError: no source has the label, or there are several and none is given.
            DriverCallFailed: the source does not compile or load. It is the `CompileError` or the
                `CudaError` of the fault, too.
            KernelNotFoundError: the source has no such kernel.
            OSError: the file of the source, or of a header, cannot be read.
            RuntimeDependencyUnavailable: NVRTC is not installed.
        """
        if source is None and not self._only_label and name.__class__ is str:
            labels = self._label_of
            source = labels.get(name) or labels.get(name.partition("<")[0])
        label = self._only_label if source is None else source
        if label.__class__ is str and name.__class__ is str:
            cache = self._found.get((label, name))
            if cache is not None:
                return cache.get_or_compile(context, label, self._sources[label].text).kernel(name)
        border.text("KernelLibrary.kernel: name", name)
        if source is None and not label:
            raise self._no_label_of(name)
        return self._find(context, self._label(source), name)

    def module(self, context: Context, source: str | None = None) -> Module:
        """Return the module of a source and its declared instances, such as for its variables.

        The arguments and errors are those of `kernel`.
        """
        return self._load(context, self._label(source))

    def prewarm(self, *contexts: Context) -> None:
        """Compile all sources, and load them on contexts; also instances that were taken before.

        Sources are compiled side by side. What a cache has is not compiled again.

        Raises:
            DriverCallFailed: the first of the sources that do not compile or load.
            OSError: the file of a source, or of a header, cannot be read.
            RuntimeDependencyUnavailable: NVRTC is not installed.
        """
        for context in contexts:
            border.instance_of("KernelLibrary.prewarm: contexts", context, Context)
        labels = {self._cache(label): label for label in self._sources}
        labels.update({cache: label for (label, _), cache in tuple(self._found.items())})
        with ThreadPoolExecutor(_MOST_AT_ONCE, "cudadrv prewarm") as threads:
            loads = [
                threads.submit(cache.get_or_compile, context, label, self._sources[label].text)
                for cache, label in labels.items()
                for context in contexts
            ]
        for load in loads:
            load.result()

    def clear(self) -> None:
        """Forget modules and texts: the next call reads, compiles and loads again.

        Kernels that were taken stay usable. A source that has not changed comes from the cache on
        disk. It is for tests that change a source.
        """
        self._caches, self._found, self._texts_of_headers = {}, {}, None

    def _find(self, context: Context, label: str, name: str) -> Kernel:
        if name in self._instances[label] or _PLAIN.fullmatch(name):
            module = self._load(context, label)
            if name in self._instances[label] or name in module.kernel_names:
                self._found[label, name] = self._cache(label)
                return module.kernel(name)
            # It is a kernel without extern "C", or there is none of the name.
            try:
                self._load(context, label, name)
            except ptx.CompileError:
                return module.kernel(name)  # raises, with the names that exist
        kernel = self._load(context, label, name).kernel(name)
        self._found[label, name] = self._cache(label, name)
        return kernel

    def _load(self, context: Context, label: str, instance: str = "") -> Module:
        cache = self._cache(label, instance)
        return cache.get_or_compile(context, label, self._sources[label].text)

    def _cache(self, label: str, instance: str = "") -> PtxModuleCache:
        """Return the cache of a source with its declared instances, or with one other instance."""
        cache = self._caches.get((label, instance))
        if cache is None:
            options, source_folder = self._options, self._sources[label].folder
            headers_folder = self._headers if isinstance(self._headers, Path) else None
            folders = tuple(each for each in (source_folder, headers_folder) if each is not None)
            if folders:
                paths = (*folders, *options.include_paths)
                options = dataclasses.replace(options, include_paths=paths)
            names = (instance,) if instance else self._instances[label]
            new = PtxModuleCache(options, name_expressions=names, headers=self._header_texts())
            cache = self._caches.setdefault((label, instance), new)
        return cache

    def _header_texts(self) -> dict[str, str]:
        """Return the texts of headers that are no files below a `Path`; the first call reads them.

        Raises:
            OSError: the folder, or a file, cannot be read.
        """
        texts = self._texts_of_headers
        if texts is None:
            headers = self._headers
            if isinstance(headers, Mapping):
                texts = {name: source.read() for name, source in headers.items()}
            elif not headers.is_dir():
                raise NotADirectoryError(
                    errno.ENOTDIR, "KernelLibrary: headers is no folder", str(headers)
                )
            else:
                texts = {} if isinstance(headers, Path) else dict(_texts_below(headers))
            self._texts_of_headers = texts
        return texts

    def _no_label_of(self, name: str) -> ArgumentValueError:
        """Return the error for a name without a source that belongs to no source, or to several."""
        from difflib import get_close_matches  # 7 ms, only for an error

        known = {each for names in self._instances.values() for each in names}
        known.update(PurePosixPath(label).stem for label in self._sources)
        close = get_close_matches(name, known, 1)
        if close in ([name], [name.partition("<")[0]]):
            found = "several sources have"
        else:
            found = "none of several sources declares"
        hint = f"\n  did you mean {close[0]!r}?" if close and close[0] not in name else ""
        return ArgumentValueError(
            f"KernelLibrary: {found} {border.shown(name)}, and source is not given"
            f"\n  give one of {', '.join(self._sources)}{hint}"
        )

    def _label(self, source: str | None) -> str:
        """Return the label of a source that a user names; None is the only one.

        Raises:
            ArgumentValueError: there is none of this label, or there are several.
        """
        if source is None:
            if not self._only_label:
                raise ArgumentValueError(
                    "KernelLibrary: source is not given, and there are several"
                    f"\n  give one of {', '.join(self._sources)}"
                )
            return self._only_label
        if border.text("KernelLibrary: source", source) not in self._sources:
            raise ArgumentValueError(
                f"KernelLibrary: no source has the label {border.shown(source)}"
                f"\n  the sources are {', '.join(self._sources)}"
            )
        return source


def _single(labels: list[tuple[str, str]]) -> dict[str, str]:
    """Return the labels of the names that occur once."""
    count = Counter(name for name, _ in labels)
    return {name: label for name, label in labels if count[name] == 1}


def _headers(headers: Headers | None) -> Mapping[str, _Source] | Traversable:
    """Return checked headers; a path is absolute from here on."""
    if headers is None:
        return {}
    if isinstance(headers, Path):
        return headers.absolute()
    if isinstance(headers, Traversable):
        return headers
    border.instance_of("KernelLibrary: headers", headers, Mapping)
    return {
        border.text("KernelLibrary: an include name", name): _source(source)
        for name, source in headers.items()
    }


def _texts_below(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names below a folder and the texts of its files, but for those that are no text."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _texts_below(entry, f"{prefix}{entry.name}/")
            continue
        content = entry.read_bytes()
        with contextlib.suppress(UnicodeDecodeError):
            if b"\0" not in content:
                yield prefix + entry.name, content.decode("utf-8")


def _text_of(file: Path | Traversable) -> str:
    return with_line_feeds(file.read_bytes().decode("utf-8"))


def _source(source: KernelSource) -> _Source:
    if isinstance(source, Path):
        path = source.absolute()
        return _Source(partial(_text_of, path), path.parent)
    if isinstance(source, Traversable):  # of a package that is no folder, such as a zip file
        return _Source(partial(_text_of, source))
    border.source("KernelLibrary: a source", source)
    return _Source(source)
