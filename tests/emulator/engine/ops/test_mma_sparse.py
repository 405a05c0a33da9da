"""`mma.sp` in every form, against NumPy's products with the zeros that are left away."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import EmulationFault, UnsupportedInstruction
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.matrix_lanes import (
    WIDTHS,
    Matrix,
    Words,
    collected,
    count,
    dealt,
    decoded,
    encoded,
    kernel,
    run_words,
    sizes,
)
from tests.rows import all_rows

WARPS = 2
HALVES = ["f16.f16.f16.f16", "f32.f16.f16.f32", "f32.bf16.bf16.f32"]


def pairs(result: str, *elements: str) -> list[str]:
    return [f"{result}.{a}.{b}.{result}" for a in elements for b in elements]


FORMS = [
    *itertools.product(["m16n8k8", "m16n8k16"], ["f32.tf32.tf32.f32"]),
    *itertools.product(["m16n8k16", "m16n8k32"], HALVES),
    *itertools.product(["m16n8k32", "m16n8k64"], pairs("s32", "s8", "u8")),
    *itertools.product(["m16n8k64", "m16n8k128"], pairs("s32", "s4", "u4")),
    *itertools.product(["m16n8k64"], pairs("f32", "e4m3", "e5m2")),
]


def chunk_of(element: str) -> int:
    """How many neighbours of a row have metadata together."""
    return {"tf32": 2, "s4": 8, "u4": 8}.get(element, 4)


def lanes_of(shape: str, element: str) -> int:
    """How many of four lanes bring metadata."""
    return sizes(shape)[2] // chunk_of(element) // 4


def chosen(rng: np.random.Generator, shape: str, element: str) -> NDArray[np.int64]:
    """(warps, 16, chunks) a nibble each: two indices of two bits, the lesser one first."""
    nibbles = [0b0100, 0b1110] if element == "tf32" else [4, 8, 12, 9, 13, 14]
    found = rng.choice(nibbles, (WARPS, 16, sizes(shape)[2] // chunk_of(element)))
    return found.astype(np.int64)


def kept(nibble: int, element: str) -> list[int]:
    """The positions in its chunk that a nibble names."""
    first, second = nibble & 3, nibble >> 2
    if element == "tf32":
        return [first // 2]
    if element in ("s4", "u4"):
        return [2 * first, 2 * first + 1, 2 * second, 2 * second + 1]
    return [first, second]


def metadata_of(nibbles: NDArray[np.int64], element: str, selector: int) -> Words:
    """(warps, 32, 1) words; lanes that bring nothing have ones."""
    chunks = nibbles.shape[2]
    lanes = chunks // 4
    words = np.full((WARPS, 32, 1), 0xFFFFFFFF, np.uint32)
    for warp, group, part in itertools.product(range(WARPS), range(8), range(lanes)):
        word = 0
        for k in range(8):
            if WIDTHS[element] >= 16:
                row, chunk = group + 8 * (k // 4), 4 * part + k % 4
            else:
                row, chunk = group + 8 * (part % 2), 8 * (part // 2) + k
            word |= int(nibbles[warp, row, chunk]) << 4 * k
        words[warp, 4 * group + lanes * selector + part] = word
    return words


def run(
    kind: str, shape: str, types: str, selector: int, nibbles: NDArray[np.int64]
) -> tuple[Matrix, Matrix]:
    """What the emulator gives, and what NumPy does."""
    d, left, right, c_type = types.split(".")
    m, n, k = sizes(shape)
    rng = np.random.default_rng(k)
    low = 0 if left[0] == "u" or right[0] == "u" else -6
    held = rng.integers(low, 7, (WARPS, m, k // 2))
    b, c = rng.integers(low, 7, (WARPS, k, n)), rng.integers(-9, 10, (WARPS, m, n))
    whole = np.zeros((WARPS, m, k), np.int64)
    size, each = chunk_of(left), chunk_of(left) // 2
    for warp, row, chunk in np.ndindex(nibbles.shape):
        places = kept(int(nibbles[warp, row, chunk]), left)
        values = held[warp, row, each * chunk : each * (chunk + 1)]
        whole[warp, row, [size * chunk + at for at in places]] = values
    half = f"m16n8k{k // 2}"
    words = (
        dealt(encoded(held, left), half, left, "a"),
        dealt(encoded(b, right), shape, right, "b"),
        dealt(encoded(c, c_type), shape, c_type, "c"),
    )
    found = run_words(
        f"mma.{kind}.sync.aligned.{shape}.row.col.{types}",
        *words,
        count(shape, d, "c") * WIDTHS[d] // 32,
        metadata=metadata_of(nibbles, left, selector),
        selector=selector,
    )
    return decoded(collected(found, shape, d), d), whole @ b + c


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("kind", ["sp", "sp::ordered_metadata"])
@pytest.mark.parametrize(("shape", "types"), FORMS)
def test_elements_stand_where_the_metadata_say(shape: str, types: str, kind: str) -> None:
    element = types.split(".")[1]
    for selector in range(4 // lanes_of(shape, element)):
        nibbles = chosen(np.random.default_rng(selector), shape, element)
        found, want = run(kind, shape, types, selector, nibbles)
        assert np.array_equal(found, want), selector


def test_indices_may_be_in_any_order_unless_the_instruction_forbids_it() -> None:
    shape, types = "m16n8k32", "f32.f16.f16.f32"
    nibbles = chosen(np.random.default_rng(1), shape, "f16")
    nibbles[1, 3, 2] = 0b0010
    found, want = run("sp", shape, types, 0, nibbles)
    assert np.array_equal(found, want)
    with pytest.raises(EmulationFault, match="do not name elements in order"):
        run("sp::ordered_metadata", shape, types, 0, nibbles)


@pytest.mark.parametrize(
    ("types", "nibble"),
    [
        ("f32.f16.f16.f32", 0b0101),
        ("f32.f16.f16.f32", 0),
        ("f32.tf32.tf32.f32", 0b1100),
        ("f32.tf32.tf32.f32", 0b1001),
    ],
)
def test_metadata_that_name_an_element_twice_are_a_fault(types: str, nibble: int) -> None:
    nibbles = chosen(np.random.default_rng(1), "m16n8k16", types.split(".")[1])
    nibbles[0, 15, 1] = nibble
    with pytest.raises(EmulationFault, match="metadata of mma.sp"):
        run("sp", "m16n8k16", types, 0, nibbles)


def test_an_infinity_that_meets_a_zero_of_a_that_is_not_held_does_nothing() -> None:
    shape = "m16n8k16"
    nibbles = np.full((WARPS, 16, 4), 0b0100, np.int64)  # the first two of four
    b = np.zeros((WARPS, 16, 8))
    b[:, 3] = np.inf
    zeros = dealt(encoded(np.ones((WARPS, 16, 8)), "f16"), "m16n8k8", "f16", "a")
    words = run_words(
        f"mma.sp.sync.aligned.{shape}.row.col.f32.f16.f16.f32",
        zeros,
        dealt(encoded(b, "f16"), shape, "f16", "b"),
        dealt(encoded(np.zeros((WARPS, 16, 8)), "f32"), shape, "f32", "c"),
        4,
        metadata=metadata_of(nibbles, "f16", 0),
    )
    assert not words.any()


@pytest.mark.parametrize(
    ("instruction", "registers", "selector"),
    [
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (4, 2, 2, 4), 4),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", (4, 4, 4, 4), 2),
        ("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", (4, 4, 4, 4), 1),
        ("mma.sp.sync.aligned.m16n8k64.row.col.f16.e4m3.e4m3.f16", (2, 4, 4, 2), 0),
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", (4, 2, 2, 4), 0),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", (4, 4, 2, 4), 0),
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", (4, 2, 2, 4), None),
    ],
)
def test_other_forms_are_rejected(
    instruction: str, registers: tuple[int, ...], selector: int | None
) -> None:
    with pytest.raises(UnsupportedInstruction, match="mma.sp"):
        KernelRunner(kernel(instruction, registers, False, selector), 1 << 20).program.kernel("k")
