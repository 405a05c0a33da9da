"""Shared memory that the system reserves in each block, where groups of several warps meet."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ptx
from ptx.emulate.check.findings import Findings
from ptx.emulate.model.errors import UninitialisedRead
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.short_cases import few

from ..kernel_runner import KernelRunner

SOURCE = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void sums_of_two_warps(const int* a, int* o) {
  __shared__ cg::block_tile_memory<128> scratch;
  auto pair = cg::tiled_partition<64>(cg::this_thread_block(scratch));
  const int i = blockIdx.x * 128 + threadIdx.x;
  const int sum = cg::reduce(pair, a[i], cg::plus<int>());
  pair.sync();
  o[i] = pair.any(a[i] > 9) ? -1 : sum;
}
extern "C" __global__ void beside_it(int* o) {
  extern __shared__ int s[];
  unsigned int start;
  asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(start));
  if (threadIdx.x == 0) o[blockIdx.x] = s[1] + start;
}
"""


@functools.cache
def _text() -> str:
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), lineinfo=True)
    made = ptx.compile(SOURCE, options, name="reserved.cu").ptx
    assert made is not None
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", few([None, LaunchOrder("random", 1), LaunchOrder("random", 2)], 1)
)
def test_the_words_at_which_warps_of_a_group_meet_are_zero_when_a_block_begins(
    order: LaunchOrder | None,
) -> None:
    findings = Findings()
    limits = Limits(checks={"undefined", "bounds", "race"}, findings=findings)
    runner = KernelRunner(_text())
    values = np.random.default_rng(3).integers(0, 9, 3 * 128).astype(np.int32)
    a, o = runner.put(values), runner.put(np.zeros_like(values))
    runner.launch("sums_of_two_warps", 3, 128, a, o, limits=limits, order=order)
    sums = values.reshape(-1, 64).sum(axis=1)
    assert runner.get(o, 384, np.int32).tolist() == np.repeat(sums, 64).tolist()
    assert [str(each) for each in findings.found if not each.benign] == []


@pytest.mark.slow
def test_shared_memory_of_the_kernel_beside_them_is_not() -> None:
    runner = KernelRunner(_text())
    o = runner.put(np.zeros(2, dtype=np.int32))
    with pytest.raises(UninitialisedRead, match="shared address 0x4"):
        runner.launch("beside_it", 2, 32, o, shared=64, limits=Limits(checks={"undefined"}))
