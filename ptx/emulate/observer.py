"""What a launch reports while it runs, and the interface of the objects that receive it.

The engine knows observers by this interface alone. `watchers.py` lists those of a launch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.kernel_facts import Instrument, KernelFacts, PendingUse, WorkerKind
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.late_stores import LateStores
from ptx.emulate.memory.pointer_extents import Origins, Span
from ptx.emulate.memory.site import Memory, Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.errors import Where
from ptx.emulate.model.geometry import ClusterShape, Dim3, Value
from ptx.emulate.model.threads import ThreadBlocks, Threads
from ptx.isa.model import Instruction


class ObservedLaunch(NamedTuple):
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


Places = tuple[Index, Index, Index]
"""The blocks, lanes and columns of cells of tensor memory."""


class OrderEvents:
    """Synchronisation, and asynchronous operations as they are issued.

    `lanes` are the numbers of threads in their chunk of blocks. Barriers and mbarrier objects have
    a `kind` and numbers.
    """

    # Barriers that all pass together.

    def pass_block(self, lanes: Index) -> None:
        """These threads, all live ones of their blocks, pass a barrier."""

    def pass_warp(
        self, lanes: Index, masks: NDArray[np.uint32], are_whole: NDArray[np.bool_]
    ) -> None:
        """Threads meet those of their warps that their masks name; `are_whole`: all live ones."""

    def pass_warps(self) -> None:
        """All threads of the chunk meet within their warps."""

    # Barriers with arrivals and waits apart, and mbarrier objects.

    def arrive(
        self, lanes: Index, kind: str, numbers: Index, scope: str = "", *, releases: bool = True
    ) -> None:
        """Threads arrive at the objects of these numbers.

        Without a scope it includes all threads that may wait.
        """

    def complete(self, kind: str, numbers: Index) -> None:
        """Phases of these objects complete."""

    def end_wait(self, lanes: Index, kind: str, numbers: Index, *, acquires: bool = True) -> None:
        """Threads end a wait for all that arrived there."""

    def use_objects(self, threads: Threads, objects: Index, site: Site) -> None:
        """Threads initialise or use mbarrier objects, one each."""

    # Fences and stores.

    def fence(self, lanes: Index, scope: str) -> None:
        """Threads execute a fence."""

    def fence_proxy(self, lanes: Index, kind: str) -> None:
        """Threads execute a proxy fence."""

    def hide_stores(self, stores: LateStores) -> None:
        """Other chunks do not see these stores of this one yet."""

    # Copies.

    def read_map(self, threads: Threads, addresses: Addresses, offset: int, site: Site) -> None:
        """Threads read tensor maps in global memory."""

    def begin_copy(
        self,
        threads: Threads,
        addresses: Addresses,
        offset: int,
        site: Site,
        objects: Index | None = None,
    ) -> None:
        """Threads begin a copy, of which this is one side.

        `objects`: the mbarrier object that counts the copy of each thread; None where the copy
        belongs to a group of its thread.
        """

    def count_copies(self, lanes: Index, objects: Index) -> None:
        """From here on mbarrier objects count the copies that these threads began."""

    def commit_copies(self, lanes: Index, *, bulk: bool) -> None:
        """The copies that these threads began form a group."""

    def wait_for_copies(
        self, lanes: Index, pending: int, *, bulk: bool, reads_alone: bool = False
    ) -> None:
        """Threads wait for all but so many groups of copies; -1 for all copies."""

    # The work of tensor cores.

    def begin_work(
        self, kind: WorkerKind, threads: Threads, addresses: Addresses, site: Site
    ) -> None:
        """Tensor cores begin to read shared memory for these threads."""

    def access_cells(self, kind: WorkerKind, lanes: Index, units: Index, site: Site) -> None:
        """Tensor cores begin to access (n, …) units of tensor memory for these threads.

        A unit is a column of 16 lanes.
        """

    def commit_work(self, kind: WorkerKind, lanes: Index) -> None:
        """The work that was begun for these threads forms a group."""

    def wait_for_work(self, kind: WorkerKind, lanes: Index, pending: int = 0) -> None:
        """Threads wait for all groups of work but so many of the newest."""

    def hand_over_work(self, lanes: Index, objects: Index) -> None:
        """From here on mbarrier objects release the work that each thread began."""

    def use_pending(self, threads: Threads, use: PendingUse) -> None:
        """Threads are about to execute an instruction on registers whose results may be pending."""

    def begin_pending(self, threads: Threads, use: PendingUse) -> None:
        """Threads began work with results in registers."""


class Observer(OrderEvents):
    """Receives what the threads of a launch do; each method does nothing unless it is overridden.

    An observer raises an `EmulationFault` to end the launch.

    Attributes:
        events: the names of the methods that a class overrides.
        spaces: those of the accesses that it receives: "global", "shared" or "local".
    """

    events: ClassVar[frozenset[str]] = frozenset()
    spaces: tuple[str, ...] = ("global", "shared", "local")

    def __init_subclass__(cls) -> None:
        names = [name for name in dir(Observer) if not name.startswith("_")]
        cls.events = frozenset(
            [name for name in names if getattr(cls, name) is not getattr(Observer, name)]
        )

    def begin(self, blocks: ThreadBlocks, shared: NDArray[np.uint8]) -> Observer:
        """Return the observer of a chunk of blocks, which is about to run; `shared`: its memory."""
        return self

    def follow(self, instrument: Instrument) -> object | None:
        """Return what the code that an instrument wrote calls; None if that is for another one."""
        return None

    def end(self) -> None:
        """The launch has ended without a fault."""

    def fail(self, error: BaseException) -> None:
        """The launch ends by an error; its threads are as they were when it was raised."""

    def access(self, access: Access) -> None:
        """Threads are about to access memory."""

    def swap(self, access: Access, wrote: Value) -> None:
        """Threads have compared and swapped; those that `wrote` found the expected value."""

    def spans(self, site: Site, space: str) -> tuple[Span, ...]:
        """Return where alone an instruction may access a space; () for no bounds."""
        return ()

    def copy_local(self, lanes: Index | slice, source: int, target: int, nbytes: int) -> None:
        """Bytes were copied within the local memory of each of these threads."""

    def loaded(self, site: Site, values: list[Value]) -> None:
        """A load gave its threads these values."""

    def divide(
        self,
        threads: Threads,
        instruction: Instruction,
        divisor: Value,
        guard: Value | None = None,
        benign: str = "",
    ) -> None:
        """Threads divide integers by a value, those for which the guard holds.

        `benign`: why a divisor of zero does no harm, or "".
        """

    # Tensor memory.

    def read_cells(self, threads: Threads, cells: Places, instruction: Instruction) -> None:
        """Threads read cells, by block, lane and column, (n, …) of each."""

    def write_cells(self, cells: Places) -> None:
        """Threads have written cells."""

    def free_cells(self, block: int, first: int, columns: int) -> None:
        """A block frees columns."""

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


@dataclass(frozen=True, slots=True)
class Watcher:
    """What observes a launch.

    Attributes:
        begin: returns the observer of a launch that begins; None if there is nothing to observe.
        instrument: writes code into the kernel that calls the observer; None if events are enough.
    """

    begin: Callable[[ObservedLaunch], Observer | None]
    instrument: type[Instrument] | None = None


ACCESSES: Final = frozenset(("access", "swap"))
ORDER: Final = frozenset([name for name in vars(OrderEvents) if not name.startswith("_")])
