"""What public functions are given, checked once where it comes in, and the words for a refusal.

A check that passes costs about 0.1 µs. Where that is too much, as for launches, allocations and
small copies, nothing is checked: what fails there comes here for its words.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from ptx.border import Border, InstanceCheck, SeveralCheck, described as described, shown as shown

from .errors import ArgumentTypeError, ArgumentValueError

_T = TypeVar("_T")
LARGEST: Final = 2**63 - 1
"""The largest number that every function of the driver takes for a size or a count."""

_own: Final = Border(ArgumentTypeError, ArgumentValueError)
instance: InstanceCheck = _own.instance
several: SeveralCheck = _own.several
integer: Callable[[str, object], int] = _own.integer
text: Callable[[str, object], str] = _own.text
refused: Callable[[str, object, str], TypeError] = _own.refused


def optional(where: str, value: object, cls: type[_T] | tuple[type[_T], ...]) -> _T | None:
    """A value of a class, or None."""
    return None if value is None else instance(where, value, cls)


def whole(where: str, value: object, least: int = 0, most: int = LARGEST) -> int:
    """The value as a Python integer, if it is a whole number of a range.

    Raises:
        ArgumentTypeError: it is no whole number.
        ArgumentValueError: it is out of the range.
    """
    number = integer(where, value)
    if not least <= number <= most:
        raise ArgumentValueError(f"{where} is {number}: give a whole number of {least} to {most}")
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


def path(where: str, value: object) -> Path:
    """A path, if it is one that the system takes.

    Raises:
        ArgumentTypeError: it is no path.
        ArgumentValueError: it has a zero character, or no form in the system's encoding.
    """
    return Path(_own.path_text(where, value))


def function(where: str, value: Callable[..., object]) -> None:
    """Raise `ArgumentTypeError` unless the value can be called."""
    if not callable(value):
        raise refused(where, value, "give a function")
