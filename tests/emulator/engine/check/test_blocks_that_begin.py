"""Shared memory of another block of a cluster, which may not have begun."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from tests.short_cases import few

SOURCE = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int* o, int* flags) {
  __shared__ int s[32];
  auto cluster = cg::this_cluster();
  const int t = threadIdx.x, other = cluster.block_rank() ^ 1;
  BEFORE
  cluster.map_shared_rank(s, other)[t] = t;
  cluster.sync();
  o[blockIdx.x * 32 + t] = s[t];
}
"""
FLAG = (
    "if (t == 0) { __threadfence(); atomicExch(flags + blockIdx.x, 1);"
    " while (!atomicAdd(flags + (blockIdx.x ^ 1), 0)); __threadfence(); } __syncwarp();"
)
ARRIVE_AND_WAIT = (
    'asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;");'
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "is_found"),
    few([("", True), ("__syncthreads();", True), ("cluster.sync();", False),
     (ARRIVE_AND_WAIT, False), (FLAG, False)], 1),
    ids=["nothing", "own barrier", "cluster barrier", "relaxed", "flag"],
)  # fmt: skip
def test_an_access_before_any_order_of_the_blocks_is_found(before: str, is_found: bool) -> None:
    with emulator.session(devices=[emulator.H100], check=("race",), raise_findings=False) as e:
        context = cudadrv.cuda_context_for(0)
        options = ptx.CompileOptions(target=context.target, lineinfo=True)
        module = context.load_module(ptx.compile(SOURCE.replace("BEFORE", before), options))
        stream = context.new_stream()
        o, flags = stream.zeros(128, np.int32), stream.zeros(4, np.int32)
        config = cudadrv.LaunchConfig(4, 32, cluster=2)
        module.kernel("k").launch(stream, config, o, flags)
        assert stream.to_host(o).tolist() == [*range(32)] * 4
    found = [str(each) for each in e.findings]
    assert len(found) == is_found
    if is_found:
        assert "may not have begun" in found[0]
        assert "cluster.sync()" in found[0]
        assert "block (" in found[0]
