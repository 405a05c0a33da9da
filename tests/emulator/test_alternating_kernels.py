"""Two kernels of different streams that run at the same time, as a GPU may let them."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.emulator import Emulator
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import LaunchTimeoutError

BLOCKS = 8
SEEDS = range(20)
ONE = cudadrv.LaunchConfig(1, 1)
MANY = cudadrv.LaunchConfig(BLOCKS, 32)
SOURCE = """
extern "C" __global__ void await(volatile int* flag, int* out, const int* x) {
  while (*flag == 0) {}
  __threadfence();
  *out = *(volatile const int*)x;
}
extern "C" __global__ void tell(volatile int* flag, volatile int* x) {
  *x = 7;
  __threadfence();
  *flag = 1;
}
extern "C" __global__ void pass_on(volatile int* turn, int own, int rounds, int* count) {
  for (int k = 0; k < rounds; ++k) {
    while (*turn != own) {}
    __threadfence();
    *count += 1;
    __threadfence();
    *turn = !own;
  }
}
extern "C" __global__ void set(int* x, int value) { x[blockIdx.x * 32 + threadIdx.x] = value; }
extern "C" __global__ void copy(int* out, const int* x) {
  int at = blockIdx.x * 32 + threadIdx.x;
  out[at] = x[at];
}
"""
ORDERS: list[tuple[OrderName, int | None]] = [("late", None), *(("random", seed) for seed in SEEDS)]
in_some_orders = pytest.mark.parametrize(("order", "seed"), ORDERS[:6])


class Two:
    """Two streams, and kernels that nothing orders."""

    def __init__(self) -> None:
        self.context = cudadrv.cuda_context_for(0)
        self.a, self.b = self.context.new_stream(), self.context.new_stream()
        self._module = self.context.load_module(_image(self.context.target))

    def run(
        self, stream: cudadrv.Stream, kernel: str, config: cudadrv.LaunchConfig, *arguments: object
    ) -> None:
        with stream.unordered():
            self._module.kernel(kernel).launch(stream, config, *arguments)

    def zeros(self, n: int = 1) -> cudadrv.DeviceArray[np.int32]:
        found = self.a.to_device(np.zeros(n, np.int32))
        self.context.synchronize()
        return found

    def values(self, array: cudadrv.DeviceArray[np.int32]) -> list[int]:
        self.context.synchronize()
        found: list[int] = self.a.to_host(array).tolist()
        return found


@functools.cache
def _image(target: ptx.Target) -> ptx.Image:
    return ptx.compile(SOURCE, ptx.CompileOptions(target=target))


@pytest.mark.slow
@in_some_orders
@pytest.mark.parametrize("is_told_first", [False, True])
def test_a_kernel_may_wait_for_one_of_another_stream(
    order: OrderName, seed: int | None, is_told_first: bool
) -> None:
    with emulator.session(order=order, seed=seed):
        two = Two()
        flag, out, x = two.zeros(), two.zeros(), two.zeros()
        launches = [(two.a, "await", (flag, out, x)), (two.b, "tell", (flag, x))]
        for stream, kernel, arguments in reversed(launches) if is_told_first else launches:
            two.run(stream, kernel, ONE, *arguments)
        two.a.synchronize()
        assert two.values(out) == [7]


@in_some_orders
def test_two_kernels_may_wait_for_each_other(order: OrderName, seed: int | None) -> None:
    with emulator.session(order=order, seed=seed):
        two = Two()
        turn, count = two.zeros(), two.zeros()
        two.run(two.a, "pass_on", ONE, turn, 1, 2, count)
        two.run(two.b, "pass_on", ONE, turn, 0, 2, count)
        assert two.values(count) == [4]


@pytest.mark.slow
def test_a_kernel_that_waits_for_nothing_that_is_queued_times_out() -> None:
    with emulator.session(order="late", limits=emulator.Limits(max_steps=50_000)):
        two = Two()
        flag, out, x = two.zeros(), two.zeros(), two.zeros()
        two.run(two.a, "await", ONE, flag, out, x)
        with pytest.raises(LaunchTimeoutError):
            two.a.synchronize()


def _what_is_copied(seed: int) -> tuple[list[int], Emulator]:
    with emulator.session(order="random", seed=seed) as machine:
        two = Two()
        x, out = two.zeros(BLOCKS * 32), two.zeros(BLOCKS * 32)
        two.run(two.a, "set", MANY, x, 1)
        two.run(two.b, "copy", MANY, out, x)
        return two.values(out), machine


@pytest.mark.slow
def test_blocks_of_two_kernels_alternate_under_some_seeds_and_the_same_under_one() -> None:
    found = [_what_is_copied(seed)[0] for seed in SEEDS]
    sums = [sum(each) for each in found]
    assert any(0 < each < BLOCKS * 32 for each in sums)
    assert {0, BLOCKS * 32} <= set(sums)
    assert found == [_what_is_copied(seed)[0] for seed in SEEDS]


def test_the_fault_of_one_kernel_ends_the_other() -> None:
    for seed in SEEDS:
        with emulator.session(order="random", seed=seed):
            two = Two()
            flag, out, x = two.zeros(), two.zeros(), two.zeros()
            two.run(two.a, "await", ONE, flag, out, x)
            with pytest.raises(cudadrv.CudaError, match="out-of-bounds"):
                two.run(two.b, "set", cudadrv.LaunchConfig(1 << 16, 32), x, 1)
                two.b.synchronize()
            with pytest.raises(cudadrv.CudaError, match="out-of-bounds"):
                two.a.synchronize()
