"""Memory and streams of other libraries."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .reader import Reader as Reader, register as register
else:
    # This file imports none of the package's: see `tests/pure/test_layers.py`.
    _AT_FIRST_USE = {
        "reader": "Reader register",
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
