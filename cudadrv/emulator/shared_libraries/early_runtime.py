"""`cuda.bindings.runtime` in a process of `emulate` whose emulator has not started yet.

The first call of one of its functions starts the emulator, which replaces functions of the module
(`runtime_module.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

NAME: Final = "cuda.bindings.runtime"


class EarlyRuntime(MetaPathFinder):
    """Finds the module as ever, and lets its functions start the emulator."""

    def __init__(self, start: Callable[[], object]) -> None:
        self._start = start

    def install(self) -> None:
        """Find the module from now on."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's usual spec, with a loader that wraps the functions."""
        if fullname != NAME:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _WrappingLoader(spec.loader, self._start)
        return spec


class _WrappingLoader(Loader):
    """A loader that wraps the functions of another loader's module."""

    def __init__(self, loader: Loader, start: Callable[[], object]) -> None:
        self._loader = loader
        self._start = start

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module with the other loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module with the other loader, then wrap its functions."""
        self._loader.exec_module(module)
        for name in runtime_names(module):
            setattr(module, name, _starting(self._start, module, name, getattr(module, name)))


def runtime_names(module: ModuleType) -> list[str]:
    """Return the names of the runtime's functions in the module."""
    return [
        name
        for name, value in list(vars(module).items())
        if name.startswith("cuda") and callable(value) and not isinstance(value, type)
    ]


def _starting(
    start: Callable[[], object], module: ModuleType, name: str, real: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function that starts the emulator, and calls what the module has then."""

    def call(*arguments: object, **named: object) -> object:
        start()
        now = getattr(module, name)
        return (real if now is call else now)(*arguments, **named)

    call.__name__, call.__doc__ = name, real.__doc__
    return call
