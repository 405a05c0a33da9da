"""Every error of cudadrv: `CudaError` (one class a CUresult), `GpuError`, and the library's own.

The roots, and what cudadrv raises by itself, are in `base`. The class of a result is made when it
is first named or its result answered: a hundred of them would cost each start two milliseconds.
Each name stands in its class's module alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .base import *  # noqa: F403
from .base import CudadrvError

if TYPE_CHECKING:
    from .capture import *  # noqa: F403
    from .execution import *  # noqa: F403
    from .gpu import *  # noqa: F403
    from .loading import *  # noqa: F403
    from .setup import *  # noqa: F403
    from .target import *  # noqa: F403

_OTHERS = ("setup", "loading", "execution", "capture", "gpu", "target")
"""The modules of the classes that are made when they are named."""


if not TYPE_CHECKING:  # a type checker sees what the modules above have, and nothing else

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return __dir__()
        if not name.startswith("_"):
            for module in _OTHERS:
                found = vars(import_module(f"{__name__}.{module}")).get(name)
                if _is_error(found):
                    globals()[name] = found
                    return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Every error, made or not."""
    known = dict(globals())
    for module in _OTHERS:
        known |= vars(import_module(f"{__name__}.{module}"))
    return sorted(name for name, value in known.items() if _is_error(value))


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, CudadrvError)
