"""Checks of the arguments of public functions, and the texts of their errors.

A check that passes costs about 0.1 µs. Launches, allocations and small copies cannot afford that:
they check nothing, and call these functions after a failure, for the error's text.

`ptx.border` has the same checks with the errors of `ptx`: `import cudadrv` does not import `ptx`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from operator import index
from pathlib import Path
from typing import Final, TypeVar

from .errors import ArgumentTypeError, ArgumentValueError

_T = TypeVar("_T")
LARGEST: Final = 2**63 - 1
"""The largest size or count that every function of the driver accepts."""


def instance(where: str, value: object, cls: type[_T] | tuple[type[_T], ...]) -> _T:
    """Return the value, which must be of a class, or of one of several.

    Args:
        where: the name of the argument, such as "Event.record: stream".
        value: the argument.
        cls: its class.

    Raises:
        ArgumentTypeError: it is of another class.
    """
    if isinstance(value, cls):
        return value
    classes = cls if isinstance(cls, tuple) else (cls,)
    # The error names the public class, not its base.
    names = dict.fromkeys(each.__name__.removesuffix("Core") for each in classes)
    raise refused(where, value, f"give a {' or a '.join(names)}")


def optional(where: str, value: object, cls: type[_T] | tuple[type[_T], ...]) -> _T | None:
    """Return the value, which must be of a class or None."""
    return None if value is None else instance(where, value, cls)


def several(where: str, values: object, cls: type[_T] | tuple[type[_T], ...]) -> tuple[_T, ...]:
    """Return values as a tuple, each of a class; text is no sequence of values."""
    if not isinstance(values, (str, bytes, bytearray)):
        try:
            # A value without elements fails.
            found: tuple[object, ...] = tuple(values)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            pass
        else:
            return tuple(instance(f"{where}[{n}]", each, cls) for n, each in enumerate(found))
    raise refused(where, values, "give several, such as a tuple")


def integer(where: str, value: object) -> int:
    """Return the value as a Python integer; it may be an integer of any type.

    Raises:
        ArgumentTypeError: it is no integer.
    """
    if type(value) is int:
        return value
    try:
        # A value without an index fails.
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise refused(where, value, "give a whole number") from None
    except Exception as error:  # whatever the object raises
        raise refused(where, value, "give a whole number") from error


def whole(where: str, value: object, least: int = 0, most: int = LARGEST) -> int:
    """Return the value as a Python integer, which must be in a range.

    Raises:
        ArgumentTypeError: it is no integer.
        ArgumentValueError: it is out of the range.
    """
    number = integer(where, value)
    if not least <= number <= most:
        raise ArgumentValueError(
            f"{where} is {shown(number)}: give a whole number of {least} to {most}"
        )
    return number


def real(where: str, value: object) -> float:
    """Return the value as a float.

    Raises:
        ArgumentTypeError: it is no number.
        ArgumentValueError: it is larger than any float.
    """
    if not isinstance(value, (str, bytes, bytearray)):
        try:
            # A value that is no number fails.
            return float(value)  # type: ignore[arg-type]
        except OverflowError:
            raise ArgumentValueError(f"{where} is larger than any float: give a float") from None
        except (TypeError, ValueError):
            pass
    raise refused(where, value, "give a number")


def text(where: str, value: object) -> str:
    """Return the value, which must be text for C: without zero characters, and valid in UTF-8.

    Raises:
        ArgumentTypeError: it is no text.
        ArgumentValueError: it has no such form.
    """
    if not isinstance(value, str):
        raise refused(where, value, "give text")
    if "\0" in value:
        raise ArgumentValueError(f"{where} has a zero character, which would end it: leave it out")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ArgumentValueError(f"{where} has no form in UTF-8: {error}") from None
    return value


def path(where: str, value: object) -> Path:
    """Return the value as a path, which must be valid on this system.

    Raises:
        ArgumentTypeError: it is no path.
        ArgumentValueError: it has a zero character, or no form in the system's encoding.
    """
    try:
        # A value that is no path fails.
        found = Path(value)  # type: ignore[arg-type]
    except TypeError:
        raise refused(where, value, "give text or a path") from None
    try:
        is_whole = b"\0" not in os.fsencode(found)
    except UnicodeEncodeError as error:
        raise ArgumentValueError(f"{where} has no form on this system: {error}") from None
    if not is_whole:
        raise ArgumentValueError(f"{where} holds a zero character: leave it out")
    return found


def function(where: str, value: Callable[..., object], takes: int | None = None) -> None:
    """Raise `ArgumentTypeError` unless the value is callable, with `takes` arguments if given."""
    if not callable(value):
        raise refused(where, value, "give a function")
    if takes is not None and not _takes(value, takes):
        raise refused(where, value, f"give a function of {takes} arguments")


def source(where: str, value: object) -> None:
    """Raise `ArgumentError` unless the value is text, or a function without arguments."""
    if not callable(value):
        text(where, value)
    elif not _takes(value, 0):
        raise refused(where, value, "give text, or a function that takes nothing")


def _takes(value: Callable[..., object], arguments: int) -> bool:
    """Return True if a function can be called with so many arguments."""
    try:
        signature(value).bind(*(None,) * arguments)
    except TypeError:
        return False
    except ValueError:
        pass  # Python does not know what it takes
    return True


def refused(where: str, value: object, remedy: str) -> ArgumentTypeError:
    """Return the error for a value of a wrong type."""
    return ArgumentTypeError(f"{where} is {described(value)}: {remedy}")


def described(value: object) -> str:
    """Return a value and its type in a few words, for any value."""
    return "None" if value is None else f"{shown(value)}, of type {type(value).__name__}"


def shown(value: object) -> str:
    """Return a value in a few words, for any value."""
    import reprlib  # needed for an error alone

    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return f"a value of type {type(value).__name__} with too many digits to show"
