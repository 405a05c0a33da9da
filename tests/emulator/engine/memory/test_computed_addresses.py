"""Elements of arrays at a register's index, and offsets of more than 32 bits."""

from __future__ import annotations

import random

import numpy as np
import pytest

import ptx
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text, run

_SQUARES = "{0, 1, 4, 9, 16, 25, 36, 49}"
_ARRAYS = f".global .u32 g[8] = {_SQUARES}; .const .u32 c[8] = {_SQUARES};"
_INDEX = "ld.global.u64 %rd4, [%rd1]; cvt.u32.u64 %r4, %rd4;"
_FILL = " ".join(f"st.{{0}}.u32 [own+{4 * n}], {n * n};" for n in range(8))
_OWN = ".{0} .align 4 .u32 own[8]; " + _FILL


@pytest.mark.parametrize(
    ("before", "load"),
    [
        ("", "ld.global.u32 %r5, g[%r4];"),
        ("", "ld.u32 %r5, g[%r4];"),
        ("", "ld.const.u32 %r5, c[%r4];"),
        ("", "ld.global.u32 %r5, g[%rd4];"),
        ("", "add.u32 %r4, %r4, -3; ld.global.u32 %r5, g[%r4+3];"),
        ("", "add.u32 %r4, %r4, 3; ld.global.u32 %r5, g[%r4+-3];"),
        ("", "cvt.u16.u32 %rs1, %r4; ld.global.u32 %r5, g [ %rs1 ];"),
        ("", ".reg .s16 %i; cvt.s16.s32 %i, %r4; ld.global.u32 %r5, g[%i];"),
        ("", "mov.u64 %rd5, g[%r4]; ld.global.u32 %r5, [%rd5];"),
        ("", "mov.b64 %rd5, c[%r4]; ld.const.u32 %r5, [%rd5];"),
        ("", "mov.u32 %r6, c[%r4]; ld.const.u32 %r5, [%r6];"),
        ("", "cvta.global.u64 %rd5, g[%r4]; ld.u32 %r5, [%rd5];"),
        ("", "cvta.const.u64 %rd5, c[%r4]; ld.u32 %r5, [%rd5];"),
        (_OWN.format("shared"), "ld.shared.u32 %r5, own[%r4];"),
        (_OWN.format("shared"), "ld.u32 %r5, own[%r4];"),
        (_OWN.format("shared"), "mov.u32 %r6, own[%r4]; ld.shared.u32 %r5, [%r6];"),
        (_OWN.format("shared"), "mov.u64 %rd5, own[%r4]; ld.shared.u32 %r5, [%rd5];"),
        (_OWN.format("shared"), "cvta.shared.u64 %rd5, own[%r4]; ld.u32 %r5, [%rd5];"),
        (_OWN.format("local"), "ld.local.u32 %r5, own[%r4];"),
        (_OWN.format("local"), "st.local.u32 own[%r4], 7; ld.u32 %r5, own[%r4]; "
         "mad.lo.u32 %r5, %r4, %r4, %r5; sub.u32 %r5, %r5, 7;"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("count", [1, 8])
def test_a_register_is_the_index_of_an_element(count: int, before: str, load: str) -> None:
    inputs = np.arange(8 - count, 8, dtype=np.uint64)[:, None]
    body = f"{before} {_INDEX} {load} st.global.u32 [%rd2], %r5;"
    found = run(body, inputs, np.uint32, before=_ARRAYS)
    assert found.tolist() == [n * n for n in range(8 - count, 8)]


def test_an_index_has_32_bits() -> None:
    body = f"{_INDEX} ld.global.u32 %r5, g[%rd4]; st.global.u32 [%rd2], %r5;"
    inputs = np.array([[0x5_0000_0003], [0xFFFF_FFFF_0000_0002]], dtype=np.uint64)
    assert run(body, inputs, np.uint32, before=_ARRAYS).tolist() == [9, 4]


def test_a_register_is_the_index_of_an_element_of_a_parameter() -> None:
    body = """.reg .b32 %r<3>; .reg .b64 %rd; ld.param.u64 %rd, [out]; ld.param.u32 %r0, [n];
        ld.param.u32 %r1, values[%r0]; st.global.u32 [%rd], %r1; ret;"""
    params = ".param .u64 out, .param .u32 n, .param .align 4 .u32 values[4]"
    runner = KernelRunner(ptx_text(body, params))
    out = runner.put(np.zeros(1, np.uint32))
    runner.launch("k", 1, 1, out, 2, np.arange(10, 14, dtype=np.uint32).tobytes())
    assert runner.get(out, 1, np.uint32).tolist() == [12]


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        ("ld.shared.u32 %r1, g[%r0];", "g is of another state space"),
        ("ld.u32 %r1, c[%r0];", "c is of another state space"),
        ("cvta.to.global.u64 %rd1, g[%r0];", "g is of another state space"),
        ("atom.global.add.u32 %r1, g[%r0], 1;", "g is of another state space"),
        ("ld.global.u32 %r1, g[%f];", "no index"),
        ("ld.global.u32 %r1, g[%p];", "no index"),
        ("ld.global.u32 %r1, g[1+%r0];", "expected a constant"),
        ("ld.global.u32 %r1, g[%r0-1];", "expected ']'"),
        ("ld.global.u32 %r1, [g+%r0];", "expected a constant"),
        ("ld.global.u32 %r1, [g[%r0]];", "wrong kind"),
        ("ld.global.u32 %r1, one[%r0];", "no array that has elements"),
        ("ld.global.u32 %r1, g[%tid.x];", "expected a constant"),
        ("mov.v2.u64 {%rd0, %rd1}, {g[%r0], g[%r0]};", "expected '}'"),
    ],
)
def test_other_elements_at_an_index_are_rejected(instruction: str, reason: str) -> None:
    registers = ".reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .f32 %f; .reg .pred %p;"
    text = ptx_text(f"{registers} {instruction} ret;", before=f"{_ARRAYS} .global .u32 one;")
    with pytest.raises(ptx.PtxSyntaxError, match=reason):
        KernelRunner(text).program.check(ptx.parse(text))


@pytest.mark.parametrize("distance", [1 << 32, -(1 << 32) - 8, 1 << 40, (1 << 63) + 16, -(1 << 62)])
@pytest.mark.parametrize("count", [1, 8])
def test_an_offset_has_64_bits(count: int, distance: int) -> None:
    body = f"""mov.b64 %rd5, {distance}; sub.u64 %rd6, %rd1, %rd5; sub.u64 %rd7, %rd2, %rd5;
        ld.global.u32 %r5, [%rd6+{distance}]; st.u32 [%rd7+{distance}], %r5;"""
    inputs = np.arange(8, 8 + count, dtype=np.uint64)[:, None]
    assert run(body, inputs, np.uint32).tolist() == list(range(8, 8 + count))


@pytest.mark.parametrize("far", [1 << 32, (1 << 32) + 8, -(1 << 32) + 4, 1 << 44])
def test_an_offset_in_shared_memory_has_32_bits(far: int) -> None:
    near = (far + 2**31) % 2**32 - 2**31
    body = f""".shared .align 8 .b32 own[8]; mov.u32 %r5, own; mov.u64 %rd5, own;
        st.shared.u32 [own+{far}], 1; st.shared.u32 [%r5+{far + 4}], 2;
        st.shared.u32 [%rd5+{far + 8}], 3; ld.shared.u32 %r6, [own+{near}];
        ld.shared.u32 %r7, [own+{near + 4}]; ld.shared.u32 %r8, [own+{near + 8}];
        mad.lo.u32 %r6, %r6, 100, %r8; mad.lo.u32 %r6, %r7, 10, %r6;
        st.global.u32 [%rd2], %r6;"""
    assert run(body, np.zeros((1, 1), np.uint64), np.uint32).tolist() == [123]


@pytest.mark.parametrize("constant", ["0xFFFFFFFC", "-4", "4294967292"])
@pytest.mark.parametrize("count", [1, 8])
def test_a_sum_of_a_shared_address_and_a_large_constant_wraps_around(
    count: int, constant: str
) -> None:
    body = f""".shared .b32 own[9]; mov.u32 %r5, own; mad.lo.u32 %r5, %r0, 4, %r5;
        add.u32 %r6, %r5, 4; add.u32 %r7, %r6, {constant}; st.shared.u32 [%r7], %r0;
        ld.shared.u32 %r8, [%r5]; st.global.u32 [%rd2], %r8;"""
    inputs = np.zeros((count, 1), np.uint64)
    assert run(body, inputs, np.uint32).tolist() == list(range(count))


_CONSTANTS = (1, 8, -8, 2**31 - 4, 2**31, -(2**31), 2**32 - 8, 2**62, 2**63, 2**64 - 8, -(2**63))


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("seed", range(4))
def test_sums_and_differences_of_addresses_are_modulo_2_to_the_64(seed: int, count: int) -> None:
    source = random.Random(seed)
    lines: list[str] = ["mov.u32 %r6, 0;"]
    for _ in range(12):
        total, last = 0, "%rd1"
        for register in range(5, source.choice((6, 7, 8, 9))):
            sign, constant = source.choice((1, -1)), source.choice(_CONSTANTS)
            word = "add" if sign > 0 else "sub"
            lines.append(f"{word}.{source.choice('us')}64 %rd{register}, {last}, {constant};")
            total, last = total + sign * constant, f"%rd{register}"
        offset = (-total + 2**63) % 2**64 - 2**63
        lines.append(f"ld.global.u32 %r5, [{last}+{offset}]; add.u32 %r6, %r6, %r5;")
    body = " ".join((*lines, "st.global.u32 [%rd2], %r6;"))
    inputs = np.arange(8, 8 + count, dtype=np.uint64)[:, None]
    assert run(body, inputs, np.uint32).tolist() == [12 * n for n in range(8, 8 + count)]
