"""The order of a session reaches into its launches: their blocks, warps and lanes."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.emulator.timeline.schedule import OrderName

SOURCE = """
extern "C" __global__ void turn(const int* a, int* o) {
  __shared__ int s[64];
  s[threadIdx.x] = a[threadIdx.x];
  BARRIER
  o[threadIdx.x] = s[63 - threadIdx.x];
}
"""
A = np.arange(64, dtype=np.int32)


def turned(barrier: str, order: OrderName, seed: int | None = None) -> bool:
    """Whether a block turns its numbers round in an order."""
    with emulator.session(order=order, seed=seed):
        context = cudadrv.cuda_context_for(0)
        options = ptx.CompileOptions(target=context.target)
        module = context.load_module(ptx.compile(SOURCE.replace("BARRIER", barrier), options))
        stream = context.new_stream()
        a, o = stream.to_device(A), stream.zeros(64, np.int32)
        for _ in range(2):
            module.kernel("turn").launch(stream, cudadrv.LaunchConfig(1, 64), a, o)
        return bool(np.array_equal(stream.to_host(o), A[::-1]))


@pytest.mark.slow
def test_a_kernel_with_its_barrier_is_right_in_every_order() -> None:
    assert turned("__syncthreads();", "immediate")
    assert turned("__syncthreads();", "late")
    assert all(turned("__syncthreads();", "random", seed) for seed in range(10))


def test_a_kernel_without_its_barrier_is_wrong_in_another_order() -> None:
    assert turned("", "immediate")
    assert not turned("", "late")
    assert not all(turned("", "random", seed) for seed in range(10))
