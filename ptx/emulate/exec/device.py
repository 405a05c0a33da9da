"""What the emulator knows of a device, and how far a launch may go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ptx.emulate.memory.device_heap import DeviceHeap
from ptx.emulate.memory.host_memory import HostMemory
from ptx.emulate.memory.memory import DeviceMemory
from ptx.emulate.model.clock import Clock
from ptx.emulate.texture.texture import Image, Texture


def no_host_memory(address: int) -> HostMemory | None:
    """The answer of a device whose kernels reach no host memory."""
    return None


@dataclass(slots=True)
class DeviceModel:
    """One emulated device, as far as kernels can see it.

    Attributes:
        memory: its global memory.
        peers: memories of other devices that kernels here may access.
        host: finds the page-locked host memory that holds an address.
        threads_per_sm, blocks_per_sm, shared_per_sm: what a multiprocessor holds at once.
        clock_khz: rate of `%clock` against time.
        textures, surfaces: what kernels read and write through handles of 64 bits, by handle.
        heap: what `malloc` in kernels takes from.
        clock: what its time registers count.
    """

    memory: DeviceMemory
    compute_capability: tuple[int, int] = (9, 0)
    sm_count: int = 132
    warp_size: int = 32
    max_shared_per_block: int = 232448
    max_threads_per_block: int = 1024
    threads_per_sm: int = 2048
    blocks_per_sm: int = 32
    shared_per_sm: int = 233472
    clock_khz: int = 1_980_000
    peers: list[DeviceMemory] = field(default_factory=list)
    host: Callable[[int], HostMemory | None] = no_host_memory
    textures: dict[int, Texture] = field(default_factory=dict)
    surfaces: dict[int, Image] = field(default_factory=dict)
    heap: DeviceHeap = field(init=False)
    clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        self.heap = DeviceHeap(self.memory)
        self.clock = Clock(self.clock_khz)

    def resident_blocks(self, threads: int, shared_bytes: int) -> int:
        """How many blocks the device holds at once, as far as threads and shared memory say.

        Registers are not counted: how many a kernel needs is known to the driver's compiler only.
        """
        warps = -(-threads // self.warp_size)
        each = min(self.blocks_per_sm, self.threads_per_sm // (warps * self.warp_size))
        if shared_bytes:
            each = min(each, self.shared_per_sm // shared_bytes)
        return each * self.sm_count


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one launch.

    Attributes:
        max_steps: basic blocks that a chunk of thread blocks may execute before `Runaway`.
        chunk_threads: threads that are executed together, whole blocks of them.
        share_from: threads of a chunk from which on it shares with later ones what depends on a
            thread's place in its block alone; for fewer, finding is no faster than computing.
        stack_bytes: local memory of a thread where calls recurse.
        strict_barriers: report a barrier that exited threads did not reach; hardware lets it pass
            (CUDA guide: it waits for all non-exited threads of the block).
        check_uninitialised: report reads of shared or local memory that nothing has written; takes
            several times as long.
    """

    max_steps: int = 20_000_000
    chunk_threads: int = 65536
    share_from: int = 2048
    stack_bytes: int = 16384
    strict_barriers: bool = False
    check_uninitialised: bool = False


DEFAULT_LIMITS = Limits()
