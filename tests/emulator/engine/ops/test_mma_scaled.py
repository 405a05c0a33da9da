"""`mma` of narrow floats with a `.kind`, scaled by blocks or not, against exact sums."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import EmulationFault, UnsupportedInstruction
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.matrix_lanes import (
    Matrix,
    Words,
    collected,
    count,
    dealt,
    decoded,
    encoded,
    sizes,
)
from tests.rows import all_rows
from tests.short_cases import few

WARPS = 2
TYPES: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn, "ue8m0": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
BITS = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}


def numbers(bits: NDArray[np.uint8], element: str) -> NDArray[np.float64]:
    """What ml_dtypes says that bits mean."""
    found: NDArray[np.float64] = bits.view(TYPES[element]).astype(np.float64)
    return found


def random_bits(
    rng: np.random.Generator, element: str, shape: tuple[int, ...]
) -> NDArray[np.uint8]:
    """Finite ones; of 8 bits those whose sums float64 has exactly."""
    bits = rng.integers(0, 1 << BITS[element], shape).astype(np.uint8)
    if element == "e5m2":
        bits = bits & np.uint8(0x83) | rng.integers(10, 20, shape).astype(np.uint8) << np.uint8(2)
    if element == "e4m3":
        bits = np.where(bits & 0x7F == 0x7F, 0x7E, bits).astype(np.uint8)
    return bits


def kernel(instruction: str, registers: tuple[int, ...], selectors: list[str]) -> str:
    """One kernel `k(in, out)`; a thread's row of `in` has A, B, C and the factors of A and of B."""
    d, a, b, c = registers
    lists = [
        "{" + ", ".join(f"%r{start + k}" for k in range(n)) + "}"
        for start, n in ((40, d), (0, a), (a, b), (a + b, c))
    ]
    words = a + b + c
    operands = list(lists)
    if selectors:
        operands += [f"%r{words}", selectors[0], f"{{%r{words + 1}}}", selectors[1]]
    rows = words + 2
    return "\n".join([
        ".version 9.1", ".target sm_120a", ".address_size 64",
        ".visible .entry k(.param .u64 in, .param .u64 out)", "{",
        ".reg .b32 %r<60>; .reg .b64 %rd<10>; .reg .b16 %h<3>; mov.b16 %h1, 1; mov.b16 %h2, 2;",
        "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r59, %tid.x;",
        f"mul.wide.u32 %rd3, %r59, {4 * rows}; add.u64 %rd1, %rd1, %rd3;",
        f"mul.wide.u32 %rd3, %r59, {4 * d}; add.u64 %rd2, %rd2, %rd3;",
        *(f"ld.global.b32 %r{k}, [%rd1+{4 * k}];" for k in range(rows)),
        f"{instruction} {', '.join(operands)};",
        *(f"st.global.b32 [%rd2+{4 * k}], %r{40 + k};" for k in range(d)),
        "ret;", "}",
    ])  # fmt: skip


class Product:
    """Random factors of one form; `packed` where four bits are an element, not a byte."""

    def __init__(self, shape: str, types: str, *, packed: bool = False) -> None:
        self.shape, self.types = shape, types.split(".")
        m, n, k = sizes(shape)
        _, left, right, _ = self.types
        rng = np.random.default_rng(k)
        self.a = random_bits(rng, left, (WARPS, m, k))
        self.b = random_bits(rng, right, (WARPS, k, n))
        self.c = rng.integers(-99, 100, (WARPS, m, n))
        self.held = [left, right] if not packed else ["e2m1x8", "e2m1x8"]
        self.scales = rng.integers(120, 135, (WARPS, 32, 8)).astype(np.uint8)

    def run(self, instruction: str, selectors: list[str]) -> Matrix:
        """What the emulator gives."""
        d, _, _, c = self.types
        left, right = (
            bits << 2 if element == "e2m1" else bits
            for bits, element in zip((self.a, self.b), self.held, strict=True)
        )
        words = [
            dealt(left, self.shape, self.held[0], "a"),
            dealt(right, self.shape, self.held[1], "b"),
            dealt(encoded(self.c, c), self.shape, c, "c"),
        ]
        results = count(self.shape, d, "c") // (2 if d == "f16" else 1)
        text = kernel(instruction, (results, *(x.shape[2] for x in words)), selectors)
        runner = KernelRunner(text, 1 << 24)
        rows: Words = np.concatenate([*words, self.scales.view(np.uint32)], axis=2)
        out = runner.put(np.zeros((WARPS, 32, results), np.uint32))
        runner.launch("k", 1, 32 * WARPS, runner.put(rows), out)
        found = runner.get(out, WARPS * 32 * results, np.uint32).reshape(WARPS, 32, results)
        return decoded(collected(found, self.shape, d), d)

    def want(self, of_a: Matrix | None = None, of_b: Matrix | None = None) -> Matrix:
        """Exact sums, rounded once; (WARPS, m, k) and (WARPS, k, n) are multiplied in."""
        a, b = numbers(self.a, self.types[1]), numbers(self.b, self.types[2])
        a = a if of_a is None else a * of_a
        b = b if of_b is None else b * of_b
        exact = np.empty(self.c.shape)
        for warp, row, column in np.ndindex(self.c.shape):
            products = a[warp, row] * b[warp, :, column]
            exact[warp, row, column] = math.fsum([*products, float(self.c[warp, row, column])])
        kind = {"f32": np.float32, "f16": np.float16}[self.types[0]]
        with np.errstate(over="ignore"):
            return exact.astype(kind).astype(np.float64)

    def factors(self, scale: str, chunks: int, selectors: list[tuple[int, int]]) -> list[Matrix]:
        """Of A (WARPS, m, k) and of B (WARPS, k, n), by the ISA's words."""
        m, n, k = sizes(self.shape)
        of_a, of_b = np.empty((WARPS, m, k)), np.empty((WARPS, k, n))
        (byte_a, lane_a), (byte_b, lane_b) = selectors
        for warp, chunk in itertools.product(range(WARPS), range(chunks)):
            part = slice(chunk * k // chunks, (chunk + 1) * k // chunks)
            for row in range(m):
                lane = 4 * (row % 8) + 2 * lane_a + row // 8
                of_a[warp, row, part] = self.factor(scale, warp, lane, byte_a + chunk)
            for column in range(n):
                lane = 4 * column + lane_b
                of_b[warp, part, column] = self.factor(scale, warp, lane, 4 + byte_b + chunk)
        return [of_a, of_b]

    def factor(self, scale: str, warp: int, lane: int, byte: int) -> float:
        bits = self.scales[warp, lane, byte : byte + 1]
        kept = bits & np.uint8(0x7F if scale == "ue4m3" else 0xFF)
        return float(numbers(kept, scale)[0])


NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("result", ["f32", "f16"])
@pytest.mark.parametrize(("left", "right"), [*itertools.product(NARROW, NARROW)])
def test_formats_of_both_factors_may_differ(left: str, right: str, result: str) -> None:
    types = f"{result}.{left}.{right}.{result}"
    product = Product("m16n8k32", types)
    found = product.run(f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.{types}", [])
    assert np.array_equal(found, product.want())


SCALED = [
    *(
        ("mxf8f6f4", "", "m16n8k32", f"{a}.{b}", "ue8m0", 1)
        for a, b in [("e4m3", "e5m2"), ("e2m1", "e3m2"), ("e2m3", "e2m1")]
    ),
    ("mxf8f6f4", ".scale_vec::1X", "m16n8k32", "e4m3.e4m3", "ue8m0", 1),
    ("mxf4", "", "m16n8k64", "e2m1.e2m1", "ue8m0", 2),
    ("mxf4", ".scale_vec::2X", "m16n8k64", "e2m1.e2m1", "ue8m0", 2),
    ("mxf4nvf4", ".scale_vec::2X", "m16n8k64", "e2m1.e2m1", "ue8m0", 2),
    ("mxf4nvf4", ".scale_vec::4X", "m16n8k64", "e2m1.e2m1", "ue8m0", 4),
    ("mxf4nvf4", ".scale_vec::4X", "m16n8k64", "e2m1.e2m1", "ue4m3", 4),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "vector", "shape", "factors", "scale", "chunks"), few(SCALED, 3))
def test_every_block_has_the_factor_that_the_selectors_name(
    kind: str, vector: str, shape: str, factors: str, scale: str, chunks: int
) -> None:
    types = f"f32.{factors}.f32"
    name = f"mma.sync.aligned.{shape}.row.col.kind::{kind}.block_scale{vector}.{types}.{scale}"
    product = Product(shape, types, packed=shape == "m16n8k64")
    for byte, lane in itertools.product(range(0, 5 - chunks, chunks), range(4)):
        chosen = [(byte, lane % 2), (4 - chunks - byte, lane)]
        found = product.run(name, [f"{{{b}, {at}}}" for b, at in chosen])
        want = product.want(*product.factors(scale, chunks, chosen))
        assert np.array_equal(found, want, equal_nan=True), chosen


def test_modifiers_may_stand_as_cutlass_has_them_and_selectors_be_registers() -> None:
    types = "f32.e4m3.e2m1.f32"
    product = Product("m16n8k32", types)
    name = "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col"
    found = product.run(f"{name}.{types}.ue8m0", ["{%h2, %h1}", "{%h1, %h2}"])
    want = product.want(*product.factors("ue8m0", 1, [(2, 1), (1, 2)]))
    assert np.array_equal(found, want)


def test_a_factor_that_is_no_number_spoils_its_row_or_column_alone() -> None:
    types = "f32.e4m3.e4m3.f32"
    product = Product("m16n8k32", types)
    product.scales[1, 4 * 3 + 1, 0] = 255  # of row 11
    product.scales[0, 4 * 5, 4] = 255  # of column 5
    name = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale"
    found = product.run(f"{name}.{types}.ue8m0", ["{0, 0}", "{0, 0}"])
    wrong = np.zeros(found.shape, bool)
    wrong[1, 11] = wrong[0, :, 5] = True
    assert np.array_equal(np.isnan(found), wrong)


@pytest.mark.parametrize("selectors", [["{0, 2}", "{0, 0}"], ["{0, 0}", "{1, 0}"]])
def test_a_selector_that_names_nothing_is_a_fault(selectors: list[str]) -> None:
    types = "f32.e2m1.e2m1.f32"
    name = f"mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.{types}.ue8m0"
    with pytest.raises(EmulationFault, match="names no byte or no lane"):
        Product("m16n8k64", types, packed=True).run(name, selectors)


@pytest.mark.parametrize("name", [
    "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0",
    "m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
    "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3",
    "m16n8k64.row.col.kind::mxf4.block_scale.f32.e4m3.e2m1.f32.ue8m0",
    "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue4m3",
])  # fmt: skip
def test_other_combinations_are_rejected(name: str) -> None:
    text = kernel(f"mma.sync.aligned.{name}", (4, 4, 2, 4), ["{0, 0}", "{0, 0}"])
    with pytest.raises(UnsupportedInstruction, match="mma"):
        KernelRunner(text, 1 << 20).program.kernel("k")
