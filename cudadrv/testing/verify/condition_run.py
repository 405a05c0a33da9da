"""Evaluate conditions of a kernel for many values of what they begin with, on the emulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ptx.isa.conditions import written
from ptx.isa.model import Instruction, Register
from ptx.isa.registers import registers_in

from ...emulator import session
from ...launch.config import LaunchConfig
from ...stream import cuda_context_for
from .example_run import CompiledCase

Table: TypeAlias = npt.NDArray[Any]  # of unsigned integers
_BLOCK: Final = 256
_TYPES: Final = {16: np.uint16, 32: np.uint32, 64: np.uint64}


def width_of(register: Register) -> int:
    """Return the bits of a register; 0 of a predicate and of wider ones."""
    digits = register.ptx_type[1:]
    return int(digits) if digits.isdigit() and int(digits) in _TYPES else 0


def evaluated(
    compiled: CompiledCase,
    steps: Sequence[Instruction],
    leaves: Sequence[Register],
    tables: Mapping[str, Table],
    results: Sequence[Register],
) -> dict[str, Table]:
    """Return the values of registers after some calculations, for each row of tables.

    Args:
        compiled: the case whose PTX has the instructions.
        steps: the calculations, in an order to run them.
        leaves: the registers that have their values from the tables.
        tables: by the name of a leaf its bits in each row.
        results: the registers whose values are wanted: 0 or 1 of a predicate.
    """
    count = len(next(iter(tables.values())))
    source = _source(compiled, steps, leaves, results)
    config = LaunchConfig(-(-count // _BLOCK), _BLOCK)
    with session(check=[], order="immediate"):
        context = cuda_context_for(0)
        stream = context.default_stream
        kernel = context.load_module(source).kernel("conditions")
        columns = [
            stream.to_device(tables[each.name].astype(_TYPES[width_of(each)])) for each in leaves
        ]
        outputs = [stream.empty(count, _TYPES[width_of(each) or 32]) for each in results]
        kernel.launch(stream, config, *columns, *outputs, count)
        return {
            each.name: stream.to_host(output) for each, output in zip(results, outputs, strict=True)
        }


def _source(
    compiled: CompiledCase,
    steps: Sequence[Instruction],
    leaves: Sequence[Register],
    results: Sequence[Register],
) -> str:
    """Return PTX whose thread calculates the results of one row."""
    registers = {each.name: each for each in (*leaves, *results)}
    for step in steps:
        registers |= {
            each.name: each for operand in step.operands for each in registers_in(operand)
        }
    names = {name: f"%v{number}" for number, name in enumerate(registers)}
    lines = [f".reg .{registers[name].ptx_type} {short};" for name, short in names.items()]
    for number, leaf in enumerate(leaves):
        lines += _address(number, width_of(leaf))
        lines.append(f"ld.global.b{width_of(leaf)} {names[leaf.name]}, [%at];")
    for step in steps:
        operands = ", ".join(written(operand, names) for operand in step.operands)
        lines.append(f"{step.text} {operands};")
    for number, result in enumerate(results, len(leaves)):
        value, width = names[result.name], width_of(result)
        if not width:
            lines.append(f"selp.b32 %flag, 1, 0, {value};")
            value, width = "%flag", 32
        lines += _address(number, width)
        lines.append(f"st.global.b{width} [%at], {value};")
    count = len(leaves) + len(results)
    parameters = ", ".join(f".param .u64 p{number}" for number in range(count))
    return "\n".join(
        [
            *_header(compiled),
            f".visible .entry conditions({parameters}, .param .u32 count) {{",
            ".reg .pred %past; .reg .b32 %i, %n, %b, %t, %flag; .reg .b64 %at, %w;",
            f"mov.u32 %b, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %b, {_BLOCK}, %t;",
            "ld.param.u32 %n, [count]; setp.ge.u32 %past, %i, %n; @%past ret;",
            *lines,
            "ret; }",
        ]
    )


def _header(compiled: CompiledCase) -> Sequence[str]:
    """Return the header of the kernel's own PTX, whose version newer instructions need."""
    return [
        line
        for line in compiled.image.data.decode().split("\n")
        if line.startswith((".version", ".target", ".address_size"))
    ]


def _address(number: int, width: int) -> tuple[str, str]:
    """Return the instructions that give the address of this thread's row in a table."""
    return (
        f"ld.param.u64 %at, [p{number}]; mul.wide.u32 %w, %i, {width // 8};",
        "add.u64 %at, %at, %w;",
    )
