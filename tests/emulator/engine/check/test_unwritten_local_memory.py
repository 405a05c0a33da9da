"""Reads of local memory that nothing has written: wrong kernels and their right twins."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ptx
from ptx.emulate.model.errors import UninitialisedRead
from ptx.emulate.threads.limits import Limits
from tests.rows import all_rows

from ..kernel_runner import KernelRunner

# A body whose `$` is one text in the right kernel and another one in the wrong one. `o` is 0, which
# the compiler does not know.
_PROGRAMS = {
    "first_element_left_out": (
        "int x[8]; for (int k = $; k < 8; k++) x[(k + n) & 7] = i; o[i] = x[n & 7] + x[3];",
        "0", "1",
    ),
    "last_element_left_out": (
        "int x[8]; for (int k = 0; k < $; k++) x[(k + n) & 7] = i;"
        " int s = 0; for (int k = 0; k < 8; k++) s += x[(k + n) & 7]; o[i] = s;",
        "8", "7",
    ),
    "written_by_some_threads": (
        "int x[4]; $ x[n & 3] = i; o[i] = x[(n + o[i]) & 3];", "if (i >= 0)", "if (i % 2)",
    ),
    "one_byte_left_out": (
        "union { char c[8]; int v[2]; } x; for (int k = 0; k < $; k++) x.c[(k + n) & 7] = k;"
        " o[i] = x.v[0] + x.v[1];",
        "8", "7",
    ),
    "filled_by_a_function": (
        "int x[4]; fill(x, $); o[i] = x[n & 3] + x[(n + 1) & 3];", "4", "3",
    ),
    "member_left_out": (
        "AccessPair x[2]; x[n & 1].a = i; $ x[(n + 1) & 1].b = n; o[i] = x[(n + o[i]) & 1].b;",
        "x[n & 1].b = n;", "",
    ),
}  # fmt: skip
_RIGHT = {
    "padding": "Padded x[2]; x[n & 1].c = i; x[n & 1].v = 1; ((Padded*)o)[i] = x[n & 1];",
    "one_element_used": "int x[4]; x[n & 3] = i; o[i] = x[n & 3];",
}
_BEFORE = """
struct AccessPair { int a, b; };
struct Padded { char c; int v; };
__device__ __noinline__ void fill(int* x, int n) { for (int k = 0; k < n; k++) x[k] = k; }
"""


@functools.cache
def _text(debug: bool) -> str:
    bodies = dict(_RIGHT)
    for name, (body, right, wrong) in _PROGRAMS.items():
        bodies[f"{name}_right"] = body.replace("$", right)
        bodies[f"{name}_wrong"] = body.replace("$", wrong)
    source = _BEFORE + "\n".join(
        f'extern "C" __global__ void {name}(int* o, int n) {{\n'
        f"  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}"
        for name, body in bodies.items()
    )
    options = ptx.CompileOptions(
        target=ptx.Target.ptx("compute_90"), lineinfo=not debug, debug=debug
    )
    made = ptx.compile(source, options, name="local.cu").ptx
    assert made is not None
    return made


def _launch(kernel: str, threads: int, debug: bool) -> None:
    runner = KernelRunner(_text(debug))
    o = runner.put(np.zeros(2 * threads, dtype=np.int32))
    block = min(threads, 128)
    limits = Limits(checks={"undefined"})
    runner.launch(kernel, -(-threads // block), block, o, 3, limits=limits)


@all_rows
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("threads", [1, 33, 640])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_read_of_what_the_thread_has_not_written_is_a_fault(
    name: str, threads: int, debug: bool
) -> None:
    with pytest.raises(UninitialisedRead, match="local address") as caught:
        _launch(f"{name}_wrong", threads, debug)
    where = caught.value.where
    assert (where.source_file or "").endswith("local.cu")
    assert where.thread is not None
    if name == "written_by_some_threads":
        assert where.thread[0] % 2 == 0


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("threads", [1, 33, 640])
@pytest.mark.parametrize("name", [f"{each}_right" for each in _PROGRAMS] + list(_RIGHT))
def test_a_right_kernel_is_not_stopped(name: str, threads: int, debug: bool) -> None:
    _launch(name, threads, debug)
