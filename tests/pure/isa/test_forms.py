"""The forms of instructions: which combinations of modifiers, types and operands are PTX."""

from __future__ import annotations

import pytest

from campaigns.assembled_ptx.sampling import spellings_of
from ptx.isa import PtxSyntaxError, parse
from ptx.isa.forms.check import check_forms
from ptx.isa.forms.table import form_table

HEADER = (
    ".version {}\n.target sm_90\n.address_size 64\n"
    ".global .align 16 .b8 g[64];\n.shared .b8 s[64]; "
    ".func (.param .align 8 .b8 r[8]) returning() {{ ret; }}\n"
)
REGISTERS = " ".join(
    f".reg .{kind} %{kind}_<4>;"
    for kind in (
        "b8",
        "s8",
        "b16",
        "u16",
        "b32",
        "u32",
        "s32",
        "b64",
        "u64",
        "f16",
        "f16x2",
        "f32",
        "f64",
        "pred",
    )
)
# As ptxas of CUDA 13.0 and 13.5 has them.
ACCEPTED = (
    "add.rn.ftz.f32 %f32_1, %f32_2, 1.5;", "add.f32.ftz.rn %f32_1, %b32_2, 0f3F800000;",
    "mov.b64 {%b32_0, %b32_1}, %b64_1;", "mov.b64 {_, %b32_1}, %b64_1;",
    "mov.b32 %b32_1, {%b16_1, %b16_2};",
    "mov.u64 %u64_1, g+4;", "mov.u32 %u32_1, %tid.x;", "cvt.u8.u32 %u32_1, %u32_2;",
    "cvt.rni.f16.f16 %f16_1, %b16_2;", "cvt.sat.u8.s32 %b16_1, %s32_1;",
    "ld.global.u8 %u64_1, [g];",
    "st.global.b32 [g], {%b32_1};", "ld.global.v2.f32 {%f32_1, %b32_2}, [%u64_1+8];",
    "setp.lt.and.f32 %pred_1|%pred_2, %f32_1, %f32_2, !%pred_3;",
    "selp.b32 %b32_1, 5, %u32_2, %pred_1;",
    "atom.global.u32.add %u32_1, [g], 1;", "atom.add.u32 _, [%u64_1], 1;", "bar.sync 0, 64;",
    "shfl.sync.idx.b32 %b32_1|%pred_1, %b32_2, 0, 31, -1;", "shl.b64 %b64_1, %b64_2, %b32_1;",
    "multimem.ld_reduce.min.f16x2 %b32_1, [g];",
    "multimem.ld_reduce.add.acc::f32.bf16x2 %b32_1, [g];",
    "st.global.L2::evict_first.v4.b64 [g], {%b64_1, %b64_2, %b64_1, %b64_2};",
    "multimem.ld_reduce.add.f32 {%f32_1}, [g];", "multimem.st.bf16x2 [g], {%b32_1};",
    "st.volatile.v4.L2::evict_last.b64 [g], {%b64_1, %b64_2, %b64_1, %b64_2};",
    "ld.volatile.L2::64B.v4.L2::evict_first.f64 {%f64_1, %f64_2, %f64_1, %b64_1}, [g];",
    "ld.global.v2.b32 {_, %b32_1}, [g];", "ld.v4.b32 {%f32_1, %b32_1, %b32_2, %s32_1}, [g];",
    "vadd2.add.u32.u32.s32 %u32_1.h1, %u32_2.h10, %s32_1, %u32_3;",
    "vadd.u32.u32.s32 %u32_1.b0, %u32_2.h1, %s32_1, %u32_3;", "bra L;",
    "red.shared.add.u32 [s], 1;",
    "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], %u64_1;",
    "tensormap.replace.tile.rank.global.b1024.b32 [g], %u32_1;",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%u64_1, %u64_2}, {%b64_1}, {%u64_1},"
    " {%f64_1, %f64_2};",
    "wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64 {%u64_1, %u64_2}, {%f64_1}, {%b64_1},"
    " {%f64_1, %f64_2};",
    "tensormap.replace.tile.rank.b1024.b32 [g], %f32_1;",
    "mbarrier.arrive.noComplete.b64 _, [s], 3;",
    "mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%s32_1, %s32_2, %s32_3, %s32_0},"
    " {%b32_1, %b32_2}, {%b32_1, %b32_2}, {%s32_1, %s32_2, %s32_3, %s32_0}, %f32_1, 0;",
    "wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.u8.u8 {%s32_1, %s32_2, %s32_3, %s32_0}, %u64_1,"
    " %u64_2, %f32_1, 0, 1;",
    "multimem.st.relaxed.gpu.v4.e4m3 [g], {%s8_1, %s8_2, %s8_3, %b8_1};",
    "multimem.st.relaxed.gpu.e5m2x4 [g], %f32_1;",
    "multimem.ld_reduce.add.v2.e4m3x2 {%f16_1, %f16_2}, [g];",
    "cp.async.ca.shared.global [s], [g], 4;",
    "cp.async.cg.shared.global [s], [%u64_1], 16, %u32_1;",
    "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%s32_1, %s32_2}, {%f32_1},"
    " {%f16x2_1},"
    " {%s32_1, %s32_2};",
    "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%s32_1, %s32_2}, {%u32_1}, {%b32_1},"
    " {%s32_1, %s32_2};",
    "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8 {%s32_1, %s32_2, %s32_3, %s32_0},"
    " {%f32_1, %f32_2, %f32_3, %f32_0}, %u64_1, 1;",
    "vmad.s32.s32.s32 %s32_1, -%s32_2, -%s32_3, %s32_2;",
    "vmad.s32.s32.s32 %s32_1, %s32_2, %s32_3, -%s32_2;",
    "vmad.s32.s32.s32 %s32_1, -%s32_2.h0, -%s32_3, -%s32_2;",
    "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%s32_1, %s32_2}, {%b32_1}, {%b32_2},"
    " {%s32_1, %s32_2};",
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%u32_1, %u32_2, %u32_3, %u32_0},"
    " {%s32_1, %s32_2}, {%f32_1, %f32_2}, {%b32_1, %f32_1, %f32_2, %f32_3}, %f32_1, 1;",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
    " {%s32_1, %s32_2, %s32_3, %s32_0}, {%b32_1, %b32_2}, {%u32_1, %u32_2}, {%f32_1, %f32_2,"
    " %f32_3, %f32_0},"
    " %f32_2, 1;",
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%u32_1, %u32_2, %u32_3, %u32_0},"
    " {%b32_1, %b32_2}, {%b32_1, %b32_2}, {%s32_1, %s32_2, %s32_3, %s32_0}, %b32_1, 1;",
    "tensormap.replace.tile.rank.b1024.b32 [%b32_1], 1;",
    "ld.weak.const.u32 %u32_1, [%b64_1];", "ld.param.weak.v2.b32 {%b32_1, %b32_2}, [%b64_1];",
    "ld.weak.param::entry.b64 %b64_1, [%b64_2];", "st.weak.param.b32 [%b64_1], %b32_1;",
    "st.param::func.wt.b32 [a], %b32_1;", "st.cs.param.v2.b32 [a], {%b32_1, %b32_2};",
    "call (a), returning; ld.param::func.weak.lu.u8 %u32_1, [a];",
    "not.pred %pred_1, %f16x2_1;", "and.pred %pred_1, !%pred_2, %f16x2_1;", "@!%pred_1 ret;",
    "tensormap.replace.tile.elemtype.global.b1024.b32 [%u32_1+128], 1;",
)  # fmt: skip
REJECTED = (
    "multimem.ld_reduce.min.s32 {%s32_1}, [g];", "multimem.red.add.f32 [g], {%f32_1};",
    "multimem.st.b32 [g], {%b32_1};",
    "cvt.sat.u8.u8 %b16_1, %b16_2;", "cvt.rn.f16.f16 %b16_1, %b16_2;", "mov.b32 %b16_1, %b32_1;",
    "mov.u32 %u32_1, %f32_1;", "mov.u32 %u32_1, 1.5;", "mov.f32 %f32_1, 1;",
    "add.u32 %u32_1, %u32_2;",
    "add.u32 %u32_1, %f32_1, %u32_2;", "add.rn.s32 %s32_1, %s32_1, %s32_1;",
    "add.f16 %f16_1, %f16_2, 1.5;",
    "setp.lt.and.f16 %pred_1|%pred_2, %f16_1, %f16_2, %pred_3;", "setp.lo.s32 %pred_1, %s32_1, 0;",
    "cvt.rni.u8.bf16 %b16_1, %b16_1;", "cvt.f32.s32 %f32_1, %s32_1;", "ld.global.u32 %u16_1, [g];",
    "ld.shared.u32 %u32_1, [g];", "ld.global.u32 %u32_1, [%f64_1];",
    "ld.global.u32 %u32_1, [1024];",
    "st.const.u32 [g], 1;", "ld.global.v2.u32 {%u32_1, %f32_1}, [g];", "bar.sync 16;",
    "bar.sync 0, 33;", "atom.add.s64 %b64_1, [g], 1;", "frobnicate.u32 %u32_1;", "bra g;",
    "mul.u32.lo %u32_1, %u32_2, %u32_3;", "prmt.b32 %b32_1, %b32_2, %b32_3;",
    "mov.u32 %u32_1, nowhere;",
    "ld.v4.b32 {%f32_1, %s32_1, %b32_2, %s32_1}, [g];", "ld.global.v2.b32 {_, _}, [g];",
    "ld.global.v2.b32 {5, %b32_1}, [g];", "ld.global.b32 _, [g];",
    "shl.b64 %b64_1, %b64_2, %b64_3;", "vadd.u32.u32.u32 %u32_1.b0, %u32_2, %u32_3;", "exit 5;",
    "wmma.load.a.sync.aligned.row.m8n8k4.f64 {%u64_1}, [g];",
    "tensormap.replace.tile.box_dim.b1024.b32 [g], 1, %f32_1;",
    "tensormap.replace.tile.rank.b1024.b32 [%b16_1], 1;",
    "tensormap.replace.tile.global_address.global.b1024.b64 [%s8_1], %b64_1;",
    "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%u16_1], 1;",
    "tensormap.replace.tile.rank.shared::cta.b1024.b32 [g], 1;",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%u32_1, %u32_2, %u32_3, %u32_0},"
    " {%b32_1, %b32_2, %b32_3, %b32_0}, {%b32_1, %b32_2}, {%f32_1, %f32_1, %f32_2, %f32_3};",
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%u32_1, %u32_2, %u32_3, %u32_0},"
    " {%u32_1, %u32_2}, {%b32_1, %b32_2}, {%s32_1, %s32_2, %s32_3, %s32_0}, %b32_1, 1;",
    "tensormap.cp_fenceproxy.shared::cta.global.tensormap::generic.release.gpu.sync.aligned"
    " [g], [s], 128;",
    "multimem.st.relaxed.gpu.v4.e4m3 [g], {%f16_1, %f16_1, %f16_1, %f16_1};",
    "cp.async.ca.shared.global [s], [s], 4;", "cp.async.cg.shared.global [s], [s], 16, %u32_1;",
    "ld.param.volatile.u32 %u32_1, [%u64_1];", "st.param.relaxed.cta.u32 [%u64_1], %u32_1;",
    "not.pred %pred_1, !%f16x2_1;", "and.pred %pred_1, !%f16x2_1, %pred_2;",
    "@%b32_1 ret;", "@!%f16x2_1 ret;", "@%u8_1 ret;",
    "st.weak.const.u32 [%u64_1], %u32_1;", "ld.param::func.u32 %u32_1, [%u64_1];",
    "st.param::func.u32 [%u64_1], %u32_1;",
    "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%s32_1, %s32_2}, {%f32_1}, {%b32_1},"
    " {%s32_1, %s32_2};",
    "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%s32_1, %s32_2}, {%b32_1}, {%f16x2_1},"
    " {%s32_1, %s32_2};",
    "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.popc.and {%s32_1, %s32_2}, {%b32_1}, {%b32_2},"
    " {%s32_1, %s32_2};",
    "wmma.mma.popc.and.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {%s32_1, %s32_2}, {%b32_1},"
    " {%b32_2}, {%s32_1, %s32_2};",
    "vmad.s32.s32.s32 %s32_1, -%s32_2, %s32_3, -%s32_2;",
    "vmad.s32.s32.s32 %s32_1, %s32_2, -%s32_3, -%s32_2;",
    "vmad.s32.s32.s32 %s32_1, -%f16x2_2, %s32_3, %s32_2;",
    "vmad.s32.s32.s32 %s32_1, %s32_2, %s32_3, -%f16x2_2;",
)  # fmt: skip


def fault_of(instruction: str, version: str = "9.0") -> str:
    body = f"{{ {REGISTERS} .param .align 8 .b8 a[8];\n{instruction}\nL: ret; }}"
    try:
        check_forms(parse(HEADER.format(version) + f".visible .entry k()\n{body}\n"))
    except PtxSyntaxError as error:
        return error.reason
    return ""


def test_forms_that_the_assembler_accepts_are_accepted() -> None:
    faults = {each: fault_of(each) for each in ACCEPTED}
    assert {each: fault for each, fault in faults.items() if fault} == {}


def test_forms_that_the_assembler_rejects_are_rejected() -> None:
    assert [each for each in REJECTED if not fault_of(each)] == []


def test_an_error_names_the_instruction_and_its_line() -> None:
    text = HEADER.format("9.0") + ".entry k() {\n.reg .b16 h;\n  cvt.sat.u8.u8 h, h;\nret; }\n"
    with pytest.raises(PtxSyntaxError, match=r"PTX has no such .*: cvt\.sat\.u8\.u8") as caught:
        check_forms(parse(text))
    assert (caught.value.line, caught.value.column) == (8, 3)


def test_every_form_of_every_row_can_be_read() -> None:
    table = form_table()
    assert [opcode for opcode in table.opcodes if not table.forms(opcode)] == []


def test_every_form_is_found_by_each_of_its_modifiers_and_types() -> None:
    table = form_table()
    lost = [
        (opcode, words)
        for opcode in table.opcodes
        for form in table.forms(opcode)
        for words in spellings_of(form)
        if form.match(words) is not None
        and form not in [each for each, _ in table.matching(opcode, words)]
    ]
    assert lost == []


def test_modules_of_a_later_version_than_the_table_are_not_checked() -> None:
    assert fault_of("cvt.sat.u8.u8 %b16_1, %b16_2;", "9.5")
    assert not fault_of("cvt.sat.u8.u8 %b16_1, %b16_2;", "9.6")


def fault_of_declarations(declarations: str) -> str:
    module = parse(f"{HEADER.format('9.0')}{declarations}\n.visible .entry k() {{ ret; }}\n")
    try:
        check_forms(module)
    except PtxSyntaxError as error:
        return error.reason
    return ""


def test_functions_without_a_body_are_rejected_unless_they_are_external() -> None:
    """As ptxas, whether something calls them or not."""
    accepted = (
        ".extern .func f();", ".extern .func (.param .b32 r) f(.param .b32 p) .noreturn;",
        ".extern .entry f();", ".func f(); .func f() { ret; }", ".func vprintf();",
        ".visible .func malloc();", ".func free();", ".func __assertfail();",
        ".func f(); .func h() { ret; } .alias f, h;",
    )  # fmt: skip
    rejected = (
        ".func f();", ".func f;", ".visible .func f();", ".weak .func f(.param .b32 p);",
        ".func f() .noreturn;", ".entry f();", ".visible .entry f(.param .u64 p);",
        ".weak .entry f();", ".func vprintf() { ret; } .func vprint();",
    )  # fmt: skip
    assert {each: fault_of_declarations(each) for each in accepted} == dict.fromkeys(accepted, "")
    assert [each for each in rejected if ".extern" not in fault_of_declarations(each)] == []
