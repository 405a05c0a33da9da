"""Interleaved tensors: which dimension takes one slice, and what is not written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ptx.emulate.model.errors import NegativeCoordinate
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.model.tensor_map import PixelBox, TensorLayout
from tests.emulator.engine.ops.tensor_device import STORE, Device, loading, noise

SHAPE = (3, 5, 4, 6, 8)  # (N, C/8, H, W, 8)


def sliced(body: str, box: tuple[int, ...], pixels: PixelBox | None = None) -> Device:
    """A device whose map leaves the channels of a slice to the mode; the box is (N, C/8, H, W)."""
    device = Device(body, noise(SHAPE, "f2"), (), pixels=pixels)
    found = device.layout
    device.layout = replace(
        found,
        extents=found.extents[1:],
        strides=found.strides[1:],
        box=box[::-1],
        steps=found.steps[1:],
        interleave=1,
    )
    return device


@pytest.mark.parametrize("order", [None, LaunchOrder("late")])
@pytest.mark.parametrize("slices", [1, 2, 5, 200])
def test_one_slice_comes_whatever_the_box_specifies(slices: int, order: LaunchOrder | None) -> None:
    device = sliced(loading((2, 1, 3, 1), 2 * 2 * 8 * 16), (2, slices, 2, 8))
    found = device.launched(512, order=order).view("f2").reshape(2, 2, 8, 8)
    expected = np.zeros((2, 2, 8, 8), "f2")
    expected[:, :, :4] = device.x[1:, 3, 1:3, 2:]
    assert np.array_equal(found, expected)


def test_a_map_of_slices_is_what_its_bytes_say() -> None:
    layout = sliced("", (2, 7, 2, 8)).layout
    assert TensorLayout.decode(layout.encode()) == layout


FOUR = STORE.replace("2d", "4d")
SUM = FOUR.replace("cp.async", "cp.reduce.async").replace("tile", "add.tile")


@pytest.mark.parametrize("instruction", [FOUR, SUM])
@pytest.mark.parametrize("start", ["-1, 0, 0, 0", "0, 0, -1, 0"])
def test_slices_are_not_written_from_before_the_tensor(instruction: str, start: str) -> None:
    device = sliced(f"{instruction} [%rd1, {{{start}}}], [%r5];", (1, 1, 1, 8))
    with pytest.raises(NegativeCoordinate, match=rf"written from \({start}\) on"):
        device.launched(16)


def test_images_of_slices_are_not_written_with_a_border() -> None:
    body = f"{FOUR.replace('tile', 'im2col_no_offs')} [%rd1, {{0, 0, 1, 0}}], [%r5];"
    device = sliced(body, (), PixelBox((0, -1), (0, -1), 8, 10))
    with pytest.raises(NegativeCoordinate, match=r"written from \(0, 0, 1, 0\) on"):
        device.launched(16)
