"""Turns of `threads` with memory that is not of the driver's own pool.

Each ends what it used in any order, while work and frees are still queued.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import numpy as np

import cudadrv
from cudadrv import DeviceArray, MemoryPool, using_memory
from cudadrv.errors import PeerAccessUnsupportedError, UnsupportedError
from cudadrv.memory import (
    GrowingBuffer,
    MappedBuffer,
    MemoryStream,
    PhysicalMemory,
    UnpooledMemory,
    managed_empty,
    pinned_empty,
)
from tests.contract.order.lab import Lab
from tests.contract.order.late_kernels import HostInts, Ints, count_from

N: Final = 1024
_NBYTES: Final = 4 * N


class TwoPools:
    """A resource that takes each piece of memory, and one beside it, from two pools."""

    def __init__(self, pools: tuple[MemoryPool, MemoryPool]) -> None:
        self._pools = pools
        self._beside: dict[int, int] = {}

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate both pieces; return the first."""
        address = self._pools[0].allocate(nbytes, stream)
        self._beside[address] = self._pools[1].allocate(16, stream)
        return address

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Free both pieces."""
        self._pools[1].deallocate(self._beside.pop(address), 16, stream)
        self._pools[0].deallocate(address, nbytes, stream)


class MemoryTurns:
    """One thread's work with memory of several kinds: each method is a turn.

    Attributes:
        lab: where it works.
        chance: what it chooses by.
        faults: wrong values, in words.
    """

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab = lab
        self.chance = random.Random(seed)
        self.faults: list[str] = []
        self.memory_work: tuple[Callable[[int], None], ...] = (
            self.use_pool, self.use_two_pools, self.use_pool_of_both_devices, self.use_unpooled,
            self.use_growing, self.use_mapped, self.use_managed, self.use_pinned_of_a_node,
        )  # fmt: skip

    def use_pool(self, device: int) -> None:
        """A pool ends before its memory, or after it."""
        stream = self._stream(device)
        threshold, shareable = self.chance.choice((0, 1 << 30)), self.chance.random() < 0.1
        with MemoryPool(device, release_threshold=threshold, shareable=shareable) as pool:
            if shareable and self.chance.random() < 0.5:
                pool.descriptor  # noqa: B018  # other processes may have the pool from now on
            with using_memory(pool):
                x, out = stream.zeros(N, np.int32), stream.zeros(N, np.int32)
            if self.chance.random() < 0.5:
                self._count(device, stream, x, out)
                x.close()
                out.close()
        if not x.closed:
            self._count(device, stream, x, out)

    def use_two_pools(self, device: int) -> None:
        """Each piece of memory is of two pools, and the last one ends both."""
        stream = self._stream(device)
        small, large = MemoryPool(device), MemoryPool(device)
        with using_memory(TwoPools((large, small))):
            x, out = stream.zeros(N, np.int32), stream.zeros(N, np.int32)
        for pool in self.chance.sample((small, large), self.chance.randrange(3)):
            pool.close()
        self._count(device, stream, x, out)

    def use_pool_of_both_devices(self, device: int) -> None:
        """Memory of a pool that may be open to the other device is copied there."""
        stream, other = self._stream(device), (device + 1) % len(self.lab.contexts)
        there = self._stream(other)
        with MemoryPool(device) as pool, using_memory(pool):
            x = stream.zeros(N, np.int32)
            if self.chance.random() < 0.5:
                try:
                    pool.open_to(other)
                except PeerAccessUnsupportedError:
                    pass
        out = there.empty(N, np.int32)
        self.lab.kernels[device].write(stream, x, 3)
        there.copy(out, x)
        x.close()
        self._expect("a pool of both devices", there.to_host(out), count_from(3, N))

    def use_unpooled(self, device: int) -> None:
        """Memory that no pool has is freed after its work."""
        stream = self._stream(device)
        with using_memory(UnpooledMemory()):
            x, out = stream.zeros(N, np.int32), stream.zeros(N, np.int32)
        self._count(device, stream, x, out)

    def use_growing(self, device: int) -> None:
        """A buffer grows under the kernels that write to it."""
        stream = self._stream(device)
        buffer = GrowingBuffer(stream, 8 << 20, _NBYTES)
        x = DeviceArray(buffer, (N,), np.int32)
        self.lab.kernels[device].write(stream, x, 5)
        buffer.grow(4 << 20)
        y = DeviceArray(buffer, (2 * N,), np.int32)[N:]
        self.lab.kernels[device].write(stream, y, 6)
        self._expect("a growing buffer", self._stream(device).to_host(x), count_from(5, N))
        self._expect("a grown buffer", self._stream(device).to_host(y), count_from(6, N))

    def use_mapped(self, device: int) -> None:
        """Memory is at two addresses, and outlives what it was mapped by."""
        stream = self._stream(device)
        memory = PhysicalMemory(_NBYTES, device)
        first, second = (MappedBuffer(stream, [memory]) for _ in range(2))
        memory.close()
        self.lab.kernels[device].write(stream, DeviceArray(first, (N,), np.int32), 8)
        first.close()
        found = stream.to_host(DeviceArray(second, (N,), np.int32))
        self._expect("mapped memory", found, count_from(8, N))

    def use_managed(self, device: int) -> None:
        """Managed memory is dropped while a kernel writes to it."""
        stream = self._stream(device)
        host = managed_empty(N, np.int32)
        x, out = stream.in_place(host), stream.zeros(N, np.int32)
        self.lab.kernels[device].write(stream, x, 11)
        self.lab.kernels[device].read(stream, out, x)
        del x, host
        self._expect("managed memory", stream.to_host(out), count_from(11, N))

    def use_pinned_of_a_node(self, device: int) -> None:
        """Page-locked memory of a NUMA node is dropped while it is copied."""
        stream = self._stream(device)
        try:
            host = pinned_empty(N, np.int32, numa_node=0)
        except UnsupportedError:
            return
        host[:] = count_from(12, N)
        x = stream.empty(N, np.int32)
        stream.copy(x, host, wait=False)
        del host
        self._expect("memory of a node", stream.to_host(x), count_from(12, N))

    def _stream(self, device: int) -> cudadrv.Stream:
        context = self.lab.contexts[device]
        return context.default_stream if self.chance.random() < 0.5 else context.new_stream()

    def _count(self, device: int, stream: cudadrv.Stream, x: Ints, out: Ints) -> None:
        """Let kernels write and read memory; look at the result, or end it under way."""
        kernels = self.lab.kernels[device]
        kernels.write(stream, x, 1)
        kernels.read(stream, out, x)
        if self.chance.random() < 0.5:
            x.close()
        if self.chance.random() < 0.5:
            self._expect("memory", self._stream(device).to_host(out), count_from(1, N))

    def _expect(self, what: str, found: HostInts, expected: HostInts) -> None:
        if not np.array_equal(found, expected):
            self.faults.append(f"{what}: {found[:4]}... instead of {expected[:4]}...")
