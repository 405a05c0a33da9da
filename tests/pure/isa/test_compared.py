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
