"""What becomes of values that come from shared memory which nothing has written.

A copy that nobody needs is no fault; a branch, an address, a result that depends on it is one.
"""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import ptx
from ptx.emulate.model.errors import UninitialisedRead
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.rows import all_rows

from ..kernel_runner import KernelRunner

# `n` elements of `s` are written, of as many as threads and one more. What stands between `$` and
# `$` is in the right kernel, what follows up to the next `$` in the wrong one.
_PROGRAMS = {
    "looked_at_beyond_the_end": (
        "int a = s[i + 1]; bool p = $i + 1 < n$i < n$ & (a < 5); o[i] = p ? a : -1;"
    ),
    "chosen": "int a = s[i], b = s[i + 1]; o[i] = $i + 1 < n$i < n$ ? a + b : 7;",
    "read_ahead": (
        "int next = s[0], sum = 0;"
        " for (int k = 0; k < $n$n + 1$; k++) { int now = next; next = s[k + 1]; sum += now; }"
        " o[i] = sum;"
    ),
    "masked": "o[i] = s[i + 1] & ($i + 1 < n$i < n$ ? -1 : 0);",
    "filled_up": "o[i] = s[i + 1] | ($i + 1 < n$i < n$ ? 0 : -1);",
    "copied_to_others": ("t[i] = s[i + 1]; __syncthreads(); if (i < $n - 1$n$) o[i] = t[i] * 3;"),
    "given_to_a_function": ("int a = s[i + 1]; o[i] = twice(a, $i + 1 < n$i < n$);"),
    "guard": "int a = s[i + 1], b = 2; if ($i + 1 < n && $$a > 3) b = a; o[i] = b;",
    "address": "int a = s[i + 1]; if (i < $n - 1$n$) o[i] = s[a % n];",
    "outside": (
        "int a = s[i + 1]; volatile int* v = o;"
        " if (i < $n - 1$n$) { v[i] = a; if (a == -5) v[0] = 1; }"
    ),
    "added": "int a = s[i + 1]; if (i < $n - 1$n$) atomicAdd(&o[0], a);",
    "shuffled": (
        "int a = s[i + $0$1$]; if (i < n) o[i] = __shfl_xor_sync(__activemask(), a, 0) + 1;"
    ),
    "given_to_the_next_lane": (
        "int a = s[i + 1], b = __shfl_up_sync(~0u, a, 1); o[i] = $i % 32 ? b : 0$a + b$;"
    ),
    "voted": "int a = s[i + 1]; o[i] = __any_sync(~0u, (i % 32 == $0$40$ ? 7 : a) > 6);",
    "overwritten": "int a = s[i + 1]; $if (i + 1 >= n) a = 3;$$ o[i] = a * a;",
    "vector": (
        "int2 a = *(int2*)&s[2 * (i / 2)]; o[i] = i < n ? a.x + $0$(n % 2 ? a.y : s[n])$ : 2;"
    ),
}
_BEFORE = """
__device__ __noinline__ int twice(int a, bool p) { return p ? 2 * a : 1; }
"""


def _side(body: str, wrong: bool) -> str:
    return re.sub(r"\$([^$]*)\$([^$]*)\$", lambda found: found[2 if wrong else 1], body)


@functools.cache
def _text(debug: bool) -> str:
    source = _BEFORE + "\n".join(
        f'extern "C" __global__ void {name}_{"wrong" if wrong else "right"}(int* o, int n) {{\n'
        f"  __shared__ __align__(8) int s[1026], t[1026]; const int i = threadIdx.x;\n"
        f"  if (i < n) s[i] = i % 7; __syncthreads();\n  {_side(body, wrong)}\n}}"
        for name, body in _PROGRAMS.items()
        for wrong in (False, True)
    )
    options = ptx.CompileOptions(
        target=ptx.Target.ptx("compute_90"),
        lineinfo=not debug,
        debug=debug,
        extra=("-w",),  # the compiler sees some of the faults, too
    )
    made = ptx.compile(source, options, name="undefined.cu").ptx
    assert made is not None
    return made


CHECKED = Limits(checks={"undefined"})


def _result(
    kernel: str, threads: int, debug: bool, limits: Limits, order: LaunchOrder | None = None
) -> list[int]:
    runner = KernelRunner(_text(debug))
    o = runner.put(np.zeros(threads, dtype=np.int32))
    runner.launch(kernel, 3, threads, o, threads, limits=limits, order=order)
    found: list[int] = runner.get(o, threads, np.int32).tolist()
    return found


# Code for a debugger copies the vector to local memory, as it would the padding of a structure.
@all_rows
@pytest.mark.parametrize(
    ("name", "debug"),
    [
        (name, debug)
        for name in _PROGRAMS
        for debug in (False, True)
        if name != "vector" or not debug
    ],
)
@pytest.mark.parametrize("threads", [3, 33, 513])
def test_a_value_that_nothing_has_written_is_a_fault_where_it_is_needed(
    name: str, threads: int, debug: bool
) -> None:
    with pytest.raises(UninitialisedRead, match="shared address") as caught:
        _result(f"{name}_wrong", threads, debug, CHECKED)
    assert (caught.value.where.source_file or "").endswith("undefined.cu")


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("threads", [3, 33, 512])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_one_that_is_not_needed_is_none(name: str, threads: int, debug: bool) -> None:
    found = _result(f"{name}_right", threads, debug, CHECKED)
    assert found == _result(f"{name}_right", threads, debug, Limits())


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("name", _PROGRAMS)
def test_the_same_where_threads_run_apart(name: str) -> None:
    for seed in range(3):
        order = LaunchOrder("random", seed)
        found = _result(f"{name}_right", 65, False, CHECKED, order)
        assert found == _result(f"{name}_right", 65, False, Limits())
        with pytest.raises(UninitialisedRead):
            _result(f"{name}_wrong", 65, False, CHECKED, order)


@pytest.mark.slow
@pytest.mark.parametrize("n", [256, 255, 130, 3])
def test_a_merge_sort_of_cub_may_look_at_one_element_past_its_own(n: int) -> None:
    text = _sorting()
    keys = np.random.default_rng(n).integers(0, 1000, 256).astype(np.int32)
    keys[n:] = 2**31 - 1
    runner = KernelRunner(text)
    address = runner.put(keys)
    runner.launch("sort", 1, 64, address, n, limits=CHECKED)
    assert runner.get(address, n, np.int32).tolist() == sorted(keys[:n].tolist())


@functools.cache
def _sorting() -> str:
    source = """
#include <cub/block/block_merge_sort.cuh>
struct Less { __device__ bool operator()(int a, int b) const { return a < b; } };
extern "C" __global__ void sort(int* keys, int n)
{
    using Sort = cub::BlockMergeSort<int, 64, 4>;
    __shared__ typename Sort::TempStorage temp;
    int mine[4];
    for (int i = 0; i < 4; ++i) mine[i] = keys[threadIdx.x * 4 + i];
    Sort(temp).Sort(mine, Less(), n, 2147483647);
    for (int i = 0; i < 4; ++i) keys[threadIdx.x * 4 + i] = mine[i];
}
"""
    try:
        made = ptx.compile(source, ptx.CompileOptions(target=ptx.Target.ptx("compute_90"))).ptx
    except ptx.HeaderNotFoundError:
        pytest.skip("needs CUB's headers")
    assert made is not None
    return made
