"""Kernel sources by name, for `CudaClient.preload_modules` to load before the first use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import ptx

from .. import border
from ..errors import CudadrvError, InvalidValueError
from ..launch.module_and_kernel import Module
from ..runtime.module_cache import PtxModuleCache, Source
from ..stream import Context


class UnknownModuleError(CudadrvError):
    """No source is registered under a name.

    Attributes:
        name: the unknown name.
        available: the names that are registered.
    """

    def __init__(self, name: str, available: tuple[str, ...]) -> None:
        super().__init__(
            f"no module is registered as {name!r}; there are: {', '.join(available) or 'none'}. "
            "Register it first: cudadrv.register_module(name, source)"
        )
        self.name = name
        self.available = available


@dataclass(frozen=True, slots=True)
class _RegisteredModule:
    """A source, how it is compiled, and its module on each context."""

    source: Source
    options: ptx.CompileOptions | None
    name_expressions: tuple[str, ...]
    cache: PtxModuleCache


class ModuleRegistry:
    """Sources by name; each is compiled once and loaded once a context."""

    def __init__(self) -> None:
        self._entries: dict[str, _RegisteredModule] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The registered names, in the order of registration."""
        return tuple(self._entries)

    def register(
        self,
        name: str,
        source: Source,
        options: ptx.CompileOptions | None = None,
        *,
        name_expressions: tuple[str, ...] = (),
    ) -> None:
        """Register a source; nothing is compiled yet.

        Args:
            name: the name of the module.
            source: CUDA C++, or a function that makes it when it is needed.
            options: how to compile; a target left open is the context's.
            name_expressions: template instances by which kernels are found.

        Raises:
            InvalidValueError: the name is registered with another source or other options.
        """
        border.text("register_module: name", name)
        border.source("register_module: source", source)
        cache = PtxModuleCache(options, name_expressions=name_expressions)
        entry = _RegisteredModule(source, options, name_expressions, cache)
        known = self._entries.setdefault(name, entry)
        same = (known.source, known.options, known.name_expressions)
        if known is not entry and same != (source, options, name_expressions):
            raise InvalidValueError(f"registering {name!r}, which stands for another source")

    def load(self, name: str, context: Context) -> Module:
        """Return the module of a name on a context; the first call compiles and loads it.

        Raises:
            UnknownModuleError: nothing is registered under the name.
            DriverCallFailed: it does not compile or load.
            RuntimeDependencyUnavailable: NVRTC is not installed.
        """
        entry = self._entries.get(border.instance("a module's name", name, str))
        if entry is None:
            raise UnknownModuleError(name, self.names)
        return entry.cache.get_or_compile(context, name, entry.source)


# The process's registry: filled by packages when they are imported.
registry: Final = ModuleRegistry()


def register_module(
    name: str,
    source: Source,
    options: ptx.CompileOptions | None = None,
    *,
    name_expressions: tuple[str, ...] = (),
) -> None:
    """Register a source for every client, as `ModuleRegistry.register` does."""
    registry.register(name, source, options, name_expressions=name_expressions)
