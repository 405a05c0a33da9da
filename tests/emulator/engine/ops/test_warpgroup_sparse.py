"""`wgmma.mma_async.sp` in every form, against NumPy's products with zeros that are left away."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import EmulationFault
from ptx.emulate.model.order import LaunchOrder
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.matrix_lanes import Matrix
from tests.emulator.engine.ops.sparse_group import ANY_TWO, FORMS, Form, nibbles_for, prepared
from tests.rows import all_rows


def run(
    form: Form, nibbles: NDArray[np.int64], order: LaunchOrder | None = None
) -> tuple[Matrix, Matrix]:
    """What the emulator gives, and what NumPy does: (64, columns) each."""
    what = prepared(form, nibbles)
    runner = KernelRunner(what.text, 1 << 24)
    out = runner.put(np.zeros((128, form.registers), np.uint32))
    image, rows = runner.put(what.image), runner.put(what.rows)
    runner.launch("k", 1, 128, image, rows, out, *what.descriptors, order=order)
    return what.collected(runner.get(out, 128 * form.registers, np.uint32)), what.want


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_elements_stand_where_the_metadata_say(form: Form) -> None:
    found, want = run(form, nibbles_for(form, 7))
    assert np.array_equal(found, want)


@pytest.mark.slow
@pytest.mark.parametrize("form", [FORMS[0], FORMS[1], FORMS[-1]], ids=str)
@pytest.mark.parametrize("order", [LaunchOrder("late"), LaunchOrder("random", 3)], ids=str)
def test_a_product_that_lands_late_is_the_same(form: Form, order: LaunchOrder) -> None:
    found, want = run(form, nibbles_for(form, 7), order)
    assert np.array_equal(found, want)


def test_every_pair_of_indices_is_read() -> None:
    form = Form("f32.f16.f16")
    for nibble in ANY_TWO:
        found, want = run(form, np.full_like(nibbles_for(form, 0), nibble))
        assert np.array_equal(found, want), nibble


@pytest.mark.parametrize(
    ("types", "nibble"),
    [("f32.f16.f16", 0b0001), ("f32.f16.f16", 0b0101), ("f32.tf32.tf32", 0b1100)],
)
def test_metadata_that_mean_nothing_are_a_fault(types: str, nibble: int) -> None:
    form = Form(types)
    nibbles = nibbles_for(form, 1)
    nibbles[63, 5] = nibble
    with pytest.raises(EmulationFault, match=r"metadata of wgmma\.mma_async\.sp that do not name"):
        run(form, nibbles)


def test_rows_of_b_that_are_swizzled_by_half_their_length_are_rejected() -> None:
    form = Form("f32.f16.f16", b=32)
    with pytest.raises(EmulationFault, match="swizzle by 64 or 128 bytes"):
        run(form, nibbles_for(form, 1))
