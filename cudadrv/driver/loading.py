"""Loads the CUDA driver as a `DriverApi`, with the errors of loading and of missing functions."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from typing import Final, Never, ParamSpec, TypeVar, cast

from ..errors import CudaError, DriverLoadError, DriverNotFoundError, DriverSymbolMissingError
from ._api import CUresult, driver as bindings
from .driver_api import FUNCTIONS, DriverApi
from .driver_log import DriverLog
from .functions import flagged

_P = ParamSpec("_P")
_R = TypeVar("_R")


_NEWEST_HOT: Final = 12000  # the CUDA version that has all hot functions
_LIBRARY: Final = "libcuda.so.1"
# Not in `DriverApi`: errors of the emulator have their text already.
_LOG: Final = ("Current", "DumpToMemory")


def translated(function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call, with a binding's own exceptions typed: a missing symbol, an unknown result."""
    try:
        return function(*args, **kwargs)
    except (KeyError, ValueError) as error:
        if "CUresult" not in str(error):
            raise
        raise CudaError(
            f"the driver returned a result that cuda-bindings does not know ({error}): "
            "update cuda-python",
            call=function.__name__,
        ) from error
    except RuntimeError as error:
        # Forty modules, which many versions of cuda.bindings import only to find NVRTC.
        from cuda.pathfinder import DynamicLibNotFoundError

        # Every driver has cuInit; older bindings report only that they did not find it.
        if isinstance(error, DynamicLibNotFoundError) or function.__name__ == "cuInit":
            raise _driver_not_loaded(error) from error
        raise DriverSymbolMissingError(
            f"{function.__name__} is not in the installed driver ({error}): update the driver"
        ) from error


def _lacked(name: str, *args: object) -> Never:
    """Raise for a function that the installed binding does not have; stands in for it."""
    raise DriverSymbolMissingError(
        f"{name} is not in cuda-bindings of CUDA {bindings.CUDA_VERSION // 1000}."
        f"{bindings.CUDA_VERSION % 1000 // 10}: update cuda-python"
    )


def driver_fault() -> str:
    """Return the system loader's error for a driver library that exists but cannot be loaded.

    It is empty if there is no such file, or if the loader does not name it.
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
    """Return the error for a binding that found no driver, or could not load it."""
    fault = driver_fault()
    if fault:
        return DriverLoadError(
            f"the CUDA driver library was found, but does not load\n  {fault}\n"
            "  install the NVIDIA driver again or remove this file from the library path; "
            "or run on the emulator: set CUDADRV_DRIVER=emulator",
            reason=fault,
        )
    first_line = str(error).partition("\n")[0]
    return DriverNotFoundError(
        "no CUDA driver was found\n  install the NVIDIA driver, or run on the emulator: set "
        f"CUDADRV_DRIVER=emulator or call cudadrv.emulator.use()\n  (the loader said: {first_line})"
    )


class _Functions:
    """Driver functions as attributes, which Python reads faster than those of a namespace.

    Attributes:
        driver_log: the driver's reasons of failures; None if the binding cannot read them.
    """

    driver_log: DriverLog | None = None


def _has(name: str) -> bool:
    """Return whether the binding and the installed driver are known to have a function."""
    try:
        code, address, _ = bindings.cuGetProcAddress(name.encode(), _NEWEST_HOT, 0)
    except (RuntimeError, KeyError, ValueError):  # missing here, or an unknown result
        return False
    return not code and bool(int(address)) and hasattr(bindings, name)


def load_cuda() -> DriverApi:
    """Return cuda.bindings.driver with the names and signatures of 13, whatever its version."""
    renamed = flagged("suffixed") if bindings.CUDA_VERSION < 13000 else {}
    hot = flagged("hot")
    functions = _Functions()

    def init(flags: int) -> tuple[CUresult]:
        result = translated(bindings.cuInit, flags)
        for name in hot:
            if _has(name):
                setattr(functions, name, getattr(bindings, name))
        return result

    for name in FUNCTIONS:
        symbol = renamed[name].symbol if name in renamed else name
        function = getattr(bindings, symbol, None) or partial(_lacked, name)
        setattr(functions, name, init if name == "cuInit" else partial(translated, function))
    current, dump = (getattr(bindings, f"cuLogs{suffix}", None) for suffix in _LOG)
    if current is not None and dump is not None:
        functions.driver_log = DriverLog(current, dump)
    # A namespace filled at run time cannot be checked against a protocol;
    # `_module_satisfies_the_protocol` checks the module that fills it.
    return cast(DriverApi, functions)


def _module_satisfies_the_protocol() -> DriverApi:
    """Check, for the type checker alone, that the module itself is a `DriverApi`."""
    return bindings
