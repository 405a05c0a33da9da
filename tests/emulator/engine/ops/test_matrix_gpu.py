"""Tensor core products have a GPU's bits.

`gpu_matrix.txt` has for each instruction four digests of what an H100 (compute capability 9.0,
driver API 13.0) gave for the inputs of `matrix_cases`, one for each quarter: factors whose
exponents are far apart, near each other with infinities and NaNs, short, and subnormal.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.emulator.engine.ops.matrix_cases import CASES, WARPS, Case, digest
from tests.emulator.engine.ops.matrix_lanes import run_product, run_words
from tests.rows import all_rows


def recorded() -> dict[str, list[str]]:
    lines = Path(__file__).with_name("gpu_matrix.txt").read_text().splitlines()
    pairs = (line.split(" = ") for line in lines)
    return {instruction: digests.split() for digests, instruction in pairs}


def test_every_form_was_recorded() -> None:
    assert set(recorded()) == {case.instruction for case in CASES}
    assert len(CASES) == 48


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.instruction))
def test_products_have_the_bits_of_the_gpu(case: Case) -> None:
    a, b, c = case.inputs()
    found = run_words(case.instruction, a, b, c, case.registers[0], metadata=case.metadata())
    quarters = np.split(found, range(WARPS // 4, WARPS, WARPS // 4))
    assert [digest(quarter) for quarter in quarters] == recorded()[case.instruction]


def one_sum(factors: list[tuple[float, float]], addend: float) -> float:
    """What bf16 factors and an f32 addend give in every element of D."""
    a, b = np.zeros((1, 16, 8)), np.zeros((1, 8, 8))
    for k, (left, right) in enumerate(factors):
        a[:, :, k], b[:, k] = left, right
    c = np.full((1, 16, 8), addend)
    types = "f32.bf16.bf16.f32"
    found = run_product(f"mma.sync.aligned.m16n8k8.row.col.{types}", "m16n8k8", types, a, b, c)
    assert len(np.unique(found)) == 1
    return float(found[0, 0, 0])


GREATEST = float(np.finfo(np.float32).max)


def test_a_sum_is_cut_to_the_greatest_float_below_the_first_that_is_infinite() -> None:
    half = 2.0**103  # of the greatest float's last place
    assert one_sum([(2.0**51, 2.0**52)], GREATEST) == GREATEST
    assert one_sum([(2.0**51, 2.0**52), (2.0**51, 1.5 * 2.0**51)], GREATEST) == GREATEST
    assert GREATEST + 2 * half == 2.0**128
    assert one_sum([(2.0**52, 2.0**52)], GREATEST) == np.inf
    assert one_sum([(-(2.0**52), 2.0**52)], -GREATEST) == -np.inf


def test_terms_are_cut_before_they_are_summed() -> None:
    assert one_sum([(1.0, 1.0), (2.0**-13, 2.0**-12)], 0.0) == 1.0
    small = [(2.0**-13, 2.0**-13)] * 7  # each just below what is kept beside 1
    assert one_sum([(1.0, 1.0), *small], 0.0) == 1.0
    kept = [(2.0**-13, 2.0**-12)] * 7
    assert one_sum([(1.0, 1.0), *kept], 0.0) == 1.0 + 2.0**-23
    assert one_sum([(-1.0, 1.0), *kept], 0.0) == -(1.0 - 8 * 2.0**-25)


def test_volta_products_of_f16_add_c_halfway() -> None:
    left = np.array([-0.9296875, -0.60009766, -0.24658203, -8.3671875], np.float16)
    right = np.array([20.8125, 0.33422852, -2.12695312, 0.1015625], np.float16)
    words = np.zeros((1, 32, 8), np.uint32)
    words[:, :, :2] = left.view(np.uint32)
    words[:, :, 2:4] = right.view(np.uint32)
    words[:, :, 4:] = np.full(2, -116.6875, np.float16).view(np.uint32)
    instruction = "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"
    found = run_words(instruction, words[:, :, :2], words[:, :, 2:4], words[:, :, 4:], 4)
    assert (found.view(np.float16) == -136.5).all()
