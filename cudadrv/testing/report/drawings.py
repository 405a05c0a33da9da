"""The geometry of a report's drawings: operations of streams, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .case_report import StreamOperation
from .launch_bounds import Roofline

MOST_OPERATIONS: Final = 200
_LEFT, _STEP, _ROW, _BOX, _TOP = 84, 104, 60, 42, 16
_LETTERS: Final = 12  # that fit into a step
_SHORT: Final = {
    "memory allocation": "allocation",
    "memory free": "free",
    "graph launch": "graph",
    "host function": "host call",
}
_WIDTH, _HEIGHT, _MARGIN_X, _MARGIN_Y = 640, 320, 84, 44
_PREFIXES: Final = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}


def si(value: float, unit: str) -> str:
    """Return a number of three digits with a prefix of the SI."""
    if not value:
        return f"0 {unit}"
    exponent = min(max(3 * math.floor(math.log10(abs(value)) / 3), -12), 12)
    return f"{value / 10.0**exponent:.3g} {_PREFIXES[exponent]}{unit}"


@dataclass(frozen=True, slots=True)
class Segment:
    """A line between two points."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True)
class OperationBox:
    """The box of an operation, and its text."""

    operation: StreamOperation
    x: int
    y: int
    width: int
    text: str


@dataclass(frozen=True, slots=True)
class StreamDrawing:
    """The operations of streams as boxes: a row for each stream, a column for each step.

    Attributes:
        streams: the number and the middle of the row of each.
        boxes: the operations that ran.
        waits: from the end of an operation to one of another stream that came after it.
        left_out: how many ran after the last that is drawn.
    """

    width: int
    height: int
    box_height: int
    streams: tuple[tuple[int, int], ...]
    boxes: tuple[OperationBox, ...]
    waits: tuple[Segment, ...]
    left_out: int

    @classmethod
    def of(cls, operations: Sequence[StreamOperation]) -> StreamDrawing:
        """Return the drawing of operations."""
        ran = [operation for operation in operations if operation.begins is not None]
        ran.sort(key=lambda operation: operation.begins or 0)
        drawn = ran[:MOST_OPERATIONS]
        rows = {
            stream: _TOP + _ROW * row
            for row, stream in enumerate(sorted({operation.stream for operation in drawn}))
        }
        boxes = [_box(operation, rows[operation.stream]) for operation in drawn]
        by_number = {box.operation.number: box for box in boxes}
        waits = [
            Segment(before.x + before.width, before.y + _BOX // 2, box.x, box.y + _BOX // 2)
            for box in boxes
            for number in box.operation.waits_for
            if (before := by_number.get(number)) is not None
        ]
        return cls(
            max((box.x + box.width for box in boxes), default=_LEFT) + 16,
            _TOP + _ROW * len(rows),
            _BOX,
            tuple((stream, y + _BOX // 2) for stream, y in rows.items()),
            tuple(boxes),
            tuple(waits),
            len(ran) - len(drawn),
        )


def _box(operation: StreamOperation, y: int) -> OperationBox:
    begins = operation.begins or 0
    ends = operation.ends or begins + 1
    width = _STEP * (ends - begins) - 12
    text, letters = _SHORT.get(operation.name, operation.name), _LETTERS * (ends - begins)
    shown = text if len(text) <= letters else f"{text[: letters - 1]}…"
    return OperationBox(operation, _LEFT + _STEP * begins, y, width, shown)


@dataclass(frozen=True, slots=True)
class Tick:
    """A power of ten on an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class RooflineDrawing:
    """A roofline in logarithmic axes, with the launch's point.

    Attributes:
        left, right, top, bottom: the edges of the axes.
        x_ticks, y_ticks: in operations per byte, and per second.
        slope, roof: the bound by memory, and by arithmetic.
        x, y: the launch's point.
    """

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    slope: Segment
    roof: Segment
    x: float
    y: float

    @classmethod
    def of(cls, roofline: Roofline) -> RooflineDrawing:
        """Return the drawing of a roofline."""
        left, right, top, bottom = _MARGIN_X, _WIDTH - 24, 24, _HEIGHT - _MARGIN_Y
        low = math.floor(math.log10(min(roofline.intensity, roofline.ridge))) - 0.5
        high = math.ceil(math.log10(max(roofline.intensity, roofline.ridge))) + 0.5
        roof = math.log10(roofline.peak)
        floor, ceiling = low + math.log10(roofline.bandwidth), roof + 0.5

        def x_of(power: float) -> float:
            return round(left + (right - left) * (power - low) / (high - low), 1)

        def y_of(power: float) -> float:
            return round(bottom - (bottom - top) * (power - floor) / (ceiling - floor), 1)

        ridge = math.log10(roofline.ridge)
        return cls(
            _WIDTH,
            _HEIGHT,
            left,
            right,
            top,
            bottom,
            tuple(
                Tick(x_of(power), f"{10.0**power:g}")
                for power in range(math.ceil(low), math.floor(high) + 1)
            ),
            tuple(
                Tick(y_of(power), si(10.0**power, "op/s"))
                for power in range(math.ceil(floor), math.floor(ceiling) + 1)
            ),
            Segment(x_of(low), y_of(floor), x_of(ridge), y_of(roof)),
            Segment(x_of(ridge), y_of(roof), x_of(high), y_of(roof)),
            x_of(math.log10(roofline.intensity)),
            y_of(math.log10(roofline.attainable)),
        )
