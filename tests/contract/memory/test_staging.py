"""How arrays are cut for the staging ring, and what becomes of its errors and its memory."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from contextlib import AbstractContextManager

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import cudadrv
from campaigns.interrupts.points import Interrupter
from cudadrv import emulator
from cudadrv.driver._api import CUresult
from cudadrv.driver.context import BaseContext
from cudadrv.errors import ClosedError, OutOfMemoryError
from cudadrv.memory import staging
from cudadrv.memory.staging import (
    LEAST_STAGED_BYTES,
    StagingRing,
    ThreadBudget,
    chunks_of,
    copy_staged,
    under_way,
    usable_threads,
)
from tests.noted_calls import replaced_calls
from tests.patience import SECONDS, wait_until

LIMIT = 4 << 20


def ring_of(context: cudadrv.Context) -> StagingRing:
    """The ring of a context, made by a copy."""
    with context.new_stream() as stream:
        stream.to_device(np.ones(LEAST_STAGED_BYTES, np.uint8))
    ring = context._kept[StagingRing]
    assert isinstance(ring, StagingRing)
    return ring


def test_a_contiguous_array_is_cut_without_gap_or_overlap() -> None:
    array = np.zeros((1000, 12_345), np.uint8)
    chunks = chunks_of(array, ThreadBudget())
    assert chunks[0].address == array.ctypes.data
    assert all(chunk.nbytes <= LIMIT and chunk.view is None for chunk in chunks)
    ends = [chunk.offset + chunk.nbytes for chunk in chunks]
    assert [chunk.offset for chunk in chunks] == [0, *ends[:-1]]
    assert ends[-1] == array.nbytes


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    steps=st.lists(st.sampled_from([1, 2, -1, -3]), min_size=4, max_size=4),
    transposed=st.booleans(),
    limit=st.integers(8, 400),
)
def test_pieces_of_a_strided_array_are_the_array_in_order(
    shape: list[int], steps: list[int], transposed: bool, limit: int
) -> None:
    whole = np.arange(np.prod(shape) * 6 ** len(shape)).reshape([6 * extent for extent in shape])
    array = whole[tuple(slice(None, None, step) for step in steps[: len(shape)])]
    if transposed:
        array = array.T
    pieces = list(staging._pieces(array, limit))
    assert all(piece.nbytes <= limit for piece in pieces)
    assert b"".join(piece.tobytes() for piece in pieces) == array.tobytes()


def test_every_thread_stops_and_the_first_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    context = cudadrv.cuda_context_for(0)
    source = np.ones(100 * LIMIT, np.uint8)
    moved: list[int] = []

    def fail(to: int, of: int, nbytes: int) -> None:
        moved.append(of)
        if len(moved) == 4:
            raise OSError("the fourth chunk failed")

    with context.new_stream() as stream:
        device = stream.empty(source.size, "u1")
        monkeypatch.setattr(staging, "memmove", fail)
        with pytest.raises(OSError, match="the fourth chunk"):
            stream.copy(device, source)
    assert len(moved) < 100
    assert not under_way


@pytest.mark.parametrize("to_device", [True, False])
def test_each_thread_moves_a_part_of_the_smallest_staged_copy(
    to_device: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = len(chunks_of(np.zeros(LEAST_STAGED_BYTES, np.uint8), ThreadBudget()))
    monkeypatch.setattr(staging, "usable_threads", lambda: threads)
    meeting = threading.Barrier(threads, timeout=SECONDS)

    def move(to: int, of: int, nbytes: int) -> None:
        meeting.wait()  # until all threads are moving something
        ctypes.memmove(to, of, nbytes)

    with cudadrv.Context.create(0) as context, context.new_stream() as stream:
        host = np.random.default_rng(1).integers(0, 256, LEAST_STAGED_BYTES, np.uint8)
        device = stream.to_device(host)
        out = np.empty_like(host)
        with monkeypatch.context() as patch:
            patch.setattr(staging, "memmove", move)
            if to_device:
                stream.copy(device, host)
            else:
                stream.to_host(device, out)
        assert (stream.to_host(device, out) == host).all()


def test_copies_at_once_share_the_threads_and_are_cut_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staging, "usable_threads", lambda: 12)
    array = np.zeros(16 << 20, np.uint8)
    shares: list[ThreadBudget] = []
    monkeypatch.setattr(staging, "under_way", shares)
    while len(shares) < 4:
        shares.append(ThreadBudget())
    assert [share.threads for share in shares] == [12, 6, 4, 4]
    assert [len(chunks_of(array, share)) for share in shares] == [6, 4, 4, 4]
    shares.clear()
    assert ThreadBudget().threads == 12


@pytest.mark.slow
def test_a_copy_does_not_wait_for_the_whole_of_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staging, "usable_threads", lambda: 2)  # two pairs of buffers
    large = np.ones(30 * LIMIT, np.uint8)
    small = np.full(LEAST_STAGED_BYTES, 2, np.uint8)
    first, begun, small_is_moved = large.ctypes.data, threading.Event(), threading.Event()
    moved: list[bool] = []
    movers: set[int] = set()

    def move(to: int, of: int, nbytes: int) -> None:
        is_large = first <= of < first + large.nbytes
        if is_large:
            movers.add(threading.get_ident())
            if len(movers) == 2:
                begun.set()
            if begun.is_set():  # the other copy has half a second, or more if it comes late
                wait_until(lambda: len(under_way) > 1 or not all(moved))
                small_is_moved.wait(0.05)
        else:
            small_is_moved.set()
        moved.append(is_large)
        ctypes.memmove(to, of, nbytes)

    with cudadrv.Context.create(0) as context:
        stream, other = context.new_stream(), context.new_stream()
        there, beside = stream.empty(large.shape, "u1"), other.empty(small.shape, "u1")
        monkeypatch.setattr(staging, "memmove", move)
        thread = threading.Thread(target=stream.copy, args=(there, large))
        thread.start()
        assert begun.wait(SECONDS)
        other.copy(beside, small)
        thread.join()
        assert (other.to_host(beside) == 2).all()
        assert (stream.to_host(there) == 1).all()
    up = moved[: 30 + len(chunks_of(small, ThreadBudget()))]
    assert not under_way
    assert not all(up[:30])  # the small one was moved among the parts of the large one


def test_a_failed_copy_gives_its_buffers_back() -> None:
    context = cudadrv.cuda_context_for(0)
    ring = ring_of(context)
    pairs = set(ring.pairs)
    source = np.ones(LEAST_STAGED_BYTES, np.uint8)
    with context.new_stream() as stream:
        device = stream.empty(source.size, "u1")
        stream.synchronize()
        for to_device in (True, False):
            with pytest.raises(cudadrv.CudaError):
                copy_staged(stream, 0, source, to_device=to_device)
            assert set(ring.pairs) == pairs
        stream.copy(device, source)
        assert (stream.to_host(device) == 1).all()
    assert set(ring.pairs) == pairs
    assert context._kept[StagingRing] is ring


def test_a_ring_goes_with_its_context() -> None:
    context = cudadrv.Context.create(0)
    ring = weakref.ref(ring_of(context))
    assert ring() is not None
    context.close()
    del context
    gc.collect()
    assert ring() is None


def pins_nothing() -> AbstractContextManager[None]:
    return replaced_calls(cuMemHostAlloc=lambda *_: (CUresult.CUDA_ERROR_OUT_OF_MEMORY, None))


def test_the_ring_pins_buffers_for_as_many_threads_as_its_copies_have_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staging, "usable_threads", lambda: 9)
    with cudadrv.Context.create(0) as context, context.new_stream() as stream:
        ring = ring_of(context)
        assert len(ring.pairs) == staging.FEWEST_THREADS
        stream.to_device(np.ones(9 * LIMIT, np.uint8))
        assert len(ring.pairs) == 9
        stream.to_device(np.ones(9 * LIMIT, np.uint8))
        assert len(ring.pairs) == 9
        with pins_nothing():
            monkeypatch.setattr(staging, "usable_threads", lambda: 12)
            large = np.arange(13 * LIMIT, dtype=np.uint8)
            device = stream.to_device(large)
        assert len(ring.pairs) == 9
        assert np.array_equal(stream.to_host(device), large)


def test_where_nothing_can_be_pinned_it_is_reported_once_and_copies_are_direct() -> None:
    with cudadrv.Context.create(0) as context, context.new_stream() as stream, pins_nothing():
        source = np.arange(LEAST_STAGED_BYTES, dtype=np.uint16)
        with pytest.warns(RuntimeWarning, match="go unstaged and slow"):
            device = stream.to_device(source)
        assert np.array_equal(stream.to_host(device), source)


def test_nothing_is_pinned_before_it_is_needed() -> None:
    with cudadrv.Context.create(0) as context, context.new_stream() as stream:
        stream.to_host(stream.to_device(np.zeros(LEAST_STAGED_BYTES - 1, np.uint8)))
        assert not context._kept
        assert ring_of(context).pairs


def test_a_copy_that_fails_waits_before_it_gives_its_buffers_back() -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).new_stream()
        device = stream.empty(LEAST_STAGED_BYTES, "u1")
        waited: list[int] = []
        wait = machine.cuStreamSynchronize

        def synchronize(handle: object) -> object:
            waited.append(int(handle))  # type: ignore[call-overload]
            return wait(handle)  # type: ignore[arg-type]

        with (
            replaced_calls(cuStreamSynchronize=synchronize),
            machine.fail("cuEventRecord"),
            pytest.raises(cudadrv.CudaError),
        ):
            stream.copy(device, np.ones(LEAST_STAGED_BYTES, np.uint8))
        assert waited == [int(stream.handle)]


def test_a_transfer_of_unknown_end_is_waited_for_before_its_buffer_is_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staging, "usable_threads", lambda: 1)
    with emulator.session() as machine:
        first, second = (cudadrv.cuda_context_for(0).new_stream() for _ in range(2))
        source = np.ones(LEAST_STAGED_BYTES, np.uint8)
        devices = [stream.empty(source.size, "u1") for stream in (first, second)]
        with (
            machine.fail("cuEventRecord"),
            machine.fail("cuStreamSynchronize"),
            pytest.raises(cudadrv.CudaError, match="cuEventRecord"),
        ):
            first.copy(devices[0], source)
        waited: list[int] = []
        wait = machine.cuStreamSynchronize

        def synchronize(handle: object) -> object:
            waited.append(int(handle))  # type: ignore[call-overload]
            return wait(handle)  # type: ignore[arg-type]

        with replaced_calls(cuStreamSynchronize=synchronize):
            second.copy(devices[1], source)
            second.copy(devices[1], source)
        assert waited == [int(first.handle)]


def test_the_buffers_used_last_are_used_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the processor's caches; a rotation through all of the ring's never is."""
    context = cudadrv.cuda_context_for(0)
    ring = ring_of(context)
    ring.pairs.extendleft([ring.new_pair(), ring.new_pair()])
    unused = set(list(ring.pairs)[:2])
    last = ring.pairs[-1]
    monkeypatch.setattr(staging, "usable_threads", lambda: 1)
    with context.new_stream() as stream:
        stream.to_device(np.ones(LEAST_STAGED_BYTES, np.uint8))
    assert ring.pairs[-1] is last
    assert not any(slot.busy for pair in unused for slot in pair)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_staged_copy_writes_no_more_after_an_interrupt_at_any_point(
    way: str,
) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    ones = np.ones(LEAST_STAGED_BYTES, np.uint8)
    device, target = stream.to_device(ones), np.zeros_like(ones)
    for number in range(1000):
        interrupter = Interrupter(number)
        if not interrupter.run(
            lambda: stream.copy(device, ones) if way == "up" else stream.copy(target, device)
        ):
            break
        then = int(target.sum())
        stream.fill(device, 2)  # nobody reads it any more
        stream.synchronize()
        assert int(target.sum()) == then, interrupter.place
        stream.fill(device, 1)
        target[...] = 0
    assert number > 50
    assert (stream.to_host(device) == 1).all()


def test_a_copy_goes_on_though_all_buffers_of_the_ring_are_lost() -> None:
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        ring = ring_of(context)
        ring.pairs.clear()
        host = np.arange(LEAST_STAGED_BYTES // 4, dtype="u4")
        assert np.array_equal(stream.to_host(stream.to_device(host)), host)
        assert 1 <= len(ring.pairs) <= usable_threads()  # a pair for each thread that helped


def test_a_copy_that_cannot_pin_more_waits_for_the_buffers_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = cudadrv.cuda_context_for(0)
    ring = ring_of(context)
    pair = ring.pairs[-1]
    others = list(ring.pairs)
    ring.pairs.clear()
    timer = threading.Timer(0.05, ring.pairs.append, [pair])
    with pins_nothing():
        timer.start()
        assert ring.new_pair() is pair
        timer.join()
        monkeypatch.setattr(staging, "_TIMEOUT_SECONDS", 0.0)
        with pytest.raises(OutOfMemoryError, match="pinning"):
            ring.new_pair()
    ring.pairs.extend(others)


def test_a_ring_of_a_context_that_closes_meanwhile_is_not_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with emulator.session() as machine:
        contexts = machine.live_objects()["context"]
        own = cudadrv.Context.create(0)
        make = StagingRing.__init__

        def close_first(ring: StagingRing, context: BaseContext) -> None:
            make(ring, context)
            own.close()

        monkeypatch.setattr(StagingRing, "__init__", close_first)
        with own.new_stream() as stream, pytest.raises(ClosedError):
            stream.to_device(np.ones(LEAST_STAGED_BYTES, np.uint8))
        gc.collect()
        assert machine.live_objects()["context"] == contexts


def test_a_copy_keeps_its_array_as_long_as_a_thread_may_serve_it(context: cudadrv.Context) -> None:
    array = np.ones(LEAST_STAGED_BYTES, np.uint8)
    stream = context.default_stream
    copy = staging._StagedCopy(stream, 0, array, ring_of(context), to_device=False)
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is not None
    del copy
    assert alive() is None
