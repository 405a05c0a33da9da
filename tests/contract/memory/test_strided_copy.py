"""How strided copies are planned: as few of the driver's copies as there can be, and each byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cudadrv.memory.layout import Layout, is_dense
from cudadrv.memory.strided_copy import CopyAxis, CopyBoxes, Plan, Side

SHAPE = (4, 6, 8)
WHOLE = np.empty(SHAPE, "f4")


def plan_of(to: np.ndarray[Any, Any], of: np.ndarray[Any, Any]) -> Plan:
    sides = (Side(each.ctypes.data, each.strides) for each in (to, of))
    return Plan.of_elements(to.shape, to.itemsize, *sides)


@pytest.mark.parametrize(
    ("key", "nbytes", "copies"),
    [
        (np.s_[:], 768, 1),
        (np.s_[1], 192, 1),
        (np.s_[:, 2], 32, 1),
        (np.s_[:, 1:3], 64, 1),
        (np.s_[1:3, 2:5, 1:4], 12, 1),
        (np.s_[::2, ::3, ::2], 4, 2),
        (np.s_[:, ::2], 32, 1),
        (np.s_[:, :, 1], 4, 1),
        (np.s_[:, 1:6:4, ::4], 4, 2),
    ],
)
def test_a_part_of_an_array_needs_few_copies(key: Any, nbytes: int, copies: int) -> None:
    part = WHOLE[key]
    plan = plan_of(np.empty(part.shape, "f4"), part)
    assert (plan.nbytes, plan.boxes().copies) == (nbytes, copies)


def test_what_is_transposed_needs_many_copies() -> None:
    plan = plan_of(np.empty((8, 6, 4), "f4"), WHOLE.T)
    assert (plan.nbytes, plan.runs, plan.boxes().copies) == (4, 192, 24)


def test_both_sides_turned_round_are_one_run() -> None:
    plan = plan_of(np.empty(SHAPE, "f4").T[::-1, :, ::-1], WHOLE.T[::-1, :, ::-1])
    assert (plan.nbytes, plan.axes) == (768, ())


def test_a_box_has_whole_rows_in_its_slices() -> None:
    outer, middle, row = CopyAxis(2, 120, 240), CopyAxis(3, 44, 40), CopyAxis(5, 8, 4)
    assert Plan(4, (outer, middle, row), 0, 0).boxes() == CopyBoxes(4, row, outer, (middle,))


def test_no_row_is_longer_than_the_driver_accepts() -> None:
    far = 2**31
    assert Plan(4, (CopyAxis(3, far, 4),), 0, 0).boxes().row is None
    assert Plan(4, (CopyAxis(3, far - 4, 4),), 0, 0).boxes().row == CopyAxis(3, far - 4, 4)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_plan_has_each_byte_once_at_its_place(data: st.DataObject) -> None:
    sides = []
    count = data.draw(st.integers(1, 3))
    shape = tuple(data.draw(st.integers(1, 4)) for _ in range(count))
    for _ in range(2):
        order = data.draw(st.permutations(range(count)))
        steps = [data.draw(st.sampled_from((1, 1, 2, -1, -3))) for _ in range(count)]
        base = np.arange(13**count, dtype="i4").reshape((13,) * count).transpose(order)
        picked = tuple(
            slice(0, n * step, step) if step > 0 else slice(12, 12 + n * step, step)
            for n, step in zip(shape, steps, strict=True)
        )
        sides.append(base[picked])
    to, of = sides
    plan = plan_of(to, of)
    boxes = plan.boxes()
    moved = {}
    for offset_to, offset_of in boxes.offsets():
        row, slice_ = (axis or CopyAxis(1, 0, 0) for axis in (boxes.row, boxes.slice))
        for z in range(slice_.extent):
            for y in range(row.extent):
                at_to = plan.target + offset_to + z * slice_.target + y * row.target
                at_of = plan.source + offset_of + z * slice_.source + y * row.source
                for x in range(0, boxes.nbytes, 4):
                    assert at_to + x not in moved
                    moved[at_to + x] = at_of + x
    assert moved == {_at(to, place): _at(of, place) for place in np.ndindex(shape)}


def _at(array: np.ndarray[Any, Any], place: tuple[int, ...]) -> int:
    steps = (n * stride for n, stride in zip(place, array.strides, strict=True))
    return array.ctypes.data + sum(steps)


def test_bounds_reach_from_the_lowest_element_to_past_the_highest() -> None:
    assert Layout(0, (3, 2), (-8, 24)).bounds(4) == (-16, 28)
    assert Layout(0, (), ()).bounds(4) == (0, 4)
    assert Layout(0, (2, 0), (8, 4)).bounds(4) == (0, 0)


def test_the_stride_of_a_single_element_does_not_matter() -> None:
    assert is_dense((1, 3, 1), (99, 4, -7), 4)
    assert not is_dense((2, 3), (16, 4), 4)
    assert is_dense((2, 0), (1, 1), 4)
