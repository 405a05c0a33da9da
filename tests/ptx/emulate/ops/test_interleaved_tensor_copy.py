"""Interleaved tensors: which dimension takes one slice, and what is not copied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ptx.emulate.model.errors import InvalidTensorMap, NegativeCoordinate
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.model.tensor_map import PixelBox, decoded
from tests.ptx.emulate.ops.tensor_device import STORE, Device, arrive, load, loading, noise

SHAPE = (3, 5, 4, 6, 8)  # (N, C/8, H, W, 8)
PIXELS = PixelBox((0, 0), (0, 0), 8, 10)


def sliced(body: str, box: tuple[int, ...], pixels: PixelBox | None = None) -> Device:
    """A device whose map leaves the channels of a slice to the mode; the box is (N, C/8, H, W)."""
    device = Device(body, noise(SHAPE, "f2"), (), pixels=pixels)
    found = device.layout
    device.layout = replace(
        found, extents=found.extents[1:], strides=found.strides[1:], box=box[::-1],
        steps=found.steps[1:], interleave=1,
    )  # fmt: skip
    return device


@pytest.mark.parametrize("order", [None, LaunchOrder("late")])
@pytest.mark.parametrize("slices", [1, 2, 5, 200])
def test_one_slice_comes_whatever_the_box_says(slices: int, order: LaunchOrder | None) -> None:
    device = sliced(loading((2, 1, 3, 1), 2 * 2 * 8 * 16), (2, slices, 2, 8))
    found = device.launched(512, order=order).view("f2").reshape(2, 2, 8, 8)
    expected = np.zeros((2, 2, 8, 8), "f2")
    expected[:, :, :4] = device.x[1:, 3, 1:3, 2:]
    assert np.array_equal(found, expected)


def test_a_map_of_slices_is_what_its_bytes_say() -> None:
    layout = sliced("", (2, 7, 2, 8)).layout
    assert decoded(layout.encode()) == layout


def images(w: int, h: int, offset: int) -> str:
    line = load((w, h, 0, 0), words="im2col", tail=", {%rs3, %rs4}")
    return f"mov.u16 %rs3, 0; mov.u16 %rs4, {offset}; {line}"


REDUCE = "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group"
NO_OFFSETS = STORE.replace("2d", "4d").replace("tile", "im2col_no_offs")


@pytest.mark.parametrize(("body", "pixels", "words"), [
    (f"{REDUCE} [%rd1, {{0, 0, 0, 0}}], [%r5];", None, "writes tiles, but neither sums"),
    (f"{NO_OFFSETS} [%rd1, {{0, 0, 0, 0}}], [%r5];", PIXELS, "writes tiles, but neither sums"),
    (images(0, 0, 1), PIXELS, "without offsets"),
    (images(3, 2, 0), PIXELS, "one image to the next"),
])  # fmt: skip
def test_what_was_not_seen_on_a_gpu_is_refused(
    body: str, pixels: PixelBox | None, words: str
) -> None:
    device = sliced(f"{arrive(160)} {body}", () if pixels else (1, 1, 1, 8), pixels)
    with pytest.raises(InvalidTensorMap, match=words):
        device.launched(16)


@pytest.mark.parametrize("start", ["-1, 0, 0, 0", "0, 0, -1, 0"])
def test_slices_are_not_written_from_before_the_tensor(start: str) -> None:
    device = sliced(f"{STORE.replace('2d', '4d')} [%rd1, {{{start}}}], [%r5];", (1, 1, 1, 8))
    with pytest.raises(NegativeCoordinate, match=rf"written from \({start}\) on"):
        device.launched(16)
