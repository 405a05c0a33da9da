"""How work is shared between devices: by score, exactly, in whole units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import border
from ..errors import ArgumentValueError

if TYPE_CHECKING:
    from ..runtime.probe import GpuRuntime


def balanced_partition(rt: GpuRuntime, n_units: int) -> tuple[tuple[int, range], ...]:
    """Share `n_units` independent units between a runtime's devices (gam `balanced_partition`).

    Returns (ordinal, range) tiles, the device of the highest score first, that cover 0 to
    `n_units` without gap or overlap. A device's share is its score's part of the whole, rounded
    down; the units left over go one each to the largest fractions, then to the higher score. A
    device whose share is nothing has no tile. A score below zero, or NaN, counts as zero; where
    all are zero or their sum is not finite, all devices weigh alike.

    Raises:
        ValueError: `n_units` is negative.
    """
    from ..runtime.probe import GpuRuntime  # a scatter over an executor does without

    border.instance("balanced_partition: rt", rt, GpuRuntime)
    n_units = border.integer("balanced_partition: n_units", n_units)
    if n_units < 0:
        raise ArgumentValueError(f"{n_units} units cannot be shared: use 0 or more")
    # In this order max answers 0.0 for NaN.
    scores = [max(0.0, device.score()) for device in rt.devices]
    by_score = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    widths = shares([scores[index] for index in by_score], n_units)
    tiles: list[tuple[int, range]] = []
    start = 0
    for index, width in zip(by_score, widths, strict=True):
        if width:
            tiles.append((rt.devices[index].ordinal, range(start, start + width)))
            start += width
    return tuple(tiles)


def shares(scores: Sequence[float], n_units: int) -> list[int]:
    """How many of `n_units` each of some scores of 0 or more gets: whole numbers of that sum.

    A float is a fraction of two integers, so the shares are reckoned exactly for any number of
    units; each is within one of its ideal.
    """
    total = sum(scores)
    if not (math.isfinite(total) and total > 0):
        scores = [1.0] * len(scores)
    ratios = [score.as_integer_ratio() for score in scores]
    # Denominators are powers of two, so the largest is common to all.
    common = max((denominator for _, denominator in ratios), default=1)
    weights = [numerator * (common // denominator) for numerator, denominator in ratios]
    whole = sum(weights)
    widths: list[int] = []
    fractions: list[int] = []
    for weight in weights:
        width, fraction = divmod(n_units * weight, whole)
        widths.append(width)
        fractions.append(fraction)
    largest_first = sorted(range(len(weights)), key=fractions.__getitem__, reverse=True)
    for index in largest_first[: n_units - sum(widths)]:
        widths[index] += 1
    return widths
