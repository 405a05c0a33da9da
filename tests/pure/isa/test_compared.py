"""The constants that a kernel compares with, by its PTX."""

from __future__ import annotations

import ptx
from ptx.isa.compared import Compared, compared_constants
from ptx.isa.module import parse


def compared(body: str) -> Compared:
    source = (
        "__device__ __noinline__ bool is_odd(float v) { return v == 6.25f; }\n"
        'extern "C" __global__ void k(float* x, int n, int pitch) {\n'
        f"    int i = threadIdx.x;\n    {body}\n}}"
    )
    options = ptx.CompileOptions(extra=("--diag-suppress=177",))  # unused variables
    return compared_constants(parse(ptx.compile(source, options).data.decode()), "k")


def test_constants_of_comparisons_are_listed_also_those_of_functions() -> None:
    found = compared("if (x[i] > 2.5f && i != 77) x[i] = is_odd(x[0]) ? 9.f : 12345.f;")
    assert {2.5, 6.25} <= set(found.floats)
    assert 77 in found.integers
    assert not {9.0, 12345.0} & set(found.floats)
    assert found.equal_arguments == ()
    assert found.equal_floats == (6.25,)


def test_a_comparison_of_a_parameter_for_equality_has_its_number() -> None:
    assert compared("if (n == 257) x[i] = 1;").equal_arguments == ((1, 257),)
    assert compared("if (pitch != 64) x[i] = n;").equal_arguments == ((2, 64),)
    assert compared("if (n > 257 || (n & 3) == 2) x[i] = 1;").equal_arguments == ()


def test_limits_are_constants_of_minima_and_maxima_also_in_loops() -> None:
    body = "float m = -100.f; for (int k = 0; k < n; ++k) m = fmaxf(m, x[k]); x[0] = m;"
    assert -100 in compared(body).limits
    assert -100 not in compared(body).floats
    assert 448 in compared("x[i] = fminf(x[i], 448.f);").limits


def test_integers_of_16_bits_are_calculated_in_conversions_and_masks() -> None:
    assert compared("unsigned short at = n * pitch; x[i] = x[at];").is_short
    assert compared("short at = n * pitch; x[i] = x[at];").is_short
    assert not compared("x[i] = x[n * pitch];").is_short
    assert not compared("((short*)x)[i] = ((short*)x)[n];").is_short
