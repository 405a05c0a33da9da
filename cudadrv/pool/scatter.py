"""Independent work on all devices at once, shared by score, after gam's `scatter_batched`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, MutableSequence, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import border
from ..errors import ArgumentTypeError, ArgumentValueError, NoDeviceError
from .tile import ScatterError, TileError
from .workers import Job, run_all

if TYPE_CHECKING:
    from ..runtime.probe import GpuRuntime

_T = TypeVar("_T")
_R = TypeVar("_R")
_ScalarT = TypeVar("_ScalarT", bound=np.generic)


def balanced_partition(rt: GpuRuntime, n_units: int) -> tuple[tuple[int, range], ...]:
    """Divide `n_units` independent units between a runtime's devices (gam `balanced_partition`).

    Returns (ordinal, range) tiles, the device of the highest score first, that cover 0 to
    `n_units` without gap or overlap. A device's share is its score's part of the whole, rounded
    down; the units left over go one each to the largest fractions, then to the higher score. A
    device whose share is nothing has no tile. A score below zero, or NaN, counts as zero; where
    all are zero or their sum is not finite, all devices weigh alike.

    Raises:
        ValueError: `n_units` is negative.
    """
    from ..runtime.probe import GpuRuntime  # a scatter over an executor does without

    border.instance_of("balanced_partition: rt", rt, GpuRuntime)
    n_units = border.integer("balanced_partition: n_units", n_units)
    if n_units < 0:
        raise ArgumentValueError(f"{n_units} units cannot be shared: use 0 or more")
    # In this order max returns 0.0 for NaN.
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
    """Return how many of `n_units` each score of 0 or more gets: integers with that sum.

    A float is a fraction of two integers, so the shares are computed exactly for any number of
    units; each is within one of its ideal.
    """
    total = sum(scores)
    if not (math.isfinite(total) and total > 0):
        scores = [1.0] * len(scores)
    ratios = [score.as_integer_ratio() for score in scores]
    # Denominators are powers of two, so the largest is common to all.
    common = max((denominator for _, denominator in ratios), default=1)
    weights = [numerator * (common // denominator) for numerator, denominator in ratios]
    weight_sum = sum(weights)
    widths: list[int] = []
    fractions: list[int] = []
    for weight in weights:
        width, fraction = divmod(n_units * weight, weight_sum)
        widths.append(width)
        fractions.append(fraction)
    largest_first = sorted(range(len(weights)), key=fractions.__getitem__, reverse=True)
    for index in largest_first[: n_units - sum(widths)]:
        widths[index] += 1
    return widths


class TileExecutor(ABC):
    """Runs tiles outside of this process; `cudadrv.cluster` implements it."""

    # Arrays of any dtype and sequences of any type: the public functions tie items and `f`.
    @abstractmethod
    def change_items(self, items: Any, f: Callable[[int, Any], None]) -> None:
        """Implement `scatter_batched` for checked items."""

    @abstractmethod
    def map_items(self, items: Any, f: Callable[[int, Any], Any]) -> list[Any]:
        """Implement `scatter_map` for checked items."""


@overload
def scatter_batched(
    rt: GpuRuntime | TileExecutor,
    items: npt.NDArray[_ScalarT],
    f: Callable[[int, npt.NDArray[_ScalarT]], None],
) -> None: ...


@overload
def scatter_batched(
    rt: GpuRuntime | TileExecutor,
    items: MutableSequence[_T],
    f: Callable[[int, list[_T]], None],
) -> None: ...


# Arrays of any dtype and sequences of any type: the overloads tie items and function together.
def scatter_batched(
    rt: GpuRuntime | TileExecutor, items: Any, f: Callable[[int, Any], None]
) -> None:
    """Change items in place on all devices at once: ``f(ordinal, tile)``, one call a device.

    Items are shared by `balanced_partition`. Each call runs on a thread of its own, with its
    device's context current there, and may take its stream and arena from `current_tile`. Work on
    that stream is done when this returns. Every tile is awaited, even if others fail.

    Args:
        rt: the devices; or a `GpuExecutor`, whose workers take smaller tiles, in processes of
            their own; their changes are written back when their call has succeeded.
        items: a NumPy array, of which a tile is a view along the first axis; or a mutable
            sequence, of which a tile is a list, written back only if its call succeeds.
        f: changes its tile.

    Raises:
        ScatterError: calls failed, each in it with ordinal and range, while the other tiles'
            items are changed; or the runtime has no device.
        TypeError: the items are of neither kind.
    """
    _check("scatter_batched", rt, items, f)
    if not isinstance(items, np.ndarray | MutableSequence):
        raise ArgumentTypeError(
            f"items are a NumPy array or a mutable sequence, not {type(items).__name__}"
        )
    if isinstance(rt, TileExecutor):
        rt.change_items(items, f)
        return
    if isinstance(items, np.ndarray):
        _succeeded(_run(rt, items, f))
        return
    tiles = [
        (ordinal, part, list(items[part.start : part.stop]))
        for ordinal, part in _partition(rt, len(items))
    ]
    jobs = [Job(ordinal, part, partial(f, ordinal, tile)) for ordinal, part, tile in tiles]
    run_all(jobs)
    for job, (_, part, tile) in zip(jobs, tiles, strict=True):
        if job.error is None:
            try:
                write_back(items, part, tile)
            except Exception as error:
                job.error = error
    _succeeded(jobs)


@overload
def scatter_map(
    rt: GpuRuntime | TileExecutor,
    items: npt.NDArray[_ScalarT],
    f: Callable[[int, npt.NDArray[_ScalarT]], _R],
) -> list[_R]: ...


@overload
def scatter_map(
    rt: GpuRuntime | TileExecutor,
    items: Sequence[_T],
    f: Callable[[int, Sequence[_T]], _R],
) -> list[_R]: ...


# As `scatter_batched`.
def scatter_map(rt: GpuRuntime | TileExecutor, items: Any, f: Callable[[int, Any], _R]) -> list[_R]:
    """Return the results of ``f(ordinal, tile)`` for all tiles, in the order of the items.

    Runs as `scatter_batched` does. Join the results as they are: `numpy.concatenate` for arrays,
    `itertools.chain` for lists, `sum` for partial sums.

    Args:
        rt: the devices; or a `GpuExecutor`, whose workers take smaller tiles, in processes of
            their own.
        items: a NumPy array or a sequence; a tile is a slice of it.
        f: makes a result of a tile.

    Raises:
        ScatterError: calls failed, each in it with ordinal and range; or there is no device.
        TypeError: the items are of neither kind.
    """
    _check("scatter_map", rt, items, f)
    if not isinstance(items, np.ndarray | Sequence):
        raise ArgumentTypeError(
            f"items are a NumPy array or a sequence, not {type(items).__name__}"
        )
    if isinstance(rt, TileExecutor):
        return rt.map_items(items, f)
    jobs = _run(rt, items, f)
    _succeeded(jobs)
    return [job.result for job in jobs]


def _check(operation: str, rt: object, items: object, f: Callable[..., object]) -> None:
    if not isinstance(rt, TileExecutor):
        from ..runtime.probe import GpuRuntime  # an executor does without its files

        border.instance_of(f"{operation}: rt", rt, (GpuRuntime, TileExecutor))
    border.function(f"{operation}: f", f, takes=2)
    if isinstance(items, np.ndarray) and not items.ndim:
        raise border.wrong_type(f"{operation}: items", items, "give an array with an axis to share")
    if isinstance(items, Sequence):
        try:
            len(items)
        except OverflowError:  # such as of a range of more than Python counts by
            raise border.wrong_type(f"{operation}: items", items, "give fewer items") from None


def _run(rt: GpuRuntime, items: Any, f: Callable[[int, Any], _R]) -> list[Job[_R]]:
    """Run `f` over slices of the items."""
    jobs = [
        Job(ordinal, part, partial(f, ordinal, items[part.start : part.stop]))
        for ordinal, part in _partition(rt, len(items))
    ]
    run_all(jobs)
    return jobs


def _partition(rt: GpuRuntime, n_items: int) -> tuple[tuple[int, range], ...]:
    if not rt.devices:
        attempted = f"scattering {n_items} items"
        raise ScatterError(f"{attempted}: the runtime has no device", [NoDeviceError(attempted)])
    return balanced_partition(rt, n_items)


def write_back(items: MutableSequence[_T], part: range, tile: list[_T]) -> None:
    """Write a tile's items back.

    Raises:
        ValueError: the call changed their number.
    """
    if len(tile) != len(part):
        raise ValueError(f"the function made {len(tile)} items of a tile of {len(part)}")
    if isinstance(items, list):
        items[part.start : part.stop] = tile
        return
    for index, item in zip(part, tile, strict=True):
        items[index] = item


def _succeeded(jobs: Sequence[Job[_R]]) -> None:
    """Raise the errors of the jobs."""
    failures: list[TileError] = []
    results: dict[range, object] = {}
    for job in jobs:
        error = job.error
        if isinstance(error, Exception):
            failures.append(TileError([error], job.ordinal, job.range))
        elif error is not None:
            # An exit or interrupt is no failure of the work: it is raised as it is.
            raise error
        else:
            results[job.range] = job.result
    if failures:
        raise ScatterError(f"{len(failures)} of {len(jobs)} tiles failed", failures, results)
