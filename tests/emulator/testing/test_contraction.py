"""Sums that ptxas may fuse with products: found in PTX as in machine code, and reported."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import pytest

import ptx
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import (
    KernelCase,
    Tolerance,
    Verdict,
    VerifyOptions,
    saved_findings,
    verify,
)
from cudadrv.testing.verify.contraction import contractions
from ptx.isa.module import parse

REGISTERS: Final = {"f32": "f32", "f64": "f64", "f16": "b16", "bf16": "b16", "f16x2": "b32"}
WIDTHS: Final = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "f16x2": 4}
# One line an instruction; T is the type, B the type of `mov` and R that of registers. A name in
# braces is stored.
SHAPES: Final = {
    "a sum": ("mul.T x,a,b;|add.T y,x,c;|{y}", 1),
    "the product second": ("mul.T x,a,b;|add.T y,c,x;|{y}", 1),
    "a difference": ("mul.T x,a,b;|sub.T y,x,c;|{y}", 1),
    "a difference with the product second": ("mul.T x,a,b;|sub.T y,c,x;|{y}", 1),
    "a product that is stored": ("mul.T x,a,b;|add.T y,x,c;|{y}{x}", 0),
    "two sums": ("mul.T x,a,b;|add.T y,x,c;|add.T z,x,d;|{y}{z}", 2),
    "two sums and a store": ("mul.T x,a,b;|add.T y,x,c;|add.T z,x,d;|{y}{z}{x}", 0),
    "two products": ("mul.T x,a,b;|mul.T y,c,d;|add.T z,x,y;|{z}", 1),
    "a product twice": ("mul.T x,a,b;|add.T z,x,x;|{z}", 0),
    "a rounded product": ("mul.rn.T x,a,b;|add.T y,x,c;|{y}", 0),
    "a rounded sum": ("mul.T x,a,b;|add.rn.T y,x,c;|{y}", 0),
    "neg": ("mul.T x,a,b;|neg.T x,x;|add.T y,x,c;|{y}", 1),
    "abs": ("mul.T x,a,b;|abs.T x,x;|add.T y,x,c;|{y}", 0),
    "mov": ("mul.T x,a,b;|mov.B z,x;|add.T y,z,c;|{y}", 1),
    "another block": ("mul.T x,a,b;|{x}|@p bra L;|bar.sync 0;|add.T y,x,c;|{y}|L:", 0),
    "another round": ("mov.B y,e;|mul.T x,a,b;|L:|add.T y,x,y;|add.u32 t,t,-1;|"
                      "setp.ne.u32 q,t,0;|@q bra L;|{y}", 0),
    "a round": ("mov.B y,e;|L:|mul.T x,y,b;|add.T y,x,c;|add.u32 t,t,-1;|setp.ne.u32 q,t,0;|"
                "@q bra L;|{y}", 1),
    "a guarded product": ("mov.B x,d;|@p mul.T x,a,b;|add.T y,x,c;|{y}", 0),
    "a guarded sum": ("mul.T x,a,b;|mov.B y,d;|@p add.T y,x,c;|{y}", 1),
    "its own register": ("mul.T a,a,b;|add.T a,a,c;|{a}", 1),
    "a fused operation": ("mul.T x,a,b;|fma.rn.T y,c,d,x;|{y}", 0),
}  # fmt: skip
OF_SINGLE: Final = {
    "both flush": ("mul.ftz.T x,a,b;|add.ftz.T y,x,c;|{y}", 1),
    "the product flushes": ("mul.ftz.T x,a,b;|add.T y,x,c;|{y}", 0),
    "the sum flushes": ("mul.T x,a,b;|add.ftz.T y,x,c;|{y}", 0),
    "the product saturates": ("mul.sat.T x,a,b;|add.T y,x,c;|{y}", 0),
    "the sum saturates": ("mul.T x,a,b;|add.sat.T y,x,c;|{y}", 1),
    "a selection": ("mul.T x,a,b;|selp.T x,x,d,p;|add.T y,x,c;|{y}", 0),
}


def kernel(name: str, ptx_type: str, shape: str) -> str:
    register, width = REGISTERS[ptx_type], WIDTHS[ptx_type]
    plain = f"b{8 * width}" if register[0] == "b" else register
    stored = iter(range(64))
    body = re.sub(
        r"\{([%\w]+)\}", lambda m: f"st.global.{register} [%o+{8 * next(stored)}],{m[1]};|", shape
    )
    body = re.sub(r"\bB\b", plain, re.sub(r"\bT\b", ptx_type, body))
    loads = "\n".join(
        f"ld.global.{register} {letter},[%i+{k * width}];" for k, letter in enumerate("abcde")
    )
    lines = body.replace("L", f"L{name}").replace("|", "\n")
    return f""".visible .entry {name}(.param .u64 I, .param .u64 O)
{{
.reg .b64 %i,%o; .reg .{register} a,b,c,d,e,x,y,z,%v<40>; .reg .pred p,q; .reg .b32 t;
ld.param.u64 %i,[I]; ld.param.u64 %o,[O]; cvta.to.global.u64 %i,%i; cvta.to.global.u64 %o,%o;
mov.u32 t,%tid.x; mad.wide.u32 %i,t,512,%i; mad.wide.u32 %o,t,512,%o; setp.gt.u32 p,t,7;
{loads}
{lines}
ret;
}}
"""


def module(kernels: list[str]) -> str:
    return "\n".join([".version 8.6", ".target sm_90", ".address_size 64", *kernels])


def found_in_ptx(text: str) -> dict[str, int]:
    parsed = parse(text)
    return {entry.name: len(contractions(parsed.body(entry.name))) for entry in parsed.entries}


def found_in_machine_code(text: str) -> dict[str, int]:
    """How many `add`, `sub` and `mul` of PTX became a fused operation, by kernel."""
    lines = text.split("\n")
    try:
        functions = ptx.disassemble(ptx.Image.from_ptx(text), ptx.Target.cubin("sm_90"))
    except (ptx.NvdisasmNotFoundError, ptx.NvJitLinkNotFoundError) as error:
        pytest.skip(f"it needs {type(error).__name__.removesuffix('NotFoundError')}")
    return {
        function.name: len(
            {
                instruction.ptx_line
                for instruction in function.instructions
                if re.match("[FDH]FMA", instruction.opcode)
                and re.match(r"(?:@p )?(?:add|sub|mul)\.", lines[instruction.ptx_line - 1])
            }
        )
        for function in functions
    }


@pytest.mark.slow
def test_sums_that_may_be_fused_are_those_of_the_machine_code_by_shape() -> None:
    expected, kernels = {}, []
    for ptx_type in ("f32", "f64", "f16", "bf16"):
        shapes = {**SHAPES, **(OF_SINGLE if ptx_type == "f32" else {})}
        for number, (what, (shape, count)) in enumerate(shapes.items()):
            name = f"k{number}_{ptx_type}"
            expected[name] = what, count
            kernels.append(kernel(name, ptx_type, shape))
    text = module(kernels)
    counts = {name: count for name, (_, count) in expected.items()}
    assert found_in_ptx(text) == counts
    machine = found_in_machine_code(text)
    # A pair of sums of halves is one instruction there.
    pairs = [n for n, (what, _) in expected.items() if what == "two sums" and "f16" in n]
    wrong = {n: (expected[n], machine[n]) for n in counts if machine[n] != counts[n]}
    assert {name: each for name, each in wrong.items() if name not in pairs} == {}


def random_lines(chance: random.Random) -> Iterator[str]:
    """Yield random arithmetic, in which every value is used or stored."""
    values, unused, seen = list("abcde"), set[str](), set[tuple[str, ...]]()
    for number in range(chance.randint(4, 24)):
        first, second = chance.sample(values[-8:], 2)
        opcode = chance.choice(
            ("mul", "mul", "mul", "add", "add", "sub", "neg", "mul.rn", "add.rn")
        )
        operands = (first,) if opcode == "neg" else (first, second)
        if (opcode, *operands) in seen or (opcode == "neg" and first in "abcde"):
            continue  # a common subexpression, or a sign that an operand takes
        seen |= {(opcode, *operands), (opcode, *reversed(operands))}
        result = f"%v{number}"
        yield f"{opcode}.T {result},{','.join(operands)};"
        unused -= set(operands)
        unused.add(result)
        values.append(result)
        if chance.random() < 0.08:
            yield "bar.sync 0;"
    yield from (f"{{{name}}}" for name in sorted(unused))


@pytest.mark.slow
def test_sums_that_may_be_fused_are_those_of_the_machine_code_in_random_kernels() -> None:
    chance = random.Random(5)
    text = module(
        [
            kernel(f"r{number}_{ptx_type}", ptx_type, "|".join(random_lines(chance)))
            for ptx_type in ("f32", "f64")
            for number in range(60)
        ]
    )
    counts, machine = found_in_ptx(text), found_in_machine_code(text)
    assert {n: (counts[n], machine[n]) for n in counts if counts[n] < machine[n]} == {}
    # A sum of two products is fused with one of them. The other stays, for its other sums, too.
    assert 0.95 * sum(counts.values()) < sum(machine.values()) > 80


SOURCE = """extern "C" __global__ void difference(float* x, float* y) {
    float p;
    asm("mul.f32 %0, %1, %1;" : "=f"(p) : "f"(x[threadIdx.x]));
    asm("sub.f32 %0, %1, %2;" : "=f"(y[threadIdx.x]) : "f"(p), "f"(1.00048828125f));
}"""
OPTIONS = VerifyOptions(examples=10, seconds=600, database=None, checks=("init",), explain=False)


def difference(value: float, tolerance: Tolerance) -> KernelCase:
    n = st.sizes(1, 32)
    return KernelCase(
        SOURCE,
        arguments={"x": st.arrays(np.float32, n, (value, value)), "y": st.unwritten(np.float32, n)},
        launch=st.launch_configs(blocks=1, block=n),
        reference=lambda x: {"y": x * x - np.float32(1.00048828125)},
        tolerance=tolerance,
    )


def verdict(value: float, tolerance: Tolerance) -> Verdict:
    return verify(difference(value, tolerance), OPTIONS, name="cases.py::difference")


@pytest.mark.slow
def test_verify_reports_the_lines_that_may_be_fused() -> None:
    found = verdict(2.0, Tolerance(ulps=1))
    (line,) = found.contractions
    assert (found.is_verified, line.line) == (True, 4)
    assert "  ptxas may contract 1 place: difference.cu:4" in str(found).splitlines()
    assert Verdict.from_json(found.to_json()) == found


@pytest.mark.slow
def test_verify_rejects_values_that_a_gpu_rounds_outside_the_tolerance() -> None:
    found = verdict(1 + 2.0**-12, Tolerance(ulps=1))
    assert [finding.check for finding in found.findings] == ["values"]
    assert "ptx.NO_FMA" in found.findings[0].note
    assert verdict(1 + 2.0**-12, Tolerance(absolute=2.0**-23)).is_verified


@pytest.mark.slow
def test_a_finding_of_fused_operations_is_saved_with_them() -> None:
    tolerance = Tolerance(ulps=1)
    found = verdict(1 + 2.0**-12, tolerance)
    (saved,) = saved_findings(difference(1 + 2.0**-12, tolerance), found)
    assert "fma.rn.f32" in saved.ptx
    assert [fault.check for fault in saved.faults()] == ["values"]
    assert "fma" not in verdict(2.0, tolerance).ptx
