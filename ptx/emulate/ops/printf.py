"""Formatted output of kernels: the system call `vprintf`.

CUDA C++ Programming Guide, "Formatted Output"; PTX ISA has only the call. The arguments lie one
behind another, each at a multiple of its size.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.access.memory_access import load, read_string
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import external
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import addresses_in
from ptx.emulate.model.errors import UnsupportedInstruction
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import width_of
from ptx.emulate.ops.printf_format import Conversion, conversions, render
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Symbol

_NO_FORMAT = np.int32(-1)


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
        where = arguments.take(positions) if arguments.ndim else arguments
        text = read_string(part, 0, int(address), instruction)
        results[positions] = _print(part, conversions(text), where, instruction)
    return results


def _print(
    fibre: Fibre, pieces: tuple[Conversion, ...], arguments: Value, instruction: Instruction
) -> int:
    """Print one format for all threads; the number of arguments."""
    columns = _columns(fibre, pieces, arguments, instruction)
    out = fibre.blocks.launch.output
    for position in range(fibre.n):
        taken = 0
        line: list[str] = []
        for piece in pieces:
            kinds = piece.arguments
            values = [_element(column, position) for column in columns[taken : taken + len(kinds)]]
            taken += len(kinds)
            if piece.letter == "s":
                address = int(values[-1] or 0)
                values[-1] = read_string(fibre, position, address, instruction) if address else None
            try:
                line.append(render(piece, values))
            except OverflowError as error:
                raise UnsupportedInstruction(
                    fibre.blocks.launch.code.kernel, instruction.text, instruction.line,
                    str(error),
                ) from None  # fmt: skip
        out.write("".join(line))
    return len(columns)


def _columns(
    fibre: Fibre, pieces: tuple[Conversion, ...], arguments: Value, instruction: Instruction
) -> list[Value]:
    """Each argument, a scalar or one for each thread."""
    base = addresses_in(arguments)
    found: list[Value] = []
    offset = 0
    for piece in pieces:
        for kind in piece.arguments:
            size = width_of(kind)
            offset = -(-offset // size) * size
            site = Site(instruction, "generic", kind, 1, writes=False)
            found.append(load(fibre, base, offset, site))
            offset += size
    return found


def _element(column: Value, position: int) -> int | float | str | None:
    value: int | float = (column[position] if column.ndim else column).item()
    return value


def _emit(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    form, values = (e.parameter(symbol, "u64") for symbol in arguments[:2])
    site = e.scope.bind(e.instruction, "instruction")
    count = e.temporary(f"{e.helper(print_formatted)}(f, {form}, {values}, {site})")
    if results:
        e.set_parameter(results[0], "s32", count)


external("vprintf", 2, _emit)
