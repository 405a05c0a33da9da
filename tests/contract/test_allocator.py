from __future__ import annotations

import os
import threading
import time
from collections import deque
from functools import partial
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import cudadrv
from cudadrv import emulator
from cudadrv.errors import ArgumentTypeError, CudadrvError, InvalidValueError, OutOfMemoryError
from cudadrv.memory import CudaAllocator
from cudadrv.memory.buffer import DeviceBuffer
from cudadrv.memory.reuse.allocator import (
    MOST_BLOCKS_OF_A_SIZE,
    AllocatorStatistics,
    DeallocationError,
    FrozenAllocatorError,
)
from tests.several_threads import running

STRESS_SECONDS = float(os.environ.get("CUDADRV_STRESS_SECONDS", "0.5"))
CAP = 10_000


@pytest.fixture
def allocator(stream: cudadrv.Stream) -> CudaAllocator:
    return CudaAllocator(stream)


def bytes_at(stream: cudadrv.Stream, address: int, nbytes: int) -> DeviceBuffer:
    return DeviceBuffer.borrowed(stream, address, nbytes, None)


def pick(data: st.DataObject, among: list[int]) -> int:
    """One of what there is; by position, since addresses differ from run to run."""
    return among[data.draw(st.integers(0, len(among) - 1))]


class AllocatorMachine(RuleBasedStateMachine):
    """The allocator against a model of blocks in use and free blocks by size."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = cudadrv.cuda_context_for(0).default_stream
        self.allocator = CudaAllocator(self.stream, cap_bytes=CAP)
        self.used: dict[int, int] = {}
        self.free: dict[int, deque[int]] = {}
        self.captured: set[int] = set()
        self.arena: cudadrv.DeviceBuffer | None = None

    def teardown(self) -> None:
        self.allocator.unfreeze()
        self.allocator.reset()
        for address, nbytes in self.used.items():
            self.allocator.deallocate(address, nbytes)

    def free_bytes(self) -> int:
        return sum(size * len(blocks) for size, blocks in self.free.items())

    @precondition(lambda self: not self.allocator.is_frozen)
    @rule(nbytes=st.sampled_from([1, 8, 500, 3000, 3001, 20_000]))
    def allocate(self, nbytes: int) -> None:
        address = self.allocator.allocate(nbytes)
        assert address not in self.used
        blocks = self.free.get(nbytes)
        if blocks:
            assert blocks.popleft() == address
        else:
            assert all(address not in other for other in self.free.values())
        self.used[address] = nbytes

    @precondition(lambda self: self.used and not self.allocator.is_frozen)
    @rule(data=st.data())
    def deallocate(self, data: st.DataObject) -> None:
        address = pick(data, list(self.used))
        nbytes = self.used.pop(address)
        self.allocator.deallocate(address, nbytes)
        self.free.setdefault(nbytes, deque()).append(address)
        while self.free_bytes() > CAP:
            self.free[max(size for size, blocks in self.free.items() if blocks)].popleft()

    @precondition(lambda self: self.free_bytes() and not self.allocator.is_frozen)
    @rule(data=st.data())
    def deallocate_twice(self, data: st.DataObject) -> None:
        size = pick(data, [size for size, blocks in self.free.items() if blocks])
        with pytest.raises(DeallocationError, match="not in use"):
            self.allocator.deallocate(self.free[size][0], size)

    @precondition(lambda self: self.used)
    @rule(data=st.data())
    def deallocate_with_another_size(self, data: st.DataObject) -> None:
        address = pick(data, list(self.used))
        with pytest.raises(DeallocationError, match="it is still in use"):
            self.allocator.deallocate(address, self.used[address] + 1)

    @precondition(lambda self: not self.allocator.is_frozen)
    @rule()
    def reset(self) -> None:
        self.allocator.reset()
        self.free.clear()

    @precondition(lambda self: not self.allocator.is_frozen)
    @rule()
    def freeze(self) -> None:
        self.arena = self.stream.alloc(1 << 16)
        self.allocator.freeze()
        self.allocator.install_arena(self.arena.ptr, self.arena.nbytes)
        self.captured = set()

    @precondition(lambda self: self.allocator.is_frozen)
    @rule(nbytes=st.sampled_from([1, 8, 500]), gives_back=st.booleans())
    def allocate_frozen(self, nbytes: int, gives_back: bool) -> None:
        address = self.allocator.allocate(nbytes)
        assert self.arena is not None
        assert self.arena.ptr <= address < self.arena.ptr + self.arena.nbytes
        assert address > max(self.captured, default=0)
        self.captured.add(address)
        if gives_back:
            self.allocator.deallocate(address, nbytes)

    @precondition(lambda self: self.allocator.is_frozen and self.used)
    @rule(data=st.data())
    def deallocate_frozen(self, data: st.DataObject) -> None:
        address = pick(data, list(self.used))
        self.allocator.deallocate(address, self.used.pop(address))

    @precondition(lambda self: self.allocator.is_frozen)
    @rule()
    def unfreeze(self) -> None:
        self.allocator.unfreeze()
        assert not self.allocator.has_arena

    @invariant()
    def totals_are_true_and_the_cap_is_kept(self) -> None:
        assert self.allocator.statistics() == AllocatorStatistics(
            in_use_bytes=sum(self.used.values()),
            in_use_blocks=len(self.used),
            cached_bytes=self.free_bytes(),
            cap_bytes=CAP,
        )
        assert self.free_bytes() <= CAP


TestAllocatorMachine = AllocatorMachine.TestCase
TestAllocatorMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


def test_no_bytes_are_the_null_pointer(allocator: CudaAllocator) -> None:
    assert allocator.allocate(0) == 0
    allocator.deallocate(0, 0)
    with pytest.raises(InvalidValueError, match="allocating -1 bytes"):
        allocator.allocate(-1)
    with pytest.raises(InvalidValueError, match="cap of -1 bytes"):
        CudaAllocator(allocator.stream, cap_bytes=-1)


def test_blocks_come_back_by_exact_size_oldest_first(allocator: CudaAllocator) -> None:
    first, second, other = (allocator.allocate(nbytes) for nbytes in (100, 100, 101))
    for address, nbytes in ((second, 100), (other, 101), (first, 100)):
        allocator.deallocate(address, nbytes)
    assert [allocator.allocate(100) for _ in range(2)] == [second, first]
    assert allocator.allocate(101) == other
    assert allocator.allocate(np.int64(7)) > 0  # type: ignore[arg-type]  # on purpose


def test_at_most_64_blocks_of_a_size_are_cached_and_the_oldest_is_freed(
    allocator: CudaAllocator,
) -> None:
    addresses = [allocator.allocate(16) for _ in range(MOST_BLOCKS_OF_A_SIZE + 2)]
    for address in addresses:
        allocator.deallocate(address, 16)
    assert MOST_BLOCKS_OF_A_SIZE == 64
    assert allocator.statistics().cached_bytes == 64 * 16
    assert allocator.allocate(16) == addresses[2]


def test_over_the_cap_the_largest_sizes_go_first(stream: cudadrv.Stream) -> None:
    allocator = CudaAllocator(stream, cap_bytes=1000)
    sizes = (400, 300, 200, 200)
    blocks = [(allocator.allocate(nbytes), nbytes) for nbytes in sizes]
    for address, nbytes in blocks:
        allocator.deallocate(address, nbytes)
    assert allocator.statistics().cached_bytes == 700
    assert [allocator.allocate(nbytes) for nbytes in (300, 200, 200)] == [
        address for address, _ in blocks[1:]
    ]
    assert repr(allocator).startswith("<CudaAllocator 700 bytes in use, 0 cached, on <Stream")


def test_the_default_cap_is_a_gibibyte(allocator: CudaAllocator) -> None:
    assert allocator.statistics().cap_bytes == 1 << 30


def test_many_sizes_do_not_pile_up(allocator: CudaAllocator) -> None:
    for nbytes in range(1, 5000):
        allocator.deallocate(allocator.allocate(nbytes), nbytes)
        if nbytes % 100 == 0:
            allocator.reset()
    assert len(allocator._free) <= 4096


def test_a_block_of_no_ones_is_rejected(allocator: CudaAllocator) -> None:
    with pytest.raises(DeallocationError, match="0x100 is not in use"):
        allocator.deallocate(0x100, 16)


def test_a_block_is_released_by_numbers_of_any_type_and_lost_by_none(
    allocator: CudaAllocator,
) -> None:
    wrong: Any
    address = allocator.allocate(640)
    for wrong in (float(address), np.array([address]), "x"):
        with pytest.raises(ArgumentTypeError, match="ptr is"):
            allocator.deallocate(wrong, 640)
    allocator.freeze()
    for wrong in (np.array([b"a", b"b"]), [640], None):
        with pytest.raises(ArgumentTypeError, match="nbytes is"):
            allocator.deallocate(0, wrong)
    allocator.unfreeze()
    assert allocator.statistics().in_use_bytes == 640
    allocator.deallocate(address, np.array(640))  # type: ignore[arg-type]  # as NumPy counts
    assert allocator.statistics().in_use_bytes == 0
    again = allocator.allocate(640)
    assert (again, type(again)) == (address, int)
    allocator.deallocate(np.uint64(address), 640)  # type: ignore[arg-type]  # as NumPy counts
    again = allocator.allocate(640)
    assert (again, type(again)) == (address, int)


def test_a_request_that_does_not_fit_gets_what_was_cached_and_trimmed() -> None:
    with emulator.session(total_memory=512 << 20):
        stream = cudadrv.cuda_context_for(0).new_stream()
        allocator = CudaAllocator(stream)
        for address in [allocator.allocate(100 << 20) for _ in range(4)]:
            allocator.deallocate(address, 100 << 20)
        assert allocator.statistics().cached_bytes == 400 << 20
        large = allocator.allocate(450 << 20)
        assert large
        assert allocator.statistics().cached_bytes == 0
        allocator.deallocate(large, 450 << 20)


def test_out_of_memory_names_the_size(allocator: CudaAllocator) -> None:
    kept = allocator.allocate(1 << 20)
    allocator.deallocate(kept, 1 << 20)
    nbytes = 4 * allocator.stream.context.memory_info().total
    with pytest.raises(OutOfMemoryError, match=f"allocating {nbytes} bytes"):
        allocator.allocate(nbytes)
    assert allocator.statistics().cached_bytes == 0
    assert allocator.allocate(16)


def test_another_failure_is_not_mistaken_for_a_lack_of_memory(context: cudadrv.Context) -> None:
    stream = context.new_stream()
    allocator = CudaAllocator(stream)
    allocator.deallocate(allocator.allocate(16), 16)
    allocator.reset()
    stream.close()
    with pytest.raises(cudadrv.ClosedError):
        allocator.allocate(16)


def test_frozen_allocations_bypass_the_free_lists(
    stream: cudadrv.Stream, allocator: CudaAllocator
) -> None:
    cached = allocator.allocate(512)
    allocator.deallocate(cached, 512)
    arena = stream.alloc(4096)
    allocator.freeze()
    allocator.install_arena(arena.ptr, arena.nbytes)
    assert (allocator.is_frozen, allocator.has_arena) == (True, True)
    addresses = []
    for _ in range(3):
        addresses.append(allocator.allocate(512))
        allocator.deallocate(addresses[-1], 512)
    assert addresses == [arena.ptr, arena.ptr + 512, arena.ptr + 1024]
    assert allocator.allocate(0) == 0
    with pytest.raises(OutOfMemoryError, match="capture arena of 4096 bytes, which has 2560 left"):
        allocator.allocate(2561)
    with pytest.raises(FrozenAllocatorError, match="frozen already"):
        allocator.freeze()
    with pytest.raises(FrozenAllocatorError, match="installed already"):
        allocator.install_arena(arena.ptr, arena.nbytes)
    with pytest.raises(FrozenAllocatorError, match="reset of an allocator that is frozen"):
        allocator.reset()
    allocator.unfreeze()
    allocator.unfreeze()
    assert (allocator.is_frozen, allocator.has_arena) == (False, False)
    assert allocator.allocate(512) == cached
    allocator.deallocate(addresses[0], 512)  # late, and harmless: it is the arena's
    assert allocator.statistics().cached_bytes == 0


def test_a_captured_address_in_a_free_list_is_found(
    stream: cudadrv.Stream, allocator: CudaAllocator
) -> None:
    arena = stream.alloc(4096)
    allocator.deallocate(allocator.allocate(512), 512)
    allocator.freeze()
    allocator.install_arena(arena.ptr, arena.nbytes)
    address = allocator.allocate(512)
    allocator._free[512].append(address)  # what must never happen
    with pytest.raises(FrozenAllocatorError, match=f"found in the free lists: {address:#x}"):
        allocator.unfreeze()
    assert not allocator.is_frozen
    assert allocator.allocate(512) != address
    assert allocator.allocate(512) != address


def test_frozen_without_an_arena_the_memory_is_the_graphs(
    stream: cudadrv.Stream, allocator: CudaAllocator
) -> None:
    out = stream.zeros(64, "u1")
    before = allocator.allocate(64)
    allocator.freeze()
    with stream.capture() as graph:
        scratch = allocator.allocate(64)
        left = allocator.allocate(64)
        stream.fill(bytes_at(stream, scratch, 64), 5)
        stream.copy(out.buffer, bytes_at(stream, scratch, 64))
        allocator.deallocate(scratch, 64)
        allocator.deallocate(before, 64)
        allocator.free_captured()
    allocator.unfreeze()
    assert left != scratch
    executable = graph.instantiate()
    for _ in range(3):
        executable.launch(stream)
    assert stream.to_host(out).tolist() == [5] * 64
    assert allocator.statistics().in_use_blocks == 0


def test_graph_memory_released_after_the_capture_is_freed_by_the_driver(
    stream: cudadrv.Stream, allocator: CudaAllocator
) -> None:
    allocator.freeze()
    with stream.capture() as graph:
        kept = allocator.allocate(64)
        stream.fill(bytes_at(stream, kept, 64), 9)
    allocator.unfreeze()
    executable = graph.instantiate()
    executable.launch(stream)
    out = np.empty(64, np.uint8)
    stream.copy(out, bytes_at(stream, kept, 64))
    assert (out == 9).all()
    allocator.deallocate(kept, 64)
    assert allocator.statistics().cached_bytes == 0
    executable.launch(stream)  # which it could not if the memory of the first were still in use
    with pytest.raises(DeallocationError):
        allocator.deallocate(kept, 64)
    stream.synchronize()


def test_a_dropped_allocator_gives_its_blocks_back() -> None:
    with emulator.session(total_memory=256 << 20):
        stream = cudadrv.cuda_context_for(0).new_stream()
        for _ in range(4):
            allocator = CudaAllocator(stream)
            allocator.deallocate(allocator.allocate(200 << 20), 200 << 20)
            del allocator


def test_threads_on_one_allocator_double_nothing_and_lose_nothing(
    stream: cudadrv.Stream,
) -> None:
    allocator = CudaAllocator(stream, cap_bytes=20_000)
    faults: list[object] = []
    owners: dict[int, int] = {}
    stop = threading.Event()

    def work(number: int) -> None:
        turn = number
        held: list[tuple[int, int]] = []
        try:
            while not stop.is_set():
                turn += 1
                nbytes = 16 << turn % 9
                address = allocator.allocate(nbytes)
                if owners.setdefault(address, number) != number:
                    faults.append(f"{address:#x} in two hands")
                held.append((address, nbytes))
                while len(held) > turn % 5:
                    address, nbytes = held.pop(0)
                    del owners[address]
                    allocator.deallocate(address, nbytes)
            for address, nbytes in held:
                del owners[address]
                allocator.deallocate(address, nbytes)
        except (CudadrvError, KeyError) as error:
            faults.append(error)

    with running([partial(work, number) for number in range(32)]):
        time.sleep(STRESS_SECONDS)
        stop.set()
    now = allocator.statistics()
    assert not faults
    assert (now.in_use_bytes, now.in_use_blocks) == (0, 0)
    assert now.cached_bytes <= 20_000
    assert now.cached_bytes == sum(size * len(blocks) for size, blocks in allocator._free.items())
    blocks = [address for blocks in allocator._free.values() for address in blocks]
    assert len(blocks) == len(set(blocks))


def test_a_block_that_the_driver_rejects_keeps_no_other_from_it() -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).new_stream()
        allocator = CudaAllocator(stream)
        addresses = [allocator.allocate(512) for _ in range(5)]
        for address in addresses:
            allocator.deallocate(address, 512)
        with machine.fail("cuMemFreeAsync"), pytest.raises(CudadrvError):
            allocator.reset()
        stream.synchronize()  # what is freed in stream order is used until then
        assert cudadrv.memory.pool_info(stream.context.device).used == 512
