"""a·b+c of three float64, rounded once, in Python's floats."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum
from typing import Final

from ptx.emulate.ieee.fma64 import SMALL_PRODUCT

_SPLITTER: Final = 2.0**27 + 1.0  # Dekker, "A floating-point technique", 1971


def fused64(a: float, b: float, c: float, ask: Callable[[float, float, float], float]) -> float:
    """a·b+c; `ask` decides where a step may overflow, or lose bits below the least number.

    The product is p + e exactly, by Dekker's splitting; `fsum` rounds the sum of three once.
    """
    p = a * b
    if -SMALL_PRODUCT < p < SMALL_PRODUCT:
        return ask(a, b, c) if p or (a and b) or not c else p + c if c - c == 0.0 else ask(a, b, c)
    t = _SPLITTER * a
    high = t - (t - a)
    low = a - high
    t = _SPLITTER * b
    top = t - (t - b)
    rest = b - top
    try:
        found = fsum((p, ((high * top - p) + high * rest + low * top) + low * rest, c))
    except (OverflowError, ValueError):
        return ask(a, b, c)
    return found if found - found == 0.0 else ask(a, b, c)
