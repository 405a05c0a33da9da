"""Exact IEEE-754 arithmetic on NumPy arrays and scalars, with the rules of PTX.

float32 and float64 values are arrays or NumPy scalars of that dtype; half-precision values are bits
in uint16, packed pairs in uint32. Results have the operands' dtype, and are scalars where every
operand was one. Nothing warns, and nothing here has state.
"""

from ptx.emulate.ieee.approximate import (
    cos_approx,
    div_approx,
    div_full,
    ex2_approx,
    half_ex2_approx,
    half_tanh_approx,
    lg2_approx,
    rcp_approx,
    rcp_approx_f64,
    rsqrt_approx,
    rsqrt_approx_f64,
    sin_approx,
    sqrt_approx,
    tanh_approx,
)
from ptx.emulate.ieee.arithmetic import (
    add,
    div,
    flush_subnormals,
    fma,
    mul,
    rcp,
    saturate,
    sqrt,
    sub,
)
from ptx.emulate.ieee.comparison import absolute, copysign, maximum, minimum, neg, testp
from ptx.emulate.ieee.conversion import (
    convert_float,
    float_to_integer,
    from_narrow,
    from_ue8m0_pair,
    halves_of_narrow_pair,
    integer_to_bits,
    integer_to_float,
    narrow_pair,
    narrow_pair_of_halves,
    round_stochastically,
    round_to_integral,
    to_narrow,
    to_tf32,
    to_ue8m0,
)
from ptx.emulate.ieee.formats import (
    BF16,
    E2M1,
    E2M3,
    E3M2,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    Format,
    Rounding,
)
from ptx.emulate.ieee.half import (
    half_abs,
    half_add,
    half_fma,
    half_maximum,
    half_minimum,
    half_mul,
    half_neg,
    half_sub,
    pack,
    packed,
)

__all__ = [
    "BF16", "E2M1", "E2M3", "E3M2", "E4M3", "E5M2", "F16", "F32", "F64", "Format", "Rounding",
    "absolute", "add", "convert_float", "copysign", "cos_approx", "div", "div_approx",
    "div_full", "ex2_approx", "float_to_integer", "flush_subnormals", "fma", "from_narrow",
    "from_ue8m0_pair", "half_abs", "half_add", "half_ex2_approx", "half_fma", "half_maximum",
    "half_minimum", "half_mul", "half_neg", "half_sub", "half_tanh_approx",
    "halves_of_narrow_pair", "integer_to_bits", "integer_to_float", "lg2_approx", "maximum",
    "minimum", "mul", "narrow_pair", "narrow_pair_of_halves", "neg", "pack", "packed", "rcp",
    "rcp_approx", "rcp_approx_f64", "round_stochastically", "round_to_integral", "rsqrt_approx",
    "rsqrt_approx_f64", "saturate", "sin_approx", "sqrt", "sqrt_approx", "sub", "tanh_approx",
    "testp", "to_narrow", "to_tf32", "to_ue8m0",
]  # fmt: skip
