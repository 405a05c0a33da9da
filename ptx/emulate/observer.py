"""What a launch reports while it runs, and the interface of the objects that receive it.

The engine knows observers by this interface alone. `watchers.py` lists those of a launch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.pointer_extents import Origins
from ptx.emulate.memory.site import Memory, Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.errors import Where
from ptx.emulate.model.geometry import ClusterShape, Dim3, Value
from ptx.emulate.model.threads import ThreadBlocks, Threads
from ptx.isa.model import Instruction


@dataclass(frozen=True, slots=True)
class ObservedLaunch:
    """A launch that begins.

    Attributes:
        code: the facts of its kernel.
        memory: the device's memory.
        block: the threads of a block; cluster: how the blocks form clusters.
        param_bytes: the kernel's parameters.
        shared_bytes: a block's shared memory; from `reserved_start` on it is the system's.
        find_origins: returns what the addresses of each access are made from.
    """

    code: KernelFacts
    memory: DeviceMemory
    block: Dim3
    cluster: ClusterShape
    param_bytes: NDArray[np.uint8]
    shared_bytes: int
    reserved_start: int
    find_origins: Callable[[], Origins]


class Access(NamedTuple):
    """Threads access memory by one instruction; their elements are known to be in bounds.

    Attributes:
        space: "global", "shared" or "local".
        addresses, offset: where, in the window of that space.
        memory: what holds global addresses; None in the other spaces.
        first: number of an element of the memory, or of the chunk's shared or local memory.
        positions: counted from there, the element of each thread, or of all, or a slice of them.
        values: the stored values; empty if they are unknown.
        is_complete: whether the access happens now; else the location alone is needed.

    A tuple, because one is made for each access that is observed.
    """

    threads: Threads
    space: str
    addresses: Addresses
    offset: int
    site: Site
    memory: Memory | None
    first: int
    positions: Index | int | slice
    values: tuple[Value, ...] = ()
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class TexelFlags:
    """Flags of the bytes of an image, by which texels are wrong to read.

    Attributes:
        flags: of each byte.
        are_good: whether the texels without any flag are wrong; else those with one.
    """

    flags: NDArray[np.uint8]
    are_good: bool


class Observer:
    """Receives what the threads of a launch do; each method does nothing unless it is overridden.

    An observer raises an `EmulationFault` to end the launch.
    """

    def begin(self, blocks: ThreadBlocks, shared: NDArray[np.uint8]) -> Observer:
        """Return the observer of a chunk of blocks, which is about to run; `shared`: its memory."""
        return self

    def end(self) -> None:
        """The launch has ended without a fault."""

    def access(self, access: Access) -> None:
        """Threads are about to access memory."""

    def swap(self, access: Access, wrote: Value) -> None:
        """Threads have compared and swapped; those that `wrote` found the expected value."""

    def loaded(self, site: Site, values: list[Value]) -> None:
        """A load gave its threads these values."""

    def read_unwritten(self, where: Where, names: tuple[str, ...]) -> None:
        """A thread reads registers that no instruction on any way to it has written."""

    def divide(
        self, threads: Threads, instruction: Instruction, divisor: Value,
        guard: Value | None = None, benign: str = "",
    ) -> None:  # fmt: skip
        """Threads divide integers by a value, those for which the guard holds.

        `benign`: why a divisor of zero does no harm, or "".
        """

    # Texels.

    def store_texels(
        self, address: int, nbytes: int, dtype: np.dtype[Any], words: NDArray[np.int64]
    ) -> None:
        """Threads store elements of an image, at these positions, by a surface."""

    def flag_texels(self, memory: DeviceMemory, address: int, nbytes: int) -> TexelFlags | None:
        """Return which bytes of an image are wrong to read; None for none."""
        return None

    def read_flagged(self, where: Where, memory: DeviceMemory, address: int, nbytes: int) -> None:
        """A thread reads a texel of so many bytes that is wrong by this observer's flags."""


Watcher = Callable[[ObservedLaunch], Observer | None]
"""Returns the observer of a launch; None if there is nothing to observe."""
