"""Memory of one device used by another: copies at the link's speed, and kernels."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import WrongDeviceError

from .conftest import compile_module

_SOURCE = """extern "C" __global__ void twice(int* out, const int* of, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * of[i];
}"""
_COUNT = 1000
_CONFIG = LaunchConfig(8, 128)


@pytest.fixture
def own_contexts(second_context: cudadrv.Context) -> tuple[cudadrv.Context, cudadrv.Context]:
    """New contexts of two devices, none of which reaches the other."""
    if not cudadrv.driver.can_access_peer(cudadrv.Device.get(0), cudadrv.Device.get(1)):
        pytest.skip("needs two devices that reach each other's memory")
    return cudadrv.Context.create(0), cudadrv.Context.create(1)


def test_a_kernel_uses_memory_of_a_peer_once_that_is_enabled(
    own_contexts: tuple[cudadrv.Context, cudadrv.Context],
) -> None:
    here, there = own_contexts
    with here, there:
        queue, other = here.new_stream(), there.new_stream()
        kernel = compile_module(here, _SOURCE).kernel("twice")
        source = other.to_device(np.arange(_COUNT, dtype=np.int32))
        target = other.zeros(_COUNT, np.int32)
        with pytest.raises(WrongDeviceError, match="Context.enable_peer_access"):
            kernel.launch(queue, _CONFIG, target, source, _COUNT)
        for _ in range(2):
            here.enable_peer_access(there)
        for _ in range(3):  # the slow path, one that makes code, and that code
            kernel.launch(queue, _CONFIG, target, source, _COUNT)
            other.copy(source, target)
        assert other.to_host(target).tolist() == [8 * n for n in range(_COUNT)]


def test_access_to_a_peer_is_one_way(
    own_contexts: tuple[cudadrv.Context, cudadrv.Context],
) -> None:
    here, there = own_contexts
    with here, there:
        here.enable_peer_access(there)
        queue = there.new_stream()
        kernel = compile_module(there, _SOURCE).kernel("twice")
        memory = here.new_stream().zeros(_COUNT, np.int32)
        with pytest.raises(WrongDeviceError):
            kernel.launch(queue, _CONFIG, memory, memory, _COUNT)


def test_memory_of_a_peer_is_released_after_the_kernels_that_use_it(
    own_contexts: tuple[cudadrv.Context, cudadrv.Context],
) -> None:
    here, there = own_contexts
    with here, there:
        here.enable_peer_access(there)
        queue, other = here.new_stream(), there.new_stream()
        kernel = compile_module(here, _SOURCE).kernel("twice")
        target = queue.empty(_COUNT, np.int32)
        source = other.to_device(np.arange(_COUNT, dtype=np.int32))
        kernel.launch(queue, _CONFIG, target, source, _COUNT)
        source.close()
        other.fill(other.empty(_COUNT, np.int32), -1)
        assert queue.to_host(target).tolist() == [2 * n for n in range(_COUNT)]


def test_a_context_reaches_itself(context: cudadrv.Context) -> None:
    context.enable_peer_access(context)


def test_contexts_that_reach_each_other_go_with_their_last_names(
    own_contexts: tuple[cudadrv.Context, cudadrv.Context],
) -> None:
    here, there = own_contexts
    here.enable_peer_access(there)
    there.enable_peer_access(here)
    here.close()
    with pytest.raises(cudadrv.errors.ClosedError):
        there.enable_peer_access(here)
    there.close()
