"""What an access must know of the threads that make it, and of the memory that they see.

`exec.fibre.Fibre`, its scheduler, its launch and its device have these parts and many more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.extents import Extents
from ptx.emulate.memory.host_memory import MappedHostMemory
from ptx.emulate.memory.peer_memory import PeerMemory
from ptx.emulate.memory.shadow import Shadow
from ptx.emulate.memory.site import Memory, Site
from ptx.emulate.memory.undefined_values import TrackedThreads, UndefinedValues
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.cluster_shape import ClusterShape
from ptx.emulate.model.geometry import Geometry, Value


class ReachableMemories(Protocol):
    """The memories that kernels of a device may access."""

    @property
    def memory(self) -> DeviceMemory:
        """The device's own."""

    @property
    def peers(self) -> Sequence[DeviceMemory | PeerMemory]:
        """Those of other devices."""

    @property
    def host(self) -> Callable[[int], MappedHostMemory | None]:
        """Finds the page-locked host memory that holds an address."""


class LaunchMemory(Protocol):
    """What all threads of a launch see."""

    @property
    def device(self) -> ReachableMemories:
        """Where it runs."""

    @property
    def memory(self) -> DeviceMemory:
        """The device's own memory."""

    @property
    def param_bytes(self) -> NDArray[np.uint8]:
        """The kernel's parameters."""

    @property
    def shared_bytes(self) -> int:
        """Size of each block's shared memory."""

    @property
    def dynamic_shared(self) -> int:
        """How much of it the launch asked for."""

    @property
    def extents(self) -> Extents | None:
        """How far each access may reach, where that is checked."""

    @property
    def cluster(self) -> ClusterShape:
        """How the blocks form clusters."""


class AccessCheck(Protocol):
    """What looks at every access."""

    def note(
        self,
        threads: AccessingThreads,
        space: str,
        addresses: Addresses,
        offset: int,
        site: Site,
        values: tuple[Value, ...] = (),
        wrote: Value | None = None,
    ) -> None:
        """These threads are about to access memory.

        `values`: what is stored; `wrote`: which have written, where that is known, behind it.
        """


class ReadCheck(Protocol):
    """What looks for reads of global memory that nothing has written."""

    def begin(self) -> None:
        """A load begins."""

    def note(
        self,
        threads: AccessingThreads,
        memory: Memory,
        first: int,
        index: Index | int | slice,
        site: Site,
        values: tuple[Value, ...],
    ) -> None:
        """These threads are about to access elements from number `first` of a memory on."""

    def take(self, values: list[Value]) -> list[Value]:
        """The load that began gave these values."""


class BlockMemory(Protocol):
    """The shared and local memory of blocks that are executed together."""

    @property
    def launch(self) -> LaunchMemory:
        """What they see beside it."""

    @property
    def geometry(self) -> Geometry:
        """Where the threads are."""

    @property
    def shared(self) -> NDArray[np.uint8]:
        """(blocks * shared_stride,) each block's shared memory."""

    @property
    def local(self) -> NDArray[np.uint8]:
        """(threads * local_stride,) each thread's local memory."""

    @property
    def shared_stride(self) -> int:
        """Bytes from one block's shared memory to the next."""

    @property
    def local_stride(self) -> int:
        """Bytes from one thread's local memory to the next."""

    @property
    def races(self) -> AccessCheck | None:
        """What looks for races, where that is checked."""

    @property
    def unwritten(self) -> ReadCheck | None:
        """What looks for reads of global memory that nothing wrote, where that is checked."""

    @property
    def shadow(self) -> Shadow | None:
        """Which bytes of both were written, where that is checked."""

    @property
    def undefined(self) -> UndefinedValues | None:
        """Registers with values of bytes that were not, where the code follows them."""


class AccessingThreads(TrackedThreads, Protocol):
    """Threads that access memory together."""

    @property
    def blocks(self) -> BlockMemory:
        """The memory of their blocks and their own."""

    def place(self, name: str) -> Value:
        """A `Geometry` array for these threads."""

    @property
    def lanes(self) -> Index | None:
        """The threads' numbers in the chunk; None where they are all of it."""

    def start_index(self, space: str, shift: int) -> Index:
        """(n,) where each thread's shared or local memory starts, in elements of 2**shift bytes."""
