"""The runtime layer, after gam: available devices, dispatch thresholds, and set-up of backends."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .policy import (
        PirlsCurvature as PirlsCurvature,
        PirlsFamily as PirlsFamily,
        PirlsLoopAdmission as PirlsLoopAdmission,
        RemlOuterAdmission as RemlOuterAdmission,
    )
else:
    # This file imports none of the package's: see `tests/pure/test_layers.py`.
    _AT_FIRST_USE = {
        "policy": "PirlsCurvature PirlsFamily PirlsLoopAdmission RemlOuterAdmission",
    }

    def __getattr__(name: str) -> object:
        for module, names in _AT_FIRST_USE.items():
            if name in names.split():
                value = getattr(import_module(f"{__name__}.{module}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *" ".join(_AT_FIRST_USE.values()).split()})
