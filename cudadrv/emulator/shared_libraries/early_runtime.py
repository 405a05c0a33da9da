"""`cuda.bindings.runtime` in a process of `emulate` whose emulator has not started yet.

The first call of one of its functions starts the emulator, which replaces functions of the module
(`runtime_module.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

NAME: Final = "cuda.bindings.runtime"


class EarlyRuntime:
    """Finds the module as ever, and lets its functions start the emulator."""

    def __init__(self, start: Callable[[], object]) -> None:
        self._start = start

    def install(self) -> None:
        """Find the module from now on."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's usual spec, whose loader wraps the functions."""
        if fullname != NAME:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        loader = None if spec is None else spec.loader
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                for name in runtime_names(module):
                    real = getattr(module, name)
                    setattr(module, name, _starting(self._start, module, name, real))

            # A class of loaders would import `importlib.abc`: 10 ms.
            vars(loader)["exec_module"] = exec_module
        return spec


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
