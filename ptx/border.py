"""What public functions are given, checked once where it comes in, and the words for a refusal."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from operator import index
from typing import TypeVar

from ptx.base_errors import PtxArgumentTypeError, PtxArgumentValueError

_T = TypeVar("_T")


def instance(where: str, value: object, cls: type[_T] | tuple[type[_T], ...]) -> _T:
    """The value, if it is of a class, or of one of several.

    Args:
        where: what it was given as, such as "link: target".
        value: what was given.
        cls: what it must be.

    Raises:
        PtxArgumentTypeError: it is not.
    """
    if isinstance(value, cls):
        return value
    classes = cls if isinstance(cls, tuple) else (cls,)
    raise refused(where, value, f"give a {' or a '.join(each.__name__ for each in classes)}")


def elements(where: str, values: object) -> tuple[object, ...]:
    """All of some values; text is no sequence of anything.

    Raises:
        PtxArgumentTypeError: it is none.
    """
    if not isinstance(values, (str, bytes, bytearray)):
        try:
            # What has no elements fails.
            return tuple(values)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            pass
    raise refused(where, values, "give several, such as a tuple")


def several(where: str, values: object, cls: type[_T] | tuple[type[_T], ...]) -> tuple[_T, ...]:
    """All of some values, each of a class."""
    found = elements(where, values)
    return tuple([instance(f"{where}[{n}]", each, cls) for n, each in enumerate(found)])


def integer(where: str, value: object) -> int:
    """The value as a Python integer, if it is a whole number of any kind.

    Raises:
        PtxArgumentTypeError: it is none.
    """
    try:
        # What has no index fails.
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise refused(where, value, "give a whole number") from None


def pair(where: str, value: object) -> tuple[int, int]:
    """A capability or a version: two whole numbers."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise refused(where, value, "give two whole numbers, such as (9, 0)")
    return integer(where, value[0]), integer(where, value[1])


def text(where: str, value: object) -> str:
    """The value, if it is text that C takes: with no zero character, and with a form in UTF-8.

    Raises:
        PtxArgumentTypeError: it is no text.
        PtxArgumentValueError: it has no such form.
    """
    if not isinstance(value, str):
        raise PtxArgumentTypeError(f"{where} must be str, not {type(value).__name__}")
    if "\0" in value:
        raise PtxArgumentValueError(f"{where} holds a zero character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise PtxArgumentValueError(f"{where} has no form in UTF-8: {error}") from None
    return value


def path_text(where: str, value: object) -> str:
    """A path as text, as it was given, if it is one that the system takes.

    Raises:
        PtxArgumentTypeError: it is no path.
        PtxArgumentValueError: it has a zero character, or no form in the system's encoding.
    """
    try:
        # What is no path fails.
        found = os.fsdecode(value)  # type: ignore[arg-type]
    except TypeError:
        raise refused(where, value, "give text or a path") from None
    try:
        is_whole = b"\0" not in os.fsencode(found)
    except UnicodeEncodeError as error:
        raise PtxArgumentValueError(f"{where} has no form on this system: {error}") from None
    if not is_whole:
        raise PtxArgumentValueError(f"{where} holds a zero character")
    return found


def function(where: str, value: Callable[..., object], takes: int) -> None:
    """Raise `PtxArgumentTypeError` unless the value can be called with so many arguments."""
    fits = callable(value)  # of what is not, `signature` would show all
    try:
        if fits:
            signature(value).bind(*(None,) * takes)
    except TypeError:
        fits = False
    except ValueError:
        pass  # Python does not know what it takes
    if not fits:
        raise refused(where, value, f"give a function of {takes} arguments")


def refused(where: str, value: object, remedy: str) -> PtxArgumentTypeError:
    """The error for a value of a wrong type."""
    what = f"{shown(value)}, of type {type(value).__name__}"
    return PtxArgumentTypeError(f"{where} is {what}: {remedy}")


def shown(value: object) -> str:
    """A value in few words, whatever it is."""
    import reprlib  # needed for a refusal alone

    return reprlib.repr(value)
