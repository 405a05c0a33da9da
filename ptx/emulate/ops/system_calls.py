"""Functions that PTX only declares: `vprintf`, `__assertfail`, `malloc`, `free` and others.

PTX ISA, "System Calls"; CUDA C++ Programming Guide, "Formatted Output", "Assertion", "Dynamic
Global Memory Allocation and Operations", "Conditional Graph Nodes". The arguments of `vprintf` lie
one after another, each at the next address that is a multiple of its size, as measured on an H200.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from ptx.emulate.access.memory_access import load, read_string
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import external
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import addresses_in
from ptx.emulate.model.errors import (
    AssertionFailed,
    BadFree,
    InvalidCondition,
    InvalidFree,
    Misaligned,
    UnsupportedInstruction,
)
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import width_of
from ptx.emulate.ops.data_movement import publish
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Symbol
from ptx.standard_streams import write_error

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
        stars = tuple("s32" for field in (self.width, self.precision) if field == "*")
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
    parts: list[Conversion] = []
    end = 0
    for match in _SPEC.finditer(text):
        flags, width, precision, size, letter = match.groups()
        if letter != "%" and letter not in "cdiouxXpeEfFgGaAs":
            continue
        parts.append(Conversion(text[end : match.start()]))
        end = match.end()
        if letter == "%":
            parts.append(Conversion("%"))
        else:
            parts.append(Conversion(match.group(), letter, flags, width, precision, size or ""))
    parts.append(Conversion(text[end:]))
    return tuple(part for part in parts if part.text)


def render(conversion: Conversion, values: list[int | float | str | None]) -> str:
    """The text of a conversion; a string argument comes as its text, None for a null pointer.

    Raises:
        OverflowError: its width or precision is above `MOST_WIDTH`.
    """
    if not conversion.letter:
        return conversion.text
    remaining = list(values)
    flags = conversion.flags
    width = _number(conversion.width, remaining)
    precision = _number(conversion.precision, remaining)
    if width is not None and width < 0:
        flags, width = flags + "-", -width
    if precision is not None and precision < 0:
        precision = None
    value = remaining[0]
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


def _number(part: str | None, remaining: list[int | float | str | None]) -> int | None:
    if part is None:
        return None
    if part == "*":
        number = int(remaining.pop(0) or 0)
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
        dropped_bits = mantissa & ((1 << dropped) - 1)
        mantissa >>= dropped
        mantissa += dropped_bits > half or (dropped_bits == half and mantissa & 1)
        digits = precision
    fraction = format(mantissa & ((1 << 4 * digits) - 1), f"0{digits}x") if digits else ""
    fraction = fraction.rstrip("0") if precision is None else fraction.ljust(precision, "0")
    dot = "." if fraction or point else ""
    return f"0x{mantissa >> 4 * digits}{dot}{fraction}p{power:+d}"


_NO_FORMAT = np.int32(-1)
_ONE = np.uint64(1)
_WORD: Final = 4  # the least alignment of the arguments of vprintf on an H200


def print_formatted(fibre: Fibre, form: Value, arguments: Value, instruction: Instruction) -> Value:
    """`vprintf` for each thread in order; gives the number of arguments, -1 for a null format."""
    results = np.zeros(fibre.n, dtype=np.int32)
    forms = fibre.spread(form)
    for address in np.unique(forms):
        positions = (forms == address).nonzero()[0]
        if not address:
            results[positions] = _NO_FORMAT
            continue
        part = fibre if len(positions) == fibre.n else fibre.subset(positions, ())
        argument_addresses = arguments.take(positions) if arguments.ndim else arguments
        text = read_string(part, 0, int(address), instruction)
        results[positions] = _print(part, conversions(text), argument_addresses, instruction)
    return results


def _print(
    fibre: Fibre, pieces: tuple[Conversion, ...], arguments: Value, instruction: Instruction
) -> int:
    """Print one format for all threads; the number of arguments."""
    columns = _columns(fibre, pieces, arguments, instruction)
    out = fibre.blocks.launch.output
    for position in range(fibre.n):
        used_count = 0
        line: list[str] = []
        for piece in pieces:
            kinds = piece.arguments
            values = [
                _element(column, position)
                for column in columns[used_count : used_count + len(kinds)]
            ]
            used_count += len(kinds)
            if piece.letter == "s":
                address = int(values[-1] or 0)
                values[-1] = read_string(fibre, position, address, instruction) if address else None
            try:
                line.append(render(piece, values))
            except OverflowError as error:
                raise UnsupportedInstruction(
                    fibre.blocks.launch.code.kernel, instruction.text, instruction.line, str(error)
                ) from None
        out.write("".join(line))
    return len(columns)


def _columns(
    fibre: Fibre, pieces: tuple[Conversion, ...], arguments: Value, instruction: Instruction
) -> list[Value]:
    """Each argument, a scalar or one for each thread."""
    columns: list[Value] = []
    address = np.asarray(arguments, dtype=np.uint64)
    wrong = address % np.uint64(_WORD) != 0
    if wrong.any() and any(piece.arguments for piece in pieces):
        position = int(np.argmax(wrong))
        place = int(address[position] if address.ndim else address)
        raise Misaligned(
            f"vprintf reads its arguments at {place:#x}, which is no multiple of {_WORD}",
            fibre.where(position, instruction),
            address=place,
            nbytes=_WORD,
            space="generic",
        )
    for piece in pieces:
        for kind in piece.arguments:
            size = np.uint64(width_of(kind))
            address = (address + size - _ONE) & ~(size - _ONE)
            site = Site(instruction, "generic", kind, 1, writes=False)
            columns.append(load(fibre, addresses_in(address), 0, site))
            address = address + size
    return columns


def _element(column: Value, position: int) -> int | float | str | None:
    value: int | float = (column[position] if column.ndim else column).item()
    return value


def _printf(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    form, values = (e.parameter(symbol, "u64") for symbol in arguments[:2])
    site = e.scope.bind(e.instruction, "instruction")
    count = e.temporary(f"{e.helper(print_formatted)}(f, {form}, {values}, {site})")
    if results:
        e.set_parameter(results[0], "s32", count)


external("vprintf", 2, _printf)


_MOST_LINES = 1024


def fail(
    fibre: Fibre,
    message: Value,
    file: Value,
    line: Value,
    function: Value,
    instruction: Instruction,
) -> None:
    """Write what failed to standard error, a line for each thread.

    Raises:
        AssertionFailed: always.
    """
    blocks = fibre.blocks
    blocks.launch.output.flush()

    def words(position: int) -> tuple[str, str, int, str]:
        text, name, caller = (
            read_string(fibre, position, int(fibre.spread(address)[position]), instruction)
            for address in (message, file, function)
        )
        return text, name, int(fibre.spread(line)[position]), caller

    uniform = not any(address.ndim for address in (message, file, line, function))
    first = words(0)
    lanes = fibre.lane_numbers()
    report: list[str] = []
    for position in range(min(fibre.n, _MOST_LINES)):
        text, name, number, caller = first if uniform else words(position)
        block = ",".join(map(str, blocks.block_of(int(lanes[position]))))
        thread = ",".join(map(str, blocks.thread_of(int(lanes[position]))))
        report.append(
            f"{name}:{number}: {caller}: block: [{block}], thread: [{thread}] "
            f"Assertion `{text}` failed.\n"
        )
    if fibre.n > _MOST_LINES:
        report.append(f"... and {fibre.n - _MOST_LINES} more threads\n")
    write_error("".join(report).encode("latin-1").decode(errors="replace"))
    text, name, number, caller = first
    raise AssertionFailed(
        f"assertion `{text}` failed in {caller} at {name}:{number}",
        fibre.where(0, instruction),
        assertion=text,
        file=name,
        line=number,
        function=caller,
    )


def _assert_fail(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    types = ("u64", "u64", "u32", "u64")
    values = [e.parameter(symbol, kind) for symbol, kind in zip(arguments, types, strict=False)]
    site = e.scope.bind(e.instruction, "instruction")
    e.line(f"{e.helper(fail)}(f, {', '.join(values)}, {site})")


external("__assertfail", 4, _assert_fail)
external("__assert_fail", 4, _assert_fail)


def allocate(fibre: Fibre, sizes: Value, instruction: Instruction) -> Value:
    """`malloc` for each thread in order: (n,) uint64 addresses, 0 where the heap is full."""
    launch = fibre.blocks.launch
    heap = launch.device.heap
    location = instruction.location
    source_line = f"PTX line {instruction.line}"
    if location is not None:
        source_line = f"{launch.code.files.get(location.file)}:{location.line}"
    origin = f"malloc in kernel {launch.code.kernel}, {source_line}"
    addresses = [heap.allocate(int(nbytes), origin) for nbytes in fibre.spread(sizes)]
    return np.array(addresses, dtype=np.uint64)


def free(fibre: Fibre, addresses: Value, instruction: Instruction) -> None:
    """`free` for each thread in order; a null pointer is nothing to free.

    Raises:
        InvalidFree: an address is no live allocation of device code.
    """
    heap = fibre.device.heap
    for position, address in enumerate(fibre.spread(addresses)):
        try:
            if address:
                heap.free(int(address))
        except BadFree as error:
            where = fibre.where(position, instruction)
            raise InvalidFree(str(error), where, address=int(address)) from None


def _malloc(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    size = e.parameter(arguments[0], "u64")
    site = e.scope.bind(e.instruction, "instruction")
    addresses = e.temporary(f"{e.helper(allocate)}(f, {size}, {site})")
    if results:
        e.set_parameter(results[0], "u64", addresses)


def _free(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    address = e.parameter(arguments[0], "u64")
    if e.late.stores:  # the memory may be another block's from now on
        e.line(f"{e.helper(publish)}(f)")
    e.line(f"{e.helper(free)}(f, {address}, {e.scope.bind(e.instruction, 'instruction')})")


external("malloc", 1, _malloc)
external("free", 1, _free)


def set_condition(fibre: Fibre, handles: Value, values: Value, instruction: Instruction) -> None:
    """Set a condition for each thread in order, so that the last one counts.

    Raises:
        InvalidCondition: a handle is none of a condition.
    """
    numbers = fibre.spread(handles)
    words = np.asarray(fibre.spread(values)).astype(np.uint32)
    for position in range(fibre.n):
        handle = int(numbers[position])
        if not fibre.device.set_condition(handle, int(words[position])):
            raise InvalidCondition(
                f"cudaGraphSetConditional of {handle:#x}, which is no handle of a condition",
                fibre.where(position, instruction),
            )


def _set_condition(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    handle, value = e.parameter(arguments[0], "u64"), e.parameter(arguments[1], "u32")
    site = e.scope.bind(e.instruction, "instruction")
    e.line(f"{e.helper(set_condition)}(f, {handle}, {value}, {site})")


external("cudaGraphSetConditional", 2, _set_condition)
