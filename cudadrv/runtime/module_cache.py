"""Module caches: a source compiled once and loaded once a context, after gam's `PtxModuleCache`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar
from weakref import WeakKeyDictionary, ref

import ptx

from .. import border
from ..driver.driver_selection import Driver, current_or_none
from ..driver.locks import process_lock
from ..errors import (
    ArgumentValueError,
    ClosedError,
    CudadrvError,
    DriverCallFailed,
    ForkedProcessError,
    RuntimeDependencyUnavailable,
)
from ..launch.module_and_kernel import Module
from ..stream import Context

Source: TypeAlias = str | Callable[[], str]
"""CUDA C++, or a function that makes it, called only when it is needed."""

_K = TypeVar("_K", bound=Hashable)


class _Modules(dict[Context, Module]):
    """The modules of one cache on one driver, by context."""

    __slots__ = ("__weakref__",)


class _Loaded:
    """The modules that caches have loaded on one driver; they go with it, while a cache may stay.

    Attributes:
        by_cache: the modules of each cache, by context.
    """

    def __init__(self) -> None:
        self.by_cache: WeakKeyDictionary[PtxModuleCache, _Modules]
        self.by_cache = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class _LoadedSource:
    """The one source of a cache.

    Attributes:
        label: the label of the call that compiled it.
        source: the source as that call passed it, text or a function; the text for a key.
        text: the CUDA C++.
    """

    label: str
    source: Source
    text: str


class PtxModuleCache:
    """The module of one source, compiled on first use and cached.

    gam caches one module. This class caches one module a context, so that no device gets the
    module of another device. Use one cache for each source: another source raises an error.
    Threads that call at once wait for one compilation. A pickled cache contains the source and its
    compiled images, which are loaded where the cache is unpickled.

    Args:
        options: how to compile; a target left open is the context's.
        name_expressions: template instances by which kernels are found.
        headers: texts by include name, used in place of files, as for `ptx.compile`.
    """

    __slots__ = (
        "__weakref__", "_headers", "_held", "_images", "_key_text", "_last_modules", "_lock",
        "_name_expressions", "_options",
    )  # fmt: skip

    def __init__(
        self,
        options: ptx.CompileOptions | None = None,
        *,
        name_expressions: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        border.optional("PtxModuleCache: options", options, ptx.CompileOptions)
        self._options = options or ptx.CompileOptions()
        self._name_expressions = border.sequence_of(
            "PtxModuleCache: name_expressions", name_expressions, str
        )
        self._headers = _texts("PtxModuleCache: headers", headers)
        # Re-entrant: a finalizer in the middle of a compilation may need the module, too.
        self._lock = process_lock()
        self._held: _LoadedSource | None = None
        self._images: dict[ptx.Target, ptx.Image] = {}
        # What messages call the key that this is the cache of; empty for a cache of its own.
        self._key_text = ""
        # The modules on the driver that was used last. Weak: a cache may outlive a session.
        self._last_modules: Callable[[], _Modules | None] = _none

    def __reduce__(self) -> tuple[object, ...]:
        # The images are pickled, so that no other process compiles them again; modules are not.
        # A function that made the source may have no pickled form: its text goes along instead.
        source_held = self._held
        if source_held is not None:
            source_held = _LoadedSource(source_held.label, source_held.text, source_held.text)
        return _unpickled, (
            self._options,
            self._name_expressions,
            source_held,
            dict(self._images),
            self._key_text,
            self._headers,
        )

    def get(self, context: Context | None = None) -> Module | None:
        """Return the module of a context, or None; without a context the one that was loaded first.

        That is the first of the driver in use, so that an emulator session sees none of others.
        """
        if context is not None:
            border.instance_of("PtxModuleCache.get: context", context, Context)
            module = self._on(context.device.driver).get(context)
            return None if module is None or module.closed else module
        driver = current_or_none()
        # A copy: another thread may be adding one.
        modules = [] if driver is None else list(self._on(driver).values())
        return next((module for module in modules if not module.closed), None)

    def _on(self, driver: Driver) -> _Modules:
        """Return the modules on a driver, by context."""
        modules = driver.one_of(_Loaded).by_cache.setdefault(self, _Modules())
        self._last_modules = ref(modules)
        return modules

    def _module_on_last_driver(self, context: Context) -> Module | None:
        """Return the open module of a context, if its driver is the one that was used last."""
        modules = self._last_modules()
        if modules is None or context.__class__ is not Context:
            return None
        module = modules.get(context)
        return None if module is None or module.closed else module

    def get_or_compile(self, context: Context, label: str, source: Source) -> Module:
        """Return the module of a context; the first call compiles `source` and loads it.

        Later calls return the same module, and compare the source with the first one. That costs
        nothing for the same object. A function that is not the first one is called, and its text
        is compared.

        Args:
            context: where the module is loaded.
            label: the name of the source in messages, such as its file: "scaler/kernels.cu".
            source: CUDA C++, or a function that returns it.

        Raises:
            ArgumentValueError: the cache has the module of another source.
            DriverCallFailed: the source does not compile or does not load. It is the `CompileError`
                or the `CudaError` of the fault, too.
            RuntimeDependencyUnavailable: NVRTC is not installed.
        """
        module, loaded_source = self._module_on_last_driver(context), self._held
        if (
            module is not None
            and loaded_source is not None
            and label.__class__ is str
            and loaded_source.source == source
        ):
            return module
        border.instance_of("get_or_compile: context", context, Context)
        border.source("get_or_compile: source", source)
        return self._compile_or_get(context, border.text("get_or_compile: label", label), source)

    def _compile_or_get(self, context: Context, label: str, source: Source) -> Module:
        module = self.get(context)
        if module is not None:
            self._text(label, source)
            return module
        with self._lock:
            text = self._text(label, source)
            module = self.get(context)
            if module is None:
                image = self._image(context, label, text)
                try:
                    module = context.load_module(image)
                except (ClosedError, ForkedProcessError):
                    raise  # the context cannot be used, which is no fault of the driver
                except CudadrvError as error:
                    reason = f"{label} module load failed{self._key_text}: {error}"
                    raise DriverCallFailed.of(error, reason) from error
                # Only now: a source that fails may be corrected.
                # The function of a key is not called again, so it need not stay alive.
                shown = text if self._key_text else source
                self._hold(_LoadedSource(label, shown, text), image)
                self._forget_closed(context.device.driver)
                module = self._cached_module(context, module)
        return module

    def _text(self, label: str, source: Source) -> str:
        """Return the text of a source.

        Raises:
            ArgumentValueError: the cache holds another source.
        """
        loaded_source = self._held
        if loaded_source is not None and (
            loaded_source.source == source or (self._key_text and callable(source))
        ):
            return loaded_source.text
        text = source() if callable(source) else source
        self._check_same(label, text)
        return text

    def _check_same(self, label: str, text: str) -> None:
        loaded_source = self._held
        if loaded_source is not None and loaded_source.text != text:
            raise ArgumentValueError(
                f"get_or_compile: {border.shown(label)} has another source than this cache"
                f"\n  this cache holds the source of {border.shown(loaded_source.label)}"
                f"{self._key_text}"
                "\n  use one PtxModuleCache for each source, "
                "or a KeyedPtxModuleCache with a key for each source"
            )

    def _hold(self, loaded_source: _LoadedSource, image: ptx.Image) -> None:
        """Hold a source that was compiled and loaded, with its image."""
        if self._held is None:
            self._held = loaded_source
        # A finalizer may have loaded another source in the middle of this compilation.
        self._check_same(loaded_source.label, loaded_source.text)
        self._images.setdefault(image.target, image)

    def _cached_module(self, context: Context, module: Module) -> Module:
        """The module, kept; or the one that a finalizer had loaded in between."""
        modules = self._on(context.device.driver)
        while True:
            cached = modules.setdefault(context, module)
            if cached is module or not cached.closed:
                return cached
            modules.pop(context, None)

    def _image(self, context: Context, label: str, text: str) -> ptx.Image:
        try:
            options = self._options.for_target(
                self._options.target if self._options.target is not None else context.target,
                lineinfo=context.device.is_emulated,
            )
            assert options.target is not None  # for_target filled it in
            image = self._images.get(options.target)
            if image is None:
                name = label if label.endswith((".cu", ".cuh")) else f"{label}.cu"
                image = ptx.compile(
                    text,
                    options,
                    name=name,
                    name_expressions=self._name_expressions,
                    headers=self._headers or None,
                )
        except ptx.NvrtcNotFoundError as error:
            reason = f"{label} NVRTC compile failed{self._key_text}: {error}"
            raise RuntimeDependencyUnavailable.of(error, reason) from error
        except ptx.PtxError as error:
            reason = f"{label} NVRTC compile failed{self._key_text}: {error}"
            raise DriverCallFailed.of(error, reason) from error
        return image

    def _forget_closed(self, driver: Driver) -> None:
        """Drop the modules of closed contexts."""
        modules = self._on(driver)
        for former in tuple(modules):
            if former.closed:
                modules.pop(former, None)


class KeyedPtxModuleCache:
    """A `PtxModuleCache` for each source of a family, by a value that is baked into the source.

    A key stands for one source, its options and its template instances. Equal keys are one key, as
    in a dict: 2, 2.0 and Fraction(2).

    Args:
        options: how to compile the keys whose call passes none; a target left open is the
            context's.
        name_expressions: template instances by which the kernels are found, of the keys whose call
            passes none.
        headers: texts by include name, of the sources of all keys.
    """

    __slots__ = ("__weakref__", "_caches", "_headers", "_name_expressions", "_options")

    def __init__(
        self,
        options: ptx.CompileOptions | None = None,
        *,
        name_expressions: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._options = border.optional("KeyedPtxModuleCache: options", options, ptx.CompileOptions)
        self._name_expressions = border.sequence_of(
            "KeyedPtxModuleCache: name_expressions", name_expressions, str
        )
        self._headers = _texts("KeyedPtxModuleCache: headers", headers)
        self._caches: dict[Hashable, PtxModuleCache] = {}

    def __len__(self) -> int:
        return len(self._caches)

    def __reduce__(self) -> tuple[object, ...]:
        slots = {
            "_options": self._options,
            "_name_expressions": self._name_expressions,
            "_headers": self._headers,
            "_caches": dict(self._caches),
        }
        return KeyedPtxModuleCache, (), (None, slots)

    def get(self, key: Hashable, context: Context | None = None) -> Module | None:
        """The module of a key and context, or None."""
        border.optional("KeyedPtxModuleCache.get: context", context, Context)
        cache = self._caches.get(_key(key))
        return None if cache is None else cache.get(context)

    def get_or_compile(
        self,
        context: Context,
        key: _K,
        label: str,
        source: str | Callable[[_K], str],
        *,
        options: ptx.CompileOptions | None = None,
        name_expressions: Sequence[str] | None = None,
    ) -> Module:
        """Return the module of a key and context; the first call compiles `source` and loads it.

        Later calls return the same module. They do not call a function. They compare a text, and
        options and name expressions that they pass, with those of the first call.

        Args:
            context: where the module is loaded.
            key: the value that the source depends on: hashable, such as a number, text or a tuple.
            label: the name of the source in messages, such as its file: "scaler/kernels.cu".
            source: CUDA C++, or a function that returns it for the key. It is called once a key.
            options: how to compile the source of a new key; None is as the cache was made.
            name_expressions: template instances of a new key; None is as the cache was made.

        Raises:
            ArgumentValueError: under this key the cache has the module of another source, of other
                options or of other name expressions.
            DriverCallFailed: as `PtxModuleCache.get_or_compile`, with ``(key=…)`` in the text.
            RuntimeDependencyUnavailable: NVRTC is not installed.
        """
        try:
            cache = self._caches.get(key)
        except TypeError:
            _key(key)
            raise  # of the key's own comparison
        if cache is not None and label.__class__ is str:
            module, loaded_source = cache._module_on_last_driver(context), cache._held
            if (
                module is not None
                and loaded_source is not None
                and (callable(source) or (source.__class__ is str and source == loaded_source.text))
                and (options is None or options is cache._options)
                and (name_expressions is None or name_expressions == cache._name_expressions)
            ):
                return module
        border.instance_of("get_or_compile: context", context, Context)
        border.source("get_or_compile: source", source, 1)
        cache = self._cache(key, options, name_expressions)
        text = partial(source, key) if callable(source) else source
        return cache._compile_or_get(context, border.text("get_or_compile: label", label), text)

    def _cache(
        self,
        key: Hashable,
        options: ptx.CompileOptions | None,
        name_expressions: Sequence[str] | None,
    ) -> PtxModuleCache:
        """Return the cache of a key, made of these settings.

        Raises:
            ArgumentValueError: it was made of others.
        """
        border.optional("get_or_compile: options", options, ptx.CompileOptions)
        names: tuple[str, ...] | None = None
        if name_expressions is not None:
            names = border.sequence_of("get_or_compile: name_expressions", name_expressions, str)
        cache = self._caches.get(key)
        if cache is None:
            new = PtxModuleCache(
                options or self._options,
                name_expressions=self._name_expressions if names is None else names,
                headers=self._headers,
            )
            new._key_text = f" (key={border.shown(key)})"
            cache = self._caches.setdefault(key, new)
        for what, former, present in (
            ("options", cache._options, options),
            ("name expressions", cache._name_expressions, names),
        ):
            if present is not None and former != present:
                raise ArgumentValueError(
                    f"get_or_compile: this key was compiled with other {what}"
                    f"\n  key {border.shown(key)}: {border.shown(former)}"
                    f"\n  now: {border.shown(present)}"
                    f"\n  make the {what} a part of the key"
                )
        return cache


def _none() -> None:
    """Return None: the modules of a cache that has loaded none."""


def _unpickled(
    options: ptx.CompileOptions,
    name_expressions: tuple[str, ...],
    loaded_source: _LoadedSource | None,
    images: dict[ptx.Target, ptx.Image],
    key_text: str,
    headers: dict[str, str],
) -> PtxModuleCache:
    cache = PtxModuleCache(options, name_expressions=name_expressions, headers=headers)
    cache._key_text = key_text
    cache._held = loaded_source
    cache._images.update(images)
    return cache


def _texts(what: str, headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return a copy of the texts by include name.

    Raises:
        ArgumentTypeError: it is no mapping of text to text.
    """
    given = border.optional(what, headers, Mapping) or {}
    return {
        border.text(f"{what}: an include name", name): border.text(f"{what}: {name}", text)
        for name, text in given.items()
    }


def _key(key: Hashable) -> Hashable:
    """Return the key, which must be hashable.

    Raises:
        ArgumentTypeError: it has none.
    """
    try:
        hash(key)
    except TypeError as error:
        raise border.wrong_type("a module cache's key", key, "give a hashable value") from error
    return key
