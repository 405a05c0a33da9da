"""Examples with other contents of their arrays, and how far a right kernel may be off.

Sums of small whole numbers are exact in every type and order. So they show neither a kernel that
computes in a type smaller than that of its arrays, nor one that loses bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..strategies import ArrayInput, DrawnArray, NumberInput
from .comparison import Host
from .kernel_case import KernelCase
from .verdict import Argument, Example

PRECISION: Final = (
    "whole numbers give the right values: with fractions the kernel loses more bits than its types "
    "explain, as if it computed in a smaller type"
)
FRACTIONS: Final = "whole numbers give the right values, and fractions do not"
_WHOLE: Final = 8.5  # the largest number by values="exact", and a fraction
_LARGEST_FRACTION: Final = 0.5
_CHANGES: Final = 4
_COARSE: Final = 0.02  # of the largest value: a type of seven bits has lost as much
_LAST_BITS: Final = 64  # a sum of some hundred terms in any order
LARGEST: Final = 76.5  # exp of it is finite: right kernels may clamp numbers above
_SMALL: Final = 2.0**-20
_MOST_CONSTANT: Final = 1e6
_MOST_CONSTANTS: Final = 8

Floats = npt.NDArray[np.float64]
_Fill: TypeAlias = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True, slots=True)
class Contents:
    """An example with other contents.

    Attributes:
        name: which contents, in the plural.
        example: the example.
        is_wide: True if they are beyond what the case draws: a kernel may fail or overflow there.
    """

    name: str
    example: Example
    is_wide: bool = False

    @property
    def has_integers(self) -> bool:
        """Whether integers change: then integers of the result must be equal."""
        return self.name in _INTEGERS

    @property
    def note(self) -> str:
        """Why the drawn examples do not show a fault of it."""
        if self.name == "fractions":
            return FRACTIONS
        return f"the drawn contents give the right values, and {self.name} do not"


def other_contents(
    case: KernelCase, example: Example, constants: Sequence[float], seed: int
) -> Iterator[Contents]:
    """Yield an example with other contents, as the values of the case allow.

    Only floats change whose values are not a strategy. `constants` are those that the kernel
    compares with.
    """
    source = np.random.default_rng(seed)
    for name in _names(case):
        changed = _with_contents(case, example, partial(_fill, name, source))
        if changed is not None:
            yield Contents(name, changed, is_wide=name in _WIDE and _is_whole(case))
    same = _with_contents(
        case,
        example,
        lambda each, count: _fill("fractions", np.random.default_rng(seed), each, count),
    )
    if same is not None:
        yield Contents("arrays of equal contents", same)
    for name, most in _INTEGERS.items():
        larger = _with_integers(case, example, most, source)
        if larger is not None:
            yield Contents(name, larger, is_wide=True)
    near = _near(constants)
    for first in near[:_MOST_CONSTANTS]:
        changed = _with_contents(case, example, partial(_constants, first, near, source))
        if changed is not None:
            yield Contents("numbers of the kernel's comparisons", changed)


# By the values of the case, which are called here as in `strategies.Values`.
_OF_WHOLE: Final[dict[str, _Fill]] = {
    "fractions": lambda source, count: source.uniform(-_WHOLE, _WHOLE, count),
    "positive numbers": lambda source, count: source.uniform(0, _WHOLE, count),
    "negative numbers": lambda source, count: source.uniform(-_WHOLE, 0, count),
    "sorted numbers": lambda source, count: np.sort(source.uniform(-_WHOLE, _WHOLE, count)),
    "equal numbers": lambda source, count: np.full(count, source.uniform(1, 2)),
    "large numbers": lambda source, count: source.uniform(-LARGEST, LARGEST, count),
    "small numbers": lambda source, count: _SMALL * source.uniform(-_WHOLE, _WHOLE, count),
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
}
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
    inputs = (
        each for each in case.arguments.values() if isinstance(each, (ArrayInput, NumberInput))
    )
    return [each.values for each in inputs if each.dtype.kind == "f"]


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
    return list(names)


def _fill(
    name: str, source: np.random.Generator, each: ArrayInput | NumberInput, count: int
) -> Floats | None:
    """Return contents of a name for an argument; fractions where its values have no such ones."""
    values = each.values
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


def _near(constants: Sequence[float]) -> list[float]:
    """Return each finite constant, and the numbers next to it."""
    finite = [each for each in constants if math.isfinite(each) and each]
    singles = [np.float32(each) for each in finite]
    near = [float(np.nextafter(each, to)) for each in singles for to in (-np.inf, np.inf)]
    # The constants first.
    return [*finite, *(number for number in near if number not in finite)]


def _constants(
    first: float, near: Sequence[float], source: np.random.Generator,
    each: ArrayInput | NumberInput, count: int,
) -> Floats | None:  # fmt: skip
    """Return fractions among which are constants that the values allow, `first` at the start."""
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
    most = _MOST_CONSTANT if each.values == "exact" else float(np.finfo(each.dtype).max)
    return -most, most


def _with_contents(
    case: KernelCase, example: Example,
    fill: Callable[[ArrayInput | NumberInput, int], Floats | None],
) -> Example | None:  # fmt: skip
    """Return an example with other floats; None if the case has none that may change."""
    arguments: dict[str, Argument] = dict(example.arguments)
    for name, value in example.arguments.items():
        each = case.arguments[name]
        if not isinstance(each, (ArrayInput, NumberInput)) or each.dtype.kind != "f":
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


def neighbour(case: KernelCase, example: Example) -> Example | None:
    """Return an example of the same sizes, numbers and first elements; None if there is none.

    The elements of arrays between the first and the last change places, where the case draws each
    by itself.
    """
    arguments: dict[str, Argument] = dict(example.arguments)
    for name, value in example.arguments.items():
        each = case.arguments[name]
        if not isinstance(value, DrawnArray) or not value.is_written:
            continue
        if not isinstance(each, ArrayInput) or not isinstance(each.values, (str, tuple)):
            continue
        flat = value.contents.reshape(-1).copy()
        flat[1:-1] = np.roll(flat[1:-1], 1)
        if np.any(flat != value.contents.reshape(-1)):
            arguments[name] = DrawnArray(flat.reshape(value.contents.shape))
    is_changed = any(arguments[name] is not value for name, value in example.arguments.items())
    return replace(example, arguments=arguments) if is_changed else None


def allowed_differences(
    case: KernelCase, example: Example, expected: Mapping[str, Host]
) -> dict[str, Floats]:
    """Return how far each element of the arrays may be from the reference.

    It is 64 times what changes of the last bit of the inputs change, and 64 last bits of the
    result. Integers and elements that are not finite may have any value.
    """
    source = np.random.default_rng(0)

    def changed(value: Any) -> Any:
        directions = source.choice([-np.inf, np.inf], np.shape(value))
        return np.nextafter(value, directions.astype(value.dtype))

    allowed: dict[str, Floats] = {}
    for name, array in expected.items():
        allowed[name] = np.full(array.shape, np.inf)
        if array.dtype.kind == "f":
            last_bits: Any = np.spacing(np.abs(_in_type(array, example.arguments[name])))
            allowed[name] = last_bits.astype(np.float64)
    with np.errstate(all="ignore"):
        for _ in range(_CHANGES):
            other = _changed(example, changed)
            for name, array in case.expected(other).items():
                apart = np.abs(array.astype(np.complex128) - expected[name].astype(np.complex128))
                allowed[name] = np.maximum(allowed[name], np.where(np.isnan(apart), np.inf, apart))
    return {name: _LAST_BITS * array for name, array in allowed.items()}


def coarse_differences(expected: Mapping[str, Host]) -> dict[str, Floats]:
    """Return how far results may be off that have lost bits, and are not simply wrong."""
    return {
        name: np.full(array.shape, _COARSE * float(np.nanmax(np.abs(array), initial=0)))
        for name, array in expected.items()
        if array.dtype.kind == "f"
    }


def _changed(example: Example, changed: Callable[[Any], Any]) -> Example:
    """Return an example whose floats are changed by a function."""
    arguments: dict[str, Argument] = dict(example.arguments)
    for name, value in example.arguments.items():
        if isinstance(value, DrawnArray):
            if value.is_written and value.contents.dtype.kind == "f":
                arguments[name] = replace(value, contents=changed(value.contents))
        elif isinstance(value, np.floating):
            arguments[name] = changed(value)
    return replace(example, arguments=arguments)


def _in_type(array: Host, argument: Argument) -> Host:
    """Return a reference in the type of the kernel's array."""
    return array.astype(argument.contents.dtype) if isinstance(argument, DrawnArray) else array
