"""JSON of other people: a bounded file, and values that are checked as they are read."""

from __future__ import annotations

import json
import math
import os
import reprlib
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

MOST_BYTES: Final = 256 << 20
_MOST_INTEGER: Final = 2**63 - 1
_Text = TypeVar("_Text", bound=str)


class ForeignJsonError(ValueError):
    """JSON that is too large, or has another form; the text names the place of the value."""


class JsonValue:
    """A value of JSON, with its place for errors, such as `finding.lines[0].file`.

    Each method returns the value in one form, or raises `ForeignJsonError`.
    """

    __slots__ = ("_place", "_value")

    def __init__(self, value: object, place: str = "") -> None:
        self._value = value
        self._place = place

    @property
    def is_null(self) -> bool:
        """Whether it is null."""
        return self._value is None

    def wrong(self, expected: str) -> ForeignJsonError:
        """Return the error for a value in another form."""
        place = f"{self._place} is " if self._place else "it is "
        return ForeignJsonError(f"{place}{reprlib.repr(self._value)}, not {expected}")

    def has(self, name: str) -> bool:
        """Return whether it is an object with this field."""
        return isinstance(self._value, dict) and name in self._value

    def field(self, name: str) -> JsonValue:
        """Return a field of an object."""
        if not isinstance(self._value, dict):
            raise self.wrong("an object")
        if name not in self._value:
            raise ForeignJsonError(f"{self._place or 'it'} has no {name!r}")
        return JsonValue(self._value[name], f"{self._place}.{name}" if self._place else name)

    def fields(self, known: Collection[str] | None = None) -> Mapping[str, JsonValue]:
        """Return the fields of an object; all their names must be among the known ones."""
        if not isinstance(self._value, dict):
            raise self.wrong("an object")
        for name in self._value:
            if known is not None and name not in known:
                raise ForeignJsonError(f"{self._place or 'it'} has {reprlib.repr(name)}")
        return {name: self.field(name) for name in self._value}

    def items(self) -> Iterator[JsonValue]:
        """Yield the values of a list."""
        if not isinstance(self._value, list):
            raise self.wrong("a list")
        return (
            JsonValue(value, f"{self._place}[{index}]") for index, value in enumerate(self._value)
        )

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self._value, str):
            raise self.wrong("a text")
        return self._value

    def one_of(self, texts: Collection[_Text]) -> _Text:
        """Return one of some texts."""
        for text in texts:
            if text == self._value:
                return text
        raise self.wrong(f"one of {', '.join(texts)}")

    def boolean(self) -> bool:
        """Return true or false."""
        if not isinstance(self._value, bool):
            raise self.wrong("true or false")
        return self._value

    def integer(self, least: int = -_MOST_INTEGER, most: int = _MOST_INTEGER) -> int:
        """Return an integer between both."""
        value = self._value
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(f"an integer from {least} to {most}")
        return value

    def optional_integer(self, least: int, most: int = _MOST_INTEGER) -> int | None:
        """Return an integer, or None for null."""
        return None if self._value is None else self.integer(least, most)

    def coordinates(self, count: int, least: int, most: int) -> tuple[int, ...]:
        """Return a list of this many integers."""
        numbers = tuple(item.integer(least, most) for item in self.items())
        if len(numbers) != count:
            raise self.wrong(f"{count} integers")
        return numbers

    def number(self) -> int | float:
        """Return an integer or a float, which may be infinite or NaN."""
        value = self._value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong("a number")
        return value

    def finite(self, least: float = -math.inf) -> float:
        """Return a finite number, of at least some size, as a float."""
        value = self.number()
        if isinstance(value, int) and abs(value) > _MOST_INTEGER:
            raise self.wrong("a number of 64 bits")
        if not math.isfinite(value) or value < least:
            raise self.wrong(f"a number of at least {least}")
        return float(value)


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> JsonValue:
    """Return the content of a file of JSON.

    Raises:
        FileNotFoundError: there is no such file.
        ForeignJsonError: it is too large or not JSON, or cannot be read.
    """
    text = _text(path, most_bytes)
    try:
        return JsonValue(json.loads(text))
    except RecursionError:
        raise ForeignJsonError("it is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # of an integer with too many digits, too
        raise ForeignJsonError(f"it is not JSON: {error}") from None


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting, as a FIFO would wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _text(path: Path, most_bytes: int) -> str:
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            data = file.read(most_bytes + 1) if is_file else b""
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise ForeignJsonError(f"it cannot be read: {error}") from None
    if not is_file:
        raise ForeignJsonError("it is not an ordinary file")
    if len(data) > most_bytes:
        raise ForeignJsonError(f"it has more than {most_bytes} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ForeignJsonError(f"it cannot be read: {error}") from None
