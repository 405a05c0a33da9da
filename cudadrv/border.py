"""What public functions are given, checked once where it comes in, and the words for a refusal.

A check that passes costs about 0.1 µs. Where that is too much, as for launches, allocations and
small copies, nothing is checked: what fails there comes here for its words.

`ptx.border` has the like, with the errors of `ptx`: `import cudadrv` imports nothing of that.
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
"""The largest number that every function of the driver takes for a size or a count."""


def instance(where: str, value: object, cls: type[_T] | tuple[type[_T], ...]) -> _T:
    """The value, if it is of a class, or of one of several.

    Args:
        where: what it was given as, such as "Event.record: stream".
        value: what was given.
        cls: what it must be.

    Raises:
        ArgumentTypeError: it is not.
    """
    if isinstance(value, cls):
        return value
    classes = cls if isinstance(cls, tuple) else (cls,)
    # The public class is named, not what stands below it.
    names = dict.fromkeys(each.__name__.removesuffix("Core") for each in classes)
    raise refused(where, value, f"give a {' or a '.join(names)}")


def optional(where: str, value: object, cls: type[_T] | tuple[type[_T], ...]) -> _T | None:
    """The same, or None."""
    return None if value is None else instance(where, value, cls)


def several(where: str, values: object, cls: type[_T] | tuple[type[_T], ...]) -> tuple[_T, ...]:
    """All of some values, each of a class; text is no sequence of anything."""
    if not isinstance(values, (str, bytes, bytearray)):
        try:
            # What has no elements fails.
            found: tuple[object, ...] = tuple(values)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            pass
        else:
            return tuple(instance(f"{where}[{n}]", each, cls) for n, each in enumerate(found))
    raise refused(where, values, "give several, such as a tuple")


def integer(where: str, value: object) -> int:
    """The value as a Python integer, if it is a whole number of any kind.

    Raises:
        ArgumentTypeError: it is none.
    """
    if type(value) is int:
        return value
    try:
        # What has no index fails.
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise refused(where, value, "give a whole number") from None
    except Exception as error:  # whatever the object raises
        raise refused(where, value, "give a whole number") from error


def whole(where: str, value: object, least: int = 0, most: int = LARGEST) -> int:
    """The value as a Python integer, if it is a whole number of a range.

    Raises:
        ArgumentTypeError: it is no whole number.
        ArgumentValueError: it is out of the range.
    """
    number = integer(where, value)
    if not least <= number <= most:
        raise ArgumentValueError(
            f"{where} is {shown(number)}: give a whole number of {least} to {most}"
        )
    return number


def real(where: str, value: object) -> float:
    """The value as a float.

    Raises:
        ArgumentTypeError: it is no number.
        ArgumentValueError: it is larger than any float.
    """
    if not isinstance(value, (str, bytes, bytearray)):
        try:
            # What has no value as a float fails.
            return float(value)  # type: ignore[arg-type]
        except OverflowError:
            raise ArgumentValueError(f"{where} is larger than any float: give a float") from None
        except (TypeError, ValueError):
            pass
    raise refused(where, value, "give a number")


def text(where: str, value: object) -> str:
    """The value, if it is text that C takes: with no zero character, and with a form in UTF-8.

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
    """A path, if it is one that the system takes.

    Raises:
        ArgumentTypeError: it is no path.
        ArgumentValueError: it has a zero character, or no form in the system's encoding.
    """
    try:
        # What is no path fails.
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
    """Raise `ArgumentTypeError` unless the value can be called, with so many arguments if told."""
    if not callable(value):
        raise refused(where, value, "give a function")
    if takes is not None and not _takes(value, takes):
        raise refused(where, value, f"give a function of {takes} arguments")


def source(where: str, value: object) -> None:
    """Raise `ArgumentError` unless the value is text, or a function that takes nothing."""
    if not callable(value):
        text(where, value)
    elif not _takes(value, 0):
        raise refused(where, value, "give text, or a function that takes nothing")


def _takes(value: Callable[..., object], arguments: int) -> bool:
    """Whether a function can be called with so many. A kernel can be called, too: by a stream."""
    try:
        signature(value).bind(*(None,) * arguments)
    except TypeError:
        return False
    except ValueError:
        pass  # Python does not know what it takes
    return True


def refused(where: str, value: object, remedy: str) -> ArgumentTypeError:
    """The error for a value of a wrong type."""
    return ArgumentTypeError(f"{where} is {described(value)}: {remedy}")


def described(value: object) -> str:
    """A value and its type in few words, whatever it is."""
    return "None" if value is None else f"{shown(value)}, of type {type(value).__name__}"


def shown(value: object) -> str:
    """A value in few words, whatever it is."""
    import reprlib  # needed for a refusal alone

    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return f"a value of type {type(value).__name__} with too many digits to show"
