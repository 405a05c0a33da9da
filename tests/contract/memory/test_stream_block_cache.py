"""A stream has small memory again that only it used, without asking the driver; nobody else has."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import cudadrv
from campaigns.interrupts.points import Interrupter
from cudadrv import emulator
from cudadrv.errors import IllegalAddressError, OutOfMemoryError
from tests.bump_kernel import PTX
from tests.several_threads import all_at_once

NBYTES = 1024


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[emulator.Emulator]:
    monkeypatch.setenv("CUDADRV_KEEP_BLOCKS", "1")
    with emulator.session(devices=2) as machine:
        yield machine


def stream_of(ordinal: int = 0) -> cudadrv.Stream:
    return cudadrv.cuda_context_for(ordinal).new_stream()


def allocations(machine: emulator.Emulator) -> int:
    """Return how many allocations the driver has, those that streams cache among them."""
    return machine.live_objects()["device memory"]


def used() -> int:
    return cudadrv.memory.pool_info(cudadrv.list_devices()[0]).used


def test_a_stream_has_what_it_gave_back_again(machine: emulator.Emulator) -> None:
    stream = stream_of()
    first = stream.alloc(NBYTES)
    address = first.ptr
    first.close()
    again = stream.alloc(NBYTES)
    assert again.ptr == address
    del again
    array = stream.empty(NBYTES // 4, "f4")
    assert array.ptr == address
    assert stream.alloc(NBYTES).ptr != address  # which is in use


def test_a_stream_that_is_dropped_with_its_memory_leaves_none(machine: emulator.Emulator) -> None:
    def use_both() -> int:
        stream = stream_of()
        array = stream.zeros(2, "u4")  # the last that refers to the stream
        return int(stream.to_host(array).sum())

    before = used()
    assert [use_both() for _ in range(3)] == [0, 0, 0]
    gc.collect()
    assert used() == before


def test_a_choice_of_memory_elsewhere_changes_nothing(machine: emulator.Emulator) -> None:
    stream = stream_of()
    with cudadrv.using_memory(cudadrv.memory.DriverMemory()):
        address = stream.alloc(NBYTES).ptr
    assert stream.alloc(NBYTES).ptr == address


def test_another_stream_and_another_size_have_something_else(machine: emulator.Emulator) -> None:
    stream, other = stream_of(), stream_of()
    address = stream.alloc(NBYTES).ptr
    assert other.alloc(NBYTES).ptr != address
    assert stream.alloc(NBYTES + 4).ptr != address
    assert stream.alloc(NBYTES).ptr == address


def test_what_another_stream_has_used_goes_back_to_the_pool(machine: emulator.Emulator) -> None:
    stream, other = stream_of(), stream_of()
    for use in (other.to_host, lambda array: other.fill(array, 1)):
        array = stream.zeros(NBYTES // 4, "f4")
        use(array)
        del array
        assert allocations(machine) == 0
    buffer = stream.alloc(NBYTES)
    buffer.record_use(other)
    del buffer
    assert allocations(machine) == 0


def test_large_blocks_and_many_of_them_go_back_to_the_pool(machine: emulator.Emulator) -> None:
    stream = stream_of()
    stream.alloc(1 << 20).close()
    assert allocations(machine) == 0
    many = [stream.alloc(16 << 10) for _ in range(40)]
    many.clear()
    assert allocations(machine) == 4
    for nbytes in range(1, 1000):
        stream.alloc(nbytes).close()
    assert allocations(machine) == 4 + 63  # of 64 sizes


def test_what_is_cached_is_not_in_use_and_is_freed_on_request(
    machine: emulator.Emulator,
) -> None:
    stream = stream_of()
    device = stream.context.device
    for give_back in (
        lambda: cudadrv.memory.pool_info(device).used,
        lambda: cudadrv.memory.trim_pool(device),
        stream.context.memory_info,
        stream.context.synchronize,
    ):
        stream.alloc(NBYTES).close()
        assert allocations(machine) == 1
        give_back()
        assert allocations(machine) == 0
    assert used() == 0


def test_a_closed_stream_keeps_nothing(machine: emulator.Emulator) -> None:
    stream = stream_of()
    first, second = stream.alloc(NBYTES), stream.alloc(NBYTES)
    stream.alloc(NBYTES).close()
    assert allocations(machine) == 3
    stream.close()
    assert allocations(machine) == 2
    first.close()  # the second one keeps the driver's stream
    assert allocations(machine) == 1
    second.close()
    assert allocations(machine) == 0
    assert used() == 0


def test_a_dropped_stream_releases_cached_blocks(machine: emulator.Emulator) -> None:
    stream = stream_of()
    stream.alloc(NBYTES).close()
    assert allocations(machine) == 1
    del stream
    assert allocations(machine) == 0
    assert used() == 0


def test_a_context_of_its_own_closes_with_cached_blocks(machine: emulator.Emulator) -> None:
    context = cudadrv.Context.create(0)
    for stream in (context.default_stream, context.new_stream()):
        stream.alloc(NBYTES).close()
    del stream
    context.close()
    assert used() == 0


def test_a_full_device_gives_what_streams_keep_for_other_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDADRV_KEEP_BLOCKS", "1")
    with emulator.session(total_memory=1 << 20) as machine:
        stream, other = stream_of(), stream_of()
        stream.alloc(64 << 10).close()
        whole = other.alloc((1 << 20) - (4 << 10))
        assert allocations(machine) == 1
        with pytest.raises(OutOfMemoryError):
            other.alloc(64 << 10)
        whole.close()
        assert machine.last_fault is None


def test_a_capture_neither_uses_cached_blocks_nor_adds_to_them(machine: emulator.Emulator) -> None:
    stream = stream_of()
    buffer, cached = stream.alloc(NBYTES), stream.alloc(NBYTES)
    addresses = {buffer.ptr, cached.ptr}
    cached.close()
    with stream.capture() as graph:
        born = stream.alloc(NBYTES)
        assert born.ptr not in addresses
        del born
        cudadrv.memory.pool_info(stream.context.device)  # no release becomes a node of the graph
        buffer.close()  # which the graph does not use
    both = [stream.alloc(NBYTES), stream.alloc(NBYTES)]
    assert {each.ptr for each in both} == addresses
    graph.instantiate().launch(stream)
    stream.synchronize()


def test_memory_that_a_graph_uses_is_not_cached_before_the_graph_is_freed(
    machine: emulator.Emulator,
) -> None:
    stream = stream_of()
    array = stream.zeros(NBYTES // 4, "u4")
    with stream.capture() as graph:
        stream.fill(array, 7)
    executable = graph.instantiate()
    address = array.ptr
    del array, graph
    assert stream.empty(NBYTES // 4, "u4").ptr != address
    executable.launch(stream)
    stream.synchronize()


def test_what_survives_a_collection_is_not_handed_out_again(machine: emulator.Emulator) -> None:
    stream = stream_of()
    saved: list[object] = []

    class Saved:
        def __init__(self) -> None:
            self.array = stream.zeros(NBYTES // 4, "u4")
            self.me = self

        def __del__(self) -> None:
            saved.append(self)

    stream.fill(Saved().array, 5)
    gc.collect()
    (survivor,) = saved
    assert isinstance(survivor, Saved)
    new = [stream.empty(NBYTES // 4, "u4") for _ in range(20)]
    assert survivor.array.ptr not in [each.ptr for each in new]
    assert stream.to_host(survivor.array).tolist() == [5] * (NBYTES // 4)


def test_threads_never_have_one_block_at_once(machine: emulator.Emulator) -> None:
    stream = stream_of()
    in_use: set[int] = set()
    twice: list[int] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for _ in range(300):
            buffer = stream.alloc(NBYTES)
            address = buffer.ptr
            if address in in_use:
                twice.append(address)
            in_use.add(address)
            in_use.discard(address)
            buffer.close()

    all_at_once([work] * 4)
    assert not twice
    assert used() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork")  # of other libraries' threads, which it does not use
def test_a_forked_child_has_no_blocks_that_its_parent_cached(machine: emulator.Emulator) -> None:
    stream = stream_of()
    stream.alloc(NBYTES).close()
    child = os.fork()
    if child == 0:
        os._exit(int(any(stream._handle.block_cache.values())))
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert any(stream._handle.block_cache.values())


@pytest.mark.slow
def test_no_block_is_handed_out_twice_after_an_interrupt_at_any_point(
    machine: emulator.Emulator,
) -> None:
    stream = stream_of()
    host = np.arange(NBYTES // 4, dtype="u4")

    def act() -> None:
        for _ in range(2):
            stream.alloc(NBYTES).close()
            stream.to_device(host).close()
            stream.empty(NBYTES // 4, "u4")
        stream.context.synchronize()

    number = 0
    while True:
        interrupter = Interrupter(number)
        if not interrupter.run(act):
            break
        first, second = (stream.to_device(host + n) for n in range(2))
        assert np.array_equal(stream.to_host(first), host), interrupter.place
        assert np.array_equal(stream.to_host(second), host + 1), interrupter.place
        number += 1
    assert number > 20


def test_what_a_broken_context_holds_is_not_reported_again(machine: emulator.Emulator) -> None:
    stream = stream_of()
    stream.alloc(NBYTES).close()
    with pytest.raises(IllegalAddressError):
        stream.context.load_module(PTX).kernel("bump").launch(
            stream, cudadrv.LaunchConfig(1, 1), 64
        )
        stream.synchronize()
    stream.close()


def test_an_emulator_stores_nothing_unless_configured_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDADRV_KEEP_BLOCKS", raising=False)
    with emulator.session() as machine:
        stream = stream_of()
        stream.alloc(NBYTES).close()
        assert allocations(machine) == 0
