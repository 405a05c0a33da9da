"""Occupancy, against what the limits of the device leave room for."""

from __future__ import annotations

import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.driver import DeviceAttribute
from cudadrv.errors import ArgumentTypeError, InvalidValueError, LaunchConfigError

SOURCE = """
extern "C" __global__ void plain(int* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(96) bounded(int* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void dynamic(int* x)
{ extern __shared__ int cells[]; cells[threadIdx.x] = *x; __syncthreads(); *x = cells[0]; }
"""


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
    for wrong in (dynamic, lambda: 0):
        with pytest.raises(ArgumentTypeError, match="give a function of 1 arguments"):
            dynamic.max_potential_block_size(wrong)  # type: ignore[arg-type]  # what is tested


def test_blocks_that_cannot_be_are_rejected(kernels: cudadrv.Module) -> None:
    plain = kernels.kernel("plain")
    for threads, shared in ((0, 0), (-1, 0), (32, -1)):
        with pytest.raises(InvalidValueError, match="the occupancy of kernel 'plain'"):
            plain.max_active_blocks(threads, shared)


HUNGRY = """
#ifndef BOUNDS
#define BOUNDS
#endif
extern "C" __global__ void BOUNDS hungry(float* x) {
    float a[64], sum = 0;
    for (int i = 0; i < 64; i++) a[i] = x[i] * x[i + 64];
    for (int i = 0; i < 64; i++)
        for (int k = 0; k < 64; k++) sum += a[i] * a[63 - k] + x[i * k];
    for (int i = 0; i < 64; i++) sum += a[i];
    x[threadIdx.x] = sum;
}
"""


def hungry(
    context: cudadrv.Context, bounds: str = "", registers: int | None = None
) -> cudadrv.Kernel:
    options = ptx.CompileOptions(
        target=context.target, defines={"BOUNDS": bounds}, maxrregcount=registers
    )
    return context.load_module(ptx.compile(HUNGRY, options)).kernel("hungry")


@pytest.mark.slow
def test_a_kernel_keeps_to_the_registers_that_it_specifies(context: cudadrv.Context) -> None:
    free = hungry(context)
    limited = hungry(context, "__maxnreg__(32)")
    assert free.attributes.registers > 32
    assert limited.attributes.registers <= 32
    assert limited.max_active_blocks(512) > free.max_active_blocks(512)
    assert limited.max_active_blocks(512) * 512 * 32 <= 65536


@pytest.mark.slow
def test_a_kernel_keeps_to_the_registers_of_its_compilation(context: cudadrv.Context) -> None:
    limited = hungry(context, registers=40)
    assert limited.attributes.registers <= 40
    assert limited.max_active_blocks(256) == 6  # of 256 * 40 registers, in 65,536
    # CUDA C++ Programming Guide, "Launch Bounds": the option is for kernels without bounds.
    bounded = hungry(context, "__launch_bounds__(128)", registers=40)
    without = hungry(context, "__launch_bounds__(128)")
    assert bounded.attributes.registers == without.attributes.registers
    own = hungry(context, "__maxnreg__(24)", registers=40)
    assert own.attributes.registers <= 24


@pytest.mark.slow
def test_a_kernel_leaves_room_for_the_blocks_that_its_bounds_request(
    context: cudadrv.Context,
) -> None:
    for blocks in (2, 4):
        kernel = hungry(context, f"__launch_bounds__(256, {blocks})")
        assert kernel.max_active_blocks(256) >= blocks
        assert kernel.attributes.registers * 256 * blocks <= 65536


def test_what_is_no_configuration_is_rejected_also_by_a_new_kernel(
    context: cudadrv.Context,
) -> None:
    nothing: LaunchConfig = None  # type: ignore[assignment]  # the mistake
    source = 'extern "C" __global__ void k() {}'
    for query in (cudadrv.Kernel.max_active_clusters, cudadrv.Kernel.max_potential_cluster_size):
        with pytest.raises(LaunchConfigError, match="its configuration is None"):
            query(context.compile(source).kernel("k"), nothing)
    with pytest.raises(LaunchConfigError, match="its configuration is None"):
        context.compile(source).kernel("k").launch(context.default_stream, nothing)
