"""Examples with other contents of their arrays, and how far a right kernel may be off.

Sums of small whole numbers are exact in every type and order. So they show neither a kernel that
computes in a type smaller than that of its arrays, nor one that loses bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..strategies import ArrayInput, DrawnArray, NumberInput
from .comparison import Host, bits_differ
from .kernel_case import KernelCase
from .verdict import Argument, Example

PRECISION: Final = (
    "whole numbers give the right values: with fractions the kernel loses more bits than its types "
    "explain, as if it computed in a smaller type"
)
FRACTIONS: Final = "whole numbers give the right values, and fractions do not"
_DRAWN: Final = 8  # the largest integer by values="exact"
_WHOLE: Final = 8.5  # the largest number by values="exact", and a fraction
_LARGEST_FRACTION: Final = 0.5
_CHANGES: Final = 4
_COARSE: Final = 0.02  # of the largest value: a type of seven bits has lost as much
_LAST_BITS: Final = 64  # a sum of some hundred terms in any order
LARGEST: Final = 76.5  # exp of it is finite: right kernels may clamp numbers above
_SMALL: Final = 2.0**-20
FEW_OTHERS: Final = "mostly"  # in the names of contents of which few numbers are unlike the others
MOST_CONSTANT: Final = 1e6
_BEYOND: Final = 1.25  # of a limit: further off than a tolerance
_MOST_CONSTANTS: Final = 8
_MOST_ALONE: Final = 4  # arrays that differ from the others
_FEW: Final = 1 / 32

Floats = npt.NDArray[np.float64]
_Fill: TypeAlias = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True, slots=True)
class Contents:
    """An example with other contents.

    Attributes:
        name: which contents, in the plural.
        example: the example.
        is_wide: True if they are beyond what the case draws: a kernel may fail or overflow there.
        has_fractions: whether floats change: then integers of the result may be others.
    """

    name: str
    example: Example
    is_wide: bool = False
    has_fractions: bool = True

    @property
    def note(self) -> str:
        """Why the drawn examples do not show a fault of it."""
        if self.name == "fractions":
            return FRACTIONS
        return f"the drawn contents give the right values, and {self.name} do not"


def other_contents(
    case: KernelCase,
    example: Example,
    constants: Sequence[float],
    integers: Sequence[int],
    seed: int,
) -> Iterator[Contents]:
    """Yield an example with other contents, as the values of the case allow.

    Only numbers change whose values are not a strategy. `constants` and `integers` are those that
    the kernel compares with.
    """
    source = np.random.default_rng(seed)
    for name in _names(case):
        changed = with_contents(case, example, partial(_fill, name, source))
        if changed is not None:
            is_wide = name in _WIDE and _is_whole(case)
            yield Contents(name, changed, is_wide, has_other_floats(example, changed))
    same = with_contents(
        case,
        example,
        lambda each, count: _fill("fractions", np.random.default_rng(seed), each, count),
    )
    if same is not None:
        yield Contents("arrays of equal contents", same)
    yield from _of_one_array(case, example, source)
    for name, start, step in (("ones", 1, 0), ("counting numbers", 0, 1)):
        changed = with_contents(case, example, partial(_counted, start, step))
        if changed is not None:
            yield Contents(name, changed, step > 0, has_other_floats(example, changed))
    for name, most in _INTEGERS.items():
        larger = _with_integers(case, example, most, source)
        if larger is not None:
            yield Contents(name, larger, is_wide=True, has_fractions=False)
    for constant in integers[:_MOST_CONSTANTS]:
        changed = with_contents(case, example, _IntegerConstants(constant, integers, source))
        if changed is not None:
            yield Contents(
                "integers of the kernel's comparisons", changed, is_wide=True, has_fractions=False
            )
    wide = [each for each in constants if LARGEST < abs(each) <= MOST_CONSTANT and _is_whole(case)]
    near = _near([each for each in constants if each not in wide])
    for first in near[:_MOST_CONSTANTS]:
        changed = with_contents(case, example, partial(_constants, first, near, source))
        if changed is not None:
            yield Contents("numbers of the kernel's comparisons", changed)
    for limit in wide[:_MOST_CONSTANTS]:
        beyond = (limit, _BEYOND * limit)
        changed = with_contents(case, example, partial(_constants, beyond[1], beyond, source))
        if changed is not None:
            yield Contents("numbers beyond the kernel's comparisons", changed, is_wide=True)


def _of_one_array(
    case: KernelCase, example: Example, source: np.random.Generator
) -> Iterator[Contents]:
    """Yield contents of which one array is zeros but for few numbers, or one, and no other is."""
    arrays = {
        name: each
        for name, each in case.arguments.items()
        if isinstance(each, ArrayInput) and _has_zeros(each)
    }
    for name, chosen in list(arrays.items())[:_MOST_ALONE] if len(arrays) > 1 else ():
        for few, is_other in (("few numbers", _is_few), ("one number", _is_one)):
            changed = with_contents(case, example, partial(_with_zeros, chosen, is_other, source))
            if changed is not None:
                floats = has_other_floats(example, changed)
                yield Contents(f"zeros but for {few} in {name} alone", changed, False, floats)


def _with_zeros(
    chosen: ArrayInput,
    is_other: Callable[[np.random.Generator, int], npt.NDArray[np.bool_]],
    source: np.random.Generator,
    each: ArrayInput | NumberInput,
    count: int,
) -> Floats | None:
    """Return fractions, and zeros but for some in the chosen array; integers stay elsewhere."""
    if each.dtype.kind in "iu":
        filled = _whole_fractions(each, source, count) if each is chosen else None
    else:
        filled = _fill("fractions", source, each, count)
    if each is chosen and filled is not None:
        filled = np.where(is_other(source, count), filled, 0.0)  # a product could be -0
    return filled


def _is_few(source: np.random.Generator, count: int) -> npt.NDArray[np.bool_]:
    return np.asarray(source.random(count) < _FEW, np.bool_)


def _is_one(source: np.random.Generator, count: int) -> npt.NDArray[np.bool_]:
    return np.asarray(np.arange(count) == source.integers(max(count, 1)), np.bool_)


def _has_zeros(each: ArrayInput) -> bool:
    """Return whether the values of an array are drawn, and zero is one of them."""
    if not each.is_written or each.dtype.kind not in "fiu":
        return False
    if isinstance(each.values, tuple):
        return each.values[0] <= 0 <= each.values[1]
    return isinstance(each.values, str) and (each.dtype.kind == "f" or each.values == "exact")


def _whole_fractions(
    each: ArrayInput | NumberInput, source: np.random.Generator, count: int
) -> Floats | None:
    bounds = _whole_bounds(each)
    if bounds is None:
        return None
    return source.integers(*bounds, count, endpoint=True).astype(np.float64)


def _signs(count: int) -> Floats:
    signs: Floats = np.where(np.arange(count) % 2, -1.0, 1.0)
    return signs


def _one_of(count: int, one: float, others: Floats) -> Floats:
    """Return contents with one other number in the middle."""
    others[count // 2 : count // 2 + 1] = one
    return others


def _few_of(few: float, others: float, source: np.random.Generator, count: int) -> Floats:
    """Return numbers near one share, with few near another: a sample may have none of these."""
    is_few = source.random(count) < _FEW
    return np.where(is_few, few, others) * source.uniform(0.8, 1, count)


def _scaled(shares: _Fill, source: np.random.Generator, count: int) -> Floats:
    return _WHOLE * shares(source, count)


# Which numbers stand together, as shares from -1 to 1.
_SHAPES: Final[dict[str, _Fill]] = {
    "zeros": lambda source, count: np.zeros(count),
    "mostly zeros": lambda source, count: np.where(
        source.random(count) < _FEW, source.uniform(-1, 1, count), 0.0
    ),
    "descending numbers": lambda source, count: np.sort(source.uniform(-1, 1, count))[::-1],
    "numbers of alternating signs": lambda source, count: (
        _signs(count) * source.uniform(0.1, 1, count)
    ),
    "numbers of which one is large": lambda source, count: _one_of(
        count, 1, source.uniform(-0.1, 0.1, count)
    ),
    "numbers of which one is negative": lambda source, count: _one_of(
        count, -1, source.uniform(0.1, 1, count)
    ),
    "mostly negative numbers": partial(_few_of, 1, -1),
    "mostly positive numbers": partial(_few_of, -1, 1),
}
# By the values of the case, which are called here as in `strategies.Values`.
_OF_WHOLE: Final[dict[str, _Fill]] = {
    "fractions": lambda source, count: source.uniform(-_WHOLE, _WHOLE, count),
    "positive numbers": lambda source, count: source.uniform(0, _WHOLE, count),
    "negative numbers": lambda source, count: source.uniform(-_WHOLE, 0, count),
    "sorted numbers": lambda source, count: np.sort(source.uniform(-_WHOLE, _WHOLE, count)),
    "equal numbers": lambda source, count: np.full(count, source.uniform(1, 2)),
    "large numbers": lambda source, count: source.uniform(-LARGEST, LARGEST, count),
    "small numbers": lambda source, count: _SMALL * source.uniform(-_WHOLE, _WHOLE, count),
    **{name: partial(_scaled, shares) for name, shares in _SHAPES.items()},
}
_WIDE: Final = ("large numbers", "small numbers")
# Of a range: shares of it.
_OF_RANGE: Final[dict[str, _Fill]] = {
    "fractions": lambda source, count: source.uniform(0, 1, count),
    "numbers near the lower end": lambda source, count: source.uniform(0, 1, count) ** 4,
    "numbers near the upper end": lambda source, count: 1 - source.uniform(0, 1, count) ** 4,
    "sorted numbers": lambda source, count: np.sort(source.uniform(0, 1, count)),
    "equal numbers": lambda source, count: np.full(count, source.uniform(0.4, 0.6)),
    "both ends": lambda source, count: source.integers(0, 2, count).astype(np.float64),
    "descending numbers": lambda source, count: np.sort(source.uniform(0, 1, count))[::-1],
    "numbers of which one is large": lambda source, count: _one_of(
        count, 1, source.uniform(0, 0.1, count)
    ),
    "numbers mostly near the lower end": lambda source, count: 1 - _few_of(0, 1, source, count),
    "numbers mostly near the upper end": partial(_few_of, 0, 1),
}
# Of integers, whose drawn numbers are among "fractions" and "positive numbers".
_OF_INTEGERS: Final = (
    "sorted numbers", "descending numbers", "equal numbers", "both ends",
    "numbers of which one is large", "numbers mostly near the lower end",
    "numbers mostly near the upper end",
)  # fmt: skip
_MOST_RANGE: Final = 1 << 52  # of integers whose shares are exact
_FEW_VALUES: Final = 4  # of an array, and how often some are drawn
_SPECIAL: Final = ("infinities", "NaN")
# A float32 holds neither products of the first nor the second.
_INTEGERS: Final = {"larger integers": 5000, "large integers": 1 << 25}


def _of_finite(name: str, dtype: np.dtype[Any], source: np.random.Generator, count: int) -> Floats:
    """Return contents of all magnitudes."""
    limits = np.finfo(dtype)
    smallest, normal, largest = (
        float(each) for each in (limits.smallest_subnormal, limits.tiny, limits.max)
    )
    shares, signs = source.uniform(0.1, 1, count), source.choice([-1.0, 1.0], count)
    numbers = {
        "fractions": _WHOLE * shares,
        "huge numbers": largest * shares,
        "tiny numbers": normal / shares,
        "subnormal numbers": np.maximum(normal * shares, smallest),
        "infinities": np.where(shares < 0.2, math.inf, _WHOLE * shares),
        "NaN": np.where(shares < 0.2, math.nan, _WHOLE * shares),
    }
    chosen: Floats = signs * numbers[name]
    return chosen


_OF_FINITE: Final = ("fractions", "huge numbers", "tiny numbers", "subnormal numbers")


def _values_of(case: KernelCase) -> list[Any]:
    return [each.values for each in _inputs_of(case, "f")]


def _inputs_of(case: KernelCase, kinds: str) -> list[ArrayInput | NumberInput]:
    """Return the arguments of some kinds of dtypes whose contents are drawn."""
    return [
        each
        for each in case.arguments.values()
        if isinstance(each, (ArrayInput, NumberInput)) and each.dtype.kind in kinds
    ]


def has_other_floats(example: Example, other: Example) -> bool:
    """Return whether a float differs between two examples."""
    return any(
        other.arguments[name] is not value and _kind(value) == "f"
        for name, value in example.arguments.items()
    )


def _kind(value: Argument) -> str:
    array = value.contents if isinstance(value, DrawnArray) else np.asarray(value)
    return array.dtype.kind


def _is_whole(case: KernelCase) -> bool:
    return "exact" in _values_of(case)


def _names(case: KernelCase) -> list[str]:
    """Return the names of the contents that the values of the case allow, each once."""
    names: dict[str, None] = {}
    for values in _values_of(case):
        if values == "exact":
            names |= dict.fromkeys(_OF_WHOLE)
        elif isinstance(values, tuple):
            names |= dict.fromkeys(_OF_RANGE)
        elif isinstance(values, str):
            names |= dict.fromkeys((*_OF_FINITE, *(_SPECIAL if values == "special" else ())))
    if any(_whole_bounds(each) is not None for each in _inputs_of(case, "iu")):
        names |= dict.fromkeys(_OF_INTEGERS)
    return list(names)


def _fill(
    name: str, source: np.random.Generator, each: ArrayInput | NumberInput, count: int
) -> Floats | None:
    """Return contents of a name for an argument; fractions where its values have no such ones."""
    values = each.values
    if each.dtype.kind in "iu":
        return _fill_integers(name, source, each, count)
    if values == "exact":
        # The exponential of a half overflows at 11.
        name = "fractions" if name == "large numbers" and each.dtype.itemsize == 2 else name
        return _OF_WHOLE.get(name, _OF_WHOLE["fractions"])(source, count)
    if isinstance(values, tuple):
        low, high = values
        shares = _OF_RANGE.get(name, _OF_RANGE["fractions"])(source, count)
        return np.clip(low + (high - low) * shares, low, high)
    if isinstance(values, str):
        known = (*_OF_FINITE, *(_SPECIAL if values == "special" else ()))
        return _of_finite(name if name in known else "fractions", each.dtype, source, count)
    return None


def _counted(first: int, step: int, each: ArrayInput | NumberInput, count: int) -> Floats | None:
    """Return numbers that count, within the values of an argument."""
    if not isinstance(each.values, (str, tuple)):
        return None
    low, high = each.values if isinstance(each.values, tuple) else (-math.inf, math.inf)
    if each.dtype.kind in "iu":
        limits = np.iinfo(each.dtype.name)
        low, high = max(np.ceil(low), limits.min), min(np.floor(high), limits.max)
    counted: Floats = np.clip(first + step * np.arange(count, dtype=np.float64), low, high)
    return counted


def _fill_integers(
    name: str, source: np.random.Generator, each: ArrayInput | NumberInput, count: int
) -> Floats | None:
    """Return integers of a name, within the bounds of the drawn ones."""
    bounds = _whole_bounds(each)
    if name not in _OF_INTEGERS or bounds is None:
        return None
    low, high = bounds
    return np.clip(np.rint(low + (high - low) * _OF_RANGE[name](source, count)), low, high)


def _whole_bounds(each: ArrayInput | NumberInput) -> tuple[int, int] | None:
    """Return the bounds of drawn integers; None if they are not known, or too large for floats."""
    if each.values == "exact":
        return (0 if each.dtype.kind == "u" else -_DRAWN), _DRAWN
    if not isinstance(each.values, tuple):
        return None
    low, high = math.ceil(each.values[0]), math.floor(each.values[1])
    return (low, high) if max(-low, high) < _MOST_RANGE else None


@dataclass
class _IntegerConstants:
    """Contents with integers that the kernel compares with: in an array, and as sums of two.

    Attributes:
        first: the first element, and each sum.
        near: further constants.
        source: of random numbers.
    """

    first: int
    near: Sequence[int]
    source: np.random.Generator
    _before: dict[int, Floats] = field(default_factory=dict)

    def __call__(self, each: ArrayInput | NumberInput, count: int) -> Floats | None:
        if each.dtype.kind not in "iu" or not isinstance(each.values, (str, tuple)):
            return None
        limits = np.iinfo(each.dtype.name)
        low, high = max(int(limits.min), -_MOST_RANGE), min(int(limits.max), _MOST_RANGE)
        if isinstance(each.values, tuple):
            low, high = max(low, math.ceil(each.values[0])), min(high, math.floor(each.values[1]))
        numbers = [number + step for number in (self.first, *self.near) for step in (0, -1, 1)]
        allowed = [number for number in numbers if low <= number <= high]
        if not allowed:
            return None
        filled: Floats = self.source.choice(allowed, count).astype(np.float64)
        filled[:1] = min(max(self.first, low), high)
        before = self._before.get(count)
        if before is not None and count > 1:
            is_sum = self.source.random(count) < 0.5
            filled = np.where(is_sum, np.clip(self.first - before, low, high), filled)
        else:
            # Half of the first ones are small, as those that a sum goes with.
            is_small = self.source.random(count) < 0.5
            is_small[:1] = False
            small = np.clip(self.source.integers(-_DRAWN, _DRAWN + 1, count), low, high)
            filled = np.where(is_small, small, filled)
        self._before[count] = filled
        return filled


def _near(constants: Sequence[float]) -> list[float]:
    """Return each finite constant, and the numbers next to it."""
    finite = [each for each in constants if math.isfinite(each) and each]
    singles = [np.float32(each) for each in finite]
    near = [float(np.nextafter(each, to)) for each in singles for to in (-np.inf, np.inf)]
    # The constants first.
    return [*finite, *(number for number in near if number not in finite)]


def _constants(
    first: float,
    near: Sequence[float],
    source: np.random.Generator,
    each: ArrayInput | NumberInput,
    count: int,
) -> Floats | None:
    """Return fractions among which are constants that the values allow, `first` at the start."""
    if each.dtype.kind != "f":
        return None
    low, high = _bounds(each)
    allowed = [number for number in near if low <= number <= high]
    filled = _fill("fractions", source, each, count)
    if filled is None or not allowed:
        return filled
    is_constant = source.random(count) < 0.5
    filled[is_constant] = source.choice(allowed, count)[is_constant]
    if count and low <= first <= high:
        filled[0] = first
    return filled


def _bounds(each: ArrayInput | NumberInput) -> tuple[float, float]:
    if isinstance(each.values, tuple):
        return each.values
    most = MOST_CONSTANT if each.values == "exact" else float(np.finfo(each.dtype).max)
    return -most, most


def with_contents(
    case: KernelCase,
    example: Example,
    fill: Callable[[ArrayInput | NumberInput, int], Floats | None],
) -> Example | None:
    """Return an example with other numbers; None if the case has none that may change."""
    arguments: dict[str, Argument] = dict(example.arguments)
    for name, value in example.arguments.items():
        each = case.arguments[name]
        if not isinstance(each, (ArrayInput, NumberInput)) or each.dtype.kind not in "fiu":
            continue
        if isinstance(value, DrawnArray) and not value.is_written:
            continue
        shape = value.contents.shape if isinstance(value, DrawnArray) else ()
        with np.errstate(all="ignore"):
            contents = fill(each, math.prod(shape))
            if contents is None:
                continue
            typed: Any = contents.astype(each.dtype).reshape(shape)
        arguments[name] = DrawnArray(typed) if isinstance(value, DrawnArray) else typed[()]
    is_changed = any(arguments[name] is not value for name, value in example.arguments.items())
    return replace(example, arguments=arguments) if is_changed else None


def _with_integers(
    case: KernelCase, example: Example, most: int, source: np.random.Generator
) -> Example | None:
    """Return an example with other integers in arrays; None if it has none that may change."""
    arguments: dict[str, Argument] = dict(example.arguments)
    for name, value in example.arguments.items():
        each = case.arguments[name]
        is_whole = isinstance(each, ArrayInput) and each.values == "exact" and each.is_written
        if (
            not is_whole
            or not isinstance(value, DrawnArray)
            or value.contents.dtype.kind not in "iu"
        ):
            continue
        limits = np.iinfo(value.contents.dtype.name)
        low, high = max(-most, int(limits.min)), min(most, int(limits.max))
        contents = source.integers(low, high, value.contents.shape, endpoint=True)
        arguments[name] = DrawnArray(contents.astype(value.contents.dtype))
    is_changed = any(arguments[name] is not value for name, value in example.arguments.items())
    return replace(example, arguments=arguments) if is_changed else None


def neighbours(case: KernelCase, example: Example) -> Iterator[Example]:
    """Yield examples of the same sizes and numbers, and with the same elements at the ends of rows.

    Where the case draws each element by itself, the elements between the ends differ. They change
    places, by another number in each array. Or they are some of few elements of the array, or few
    of them change, so that a sum, a weighted sum, an XOR, a sum of squares or the upper bits stay.
    """
    source = np.random.default_rng(0)
    for number in range(1 + _FEW_VALUES + len(_CHANGES_OF_FEW)):
        arguments: dict[str, Argument] = dict(example.arguments)
        for step, (name, value) in enumerate(example.arguments.items(), 1):
            each = case.arguments[name]
            if not isinstance(value, DrawnArray) or not value.is_written:
                continue
            if not isinstance(each, ArrayInput) or not isinstance(each.values, (str, tuple)):
                continue
            if number > _FEW_VALUES:
                change = _CHANGES_OF_FEW[number - _FEW_VALUES - 1]
                changed = change(value.contents, source)
            elif number:
                changed = _with_few_values(value.contents, source)
            else:
                changed = value.contents.copy()
                flat = changed.reshape(-1)
                flat[1:-1] = np.roll(flat[1:-1], step)
            if np.any(bits_differ(changed, value.contents)):
                arguments[name] = DrawnArray(changed)
        near = replace(example, arguments=arguments)
        is_changed = any(arguments[name] is not value for name, value in example.arguments.items())
        if is_changed and case.is_allowed(near):
            yield near


def _with_few_values(contents: Host, source: np.random.Generator) -> Host:
    """Return contents whose rows have few values of the array between their ends."""
    changed = contents.copy()
    if contents.ndim and contents.size:
        between = changed[..., 1:-1]
        few = source.choice(contents.reshape(-1), _FEW_VALUES)
        between[...] = source.choice(few, between.shape)
    return changed


def _with_one_other(contents: Host, source: np.random.Generator) -> Host:
    """Return contents of which one element between the first and the last has another value."""
    changed: Any = contents.copy()
    flat = changed.reshape(-1)
    if flat.size > _FEW_VALUES and flat.dtype.kind in "iuf":
        place = source.integers(1, flat.size - 1)
        others = flat[flat != flat[place]]
        if others.size:
            flat[place] = source.choice(others)
    result: Host = changed
    return result


def _with_same_sums(contents: Host, source: np.random.Generator, steps: Sequence[int]) -> Host:
    """Return contents of which neighbours change by steps, whose sum is zero.

    With the steps 1, -2, 1 sums weighted by the places stay, too.
    """
    changed: Any = contents.copy()
    flat = changed.reshape(-1)
    if flat.size < len(steps) + 2 or flat.dtype.kind not in "iuf":
        return contents
    low, high = np.min(flat), np.max(flat)
    for place in source.permutation(np.arange(1, flat.size - len(steps))):
        part = flat[place : place + len(steps)].astype(np.float64) + steps
        if low <= np.min(part) and np.max(part) <= high:
            flat[place : place + len(steps)] = part.astype(flat.dtype)
            break
    result: Host = changed
    return result


def _with_same_xor(contents: Host, source: np.random.Generator) -> Host:
    """Return integers of which two change in one bit."""
    changed: Any = contents.copy()
    flat = changed.reshape(-1)
    if flat.size <= _FEW_VALUES or flat.dtype.kind not in "iu":
        return contents
    low, high = np.min(flat), np.max(flat)
    places = source.permutation(np.arange(1, flat.size - 1))
    for bit in (1, 2, 4):
        flipped = flat[places] ^ flat.dtype.type(bit)
        # Two bits that go the same way, so that the sum changes.
        fits = places[(low <= flipped) & (flipped <= high) & (flipped > flat[places])][:2]
        if len(fits) == 2:
            flat[fits] ^= flat.dtype.type(bit)
            break
    result: Host = changed
    return result


def _with_other_sign(contents: Host, source: np.random.Generator) -> Host:
    """Return contents of which one element has the other sign: sums of squares stay."""
    changed: Any = contents.copy()
    flat = changed.reshape(-1)
    if flat.size <= _FEW_VALUES or flat.dtype.kind not in "if":
        return contents
    between = np.arange(1, flat.size - 1)
    low, high = np.min(flat), np.max(flat)
    negated = -flat[between]
    fits = between[(flat[between] != 0) & (low <= negated) & (negated <= high)]
    if len(fits):
        flat[source.choice(fits)] *= -1
    result: Host = changed
    return result


def _with_other_lower_bits(contents: Host, source: np.random.Generator) -> Host:
    """Return floats of which one differs in the lower half of its bits."""
    changed: Any = contents.copy()
    flat = changed.reshape(-1)
    if flat.size <= _FEW_VALUES or flat.dtype.kind != "f":
        return contents
    bits = flat.view(f"u{flat.itemsize}")
    others = (bits ^ bits.dtype.type(1 << (flat.itemsize * 4 - 4))).view(flat.dtype)
    between = np.arange(1, flat.size - 1)
    fits = between[(np.min(flat) <= others[between]) & (others[between] <= np.max(flat))]
    if len(fits):
        # A change of a small number may be within the tolerance.
        place = fits[np.argmax(np.abs(flat[fits]))]
        flat[place] = others[place]
    result: Host = changed
    return result


_CHANGES_OF_FEW: Final[tuple[Callable[[Host, np.random.Generator], Host], ...]] = (
    _with_one_other,
    partial(_with_same_sums, steps=(1, -1)),
    partial(_with_same_sums, steps=(1, -2, 1)),
    _with_same_xor,
    _with_other_sign,
    _with_other_lower_bits,
)
"""Changes of few elements, after which a sum or a hash of all may be the same."""


def allowed_differences(
    case: KernelCase, example: Example, expected: Mapping[str, Host], *, is_wide: bool
) -> dict[str, Floats]:
    """Return how far each element of the arrays may be from the reference.

    A float may be off by 64 times what changes of the last bit of the inputs change, and 64 last
    bits of the result. An integer may have any value if changes of 64 last bits of the inputs
    change it, or if the inputs are beyond what the case draws. So may an element that a change of
    the last bit makes finite, or not finite: a divisor is zero by chance.
    """
    source = np.random.default_rng(0)
    allowed: dict[str, Floats] = {}
    for name, array in expected.items():
        is_open = array.dtype.kind not in "fciub" or (is_wide and array.dtype.kind in "iub")
        allowed[name] = np.full(array.shape, np.inf if is_open else 0.0)
        if array.dtype.kind in "fc":
            last_bits: Any = np.spacing(np.abs(_in_type(array, example.arguments[name])))
            allowed[name] = _LAST_BITS * np.nan_to_num(last_bits.astype(np.float64))
    changes: list[tuple[int, int, str | None]] = [(1, 0, None)] * _CHANGES
    # Alone: changes of both factors of a product may cancel.
    changes += [(1, 0, name) for name in example.arguments if len(example.arguments) > 1]
    if any(array.dtype.kind in "iub" for array in expected.values()) and not is_wide:
        changes += [(_LAST_BITS, direction, None) for direction in (1, -1, *[0] * _CHANGES)]
    with np.errstate(all="ignore"):
        for bits, direction, alone in changes:
            other = _changed(example, partial(_off_by, source, bits, direction), alone)
            if other is None:
                continue
            for name, array in case.expected(other).items():
                near, known = array.astype(np.complex128), expected[name].astype(np.complex128)
                is_same = (near == known) | (np.isnan(near) & np.isnan(known))
                apart = np.where(is_same, 0, np.abs(near - known))
                if array.dtype.kind in "iub":
                    apart[apart > 0] = np.inf
                elif bits > 1:
                    continue
                apart = np.where(np.isnan(apart), np.inf, _LAST_BITS * apart)
                allowed[name] = np.maximum(allowed[name], apart)
    return allowed


def _off_by(source: np.random.Generator, bits: int, direction: int, value: Any) -> Any:
    """Return numbers that are some last bits larger or smaller; direction 0 is any of both."""
    directions = np.full(np.shape(value), direction)
    if not direction:
        directions = source.choice([-1, 1], np.shape(value))
    step = np.spacing(np.abs(value))
    return np.where(np.isfinite(step), value + (directions * bits * step), value).astype(
        value.dtype
    )


def coarse_differences(expected: Mapping[str, Host]) -> dict[str, Floats]:
    """Return how far results may be off that have lost bits, and are not simply wrong."""
    return {
        name: np.full(array.shape, _COARSE * float(np.nanmax(np.abs(array), initial=0)))
        for name, array in expected.items()
        if array.dtype.kind == "f"
    }


def _changed(example: Example, changed: Callable[[Any], Any], alone: str | None) -> Example | None:
    """Return an example whose floats, or those of one argument, are changed; None without any."""
    others: dict[str, Argument] = {}
    for name, value in example.arguments.items():
        if alone not in (None, name):
            continue
        if isinstance(value, DrawnArray):
            if value.is_written and value.contents.dtype.kind == "f":
                others[name] = replace(value, contents=changed(value.contents))
        elif isinstance(value, np.floating):
            others[name] = changed(value)
    return replace(example, arguments={**example.arguments, **others}) if others else None


def _in_type(array: Host, argument: Argument) -> Host:
    """Return a reference in the type of the kernel's array."""
    with np.errstate(over="ignore"):  # of a reference in a wider type
        return array.astype(argument.contents.dtype) if isinstance(argument, DrawnArray) else array
