"""`mma.sync` in every form, against NumPy's integer products and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import Deadlock, SynchronisationFault, UnsupportedInstruction
from tests.emulator.engine.kernel_runner import KernelRunner, run
from tests.emulator.engine.ops.matrix_lanes import (
    WIDTHS,
    Matrix,
    kernel,
    packed,
    quad_place,
    run_product,
    run_words,
    sizes,
    unpacked,
)
from tests.rows import all_rows

WARPS = 3


def pairs(result: str, *elements: str) -> list[str]:
    return [f"{result}.{a}.{b}.{result}" for a in elements for b in elements]


BYTES, NIBBLES = pairs("s32", "s8", "u8"), pairs("s32", "s4", "u4")
HALVES = ["f16.f16.f16.f16", "f32.f16.f16.f32"]
NARROW = pairs("f32", "e4m3", "e5m2") + pairs("f16", "e4m3", "e5m2")
FLOATS = {
    "m8n8k4": ["f64.f64.f64.f64"],
    "m16n8k4": ["f64.f64.f64.f64", "f32.tf32.tf32.f32"],
    "m16n8k8": ["f64.f64.f64.f64", "f32.tf32.tf32.f32", "f32.bf16.bf16.f32", *HALVES],
    "m16n8k16": ["f64.f64.f64.f64", "f32.bf16.bf16.f32", *HALVES, *NARROW],
    "m16n8k32": NARROW,
}
INTEGERS = {
    "m8n8k16": BYTES,
    "m16n8k16": BYTES,
    "m16n8k32": [*BYTES, *NIBBLES],
    "m8n8k32": NIBBLES,
    "m16n8k64": NIBBLES,
}
FLOAT_FORMS = [(shape, types) for shape, forms in FLOATS.items() for types in forms]
INTEGER_FORMS = [(shape, types) for shape, forms in INTEGERS.items() for types in forms]


def random_matrices(rng: np.random.Generator, shape: str, low: int, high: int) -> list[Matrix]:
    m, n, k = sizes(shape)
    return [rng.integers(low, high + 1, (WARPS, *size)) for size in ((m, k), (k, n), (m, n))]


@all_rows
@pytest.mark.parametrize(("shape", "types"), FLOAT_FORMS)
def test_products_of_small_whole_numbers_are_exact(shape: str, types: str) -> None:
    a, b, c = random_matrices(np.random.default_rng(1), shape, -6, 6)
    found = run_product(f"mma.sync.aligned.{shape}.row.col.{types}", shape, types, a, b, c)
    assert np.array_equal(found, a @ b + c)


def range_of(element: str) -> tuple[int, int]:
    width = WIDTHS[element]
    return (-(1 << width - 1), (1 << width - 1) - 1) if element[0] == "s" else (0, (1 << width) - 1)


@all_rows
@pytest.mark.parametrize("satfinite", [False, True])
@pytest.mark.parametrize(("shape", "types"), INTEGER_FORMS)
def test_integers_wrap_or_saturate(shape: str, types: str, satfinite: bool) -> None:
    rng = np.random.default_rng(2)
    m, n, k = sizes(shape)
    _, left, right, _ = types.split(".")
    a = rng.integers(*range_of(left), (WARPS, m, k), endpoint=True)
    b = rng.integers(*range_of(right), (WARPS, k, n), endpoint=True)
    c = rng.integers(-(2**31), 2**31, (WARPS, m, n))
    c[0] = 2**31 - 1
    c[1] = -(2**31)
    option = ".satfinite" if satfinite else ""
    found = run_product(f"mma.sync.aligned.{shape}.row.col{option}.{types}", shape, types, a, b, c)
    exact = a @ b + c
    wrapped = exact.astype(np.int32).astype(np.int64)
    assert (exact != wrapped).any()
    assert np.array_equal(found, np.clip(exact, -(2**31), 2**31 - 1) if satfinite else wrapped)


@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
@pytest.mark.parametrize("op", ["xor", "and"])
def test_single_bits_are_counted(shape: str, op: str) -> None:
    a, b, c = random_matrices(np.random.default_rng(3), shape, 0, 1)
    c = c * 1000 - 500
    found = run_product(
        f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{op}.popc", shape, "s32.b1.b1.s32", a, b, c
    )
    left, right = a[:, :, :, None], b[:, None, :, :]
    both = left ^ right if op == "xor" else left & right
    assert np.array_equal(found, both.sum(axis=2) + c)


@all_rows
@pytest.mark.parametrize("orders", ["row.row", "row.col", "col.row", "col.col"])
@pytest.mark.parametrize("types", [*HALVES, "f32.f16.f16.f16"])
def test_quad_pairs_multiply_four_matrices_each(orders: str, types: str) -> None:
    d, _, _, c_type = types.split(".")
    rng = np.random.default_rng(4)
    a, b, c = (rng.integers(-6, 7, (2, 4, *size)) for size in ((8, 4), (4, 8), (8, 8)))
    order_a, order_b = orders.split(".")
    words = []
    for values, element, role, order in (
        (a, "f16", "a", order_a),
        (b, "f16", "b", order_b),
        (c, c_type, "c", ""),
    ):
        lanes = np.array(
            [
                [
                    values[:, lane % 16 // 4, *quad_place(element, role, order, lane, i)]
                    for i in range(8 if role == "c" else 4)
                ]
                for lane in range(32)
            ]
        )
        floats = np.moveaxis(lanes, -1, 0).astype("f2" if element == "f16" else "f4")
        words.append(packed(floats.view(f"u{floats.itemsize}"), element))
    instruction = f"mma.sync.aligned.m8n8k4.{orders}.{types}"
    found = run_words(instruction, words[0], words[1], words[2], 8 if d == "f32" else 4)
    bits = unpacked(found, d)
    want = a @ b + c
    numbers = bits.astype("u4").view("f4") if d == "f32" else bits.astype("u2").view("f2")
    for lane in range(32):
        for i in range(8):
            row, column = quad_place(d, "c", "", lane, i)
            got = numbers[:, lane, i]
            assert np.array_equal(got, want[:, lane % 16 // 4, row, column]), (lane, i)


ERRORS = {"f32": 2.0**-22, "f16": 2.0**-10}


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(("shape", "types"), [f for f in FLOAT_FORMS if f[1][:3] != "f64"])
def test_rounding_stays_within_a_unit_or_two_of_the_result(shape: str, types: str) -> None:
    rng = np.random.default_rng(5)
    m, n, k = sizes(shape)
    d, element, _, _ = types.split(".")
    steps = {"e4m3": 4, "e5m2": 3, "bf16": 128}.get(element, 1024)

    def numbers(*size: int) -> NDArray[np.float64]:
        scale = 2.0 ** rng.integers(-3, 4, size)
        return rng.integers(-steps, steps + 1, size) / steps * (scale if steps > 4 else 4.0)

    a, b, c = numbers(WARPS, m, k), numbers(WARPS, k, n), numbers(WARPS, m, n)
    if element[0] == "e":
        a, b, c = np.round(a), np.round(b), np.round(c * 8)
    found = run_product(f"mma.sync.aligned.{shape}.row.col.{types}", shape, types, a, b, c)
    exact = a @ b + c
    allowed = ERRORS[d] * (np.abs(a) @ np.abs(b) + np.abs(c))
    assert (np.abs(found - exact) <= allowed).all()


def rounded(value: Fraction) -> float:
    return value.numerator / value.denominator  # CPython divides integers correctly rounded


@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"])
def test_doubles_are_a_chain_of_fused_multiply_adds(shape: str) -> None:
    rng = np.random.default_rng(6)
    m, n, k = sizes(shape)
    a, b, c = (rng.standard_normal((1, *size)) for size in ((m, k), (k, n), (m, n)))
    types = "f64.f64.f64.f64"
    found = run_product(f"mma.sync.aligned.{shape}.row.col.{types}", shape, types, a, b, c)
    for row in range(0, m, 3):
        for column in range(n):
            total = float(c[0, row, column])
            for i in range(k):
                total = rounded(
                    Fraction(float(a[0, row, i])) * Fraction(float(b[0, i, column]))
                    + Fraction(total)
                )
            assert found[0, row, column] == total


def test_directed_rounding_of_doubles_encloses_the_sum() -> None:
    rng = np.random.default_rng(7)
    a, b, c = (rng.standard_normal((1, *size)) for size in ((8, 4), (4, 8), (8, 8)))
    types = "f64.f64.f64.f64"
    below, above, near = (
        run_product(f"mma.sync.aligned.m8n8k4.row.col.{r}.{types}", "m8n8k4", types, a, b, c)
        for r in ("rm", "rp", "rn")
    )
    assert (below <= near).all()
    assert (near <= above).all()
    assert (below < above).all()


HALF = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"
CALL = f"{HALF} {{%r1, %r2}}, {{%r3, %r4}}, {{%r5}}, {{%r6, %r7}};"
ZEROS = "mov.b32 %r3, 0; mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, %r0; mov.b32 %r7, %r0;"
STORE = "st.global.b32 [%rd2], %r1;"


def test_lanes_that_come_late_are_waited_for() -> None:
    body = f"""{ZEROS} and.b32 %r8, %r0, 1; setp.eq.u32 %p1, %r8, 0; @%p1 bra GO;
        add.u32 %r6, %r6, 1; GO: {CALL} {STORE}"""
    found = run(body, np.zeros((64, 1), np.uint32), np.uint32)
    assert found.tolist() == [k + k % 2 for k in range(64)]


def test_a_warp_that_falls_behind_goes_on() -> None:
    body = f"{ZEROS} setp.lt.u32 %p1, %r0, 32; @%p1 bra END; {CALL} {STORE} END:"
    found = run(body, np.zeros((64, 1), np.uint32), np.uint32)
    assert found.tolist() == [0] * 32 + list(range(32, 64))


@pytest.mark.parametrize("block", [16, 40])
def test_a_warp_without_all_its_lanes_is_a_fault(block: int) -> None:
    with pytest.raises(SynchronisationFault, match="all 32 must exist") as caught:
        run(f"{ZEROS} {CALL} {STORE}", np.zeros((block, 1), np.uint32), np.uint32, block=block)
    assert caught.value.where.thread == (32 if block == 40 else 0, 0, 0)


def test_lanes_that_have_exited_are_a_fault() -> None:
    body = f"{ZEROS} setp.eq.u32 %p1, %r0, 7; @%p1 exit; {CALL} {STORE}"
    with pytest.raises(SynchronisationFault, match="mma.sync.aligned .* lanes 0xffffff7f"):
        run(body, np.zeros((32, 1), np.uint32), np.uint32)


def test_lanes_at_two_places_do_not_meet() -> None:
    body = f"""{ZEROS} and.b32 %r8, %r0, 1; setp.eq.u32 %p1, %r8, 0; @%p1 bra OTHER;
        {CALL} bra END;
        OTHER: {CALL}
        END: {STORE}"""
    with pytest.raises(Deadlock, match="16 at warp instructions"):
        run(body, np.zeros((32, 1), np.uint32), np.uint32)


@pytest.mark.parametrize("instruction", [
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32",
    "mma.sync.aligned.m16n8k8.row.row.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s4.s32",
    "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32",
    "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.popc",
    "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
    "mma.sync.aligned.m8n8k4.row.col.rn.rz.f64.f64.f64.f64",
    "mma.m16n8k16.row.col.f32.f16.f16.f32",
])  # fmt: skip
def test_what_no_tensor_core_multiplies_is_rejected(instruction: str) -> None:
    runner = KernelRunner(kernel(instruction, (4, 4, 2, 4), "f64" in instruction), 1 << 20)
    with pytest.raises(UnsupportedInstruction, match="mma") as caught:
        runner.program.kernel("k")
    assert caught.value.line > 0


def test_a_wrong_number_of_registers_is_rejected() -> None:
    text = kernel("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (4, 2, 2, 4), False)
    with pytest.raises(UnsupportedInstruction, match="2 registers for a fragment of 4"):
        KernelRunner(text, 1 << 20).program.kernel("k")
