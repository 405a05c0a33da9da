"""What public functions are given, checked once where it comes in, and the words for a refusal.

`Border` has the checks, with the classes of the errors that it raises; the functions of this file
are those of `ptx`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from operator import index
from typing import Final, Protocol, TypeVar

from ptx.base_errors import PtxArgumentTypeError, PtxArgumentValueError

_T = TypeVar("_T")


class Border:
    """Checks of what a package is given; each gives the value, if it is as it must be.

    Each takes `where`, what the value was given as, such as "link: target".

    Args:
        type_error: makes the error for a value of a wrong type.
        value_error: makes the error for a value of the right type that is refused.
    """

    def __init__(
        self, type_error: Callable[[str], TypeError], value_error: Callable[[str], ValueError]
    ) -> None:
        self._type_error = type_error
        self._value_error = value_error

    def instance(self, where: str, value: object, cls: type[_T] | tuple[type[_T], ...]) -> _T:
        """A value of a class, or of one of several."""
        if isinstance(value, cls):
            return value
        classes = cls if isinstance(cls, tuple) else (cls,)
        # The public class is named, not what stands below it.
        names = dict.fromkeys(each.__name__.removesuffix("Core") for each in classes)
        raise self.refused(where, value, f"give a {' or a '.join(names)}")

    def several(
        self, where: str, values: object, cls: type[_T] | tuple[type[_T], ...]
    ) -> tuple[_T, ...]:
        """Some values, each of a class; text is no sequence of anything."""
        if not isinstance(values, (str, bytes, bytearray)):
            try:
                # What has no elements fails.
                found: tuple[object, ...] = tuple(values)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                pass
            else:
                return tuple(
                    self.instance(f"{where}[{n}]", each, cls) for n, each in enumerate(found)
                )
        raise self.refused(where, values, "give several, such as a tuple")

    def integer(self, where: str, value: object) -> int:
        """A Python integer, of a whole number of any kind."""
        if type(value) is int:
            return value
        try:
            # What has no index fails.
            return index(value)  # type: ignore[arg-type]
        except TypeError:
            raise self.refused(where, value, "give a whole number") from None

    def text(self, where: str, value: object) -> str:
        """Text that C takes: with no zero character, and with a form in UTF-8."""
        if not isinstance(value, str):
            raise self.refused(where, value, "give text")
        if "\0" in value:
            raise self._value_error(
                f"{where} has a zero character, which would end it: leave it out"
            )
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self._value_error(f"{where} has no form in UTF-8: {error}") from None
        return value

    def path_text(self, where: str, value: object) -> str:
        """A path as text, as it was given, if it is one that the system takes."""
        try:
            # What is no path fails.
            found = os.fsdecode(value)  # type: ignore[arg-type]
        except TypeError:
            raise self.refused(where, value, "give text or a path") from None
        try:
            is_whole = b"\0" not in os.fsencode(found)
        except UnicodeEncodeError as error:
            raise self._value_error(f"{where} has no form on this system: {error}") from None
        if not is_whole:
            raise self._value_error(f"{where} has a zero character: leave it out")
        return found

    def refused(self, where: str, value: object, remedy: str) -> TypeError:
        """The error for a value of a wrong type."""
        return self._type_error(f"{where} is {described(value)}: {remedy}")


def described(value: object) -> str:
    """A value and its type in few words, whatever it is."""
    return "None" if value is None else f"{shown(value)}, of type {type(value).__name__}"


def shown(value: object) -> str:
    """A value in few words, whatever it is."""
    import reprlib  # needed for a refusal alone

    return reprlib.repr(value)


class InstanceCheck(Protocol):
    """`Border.instance`, of one border."""

    def __call__(self, where: str, value: object, cls: type[_T] | tuple[type[_T], ...]) -> _T:
        """The value, if it is of the class."""


class SeveralCheck(Protocol):
    """`Border.several`, of one border."""

    def __call__(
        self, where: str, values: object, cls: type[_T] | tuple[type[_T], ...]
    ) -> tuple[_T, ...]:
        """The values, if each is of the class."""


_own: Final = Border(PtxArgumentTypeError, PtxArgumentValueError)
instance: InstanceCheck = _own.instance
several: SeveralCheck = _own.several
integer: Callable[[str, object], int] = _own.integer
text: Callable[[str, object], str] = _own.text
path_text: Callable[[str, object], str] = _own.path_text
refused: Callable[[str, object, str], TypeError] = _own.refused


def pair(where: str, value: object) -> tuple[int, int]:
    """A capability or a version: two whole numbers."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise refused(where, value, "give two whole numbers, such as (9, 0)")
    return integer(where, value[0]), integer(where, value[1])
