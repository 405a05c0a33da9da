"""Instructions run on lanes of bits: each on its own, varying or uniform, in both dialects."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

Bits = NDArray[Any]
"""Unsigned integers: the bits of one operand or result, a lane each."""
Dialect = Literal["typed", "bits"]
_PACK = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True)
class Case:
    """An instruction with the register types of its operands.

    `target` and `sources` are "16", "32", "64", "f32", "f64" or, for the target only, "pred",
    which is stored as 0 or 1 of 32 bits.
    """

    instruction: str
    target: str
    sources: tuple[str, ...]


def _width(register: str) -> int:
    return 4 if register == "pred" else int(register.removeprefix("f")) // 8


def _register_type(register: str, dialect: Dialect) -> str:
    if register == "pred":
        return "pred"
    if dialect == "typed" and register[0] == "f":
        return register
    return "b" + register.removeprefix("f")


def _cleared(target: str, kind: str) -> str:
    """Zero in a register, which a guard may then keep."""
    if kind == "pred":
        return f"setp.ne.u32 {target}, 0, 0;"
    return f"mov.{kind} {target}, {'0' if kind[0] == 'b' else '0d0000000000000000'};"


def _body(cases: Sequence[Case], dialect: Dialect, n: int, guard: str) -> str:
    """Code that applies each case to %in0, %in1, … and stores its result in a row of its own."""
    lines: list[str] = []
    row = 0
    for number, case in enumerate(cases):
        kind = _register_type(case.target, dialect)
        target = f"%d{number}"
        lines.append(f".reg .{kind} {target};")
        names = [f"%in{position}_{source}" for position, source in enumerate(case.sources)]
        bits = _width(case.target) * 8
        if guard:
            lines.append(_cleared(target, kind))
        lines.append(f"{guard}{case.instruction} {target}, {', '.join(names)};")
        if case.target == "pred":
            lines.append(f".reg .b32 %q{number}; selp.b32 %q{number}, 1, 0, {target};")
            target = f"%q{number}"
        lines.append(f"st.global.b{bits} [%out_{bits // 8} + {row}], {target};")
        row += n * 8
    return "\n".join(lines)


def _inputs(cases: Sequence[Case]) -> list[tuple[int, str]]:
    found = {(p, source) for case in cases for p, source in enumerate(case.sources)}
    return sorted(found)


def run_lanes(
    cases: Sequence[Case],
    operands: Sequence[Bits],
    *,
    dialect: Dialect = "typed",
    odd_only: bool = False,
) -> list[Bits]:
    """Give each case's results, one a lane; with `odd_only` a guard leaves even lanes zero."""
    n = len(operands[0])
    lines = [
        ".reg .b64 %base<8>; .reg .b64 %at, %row, %out_1, %out_2, %out_4, %out_8;",
        ".reg .b32 %t, %u; .reg .pred %odd; mov.u32 %t, %tid.x; mov.u32 %u, %ctaid.x;",
        "mad.lo.u32 %t, %u, 256, %t;",
        f"setp.ge.u32 %odd, %t, {n}; @%odd bra DONE;",
        "and.b32 %u, %t, 1; setp.ne.u32 %odd, %u, 0; ld.param.u64 %base7, [out];",
        *(f"mul.wide.u32 %row, %t, {w}; add.u64 %out_{w}, %base7, %row;" for w in (1, 2, 4, 8)),
    ]
    params = [".param .u64 out"]
    for position, source in _inputs(cases):
        width = operands[position].dtype.itemsize
        kind = _register_type(source, dialect)
        if width != _width(source):
            kind = f"u{8 * width}"
        lines.append(
            f".reg .{_register_type(source, dialect)} %in{position}_{source};"
            f"ld.param.u64 %base0, [in{position}]; mul.wide.u32 %row, %t, {width};"
            f"add.u64 %at, %base0, %row; ld.global.{kind} %in{position}_{source}, [%at];"
        )
    params += [f".param .u64 in{position}" for position in range(len(operands))]
    body = _body(cases, dialect, n, "@%odd " if odd_only else "")
    text = ptx_text("\n".join(lines) + body + "\nDONE: ret;", ", ".join(params))
    runner = KernelRunner(text, 1 << 26)
    out = runner.put(np.zeros(len(cases) * n, np.uint64))
    places = [runner.put(each) for each in operands]
    runner.launch("k", -(-n // 256), 256, out, *places)
    return [_row(runner, out, number, n, case) for number, case in enumerate(cases)]


def _row(runner: KernelRunner, out: int, number: int, n: int, case: Case) -> Bits:
    width = _width(case.target)
    return runner.get(out + number * n * 8, n, np.dtype(f"u{width}"))


def run_uniform(
    cases: Sequence[Case], operands: Sequence[Bits], lanes: Sequence[int], dialect: Dialect
) -> list[list[int]]:
    """Give each case's results where the operands are kernel parameters, one list a lane."""
    lines = [".reg .b64 %base, %out_1, %out_2, %out_4, %out_8; ld.param.u64 %base, [out];"]
    lines += [f"mov.b64 %out_{w}, %base;" for w in (1, 2, 4, 8)]
    params = [".param .u64 out"]
    for position, operand in enumerate(operands):
        params.append(f".param .u{8 * operand.dtype.itemsize} in{position}")
    for position, source in _inputs(cases):
        width = operands[position].dtype.itemsize
        kind = _register_type(source, dialect)
        read = kind if width == _width(source) else f"u{8 * width}"
        name = f"%in{position}_{source}"
        lines.append(f".reg .{kind} {name}; ld.param.{read} {name}, [in{position}];")
    text = ptx_text("\n".join(lines) + _body(cases, dialect, 1, "") + "\nret;", ", ".join(params))
    runner = KernelRunner(text, 1 << 26)
    found = []
    for lane in lanes:
        out = runner.put(np.zeros(len(cases), np.uint64))
        values = [struct.pack("<" + _PACK[x.dtype.itemsize], int(x[lane])) for x in operands]
        runner.launch("k", 1, 1, out, *values)
        rows = [_row(runner, out, number, 1, case) for number, case in enumerate(cases)]
        found.append([int(row[0]) for row in rows])
    return found
