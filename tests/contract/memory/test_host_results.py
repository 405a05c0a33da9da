"""The memory of a large result is used again, and never while an array is over it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.memory.dtypes import AnyArray
from cudadrv.memory.reuse import host_results
from cudadrv.memory.reuse.host_results import host_result
from tests.several_threads import all_at_once

N = 16 << 20
BYTE = np.dtype(np.uint8)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    host_results._cached.clear()
    yield
    host_results._cached.clear()


def address(array: AnyArray) -> int:
    return array.ctypes.data


def test_a_dropped_result_is_the_memory_of_the_next_one() -> None:
    first = host_result((N,), BYTE, N)
    where = address(first)
    del first
    second = host_result((N // 32, 4), np.dtype("f8"), N)
    assert (address(second), second.shape, second.dtype) == (where, (N // 32, 4), np.dtype("f8"))
    assert second.flags.writeable
    assert second.flags.c_contiguous


@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array,
        lambda array: array[5:6],
        lambda array: array.reshape(2, -1).T[3],
        memoryview,
        lambda array: array.base,
        lambda array: np.frombuffer(array, "u4"),
        lambda array: array.__array_interface__ and iter(array),
    ],
)
def test_memory_that_anything_refers_to_is_not_used_again(hold: Callable[..., object]) -> None:
    first = host_result((N,), BYTE, N)
    where = address(first)
    held = hold(first)
    del first
    again = host_result((N,), BYTE, N)
    assert address(again) != where
    del held, again
    assert where in {address(host_result((N,), BYTE, N)) for _ in range(2)}


def test_another_size_is_other_memory_and_little_is_cached() -> None:
    for nbytes in (N, 2 * N, 3 * N, 4 * N, 5 * N):
        assert host_result((nbytes,), BYTE, nbytes).nbytes == nbytes
    assert sum(each.nbytes for each in host_results._cached) <= 128 << 20
    huge = 129 << 20
    host_result((huge,), BYTE, huge)
    assert huge not in [each.nbytes for each in host_results._cached]


def test_memory_that_users_hold_is_not_cached() -> None:
    held = [host_result((4 * N,), BYTE, 4 * N) for _ in range(4)]
    assert len({address(each) for each in held}) == 4
    assert not host_results._cached
    held.clear()
    assert sum(each.nbytes for each in host_results._cached) == 128 << 20


def test_threads_have_memory_of_their_own() -> None:
    shared: list[int] = []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait()
        for _ in range(100):
            mine = host_result((N,), BYTE, N)
            mine[:64] = number
            mine[-64:] = number
            time.sleep(0)
            if not (mine[:64] == number).all() or not (mine[-64:] == number).all():
                shared.append(number)

    all_at_once([partial(work, number) for number in range(4)])
    assert not shared


@pytest.mark.slow
def test_results_of_a_stream_are_cached_where_memory_is(monkeypatch: pytest.MonkeyPatch) -> None:
    first = None
    for said, kept in (("1", 1), ("0", 0)):
        first = None
        monkeypatch.setenv("CUDADRV_KEEP_BLOCKS", said)
        host_results._cached.clear()
        with emulator.session():
            stream = cudadrv.cuda_context_for(0).new_stream()
            array = stream.to_device(np.arange(N // 4, dtype=np.uint32))
            first = stream.to_host(array)
            stream.to_host(array)
            assert len(host_results._cached) == kept
            stream.fill(array, 7)
            second = stream.to_host(array)
            assert (first[-1], second[-1]) == (N // 4 - 1, 7)
