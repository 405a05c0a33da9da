"""Launches that must give the values of an earlier one: repeated, moved, on other hardware.

An example runs alone in a new module, and its arrays begin where allocations do. A kernel that
keeps state between launches, or depends on addresses, multiprocessors or clocks, passes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ..strategies import DrawnArray
from .verdict import Example

_MOST_EXAMPLES: Final = 3
_REPEATS: Final = 4  # before the fifth launch with the same arguments
# Vectors of 16 bytes stay aligned.
_SHIFTS: Final = (16, 48, 112)
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


def variations(passed: Sequence[Example]) -> Iterator[tuple[Example, str]]:
    """Yield variations of examples that passed, each with the cause if it fails."""
    chosen = spread(passed)
    for number, example in enumerate(chosen):
        others = tuple(chosen[number + 1 :] + chosen[:number])
        for earlier in ((example,) * _REPEATS, others):
            if earlier:
                yield replace(example, earlier=earlier), STATE
        yield replace(example, shift=_SHIFTS[number]), PLACE
        yield replace(example, hardware_seed=_SEEDS[number]), HARDWARE


def smaller(example: Example) -> Iterator[Example]:
    """Yield an example with fewer earlier launches, the fewest first: the last ones stay."""
    for count in range(1, len(example.earlier)):
        yield replace(example, earlier=example.earlier[-count:])


def spread(passed: Sequence[Example]) -> list[Example]:
    """Return the smallest, the middle and the largest example that passed."""
    ordered = sorted(passed, key=_nbytes)
    last = len(ordered) - 1
    places = dict.fromkeys(round(last * k / (_MOST_EXAMPLES - 1)) for k in range(_MOST_EXAMPLES))
    return [ordered[place] for place in places] if ordered else []


def _nbytes(example: Example) -> int:
    arrays = (value for value in example.arguments.values() if isinstance(value, DrawnArray))
    return sum(array.contents.nbytes for array in arrays)
