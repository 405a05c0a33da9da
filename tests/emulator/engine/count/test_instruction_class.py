"""The class of each instruction."""

from __future__ import annotations

import pytest

from ptx.emulate.codegen.table import operations
from ptx.emulate.count.instruction_class import InstructionClass as Of, class_of
from ptx.isa.model import Instruction
from tests.rows import all_rows


def instruction(text: str) -> Instruction:
    opcode, *modifiers = text.split(".")
    return Instruction(opcode, tuple(modifiers), (), None, 1, None)


@all_rows
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add.rn.f32", Of.FP32_ADD),
        ("sub.f64", Of.FP64_ADD),
        ("mul.f16x2", Of.FP16_MUL),
        ("fma.rn.bf16x2", Of.FP16_FMA),
        ("fma.rn.ftz.f32", Of.FP32_FMA),
        ("mad.lo.s32", Of.INTEGER),
        ("mul.wide.u32", Of.INTEGER),
        ("setp.lt.f64", Of.FP64_OTHER),
        ("set.lt.u32.f32", Of.FP32_OTHER),
        ("setp.ge.s32", Of.INTEGER),
        ("div.rn.f32", Of.SPECIAL),
        ("div.s32", Of.INTEGER),
        ("ex2.approx.f32", Of.SPECIAL),
        ("shl.b32", Of.BIT),
        ("cvt.rn.f32.s32", Of.CONVERSION),
        ("cvta.to.global.u64", Of.MOVE),
        ("selp.f32", Of.MOVE),
        ("ld.global.nc.v4.f32", Of.LOAD_GLOBAL),
        ("ld.volatile.shared.u32", Of.LOAD_SHARED),
        ("ld.shared::cluster.u32", Of.LOAD_SHARED),
        ("ld.f32", Of.LOAD_GENERIC),
        ("ld.param.u64", Of.LOAD_PARAM),
        ("ld.const.f32", Of.LOAD_CONST),
        ("st.local.u8", Of.STORE_LOCAL),
        ("atom.global.add.u32", Of.ATOMIC_GLOBAL),
        ("atom.add.f32", Of.ATOMIC_GENERIC),
        ("red.relaxed.gpu.global.add.f32", Of.REDUCTION_GLOBAL),
        ("bar.sync", Of.BARRIER),
        ("bar.warp.sync", Of.WARP),
        ("membar.gl", Of.FENCE),
        ("shfl.sync.bfly.b32", Of.WARP),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16", Of.LOAD_MATRIX),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", Of.MATRIX),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", Of.LOAD_MATRIX),
        ("cp.async.ca.shared.global", Of.COPY),
        ("vadd4.u32.u32.u32", Of.INTEGER),
        ("bra.uni", Of.CONTROL),
    ],
)
def test_an_instruction_has_its_class(text: str, expected: Of) -> None:
    assert class_of(instruction(text)) is expected


def test_every_operation_of_the_emulator_has_a_class() -> None:
    without = [
        f"{operation.name}.{suffix}"
        for operation in operations()
        for suffix in operation.types
        if operation.section != "this test"  # of another test
        if class_of(instruction(f"{operation.name}.{suffix}".rstrip("."))) is Of.OTHER
    ]
    assert without == []
