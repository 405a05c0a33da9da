"""Unsigned arithmetic that stops at its largest value, as Rust's `saturating_mul` does."""

from __future__ import annotations

import math
from typing import Final

from ..errors import ArgumentValueError

USIZE_MAX: Final = 2**64 - 1
U128_MAX: Final = 2**128 - 1


def saturating_product(*factors: int, most: int = USIZE_MAX) -> int:
    """The product of counts, or `most` where it would pass it.

    Clamping once at the end gives what clamping at each step gives: a zero makes both zero, and
    no factor of at least one makes a product smaller.

    Raises:
        ValueError: a factor is negative.
    """
    if min(factors) < 0:
        raise ArgumentValueError(f"counts are 0 or more, not {min(factors)}")
    return min(math.prod(factors), most)


def saturating_sum(*terms: int, most: int = USIZE_MAX) -> int:
    """The sum of terms of 0 or more, or `most` where it would pass it."""
    return min(sum(terms), most)
