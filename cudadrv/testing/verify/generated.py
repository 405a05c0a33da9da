"""Examples of given sizes, without Hypothesis: a search over sizes needs many of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from ptx.signature import KernelSignature

from ...emulator.timeline.schedule import Schedule
from ..strategies import (
    UNWRITTEN_BYTE,
    ArrayInput,
    DrawnArray,
    NumberInput,
    Size,
    configs_of,
    pattern,
)
from .kernel_case import KernelCase
from .verdict import Argument, Example

_SPANS: Final = (8, 70, 1 << 40)  # of the other sizes, as small as drawn ones
_FIRST_SEED: Final = 2  # those below are zeros, and numbers that count


def generated_example(
    case: KernelCase, signature: KernelSignature, numbers: Mapping[Size, int], seed: int, most: int
) -> Example | None:
    """Return an example of given sizes; None if the case draws arguments by other strategies.

    Sizes that are not given have random numbers. An example whose sizes have a larger product than
    `most` is None as well: it would take long.
    """
    source = np.random.default_rng(seed)
    known = dict(numbers)
    for root in case.roots:
        if root.bounds is None:
            return None
        low, high = root.bounds
        top = min(high, low + int(source.choice(_SPANS)))
        known.setdefault(root, int(source.integers(low, top, endpoint=True)))
    if math.prod(known.values()) > most:
        return None
    sized = case.with_sizes(known)
    arguments: dict[str, Argument] = {}
    for name, value in sized.arguments.items():
        argument = _argument(value, _FIRST_SEED + int(source.integers(1 << 16)))
        if argument is None:
            return None
        arguments[name] = argument
    configs = configs_of(sized.launch, signature)
    config = configs[int(source.integers(len(configs)))]
    return Example(arguments, config, Schedule("immediate"), alternatives=configs)


def _argument(value: object, seed: int) -> Argument | None:
    if isinstance(value, (int, float, np.generic)):
        return value
    if isinstance(value, np.ndarray):
        return DrawnArray(value)
    if not isinstance(value, (ArrayInput, NumberInput)) or not _is_known(value.values):
        return None
    if isinstance(value, NumberInput):
        number: np.generic = pattern(value.dtype, 1, value.values, seed)[0]
        return number
    shape = tuple(extent for extent in value.shape if not isinstance(extent, Size))
    count = int(np.prod(shape, dtype=np.int64))
    if not value.is_written:
        raw = np.full(count * value.dtype.itemsize, UNWRITTEN_BYTE, np.uint8)
        return DrawnArray(raw.view(value.dtype).reshape(shape), is_written=False)
    return DrawnArray(pattern(value.dtype, count, value.values, seed).reshape(shape))


def _is_known(values: object) -> bool:
    return isinstance(values, (str, tuple))
