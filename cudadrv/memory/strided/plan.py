"""How strided elements are copied: by boxes, which the driver copies, and the places of these."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

# CU_DEVICE_ATTRIBUTE_MAX_PITCH of every device so far.
_MOST_PITCH: Final = 2**31 - 1


class Axis(NamedTuple):
    """An axis of a copy.

    Attributes:
        extent: how many steps there are.
        to: bytes of a step at the destination, above 0.
        of: bytes of a step at the source.
    """

    extent: int
    to: int
    of: int


class Side(NamedTuple):
    """Where the elements of one side of a copy lie."""

    address: int
    strides: tuple[int, ...]


Offsets: TypeAlias = tuple[int, int]
"""Bytes from the first element of the destination, and from that of the source."""


class Plan(NamedTuple):
    """What is copied: runs of bytes along some axes.

    Attributes:
        nbytes: of a run, which lies together on both sides.
        axes: the axes of the runs, the nearest last.
        to: the address of the lowest run at the destination.
        of: the address of the same one at the source.
    """

    nbytes: int
    axes: tuple[Axis, ...]
    to: int
    of: int

    @classmethod
    def of_elements(cls, shape: Sequence[int], itemsize: int, to: Side, of: Side) -> Plan:
        """The plan of a copy of elements, of which there are some.

        The destination's elements do not overlap.
        """
        start_to, start_of = to.address, of.address
        axes = []
        for extent, step_to, step_of in zip(shape, to.strides, of.strides, strict=True):
            if extent == 1:
                continue
            if step_to < 0:  # the other way round, as no copy goes backwards
                start_to += step_to * (extent - 1)
                start_of += step_of * (extent - 1)
                step_to, step_of = -step_to, -step_of
            axes.append(Axis(extent, step_to, step_of))
        axes.sort(key=lambda axis: -axis.to)
        nbytes = itemsize
        while axes and axes[-1].to == axes[-1].of == nbytes:
            nbytes *= axes.pop().extent
        return cls(nbytes, _joined(axes), start_to, start_of)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return math.prod(axis.extent for axis in self.axes)

    def boxes(self) -> Boxes:
        """The fewest boxes that the runs make up."""
        best: tuple[Axis | None, Axis | None] = None, None
        most = 1
        for row in (axis for axis in self.axes if _is_pitch(axis, self.nbytes)):
            if row.extent > most:
                best, most = (row, None), row.extent
            for slice_ in self.axes:
                runs = row.extent * slice_.extent
                if runs > most and slice_ is not row and _is_slice(slice_, row):
                    best, most = (row, slice_), runs
        others = tuple(axis for axis in self.axes if axis is not best[0] and axis is not best[1])
        return Boxes(self.nbytes, *best, others)


class Boxes(NamedTuple):
    """Boxes of one size, each of rows and slices of runs, as cuMemcpy3DAsync copies.

    Attributes:
        nbytes: of a run.
        row: the axis of rows; None for a single one.
        slice: the axis of slices; None for a single one.
        others: the axes of the boxes.
    """

    nbytes: int
    row: Axis | None
    slice: Axis | None
    others: tuple[Axis, ...]

    @property
    def copies(self) -> int:
        """How many copies they are."""
        return math.prod(axis.extent for axis in self.others)

    def offsets(self) -> Iterator[Offsets]:
        """The places of the boxes."""
        return offsets_along(self.others)


def offsets_along(axes: Sequence[Axis]) -> Iterator[Offsets]:
    """The places that axes lead to."""
    for steps in itertools.product(*(range(axis.extent) for axis in axes)):
        yield (
            sum(step * axis.to for step, axis in zip(steps, axes, strict=True)),
            sum(step * axis.of for step, axis in zip(steps, axes, strict=True)),
        )


def _joined(axes: list[Axis]) -> tuple[Axis, ...]:
    """The axes with those in one that follow each other on both sides."""
    joined: list[Axis] = []
    for axis in axes:
        extent, to, of = axis
        if joined and joined[-1].to == extent * to and joined[-1].of == extent * of:
            axis = Axis(joined.pop().extent * extent, to, of)
        joined.append(axis)
    return tuple(joined)


def _is_pitch(axis: Axis, nbytes: int) -> bool:
    """Whether runs along an axis are rows: each begins behind the one before."""
    return nbytes <= axis.to <= _MOST_PITCH and nbytes <= axis.of <= _MOST_PITCH


def _is_slice(axis: Axis, row: Axis) -> bool:
    """Whether an axis has a whole number of rows to a step, and no fewer than there are."""
    return all(
        step % pitch == 0 and step // pitch >= row.extent
        for step, pitch in ((axis.to, row.to), (axis.of, row.of))
    )
