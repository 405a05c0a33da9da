"""Kernels of one sparse product by four warps, with what they read, and NumPy's product.

Layouts are by the ISA's figures, one element at a time.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.emulator.engine.ops.matrix_lanes import (
    WIDTHS,
    Matrix,
    Words,
    dealt,
    decoded,
    encoded,
    packed,
    unpacked,
)

WARPS = 4
ROWS = 16
UNIT = 16
START_OF_B = 8192  # bytes of shared memory
INDICES = {"tf32": (0b0100, 0b1110)}
ANY_TWO = (4, 8, 12, 9, 13, 14)


@dataclass(frozen=True)
class Form:
    """One instruction; `a` and `b` say how factors lie in memory: 0 without swizzling, or the bytes
    of a swizzled row; None is in registers. `b_rows`: MN-major."""

    types: str
    columns: int = 8
    a: int | None = 0
    b: int = 0
    b_rows: bool = False
    signs: tuple[int, int] = (1, 1)
    selector: int = 0
    satfinite: str = ""

    @property
    def elements(self) -> list[str]:
        return self.types.split(".")

    @property
    def width(self) -> int:
        return WIDTHS[self.elements[1]]

    @property
    def k(self) -> int:
        return 512 // self.width

    @property
    def registers(self) -> int:
        """Of D."""
        return self.columns * 16 // 32 * WIDTHS[self.elements[0]] // 32


def chunk_of(element: str) -> int:
    return 2 if element == "tf32" else 4


def lie(rows: NDArray[np.uint8], mode: int) -> NDArray[np.uint8]:
    """K-major memory of (rows, bytes): cores of 8 rows by 16 bytes, or swizzled rows."""
    count, nbytes = rows.shape
    found = np.zeros(count * max(nbytes, mode), np.uint8)
    for row, unit in np.ndindex(count, nbytes // UNIT):
        if mode == 0:
            at = unit * count * UNIT + row * UNIT
        else:
            at = row * mode + unit * UNIT
            at ^= (at >> 7 & mode // UNIT - 1) << 4
        found[at : at + UNIT] = rows[row, unit * UNIT : (unit + 1) * UNIT]
    return found


def lie_by_rows(elements: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """MN-major memory of (columns, k) 16-bit elements: cores of 8 k by 8 columns."""
    columns, k = elements.shape
    cores = elements.reshape(columns // 8, 8, k // 8, 8).transpose(2, 0, 3, 1)
    return np.ascontiguousarray(cores).reshape(-1).view(np.uint8)


def descriptor(start: int, rows: int, mode: int, *, by_rows: bool) -> int:
    if by_rows:  # from 8 k to the next, and from 8 columns to the next
        leading, stride, code = rows * UNIT, 128, 0
    else:
        leading = rows * UNIT if mode == 0 else UNIT
        stride = 8 * mode if mode else 128
        code = {0: 0, 128: 1, 64: 2, 32: 3}[mode]
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | code << 62


def nibbles_for(form: Form, seed: int) -> NDArray[np.int64]:
    """(64, chunks) two indices of two bits, the lesser one first."""
    element = form.elements[1]
    rng = np.random.default_rng(seed)
    choices = INDICES.get(element, ANY_TWO)
    return rng.choice(choices, (WARPS * ROWS, form.k // chunk_of(element))).astype(np.int64)


def metadata_of(nibbles: NDArray[np.int64], form: Form) -> Words:
    """(128, 1) words, by the ISA's figures; threads that bring nothing have ones."""
    words = np.full((WARPS * 32, 1), 0xFFFFFFFF, np.uint32)
    lanes = nibbles.shape[1] // 4
    for warp, group, part in itertools.product(range(WARPS), range(8), range(lanes)):
        word = 0
        for k in range(8):
            if form.width >= 16:  # half a word for each of two rows
                row, chunk = group + 8 * (k // 4), 4 * part + k % 4
            else:  # a thread for each row and half of k
                row, chunk = group + 8 * (part % 2), 8 * (part // 2) + k
            word |= int(nibbles[ROWS * warp + row, chunk]) << 4 * k
        words[32 * warp + 4 * group + lanes * form.selector + part] = word
    return words


def expanded(held: Matrix, nibbles: NDArray[np.int64], element: str) -> Matrix:
    """A with its zeros."""
    size, each = chunk_of(element), chunk_of(element) // 2
    whole = np.zeros((len(held), 2 * held.shape[1]), held.dtype)
    for row, chunk in np.ndindex(nibbles.shape):
        nibble = int(nibbles[row, chunk])
        places = [(nibble & 3) // 2] if size == 2 else [nibble & 3, nibble >> 2]
        values = held[row, each * chunk : each * (chunk + 1)]
        whole[row, [size * chunk + place for place in places]] = values
    return whole


def place_of(lane: int, i: int) -> tuple[int, int]:
    """Row and column of D's element i of a lane."""
    return lane // 4 + 8 * (i % 4 // 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2


def kernel(form: Form, nbytes: int) -> str:
    """The thread's row of `in` has D's former registers, those of A, and the metadata."""
    count, a_count = form.registers, 0 if form.a is not None else 4
    shape = f"m64n{form.columns}k{form.k}"
    target = "{" + ", ".join(f"%r{k}" for k in range(count)) + "}"
    left = f"{{{', '.join(f'%r{count + k}' for k in range(4))}}}" if a_count else "%rd5"
    numbers: list[int] = [] if form.elements[0] == "s32" else [*form.signs]
    if form.width == 16:
        numbers += [0] * (form.a is not None) + [int(form.b_rows)]
    operands = [target, left, "%rd6", f"%r{count + a_count}", str(form.selector), "%p1"]
    operands += map(str, numbers)
    name = f"wgmma.mma_async.sp.sync.aligned.{shape}{form.satfinite}.{form.types}"
    words = count + a_count + 1
    return "\n".join([
        ".version 8.7", ".target sm_90a", ".address_size 64",
        ".visible .entry k(.param .u64 image, .param .u64 in, .param .u64 out, .param .u64 a,",
        ".param .u64 b) {",
        ".reg .b32 %r<200>; .reg .b64 %rd<10>; .reg .pred %p<3>;",
        f".shared .align 1024 .b8 s[{nbytes}];",
        "ld.param.u64 %rd1, [image]; ld.param.u64 %rd2, [in]; ld.param.u64 %rd3, [out];",
        "ld.param.u64 %rd5, [a]; ld.param.u64 %rd6, [b]; mov.u32 %r190, %tid.x;",
        f"mul.wide.u32 %rd4, %r190, {4 * words}; add.u64 %rd2, %rd2, %rd4;",
        f"mul.wide.u32 %rd4, %r190, {4 * count}; add.u64 %rd3, %rd3, %rd4;",
        "mov.u32 %r191, s; shl.b32 %r192, %r190, 2; add.u32 %r191, %r191, %r192;",
        "mov.u32 %r194, s; shr.u32 %r194, %r194, 4; cvt.u64.u32 %rd7, %r194;",
        "add.u64 %rd5, %rd5, %rd7; add.u64 %rd6, %rd6, %rd7;",
        "cvt.u64.u32 %rd4, %r192; add.u64 %rd1, %rd1, %rd4;",
        *(f"ld.global.b32 %r193, [%rd1+{at}]; st.shared.b32 [%r191+{at}], %r193;"
          for at in range(0, nbytes, 512)),
        *(f"ld.global.b32 %r{k}, [%rd2+{4 * k}];" for k in range(words)),
        "fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;",
        f"setp.eq.u32 %p1, 0, 0; {name} {', '.join(operands)};",
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
        *(f"st.global.b32 [%rd3+{4 * k}], %r{k};" for k in range(count)),
        "ret; }",
    ])  # fmt: skip


@dataclass(frozen=True)
class Prepared:
    """A kernel `k(image, in, out, a, b)` for 128 threads, its arguments, and its result.

    Attributes:
        image: of shared memory; rows: (128, words) registers; descriptors: of A and B.
        want: (64, columns) by NumPy, for factors that are small whole numbers.
    """

    form: Form
    text: str
    image: NDArray[np.uint8]
    rows: Words
    descriptors: tuple[int, int]
    want: Matrix

    def collected(self, words: Words) -> Matrix:
        """The (64, columns) of D, from all threads' registers."""
        d = self.form.elements[0]
        bits = unpacked(words.reshape(WARPS, 32, -1), d)
        row, column = places(self.form)
        found = np.zeros((WARPS, ROWS, self.form.columns), bits.dtype)
        found[:, row, column] = bits
        return decoded(found.reshape(64, -1), d)


def places(form: Form) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(32, elements) row and column of what each lane has of D."""
    lanes = [[place_of(lane, i) for i in range(form.columns // 2)] for lane in range(32)]
    row, column = np.moveaxis(np.array(lanes), -1, 0)
    return row, column


def prepared(form: Form, nibbles: NDArray[np.int64]) -> Prepared:
    """Small whole numbers as factors."""
    d, left, right = form.elements
    rng = np.random.default_rng(form.columns)
    low = 0 if "u8" in (left, right) else -6
    held = rng.integers(low, 7, (WARPS * ROWS, form.k // 2))
    b = rng.integers(low, 7, (form.k, form.columns))
    c = rng.integers(-9, 10, (WARPS * ROWS, form.columns))
    row, column = places(form)
    words = [packed(encoded(c, d).reshape(WARPS, ROWS, -1)[:, row, column], d).reshape(128, -1)]
    left_bits = encoded(held, left)
    image = np.zeros(0, np.uint8)
    if form.a is None:
        half = f"m16n8k{form.k // 2}"
        words.append(dealt(left_bits.reshape(WARPS, ROWS, -1), half, left, "a").reshape(128, -1))
    else:
        image = lie(left_bits.view(np.uint8).reshape(64, -1), form.a)
    words.append(metadata_of(nibbles, form))
    right_bits = np.ascontiguousarray(encoded(b, right).T)
    second = (
        lie_by_rows(right_bits)
        if form.b_rows
        else lie(right_bits.view(np.uint8).reshape(form.columns, -1), form.b)
    )
    nbytes = -(-(START_OF_B + second.size) // 1024) * 1024
    whole = np.zeros(nbytes, np.uint8)
    whole[: image.size] = image
    whole[START_OF_B : START_OF_B + second.size] = second
    sign = form.signs[0] * form.signs[1]
    return Prepared(
        form,
        kernel(form, nbytes),
        whole,
        np.concatenate(words, axis=1),
        (
            descriptor(0, 64, form.a or 0, by_rows=False),
            descriptor(START_OF_B, form.columns, form.b, by_rows=form.b_rows),
        ),
        sign * (expanded(held, nibbles, left) @ b) + c,
    )


FLOATS = ["f16.f16.f16", "f32.f16.f16", "f32.bf16.bf16", "f32.tf32.tf32"]
NARROW = [".".join(x) for x in itertools.product(["f32", "f16"], *[["e4m3", "e5m2"]] * 2)]
BYTES = [".".join(x) for x in itertools.product(["s32"], *[["s8", "u8"]] * 2)]
FORMS = [
    *(Form(types, a=a) for types in [*FLOATS, *NARROW, *BYTES] for a in (0, None)),
    *(Form(types, selector=1) for types in FLOATS),
    *(
        Form("f32.f16.f16", columns, a, b)
        for columns, a, b in [
            (16, 32, 64),
            (24, 64, 128),
            (64, 128, 0),
            (256, 32, 128),
            (40, None, 64),
        ]
    ),
    *(Form("f32.bf16.bf16", columns, b_rows=True) for columns in (8, 32)),
    Form("s32.s8.u8", 32, 128, 128, satfinite=".satfinite"),
    Form("f32.tf32.tf32", 48, 64, 64, signs=(-1, 1)),
    Form("f16.f16.f16", 16, None, 128, signs=(1, -1), selector=1),
]
