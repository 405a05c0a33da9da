"""Where the elements of a tensor's boxes lie, in global memory and in shared memory.

PTX ISA, "Tensors": "Bounding Box", "Traversal Stride", "Out of Boundary Access", "Im2col Mode",
"Swizzling Modes". CUDA Programming Guide, "Tensor Memory Access".
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.tensor_map import SWIZZLE_ATOMS, SWIZZLE_SPANS, BadTensorMap, TensorLayout

Words = NDArray[np.int64]
Bools = NDArray[np.bool_]
PIECE: Final = 16
"""Bytes that stay together in every swizzle; boxes begin at a multiple of them."""


class Boxes(NamedTuple):
    """The pieces of some boxes of one tensor, in the order in which they lie in shared memory.

    Attributes:
        unit: bytes of a piece: whole elements, and no piece is partly out of bounds.
        outside: (boxes, pieces) addresses in global memory; of no use out of bounds.
        inside: (pieces,) offsets in shared memory, before they are swizzled.
        is_within: (boxes, pieces) whether a piece is within the tensor.
    """

    unit: int
    outside: Words
    inside: Words
    is_within: Bools


def boxes_at(layout: TensorLayout, coordinates: Words, offsets: Words, unit: int = 0) -> Boxes:
    """The boxes at some coordinates.

    Args:
        layout: the tensor.
        coordinates: (boxes, rank), innermost first, which is a multiple of `PIECE` bytes.
        offsets: (boxes, at least rank - 2) of `im2col`; of no use for tiles.
        unit: the bytes of a piece; 0: as many as can be.

    Raises:
        BadTensorMap: `im2col` begins before the first position of its filter or behind the last.
    """
    nbytes = layout.type.nbytes
    first = coordinates[:, 0] * nbytes
    row = layout.counts[0] * nbytes
    if not unit:
        unit = math.gcd(PIECE, layout.extents[0] * nbytes)
    along_row = first[:, None] + np.arange(0, row, unit)
    in_row = (along_row >= 0) & (along_row < layout.extents[0] * nbytes)
    if layout.pixels is None:
        rows, is_row = _tile_rows(layout, coordinates)
    else:
        rows, is_row = _pixel_rows(layout, coordinates, offsets)
    boxes = len(coordinates)
    outside = layout.address + rows[:, :, None] + along_row[:, None, :]
    is_within = is_row[:, :, None] & in_row[:, None, :]
    starts = np.arange(rows.shape[1], dtype=np.int64) * layout.pitch
    inside = (starts[:, None] + np.arange(0, row, unit)).reshape(-1)
    return Boxes(unit, outside.reshape(boxes, -1), inside, is_within.reshape(boxes, -1))


def _tile_rows(layout: TensorLayout, coordinates: Words) -> tuple[Words, Bools]:
    """(boxes, rows) the offset of each row of the boxes, and whether it is within the tensor."""
    boxes = len(coordinates)
    rows, is_row = np.zeros((boxes, 1), np.int64), np.ones((boxes, 1), np.bool_)
    counts, steps = layout.counts, layout.steps
    for dimension in range(1, layout.rank):
        index = coordinates[:, dimension, None] + np.arange(counts[dimension]) * steps[dimension]
        is_in = (index >= 0) & (index < layout.extents[dimension])
        there = index * layout.strides[dimension - 1]
        rows = (there[:, :, None] + rows[:, None, :]).reshape(boxes, -1)
        is_row = (is_in[:, :, None] & is_row[:, None, :]).reshape(boxes, -1)
    return rows, is_row


def _pixel_rows(layout: TensorLayout, coordinates: Words, offsets: Words) -> tuple[Words, Bools]:
    """The same of `im2col`: pixels at positions of the filter, one behind the other.

    A position runs to the last one that the upper corner allows, by the element stride; then the
    next dimension goes on, and after all of them the next image. In the first run it begins where
    the coordinate says, and else at the lower corner: measured on an H200.
    """
    pixels = layout.pixels
    assert pixels is not None
    number = np.broadcast_to(np.arange(pixels.pixels), (len(coordinates), pixels.pixels))
    is_row = np.ones(number.shape, np.bool_)
    rows = np.zeros(number.shape, np.int64)
    for d, (lower, upper) in enumerate(zip(pixels.lower, pixels.upper, strict=True), 1):
        step = layout.steps[d]
        start, last = coordinates[:, d, None], layout.extents[d] - 1 + upper
        if (start < lower).any() or (start > last).any():
            raise BadTensorMap(
                f"is read by im2col from {coordinates[:, d].tolist()} in dimension {d}, which is "
                f"no position of a filter between {lower} and {last}"
            )
        count = (last - lower) // step + 1
        later = number - ((last - start) // step + 1)
        is_first = later < 0
        index = np.where(is_first, start + number * step, lower + later % count * step)
        index = index + offsets[:, d - 1, None]
        number = np.where(is_first, 0, later // count + 1)
        is_row &= (index >= 0) & (index < layout.extents[d])
        rows += index * layout.strides[d - 1]
    if layout.interleave:
        slices = coordinates[:, -2, None]
        is_row &= (slices >= 0) & (slices < layout.extents[-2])
        rows += slices * layout.strides[-2]
    images = coordinates[:, -1, None] + number
    is_row &= (images >= 0) & (images < layout.extents[-1])
    return rows + images * layout.strides[-1], is_row


def swizzled(addresses: Words, layout: TensorLayout) -> Words:
    """The places in shared memory where a tensor's swizzle puts pieces of at most 16 bytes.

    Of each address the bits that number an atom within the span are changed by those of the row of
    128 bytes that it lies in.
    """
    span, atom = SWIZZLE_SPANS[layout.swizzle], SWIZZLE_ATOMS[layout.atomicity]
    if not span:
        return addresses
    return addresses ^ (addresses >> 7 & span // atom - 1) * atom
