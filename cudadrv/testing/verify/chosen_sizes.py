"""Which sizes to try: those that a kernel may have left out, alone and together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..strategies import Size

_EVERY_SIZE: Final = 400  # sizes that are all tried
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 31, 61, 127, 251, 509, 1021)
_DECIMAL: Final = (1, 2, 3, 5, 6)  # times powers of ten, as people write sizes
FROM: Final = 2  # a comparison with 0 or 1 is common
_MOST_CONSTANTS: Final = 8  # around which all launches are tried
_MOST_TOGETHER: Final = 4  # constants of comparisons that sizes have together
_SHORT: Final = 1 << 16
_MOST_FACTORS: Final = 12  # ways to divide one constant
# Shares of the range of each size, in all orders: far apart, and near the largest.
_SHARES: Final = ((1.0, 0.5, 0.1), (1.0, 0.85, 0.7))

Numbers = dict[Size, int]
Bounds = Mapping[Size, tuple[int, int]]


def near_constants(integers: Sequence[int]) -> set[int]:
    """Return the integers that a kernel compares with, and those next to them."""
    known = [each for each in integers if each >= FROM]
    return {each + step for each in known[:_MOST_CONSTANTS] for step in (-1, 0, 1)}


def long_pairs(bounds: Bounds, most: int) -> Iterator[Numbers]:
    """Yield two sizes whose product no integer of 16 bits has, and the others as short as may be.

    `most` is the largest product of all sizes.
    """
    for pair in itertools.combinations(bounds, 2):
        least = {root: low for root, (low, _) in bounds.items()}
        numbers = least | {root: bounds[root][1] for root in pair}
        if (
            math.prod(numbers[root] for root in pair) > _SHORT
            and math.prod(numbers.values()) <= most
        ):
            yield numbers


def chosen_sizes(bounds: Bounds, integers: Sequence[int]) -> Iterator[Numbers]:
    """Yield numbers for some sizes, each once; the others may have any.

    Args:
        bounds: the least and the largest number of each size.
        integers: those that the kernel compares with.
    """
    near = near_constants(integers)
    single = list(_single(bounds, integers))
    known = [each for each in integers if each >= FROM][:_MOST_TOGETHER]
    chosen = itertools.chain(
        _unequal(bounds),
        _together(bounds, known),
        (each for each in single if near.intersection(each.values())),
        _combined(bounds, known),
        single,
    )
    seen: set[frozenset[tuple[Size, int]]] = set()
    for numbers in chosen:
        if all(low <= numbers[root] <= high for root, (low, high) in _of(bounds, numbers)):
            key = frozenset(numbers.items())
            if key not in seen:
                seen.add(key)
                yield numbers


def _of(bounds: Bounds, numbers: Numbers) -> Iterator[tuple[Size, tuple[int, int]]]:
    return ((root, bounds[root]) for root in numbers)


def _single(bounds: Bounds, integers: Sequence[int]) -> Iterator[Numbers]:
    """Yield a number for one size, and one number for all of them."""
    numbers = {root: _numbers(*each, integers) for root, each in bounds.items()}
    for number in dict.fromkeys(number for each in numbers.values() for number in each):
        roots = [root for root in bounds if number in numbers[root]]
        yield from ({root: number} for root in roots)
        if len(roots) == len(bounds) > 1:
            yield dict.fromkeys(roots, number)


def _numbers(low: int, high: int, constants: Sequence[int]) -> dict[int, None]:
    """Return the sizes to try: those of comparisons first, then others of a range."""
    near = [constant + step for constant in constants for step in (0, 1, -1)]
    powers = [(1 << power) + step for power in range(high.bit_length()) for step in (0, 1, -1)]
    tens = [digit * 10**power for power in range(1, len(str(high))) for digit in _DECIMAL]
    chosen = [*near, low, high, high - 1, *powers, *tens, *_PRIMES, (low + high) // 2]
    if high - low < _EVERY_SIZE:
        # In an order in which a limit of time leaves out none of a part.
        span = high - low + 1
        chosen += [low + number * 61 % span for number in range(span)]
        chosen += range(low, high + 1)
    return {number: None for number in chosen if low <= number <= high}


def _unequal(bounds: Bounds) -> Iterator[Numbers]:
    """Yield the largest shape, then others: one size long or short, all orders, simple ratios."""
    if len(bounds) < 2:
        return
    yield {root: high for root, (_, high) in bounds.items()}
    for end, other in ((1, 0), (0, 1)):
        for root in bounds:
            yield {each: limits[end if each is root else other] for each, limits in bounds.items()}
    for shares in _SHARES:
        for places in itertools.islice(itertools.permutations(range(len(bounds))), 6):
            yield {
                root: max(low, round(high * shares[min(place, 2)]))
                for place, (root, (low, high)) in zip(places, bounds.items(), strict=True)
            }
    for first, second in itertools.permutations(bounds, 2):
        half = bounds[first][1] // 2
        yield from ({first: 2 * half, second: half}, {first: half + 1, second: half})


def _together(bounds: Bounds, known: Sequence[int]) -> Iterator[Numbers]:
    """Yield constants of comparisons for several sizes."""
    for count in (2, 3):
        for roots in itertools.combinations(bounds, count):
            for chosen in itertools.product(known, repeat=count):
                yield dict(zip(roots, chosen, strict=True))


def _combined(bounds: Bounds, known: Sequence[int]) -> Iterator[Numbers]:
    """Yield sizes that have constants of comparisons as their product, or as their sum."""
    for constant in known:
        for numbers in _products_and_sums(bounds, constant):
            # A size that is left has another constant, or any number.
            left = [root for root in bounds if root not in numbers]
            for other in known if left else ():
                yield {**numbers, **dict.fromkeys(left, other)}
            yield numbers


def _products_and_sums(bounds: Bounds, constant: int) -> Iterator[Numbers]:
    for first, second in itertools.permutations(bounds, 2):
        (low, high), (least, most) = bounds[first], bounds[second]
        factors = [
            each
            for each in range(max(low, 1), min(high, constant) + 1)
            if constant % each == 0 and least <= constant // each <= most
        ]
        # The most unequal ones last.
        factors.sort(key=lambda factor: abs(math.log(factor * factor / constant)))
        for factor in factors[:_MOST_FACTORS]:
            yield {first: factor, second: constant // factor}
        for part in (max(low, constant - most), constant // 2, min(high, constant - least)):
            yield {first: part, second: constant - part}
    if len(bounds) == 3:
        yield from itertools.islice(_volumes(bounds, constant), _MOST_FACTORS)


def _volumes(bounds: Bounds, constant: int) -> Iterator[Numbers]:
    first, *others = bounds
    low, high = bounds[first]
    for factor in range(max(low, 1), min(high, constant) + 1):
        if constant % factor == 0:
            rest = {root: bounds[root] for root in others}
            for numbers in _products_and_sums(rest, constant // factor):
                if math.prod(numbers.values()) == constant // factor:
                    yield {first: factor, **numbers}
