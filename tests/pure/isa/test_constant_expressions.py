"""Constant expressions, with values that ptxas of CUDA 13.0 and 13.5 gives."""

from __future__ import annotations

import pytest

from ptx.isa import PtxSyntaxError, parse
from ptx.isa.model import FloatImmediate, Immediate, Instruction
from tests.pure.isa.test_module import HEADER, instructions

# The 64 bits of each expression.
VALUES = {
    "(3+4)*2": 14, "(3)": 3, "1<<4": 16, "5>3": 1, "WARP_SZ*2": 64, "0x10|1": 17, "!0": 1,
    "!5": 0, "-1": 2**64 - 1, "~1": 2**64 - 2, "+1": 1, "1?2:3": 2, "1&&2": 1, "1||0": 1,
    "3 % 2": 1, "7/2": 3, "-7/2": 2**64 - 3, "-7 % 3": 0, "- -1": 1, "2--3": 5, "1-2-3": 2**64 - 4,
    "-8>>1": 2**64 - 4, "-8U>>1": 2**63 - 4, "1<<64": 1, "1<<-1": 2**63, "-1>>65": 2**64 - 1,
    "1<<63>>63": 2**64 - 1, "0xFFFFFFFFFFFFFFFF>>1": 2**63 - 1, "-1 > 0": 0, "-1 > 0U": 1,
    "(.u64)-1 > 0": 1, "(.s64)-1 < (.s64)1U": 1, "-1 < 1U": 0, "(0?-1:1U)>>1": 0,
    "(0?1U:-8)>>1": 2**64 - 4, "1?2:3?4:5": 2, "0?2:0?4:5": 5, "6&3==3": 0, "1|2&3": 3,
    "1.0<2.0": 1, "(1.5>1.0)+1": 2, "0777": 511, "0b101": 5, "0x1U": 1, "~0>>1": 2**63 - 1,
    "18446744073709551617": 1, "9223372036854775807+1": 2**63, "1<2<3": 1, "2*-3": 2**64 - 6,
}  # fmt: skip
FLOATS = {
    "1.0/3.0": 0x3FD5555555555555, "-(1.5)": 0xBFF8000000000000, "+2.5": 0x4004000000000000,
    ".5": 0x3FE0000000000000, "5.": 0x4014000000000000, "0d3FF0000000000000 + 1.0": 2**62,
    "1.0*1e200*1e200": 0x7FF0000000000000, "-0d7FF0000000000001": 0xFFF0000000000001,
}  # fmt: skip
WRONG = (
    "08", "1u", "0b2", "1.0&1", "1.0+1", "!1.0", "~1.0", "1.0?1:2", "1?1.0:2", "7/0", "1.0/0.0",
    "1 % 0", "(.s32)1", "(.f64)1", "99999999999999999999", "0x90000000000000000", "1e309",
    "1e-400", "(1", "1)", "1 2", "0f3F800000+1.0", "-0f3F800000", "5 %3", "1 < < 2",
)  # fmt: skip


def initial(text: str, kind: str) -> object:
    (variable,) = parse(f"{HEADER}.global .{kind} x = {text};\n").variables.values()
    (element,) = variable.initialiser
    return element


def test_expressions_have_the_values_and_types_that_the_assembler_gives_them() -> None:
    found = {text: initial(text, "b64") for text in VALUES}
    wrapped = {text: value % 2**64 for text, value in found.items() if isinstance(value, int)}
    assert wrapped == VALUES
    floats = {text: initial(text, "f64") for text in FLOATS}
    assert floats == {text: FloatImmediate(bits, 64) for text, bits in FLOATS.items()}


def test_an_operand_is_an_expression_as_well() -> None:
    wrong = {}
    for text, bits in VALUES.items():
        (move,) = instructions(f".reg .b64 %rd; mov.u64 %rd, {text};")
        operand = move.operands[1]
        if not isinstance(operand, Immediate) or operand.value % 2**64 != bits:
            wrong[text] = operand
    assert wrong == {}


def test_wrong_expressions_are_rejected() -> None:
    accepted: list[object] = []
    for text in WRONG:
        try:
            accepted.append((text, initial(text, "b64")))
        except PtxSyntaxError:
            pass
        try:
            accepted.append((text, instructions(f".reg .b64 %rd; mov.u64 %rd, {text};")))
        except PtxSyntaxError:
            pass
    assert accepted == []


def test_offsets_of_addresses_are_expressions_after_a_plus() -> None:
    body = ".reg .b64 %rd; .reg .b32 %r; ld.global.b32 %r, [{}];"
    for address, offset in (
        ("%rd+4*2", 8), ("x+(4)", 4), ("%rd+-4", -4), ("x+1?4:8", 4), ("x+4-8", -4),
    ):  # fmt: skip
        text = HEADER + f".global .b32 x;\n.entry k() {{ {body.format(address)} }}\n"
        (load,) = parse(text).body("k").statements
        assert isinstance(load, Instruction)
        assert getattr(load.operands[1], "offset", None) == offset
    for address in ("%rd-4", "x-4", "4+x", "x+x", "%rd+1.0", "x*2"):
        text = HEADER + f".global .b32 x;\n.entry k() {{ {body.format(address)} }}\n"
        with pytest.raises(PtxSyntaxError):
            parse(text).body("k")


@pytest.mark.parametrize("count", [1, 14, 15, 16, 40])
def test_a_list_of_integers_may_follow_an_expression(count: int) -> None:
    zeros = ", 0" * count
    module = parse(f"{HEADER}.global .u32 g;\n.global .u64 t[99] = {{generic(g)+4{zeros}}};\n")
    assert module.variables["t"].initialiser[1:] == (0,) * count
    module = parse(f"{HEADER}.global .s32 t[99] = {{5 -4{zeros}, 3-1, -2{zeros}}};\n")
    assert module.variables["t"].initialiser == (1, *(0,) * count, 2, -2, *(0,) * count)


def test_a_question_mark_makes_no_label() -> None:
    body = ".reg .b32 %r; mov.u32 %r, 1?WARP_SZ:2; mov.u32 %r, 0 ? WARP_SZ : WARP_SZ; L: bra L;"
    assert [each.opcode for each in instructions(body)] == ["mov", "mov", "bra"]
