"""The handles and addresses that a program can still reach at its end, which are no leaks."""

from __future__ import annotations

import contextvars
import gc
import sys
import weakref
from typing import Any, Final, TypeAlias, cast

import numpy as np

AnyArray: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"  # of a program, of any type
_OWN_PACKAGES: Final = ("cudadrv", "ptx")
# The state of the emulator has the numbers of all objects, so a search ends there.
_EMULATORS: Final = ("cudadrv.emulator.", "ptx.emulate.")
_BINDINGS: Final = "cuda.bindings.driver"
_ATOMS: Final = frozenset((str, bytes, float, complex, bool, type(None)))


def numbers_in_modules(*roots: object) -> set[int]:
    """Return the handles and addresses that a program can still reach at its end.

    As LeakSanitizer does, it follows references from the program's globals, and takes each number
    for a handle that has its value. It starts at the modules of `sys.modules` except this
    library's, which know every object, at the context variables, and at `roots`. A search from an
    object to its referrers would need all objects of the collector, and would end in frames.

    It runs once, when the program has ended, and decides only what a report says. No object is
    closed or kept because of it, and the result does not depend on when the collector runs.
    """
    own = [module for name, module in list(sys.modules.items()) if _is_own(name)]
    visited = {id(vars(module)) for module in own} | set(map(id, own))
    context = contextvars.copy_context().values()
    waiting: list[object] = [*list(sys.modules.values()), *context, *roots]
    numbers: set[int] = set()
    while waiting:
        item = waiting.pop()
        kind = type(item)  # never `isinstance`, which calls functions of the program's proxies
        if kind in _ATOMS or id(item) in visited:
            continue
        visited.add(id(item))
        module = str(kind.__module__)
        if issubclass(kind, int) or (module == _BINDINGS and hasattr(kind, "__int__")):
            numbers.add(int(item))  # type: ignore[call-overload]  # it has `__int__`
        # A weak reference holds nothing, and the callbacks of ours hold the table of all objects.
        elif not (module.startswith(_EMULATORS) or issubclass(kind, weakref.ref)):
            waiting += gc.get_referents(item)
            if issubclass(kind, np.ndarray):
                waiting += _referents_of_array(cast(AnyArray, item))
    return numbers


def _referents_of_array(array: AnyArray) -> list[object]:
    """Return what an array refers to, as it reports nothing to the garbage collector."""
    return [array.base, array.tolist() if array.dtype.hasobject else None]


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in _OWN_PACKAGES
