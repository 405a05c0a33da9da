"""Repairs of findings: the ones that heal a planted fault are named, and the others are not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudadrv.testing import strategies as st
from cudadrv.testing.verify import Finding, KernelCase, Repair, Verdict, VerifyOptions, verify

QUICK = VerifyOptions(examples=10, seconds=600, database=None, checks=("race", "init", "bounds"))
N = st.sizes(1, 80)
G = st.sizes(1, 3)


def repairs_of(case: KernelCase, check: str, options: VerifyOptions = QUICK) -> tuple[Repair, ...]:
    return finding_of(case, check, options).repairs


def finding_of(case: KernelCase, check: str, options: VerifyOptions = QUICK) -> Finding:
    verdict = verify(case, options)
    return next(each for each in verdict.findings if each.check == check)


def race_of(verdict: Verdict) -> Finding:
    return next(each for each in verdict.findings if each.check == "race")


def healing(repairs: tuple[Repair, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in repairs:
        if each.healed:
            found.setdefault(each.kind, []).append(each.text)
    return found


REVERSE = """extern "C" __global__ void reverse(int n, int* x) {
    extern __shared__ int each[];
    each[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = each[n - 1 - threadIdx.x];
}"""


def reverse() -> KernelCase:
    return KernelCase(
        REVERSE,
        arguments={"n": N, "x": st.arrays(np.int32, N)},
        launch=st.launch_configs(blocks=1, block=N, shared_bytes=lambda block: 4 * block),
        reference=lambda x: {"x": x[::-1]},
    )


@pytest.fixture(scope="module")
def reversed_verdict() -> Verdict:
    return verify(reverse(), QUICK)


@pytest.mark.slow
def test_a_barrier_heals_a_race_of_a_block(reversed_verdict: Verdict) -> None:
    repairs = race_of(reversed_verdict).repairs
    found = healing(repairs)
    assert set(found) == {"barrier"}
    assert found["barrier"][0] == "__syncthreads() after kernel.cu:3"
    first = next(each for each in repairs if each.healed)
    assert first.line is not None
    assert (first.line.line, first.line.what) == (3, "after")
    assert first.line.text == "each[threadIdx.x] = x[threadIdx.x];"
    # The smallest example has two threads of one warp; a larger one has several warps.
    assert {each.change for each in repairs if not each.healed} >= {"__syncwarp()"}


@pytest.mark.slow
def test_a_verdict_lists_the_repairs_in_text_and_json(reversed_verdict: Verdict) -> None:
    verdict = reversed_verdict
    lines = [line.strip() for line in str(verdict).splitlines()]
    assert "repair: __syncthreads() after kernel.cu:3 heals it" in lines
    assert any(line.startswith("does not heal it: __syncwarp(), ") for line in lines)
    again = Verdict.from_json(json.loads(json.dumps(verdict.to_json())))
    assert again.findings[0].repairs == verdict.findings[0].repairs


@pytest.mark.slow
def test_no_repairs_are_tried_without_explain() -> None:
    options = VerifyOptions(examples=10, database=None, checks=("race",), explain=False)
    assert repairs_of(reverse(), "race", options) == ()


@pytest.mark.slow
def test_repairs_are_the_same_each_time(reversed_verdict: Verdict) -> None:
    assert repairs_of(reverse(), "race") == race_of(reversed_verdict).repairs


@pytest.mark.slow
def test_a_warp_barrier_heals_a_race_of_a_warp() -> None:
    case = KernelCase(
        REVERSE,
        arguments={"n": (n := st.sizes(1, 32)), "x": st.arrays(np.int32, n)},
        launch=st.launch_configs(blocks=1, block=n, shared_bytes=lambda block: 4 * block),
        reference=lambda x: {"x": x[::-1]},
    )
    assert set(healing(repairs_of(case, "race"))) == {"barrier", "warp barrier"}


@pytest.mark.slow
@pytest.mark.parametrize("unrolled", ["", "#pragma unroll\n"])
def test_a_barrier_of_a_loop_heals_it_outside_of_a_branch(unrolled: str) -> None:
    source = f"""extern "C" __global__ void total(const int* x, int* out) {{
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 128 + t];
    __syncthreads();
    {unrolled or "#pragma unroll 1"}
    for (int k = 64; k > 0; k /= 2) {{
        if (t < k)
            s[t] += s[t + k];
    }}
    if (t == 0) out[blockIdx.x] = s[0];
}}"""
    case = KernelCase(
        source,
        arguments={"x": st.arrays(np.int32, (G, 128)), "out": st.unwritten(np.int32, G)},
        launch=st.launch_configs(blocks=G, block=128),
        reference=lambda x: {"out": x.sum(1, dtype=np.int32)},
    )
    found = healing(repairs_of(case, "race"))
    assert set(found) == {"barrier"}
    assert all("outside" in each and "branch" in each for each in found["barrier"])


@pytest.mark.slow
def test_a_barrier_is_for_one_call_of_an_inlined_function() -> None:
    source = """__device__ void twice(int* s, int at, int from) {
    s[at] = s[from] * 2;
}
extern "C" __global__ void turn(int* x) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    twice(s, t + 64, 63 - t);
    if (t % 2)
        twice(s, t, t);
    x[t] = s[t + 64];
}"""
    case = KernelCase(
        source,
        arguments={"x": st.arrays(np.int32, 64)},
        launch=st.launch_configs(blocks=1, block=64),
        reference=lambda x: {"x": 2 * x[::-1]},
    )
    options = VerifyOptions(examples=5, database=None, checks=("race", "sync"))
    texts = [each.text for each in repairs_of(case, "race", options)]
    assert any(each.endswith("kernel.cu:2, called at kernel.cu:8") for each in texts), texts


@pytest.mark.slow
def test_a_barrier_in_the_source_heals_what_none_in_the_ptx_does() -> None:
    # NVRTC lets thread 0 use its own value, and the others load within a branch.
    source = """extern "C" __global__ void share(int n, int* x) {
    __shared__ int first;
    if (threadIdx.x == 0)
        first = n;
    x[threadIdx.x] = first;
}"""
    case = KernelCase(
        source,
        arguments={"n": st.numbers(np.int32), "x": st.unwritten(np.int32, 64)},
        launch=st.launch_configs(blocks=1, block=64),
        reference=lambda n: {"x": np.full(64, n, np.int32)},
    )
    options = VerifyOptions(examples=5, database=None, checks=("race",))
    found = healing(repairs_of(case, "race", options))
    assert found["barrier"] == ["__syncthreads() in the source before kernel.cu:5"]


@pytest.mark.slow
def test_volatile_accesses_do_not_stand_in_for_a_barrier() -> None:
    source = """extern "C" __global__ void total(const int* x, int* out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t] + x[t + 64];
    for (int k = 32; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) out[0] = s[0];
}"""
    case = KernelCase(
        source,
        arguments={"x": st.arrays(np.int32, 128), "out": st.unwritten(np.int32, 1)},
        launch=st.launch_configs(blocks=1, block=64),
        reference=lambda x: {"out": x.sum(keepdims=True, dtype=np.int32)},
    )
    repairs = repairs_of(case, "race")
    assert set(healing(repairs)) == {"barrier"}
    assert "volatile" in {each.kind for each in repairs}


@pytest.mark.slow
def test_an_atomic_heals_a_race_of_several_blocks() -> None:
    source = """extern "C" __global__ void count(int n, int* total) {
    if (blockIdx.x * blockDim.x + threadIdx.x < n)
        *total += 1;
}"""
    case = KernelCase(
        source,
        arguments={"n": N, "total": st.arrays(np.int32, 1)},
        launch=st.launch_configs(threads=N),
        reference=lambda n, total: {"total": total + n},
    )
    repairs = repairs_of(case, "race")
    assert healing(repairs) == {"atomic": ["an atomic operation at kernel.cu:3"]}
    assert [each.leaves for each in repairs if each.kind == "volatile"] == ["race"]


@pytest.mark.slow
def test_a_fence_or_its_wider_scope_heals_the_sum_of_the_last_block() -> None:
    source = """extern "C" __global__ void sum(const int* x, int* part, int* count, int* total) {
    part[blockIdx.x] = 2 * x[blockIdx.x];
    __threadfence_block();
    if (atomicAdd(count, 1) == 1) {
        __threadfence();
        total[0] = part[0] + part[1];
    }
}"""
    case = KernelCase(
        source,
        arguments={
            "x": st.arrays(np.int32, 2),
            "part": st.unwritten(np.int32, 2),
            "count": np.zeros(1, np.int32),
            "total": st.unwritten(np.int32, 1),
        },
        launch=st.launch_configs(blocks=2, block=1),
        reference=lambda x: {
            "part": 2 * x,
            "count": np.array([2], np.int32),
            "total": np.array([2 * x.sum()], np.int32),
        },
    )
    options = VerifyOptions(examples=3, database=None, checks=("race",))
    found = healing(repairs_of(case, "race", options))
    assert found["fence"] == ["__threadfence() after kernel.cu:2"]
    assert found["scope"] == ["a wider scope at kernel.cu:3"]


@pytest.mark.slow
def test_a_bound_and_a_guard_heal_an_access_past_the_end() -> None:
    source = """extern "C" __global__ void fill(int n, int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        x[i] = i;
}"""
    case = KernelCase(
        source,
        arguments={"n": N, "x": st.unwritten(np.int32, N)},
        launch=st.launch_configs(threads=N),
        reference=lambda n: {"x": np.arange(n)},
    )
    found = healing(repairs_of(case, "bounds"))
    assert found["bound"] == ["another bound at kernel.cu:3 (< in place of <=)"]
    assert found["guard"] == ["a return at the start if blockIdx.x * blockDim.x + threadIdx.x >= n"]


@pytest.mark.slow
def test_a_comparison_that_the_compiler_has_changed_is_shown_in_ptx() -> None:
    # In PTX the limit is 10, so that another comparison there is no other comparison in CUDA.
    source = """extern "C" __global__ void fill(int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 11)
        x[i] = i;
}"""
    case = KernelCase(
        source,
        arguments={"x": st.unwritten(np.int32, 10)},
        launch=st.launch_configs(threads=16),
        reference=lambda: {"x": np.arange(10)},
    )
    assert (
        "another bound at kernel.cu:3 (setp.ge.s32 in place of setp.gt.s32)"
        in (healing(repairs_of(case, "bounds"))["bound"])
    )


@pytest.mark.slow
def test_a_smaller_grid_heals_a_launch_of_too_many_blocks() -> None:
    source = 'extern "C" __global__ void fill(int* x) { x[blockIdx.x] = blockIdx.x; }'
    case = KernelCase(
        source,
        arguments={"x": st.unwritten(np.int32, N)},
        launch=st.launch_configs(blocks=N + 1, block=1),
        reference=lambda x: {"x": np.arange(len(x))},
    )
    assert healing(repairs_of(case, "bounds")) == {"launch": ["one block less"]}


@pytest.mark.slow
def test_another_bound_heals_a_wrong_value() -> None:
    source = """extern "C" __global__ void fill(int n, int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1)
        x[i] = 7;
}"""
    case = KernelCase(
        source,
        arguments={"n": N, "x": st.arrays(np.int32, N)},
        launch=st.launch_configs(threads=N),
        reference=lambda x: {"x": np.full_like(x, 7)},
    )
    assert "bound" in healing(repairs_of(case, "values"))


@pytest.mark.slow
def test_zeros_heal_a_sum_into_unwritten_memory() -> None:
    source = """extern "C" __global__ void sum(int n, const int* x, int* total) {
    if (threadIdx.x < n) atomicAdd(total, x[threadIdx.x]);
}"""
    case = KernelCase(
        source,
        arguments={"n": N, "x": st.arrays(np.int32, N), "total": st.unwritten(np.int32, 1)},
        launch=st.launch_configs(blocks=1, block=N),
        reference=lambda x: {"total": x.sum(dtype=np.int32)},
    )
    assert healing(repairs_of(case, "init")) == {"initial": ["zeros in total before the launch"]}


@pytest.mark.slow
def test_a_barrier_is_moved_out_of_a_branch() -> None:
    source = """extern "C" __global__ void add(int n, int* x) {
    __shared__ int s[96];
    s[threadIdx.x] = 0;
    if (threadIdx.x < n) {
        s[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
    }
    int y = s[95 - threadIdx.x];
    __syncthreads();
    s[threadIdx.x] = y + 1;
    __syncthreads();
    if (threadIdx.x < n) x[threadIdx.x] = s[95 - threadIdx.x];
}"""
    case = KernelCase(
        source,
        arguments={"n": N, "x": st.arrays(np.int32, N)},
        launch=st.launch_configs(blocks=1, block=96),
        reference=lambda x: {"x": x + 1},
    )
    options = VerifyOptions(examples=10, database=None, checks=("sync", "race"))
    repairs = repairs_of(case, "sync", options)
    assert healing(repairs) == {
        "barrier": ["the barrier after kernel.cu:6, outside the branch of kernel.cu:4"]
    }
    assert "no barrier" in {each.change for each in repairs if each.leaves == "race"}


@pytest.mark.slow
def test_a_stream_wait_heals_a_program() -> None:
    source = """extern "C" __global__ void add(int n, int* x) {
    if (threadIdx.x < n) x[threadIdx.x] += 1;
}"""

    def program(stream: Any, module: Any, config: Any, *args: object) -> None:  # as documented
        with stream.context.new_stream() as other:
            other.wait(stream)
            with other.unordered():
                module.kernel("add").launch(stream, config, *args)
                module.kernel("add").launch(other, config, *args)
            stream.wait(other)

    case = KernelCase(
        source,
        arguments={"n": N, "x": st.arrays(np.int32, N)},
        program=program,
        launch=st.launch_configs(blocks=1, block=N),
        reference=lambda x: {"x": x + 2},
    )
    repairs = repairs_of(case, "race")
    assert [(each.kind, each.healed) for each in repairs] == [("wait", True)]
    first = program.__code__.co_firstlineno + 4
    assert repairs[0].text == (
        f"a stream wait between test_repairs.py:{first} and test_repairs.py:{first + 1}"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("waits_before", "text"),
    [(False, "the start of the program and"), (True, "and the end of the program")],
)
def test_a_stream_wait_heals_an_end_of_a_program(waits_before: bool, text: str) -> None:
    source = """extern "C" __global__ void add(int n, int* x, int* y) {
    if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + 1;
}"""

    def program(stream: Any, module: Any, config: Any, *args: object) -> None:  # as documented
        with stream.context.new_stream() as other:
            if waits_before:
                other.wait(stream)
            with other.unordered():
                module.kernel("add").launch(other, config, *args)
            if not waits_before:
                stream.wait(other)
            # The stream closes here, before the end of the program.

    case = KernelCase(
        source,
        program=program,
        launch=st.launch_configs(blocks=1, block=N),
        arguments={"n": N, "x": st.arrays(np.int32, N), "y": st.unwritten(np.int32, N)},
        reference=lambda x: {"y": x + 1},
    )
    finding = finding_of(case, "race")
    assert [(each.kind, each.healed) for each in finding.repairs] == [("wait", True)]
    assert text in finding.repairs[0].text
    # The copies are those of the verification, wherever it was called.
    assert " of the verification" in finding.text
    assert [each.file for each in finding.lines].count(None) == 1


def stencil() -> KernelCase:
    n = st.sizes(3, 40)

    def sums(**arrays: Any) -> None:  # by the names of the arguments
        out, x = arrays["out"], arrays["x"]
        out[1:-1] = x[:-2] + x[1:-1] + x[2:]

    return KernelCase(
        """extern "C" __global__ void sums(int n, const int* x, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n)
        out[i] = x[i - 1] + x[i] + x[i + 1];
}""",
        arguments={"n": n, "x": st.arrays(np.int32, n), "out": st.arrays(np.int32, n)},
        launch=st.launch_configs(threads=n),
        reference=sums,
    )


@pytest.mark.slow
def test_a_smaller_limit_heals_a_stencil() -> None:
    healed = healing(repairs_of(stencil(), "bounds"))
    assert healed["bound"] == ["another bound at kernel.cu:3 (the limit less 1)"]


@pytest.mark.slow
def test_repairs_of_a_stored_failure_run_on_further_examples(tmp_path: Path) -> None:
    options = replace(QUICK, database=tmp_path)
    first = healing(repairs_of(stencil(), "bounds", options))
    assert healing(repairs_of(stencil(), "bounds", options)) == first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mask", "check"), [("0xffffu", "sync"), ("t < 16 ? 0xffffu : 0xffff0000u", "race")]
)
def test_a_full_member_mask_heals_a_warp(mask: str, check: str) -> None:
    case = KernelCase(
        f"""extern "C" __global__ void turn(const int* x, int* out) {{
    __shared__ int tile[32];
    int t = threadIdx.x;
    tile[t] = x[t];
    __syncwarp({mask});
    out[t] = tile[31 - t];
}}""",
        arguments={"x": st.arrays(np.int32, 32), "out": st.arrays(np.int32, 32)},
        launch=st.launch_configs(blocks=1, block=32),
        reference=lambda x: {"out": x[::-1]},
    )
    options = replace(QUICK, checks=("race", "sync"))
    assert healing(repairs_of(case, check, options))["mask"] == [
        "a full member mask at kernel.cu:5"
    ]


STAGE = """#include <cuda_pipeline.h>
extern "C" __global__ void stage(const int* x, int* out) {
    __shared__ int tile[64];
    __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    WAIT
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wait", "repair"),
    [
        ("__syncthreads();", "cp.async.wait_all before kernel.cu:6"),
        (
            "__pipeline_wait_prior(1); __syncthreads();",
            "a wait for more copies at kernel.cu:6 (cp.async.wait_group 0 in place of "
            "cp.async.wait_group 1)",
        ),
        ("", "cp.async.wait_all and __syncthreads() after kernel.cu:4"),
    ],
)
def test_a_wait_heals_an_asynchronous_copy(wait: str, repair: str) -> None:
    case = KernelCase(
        STAGE.replace("WAIT", wait),
        arguments={"x": st.arrays(np.int32, 64), "out": st.arrays(np.int32, 64)},
        launch=st.launch_configs(blocks=1, block=64),
        reference=lambda x: {"out": x[np.arange(64) ^ 1]},
    )
    assert healing(repairs_of(case, "race"))["wait"][0] == repair


@pytest.mark.slow
def test_an_operator_of_an_unrolled_loop_is_changed_in_all_of_its_copies() -> None:
    source = """extern "C" __global__ void near(int n, const float* x, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = -2; k <= 2; k++)
        sum -= i + k >= 0 && i + k < n ? x[i + k] : 0.0f;
    out[i] = sum;
}"""
    case = KernelCase(
        source,
        arguments={"n": N, "x": st.arrays(np.float32, N), "out": st.unwritten(np.float32, N)},
        launch=st.launch_configs(threads=N),
        reference=lambda x: {"out": np.convolve(x, np.ones(5, np.float32))[2:-2]},
    )
    (healed,) = healing(repairs_of(case, "values"))["operator"]
    assert "add.f32 in place of sub.f32" in healed


@pytest.mark.slow
def test_the_bound_of_a_loop_is_changed_before_the_loop_and_in_it() -> None:
    source = """extern "C" __global__ void copy(int n, const int* x, int* y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i <= n; i += gridDim.x * blockDim.x)
        y[i] = x[i];
}"""
    case = KernelCase(
        source,
        arguments={"n": N, "x": st.arrays(np.int32, N), "y": st.unwritten(np.int32, N)},
        launch=st.launch_configs(threads=N, loops=True),
        reference=lambda x: {"y": x},
    )
    (healed,) = healing(repairs_of(case, "bounds"))["bound"]
    assert healed.startswith("another bound at kernel.cu:2 ")
