"""Processes that share memory, killed while they take it, write it and close it.

Whatever becomes of the others, memory has what was written last, and in the end nothing is left:
neither memory nor descriptors nor files.
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import resource_sharer
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import cudadrv
from cudadrv import DeviceArray, MemoryPool
from cudadrv.ipc import IpcMemoryHandle
from cudadrv.memory import GrowingBuffer, UnpooledMemory
from tests.contract.peer import KEPT, Peer

from .report import Report

_PEERS: Final = 2
_ARRAYS: Final = 6
_LENGTH: Final = 5000
_MOST_MS: Final = 8
AnyArray = DeviceArray[Any]


def stream() -> cudadrv.Stream:
    return cudadrv.cuda_context_for(0).default_stream


def take(number: int, array: AnyArray) -> None:
    KEPT[str(number)] = array


def drop(number: int) -> None:
    del KEPT[str(number)]


def add(number: int, value: int) -> list[int]:
    """Add to all elements; gives the first and the last."""
    array = KEPT[str(number)]
    stream().copy(array, stream().to_host(array) + value)
    stream().synchronize()
    return [int(each) for each in stream().to_host(array)[[0, -1]]]


@dataclass(eq=False)
class Shared:
    """An array, what it must have, and the processes that have it.

    Attributes:
        number: no other has it.
        array: the array.
        values: what was written last.
        holders: the processes that have it too.
    """

    number: int
    array: AnyArray
    values: npt.NDArray[np.int64]
    holders: set[Peer] = field(default_factory=set)


class Campaign:
    """One run: what there is, and what may be done to it."""

    def __init__(self, seed: int) -> None:
        self.outcome = Report()
        self.random = random.Random(seed)
        self.seed = seed
        self.steps = 0
        self.pool = MemoryPool(shareable=True)
        self.peers = [Peer() for _ in range(_PEERS)]
        self.shared: list[Shared] = []
        self.made = 0

    def step(self) -> None:
        """Do one thing, and look at one array."""
        self.steps += 1
        acts: tuple[Callable[[], None], ...] = (
            self.make, self.send, self.send, self.write_there, self.write_there, self.write_here,
            self.drop_there, self.close, self.kill,
        )  # fmt: skip
        act = self.random.choice(acts)
        self.outcome.count(act.__name__)
        act()
        if self.shared:
            self.look(self.random.choice(self.shared), act.__name__)

    def look(self, shared: Shared, after: str) -> None:
        found = stream().to_host(shared.array)
        if not np.array_equal(found, shared.values):
            self.outcome.failures.append(
                f"array {shared.number} has {found[:3]}..., and not {shared.values[:3]}..., after "
                f"{after} (seed {self.seed}, step {self.steps})"
            )
            shared.values = found

    def make(self) -> None:
        if len(self.shared) >= _ARRAYS:
            return
        values = np.full(self.random.randint(1, _LENGTH), self.random.randint(0, 99))
        kind = self.random.randrange(3)
        array: AnyArray
        if kind == 2:
            buffer = GrowingBuffer(stream(), 2 << 20, values.nbytes, shareable=True)
            array = DeviceArray(buffer, values.size, values.dtype)
            stream().copy(array, values)
        else:
            with cudadrv.using_memory((self.pool, UnpooledMemory())[kind]):
                array = stream().to_device(values)
        self.made += 1
        self.shared.append(Shared(self.made, array, values))

    def some(self) -> tuple[Shared, Peer] | None:
        """An array, and a process that has it."""
        found = [(each, peer) for each in self.shared for peer in self.peers]
        found = [(each, peer) for each, peer in found if peer in each.holders]
        return self.random.choice(found) if found else None

    def send(self) -> None:
        if self.shared:
            shared, peer = self.random.choice(self.shared), self.random.choice(self.peers)
            peer.ask(take, shared.number, shared.array)
            shared.holders.add(peer)

    def write_there(self) -> None:
        if (chosen := self.some()) is not None:
            shared, peer = chosen
            value = self.random.randint(1, 9)
            shared.values = shared.values + value
            ends = peer.ask(add, shared.number, value)
            if ends != [shared.values[0], shared.values[-1]]:
                self.outcome.failures.append(f"{ends} there (seed {self.seed}, step {self.steps})")

    def write_here(self) -> None:
        if self.shared:
            shared = self.random.choice(self.shared)
            shared.values = shared.values * 2 % 1000
            stream().copy(shared.array, shared.values)
            stream().synchronize()

    def drop_there(self) -> None:
        if (chosen := self.some()) is not None:
            shared, peer = chosen
            peer.ask(drop, shared.number)
            shared.holders.discard(peer)

    def close(self) -> None:
        free = [each for each in self.shared if not each.holders]
        if free:
            shared = self.random.choice(free)
            self.shared.remove(shared)
            shared.array.close()

    def kill(self) -> None:
        """Kill a process in the middle of something, and have another one in its place."""
        if self.random.random() < 0.7:
            return  # starting one takes long
        peer = self.random.choice(self.peers)
        held = [each for each in self.shared if peer in each.holders]
        changed = None
        if held and self.random.random() < 0.5:
            changed = self.random.choice(held)
            peer.begin(add, changed.number, 1)
        elif self.shared:
            shared = self.random.choice(self.shared)
            peer.begin(take, shared.number, shared.array)
        time.sleep(self.random.uniform(0, _MOST_MS) / 1000)
        peer.kill()
        self.outcome.count("processes killed")
        for each in held:
            each.holders.discard(peer)
        if changed is not None:
            found = stream().to_host(changed.array)
            # The copy that was under way has written some elements, or none, or all.
            wrong = (found != changed.values) & (found != changed.values + 1)
            if wrong.any():
                self.outcome.failures.append(f"torn (seed {self.seed}, step {self.steps})")
            changed.values = found
        self.peers[self.peers.index(peer)] = Peer()

    def end(self) -> None:
        """Close all, here and there."""
        for shared in self.shared:
            self.look(shared, "all")
        for peer in self.peers:
            peer.end()
        self.shared.clear()
        self.pool.close()
        gc.collect()
        cudadrv.cuda_context_for(0).synchronize()
        resource_sharer.stop(timeout=5)  # what was sent to those that were killed


def run_campaign(seconds: float, seed: int) -> Report:
    """Share, write and kill for so long."""
    context = cudadrv.cuda_context_for(0)
    with cudadrv.using_memory(UnpooledMemory()), stream().zeros(3, "f4") as first:
        IpcMemoryHandle.of(first)  # an emulated device has a file for all such memory
    Peer().end()  # the first one brings what multiprocessing keeps
    context.synchronize()
    cudadrv.memory.trim_pool(context.device)
    gc.collect()
    gc.collect()  # of campaigns before this one
    before = context.memory_info().free, len(os.listdir("/proc/self/fd"))
    campaign = Campaign(seed)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            campaign.step()
    finally:
        campaign.end()
    outcome = campaign.outcome
    del campaign
    gc.collect()
    cudadrv.memory.trim_pool(context.device)
    after = context.memory_info().free, len(os.listdir("/proc/self/fd"))
    if after[0] != before[0] or after[1] > before[1]:
        outcome.failures.append(f"(free bytes, descriptors) {before}, then {after} (seed {seed})")
    outcome.failures += [f"{name} is left" for name in os.listdir("/dev/shm") if "cudadrv" in name]
    return outcome
