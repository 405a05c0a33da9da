"""The NaN that each operation gives: the only place that knows."""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee.types import Array

F32_NAN = 0x7FFF_FFFF
"""PTX ISA, "Floating Point Instructions": operations on `.f32` give this canonical NaN."""
F64_NAN = 0x7FF8_0000_0000_0000
"""The NaN of an invalid operation on `.f64`."""
F16_NAN = 0x7FFF
"""PTX ISA, "Half Precision Floating Point Instructions": the canonical NaN of `.f16`."""
BF16_NAN = 0x7FFF
"""The canonical NaN of `.bf16`."""


def settle_nans(result: Array, *operands: Array) -> Array:
    """Give a float32 or float64 result's NaN lanes the bits that the hardware gives.

    Changes `result` in place and returns it. float32: the canonical NaN. float64: the canonical
    NaN too, whatever the operands' payloads, which PTX leaves open.
    """
    nans = np.isnan(result)
    if nans.any():
        if result.dtype == np.float32:
            result.view(np.uint32)[nans] = F32_NAN
        else:
            result.view(np.uint64)[nans] = F64_NAN
    return result
