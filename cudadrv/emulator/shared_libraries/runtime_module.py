"""Functions of the CUDA runtime that cuda.core and tests call, in `cuda.bindings.runtime`.

The runtime itself does not run on the emulator (`queries.py`), and is linked into that module. So
the module's own functions are replaced, either now or when it is loaded. If a thread has no context
they use the primary one of device 0, as the runtime does. Their codes are the driver's (CUDA
Runtime API, "Interactions with the CUDA Driver API", cudaError_t).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from ...driver._api import CUdevice, CUdeviceptr, CUresult
from ..emulator import Emulator

NAME: Final = "cuda.bindings.runtime"
_DEINITIALIZED: Final = int(CUresult.CUDA_ERROR_DEINITIALIZED)
_UNKNOWN: Final = int(CUresult.CUDA_ERROR_UNKNOWN)
_Results = tuple[Any, ...]  # a CUresult and its values


def _device_count(api: Emulator) -> _Results:
    return api.cuDeviceGetCount()


def _bus_id(api: Emulator, length: int, device: int) -> _Results:
    return api.cuDeviceGetPCIBusId(length, CUdevice(int(device)))


def _attribute(api: Emulator, attribute: Any, device: int) -> _Results:  # a cudaDeviceAttr
    return api.cuDeviceGetAttribute(attribute, CUdevice(int(device)))  # of the same number


def _set_device(api: Emulator, device: int) -> _Results:
    code, context = api.cuDevicePrimaryCtxRetain(CUdevice(int(device)))
    return (code,) if code else api.cuCtxSetCurrent(context)


def _in_context(api: Emulator) -> _Results:
    """Make sure that the thread has a context."""
    code, current = api.cuCtxGetCurrent()
    return (code,) if code or int(current) else _set_device(api, 0)


def _device(api: Emulator) -> _Results:
    code = _in_context(api)[0]
    if code:
        return code, None
    status, device = api.cuCtxGetDevice()
    return status, None if status else int(device)


def _synchronise(api: Emulator) -> _Results:
    code = _in_context(api)[0]
    return (code,) if code else api.cuCtxSynchronize()


def _allocate(api: Emulator, nbytes: int) -> _Results:
    code, address = _in_context(api)[0], None
    if not code:
        code, address = api.cuMemAlloc(nbytes)
    return code, None if code else int(address or 0)


def _free(api: Emulator, address: int) -> _Results:
    return api.cuMemFree(CUdeviceptr(int(address)))


def _allocate_host(api: Emulator, nbytes: int, flags: int) -> _Results:
    code = _in_context(api)[0]
    return (code, None) if code else api.cuMemHostAlloc(nbytes, flags)  # flags are the driver's


def _device_address(api: Emulator, address: int, flags: int) -> _Results:
    code, device_address = api.cuMemHostGetDevicePointer(int(address), flags)
    return code, None if code else int(device_address)


_FUNCTIONS: Final[dict[str, tuple[int, Callable[..., _Results]]]] = {
    "cudaDeviceGetAttribute": (1, _attribute),
    "cudaDeviceGetPCIBusId": (1, _bus_id),
    "cudaDeviceSynchronize": (0, _synchronise),
    "cudaFree": (0, _free),
    "cudaFreeHost": (0, lambda api, address: api.cuMemFreeHost(int(address))),
    "cudaGetDevice": (1, _device),
    "cudaGetDeviceCount": (1, _device_count),
    "cudaHostAlloc": (1, _allocate_host),
    "cudaHostGetDevicePointer": (1, _device_address),
    "cudaMalloc": (1, _allocate),
    "cudaSetDevice": (0, _set_device),
}
"""How many values each returns besides the code, and its function."""


class RuntimeModule(MetaPathFinder):
    """The replaced functions; one object per process, as libraries keep the module."""

    def __init__(self) -> None:
        self.api: Emulator | None = None
        self._module: ModuleType | None = None

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
        for name, (values, function) in _FUNCTIONS.items():
            if hasattr(module, name):
                setattr(module, name, self._function(module, values, function))

    def _function(
        self, module: ModuleType, values: int, function: Callable[..., _Results]
    ) -> Callable[..., _Results]:
        def call(*arguments: object) -> _Results:
            api = self.api
            results: _Results = (_DEINITIALIZED, *[None] * values)
            if api is not None:
                api.cuInit(0)
                results = function(api, *arguments)
            try:
                code = module.cudaError_t(int(results[0]))
            except ValueError:
                code = module.cudaError_t(_UNKNOWN)
            return (code, *results[1:])

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
