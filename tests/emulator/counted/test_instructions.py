"""Instructions and branches of launches whose threads part, wait and meet."""

from __future__ import annotations

import pytest

import cudadrv
from cudadrv.emulator import Executed, InstructionClass
from tests.emulator.counted.one_launch import (
    count,
    kernel,
)


@pytest.mark.slow
def test_a_branch_diverges_where_threads_of_a_warp_part(context: cudadrv.Context) -> None:
    loop = "for (int k = 0; k < n; k++) v = v * x[k] + {};"
    body = "float v = t; if ({}) {{ " + loop.format(2) + " }} else {{ " + loop.format(3)
    body += " }} y[i] = v;"
    # What the compiler makes of the loops is the same, so that only the condition differs.
    by_warp = count(context, kernel(body.format("t / 32 & 1")))["k"]
    by_lane = count(context, kernel(body.format("t & 1")))["k"]
    by_mask = count(context, kernel(body.format("0x00ff00f0u >> t % 32 & (t / 64)")))["k"]
    assert by_warp.branches.divergent == 0
    assert by_lane.branches.divergent == 16
    assert by_mask.branches.divergent == 8
    assert by_lane.branches.executed > by_warp.branches.executed


def test_a_loop_counts_each_turn_of_each_thread(context: cudadrv.Context) -> None:
    body = (
        "float v = t;\n#pragma unroll 1\n"
        "for (int k = 0; k < (t & 7); k++) v = __fadd_rn(v, 1.5f);\ny[i] = v;"
    )
    counts = count(context, kernel(body))["k"]
    adds = counts.of(InstructionClass.FP32_ADD)
    assert adds.threads == sum(t & 7 for t in range(512))
    assert adds.warps == 16 * 7  # as long as one of its threads goes on


def test_a_guard_leaves_threads_out_but_not_their_warp(context: cudadrv.Context) -> None:
    body = (
        'asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, 5;"'
        ' " @p add.f32 %1, %1, %1; @!p mul.f32 %1, %1, %1;"'
        ' " @p st.global.f32 [%2], %1; }" :: "r"(t), "f"(1.f), "l"(y + i));'
    )
    counts = count(context, kernel(body))["k"]
    assert counts.of(InstructionClass.FP32_ADD) == Executed(16, 4 * 5)
    assert counts.of(InstructionClass.FP32_MUL) == Executed(16, 512 - 20)
    assert counts.of(InstructionClass.STORE_GLOBAL) == Executed(16, 20)
    assert counts.global_stores.requests == 4
    assert counts.branches.executed == 0


def test_lanes_that_wait_for_each_other_count_once(context: cudadrv.Context) -> None:
    body = "int v = t; if (t & 1) v += 3; v += __shfl_xor_sync(~0u, v, 1); __syncwarp(); y[i] = v;"
    counts = count(context, kernel(body + "__syncthreads(); x[i] = v;"))["k"]
    assert counts.of(InstructionClass.WARP) == Executed(32, 1024)
    assert counts.of(InstructionClass.BARRIER) == Executed(16, 512)


def test_lanes_that_meet_at_two_places_count_once_at_each(context: cudadrv.Context) -> None:
    shuffle = 'asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(v));'
    body = (
        f"int v = t; if (t & 1) {{ {shuffle} v *= 3; }} else {{ v += idx[i]; {shuffle} }} y[i] = v;"
    )
    counts = count(context, kernel(body + " y[i] = v;"))["k"]
    assert counts.branches.divergent == 16
    assert counts.of(InstructionClass.WARP) == Executed(32, 512)


FUNCTIONS = """
__device__ __noinline__ float early(float v, int n) {
  if (v < 3) return v;
  for (int k = 0; k < n; k++) v = v * v + 1;
  return v;
}
__device__ __noinline__ float doubled(float v, int n) { return v * n; }
__device__ __noinline__ float added(float v, int n) { return v + n; }
[[maybe_unused]] __device__ float (*const chosen[])(float, int) = {early, doubled, added};
"""


@pytest.mark.parametrize("call", ["early(t % 8, n)", "chosen[t % 2](t % 8, n)"])
def test_threads_go_on_together_after_a_call(context: cudadrv.Context, call: str) -> None:
    counts = count(context, kernel(f"y[i] = {call};", before=FUNCTIONS))["k"]
    assert counts.global_stores.requests == 16


@pytest.mark.slow
@pytest.mark.parametrize(("which", "parted"), [("t / 32 % 3", 0), ("t % 2 + 1", 1), ("t % 3", 2)])
def test_a_call_by_address_parts_a_warp_for_each_further_function(
    context: cudadrv.Context, which: str, parted: int
) -> None:
    counts = count(context, kernel(f"y[i] = chosen[{which}](1, n);", before=FUNCTIONS))["k"]
    assert counts.branches.divergent == 16 * parted


def test_an_indexed_branch_parts_a_warp_for_each_further_place(context: cudadrv.Context) -> None:
    body = (
        'asm volatile("{ places: .branchtargets A, B, C; brx.idx %0, places;"'
        ' " A: st.global.f32 [%1], %2; B: st.global.f32 [%1], %2; C: }"'
        ' :: "r"(t % 3), "l"(y + i), "f"(1.f));'
    )
    counts = count(context, kernel(body))["k"]
    assert (counts.branches.executed, counts.branches.divergent) == (16, 32)
