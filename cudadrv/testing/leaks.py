"""`LeakDetector`: the handles that a test leaves on its device."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Final

from ..driver.context_handle import ContextHandle
from ..driver.driver_selection import Driver
from ..driver.handle import AnyHandle, Closeable, Handle

# A search for handles ends here: from these objects it would reach the whole process.
_WALLS: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, FrameType)


class LeakDetector:
    """The handles that are alive on a driver and were not before."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._before: weakref.WeakSet[AnyHandle] = weakref.WeakSet()

    def reset(self) -> None:
        """Regard all handles that are alive now as known."""
        self._before = weakref.WeakSet(_alive(self._driver))

    def leaked(self) -> list[AnyHandle]:
        """Return the new handles that are alive after at most two collections.

        The second collects objects that a finalizer of the first released.
        """
        for _ in range(2):
            if not self._found():
                return []
            gc.collect()
        found = self._found()
        return _not_kept_by(self._driver, found) if found else []

    def _found(self) -> list[AnyHandle]:
        return [box for box in _alive(self._driver) if box not in self._before]


def _alive(driver: Driver) -> list[AnyHandle]:
    """Return the owning handles of a driver, but for contexts, which stay for the process."""
    classes = _classes_below(Handle) - _classes_below(ContextHandle)
    boxes: list[AnyHandle] = [box for box in gc.get_objects() if type(box) in classes]
    return [box for box in boxes if box.raw and box.driver is driver and _owns(box)]


def _classes_below(cls: type[object]) -> set[type[object]]:
    below = {cls}
    for each in cls.__subclasses__():
        below |= _classes_below(each)
    return below


def _owns(box: AnyHandle) -> bool:
    """Return True if it owns its object; a stream of another library it does not."""
    return bool(getattr(box, "is_owned", True))


def _not_kept_by(driver: Driver, boxes: list[AnyHandle]) -> list[AnyHandle]:
    """Return the handles that no cache of the driver keeps."""
    seen: set[int] = {id(driver.api)}
    waiting: list[object] = [driver.cached()]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, _WALLS):
            seen.add(id(each))
            waiting += gc.get_referents(each)
    return [box for box in boxes if id(box) not in seen]


def described(boxes: Iterable[AnyHandle]) -> list[str]:
    """Describe leaked handles by their public objects, or without those by themselves."""
    boxes = list(boxes)
    holders: dict[int, str] = {}
    for each in gc.get_referrers(*boxes):
        if isinstance(each, Closeable):
            holders[id(each)] = repr(each)
    return sorted(holders.values()) or sorted(map(_named, boxes))


def _named(box: AnyHandle) -> str:
    """Describe a handle without a public object."""
    nbytes = getattr(box, "_nbytes", None)
    kind = type(box).__name__.strip("_").removesuffix("Handle").removesuffix("Memory").lower()
    return f"{kind} memory of {nbytes} bytes" if nbytes is not None else f"{kind} {box.raw!r}"
