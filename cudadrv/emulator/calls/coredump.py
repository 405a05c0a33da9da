"""The settings of GPU core dumps, globally and of a context.

CUDA Driver API: "Coredump Attributes Control API". The emulator stores the settings and writes no
core dumps, so those that would cause one cannot be switched on.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Final

from ...driver._api import CUresult
from ..call_error import OK, SUCCESS, invalid_value, not_supported
from .call import DriverCalls, call

CoredumpValue = bool | int | bytes
"""A value: a boolean, an integer for the flags, or a text."""
_MOST_CHARACTERS: Final = 1023
_CAUSES: Final = (1, 4)  # CU_COREDUMP_ENABLE_ON_EXCEPTION, CU_COREDUMP_ENABLE_USER_TRIGGER


def _default_values() -> dict[int, CoredumpValue]:
    suffix = f"cuda.{platform.node()}.{os.getpid()}".encode()
    return {
        1: False,
        2: True,  # CU_COREDUMP_TRIGGER_HOST
        3: False,  # CU_COREDUMP_LIGHTWEIGHT
        4: False,
        5: b"core." + suffix,
        6: b"corepipe." + suffix,
        7: 0,  # CU_COREDUMP_GENERATION_FLAGS
    }


class CoredumpCalls(DriverCalls):
    """Settings of core dumps."""

    @call
    def cuCoredumpGetAttribute(self, attrib: int, /) -> tuple[CUresult, CoredumpValue]:
        """Return a setting of the current context: its own, else the global one."""
        context = self._state.handles.current()
        return SUCCESS, self._coredump_setting(int(attrib), context.coredump)

    @call
    def cuCoredumpGetAttributeGlobal(self, attrib: int, /) -> tuple[CUresult, CoredumpValue]:
        """Return a global setting."""
        return SUCCESS, self._coredump_setting(int(attrib), {})

    @call
    def cuCoredumpSetAttribute(self, attrib: int, value: CoredumpValue, /) -> tuple[CUresult]:
        """Change a setting of the current context."""
        context = self._state.handles.current()
        context.coredump[int(attrib)] = _checked(int(attrib), value)
        return OK

    @call
    def cuCoredumpSetAttributeGlobal(self, attrib: int, value: CoredumpValue, /) -> tuple[CUresult]:
        """Change a global setting."""
        self._state.process.coredump[int(attrib)] = _checked(int(attrib), value)
        return OK

    def _coredump_setting(self, number: int, own: Mapping[int, CoredumpValue]) -> CoredumpValue:
        values = {**_default_values(), **self._state.process.coredump, **own}
        if number not in values:
            raise invalid_value(f"there is no setting {number} of core dumps")
        return values[number]


def _checked(number: int, value: CoredumpValue) -> CoredumpValue:
    """Return a value in the type of its setting."""
    default = _default_values().get(number)
    if default is None:
        raise invalid_value(f"there is no setting {number} of core dumps")
    if isinstance(value, bytes) is not isinstance(default, bytes):
        raise invalid_value(f"setting {number} of core dumps cannot be {value!r}")
    if isinstance(value, bytes):
        if len(value) > _MOST_CHARACTERS:
            raise invalid_value(f"a name of {len(value)} characters: {_MOST_CHARACTERS} at most")
        return value
    if number in _CAUSES and value:
        raise not_supported("the emulator writes no core dumps: it prints a kernel's fault")
    return bool(value) if isinstance(default, bool) else value
