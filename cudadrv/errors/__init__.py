"""Every error of cudadrv: `CudaError` (one class a CUresult), `GpuError`, and the library's own.

The root classes and cudadrv's own errors are in `base`. The classes of results are made when one is
first named or returned by the driver: a hundred of them would cost each start two milliseconds.
Each name stands in its class's module alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .base import *  # noqa: F403
from .base import CudadrvError

if TYPE_CHECKING:
    from .gpu import *  # noqa: F403
    from .results import *  # noqa: F403
    from .target import *  # noqa: F403

_OTHERS = ("results", "gpu", "target")
"""The modules of the classes that are made when one is named."""


if not TYPE_CHECKING:  # a type checker sees the names of the modules above

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return __dir__()
        if not name.startswith("_"):
            for module in _OTHERS:
                error_class = vars(import_module(f"{__name__}.{module}")).get(name)
                if _is_error(error_class):
                    globals()[name] = error_class
                    return error_class
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names of all errors, loaded or not."""
    known = dict(globals())
    for module in _OTHERS:
        known |= vars(import_module(f"{__name__}.{module}"))
    return sorted(name for name, value in known.items() if _is_error(value))


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, CudadrvError)
