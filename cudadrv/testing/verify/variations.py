"""Launches that must give the values of an earlier one: repeated, moved, on other hardware.

An example runs alone in a new module, and its arrays begin where allocations do. A kernel that
keeps state between launches, or depends on addresses, multiprocessors or clocks, passes there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...emulator.timeline.schedule import Schedule
from ...launch.config import LaunchConfig
from ..strategies import ArrayInput, DrawnArray
from .contents import neighbours
from .example_run import CompiledCase
from .verdict import CannotVerifyError, Example

MOST_EXAMPLES: Final = 3
_REPEATS: Final = 4  # before the fifth launch with the same arguments
_MANY_REPEATS: Final = 40
_IRREGULAR_REPEATS: Final = 400  # such as of a generator of random numbers
_COUNTED: Final = 3  # launches that show what a counter counts
# Those below 256 also for counters of a byte.
_STEPS: Final = (60, 100, 150, 200, 250, 1_000, 10_000, 1_000_000, 1_000_000_000)
_FINE_STEPS: Final = tuple(round(60 * 1.4**power) for power in range(50))
_MOST_CONSTANTS: Final = 7
# Vectors of 16 bytes stay aligned.
_SHIFTS: Final = (16, 48, 112)
_ALIGNED: Final = 16
_MOST_ACROSS: Final = 32  # arrays, of 4 GiB of addresses each
_WARP: Final = 32
_SEEDS: Final = (1, 1_000_003, 65_537)  # odd, as a clock's lowest bit is one

STATE: Final = (
    "the first launch of a module gives the right values: the kernel keeps something between "
    "launches, such as a __device__ variable"
)
PLACE: Final = (
    "the values are right where each array begins at a multiple of 256 bytes: the kernel depends "
    "on addresses"
)
HARDWARE: Final = (
    "the values are right on other multiprocessors, or at another time: the kernel reads %smid or "
    "a clock"
)


def repeated(
    example: Example, others: Sequence[Example], compiled: CompiledCase
) -> Iterator[Example]:
    """Yield an example after other launches of its module."""
    for earlier in ((example,) * _REPEATS, tuple(others)):
        if earlier:
            yield replace(example, earlier=earlier)
    left = _scratch(compiled, example)
    for near in neighbours(compiled.case, example):
        both = replace(example, earlier=(near,), in_place=True)
        yield both
        if left:
            yield replace(both, left=left)


def _scratch(compiled: CompiledCase, example: Example) -> tuple[str, ...]:
    """Return the arrays that the reference leaves open and does not name: any contents will do.

    Those of integers, or of a range of values, may need what the case draws.
    """
    case = compiled.case
    try:
        known = {*case.expected(example), *case.reference_arguments}
    except CannotVerifyError:
        return ()
    return tuple(
        name
        for name, each in case.arguments.items()
        if isinstance(each, ArrayInput)
        and each.is_written
        and name not in known
        and each.dtype.kind == "f"
        and isinstance(each.values, str)
    )


def counted(
    example: Example, compiled: CompiledCase, constants: Sequence[int], is_first: bool
) -> Iterator[Example]:
    """Yield an example after many launches, if each launch changes a variable of its module.

    Counters are advanced, also to the constants that the kernel compares with. The first example
    has finer steps, and more launches if they change a variable that is no counter.
    """
    kept = compiled.kept_after((example,) * _COUNTED)
    if not kept.changes:
        return
    is_long = is_first and kept.is_irregular
    repeats = _IRREGULAR_REPEATS if is_long else _MANY_REPEATS
    yield replace(example, earlier=(example,) * repeats)
    skips = dict.fromkeys(
        (constant + near - value) // step
        for value, step in kept.counters()[:2]
        for constant in constants
        for near in (-step, 0, step)
        if (constant - value) % step == 0
    )
    chosen = [skip for skip in skips if 0 < skip < 1 << 31][:_MOST_CONSTANTS]
    for skipped in (*_STEPS, *chosen, *(_FINE_STEPS if is_first else ())):
        yield replace(example, earlier=(example,) * _COUNTED, skipped=skipped)


def fewest_blocks(example: Example) -> LaunchConfig:
    """Return the launch of an example with the fewest blocks, among those of its sizes."""
    return min((example.config, *example.alternatives), key=lambda config: config.blocks)


def spread_configs(example: Example) -> list[LaunchConfig]:
    """Return a few launches of an example, from the one with the smallest blocks on."""
    step = max(1, len(example.alternatives) // MOST_EXAMPLES)
    return list(example.alternatives[::step])


def several_warps(example: Example) -> list[LaunchConfig]:
    """Return a few launches of an example whose blocks have several warps; its own if none has."""
    configs = [each for each in example.alternatives if each.threads > _WARP]
    step = max(1, len(configs) // MOST_EXAMPLES)
    return configs[::step][:MOST_EXAMPLES] or [example.config]


def moved(example: Example, number: int) -> Example:
    """Return an example whose arrays begin elsewhere, between guard zones."""
    return replace(example, shift=_SHIFTS[number])


def across(example: Example) -> Example | None:
    """Return an example whose arrays lie across 4 GiB; None if these need too many addresses."""
    count = sum(isinstance(value, DrawnArray) for value in example.arguments.values())
    return replace(example, is_across=True) if 0 < count <= _MOST_ACROSS else None


def barely_aligned(example: Example) -> Example | None:
    """Return an example whose arrays are aligned to one element alone; None if they always are."""
    sizes = [
        value.contents.itemsize
        for value in example.arguments.values()
        if isinstance(value, DrawnArray)
    ]
    shift = math.lcm(*sizes) if sizes else _ALIGNED
    return replace(example, shift=shift) if shift < _ALIGNED else None


def elsewhere(example: Example, number: int, more: int = 0) -> Iterator[Example]:
    """Yield an example on other hardware, and in another order: its bits must be the same.

    `more` further ones are on hardware at random.
    """
    # The values of a small example may not show what a clock changes.
    further = random.Random(number)
    for seed in (*_SEEDS, *(further.randrange(1, 1 << 31) for _ in range(more))):
        yield replace(example, hardware_seed=seed)
    yield replace(example, schedule=Schedule("random", _SEEDS[number]))


def smaller(example: Example) -> Iterator[Example]:
    """Yield an example with fewer earlier launches, the fewest first: the last ones stay."""
    if not example.skipped:
        for count in range(1, len(example.earlier)):
            yield replace(example, earlier=example.earlier[-count:])


def spread(passed: Sequence[Example]) -> list[Example]:
    """Return the smallest, the middle and the largest example that passed."""
    ordered = sorted(passed, key=nbytes_of)
    last = len(ordered) - 1
    places = dict.fromkeys(round(last * k / (MOST_EXAMPLES - 1)) for k in range(MOST_EXAMPLES))
    return [ordered[place] for place in places] if ordered else []


def nbytes_of(example: Example) -> int:
    """Return the bytes of the arrays of an example."""
    arrays = (value for value in example.arguments.values() if isinstance(value, DrawnArray))
    return sum(array.contents.nbytes for array in arrays)
