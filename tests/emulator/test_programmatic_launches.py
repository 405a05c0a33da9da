"""Launches that begin before what is ahead of them has ended, in every order of the emulator."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.emulator.timeline.schedule import OrderName
from tests.rows import all_rows

SOURCE = """
__device__ void let_go() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void await() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

extern "C" __global__ void produce(int* middle, int value) {
  let_go();
  middle[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
extern "C" __global__ void produce_before(int* middle, int value) {
  middle[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
extern "C" __global__ void use(int* out, const int* middle, const int* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, own = x[i];
  await();
  out[i] = own + middle[gridDim.x * blockDim.x - 1 - i];
}
extern "C" __global__ void use_at_once(int* out, const int* middle, const int* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i] + middle[gridDim.x * blockDim.x - 1 - i];
}
extern "C" __global__ void pass(int* out, const int* middle) {
  let_go();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  await();
  out[i] = 10 * middle[i];
}
"""
BLOCKS, THREADS = 6, 64
ORDERS: list[tuple[OrderName, int | None]] = [
    ("immediate", None),
    ("late", None),
    *(("random", seed) for seed in range(12)),
]


@functools.cache
def image(target: ptx.Target) -> ptx.Image:
    return ptx.compile(SOURCE, ptx.CompileOptions(target=target))


class Chain:
    """A stream, and kernels that are launched one behind the other, programmatically or not."""

    def __init__(self) -> None:
        self.context = cudadrv.cuda_context_for(0)
        self.stream = self.context.new_stream()
        self.x = self.stream.to_device(np.arange(BLOCKS * THREADS, dtype=np.int32))
        self._module = self.context.load_module(image(self.context.target))
        self._configs = [LaunchConfig(BLOCKS, THREADS, programmatic=p) for p in (False, True)]

    def zeros(self) -> cudadrv.DeviceArray[np.int32]:
        return self.stream.zeros(BLOCKS * THREADS, np.int32)

    def run(self, kernel: str, *arguments: object, programmatic: bool = True) -> None:
        self._module.kernel(kernel).launch(self.stream, self._configs[programmatic], *arguments)


def used(producer: str, consumer: str, *, programmatic: bool = True) -> list[int]:
    """What the second of two kernels gives."""
    chain = Chain()
    middle, out = chain.zeros(), chain.zeros()
    chain.stream.synchronize()
    chain.run(producer, middle, 1000)
    chain.run(consumer, out, middle, chain.x, programmatic=programmatic)
    found: list[int] = chain.stream.to_host(out).tolist()
    return found


RIGHT = list(range(1000, 1000 + BLOCKS * THREADS))


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_a_kernel_that_waits_sees_all_that_was_written_before(
    order: OrderName, seed: int | None
) -> None:
    with emulator.session(order=order, seed=seed):
        assert used("produce", "use") == RIGHT
        assert used("produce_before", "use") == RIGHT
        assert used("produce", "use_at_once", programmatic=False) == RIGHT
        assert used("produce_before", "use_at_once") == RIGHT


@pytest.mark.slow
def test_a_kernel_that_does_not_wait_is_seen_to_be_wrong() -> None:
    with emulator.session(order="late"):
        assert used("produce", "use_at_once") != RIGHT
    wrong = 0
    for seed in range(20):
        with emulator.session(order="random", seed=seed):
            wrong += used("produce", "use_at_once") != RIGHT
    assert wrong


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_what_follows_comes_after_a_whole_chain(order: OrderName, seed: int | None) -> None:
    with emulator.session(order=order, seed=seed):
        chain = Chain()
        arrays = [chain.zeros() for _ in range(5)]
        chain.run("produce", arrays[0], 1)
        for former, array in itertools.pairwise(arrays):
            chain.run("pass", array, former)
        # The last one is no programmatic launch, and neither is the copy.
        chain.run("use_at_once", arrays[0], arrays[4], chain.x, programmatic=False)
        assert chain.stream.to_host(arrays[4]).tolist() == [10**4] * BLOCKS * THREADS
        assert chain.stream.to_host(arrays[0]).tolist() == [x - 1000 + 10**4 for x in RIGHT]


def test_a_kernel_that_ends_early_comes_after_the_one_before_it() -> None:
    # The second kernel waits for nothing; what comes behind it waits for both.
    with emulator.session(order="late"):
        chain = Chain()
        first, second, third = (chain.zeros() for _ in range(3))
        chain.stream.synchronize()
        chain.run("produce", first, 7)
        chain.run("produce", second, 8)
        chain.run("use_at_once", third, first, chain.x, programmatic=False)
        assert chain.stream.to_host(third).tolist() == [x - 1000 + 7 for x in RIGHT]


def test_a_fault_ends_what_waits_for_it() -> None:
    with emulator.session(order="late"):
        chain = Chain()
        out = chain.zeros()
        chain.stream.synchronize()
        middle = chain.zeros()
        chain.run("produce", 0, 1)
        chain.run("use", out, middle, chain.x)
        with pytest.raises(cudadrv.errors.IllegalAddressError):
            chain.stream.synchronize()
