"""Reads of registers that nothing on the way has written: wrong kernels and their right twins."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ptx
from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.threads.limits import Limits
from tests.rows import all_rows

from ..kernel_runner import KernelRunner

_BODIES = {
    "operand": 'int x$; asm volatile("add.s32 %0, %0, 1;" : "+r"(x)); o[i] = x;',
    "second_operand": 'int x$, y; asm volatile("add.s32 %0, %1, 1;" : "=r"(y) : "r"(x)); o[i] = y;',
    "scope": 'int x; asm volatile("{.reg .s32 t; $$mov.s32 %0, 0; add.s32 %0, t, 1;}" : "=r"(x));'
    " o[i] = x;",
    "predicate": 'int x = 0; asm volatile("{.reg .pred p; $$@p bra OUT; mov.s32 %0, 1; OUT:}"'
    ' : "+r"(x)); o[i] = x;',
    "chain": 'int x$; asm volatile("{.reg .s32 t; mul.lo.s32 t, %0, 3; add.s32 %0, t, t;}"'
    ' : "+r"(x)); o[i] = x;',
    "in_a_branch": 'int x$; if (n > 0) { asm volatile("neg.s32 %0, %0;" : "+r"(x)); o[i] = x; }',
    "in_a_function": "o[i] = twice$(n);",
    "on_a_path": "int x$; for (int k = 0; k < i % 2 + o[i]; k++) x = k + n * x; o[i] = x;",
    "without_an_iteration": "float x$; for (int k = 0; k < o[i]; k++) x = sinf(k); o[i] = x;",
    "as_a_condition": "bool x$; for (int k = 0; k < o[i]; k++) x = k % n; if (x) o[i] = 3;",
}
_SETS = {
    "scope": "mov.s32 t, 5; ",
    "predicate": "setp.ge.s32 p, %0, 0; ",
}
_FUNCTIONS = """
__device__ __noinline__ int twice_wrong(int n) {
  int x; asm volatile("mad.lo.s32 %0, %0, 2, 1;" : "+r"(x)); return x + n;
}
__device__ __noinline__ int twice_right(int n) {
  int x = n; asm volatile("mad.lo.s32 %0, %0, 2, 1;" : "+r"(x)); return x + n;
}
"""
# AsyncCopies of what has no value, and values that no thread uses.
_COPIES = {
    "half_of_a_vector": "int2 x; x.x = n; ((int2*)o)[i] = x;",
    "lanes_that_nobody_asks": "int x; if (i % 32 < 4) x = n + i;"
    " x = __shfl_sync(0xffffffff, x, i % 4); o[i] = x;",
    "written_by_some": "int x; if (i % 2) x = o[i]; if (i % 2) o[i] = x + 1;",
    "loop": "int x; for (int k = 0; k < n + 1; k++) { if (k == 0) x = i; else x += k; } o[i] = x;",
}


def _kernel(name: str, right: bool) -> str:
    body = _BODIES[name].replace("$$", _SETS.get(name, "") if right else "")
    if name == "in_a_function":
        body = body.replace("$", "_right" if right else "_wrong")
    return body.replace("$", " = i" if right else "")


@functools.cache
def _text(debug: bool) -> str:
    kernels = [
        (f"{name}_{'right' if right else 'wrong'}", _kernel(name, right))
        for name in _BODIES
        for right in (False, True)
    ] + list(_COPIES.items())
    source = _FUNCTIONS + "\n".join(
        f'extern "C" __global__ void {name}(int* o, int n) {{\n'
        f"  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}"
        for name, body in kernels
    )
    options = ptx.CompileOptions(
        target=ptx.Target.ptx("compute_90"),
        lineinfo=not debug,
        debug=debug,
        extra=("-w",),  # the compiler sees some of the faults, too
    )
    made = ptx.compile(source, options, name="registers.cu").ptx
    assert made is not None
    return made


_HEADER = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 o, .param .u32 n)
{ .reg .b64 %a; .reg .b32 %r<4>; .reg .pred %p;
"""
_ONE_PATH = """
ld.param.u64 %a, [o];
ld.param.u32 %r3, [n];
setp.gt.s32 %p, %r3, 3;
@!%p bra AROUND;
"""


def found_in(
    kernel: str, threads: int, *, debug: bool = False, text: str | None = None
) -> list[Finding]:
    """What the check finds in a launch."""
    runner = KernelRunner(text or _text(debug))
    runner.memory.watch_writes()
    o = runner.put(np.zeros(2 * threads, dtype=np.int32))
    runner.memory.mark_written(o, 8 * threads)
    findings = Findings()
    limits = Limits(checks={"unwritten", "undefined"}, findings=findings)
    block = min(threads, 128)
    runner.launch(kernel, -(-threads // block), block, o, 3, limits=limits)
    return findings.found


@all_rows
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("threads", [1, 32, 640])
@pytest.mark.parametrize("name", _BODIES)
def test_a_register_without_a_value_is_found(name: str, threads: int, debug: bool) -> None:
    found = found_in(f"{name}_wrong", threads, debug=debug)
    assert found
    for each in found:
        assert (each.check, each.space, each.benign) == ("init", "register", "")
        assert each.places[0].line is not None
        assert str(each).startswith(f"init: kernel {name}_wrong, registers {each.variable} of PTX")


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("threads", [1, 32, 640])
@pytest.mark.parametrize("name", _BODIES)
def test_its_correct_version_is_not_reported(name: str, threads: int, debug: bool) -> None:
    assert [str(each) for each in found_in(f"{name}_right", threads, debug=debug)] == []


@pytest.mark.parametrize("threads", [32, 640])
@pytest.mark.parametrize("name", _COPIES)
def test_what_is_only_copied_may_have_no_value(name: str, threads: int) -> None:
    assert [str(each) for each in found_in(name, threads)] == []


def test_a_register_of_a_scope_has_the_name_of_the_text() -> None:
    (found,) = found_in("scope_wrong", 32)
    assert found.variable == "t"


@pytest.mark.parametrize(
    ("written", "registers"),
    [("%r1", []), ("%r2", []), ("%r3", ["%r1"])],
    ids=["one of a vector", "the other", "none"],
)
def test_a_vector_is_found_if_none_of_its_elements_has_a_value(
    written: str, registers: list[str]
) -> None:
    body = f"""{_ONE_PATH}
    mov.u32 %r1, 1; mov.u32 %r2, 2;
    AROUND: @!%p mov.u32 {written}, 5;
    st.global.v2.u32 [%a], {{%r1, %r2}}; }}"""
    found = found_in("k", 32, text=_HEADER + body)
    assert [each.variable for each in found] == registers


def test_a_function_that_jumps_to_its_first_instruction_is_not_checked() -> None:
    body = f"FIRST: add.s32 %r1, %r1, 1; {_ONE_PATH} bra FIRST; AROUND: st.global.u32 [%a], %r1; }}"
    assert found_in("k", 32, text=_HEADER + body) == []
    body = f"{_ONE_PATH} AROUND: add.s32 %r1, %r1, 1; st.global.u32 [%a], %r1; }}"
    assert [each.variable for each in found_in("k", 32, text=_HEADER + body)] == ["%r1"]
