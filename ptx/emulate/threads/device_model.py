"""An emulated device as its kernels see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptx.emulate.memory.device_memory import DeviceHeap, DeviceMemory
from ptx.emulate.memory.mapped_memory import MappedHostMemory, PeerMemory
from ptx.emulate.model.clock import Clock, CountedClock

if TYPE_CHECKING:
    from ptx.emulate.memory.layout import CodeAddresses
    from ptx.emulate.memory.texture_object import TexelImage, TextureObject


def no_host_memory(address: int) -> MappedHostMemory | None:
    """Return nothing, for a device whose kernels access no host memory."""
    return None


def no_multicast(address: int, nbytes: int) -> list[int] | None:
    """No address is of a multicast object."""
    return None


def no_condition(handle: int, value: int) -> bool:
    """Return False, for a device without graphs."""
    return False


@dataclass(slots=True)
class DeviceModel:
    """One emulated device, as far as kernels can see it.

    Attributes:
        memory: its global memory.
        peers: memories of other devices that kernels here may access.
        host: finds the page-locked host memory that holds an address.
        multicast: finds the addresses that bytes of a multicast object have in the memory of each
            of its devices, from the address and the size.
        threads_per_sm, blocks_per_sm, shared_per_sm: the most that a multiprocessor holds at once.
        clock_khz: rate of `%clock` against time.
        set_condition: gives a condition of a graph its value, by handle; False if there is none.
        textures, surfaces: images that kernels access through handles of 64 bits, by handle.
        heap: serves `malloc` in kernels.
        clock: counts for its time registers; counted_clock: the same in an ordered launch.
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
    peers: Sequence[DeviceMemory | PeerMemory] = ()
    host: Callable[[int], MappedHostMemory | None] = no_host_memory
    multicast: Callable[[int, int], list[int] | None] = no_multicast
    set_condition: Callable[[int, int], bool] = no_condition
    textures: dict[int, TextureObject] = field(default_factory=dict)
    surfaces: dict[int, TexelImage] = field(default_factory=dict)
    heap: DeviceHeap = field(init=False)
    clock: Clock = field(init=False)
    counted_clock: CountedClock = field(init=False)
    _code_addresses: CodeAddresses | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.heap = DeviceHeap(self.memory)
        self.clock = Clock(self.clock_khz)
        self.counted_clock = CountedClock(self.clock_khz)

    @property
    def code_addresses(self) -> CodeAddresses:
        """The addresses of the functions of all the device's modules."""
        if self._code_addresses is None:
            # With the first module: saves 15 ms, most of them the PTX model's.
            from ptx.emulate.memory.layout import CodeAddresses

            self._code_addresses = CodeAddresses(self.memory.base)
        return self._code_addresses

    def resident_blocks(self, threads: int, shared_bytes: int) -> int:
        """Return how many blocks fit at once, by their threads and shared memory.

        Registers are not counted: how many a kernel needs is known to the driver's compiler only.
        """
        warps = -(-threads // self.warp_size)
        blocks = min(self.blocks_per_sm, self.threads_per_sm // (warps * self.warp_size))
        if shared_bytes:
            blocks = min(blocks, self.shared_per_sm // shared_bytes)
        return blocks * self.sm_count
