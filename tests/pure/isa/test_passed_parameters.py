"""How functions use the parameters that calls pass, as nvJitLink of CUDA 13.0 and 13.5 has it."""

import pytest

from ptx.isa import PtxSyntaxError, parse
from tests.rows import all_rows

FUNCTIONS = """.version 9.0
.target sm_90
.address_size 64
.func f(.param .b32 a) { ret; }
.func (.param .b32 r) z() { st.param.b32 [r], 1; ret; }
.func (.param .b32 r) g(.param .b32 a) { .reg .b32 t; ld.param.b32 t, [a]; st.param.b32 [r], t; }
"""


def fault_of(text: str, name: str) -> str:
    module = parse(FUNCTIONS + text)
    try:
        module.body(name)
    except PtxSyntaxError as error:
        return error.reason
    return ""


@all_rows
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("st.param.b32 [q], 1;", ""),
        ("call (s), z; ld.param.b32 t, [s]; ld.param.b32 t, [s];", ""),
        ("st.param.b32 [q], 1; call (q), g, (q); ld.param.b32 t, [q];", ""),
        ("@p bra M; call (s), z; M: { ld.param::func.b32 t, [s]; }", ""),
        ("bra M; call (s), z; M: ld.param.b32 t, [s];", ""),
        ("@p call (s), z; ld.param.b32 t, [s];", ""),
        ("P: .callprototype (.param .b32 _) _ (); call (s), h, (), P; ld.param.b32 t, [s];", ""),
        ("ld.param.b32 t, [q];", "no call before has the result q"),
        ("st.param.b32 [q], 1; call f, (q); ld.param.b32 t, [q];", "no call before has the result"),
        ("ld.param.b32 t, [s]; call (s), z;", "no call before has the result s"),
        ("L: ld.param.b32 t, [s]; call (s), z; bra L;", "no call before has the result s"),
        ("{ .param .b32 w; ld.param.b32 t, [w]; }", "no call before has the result w"),
        ("@p st.param.b32 [q], 1; call f, (q);", "no guarded instruction accesses it"),
        ("call (s), z; @p ld.param.b32 t, [s];", "no guarded instruction accesses it"),
        ("cvta.param.u64 h, q;", "q is passed by a call, and has no address"),
    ],
)
def test_the_body_of_a_kernel_reads_results_of_calls_alone(body: str, reason: str) -> None:
    declared = ".reg .b32 t; .reg .b64 h; .reg .pred p; .param .b32 q; .param .b32 s;"
    found = fault_of(f".entry k() {{ {declared}\n{body}\nret; }}", "k")
    assert reason in found
    assert bool(found) == bool(reason)


@all_rows
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("ld.param.b32 t, [a]; st.param::func.b32 [r], t;", ""),
        ("@p ld.param.b32 t, [a]; @!p st.param.b32 [r], t;", ""),
        ("mov.b64 h, r; ld.param.b32 t, [h]; mov.b64 h, a; st.param.b32 [h], t;", ""),
        ("cvta.param.u64 h, r; ld.b32 t, [h];", ""),
        ("st.param.b32 [a], 1;", "a is a parameter of this function, which only reads it"),
        ("st.param::func.b32 [a+0], 1;", "a is a parameter of this function"),
        ("ld.param.b32 t, [r];", "r is the result of this function, which only writes it"),
        ("ld.param::func.b32 t, [r+0];", "r is the result of this function"),
        ("call f, (a);", "does not fit a"),
        ("call (r), z;", "does not fit r"),
        ("call (t), g, (r);", "does not fit a"),
    ],
)
def test_a_function_reads_its_parameters_writes_its_result_and_passes_neither(
    body: str, reason: str
) -> None:
    declared = ".reg .b32 t; .reg .b64 h; .reg .pred p;"
    text = f".func (.param .b32 r) e(.param .b32 a) {{ {declared}\n{body}\nret; }}"
    found = fault_of(text, "e")
    assert reason in found
    assert bool(found) == bool(reason)
