"""`ldmatrix`, `stmatrix` and `movmatrix` against NumPy's transposed 8 x 8 matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate import Limits
from ptx.emulate.model.errors import (
    Deadlock,
    Misaligned,
    OutOfBounds,
    SynchronisationFault,
    UninitialisedRead,
    UnsupportedInstruction,
)
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows

BLOCK = 64
COUNTS = {"x1": 1, "x2": 2, "x4": 4}


def text(body: str) -> str:
    """Each thread's 16 bytes of `in` are in shared memory at %r2; %r9 is another place's start.

    Lane l of each warp brings row (5 l) mod 32 of its warp's, so that rows are in no simple order.
    """
    return ptx_text(
        f"""
        .reg .b32 %r<60>; .reg .b64 %rd<20>; .reg .pred %p<4>; .shared .align 16 .b8 area[1024];
        ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r0, %tid.x;
        mul.wide.u32 %rd3, %r0, 16; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
        cvt.u32.u64 %r1, %rd3; mov.u32 %r2, area; add.u32 %r2, %r2, %r1;
        ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%rd1];
        and.b32 %r3, %r0, 31; and.b32 %r4, %r0, 32; mul.lo.u32 %r3, %r3, 5; and.b32 %r3, %r3, 31;
        add.u32 %r3, %r3, %r4; shl.b32 %r3, %r3, 4; mov.u32 %r9, area; add.u32 %r9, %r9, %r3;
        cvt.u64.u32 %rd9, %r9; cvta.shared.u64 %rd9, %rd9;
        mov.b32 %r20, 0; mov.b32 %r21, 0; mov.b32 %r22, 0; mov.b32 %r23, 0;
        {body}
        st.global.v4.u32 [%rd2], {{%r20, %r21, %r22, %r23}}; ret;""",
        ".param .u64 in, .param .u64 out",
    )


FILL = "st.shared.v4.u32 [%r2], {%r10, %r11, %r12, %r13}; bar.sync 0;"
DUMP = "bar.sync 0; ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r2];"


def run(body: str, rows: NDArray[np.uint16], limits: Limits | None = None) -> NDArray[np.uint16]:
    """(warps, 32, 8) elements in and out, a thread's 16 bytes each."""
    runner = KernelRunner(text(body), 1 << 20)
    out = runner.put(np.zeros(rows.shape, np.uint16))
    threads = rows.size // 8
    runner.launch("k", 1, threads, runner.put(rows), out, limits=limits or Limits())
    return runner.get(out, rows.size, np.uint16).reshape(rows.shape)


def sample() -> NDArray[np.uint16]:
    rng = np.random.default_rng(1)
    return rng.integers(0, 2**16, (BLOCK // 32, 32, 8)).astype(np.uint16)


ORDER = np.arange(32) * 5 % 32


def held(matrices: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """(warps, count, 8, 8) matrices as each lane's pairs: (warps, 32, count, 2)."""
    warps, count = matrices.shape[:2]
    return np.moveaxis(matrices.reshape(warps, count, 32, 2), 1, 2)


def registers(count: int, first: int = 20) -> str:
    return "{" + ", ".join(f"%r{first + k}" for k in range(count)) + "}"


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("space", [".shared", ".shared::cta", ""])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("number", COUNTS)
def test_ldmatrix_deals_rows_to_lanes(number: str, transposed: bool, space: str) -> None:
    count, rows = COUNTS[number], sample()
    address = "%r9" if space else "%rd9"
    option = ".trans" if transposed else ""
    found = run(
        f"{FILL} ldmatrix.sync.aligned.m8n8.{number}{option}{space}.b16 {registers(count)},"
        f" [{address}];",
        rows,
    )
    matrices = rows[:, ORDER[: 8 * count]].reshape(-1, count, 8, 8)
    if transposed:
        matrices = matrices.transpose(0, 1, 3, 2)
    want = np.zeros((BLOCK // 32, 32, 4, 2), np.uint16)
    want[:, :, :count] = held(matrices)
    assert np.array_equal(found, want.reshape(rows.shape))


@all_rows
@pytest.mark.parametrize("space", [".shared", ""])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("number", COUNTS)
def test_stmatrix_gathers_rows_from_lanes(number: str, transposed: bool, space: str) -> None:
    count, rows = COUNTS[number], sample()
    address = "%r9" if space else "%rd9"
    option = ".trans" if transposed else ""
    clear = "st.shared.v4.u32 [%r2], {%r20, %r20, %r20, %r20}; bar.sync 0;"
    found = run(
        f"{clear} stmatrix.sync.aligned.m8n8.{number}{option}{space}.b16 [{address}],"
        f" {registers(count, 10)}; {DUMP}",
        rows,
    )
    pairs = rows.reshape(-1, 32, 4, 2)[:, :, :count]
    matrices = np.moveaxis(pairs, 2, 1).reshape(-1, count, 8, 8)
    if transposed:
        matrices = matrices.transpose(0, 1, 3, 2)
    want = np.zeros_like(rows)
    want[:, ORDER[: 8 * count]] = matrices.reshape(-1, 8 * count, 8)
    assert np.array_equal(found, want)


def test_movmatrix_transposes() -> None:
    rows = sample()
    found = run("movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r10;", rows)
    matrices = rows[:, :, :2].reshape(-1, 1, 8, 8).transpose(0, 1, 3, 2)
    assert np.array_equal(found[:, :, :2], held(matrices)[:, :, 0])


def test_addresses_of_lanes_without_a_row_are_not_looked_at() -> None:
    body = f"""{FILL} and.b32 %r5, %r0, 31; setp.ge.u32 %p1, %r5, 8; @%p1 mov.u32 %r9, 0x7ffffff1;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r20}}, [%r9];"""
    rows = sample()
    want = held(rows[:, ORDER[:8]].reshape(-1, 1, 8, 8))
    assert np.array_equal(run(body, rows)[:, :, :2], want[:, :, 0])


LOAD = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r20, %r21}"
STORE = "stmatrix.sync.aligned.m8n8.x1.shared.b16"


@pytest.mark.parametrize(
    ("body", "fault", "match"),
    [
        (f"{LOAD}, [%r9+8];", Misaligned, "misaligned read of 16 bytes at shared address"),
        (f"{LOAD}, [%r9+1024];", OutOfBounds, "out-of-bounds read of 16 bytes"),
        (f"{STORE} [%r9+4], {{%r10}};", Misaligned, "misaligned write of 16 bytes"),
        (f"{STORE} [%r9+1024], {{%r10}};", OutOfBounds, "out-of-bounds write of 16 bytes"),
    ],
)
def test_rows_are_checked(body: str, fault: type[Exception], match: str) -> None:
    with pytest.raises(fault, match=match):
        run(body, sample())


def test_unwritten_rows_are_found() -> None:
    limits = Limits(checks={"undefined"})
    run(f"{FILL} {LOAD}, [%r9];", sample(), limits)
    only = "setp.ne.u32 %p1, %r0, 35; @%p1 st.shared.v4.u32 [%r2], {%r10, %r11, %r12, %r13};"
    with pytest.raises(UninitialisedRead, match="16 bytes at shared address 0x230"):
        run(f"{only} bar.sync 0; {LOAD}, [%r2];", sample(), limits)
    stored = f"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r9], {registers(4, 10)};"
    run(f"{stored} {DUMP}", sample(), limits)


@pytest.mark.parametrize(
    "instruction",
    [
        f"{LOAD}, [%r9]",
        f"{STORE} [%r9], {{%r10}}",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r10",
    ],
)
def test_all_lanes_take_part(instruction: str) -> None:
    with pytest.raises(SynchronisationFault, match="lanes 0x0000ffff"):
        run(f"{instruction};", sample()[:1, :16])
    with pytest.raises(Deadlock):
        run(f"setp.lt.u32 %p1, %r0, 40; @%p1 bra OVER; {instruction}; OVER: bar.sync 0;", sample())


@pytest.mark.parametrize("instruction", [
    "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r20, %r21}, [%r9]",
    "ldmatrix.sync.aligned.m8n8.x2.global.b16 {%r20, %r21}, [%r9]",
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r20}, [%r9]",
    "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r9], {%r20}",
    "movmatrix.sync.aligned.m8n8.b16 %r20, %r10",
])  # fmt: skip
def test_other_forms_are_rejected(instruction: str) -> None:
    with pytest.raises(UnsupportedInstruction, match="matrix"):
        KernelRunner(text(instruction + ";"), 1 << 20).program.kernel("k")
