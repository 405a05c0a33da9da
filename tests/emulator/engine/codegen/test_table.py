"""Modifiers in any order; tests/contract/test_inline_assembly.py executes some."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from ptx.emulate.codegen.table import find_operation, in_table_order
from ptx.emulate.model.errors import OutOfBounds, UnsupportedInstruction
from ptx.emulate.program import Program
from ptx.isa.model import Immediate, Instruction
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text


def _instruction(text: str, operands: int) -> Instruction:
    opcode, *modifiers = text.split(".")
    return Instruction(opcode, tuple(modifiers), (Immediate(0),) * operands, None, 1, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", 2),
        ("fma.rn.ftz.sat.f32", 4),
        ("cvt.rn.satfinite.relu.e4m3x2.f32", 3),
        ("setp.lt.and.f32", 4),
        ("atom.acq_rel.gpu.global.add.u32", 3),
        ("shfl.sync.bfly.b32", 5),
        ("redux.sync.max.u32", 3),
        ("vadd.u32.s32.s32.sat.add", 4),
        ("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.u8.s32", 4),
    ],
)
def test_every_order_of_the_words_is_one_instruction(text: str, operands: int) -> None:
    instruction = _instruction(text, operands)
    record = find_operation(instruction)
    assert record is not None
    assert in_table_order(instruction) is instruction
    types = [word for word in instruction.modifiers if word in record.types]
    rng = random.Random(1)
    for _ in range(40):
        words = list(instruction.modifiers)
        rng.shuffle(words)
        # Types and layouts keep the order that they have among themselves.
        for group in (set(".".join(record.types).split(".")), {"row", "col"}):
            kept = iter([word for word in instruction.modifiers if word in group])
            words = [next(kept) if word in group else word for word in words]
        shuffled = in_table_order(_instruction(".".join([instruction.opcode, *words]), operands))
        assert find_operation(shuffled) is record
        assert sorted(shuffled.modifiers) == sorted(instruction.modifiers)
        assert [word for word in shuffled.modifiers if word in record.types] == types


def test_layouts_keep_their_order() -> None:
    found = in_table_order(_instruction("mma.col.sync.row.m8n8k4.aligned.f32.f16.f16.f32", 4))
    assert ".".join(found.modifiers) == "sync.aligned.m8n8k4.col.row.f32.f16.f16.f32"


def test_copies_keep_their_direction() -> None:
    words = "cp.reduce.async.bulk.{}.add.bulk_group.u32"
    there = in_table_order(_instruction(words.format("global.shared::cta"), 3))
    assert find_operation(there) is not None
    back = in_table_order(_instruction(words.format("shared::cta.global"), 3))
    assert find_operation(back) is None


def test_opcodes_of_two_words_stay_together() -> None:
    for text in ("cp.shared.async.ca.global", "bar.cta.warp.sync", "mbarrier.shared.init.b64"):
        assert find_operation(in_table_order(_instruction(text, 3))) is None


def program_of(line: str) -> Program:
    body = f".reg .b32 %r<3>; .reg .pred %p0; .reg .b64 %rd0; ld.param.u64 %rd0, [out]; {line}"
    return KernelRunner(
        ptx_text(f"{body} st.global.u32 [%rd0], %r0; ret;", ".param .u64 out")
    ).program


LDMATRIX = "ldmatrix.sync.aligned.x2.m8n8.shared.b16"


@pytest.mark.parametrize(("line", "said"), [
    ("shfl.bfly.whole.sync.b32 %r0, %r1, 1, 31, -1;", "does not execute this instruction"),
    ("vote.all.pred %p0, %p0;", r"for sm_70 and newer: use vote\.sync\.all\.pred"),
    ("vote.ballot.b32 %r0, %p0;", r"use vote\.sync\.ballot\.b32 with a membermask"),
    ("shfl.up.b32 %r0, %r1, 1, 0;", r"shfl without \.sync .*: use shfl\.sync\.up\.b32"),
    ("fma.ftz.rn.f32 %r0, {%r1, %r2}, %r1, %r2;", "it cannot take the operand"),
])  # fmt: skip
def test_a_rejection_names_the_instruction_as_it_is_written(line: str, said: str) -> None:
    program = program_of(line)
    with pytest.raises(UnsupportedInstruction, match=said) as raised:
        program.kernel("k")
    assert raised.value.opcode == line.split()[0]


def test_a_fault_names_the_instruction_as_it_is_written() -> None:
    body = f".reg .b32 %r<3>; mov.u32 %r2, 4096; {LDMATRIX} {{%r0, %r1}}, [%r2]; ret;"
    runner = KernelRunner(ptx_text(body, before=".shared .align 16 .b8 pool[256];"))
    with pytest.raises(OutOfBounds) as raised:
        runner.launch("k", 1, 32)
    assert raised.value.where.instruction == LDMATRIX


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mov.v4.u32 {%r0, %r1}, %tid;", "as many elements as it has registers in braces"),
        ("mov.v4.u32 {%r0, %r1, %r2, _}, %r1;", "as many elements as it has registers in braces"),
        ("mov.v4.u32 {%r0, %r1, %r2, _}, %laneid;", "laneid.x"),
    ],
)
def test_vectors_that_are_no_special_register_are_rejected(line: str, said: str) -> None:
    program = program_of(line)
    with pytest.raises(UnsupportedInstruction, match=said):
        program.kernel("k")


@pytest.mark.slow
def test_the_row_of_an_opcode_lists_the_files_that_define_its_operations() -> None:
    code = """
import importlib, pkgutil, sys
import ptx.emulate.ops
from ptx.emulate.codegen import table
from ptx.isa.opcodes.opcode_table import ROWS

defined, add = set(), table.operation

def noted(name, *args, **kwargs):
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        frame = frame.f_back
    defined.add((frame.f_globals["__name__"].rpartition(".")[2], name))
    add(name, *args, **kwargs)

table.operation = noted
for module in pkgutil.iter_modules(ptx.emulate.ops.__path__, "ptx.emulate.ops."):
    importlib.import_module(module.name)
listed = {
    (file, row.opcode, modifier) for row in ROWS.values() for file, modifier in row.operations
}
found = {
    (file, name, entry)
    for file, name in defined
    for entry in listed
    if (entry[0], entry[1]) == (file, name.partition(".")[0])
    and (not entry[2] or entry[2] in name.split("."))
}
print(sorted(defined - {(file, name) for file, name, _ in found}))
print(sorted(listed - {entry for _, _, entry in found}))
print(len(defined) > 500)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[]", "True"]


@pytest.mark.slow
def test_a_kernel_imports_only_the_families_of_its_opcodes() -> None:
    code = """
import sys
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
KernelRunner(ptx_text(".reg .u64 q; mov.u64 q, 64; st.global.u32 [q], 3; ret;")).program.kernel("k")
print(*sorted(name[16:] for name in sys.modules if name.startswith("ptx.emulate.ops.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["control_flow", "data_movement"]
