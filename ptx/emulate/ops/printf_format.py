"""C's `printf` as device code has it: conversions, the layout of their arguments, and their text.

CUDA C++ Programming Guide, "Formatted Output"; the host's C library makes the text.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
from dataclasses import dataclass
from functools import lru_cache

_LONG = "s64" if ctypes.sizeof(ctypes.c_long) == 8 else "s32"
_SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L|I64|q)?([a-zA-Z%])")
_SIZES = {
    "l": _LONG, "ll": "s64", "q": "s64", "j": "s64", "z": "s64", "t": "s64", "I64": "s64",
    "hh": "s8", "h": "s16",
}  # fmt: skip
_MANTISSA_BITS = 52
MOST_WIDTH = 1 << 20
"""Characters of a conversion: as many bytes as a GPU's buffer has by default."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion, or literal text where `letter` is empty.

    `width` and `precision` are numbers, "*" for an argument, None where there is none.
    """

    text: str
    letter: str = ""
    flags: str = ""
    width: str | None = None
    precision: str | None = None
    size: str = ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Kinds of the arguments that it takes: s32, s64, f64 or u64 for a pointer."""
        stars = tuple("s32" for each in (self.width, self.precision) if each == "*")
        if not self.letter:
            return ()
        if self.letter in "aAeEfFgG":
            return (*stars, "f64")
        if self.letter in "sp":
            return (*stars, "u64")
        return (*stars, "s64" if _SIZES.get(self.size) == "s64" and self.letter != "c" else "s32")


@lru_cache(maxsize=256)  # formats that occur in kernels
def conversions(text: str) -> tuple[Conversion, ...]:
    """The parts of a format: conversions, and the text between them."""
    found: list[Conversion] = []
    end = 0
    for match in _SPEC.finditer(text):
        flags, width, precision, size, letter = match.groups()
        if letter != "%" and letter not in "cdiouxXpeEfFgGaAs":
            continue
        found.append(Conversion(text[end : match.start()]))
        end = match.end()
        if letter == "%":
            found.append(Conversion("%"))
        else:
            found.append(Conversion(match.group(), letter, flags, width, precision, size or ""))
    found.append(Conversion(text[end:]))
    return tuple(each for each in found if each.text)


def render(conversion: Conversion, values: list[int | float | str | None]) -> str:
    """The text of a conversion; a string argument comes as its text, None for a null pointer.

    Raises:
        OverflowError: its width or precision is above `MOST_WIDTH`.
    """
    if not conversion.letter:
        return conversion.text
    given = list(values)
    flags = conversion.flags
    width = _number(conversion.width, given)
    precision = _number(conversion.precision, given)
    if width is not None and width < 0:
        flags, width = flags + "-", -width
    if precision is not None and precision < 0:
        precision = None
    value = given[0]
    letter = conversion.letter
    if isinstance(value, float):
        body, zeros = _float(value, letter, flags, precision)
    elif letter == "c":
        body, zeros = chr(int(value or 0) & 0xFF), False
    elif letter == "s":
        assert value is None or isinstance(value, str)
        body, zeros = ("(null)" if value is None else value), False
        body = body if precision is None else body[:precision]
    elif letter == "p":
        body, zeros = (f"{value:#x}" if value else "(nil)"), False
    else:
        body, zeros = _integer(int(value or 0), letter, conversion.size, flags, precision)
    return _padded(body, flags, width or 0, zeros=zeros)


def _number(part: str | None, given: list[int | float | str | None]) -> int | None:
    if part is None:
        return None
    if part == "*":
        number = int(given.pop(0) or 0)
    else:
        digits = part.lstrip("0")
        number = int(digits or 0) if len(digits) < 10 else MOST_WIDTH + 1
    if abs(number) > MOST_WIDTH:
        raise OverflowError(f"a conversion of printf has more than {MOST_WIDTH} characters")
    return number


def _padded(body: str, flags: str, width: int, *, zeros: bool) -> str:
    """To at least `width` characters; zeros go between the sign or 0x and the digits."""
    missing = width - len(body)
    if missing <= 0:
        return body
    if "-" in flags:
        return body + " " * missing
    if zeros and "0" in flags:
        match = re.match(r"[-+ ]?(0[xX])?", body)
        assert match is not None
        return match.group() + "0" * missing + body[match.end() :]
    return " " * missing + body


def _sign(negative: bool, flags: str) -> str:
    if negative:
        return "-"
    return "+" if "+" in flags else " " if " " in flags else ""


def _integer(
    value: int, letter: str, size: str, flags: str, precision: int | None
) -> tuple[str, bool]:
    bits = {"s8": 8, "s16": 16, "s64": 64}.get(_SIZES.get(size, ""), 32)
    value &= (1 << bits) - 1
    sign = ""
    if letter in "di":
        value -= (value >> (bits - 1)) << bits
        sign = _sign(value < 0, flags)
    magnitude = abs(value)
    digits = format(magnitude, {"o": "o", "x": "x", "X": "X"}.get(letter, "d"))
    if precision is not None:
        digits = "" if precision == 0 and magnitude == 0 else digits.rjust(precision, "0")
    if "#" in flags and letter == "o" and not digits.startswith("0"):
        digits = "0" + digits
    if "#" in flags and letter in "xX" and magnitude:
        sign += "0" + letter
    return sign + digits, precision is None


def _float(value: float, letter: str, flags: str, precision: int | None) -> tuple[str, bool]:
    sign = _sign(math.copysign(1.0, value) < 0, flags)
    value = math.copysign(value, 1.0)
    if not math.isfinite(value):
        body = "inf" if math.isinf(value) else "nan"
        return sign + (body.upper() if letter.isupper() else body), False
    alternate = "#" if "#" in flags else ""
    if letter in "aA":
        body = _hexadecimal(value, precision, point=bool(alternate))
        return sign + (body.upper() if letter == "A" else body), True
    digits = 6 if precision is None else precision
    return sign + f"%{alternate}.{digits}{letter}" % value, True


def _hexadecimal(value: float, precision: int | None, *, point: bool) -> str:
    """`%a` of a value that is not negative, in the normal form of glibc."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    exponent = bits >> _MANTISSA_BITS
    mantissa = bits & ((1 << _MANTISSA_BITS) - 1)
    if exponent:
        mantissa |= 1 << _MANTISSA_BITS
    power = max(exponent, 1) - 1023 if value else 0
    digits = _MANTISSA_BITS // 4
    if precision is not None and precision < digits:
        dropped = 4 * (digits - precision)
        half = 1 << (dropped - 1)
        rest = mantissa & ((1 << dropped) - 1)
        mantissa >>= dropped
        mantissa += rest > half or (rest == half and mantissa & 1)
        digits = precision
    fraction = format(mantissa & ((1 << 4 * digits) - 1), f"0{digits}x") if digits else ""
    fraction = fraction.rstrip("0") if precision is None else fraction.ljust(precision, "0")
    dot = "." if fraction or point else ""
    return f"0x{mantissa >> 4 * digits}{dot}{fraction}p{power:+d}"
