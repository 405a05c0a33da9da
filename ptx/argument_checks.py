"""Checks of the arguments of public functions, and the words of their errors.

`cudadrv` has the same checks with errors of its own. A check that passes costs about 0.1 µs.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable
from operator import index
from pathlib import Path
from typing import Final, TypeVar, cast

from ptx.base_errors import PtxArgumentTypeError, PtxArgumentValueError

_T = TypeVar("_T")
LARGEST: Final = 2**63 - 1
"""The largest number that every function of the driver takes for a size or a count."""


def _with_article(name: str) -> str:
    return f"{'an' if name.startswith(('A', 'E', 'I', 'O')) else 'a'} {name}"


class ArgumentChecks:
    """Checks that raise the errors of one package.

    `where` of each check names the value in messages, such as "link: target".
    """

    def __init__(self, type_error: type[TypeError], value_error: type[ValueError]) -> None:
        self.type_error = type_error
        self.value_error = value_error

    def instance_of(self, where: str, value: object, cls: type[_T] | tuple[type[_T], ...]) -> _T:
        """Return the value, which is of a class, or of one of several."""
        if isinstance(value, cls):
            # A subclass of text may compare or print as another one: its text alone is used.
            return value if cls is not str else cast(_T, str.__str__(value))
        classes = cls if isinstance(cls, tuple) else (cls,)
        names = " or ".join(_with_article(accepted.__name__) for accepted in classes)
        raise self.wrong_type(where, value, f"give {names}")

    def optional(
        self, where: str, value: object, cls: type[_T] | tuple[type[_T], ...]
    ) -> _T | None:
        """Return the value, which is of a class or None."""
        return None if value is None else self.instance_of(where, value, cls)

    def elements(self, where: str, values: object) -> tuple[object, ...]:
        """Return the elements of a sequence or another iterable, but of no text."""
        cause: Exception | None = None
        if not isinstance(values, (str, bytes, bytearray)):
            try:
                # Raises for a value without elements.
                return tuple(values)  # type: ignore[arg-type]
            except (TypeError, ValueError) as error:
                cause = error
        raise self.wrong_type(where, values, "give a sequence, such as a tuple") from cause

    def sequence_of(
        self, where: str, values: object, cls: type[_T] | tuple[type[_T], ...]
    ) -> tuple[_T, ...]:
        """Return the elements of a sequence or another iterable, each of a class."""
        elements = self.elements(where, values)
        return tuple(
            [self.instance_of(f"{where}[{n}]", element, cls) for n, element in enumerate(elements)]
        )

    def integer(self, where: str, value: object) -> int:
        """Return the value, an integer of any kind but no boolean, as Python's."""
        if type(value) is int:
            return value
        try:
            return index_of(value)
        except TypeError:
            raise self.wrong_type(where, value, "give an integer") from None
        except Exception as error:  # whatever the object raises
            raise self.wrong_type(where, value, "give an integer") from error

    def int_in_range(self, where: str, value: object, least: int = 0, most: int = LARGEST) -> int:
        """Return the value, an integer of a range, as Python's."""
        number = self.integer(where, value)
        if not least <= number <= most:
            raise self.value_error(
                f"{where} is {shown(number)}: give an integer of {least} to {most}"
            )
        return number

    def integer_fields(
        self, record: object, *names: str, least: int | None = None, most: int | None = None
    ) -> None:
        """Replace fields of a frozen dataclass by the integers that they are; None stays."""
        for name in names:
            value = getattr(record, name)
            if value is not None:
                where = f"{type(record).__name__}: {name}"
                number = self.integer(where, value)
                if least is not None or most is not None:
                    self.int_in_range(where, number, least or 0, LARGEST if most is None else most)
                object.__setattr__(record, name, number)

    def int_pair(self, where: str, value: object) -> tuple[int, int]:
        """Return a compute capability or a version: two integers."""
        if not isinstance(value, tuple) or len(value) != 2:
            raise self.wrong_type(where, value, "give two integers, such as (9, 0)")
        return self.integer(where, value[0]), self.integer(where, value[1])

    def real(self, where: str, value: object) -> float:
        """Return the value, a number, as a float."""
        if not isinstance(value, (str, bytes, bytearray)):
            try:
                # Raises for a value without a float value.
                return float(value)  # type: ignore[arg-type]
            except OverflowError:
                words = f"{where} is larger than any float: give a float"
                raise self.value_error(words) from None
            except (TypeError, ValueError):
                pass
            except Exception as error:  # whatever the object raises
                raise self.wrong_type(where, value, "give a number") from error
        raise self.wrong_type(where, value, "give a number")

    def text(self, where: str, value: object) -> str:
        """Return the value, text that C takes: without a zero character, and encodable in UTF-8."""
        if not isinstance(value, str):
            raise self.wrong_type(where, value, "give text")
        value = str.__str__(value)
        if "\0" in value:
            words = f"{where} contains a NUL character: remove it"
            raise self.value_error(words)
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.value_error(f"{where} cannot be encoded as UTF-8: {error}") from None
        return value

    def path_text(self, where: str, value: object) -> str:
        """Return a path that the system takes, as text."""
        try:
            # Raises for a value that is no path.
            path = os.fsdecode(value)  # type: ignore[arg-type]
        except TypeError:
            raise self.wrong_type(where, value, "give text or a path") from None
        try:
            is_whole = b"\0" not in os.fsencode(path)
        except UnicodeEncodeError as error:
            raise self.value_error(f"{where} cannot be encoded as a path: {error}") from None
        if not is_whole:
            raise self.value_error(f"{where} contains a NUL character: remove it")
        return path

    def path(self, where: str, value: object) -> Path:
        """Return a path that the system takes."""
        if isinstance(value, bytes):
            raise self.wrong_type(where, value, "give text or a path")
        return Path(self.path_text(where, value))

    def function(self, where: str, value: object, takes: int | None = None) -> None:
        """Raise unless the value can be called, with so many arguments if a number is given."""
        if not callable(value) or (takes is not None and not _takes(value, takes)):
            of = "" if takes is None else f" of {takes} arguments"
            raise self.wrong_type(where, value, f"give a function{of}")

    def source(self, where: str, value: object, takes: int = 0) -> None:
        """Raise unless the value is text, or a function of no argument, or of the key alone."""
        if not callable(value):
            self.text(where, value)
        elif not _takes(value, takes):
            function = "a function of the key" if takes else "a function without parameters"
            raise self.wrong_type(where, value, f"give text, or {function}")

    def wrong_type(self, where: str, value: object, remedy: str) -> TypeError:
        """Return the error for a value of a wrong type."""
        return self.type_error(f"{where} is {described(value)}: {remedy}")


def index_of(value: object) -> int:
    """Return an integer of any kind as Python's.

    Raises:
        TypeError: the value is a boolean, or no integer.
    """
    if isinstance(value, bool):
        raise TypeError("a boolean is no integer here")
    # Raises for a value without `__index__`. A subclass of int may print as another number.
    return int.__index__(index(value))  # type: ignore[arg-type]


def integer_of_text(text: str, least: int = 0, most: int | None = LARGEST) -> int | None:
    """Return the integer that ASCII digits alone spell, or None: the reader of the environment.

    Signs, separators, other bases, digits of other scripts and numbers out of range are None.
    """
    # Python converts no text of more than 4,300 digits.
    if not (text.isascii() and text.isdecimal() and len(text) <= 4300):
        return None
    number = int(text)
    return number if least <= number and (most is None or number <= most) else None


def _takes(value: Callable[..., object], arguments: int) -> bool:
    """Return whether a function can be called with so many arguments."""
    from inspect import signature  # with Python's disassembler: 5 ms of a start that needs neither

    try:
        signature(value).bind(*(None,) * arguments)
    except TypeError:
        return False
    except ValueError:
        pass  # Python does not know its parameters
    return True


def described(value: object) -> str:
    """Return a short description of any value and its type."""
    return "None" if value is None else f"{shown(value)}, of type {type(value).__name__}"


def shown(value: object) -> str:
    """Return a short description of any value, also of one whose own description fails."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return f"a value of type {type(value).__name__} with too many digits to show"
    except Exception:  # of its `__repr__`
        return f"<{type(value).__name__} at {id(value):#x}>"


def shown_name(name: str) -> str:
    """Return a name in quotes; the middle of a very long one is left out."""
    return _NAMES.repr(name)


def shown_error(error: BaseException) -> str:
    """Return the type and the text of an error, of which another library may have made any."""
    try:
        return shown_text(repr(error))
    except Exception:  # of its `__repr__`
        return shown(error)


def shown_text(value: object) -> str:
    """Return the text of an object, such as an error; a very long one is cut."""
    try:
        text = str.__str__(str(value))
    except Exception:  # of its `__str__`
        return shown(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


_MOST_CHARACTERS: Final = 300
_NAMES: Final = reprlib.Repr()
_NAMES.maxstring = _MOST_CHARACTERS


checks: Final = ArgumentChecks(PtxArgumentTypeError, PtxArgumentValueError)
"""The checks of package `ptx`."""
