"""`cuda.bindings.runtime` on the emulator: a façade of its documented functions over the driver.

The runtime itself does not run on the emulator (`queries.py`), and is linked into that module. So
the module's own functions are replaced, either now or when it is loaded. If a thread has no context
they use the primary one of device 0, as the runtime does. Their codes are the driver's (CUDA
Runtime API, "Interactions with the CUDA Driver API", cudaError_t). A function that the façade lacks
raises an error with its name.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from ...driver._api import CUresult, driver
from ..emulator import Emulator
from .early_runtime import NAME, runtime_names
from .runtime_functions import FUNCTIONS, Function, Results

FACADE: Final = "the façade of cuda.bindings.runtime on cudadrv's emulator"
_DEINITIALIZED: Final = int(CUresult.CUDA_ERROR_DEINITIALIZED)
_UNKNOWN: Final = int(CUresult.CUDA_ERROR_UNKNOWN)


class RuntimeModule(MetaPathFinder):
    """The replaced functions; one object per process, as libraries keep the module."""

    def __init__(self) -> None:
        self.api: Emulator | None = None
        self._module: ModuleType | None = None
        self._thread = threading.local()

    def use(self, api: Emulator) -> None:
        """Let the functions call this emulator."""
        self.api = api
        module = sys.modules.get(NAME)
        if module is not None:
            self.replace(module)
        elif self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def leave(self) -> None:
        """Let the functions call no emulator."""
        self.api = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's usual spec, with a loader that replaces the functions."""
        if fullname != NAME:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _ReplacingLoader(spec.loader, self)
        return spec

    def replace(self, module: ModuleType) -> None:
        """Replace the functions of the module, once."""
        if self._module is module:
            return
        self._module = module
        module.__doc__ = f"{FACADE}.\n\n{module.__doc__}"
        for name in runtime_names(module):
            found = FUNCTIONS.by_name.get(name)
            real = getattr(module, name)
            replaced = _absent(name) if found is None else self._function(module, real, *found)
            replaced.__name__ = name
            replaced.__doc__ = f"{name} of {FACADE}."
            setattr(module, name, replaced)
        for name, clears in (("cudaGetLastError", True), ("cudaPeekAtLastError", False)):
            setattr(module, name, self._last_error(module, clears=clears))

    def _function(
        self, module: ModuleType, real: Callable[..., Any], values: int, function: Function
    ) -> Callable[..., Results]:
        names = _parameter_names(real)

        def call(*arguments: object, **named: object) -> Results:
            if named:
                arguments = *arguments, *[named.pop(n) for n in names[len(arguments) :]]
            if len(arguments) != len(names) or named:
                raise TypeError(f"{real.__name__} takes {', '.join(names) or 'no arguments'}")
            results: Results = (_DEINITIALIZED,)
            if self.api is not None:
                driver.cuInit(0)
                results = function(module, *arguments)
            code, *found = results
            if code:
                found = [None] * values
            error = _error(module, int(code))
            if code and error is not module.cudaError_t.cudaErrorNotReady:
                self._thread.last = error
            return error, *found

        return call

    def _last_error(self, module: ModuleType, *, clears: bool) -> Callable[[], Results]:
        def last() -> Results:
            error = getattr(self._thread, "last", module.cudaError_t.cudaSuccess)
            if clears:
                self._thread.last = module.cudaError_t.cudaSuccess
            return (error,)

        return last


def _parameter_names(real: Callable[..., Any]) -> list[str]:
    """Return the names of a function's parameters, from the signature that begins its docstring.

    A parameter is `name`, `type of C name` or either with an annotation.
    """
    parameters = (real.__doc__ or "").partition("\n")[0].partition("(")[2].rpartition(")")[0]
    parts = re.sub(r"\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]", "", parameters).split(",")
    return [part.partition(":")[0].split()[-1].lstrip("*") for part in parts if part.strip()]


def _error(module: ModuleType, code: int) -> Any:  # a cudaError_t
    try:
        return module.cudaError_t(code)
    except ValueError:
        return module.cudaError_t(_UNKNOWN)


def _absent(name: str) -> Callable[..., Results]:
    """Return a function that the façade lacks."""

    def call(*_: object, **__: object) -> Results:
        raise NotImplementedError(
            f"{NAME}.{name}: {FACADE} lacks it\n  call the function of cuda.bindings.driver instead"
        )

    return call


class _ReplacingLoader(Loader):
    """A loader that replaces the functions of another loader's module."""

    def __init__(self, loader: Loader, runtime: RuntimeModule) -> None:
        self._loader = loader
        self._runtime = runtime

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module with the other loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module with the other loader, then replace its functions."""
        self._loader.exec_module(module)
        self._runtime.replace(module)
