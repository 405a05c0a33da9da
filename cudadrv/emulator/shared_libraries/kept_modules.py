"""Modules that work until the interpreter has ended.

While it ends, the interpreter clears each module in `sys.modules`, in an order that is not
documented. Objects of other modules die meanwhile, and free their memory by driver functions. So
the modules that the emulator runs on are replaced there by stand-ins, which it does not clear.
"""

from __future__ import annotations

import builtins
import ctypes
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

_PACKAGES: Final = frozenset(("cudadrv", "ptx", "numpy", "cuda"))
_CLEARED: Final = frozenset(("__main__", "builtins", "sys"))


class _KeptModule:
    """A stand-in for a module: imports and attributes are the module's."""

    def __init__(self, module: ModuleType) -> None:
        object.__setattr__(self, "_module", module)

    def __getattribute__(self, name: str) -> Any:  # whatever the module has
        return getattr(object.__getattribute__(self, "_module"), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(object.__getattribute__(self, "_module"), name, value)


def restoring_builtins() -> Callable[[], None]:
    """Return a function that gives `builtins` and `sys` their present contents again.

    The interpreter clears them last, and objects that die then call the driver, too. The function
    uses no global name itself.
    """
    namespaces = [(vars(module), dict(vars(module))) for module in (builtins, sys)]

    def restore() -> None:
        for namespace, content in namespaces:
            namespace.update(content)

    return restore


def keep_modules() -> None:
    """Keep the modules of the emulator, and of Python's library, for the rest of the process.

    Call it when Python code of the program has ended, in an exit handler. Modules of the program
    are cleared as ever.
    """
    kept = {
        name: module
        for name, module in list(sys.modules.items())
        if name not in _CLEARED and _is_needed(name)
    }
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    for name, module in kept.items():
        sys.modules[name] = _KeptModule(module)  # type: ignore[assignment]  # as documented


def _is_needed(name: str) -> bool:
    package = name.partition(".")[0]
    return package in _PACKAGES or package in sys.stdlib_module_names
