"""Kernels that fill shared memory, begin products or copies, wait, and store what lanes hold."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.emulator.engine.ops.tensor_layout import descriptor, instruction_word
from tests.emulator.engine.ops.tensor_text import launched, with_columns

POOL = 32768
SECOND = 16384  # where B begins
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "u8": np.uint8, "s8": np.int8,
    "s32": np.int32,
}  # fmt: skip
FILL = """
mov.u32 %r10, pool; shl.b32 %r11, %r1, 8; add.u32 %r10, %r10, %r11; cvt.u64.u32 %rd3, %r11;
add.u64 %rd3, %rd1, %rd3; mov.u32 %r12, 0;
FILL: ld.global.v4.u32 {%r13, %r14, %r15, %r16}, [%rd3];
st.shared.v4.u32 [%r10], {%r13, %r14, %r15, %r16}; add.u32 %r10, %r10, 16; add.u64 %rd3, %rd3, 16;
add.u32 %r12, %r12, 16; setp.lt.u32 %p4, %r12, 256; @%p4 bra FILL;
@%p1 mbarrier.init.shared.b64 [bar], 1; fence.proxy.async; bar.sync 0;
"""
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W;"
FENCE = "tcgen05.fence::after_thread_sync;"
SAVE = """
mul.wide.u32 %rd3, %r1, {bytes}; add.u64 %rd3, %rd2, %rd3; mov.u32 %r17, 0;
S: tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}}, [%r6];
tcgen05.wait::ld.sync.aligned;
st.global.v4.u32 [%rd3], {{%r20, %r21, %r22, %r23}};
st.global.v4.u32 [%rd3+16], {{%r24, %r25, %r26, %r27}};
add.u64 %rd3, %rd3, 32; add.u32 %r6, %r6, 8; add.u32 %r17, %r17, 8;
setp.lt.u32 %p6, %r17, {columns}; @%p6 bra S;
"""


def product_body(instructions: str, columns: int, *, before: str = "") -> str:
    """Shared memory is filled; one thread begins, all wait and store what the lanes then hold."""
    body = f"""{FILL} {before} setp.ne.u32 %p7, %r1, %r1;
        @!%p1 bra GO; {instructions} {COMMIT} GO: {WAIT} {FENCE}
        {SAVE.format(columns=columns, bytes=4 * columns)}"""
    return with_columns(body)


def mma(
    kind: str,
    a: int | str,
    b: int,
    word: int,
    *,
    adds: str = "%p7",
    more: str = "",
    target: str = "%r5",
    mask: str = "",
) -> str:
    """A product; the descriptor of A, or its address in tensor memory."""
    left = a if isinstance(a, str) else "%rd4"
    first = "" if isinstance(a, str) else f"mov.u64 %rd4, {a};"
    return f"""{first} mov.u64 %rd5, {b}; mov.u32 %r18, {word};
        tcgen05.mma.cta_group::1.kind::{kind} [{target}], {left}, %rd5, %r18, {mask}{adds}{more};
    """


def values(kind: str, shape: tuple[int, int], seed: int) -> NDArray[Any]:
    """Small whole numbers, of which all sums are exact."""
    lowest = 0 if kind == "u8" else -4
    found = np.random.default_rng(seed).integers(lowest, 5, shape)
    return found.astype(DTYPES[kind])


def cells(body: str, pool: NDArray[np.uint8], columns: int, **options: Any) -> NDArray[np.uint32]:
    """(128, columns) what the lanes hold at the end."""
    return launched(body, pool, 128 * columns, **options).reshape(128, columns)


def rows_of(m: int) -> NDArray[np.intp]:
    """The lane of each row."""
    row = np.arange(m)
    return row if m == 128 else row // 16 * 32 + row % 16


def exact(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """A * B, of rows of both."""
    return a.astype(np.float64) @ b.astype(np.float64).T


PLAIN = (2048, 128, 16)  # leading and stride offset, bytes of a pattern's row


def factors(a: str, b: str, m: int, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of A and of B, of 32 bytes each."""
    k = 32 // np.dtype(DTYPES[a]).itemsize
    return values(a, (m, k), 1), values(b, (n, k), 2)


GOOD = (descriptor(0, *PLAIN), descriptor(SECOND, *PLAIN))
WORD = instruction_word("f32", "f16", "f16", 128, 16)
