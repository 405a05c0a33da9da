"""The instruction modifiers `.ftz` and `.sat`."""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee.lanes import elementwise
from ptx.emulate.ieee.types import Float


@elementwise
def flush_subnormals(x: Float) -> Float:
    """Replace subnormal numbers by zeros of the same sign (PTX `.ftz`).

    The result may be `x` itself where nothing is subnormal.
    """
    small = np.abs(x) < np.finfo(x.dtype).tiny
    if not small.any():
        return x
    return np.where(small, np.copysign(x.dtype.type(0), x), x)


@elementwise
def saturate(x: Float) -> Float:
    """Clamp to [0, 1]; NaN and -0 give +0 (PTX `.sat`)."""
    return np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))
