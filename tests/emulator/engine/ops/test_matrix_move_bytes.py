"""`ldmatrix` and `stmatrix` of bytes, and of elements that are packed in memory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import Misaligned, UnsupportedInstruction
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.matrix_lanes import collected, dealt

LANES = 32
PACKED = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}


def text_of(instruction: str, registers: int, *, is_load: bool) -> str:
    """Row l of 16 bytes in memory is at s + 32 * (31 - l), which lane l names."""
    names = "{" + ", ".join(f"%r{k}" for k in range(registers)) + "}"
    line = f"{instruction} {names}, [%r20];" if is_load else f"{instruction} [%r20], {names};"
    return "\n".join([
        ".version 8.8", ".target sm_120a", ".address_size 64",
        ".visible .entry k(.param .u64 in, .param .u64 regs, .param .u64 out, .param .u32 off) {",
        ".reg .b32 %r<40>; .reg .b64 %rd<9>; .shared .align 16 .b8 s[1040];",
        "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [regs]; ld.param.u64 %rd5, [out];",
        "mov.u32 %r30, %tid.x; shl.b32 %r31, %r30, 5; mov.u32 %r32, s; add.u32 %r33, %r32, %r31;",
        "mul.wide.u32 %rd3, %r30, 32; add.u64 %rd1, %rd1, %rd3; add.u64 %rd5, %rd5, %rd3;",
        *(f"ld.global.b32 %r34, [%rd1+{at}]; st.shared.b32 [%r33+{at}], %r34;"
          for at in range(0, 32, 4)),
        f"mul.wide.u32 %rd3, %r30, {4 * registers}; add.u64 %rd2, %rd2, %rd3;",
        *(f"ld.global.b32 %r{k}, [%rd2+{4 * k}];" for k in range(registers)),
        "sub.u32 %r20, 992, %r31; add.u32 %r20, %r20, %r32; ld.param.u32 %r35, [off];",
        "add.u32 %r20, %r20, %r35; bar.sync 0;",
        line, "bar.sync 0;",
        *(f"st.global.b32 [%rd2+{4 * k}], %r{k};" for k in range(registers)),
        *(f"ld.shared.b32 %r34, [%r33+{at}]; st.global.b32 [%rd5+{at}], %r34;"
          for at in range(0, 32, 4)),
        "ret; }",
    ])  # fmt: skip


def run(
    instruction: str, memory: NDArray[np.uint8], words: NDArray[np.uint32], *, offset: int = 0
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """The (32, registers) words and the (32, 16) rows after it."""
    runner = KernelRunner(
        text_of(instruction, words.shape[1], is_load=instruction[0] == "l"), 1 << 20
    )
    image = np.zeros((LANES, 32), np.uint8)
    image[::-1, :16] = memory
    at, regs = runner.put(image), runner.put(words)
    runner.launch("k", 1, LANES, at, regs, at, offset)
    found = runner.get(regs, words.size, np.uint32).reshape(words.shape)
    return found, runner.get(at, 1024, np.uint8).reshape(LANES, 32)[::-1, :16]


def packed(elements: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Rows of 16 bytes, the padding ones."""
    found = np.full((len(elements), 16), 0xFF, np.uint8)
    for row, values in zip(found, elements, strict=True):
        whole = sum(int(value) << bits * k for k, value in enumerate(values))
        nbytes = 2 * bits
        row[:nbytes] = np.frombuffer(whole.to_bytes(nbytes, "little"), np.uint8)
    return found


def random_elements(bits: int) -> NDArray[np.uint8]:
    return np.random.default_rng(bits).integers(0, 1 << bits, (LANES, 16)).astype(np.uint8)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", PACKED)
def test_a_square_matrix_is_transposed_to_the_fragments_of_a(kind: str, count: int) -> None:
    elements = random_elements(PACKED[kind])
    name = f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{kind}"
    found, _ = run(name, packed(elements, PACKED[kind]), np.zeros((LANES, 2 * count), np.uint32))
    for matrix in range(count):
        transposed = elements[16 * matrix : 16 * (matrix + 1)].T[None]
        want = dealt(transposed, "m16n8k16", "e4m3", "a")[0]
        assert np.array_equal(found[:, 2 * matrix : 2 * matrix + 2], want)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("kind", list(PACKED)[1:])
def test_a_wide_matrix_gives_each_lane_four_elements_of_a_row(kind: str, count: int) -> None:
    elements = random_elements(PACKED[kind])
    name = f"ldmatrix.sync.aligned.m8n16.x{count}.shared::cta.{kind}"
    found, _ = run(name, packed(elements, PACKED[kind]), np.zeros((LANES, count), np.uint32))
    for matrix in range(count):
        rows = elements[8 * matrix : 8 * (matrix + 1)]
        assert np.array_equal(found[:, matrix], rows.reshape(LANES, 4).view(np.uint32)[:, 0])


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_tall_matrix_is_stored_by_columns_from_the_fragments_of_d(count: int) -> None:
    words = np.random.default_rng(count).integers(0, 1 << 32, (LANES, count), np.uint32)
    before = random_elements(8)
    name = f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8"
    _, rows = run(name, before, words)
    for matrix in range(count):
        # A word's four bytes stand where `mma` has four f32 of D.
        spread = np.ascontiguousarray(words[:, matrix]).view(np.uint8).reshape(1, LANES, 4)
        want = collected(spread.astype(np.uint32), "m16n8k16", "f32")[0]
        assert np.array_equal(rows[8 * matrix : 8 * (matrix + 1)], want.T)
    assert np.array_equal(rows[8 * count :], before[8 * count :])


@pytest.mark.parametrize(
    ("name", "registers"),
    [
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", 2),
        ("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64", 1),
        ("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8", 1),
    ],
)
def test_a_row_must_start_at_a_multiple_of_16_bytes(name: str, registers: int) -> None:
    with pytest.raises(Misaligned):
        run(name, random_elements(8), np.zeros((LANES, registers), np.uint32), offset=4)


@pytest.mark.parametrize(("name", "registers"), [
    ("ldmatrix.sync.aligned.m16n16.x1.shared.b8", 2),
    ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", 1),
    ("ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8", 4),
    ("ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64", 1),
    ("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16", 1),
    ("stmatrix.sync.aligned.m16n8.x1.shared.b8", 1),
    ("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8", 1),
])  # fmt: skip
def test_other_forms_are_rejected(name: str, registers: int) -> None:
    text = text_of(name, registers, is_load=name[0] == "l")
    with pytest.raises(UnsupportedInstruction, match="matrix"):
        KernelRunner(text, 1 << 20).program.kernel("k")
