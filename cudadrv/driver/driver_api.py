"""`DriverApi`, what the driver and the emulator have in common, and the driver itself as one.

Each function returns what cuda.bindings returns, a tuple whose first item is the CUresult; the C
declarations are in the CUDA Driver API manual under the same names.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from typing import Final, Never, ParamSpec, Protocol, TypeVar, cast

from ..errors import CudaError, DriverLoadError, DriverNotFoundError, DriverSymbolMissingError
from ._api import CUresult, driver as bindings
from ._functions.array_functions import ArrayFunctions
from ._functions.context_functions import ContextFunctions
from ._functions.copy_functions import CopyFunctions
from ._functions.device_functions import DeviceFunctions
from ._functions.graph_functions import GraphFunctions
from ._functions.memory_functions import MemoryFunctions
from ._functions.module_functions import ModuleFunctions
from ._functions.stream_functions import StreamFunctions

_P = ParamSpec("_P")
_R = TypeVar("_R")


class DriverApi(
    DeviceFunctions,
    ContextFunctions,
    StreamFunctions,
    MemoryFunctions,
    CopyFunctions,
    ArrayFunctions,
    ModuleFunctions,
    GraphFunctions,
    Protocol,
):
    """The driver functions in use, with the signatures of cuda.bindings 13."""


FUNCTIONS: Final[tuple[str, ...]] = tuple(
    name for part in DriverApi.__mro__ for name in vars(part) if name.startswith("cu")
)
"""The names of the functions."""

# In 12.9 these names carry the signatures that 13 gives the plain ones. The table is fixed: the
# highest suffix is not always the newest signature.
_RENAMED_BEFORE_13: Final = {
    "cuCtxCreate": "cuCtxCreate_v4",
    "cuGraphAddDependencies": "cuGraphAddDependencies_v2",
    "cuGraphAddNode": "cuGraphAddNode_v2",
    "cuGraphGetEdges": "cuGraphGetEdges_v2",
    "cuGraphRemoveDependencies": "cuGraphRemoveDependencies_v2",
    "cuStreamGetCaptureInfo": "cuStreamGetCaptureInfo_v3",
    "cuStreamUpdateCaptureDependencies": "cuStreamUpdateCaptureDependencies_v2",
    "cuMemAdvise": "cuMemAdvise_v2",
    "cuMemPrefetchAsync": "cuMemPrefetchAsync_v2",
}

# Called on the paths where a microsecond counts, so taken from the module as they are, where the
# driver has them.
_HOT: Final = frozenset(
    {
        "cuLaunchKernelEx", "cuGraphLaunch", "cuMemAllocAsync", "cuMemFreeAsync",
        "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync",
        "cuEventRecord", "cuEventSynchronize", "cuStreamSynchronize", "cuStreamWaitEvent",
        "cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent",
        "cuPointerGetAttributes",
    }
)  # fmt: skip
_NEWEST_HOT: Final = 12000  # the CUDA version that has them all
_LIBRARY: Final = "libcuda.so.1"


def _translated(function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call, with a binding's own exceptions typed: a missing symbol, an unknown result."""
    try:
        return function(*args, **kwargs)
    except (KeyError, ValueError) as error:
        if "CUresult" not in str(error):
            raise
        raise CudaError(
            f"the driver answered a result that cuda-bindings does not know ({error}): "
            "update cuda-python",
            call=function.__name__,
        ) from error
    except RuntimeError as error:
        # Forty modules, which many versions of cuda.bindings import only to look for NVRTC.
        from cuda.pathfinder import DynamicLibNotFoundError

        # Every driver has cuInit; older bindings say no more than that they did not find it.
        if isinstance(error, DynamicLibNotFoundError) or function.__name__ == "cuInit":
            raise _driver_not_loaded(error) from error
        raise DriverSymbolMissingError(
            f"{function.__name__} is not in the installed driver ({error}): update the driver"
        ) from error


def _lacked(name: str, *args: object) -> Never:
    """What stands for a function that the installed binding does not have."""
    raise DriverSymbolMissingError(
        f"{name} is not in cuda-bindings of CUDA {bindings.CUDA_VERSION // 1000}."
        f"{bindings.CUDA_VERSION % 1000 // 10}: update cuda-python"
    )


def driver_fault() -> str:
    """Return what the system's loader says of a driver library that it finds and cannot load.

    It is empty where there is no such file, and where the loader does not say which it is.
    """
    if os.name == "nt":
        return ""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError as error:
        text = str(error)
        return "" if _LIBRARY in text and "No such file" in text else text
    return ""


def _driver_not_loaded(error: Exception) -> DriverNotFoundError | DriverLoadError:
    """The error for a binding that found no driver, or could not load it."""
    fault = driver_fault()
    if fault:
        return DriverLoadError(
            f"the CUDA driver library was found, but does not load\n  {fault}\n"
            "  install the NVIDIA driver again or take this file out of the library path; "
            "or run on the emulator: set CUDADRV_DRIVER=emulator",
            reason=fault,
        )
    first_line = str(error).partition("\n")[0]
    return DriverNotFoundError(
        "no CUDA driver was found\n  install the NVIDIA driver, or run on the emulator: set "
        f"CUDADRV_DRIVER=emulator or call cudadrv.emulator.use()\n  (the loader said: {first_line})"
    )


class _Functions:
    """Driver functions as attributes, which Python reads faster than those of a namespace."""


def _has(name: str) -> bool:
    """Whether the binding and the installed driver are known to have a function."""
    try:
        code, address, _ = bindings.cuGetProcAddress(name.encode(), _NEWEST_HOT, 0)
    except (RuntimeError, KeyError, ValueError):  # it lacks this one, or answers what is not known
        return False
    return not code and bool(int(address)) and hasattr(bindings, name)


def load_cuda() -> DriverApi:
    """cuda.bindings.driver with the names and signatures of 13, whatever its version."""
    renamed = _RENAMED_BEFORE_13 if bindings.CUDA_VERSION < 13000 else {}
    functions = _Functions()

    def init(flags: int) -> tuple[CUresult]:
        result = _translated(bindings.cuInit, flags)
        for name in _HOT:
            if _has(name):
                setattr(functions, name, getattr(bindings, name))
        return result

    for name in FUNCTIONS:
        function = getattr(bindings, renamed.get(name, name), None) or partial(_lacked, name)
        setattr(functions, name, init if name == "cuInit" else partial(_translated, function))
    # What is filled at run time cannot be checked against a protocol;
    # `_module_satisfies_the_protocol` checks the module that fills it.
    return cast(DriverApi, functions)


def _module_satisfies_the_protocol() -> DriverApi:
    """For the type checker alone: the module itself is a `DriverApi`."""
    return bindings
