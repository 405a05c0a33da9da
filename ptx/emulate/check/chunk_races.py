"""The race check of blocks that are executed together, called for each of their accesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.accessed_bytes import LaunchAccesses
from ptx.emulate.check.async_copies import AsyncCopies, Kind
from ptx.emulate.check.data_races import DataRaces, MemoryAccess, VolatileAccesses
from ptx.emulate.check.findings import Findings
from ptx.emulate.check.happens_before import HappensBefore
from ptx.emulate.check.held_loads import HeldLoads
from ptx.emulate.check.held_loads_writer import HeldLoadsWriter
from ptx.emulate.check.race_check import RaceCheck
from ptx.emulate.check.shadow_memory import ShadowMemory, in_memory
from ptx.emulate.check.stamps import Stamps
from ptx.emulate.check.tensor_cores import PendingRegisters, TensorMemoryRaces, TensorWorkers
from ptx.emulate.kernel_facts import Instrument, PendingUse, WorkerKind
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.generic_addresses import owners
from ptx.emulate.memory.late_stores import LateStores
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.errors import Where
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import ThreadBlocks, Threads
from ptx.emulate.observer import Access, ObservedLaunch, Observer, TexelFlags
from ptx.isa.instruction_facts import ASYNC, NARROW, READ_ONLY, TENSOR_MAP

_FEWEST_IN_SHARED: Final = 1 << 23  # bytes of listed addresses; a barrier soon forgets them


class ChunkRaces(Observer):
    """The races of the blocks that are executed together.

    Attributes:
        first: the number of the first block.
        order: what happens before what.
    """

    def __init__(
        self,
        launch: RaceCheck,
        blocks: ThreadBlocks,
        shared: NDArray[np.uint8],
        held: Mapping[int, int] | None = None,
    ) -> None:
        geometry, first = blocks.geometry, blocks.first
        self.first: int = first
        self.order: HappensBefore = HappensBefore(launch, geometry, first)
        self._launch = launch
        self._geometry = geometry
        self._stride = len(shared) // geometry.blocks  # of the shared memory of a block
        units = len(shared) >> launch.shared_shift
        self._shared = launch.shadow_memory(units, in_memory, _FEWEST_IN_SHARED)
        self._clocks = self.order.clocks
        self._races = DataRaces(launch, self.order, first, shared, self._stride)
        self._volatile = VolatileAccesses(launch, self.order, self._races, geometry.threads)
        self._copies = AsyncCopies(geometry.threads)
        self._bulk = AsyncCopies(geometry.threads)
        self._held = None if held is None else HeldLoads(blocks, held, self._note)

    # Only kernels with tensor cores need these, so they are made on first use.

    @cached_property
    def workers(self) -> TensorWorkers:
        """The asynchronous work of tensor cores for the threads."""
        return TensorWorkers(self._launch, self._geometry, self.first, self._clocks)

    @cached_property
    def registers(self) -> PendingRegisters:
        """The registers that wait for results of tensor cores."""
        return PendingRegisters(self._launch, self.workers, self._geometry.threads)

    @cached_property
    def tensor(self) -> TensorMemoryRaces:
        """The races in tensor memory."""
        blocks = self._geometry.blocks
        return TensorMemoryRaces(self._launch, self._clocks, self._races, self.workers, blocks)

    def hide_stores(self, stores: LateStores) -> None:
        """Take note that other chunks do not see these stores of this one yet."""
        self._races.own = stores
        self._launch.hidden.append(stores)

    def follow(self, instrument: Instrument) -> object | None:
        """Return the values of held loads in registers, which generated code follows."""
        return self._held if isinstance(instrument, HeldLoadsWriter) else None

    # Accesses by threads.

    def access(self, access: Access) -> None:
        """Check an access that threads are about to make."""
        if access.is_complete and (self._held is None or not self._held.takes(access)):
            self._note(access)

    def swap(self, access: Access, wrote: Value) -> None:
        """Check a compare-and-swap.

        The threads that did not write release nothing, and are compared as if they did write, as
        in another run they may.
        """
        self._note(access, wrote)

    def _note(self, observed: Access, wrote: Value | None = None) -> None:
        space, site = observed.space, observed.site
        number = self._launch.number_of(site)
        role = self._launch.role(number)
        if role.is_copy:
            return  # `begin_copy` checks it
        step = self._step(
            observed.threads, space, observed.addresses, observed.offset, site, number
        )
        if step is None:
            return
        access = MemoryAccess(space, self._shadow(space), step, role, observed.values)
        if role.strong:
            self.order.synchronise(space, step, role, wrote)
            self._note_strong(access)
        elif role.writes:
            if self._copies_reading(access) or not access.shadow.lists_write(step):
                self._write(access)
        else:
            if role.proxy in READ_ONLY:
                self._compare_proxies(access, role.proxy)
            if role.is_guess or not access.shadow.lists_read(step):
                self._read(self._of_compared(access))
                access.shadow.read(self._ends(step), self._launch.guesses)

    def _note_strong(self, access: MemoryAccess) -> None:
        role = access.role
        if not role.writes and role.update is None:
            access = self._of_compared(access)
        if (
            role.scope in NARROW
            or not role.writes
            or self._copies_reading(access)
            or not access.shadow.lists_atomic(access.step)
        ):
            self._access_strongly(access)

    def use_objects(self, threads: Threads, objects: Index, site: Site) -> None:
        """Check that threads initialise or use mbarrier objects, one each."""
        launch = self._launch
        number = launch.number_of(site)
        slots, offsets = np.divmod(objects * 8, self._stride)
        lanes = None if threads.lanes is None else threads.lane_numbers()
        step = AccessStep(
            self._clocks.moment,
            lanes,
            number,
            addresses_in(offsets),
            0,
            threads.n,
            site.total,
            launch.shared_shift,
            slots * self._stride,
        )
        access = MemoryAccess("shared", self._shared, step, launch.role(number))
        if access.role.writes:
            self._write(access)
        else:
            self._read(access)

    def read_map(self, threads: Threads, addresses: Addresses, offset: int, site: Site) -> None:
        """Check that threads read tensor maps in global memory."""
        number = self._launch.number_of(site)
        step = self._step(threads, "global", addresses, offset, site, number)
        if step is not None and self._launch.in_global.has_writes(step):
            role, shadow = self._launch.role(number), self._launch.in_global
            access = MemoryAccess("global", shadow, step, role)
            self._read(access)
            self._compare_proxies(
                access, TENSOR_MAP, f"{TENSOR_MAP} release", f"{TENSOR_MAP} acquire"
            )

    # Asynchronous operations.

    def begin_copy(
        self,
        threads: Threads,
        addresses: Addresses,
        offset: int,
        site: Site,
        objects: Index | None = None,
    ) -> None:
        """Check one side of a copy that threads begin.

        `objects`: the mbarrier object that counts the copy of each thread; None where the copy
        belongs to a group of its thread.
        """
        launch, space = self._launch, site.space
        launch.has_copies = True
        number = launch.number_of(site)
        role = launch.role(number)
        step = self._step(threads, space, addresses, offset, site, number)
        if step is None:
            return
        access = MemoryAccess(space, self._shadow(space), step, role)
        if role.proxy == ASYNC and role.reads:
            self._compare_proxies(access, ASYNC, space)
        kind: Kind = "combine" if role.is_atomic else "write" if role.writes else "read"
        if role.strong:
            self._access_strongly(access)
        elif role.writes:
            self._write(access)
        elif objects is not None:
            self._read(access)
        elif not access.shadow.lists_read(step):
            self._read(access)
            access.shadow.reads.add(step.units, step.stamps)
        if objects is None:
            copies = self._bulk if "bulk" in site.facts.words else self._copies
            copies.issue(kind, access.shadow, step)
        else:
            self._store_as(kind, access, self._counted(step.threads, objects, number))

    def begin_work(
        self, kind: WorkerKind, threads: Threads, addresses: Addresses, site: Site
    ) -> None:
        """Check that tensor cores begin to read shared memory for these threads."""
        number = self._launch.number_of(site)
        step = self._step(threads, "shared", addresses, 0, site, number)
        if step is None:
            return
        access = MemoryAccess("shared", self._shared, step, self._launch.role(number))
        self._compare_proxies(access, ASYNC, "shared")
        self._read(access)
        self._store_as("read", access, self.workers.stamps(kind, step.threads, number))

    def count_copies(self, lanes: Index, objects: Index) -> None:
        """Let mbarrier objects count the copies that these threads began."""
        if self._copies:
            now = self._clocks.now.copy()
            now[lanes] = self._counted(lanes, objects, 0)
            self._copies.wait(lanes, -1, now)

    def commit_copies(self, lanes: Index, *, bulk: bool) -> None:
        """Make a group of the copies that these threads began."""
        (self._bulk if bulk else self._copies).commit(lanes)

    def wait_for_copies(
        self, lanes: Index, pending: int, *, bulk: bool, reads_alone: bool = False
    ) -> None:
        """Record a wait for all but so many groups of copies; -1 for all copies."""
        copies = self._bulk if bulk else self._copies
        if copies:
            copies.wait(lanes, pending, self._clocks.now, reads_alone=reads_alone)

    def _counted(self, lanes: Index, objects: Index, site: int) -> Stamps:
        blocks = objects * 8 // self._stride + self.first
        issuers = self._clocks.threads[lanes]
        kind = f"mbarrier {self.first}"
        return self._launch.virtual_threads.stamps(kind, objects, blocks, issuers, site)

    def _store_as(self, kind: Kind, access: MemoryAccess, stamps: Stamps) -> None:
        """Store an access as one by virtual threads, with these stamps without a site."""
        step, shadow = access.step, access.shadow
        by_others = step.by(stamps)
        units = by_others.units
        if kind == "write":
            units = np.arange(units.start, units.stop) if isinstance(units, slice) else units
            shadow.put(units, by_others.stamps, step)
        elif kind == "combine":
            shadow.settle(step)
            shadow.atomics.add(units, by_others.stamps)
        elif not shadow.lists_read(by_others):
            shadow.settle(step)
            shadow.reads.add(units, by_others.stamps)

    # The work of tensor cores.

    def access_cells(self, kind: WorkerKind, lanes: Index, units: Index, site: Site) -> None:
        """Check an access to tensor memory."""
        self.tensor.access(kind, lanes, units, site)

    def commit_work(self, kind: WorkerKind, lanes: Index) -> None:
        """Make a group of the work that was begun for these threads."""
        self.workers.commit(kind, lanes)

    def wait_for_work(self, kind: WorkerKind, lanes: Index, pending: int = 0) -> None:
        """Record a wait for all groups of work but so many of the newest."""
        self.workers.wait(kind, lanes, pending)

    def hand_over_work(self, lanes: Index, objects: Index) -> None:
        """Let mbarrier objects release the work that each thread began."""
        self.workers.hand_over(lanes, objects)

    def use_pending(self, threads: Threads, use: PendingUse) -> None:
        """Check an instruction on registers whose results may be pending."""
        self.registers.before(threads, use)

    def begin_pending(self, threads: Threads, use: PendingUse) -> None:
        """Record that threads began work with results in registers."""
        self.registers.begin_pending(threads, use)

    # Synchronisation.

    def pass_warp(
        self, lanes: Index, masks: NDArray[np.uint32], are_whole: NDArray[np.bool_]
    ) -> None:
        """Record that threads meet within their warps."""
        self.order.pass_warp(lanes, masks, are_whole)

    def pass_warps(self) -> None:
        """Record that all threads of the chunk meet within their warps."""
        self.order.pass_warps()

    def arrive(
        self, lanes: Index, kind: str, numbers: Index, scope: str = "", *, releases: bool = True
    ) -> None:
        """Record that threads arrive at objects."""
        self.order.arrive(lanes, kind, numbers, scope, releases=releases)

    def complete(self, kind: str, numbers: Index) -> None:
        """Complete phases of objects."""
        self.order.complete(kind, numbers)

    def end_wait(self, lanes: Index, kind: str, numbers: Index, *, acquires: bool = True) -> None:
        """Record the end of a wait at objects."""
        self.order.take(lanes, kind, numbers, acquires=acquires)

    def fence(self, lanes: Index, scope: str) -> None:
        """Record a fence."""
        self.order.fence(lanes, scope)

    def fence_proxy(self, lanes: Index, kind: str) -> None:
        """Record a proxy fence."""
        self.order.fence_proxy(lanes, kind)

    def pass_block(self, lanes: Index) -> None:
        """Record that these threads, all live ones of their blocks, pass a barrier."""
        launch = self._launch
        every = self.order.pass_block(lanes)
        # Then every access to shared memory so far happens before every later one.
        if (
            every
            and launch.accelerations.resets_shared
            and launch.cluster_blocks == 1
            and not (launch.virtual_threads or launch.reads_by_async)
        ):
            self._shared.reset()
            self._copies.put_again(self._shared)
            self._bulk.put_again(self._shared)

    # Textures and surfaces.

    def store_texels(
        self, address: int, nbytes: int, dtype: np.dtype[Any], words: NDArray[np.int64]
    ) -> None:
        """Remember the bytes of an image that a surface writes."""
        stored = self._launch.stored_texels
        if address not in stored:
            stored[address] = np.zeros(nbytes, dtype=np.uint8)
        size = dtype.itemsize
        stored[address][: nbytes // size * size].view(f"u{size}")[words] = 1

    def flag_texels(self, memory: DeviceMemory, address: int, nbytes: int) -> TexelFlags | None:
        """Return flags of bytes that the launch has written in any way; None without any."""
        launch, written_flags = self._launch, self._launch.stored_texels.get(address)
        if memory is launch.memory:
            low, shift = address - memory.base, launch.global_shift
            units = launch.in_global.written_within(low, low + nbytes, shift)
            if units is not None:
                first = low & (1 << shift) - 1
                written = np.repeat(units, 1 << shift)[first : first + nbytes].view(np.uint8)
                written_flags = written if written_flags is None else written_flags | written
        return None if written_flags is None else TexelFlags(written_flags, are_good=False)

    def read_flagged(self, where: Where, memory: DeviceMemory, address: int, nbytes: int) -> None:
        """Report a thread that reads a texel which the launch has written."""
        self._launch.report_texel(where, memory, address, nbytes)

    # Steps: which accesses are compared.

    def _shadow(self, space: str) -> ShadowMemory:
        return self._launch.in_global if space == "global" else self._shared

    def _step(
        self,
        threads: Threads,
        space: str,
        addresses: Addresses,
        offset: int,
        site: Site,
        number: int,
    ) -> AccessStep | None:
        """Return an access as a step; None where its memory is not checked."""
        launch, starts, remote = self._launch, None, None
        if space == "global":
            most, shift = launch.memory.nbytes, launch.global_shift
            offset -= launch.memory.base
        elif space == "shared":
            most, shift = self._stride, launch.shared_shift
            if addresses.lowest() + offset < 0 or addresses.highest() + offset + site.total > most:
                slots, offsets = owners(threads, addresses, offset, site)
                remote = slots, offsets
                starts, addresses, offset = slots * most, addresses_in(offsets), 0
            elif self._geometry.blocks > 1:
                starts = threads.start_index("shared", 0)
        else:
            return None
        lanes = None if threads.lanes is None else threads.lane_numbers()
        step = AccessStep(
            self._clocks.moment,
            lanes,
            number,
            addresses,
            offset,
            threads.n,
            site.total,
            shift,
            starts,
        )
        if step.low < 0 or step.high > most:
            if space == "global":  # another device's memory, or the host's
                launch.note_elsewhere(step, writes=launch.role(number).writes)
            return None
        if remote is not None:
            self._compare_begins(step, *remote)
        return step

    def _compare_begins(self, step: AccessStep, slots: Index, offsets: Index) -> None:
        """Report an access to the shared memory of a block that may not have begun."""
        early = np.flatnonzero(self.order.may_not_have_begun(step.threads, slots))
        if len(early):
            first_early = int(early[0])
            stamp = int(self._clocks.now[step.threads[first_early]]) | step.site
            self._launch.report_early(
                stamp, int(offsets[first_early]), self.first + int(slots[first_early])
            )

    def _ends(self, step: AccessStep) -> AccessStep:
        """Return the first and the last thread alone, where all read one element together."""
        if step.is_uniform and step.count > 2 and self._launch.accelerations.compares_ends:
            return step.ends()
        return step

    def _of_compared(self, access: MemoryAccess) -> MemoryAccess:
        """Return the part of a read that is compared with other threads' accesses."""
        step = access.step if self.order.is_uneven else self._ends(access.step)
        return access if step is access.step else replace(access, step=step)

    # Comparisons with the shadow memory.

    def _copies_reading(self, access: MemoryAccess) -> list[Stamps]:
        """Return the stamps of copies that may still read these units."""
        stamps_of_copies = []
        for copies in (self._copies, self._bulk):
            stamps = copies.reads_of(access.shadow, access.step) if copies else None
            if stamps is not None:
                stamps_of_copies.append(stamps)
        return stamps_of_copies

    def _compare_proxies(self, access: MemoryAccess, proxy: str, *fences: str) -> None:
        """Compare a read through a proxy with writes through other ones."""
        shadow, step = access.shadow, access.step
        if shadow.has_writes(step):
            shadow.settle(step)
            for old in shadow.written(step.units) + shadow.atomics.found(step.units):
                self._races.compare_proxies(old, access, proxy, fences)

    def _read(self, access: MemoryAccess) -> None:
        """Compare an ordinary read with writes."""
        shadow, step = access.shadow, access.step
        shadow.settle(step)
        atomics = shadow.atomics.found_by_others(step.units, step.stamps)
        for old in shadow.written(step.units) + atomics:
            self._races.compare(old, access)

    def _write(self, access: MemoryAccess) -> None:
        """Compare an ordinary write with all accesses, and store it."""
        shadow, step = access.shadow, access.step
        units = step.units
        shadow.settle(step)
        for old in shadow.written(units):
            self._races.compare(old, access, by_value=True)
        atomics = shadow.atomics.found_by_others(units, step.stamps)
        reads = shadow.reads.found(units) + shadow.strong_reads.found(units)
        for old in reads + atomics + self._copies_reading(access):
            self._races.compare(old, access)
        if shadow.write(step) is not None:
            self._races.compare_in_step(access)

    def _access_strongly(self, access: MemoryAccess) -> None:
        """Compare a strong access with weak ones, and with strong ones out of scope; store it."""
        shadow, step, role = access.shadow, access.step, access.role
        units = step.units
        shadow.settle(step)
        for old in shadow.written(units):
            self._races.compare(old, access, by_value=not role.reads)
        if role.writes:
            for old in shadow.reads.found(units) + self._copies_reading(access):
                self._races.compare(old, access)
        if self._launch.has_narrow:
            reads = shadow.strong_reads.found(units) if role.writes else []
            for old in reads + shadow.atomics.found(units):
                self._races.compare(old, access)
        if role.is_copy:
            return  # stored as an operation in flight, or by a virtual thread
        if role.is_volatile and access.space == "shared":
            conflicting = shadow.strong_reads if role.writes else shadow.atomics
            for old in conflicting.found(units):
                self._volatile.compare_lanes(old, access)
        if not role.writes:
            stored = step if role.update else self._ends(step)
            shadow.strong_reads.add(stored.units, stored.stamps)
            if role.update:
                self._volatile.load(access, role.update)
            return
        if role.update:
            self._volatile.store(access, role.update)
        shadow.atomics.add(units, step.stamps)
        if role.scope in NARROW:
            for old in shadow.atomics.found(units):
                self._races.compare(old, access)  # with each other


class LaunchRaces(Observer):
    """The races of one launch.

    Args:
        findings: receives them.
        accessed: called at the end with the accesses of the launch; None for no call.
    """

    def __init__(
        self,
        findings: Findings,
        accessed: Callable[[LaunchAccesses], None] | None,
        launch: ObservedLaunch,
    ) -> None:
        self._accessed = accessed
        writers = [each for each in launch.code.instruments if isinstance(each, HeldLoadsWriter)]
        self._held = writers[0].numbers if writers else None
        self._races = RaceCheck(
            launch.code,
            launch.block,
            launch.cluster.block,
            launch.memory,
            findings,
            launch.cluster.blocks,
            origins_of=lambda site: launch.find_origins().get(site, frozenset()),
        )

    def begin(self, blocks: ThreadBlocks, shared: NDArray[np.uint8]) -> Observer:
        """Return the race check of a chunk."""
        return ChunkRaces(self._races, blocks, shared, self._held)

    def end(self) -> None:
        """Report all accesses."""
        self._races.end()
        if self._accessed is not None:
            self._accessed(LaunchAccesses(self._races))
