"""A device's memory stays consistent whatever comes at any line of a change.

An exception there may lose what the change was making; nothing else. A call in between, as of a
finalizer or a signal handler, gets memory of its own. The oracle is the list of the allocations
that the test still has.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import numpy as np
import pytest

from ptx.emulate.memory.device_memory import (
    GRANULE,
    DeviceHeap,
    DeviceMemory,
    MappedPiece,
    Reservation,
)
from ptx.emulate.model.errors import OutOfMemory
from tests.at_each_line import Event, Line, raising

FILES: Final = ("memory/device_memory.py", "memory/address_ranges.py")
BASE: Final = 1 << 40
GRANULES: Final = 36


class Lab:
    """A small memory with a past: free ranges of several sizes, a quarantine, a reserved range."""

    def __init__(self) -> None:
        self.memory = DeviceMemory(BASE, GRANULES * GRANULE)
        self.memory.quarantine_bytes = 4 * GRANULE
        self.live: dict[int, int] = {}
        self.pieces = pieces = [
            self.allocate(size) for size in (100, 300, 100, 700, 100, 300, 100, 1200, 100)
        ]
        self.range = Reservation(self.memory, 4 * GRANULE, GRANULE)
        for index in (1, 3, 5):
            self.free(pieces[index])
        self.heap = DeviceHeap(self.memory)

    def allocate(self, nbytes: int, alignment: int = GRANULE) -> int:
        address = self.memory.allocate(nbytes, alignment=alignment)
        self.live[address] = nbytes
        return address

    def free(self, address: int) -> None:
        del self.live[address]
        self.memory.free(address)

    def map(self) -> None:
        start = self.range.address
        self.range.map(start, MappedPiece(GRANULE))
        self.range.map(start + GRANULE, MappedPiece(GRANULE))
        self.range.open([start, start + GRANULE], 0, is_open=True)
        self.range.open([start], 0, is_open=False)
        self.range.unmap([start, start + GRANULE])

    def reserve(self) -> None:
        Reservation(self.memory, 2 * GRANULE, 2 * GRANULE).free()

    def use_heap(self) -> None:
        self.heap.free(self.heap.allocate(400, ""))

    def acts(self) -> dict[str, Callable[[], object]]:
        return {
            "allocate": lambda: self.allocate(200),
            "allocate large": lambda: self.allocate(7 * GRANULE),
            "allocate aligned": lambda: self.allocate(300, 1024),
            "allocate what is in quarantine": lambda: self.allocate(1100),
            "free": lambda: self.free(self.pieces[2]),
            "free large": lambda: self.free(self.pieces[7]),
            "map": self.map,
            "reserve": self.reserve,
            "heap": self.use_heap,
        }

    def check(self) -> None:
        """Compare with the allocations that there are, and use the memory."""
        memory = self.memory
        found = {a: memory.find(a + n - 1) for a, n in self.live.items()}
        assert {a: (f.address, f.nbytes) for a, f in found.items() if f} == {
            a: (a, n) for a, n in self.live.items()
        }
        starts, ends = memory.bounds()
        assert (starts[1:] >= ends[:-1]).all()
        assert (starts < ends).all()
        assert set(self.live) <= set(starts.tolist())
        fresh: dict[int, int] = {}
        with suppress(OutOfMemory):
            for nbytes in itertools.cycle((40, 600, 240, 1000)):
                fresh[memory.allocate(nbytes)] = nbytes
        ranges = sorted((a, a + n) for a, n in (self.live | fresh).items())
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(ranges))
        assert ranges[0][0] >= BASE
        assert ranges[-1][1] <= BASE + memory.nbytes
        for address in fresh:
            memory.free(address)
        self.range.unmap(list(self.range.pieces))
        self.range.free()
        for address in [*self.live]:
            self.free(address)
        self.heap.clear()

    def free_granules(self) -> int:
        """Count the granules that can be allocated one by one."""
        memory, count = self.memory, 0
        with suppress(OutOfMemory):
            while True:
                memory.allocate(GRANULE - 16)
                count += 1
        return count


def always(event: Event) -> Callable[[Lab], Event]:
    return lambda _: event


def cases(event: Callable[[Lab], Event]) -> Iterator[tuple[str, Lab]]:
    """Yield each line of each act, after an event there."""
    for name in Lab().acts():
        for number in itertools.count():
            lab = Lab()
            line = Line(number, FILES, event(lab))
            with suppress(KeyboardInterrupt, MemoryError):
                line.run(lab.acts()[name])
            if not line.place:
                break
            yield f"{name}, {line.place}", lab


def failures(event: Callable[[Lab], Event], *, may_lose: int) -> tuple[int, list[str]]:
    """Return how many cases there were, and those that left the memory inconsistent."""
    count, wrong = 0, []
    for name, lab in cases(event):
        count += 1
        try:
            lab.check()
            free = lab.free_granules()
            assert free >= GRANULES - may_lose, f"{GRANULES - free} granules are lost"
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__} {error}".splitlines()[0])
    return count, wrong


@pytest.mark.slow
def test_an_exception_at_any_line_loses_at_most_the_memory_of_its_call() -> None:
    for error in (KeyboardInterrupt, MemoryError):
        count, wrong = failures(always(raising(error)), may_lose=8)
        assert count > 300
        assert wrong == []


@pytest.mark.slow
def test_a_call_in_between_at_any_line_gets_memory_of_its_own() -> None:
    def event(lab: Lab) -> Event:
        def allocate_and_free() -> None:
            with suppress(OutOfMemory):
                address = lab.allocate(250)
                other = lab.allocate(60)
                assert lab.memory.find(address + 249) is not None
                lab.free(other)
                np.testing.assert_array_less(*lab.memory.bounds())

        return allocate_and_free

    count, wrong = failures(event, may_lose=0)
    assert count > 300
    assert wrong == []
