"""Codes over graphs whose threads meet by `cuda::atomic`, each operation a fence as well."""

from __future__ import annotations

import functools
from functools import partial

import numpy as np
import pytest

import ptx
from ptx.emulate.check import race_check
from ptx.emulate.check.accelerations import Accelerations
from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.check.race_check import RaceCheck
from ptx.emulate.threads.limits import Limits
from tests.short_cases import few

from ..kernel_runner import KernelRunner

SOURCE = r"""
#include <cuda/atomic>
using Atomic = cuda::atomic<int, cuda::thread_scope_device>;
#define KERNEL(name, UPDATE, PUBLISH, LOOK)                                                     \
  extern "C" __global__ void name(int n, const int* row, const int* col, Atomic* value,          \
                                  Atomic* ends, Atomic* list, int* plain) {                      \
    int i = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;             \
    for (int v = i; v < n; v += threads) {                                                       \
      int mine = value[v].load();                                                                \
      for (int e = row[v]; e < row[v + 1]; e++) {                                                \
        int to = col[e];                                                                         \
        if (UPDATE) { int at = ends[0].fetch_add(1); plain[at] = to; PUBLISH; }                  \
      }                                                                                          \
    }                                                                                            \
    for (int at = i; at < ends[0].load(); at += threads)                                         \
      if (LOOK) value[plain[at]].fetch_add(1);                                                   \
  }
#define MIN value[to].fetch_min(mine) > mine
#define PLAIN(x) (*(int*)&(x))
KERNEL(right, MIN, list[at].store(1), list[at].load() == 1)
KERNEL(update_by_a_plain_store, PLAIN(value[to]) > mine && (PLAIN(value[to]) = mine, true),
       list[at].store(1), list[at].load() == 1)
KERNEL(published_by_a_plain_store, MIN, PLAIN(list[at]) = 1, list[at].load() == 1)
KERNEL(not_looked_at, MIN, list[at].store(1), at >= 0)
KERNEL(published_without_fence, MIN, list[at].store(1, cuda::std::memory_order_relaxed),
       list[at].load() == 1)
KERNEL(taken_without_fence, MIN, list[at].store(1),
       list[at].load(cuda::std::memory_order_relaxed) == 1)
#define LOCKS(name, TAKEN, PLACE)                                                               \
  extern "C" __global__ void name(int n, Atomic* lock, int* data) {                              \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                               \
    for (int round = 0; round < 3; round++) {                                                    \
      int at = (i * 7 + round * 13) % n;                                                         \
      for (bool done = false; !done;) {                                                          \
        int zero = 0;                                                                            \
        if (TAKEN) { data[PLACE] += 1; lock[at].store(0); done = true; }                         \
      }                                                                                          \
    }                                                                                            \
  }
LOCKS(locks, lock[at].compare_exchange_strong(zero, 1), at)
LOCKS(locks_of_others, lock[at].compare_exchange_strong(zero, 1), at / 2)
LOCKS(locks_without_fence,
      lock[at].compare_exchange_strong(zero, 1, cuda::std::memory_order_relaxed), at)
#define PHASES(name, BEFORE, BEHIND)                                                            \
  extern "C" __global__ void name(int last, Atomic* phase, int* data) {                          \
    int i = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;             \
    int other = (i + 37) % threads;                                                              \
    for (int now = 1; now <= last; now++) {                                                      \
      int sum = now > 1 ? data[now * threads - threads + other] + 1 : 1;                         \
      BEFORE;                                                                                    \
      phase[i].store(now);                                                                       \
      BEHIND;                                                                                    \
      while (phase[other].load() < now) ;                                                        \
    }                                                                                            \
  }
#define STORED data[now * threads + i] = sum
extern "C" __global__ void one_after_the_other(int last, Atomic* phase, int* data) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x * last;
  if (i) while (phase[i - 1].load() == 0) ;
  data[all + i] = i ? data[all + i - 1] + (i < last) : 1;
  phase[i].store(1);
}
PHASES(phases, STORED, )
PHASES(phases_stored_too_early, , STORED)
"""
FAULTY = (
    "update_by_a_plain_store", "published_by_a_plain_store", "not_looked_at",
    "published_without_fence", "taken_without_fence",
)  # fmt: skip
VERTICES = 300


@functools.cache
def text() -> str:
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), lineinfo=True)
    made = ptx.compile(SOURCE, options, name="sequentially_consistent.cu").ptx
    assert made is not None
    return made


def found_in(kernel: str, blocks: int, threads: int) -> list[Finding]:
    rng = np.random.default_rng(0)
    runner, findings = KernelRunner(text()), Findings()
    row = (np.arange(VERTICES + 1) * 3).astype(np.int32)
    arrays = (
        row,
        rng.integers(0, VERTICES, 3 * VERTICES).astype(np.int32),
        rng.permutation(VERTICES).astype(np.int32),
        np.zeros(1, np.int32),
        np.zeros(3 * VERTICES, np.int32),
        np.zeros(3 * VERTICES, np.int32),
    )
    places = [runner.put(each) for each in arrays]
    runner.launch(
        kernel,
        blocks,
        threads,
        VERTICES,
        *places,
        limits=Limits(checks={"race"}, findings=findings),
    )
    return [each for each in findings.found if not each.benign]


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "threads"), [(1, 128), (3, 64)])
def test_what_atomics_publish_in_order_is_no_race(blocks: int, threads: int) -> None:
    assert found_in("right", blocks, threads) == []


@pytest.mark.parametrize(("blocks", "threads"), few([(1, 128), (3, 64)], 1))
@pytest.mark.parametrize("kernel", few(FAULTY, 2))
def test_a_plain_or_relaxed_access_in_place_of_one_of_them_is_found(
    kernel: str, blocks: int, threads: int
) -> None:
    assert found_in(kernel, blocks, threads)


@pytest.mark.parametrize("kernel", ["right", *FAULTY])
def test_what_is_put_off_is_reported_as_if_it_was_not(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [_lines(each) for each in found_in(kernel, 3, 64)]
    at_once = partial(RaceCheck, accelerations=Accelerations(defers=False))
    monkeypatch.setattr(race_check, "RaceCheck", at_once)
    assert [_lines(each) for each in found_in(kernel, 3, 64)] == late


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "threads"), [(1, 128), (3, 64)])
def test_threads_that_spin_for_many_locks_know_what_each_of_them_hands_over(
    blocks: int, threads: int
) -> None:
    assert found_in_locks("locks", blocks, threads) == []


@pytest.mark.parametrize(("blocks", "threads"), few([(1, 128), (3, 64)], 1))
@pytest.mark.parametrize("kernel", ["locks_of_others", "locks_without_fence"])
def test_a_lock_that_does_not_hand_over_the_data_is_found(
    kernel: str, blocks: int, threads: int
) -> None:
    assert found_in_locks(kernel, blocks, threads)


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "threads"), [(1, 128), (3, 64)])
def test_threads_that_poll_many_places_take_over_what_is_handed_over_there_later(
    blocks: int, threads: int
) -> None:
    assert found_in_phases("one_after_the_other", blocks, threads) == []
    assert found_in_phases("phases", blocks, threads) == []
    assert found_in_phases("phases_stored_too_early", blocks, threads)


def found_in_phases(kernel: str, blocks: int, threads: int) -> list[Finding]:
    runner, findings, count = KernelRunner(text()), Findings(), blocks * threads
    phase, data = (runner.put(np.zeros(5 * count, np.int32)) for _ in range(2))
    runner.launch(
        kernel, blocks, threads, 4, phase, data, limits=Limits(checks={"race"}, findings=findings)
    )
    if not findings.found:
        last = runner.get(data + 16 * count, count, np.int32)
        np.testing.assert_array_equal(last[3:], np.full(count - 3, 4))
    return [each for each in findings.found if not each.benign]


def found_in_locks(kernel: str, blocks: int, threads: int) -> list[Finding]:
    runner, findings, count = KernelRunner(text()), Findings(), 64
    lock, data = (runner.put(np.zeros(count, np.int32)) for _ in range(2))
    runner.launch(
        kernel,
        blocks,
        threads,
        count,
        lock,
        data,
        limits=Limits(checks={"race"}, findings=findings),
    )
    if not findings.found:
        assert runner.get(data, count, np.int32).sum() == 3 * blocks * threads
    return [each for each in findings.found if not each.benign]


def _lines(finding: Finding) -> list[int | None]:
    return [place.where.ptx_line for place in finding.places if place.where is not None]
