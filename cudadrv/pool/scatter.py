"""Independent work over all devices at once, after gam's `scatter_batched`."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from .. import border
from ..errors import ArgumentTypeError, NoDeviceError
from .failures import ScatterError, TileError
from .job import Job, run_all
from .partition import balanced_partition
from .tile_executor import TileExecutor

if TYPE_CHECKING:
    from ..runtime.probe import GpuRuntime

_T = TypeVar("_T")
_R = TypeVar("_R")
_ScalarT = TypeVar("_ScalarT", bound=np.generic)


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
    that stream is done when this returns. Every tile is awaited, whatever becomes of the others.

    Args:
        rt: the devices; or a `GpuExecutor`, whose workers take smaller tiles, in processes of
            their own, and what they change is put in its place when their call has succeeded.
        items: a NumPy array, of which a tile is a view along the first axis; or a mutable
            sequence, of which a tile is a list, written back only if its call succeeds.
        f: changes the tile it is given.

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
    """What ``f(ordinal, tile)`` returns for each tile, in the order of the items.

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


def _check(what: str, rt: object, items: object, f: Callable[..., object]) -> None:
    if not isinstance(rt, TileExecutor):
        from ..runtime.probe import GpuRuntime  # an executor does without its ten files

        border.instance(f"{what}: rt", rt, (GpuRuntime, TileExecutor))
    border.function(f"{what}: f", f, takes=2)
    if isinstance(items, np.ndarray) and not items.ndim:
        raise border.refused(f"{what}: items", items, "give an array with an axis to share")
    if isinstance(items, Sequence):
        try:
            len(items)
        except OverflowError:  # such as of a range of more than Python counts by
            raise border.refused(f"{what}: items", items, "give fewer items") from None


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
        what = f"scattering {n_items} items"
        raise ScatterError(f"{what}: the runtime has no device", [NoDeviceError(what)])
    return balanced_partition(rt, n_items)


def write_back(items: MutableSequence[_T], part: range, tile: list[_T]) -> None:
    """Put a tile's items in their places.

    Raises:
        ValueError: the call changed how many there are.
    """
    if len(tile) != len(part):
        raise ValueError(f"the function made {len(tile)} items of a tile of {len(part)}")
    if isinstance(items, list):
        items[part.start : part.stop] = tile
        return
    for index, item in zip(part, tile, strict=True):
        items[index] = item


def _succeeded(jobs: Sequence[Job[_R]]) -> None:
    """Raise what the jobs raised."""
    failures: list[TileError] = []
    results: dict[range, object] = {}
    for job in jobs:
        error = job.error
        if isinstance(error, Exception):
            failures.append(TileError([error], job.ordinal, job.range))
        elif error is not None:
            # An exit or interrupt is no failure of the work: it goes on as it is.
            raise error
        else:
            results[job.range] = job.result
    if failures:
        raise ScatterError(f"{len(failures)} of {len(jobs)} tiles failed", failures, results)
