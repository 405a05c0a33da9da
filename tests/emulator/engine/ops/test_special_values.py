"""NaNs and divisors of zero, in each operand of an instruction, against a GPU.

`gpu_special_values.txt` has for each line of PTX the kind and the number of its operands, and a
digest of what an H200 (driver 580, assembled by that driver) gave for all combinations of the
values below. Marked `!` are lines where the driver's assembler leaves instructions out, and with
them a change of a NaN's bits, which PTX does not define.
"""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from tests.emulator.engine.kernel_runner import KernelRunner

# Quiet and signalling NaNs with payloads of both signs, zeros, one, infinities and a subnormal.
VALUES: Final = {
    "f32": (0x7FC00000, 0x7FC00001, 0xFFC12345, 0x7F800001, 0xFFBFFFFF, 0x7FFFFFFF, 0, 0x80000000,
            0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 1),
    "f64": (0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000012345678, 0x7FF0000000000001,
            0xFFF7FFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFF00007FFF, 0, 2**63,
            0x3FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 1),
    "f16": (0x7E00, 0x7E01, 0xFE34, 0x7C01, 0xFDFF, 0x7FFF, 0, 0x8000, 0x3C00, 0xBC00, 0x7C00,
            0xFC00, 1),
    "bf16": (0x7FC0, 0x7FC1, 0xFFD2, 0x7F81, 0xFFBF, 0x7FFF, 0, 0x8000, 0x3F80, 0xBF80, 0x7F80,
             0xFF80, 1),
    "b16": (0, 1, 2, 7, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF, 300),
    "b32": (0, 1, 2, 7, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 300),
    "b64": (0, 1, 2, 7, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1, 300),
}  # fmt: skip


class Line(NamedTuple):
    digest: int
    follows: bool
    kind: str
    arity: int
    text: str


def recorded() -> list[Line]:
    lines = Path(__file__).with_name("gpu_special_values.txt").read_text().splitlines()
    parts = (line.split(" ", 4) for line in lines)
    return [Line(int(d, 16), mark == "=", kind, int(n), text) for d, mark, kind, n, text in parts]


def kernel(name: str, line: Line) -> str:
    """`name(in, out)`: a thread for each combination of operands."""
    bits = int(line.kind.lstrip("bf"))
    loads = "\n".join(
        f"ld.global.b{bits} {register}, [%in+{bits // 8 * k}];"
        for k, register in zip(range(line.arity), ("%a", "%b", "%c"), strict=False)
    )
    return f"""
.visible .entry {name}(.param .u64 in, .param .u64 out) {{
    .reg .b{bits} %a, %b, %c, %d, %x; .reg .b32 %i, %j, %m, %n; .reg .b64 %in, %out, %s;
    .shared .align 16 .b8 sh[4096];
    ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
    mov.u32 %i, %tid.x; mov.u32 %j, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %j, %n, %i;
    mul.wide.u32 %s, %i, {bits // 8 * line.arity}; add.u64 %in, %in, %s;
    mul.wide.u32 %s, %i, {bits // 8}; add.u64 %out, %out, %s;
    {loads}
    {line.text};
    st.global.b{bits} [%out], %d; ret;
}}"""


def emulated(runner: KernelRunner, name: str, line: Line) -> bytes:
    values = VALUES[line.kind]
    bits = int(line.kind.lstrip("bf"))
    operands = np.array(list(itertools.product(values, repeat=line.arity)), f"u{bits // 8}")
    count = len(operands)
    blocks = -(-count // 128)
    padding = np.repeat(operands[-1:], blocks * 128 - count, axis=0)
    out = runner.put(np.zeros(blocks * 128, operands.dtype))
    runner.launch(name, blocks, 128, runner.put(np.concatenate([operands, padding])), out)
    return runner.get(out, count, operands.dtype).tobytes()


def test_special_values_give_the_bits_of_a_gpu() -> None:
    lines = recorded()
    head = ".version 8.7\n.target sm_90\n.address_size 64\n"
    text = "\n".join(kernel(f"k{number}", line) for number, line in enumerate(lines))
    runner = KernelRunner(head + text, 1 << 26)
    wrong = [
        line.text
        for number, line in enumerate(lines)
        if (zlib.crc32(emulated(runner, f"k{number}", line)) == line.digest) is not line.follows
    ]
    assert len(lines) > 120
    assert not wrong, "\n".join(wrong)
