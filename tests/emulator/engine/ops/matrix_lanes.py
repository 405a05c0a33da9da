"""Which lane holds which element of a matrix, and kernels that multiply what lanes hold.

The places are the ISA's formulas ("Matrix Fragments for mma.m16n8k16 …"), one element at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.emulator.engine.kernel_runner import KernelRunner

Words = NDArray[Any]  # (warps, 32, registers) of uint32 or float64
Matrix = NDArray[Any]
WIDTHS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8,
          "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
          "e2m3": 8, "e3m2": 8, "e2m1": 8, "e2m1x8": 4}  # fmt: skip


def sizes(shape: str) -> tuple[int, int, int]:
    """m, n and k."""
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def place(shape: str, element: str, role: str, lane: int, i: int) -> tuple[int, int]:
    """The row and column of element i of a lane."""
    m, _, _ = sizes(shape)
    group, thread = lane // 4, lane % 4
    each = max(1, 32 // WIDTHS[element])
    register, part = divmod(i, each)
    if role == "c":
        return group + 8 * (i // 2), 2 * thread + i % 2
    if role == "b":
        return thread * each + part + 4 * each * register, group
    if m == 8:
        return group, thread * each + part
    return group + 8 * (register % 2), thread * each + part + 4 * each * (register // 2)


def quad_place(element: str, role: str, order: str, lane: int, i: int) -> tuple[int, int]:
    """The same for `mma.m8n8k4` with f16, in the matrices of the lane's quad pair."""
    upper = 4 if lane >= 16 else 0
    if role == "c":
        if element == "f16":
            return lane % 4 + upper, i
        return (lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)
    if role == "a":
        return (lane % 4 + upper, i) if order == "row" else (i % 4 + upper, lane % 4)
    return (lane % 4, i % 4 + upper) if order == "row" else (i, lane % 4 + upper)


def count(shape: str, element: str, role: str) -> int:
    """How many elements a lane holds."""
    m, n, k = sizes(shape)
    return {"a": m * k, "b": k * n, "c": m * n}[role] // 32


def packed(bits: NDArray[Any], element: str) -> Words:
    """Elements of each lane, the last axis, in words: the first one lowest."""
    width = WIDTHS[element]
    if width == 64:
        return bits
    each = 32 // width
    parts = bits.reshape(*bits.shape[:-1], -1, each).astype(np.uint64)
    shifts = np.arange(each, dtype=np.uint64) * np.uint64(width)
    found: Words = (parts << shifts).sum(axis=-1).astype(np.uint32)  # no bit is in two of them
    return found


def unpacked(words: Words, element: str) -> NDArray[Any]:
    """The elements' bits of each lane's words."""
    width = WIDTHS[element]
    if width == 64:
        return words
    shifts = np.arange(32 // width, dtype=np.uint64) * np.uint64(width)
    parts = words.astype(np.uint64)[..., None] >> shifts & np.uint64((1 << width) - 1)
    found: NDArray[Any] = parts.reshape(*words.shape[:-1], -1)
    return found


def dealt(matrices: Matrix, shape: str, element: str, role: str) -> Words:
    """The registers for (warps, rows, columns) of bits."""
    places = [
        [place(shape, element, role, lane, i) for i in range(count(shape, element, role))]
        for lane in range(32)
    ]
    row, column = np.moveaxis(np.array(places), -1, 0)
    return packed(matrices[:, row, column], element)


def collected(words: Words, shape: str, element: str) -> Matrix:
    """The (warps, m, n) bits that registers of D hold."""
    m, n, _ = sizes(shape)
    bits = unpacked(words, element)
    found = np.zeros((len(words), m, n), dtype=bits.dtype)
    for lane in range(32):
        for i in range(bits.shape[2]):
            found[:, *place(shape, element, "c", lane, i)] = bits[:, lane, i]
    return found


def encoded(values: NDArray[Any], element: str) -> NDArray[Any]:
    """The bits of numbers that the type has exactly."""
    if element == "f64":
        return values.astype(np.float64)
    if element in ("f32", "tf32"):
        return values.astype(np.float32).view(np.uint32)
    if element == "f16":
        return values.astype(np.float16).view(np.uint16)
    if element == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if element in ("e4m3", "e5m2"):
        return _narrow(values, 3 if element == "e4m3" else 2)
    width = WIDTHS[element]
    found: NDArray[Any] = values.astype(np.int64) & ((1 << width) - 1)
    return found.astype(f"u{max(1, width // 8)}")


def _narrow(values: NDArray[Any], fraction: int) -> NDArray[np.uint8]:
    """Small whole numbers as floats of 8 bits."""
    mantissa, exponent = np.frexp(np.abs(values).astype(np.float64))
    bias = 7 if fraction == 3 else 15
    bits = (exponent - 1 + bias) * 2**fraction + (mantissa * 2 - 1) * 2**fraction
    assert (bits == bits.astype(np.uint8)).all()
    return np.where(values == 0, 0, bits + 128 * (values < 0)).astype(np.uint8)


def decoded(bits: NDArray[Any], element: str) -> NDArray[Any]:
    """The numbers that bits of D's types mean: float64, or int64 for s32."""
    if element == "f64":
        return bits
    if element == "s32":
        return bits.astype(np.uint32).view(np.int32).astype(np.int64)
    if element == "f32":
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    return bits.astype(np.uint16).view(np.float16).astype(np.float64)


def kernel(
    instruction: str, registers: tuple[int, ...], wide: bool, selector: int | None = None
) -> str:
    """One kernel `k(in, out)`; a thread's row of `in` has the registers of A, B and C.

    With a selector the metadata of a sparse product come behind them.
    """
    name, kind, size = ("%fd", "f64", 8) if wide else ("%r", "b32", 4)
    d, a, b, c = registers
    rows = a + b + c + (selector is not None)
    start = (40, 0, a, a + b)
    operands = [
        "{" + ", ".join(f"{name}{s + k}" for k in range(n)) + "}"
        for s, n in zip(start, registers, strict=True)
    ]
    if selector is not None:
        operands += [f"%r{rows - 1}", str(selector)]
    return "\n".join([
        ".version 8.7", ".target sm_90", ".address_size 64",
        ".visible .entry k(.param .u64 in, .param .u64 out)", "{",
        ".reg .b32 %r<60>; .reg .b64 %rd<10>; .reg .f64 %fd<60>;",
        "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r59, %tid.x;",
        f"mul.wide.u32 %rd3, %r59, {rows * size}; add.u64 %rd1, %rd1, %rd3;",
        f"mul.wide.u32 %rd3, %r59, {d * size}; add.u64 %rd2, %rd2, %rd3;",
        *(f"ld.global.{kind} {name}{k}, [%rd1+{k * size}];" for k in range(rows)),
        f"{instruction} {', '.join(operands)};",
        *(f"st.global.{kind} [%rd2+{k * size}], {name}{40 + k};" for k in range(d)),
        "ret;", "}",
    ])  # fmt: skip


def run_words(
    instruction: str,
    a: Words,
    b: Words,
    c: Words,
    results: int,
    *,
    metadata: Words | None = None,
    selector: int = 0,
) -> Words:
    """(warps, 32, results): the registers of D; `metadata` (warps, 32, 1) of a sparse product."""
    wide = a.dtype == np.float64
    registers = (results, a.shape[2], b.shape[2], c.shape[2])
    sparse = metadata is not None
    runner = KernelRunner(
        kernel(instruction, registers, wide, selector if sparse else None), 1 << 24
    )
    rows = np.concatenate([a, b, c] if metadata is None else [a, b, c, metadata], axis=2)
    out = runner.put(np.zeros((len(a), 32, results), a.dtype))
    runner.launch("k", 1, 32 * len(a), runner.put(rows), out)
    return runner.get(out, len(a) * 32 * results, a.dtype).reshape(len(a), 32, results)


def run_product(
    instruction: str, shape: str, types: str, a: Matrix, b: Matrix, c: Matrix
) -> Matrix:
    """D of (warps, …) matrices of numbers that the types have exactly."""
    d, of_a, of_b, of_c = types.split(".")
    words = [
        dealt(encoded(values, element), shape, element, role)
        for values, element, role in ((a, of_a, "a"), (b, of_b, "b"), (c, of_c, "c"))
    ]
    results = count(shape, d, "c") // max(1, 32 // WIDTHS[d])
    found = run_words(instruction, words[0], words[1], words[2], results)
    return decoded(collected(found, shape, d), d)
