"""Numbers."""

from ptx.emulate.ops.arithmetic import (
    approximate,
    carry,
    compare,
    convert,
    dot_product,
    floating,
    half,
    integer,
    narrow,
    packed_integer,
    sign,
    stochastic,
)

__all__ = [
    "approximate",
    "carry",
    "compare",
    "convert",
    "dot_product",
    "floating",
    "half",
    "integer",
    "narrow",
    "packed_integer",
    "sign",
    "stochastic",
]
