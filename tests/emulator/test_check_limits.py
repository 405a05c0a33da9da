"""What the checks do not report, as their pages say, beside a like fault that they report."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import DeviceArray, LaunchConfig, emulator
from cudadrv.memory import MappedBuffer, PhysicalMemory

# The compiler sees one of the faults, too.
NO_WARNINGS: Final = ptx.CompileOptions(extra=("-w",))


def found(
    check: emulator.CheckName, source: str, blocks: int = 1, threads: int = 64, number: int = 0
) -> list[emulator.Finding]:
    """What a check finds in a launch of kernel `k(int* out, int number)`; `out` has 256 zeros."""
    with emulator.session(check=check, raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        kernel = context.compile(source, NO_WARNINGS).kernel("k")
        out = stream.zeros(256, np.int32)
        kernel.launch(stream, LaunchConfig(blocks, threads), out, number)
        stream.synchronize()
    return [each for each in machine.findings if isinstance(each, emulator.Finding)]


def test_accesses_by_two_addresses_of_one_physical_memory_are_not_compared() -> None:
    source = (
        'extern "C" __global__ void k(int* a, int* b) { if (threadIdx.x == 0) *a = 1;'
        " else if (threadIdx.x == 40) *b = 2; }"
    )
    reported = []
    for second in (0, 1):
        with emulator.session(check="race", raise_findings=False) as machine:
            stream = cudadrv.cuda_context_for(0).new_stream()
            kernel = stream.context.compile(source).kernel("k")
            with PhysicalMemory(1000) as memory:
                buffers = [MappedBuffer(stream, [memory]) for _ in range(2)]
            arrays = [DeviceArray(each, (1,), np.int32) for each in buffers]
            kernel.launch(stream, LaunchConfig(1, 64), arrays[0], arrays[second])
            stream.synchronize()
        reported.append(len(machine.findings))
    assert reported == [1, 0]


@pytest.mark.slow
def test_a_race_with_blocks_that_hold_a_lock_later_is_found_in_that_order() -> None:
    source = """
__device__ int lock = 0, data = 0;
extern "C" __global__ void k(int* out, int number) {
  while (atomicCAS(&lock, 0, 1) != 0) {}
  __threadfence();
  out[blockIdx.x] = data;
  __threadfence();
  atomicExch(&lock, 0);
  if (blockIdx.x == number) data = 5;
}
"""
    first, last = (found("race", source, 2, 1, number) for number in (0, 1))
    assert [each.check for each in first] == ["race"]
    assert last == []


@pytest.mark.slow
def test_a_variable_without_a_value_that_the_optimiser_removes_is_not_reported() -> None:
    source = """
extern "C" __global__ void k(int* out, int number) {
  int x;
  ASSIGNED
  out[threadIdx.x] = x;
}
"""
    for assigned, checks in (
        ("if (threadIdx.x > 1000) x = 1;", []),
        ('asm volatile("add.s32 %0, %0, 1;" : "+r"(x));', ["init"]),
    ):
        kernel = source.replace("ASSIGNED", assigned)
        assert [each.check for each in found("init", kernel)] == checks


def test_a_division_that_the_compiler_computes_is_not_reported() -> None:
    source = (
        'extern "C" __global__ void k(int* out, int number) { int zero = ZERO; *out = 7 / zero; }'
    )
    for zero, checks in (("0", []), ("number", ["divide"])):
        kernel = source.replace("ZERO", zero)
        assert [each.check for each in found("divide", kernel, 1, 1)] == checks


COPIED: Final = """
__device__ __forceinline__ unsigned at(const void* p) { return __cvta_generic_to_shared(p); }
extern "C" __global__ void k(int* out, int number) {
  __shared__ alignas(128) int tile[128];
  int t = threadIdx.x;
  for (int i = 0; i < number; i++) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  WRITE
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;"
                 :: "l"(__cvta_generic_to_global(out)), "r"(at(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("fences", "kinds"), [(256, ["proxy fence missing"]), (257, [])])
def test_the_last_256_proxy_fences_are_known_and_with_more_nothing_is_reported(
    fences: int, kinds: list[str]
) -> None:
    source = COPIED.replace("WRITE", "tile[t] = t;")
    assert [each.kind for each in found("race", source, 1, 128, fences)] == kinds


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "checks"), [(1, []), (2, ["race", "race"])])
def test_a_load_that_the_compiler_moves_before_its_condition_is_reported_where_it_is_used(
    threads: int, checks: list[str]
) -> None:
    source = """
__device__ int count;
extern "C" __global__ void k(int* out, int number) {
  bool first = blockIdx.x * blockDim.x + threadIdx.x < number;
  if (first && count < 100) count = count + 1 + threadIdx.x;
}
"""
    assert [each.check for each in found("race", source, 2, 32, threads)] == checks


@pytest.mark.slow
def test_an_ordered_access_to_shared_memory_of_a_block_that_has_ended_is_not_reported() -> None:
    source = """
extern "C" __global__ void __cluster_dims__(2) k(int* out, int number) {
  __shared__ int s[4];
  unsigned rank;
  asm("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  if (rank == 1) {
    s[threadIdx.x] = 1;
    __syncthreads();
    if (number) __threadfence();
    if (threadIdx.x == 0) atomicExch(out, 1);
  } else if (threadIdx.x == 0) {
    while (atomicAdd(out, 0) == 0) {}
    if (number) __threadfence();
    for (int i = 0; i < 1000; i++) atomicAdd(out + 3, 1);  // by then the other block has ended
    unsigned here = __cvta_generic_to_shared(s), there;
    int value;
    asm("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(there) : "r"(here));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
    out[2] = value;
  }
}
"""
    unordered, ordered = (found("race", source, 2, 4, number) for number in (0, 1))
    assert {each.space for each in unordered} == {"shared"}
    assert ordered == []


def test_a_fault_is_reported_once_for_each_pair_of_lines_and_their_order() -> None:
    source = """
extern "C" __global__ void k(int* out, int number) {
  __shared__ int s[64];
  int sum = 0;
  for (int i = 0; i < 5; i++) {
    s[threadIdx.x] = i;
    sum += s[63 - threadIdx.x];
    sum += s[threadIdx.x ^ 1];
  }
  out[64 * blockIdx.x + threadIdx.x] = sum;
}
"""
    findings = found("race", source, 4, 64)
    pairs = [tuple([place.line for place in each.places]) for each in findings]
    assert len(pairs) == len(set(pairs))
    assert {(6, 7), (7, 6), (6, 8), (8, 6)} == set(pairs)
