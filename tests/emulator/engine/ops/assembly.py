"""Kernels of hand-written instructions, each on the same rows of words, for GPU and emulator alike.

In an instruction %a, %b, %c and %e are 32-bit sources, %A and %B 64-bit ones (b:a and e:c), %p says
whether %a is odd; %d or %D is the result. Each thread has 16 bytes of its own in global memory at
%ptr, and in shared memory at %sh, by its generic address at %gsh. %h0 to %h3, %x, %y, %z, %w, %X,
%Y, %Z, %P, %Q and %q are free.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tests.emulator.engine.kernel_runner import KernelRunner

Rows = NDArray[np.uint32]  # (n, 4): a, b, c, e
Results = NDArray[np.uint64]  # (instructions, n)

_EDGES = (
    0, 1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
    0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x80008000,
    0x7FFF8000, 0x0F0F0F0F, 0x12345678, 0xFFFFFF80, 0xFFFF8000,
)  # fmt: skip


def sample_rows(count: int, seed: int = 1) -> Rows:
    """Words of edges, small amounts and random bits, the same on every runner."""
    source = random.Random(seed)
    words = [
        [
            source.choice(
                (
                    source.choice(_EDGES),
                    source.getrandbits(32),
                    source.getrandbits(6),
                    source.getrandbits(32),
                )
            )
            for _ in range(4)
        ]
        for _ in range(count)
    ]
    return np.array(words, dtype=np.uint32)


_FLOATS = (
    0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x807FFFFF, 0x800000, 0x80800000, 0x800001, 0x7F800000,
    0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x33800000,
    0x00010002, 0x7C007C00, 0x7E00FE01, 0x04000400, 0x80010001, 0x7F80FF80, 0x00800080,
)  # fmt: skip


def sample_float_rows(count: int) -> Rows:
    """Words that are special as floats of one width or another, many c near -a."""
    rows = sample_rows(count, 2)
    source = random.Random(5)
    for row in rows:
        for column in range(4):
            if source.random() < 0.6:
                row[column] = source.choice(_FLOATS)
            if column == 2 and source.random() < 0.15:
                row[2] = row[0] ^ np.uint32(0x80000000)
    return rows


def kernel(instructions: Sequence[str], *, guarded: bool = False, uniform: bool = False) -> str:
    """One kernel `k(in, out, n)`; result `j` of row `i` is the 64-bit word `j * n + i` of out.

    Guarded, each instruction is executed only where %c is odd; elsewhere the result keeps the bits
    of %A. Uniform, all threads read the first row.
    """
    lines = [
        ".version 8.7", ".target sm_90", ".address_size 64",
        ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n, .param .u64 scratch)",
        "{",
        ".reg .b32 %a, %b, %c, %e, %d, %i, %n, %odd; .reg .b64 %A, %B, %D, %in, %out, %step;",
        ".reg .b16 %h<4>; .reg .pred %p, %q, %g; .reg .b32 %x, %y, %z, %w, %sh;",
        ".reg .b64 %X, %Y, %Z, %ptr, %gsh; .reg .b128 %P, %Q; .shared .align 16 .b8 area[4096];",
        "ld.param.u64 %ptr, [scratch]; mov.u32 %x, %tid.x; mul.wide.u32 %step, %x, 16;",
        "add.u64 %ptr, %ptr, %step; mov.u32 %sh, area; mad.lo.u32 %sh, %x, 16, %sh;",
        "cvt.u64.u32 %gsh, %sh; cvta.shared.u64 %gsh, %gsh;",
        "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [n];",
        "mov.u32 %i, %tid.x; mul.wide.u32 %step, %i, 8; add.u64 %out, %out, %step;",
        "mul.wide.u32 %step, %n, 8;",
        "" if uniform else "mul.wide.u32 %D, %i, 16; add.u64 %in, %in, %D;",
        "ld.global.u32 %a, [%in]; ld.global.u32 %b, [%in+4];",
        "ld.global.u32 %c, [%in+8]; ld.global.u32 %e, [%in+12];",
        "mov.b64 %A, {%a, %b}; mov.b64 %B, {%c, %e};",
        "and.b32 %odd, %a, 1; setp.ne.u32 %p, %odd, 0;",
        "and.b32 %odd, %c, 1; setp.ne.u32 %g, %odd, 0;",
    ]  # fmt: skip
    for instruction in instructions:
        if guarded:
            lines.append("mov.b64 %D, %A; mov.b32 %d, %a;")
            instruction = "; ".join(f"@%g {each.strip()}" for each in instruction.split(";"))
        lines.append(f"{instruction};")
        if "%d" in instruction:
            lines.append("cvt.u64.u32 %D, %d;")
        lines.append("st.global.u64 [%out], %D; add.u64 %out, %out, %step;")
    return "\n".join([*lines, "ret;", "}"])


def emulate(
    instructions: Sequence[str], rows: Rows, *, guarded: bool = False, uniform: bool = False
) -> Results:
    """What the emulator gives."""
    runner = KernelRunner(kernel(instructions, guarded=guarded, uniform=uniform), 1 << 26)
    n = len(rows)
    out = runner.put(np.zeros((len(instructions), n), np.uint64))
    scratch = runner.put(np.zeros((n, 16), np.uint8))
    runner.launch("k", 1, n, runner.put(rows), out, n, scratch)
    return runner.get(out, len(instructions) * n, np.uint64).reshape(-1, n)


def digest(results: NDArray[np.uint64]) -> int:
    """A short sum over one instruction's results."""
    return zlib.crc32(results.astype("<u8").tobytes())
