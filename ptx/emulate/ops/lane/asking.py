"""Rare cases of single threads, which the functions for arrays decide."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import NUMPY
from ptx.emulate.ops.arithmetic.lanewise import lanewise
from ptx.emulate.threads.rows import column, value_of


@lru_cache(maxsize=1024)  # one entry an instruction variant: a function, its types and its options
def asked(function: Callable[..., Value], kind: str, **options: Hashable) -> Callable[..., Any]:
    """A function of arrays of a kind as one of what rows hold."""
    exact, dtype = lanewise(function, **options), np.dtype(NUMPY[kind])

    def call(*operands: Any) -> Any:
        return column(exact(*[value_of((each,), dtype) for each in operands]), 1)[0]

    call.__name__ = f"ask_{function.__name__}"
    return call
