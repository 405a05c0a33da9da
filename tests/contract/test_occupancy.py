"""Occupancy, against what the limits of the device leave room for."""

from __future__ import annotations

import pytest

import cudadrv
from cudadrv import DeviceAttribute
from cudadrv.errors import InvalidValueError, LaunchConfigError

from .conftest import compile_module

SOURCE = """
extern "C" __global__ void plain(int* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(96) bounded(int* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void dynamic(int* x)
{ extern __shared__ int cells[]; cells[threadIdx.x] = *x; __syncthreads(); *x = cells[0]; }
"""


@pytest.fixture(scope="module")
def kernels(context: cudadrv.Context) -> cudadrv.Module:
    return compile_module(context, SOURCE)


def test_the_best_block_fills_the_multiprocessor(
    context: cudadrv.Context, kernels: cudadrv.Module
) -> None:
    device = context.device
    most = device.attribute(DeviceAttribute.MAX_THREADS_PER_MULTIPROCESSOR)
    count = device.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)
    plain = kernels.kernel("plain")
    best = plain.max_potential_block_size()
    assert best.threads * best.blocks == most * count
    assert plain.max_active_blocks(best.threads) * count == best.blocks
    limited = plain.max_potential_block_size(limit=200)
    assert limited.threads <= 200
    assert limited.threads * plain.max_active_blocks(limited.threads) == max(
        threads * plain.max_active_blocks(threads) for threads in (*range(32, 200, 32), 200)
    )
    assert kernels.kernel("bounded").max_potential_block_size().threads <= 96


def test_shared_memory_may_grow_with_the_block(
    context: cudadrv.Context, kernels: cudadrv.Module
) -> None:
    room = context.device.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    dynamic = kernels.kernel("dynamic")
    each = room // 64
    best = dynamic.max_potential_block_size(lambda threads: threads * each)
    assert best.threads in (32, 64)
    assert best.blocks >= 1
    with pytest.raises(LaunchConfigError, match="no block of kernel 'dynamic' of at most"):
        dynamic.max_potential_block_size(room + 1)


def test_blocks_that_cannot_be_are_refused(kernels: cudadrv.Module) -> None:
    plain = kernels.kernel("plain")
    for threads, shared in ((0, 0), (-1, 0), (32, -1)):
        with pytest.raises(InvalidValueError, match="the occupancy of kernel 'plain'"):
            plain.max_active_blocks(threads, shared)
