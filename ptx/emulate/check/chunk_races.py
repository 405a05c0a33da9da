"""The races among blocks that are executed together, found at each of their accesses."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.async_copies import AsyncCopies, Kind
from ptx.emulate.check.data_races import DataRaces, LostUpdates, WrittenValues
from ptx.emulate.check.happens_before import HappensBefore
from ptx.emulate.check.memory_model import ASYNC, NARROW, READ_ONLY, TENSOR_MAP, AccessRole
from ptx.emulate.check.race_check import RaceCheck
from ptx.emulate.check.shadow_memory import ShadowMemory, in_memory
from ptx.emulate.check.stamps import Stamps
from ptx.emulate.check.tensor_cores import PendingRegisters, TensorRaces, TensorWorkers, WorkerKind
from ptx.emulate.memory.cluster_shared import owners
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.late_stores import LateStores
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.errors import Where
from ptx.emulate.model.geometry import Geometry, Value
from ptx.emulate.model.threads import Threads

_FEWEST_IN_SHARED: Final = 1 << 23  # a barrier soon forgets them


class ChunkRaces:
    """The races of the blocks that are executed together.

    Attributes:
        first: the number of the first block.
        order: what their threads know of each other.
    """

    def __init__(
        self, launch: RaceCheck, geometry: Geometry, first: int, shared: NDArray[np.uint8]
    ) -> None:
        self._launch = launch
        self._data = shared
        shared_stride = len(shared) // geometry.blocks
        self._shared_stride = shared_stride
        self._several = geometry.blocks > 1
        units = geometry.blocks * shared_stride >> launch.shared_shift
        self._in_shared = ShadowMemory(units, in_memory, launch.shift, _FEWEST_IN_SHARED)
        self.first: int = first
        self.order: HappensBefore = HappensBefore(launch, geometry, first)
        self._clocks = self.order.clocks
        self._comparison = DataRaces(launch, self.order, first, shared_stride)
        self._compare = self._comparison.compare
        self._updates = LostUpdates(self._comparison, geometry.threads)
        self._copies = AsyncCopies(geometry.threads)
        self._bulk = AsyncCopies(geometry.threads)
        self._geometry = geometry
        self._own: LateStores | None = None

    # What kernels with tensor cores need, made when it is first used.

    @cached_property
    def workers(self) -> TensorWorkers:
        """What tensor cores do for the threads."""
        return TensorWorkers(self._launch, self._geometry, self.first, self._clocks)

    @cached_property
    def registers(self) -> PendingRegisters:
        """The registers with results of that."""
        return PendingRegisters(self._launch, self.workers, self._geometry.threads)

    @cached_property
    def tensor(self) -> TensorRaces:
        """The races in tensor memory."""
        blocks = self._geometry.blocks
        return TensorRaces(self._launch, self._clocks, self._comparison, self.workers, blocks)

    def hide(self, stores: LateStores) -> None:
        """Other chunks do not see these stores of this one."""
        self._own = stores
        self._launch.hidden.append(stores)

    # What accesses tell.

    def note(
        self,
        threads: Threads,
        space: str,
        addresses: Addresses,
        offset: int,
        site: Site,
        values: tuple[Value, ...] = (),
        wrote: Value | None = None,
    ) -> None:
        """These threads are about to access memory, or have done so and `wrote` tells who wrote.

        Who compared in vain hands nothing over, and is looked at like the others otherwise: in
        another run it may write.
        """
        launch = self._launch
        number = launch.number_of(site)
        role = launch.role(number)
        if role.is_copy:
            return  # it is told when it is issued
        step = self._step(threads, space, addresses, offset, site, number)
        if step is None:
            return
        accesses = launch.in_global if space == "global" else self._in_shared
        if role.strong:
            self.order.pass_on(space, step, role, wrote)
            if not role.writes and role.update is None:
                step = self._compared(step)
            if (
                role.scope in NARROW
                or not role.writes
                or self._copied(accesses, step)
                or not accesses.lists_atomic(step)
            ):
                accesses.settle(step)
                self._strong(space, accesses, step, role, self._same(space, values, step))
        elif role.writes:
            if self._copied(accesses, step) or not accesses.lists_write(step):
                accesses.settle(step)
                self._write(space, accesses, step, self._same(space, values, step))
        else:
            if role.proxy in READ_ONLY:
                self._compare_proxies(space, accesses, step, role.proxy)
            if role.is_guess or not accesses.lists_read(step):
                self._read(space, accesses, self._compared(step))
                accesses.read(_kept(step), launch.guesses)

    def issue(
        self,
        threads: Threads,
        addresses: Addresses,
        offset: int,
        site: Site,
        objects: Index | None = None,
    ) -> None:
        """These threads begin to copy, and this is one side of it.

        `objects`: the mbarrier object that counts the copy of each thread; None where that belongs
        to a group of its thread.
        """
        launch, space = self._launch, site.space
        launch.has_copies = True
        number = launch.number_of(site)
        role = launch.role(number)
        step = self._step(threads, space, addresses, offset, site, number)
        if step is None:
            return
        accesses = launch.in_global if space == "global" else self._in_shared
        if role.proxy == ASYNC and role.reads:
            self._compare_proxies(space, accesses, step, ASYNC, (space,))
        same = self._same(space, (), step)
        kind: Kind = "combine" if role.is_atomic else "write" if role.writes else "read"
        if objects is None:
            self._access(space, accesses, step, role, same)
            self._groups_of(site).issue(kind, accesses, step)
            return
        if kind == "read":
            self._read(space, accesses, step)
        else:
            self._access(space, accesses, step, role, same)
        self._put_by(kind, accesses, step, self._counted(step.threads, objects, number))

    def begin_work(
        self, kind: WorkerKind, threads: Threads, addresses: Addresses, site: Site
    ) -> None:
        """Tensor cores begin to read shared memory for these threads."""
        launch = self._launch
        number = launch.number_of(site)
        step = self._step(threads, "shared", addresses, 0, site, number)
        if step is None:
            return
        self._compare_proxies("shared", self._in_shared, step, ASYNC, ("shared",))
        self._read("shared", self._in_shared, step)
        stamps = self.workers.stamps(kind, step.threads, number)
        self._put_by("read", self._in_shared, step, stamps)

    def use_objects(self, threads: Threads, objects: Index, site: Site) -> None:
        """These threads make or use mbarrier objects, each one of them."""
        most, launch = self._shared_stride, self._launch
        number = launch.number_of(site)
        slots, within = np.divmod(objects * 8, most)
        lanes = None if threads.lanes is None else threads.lane_numbers()
        step = AccessStep(
            self._clocks.moment, lanes, number, addresses_in(within), 0, threads.n, site.total,
            launch.shared_shift, slots * most,
        )  # fmt: skip
        self._in_shared.settle(step)
        if launch.role(number).writes:
            self._write("shared", self._in_shared, step, self._same("shared", (), step))
        else:
            self._read("shared", self._in_shared, step)

    def count_copies(self, lanes: Index, objects: Index) -> None:
        """The copies that these threads began are counted by objects from now on."""
        if not self._copies:
            return
        now = self._clocks.now.copy()
        now[lanes] = self._counted(lanes, objects, 0)
        self._copies.wait(lanes, -1, now)

    def _counted(self, lanes: Index, objects: Index, site: int) -> Stamps:
        clocks = self._clocks
        blocks = objects * 8 // self._shared_stride + self.first
        issuers = clocks.threads[lanes]
        what = f"mbarrier {self.first}"
        return self._launch.counted.stamps(what, objects, blocks, issuers, site)

    def _put_by(self, kind: Kind, accesses: ShadowMemory, step: AccessStep, stamps: Stamps) -> None:
        """Another than the threads does this, with these stamps without a site."""
        counted = step.by(stamps)
        units = counted.units
        if kind == "write":
            units = np.arange(units.start, units.stop) if isinstance(units, slice) else units
            accesses.put(units, counted.stamps, step)
        elif kind == "combine":
            accesses.settle(step)
            accesses.atomics.add(units, counted.stamps)
        elif not accesses.lists_read(counted):
            accesses.settle(step)
            accesses.reads.add(units, counted.stamps)

    def _step(
        self, threads: Threads, space: str, addresses: Addresses, offset: int, site: Site,
        number: int,
    ) -> AccessStep | None:  # fmt: skip
        """An access as a step; None where it is of no memory that is looked at."""
        launch, starts, begun = self._launch, None, None
        if space == "global":
            most, shift = launch.memory.nbytes, launch.global_shift
            offset -= launch.memory.base
        elif space == "shared":
            most, shift = self._shared_stride, launch.shared_shift
            if addresses.lowest() + offset < 0 or addresses.highest() + offset + site.total > most:
                slots, within = owners(threads, addresses, offset, site)
                begun = slots, within
                starts, addresses, offset = slots * most, addresses_in(within), 0
            elif self._several:
                starts = threads.start_index("shared", 0)
        else:
            return None
        lanes = None if threads.lanes is None else threads.lane_numbers()
        step = AccessStep(
            self._clocks.moment, lanes, number, addresses, offset, threads.n, site.total, shift,
            starts,
        )  # fmt: skip
        if step.low < 0 or step.high > most:
            if space == "global":  # another device's memory, or the host's
                launch.note_elsewhere(step, writes=launch.role(number).writes)
            return None
        if begun is not None:
            self._compare_begins(step, *begun)
        return step

    def _compare_begins(self, step: AccessStep, slots: Index, within: Index) -> None:
        """Report an access to the shared memory of a block that may not have begun."""
        early = np.flatnonzero(self.order.may_not_have_begun(step.threads, slots))
        if len(early):
            at = int(early[0])
            stamp = int(self._clocks.now[step.threads[at]]) | step.site
            self._launch.report_early(stamp, int(within[at]), self.first + int(slots[at]))

    def _same(self, space: str, values: tuple[Value, ...], step: AccessStep) -> WrittenValues:
        data = self._launch.memory.data if space == "global" else self._data
        return WrittenValues(data, values, step, self._launch.hidden_from(self._own))

    def _groups_of(self, site: Site) -> AsyncCopies:
        return self._bulk if "bulk" in site.instruction.modifiers else self._copies

    def _access(
        self,
        space: str,
        accesses: ShadowMemory,
        step: AccessStep,
        role: AccessRole,
        same: WrittenValues,
    ) -> None:
        """One side of a copy."""
        if role.strong:
            accesses.settle(step)
            self._strong(space, accesses, step, role, same)
        elif role.writes:
            accesses.settle(step)
            self._write(space, accesses, step, same)
        elif not accesses.lists_read(step):
            self._read(space, accesses, step)
            accesses.reads.add(step.units, step.stamps)

    def read_map(self, threads: Threads, addresses: Addresses, offset: int, site: Site) -> None:
        """These threads read tensor maps in global memory."""
        number = self._launch.number_of(site)
        step = self._step(threads, "global", addresses, offset, site, number)
        accesses = self._launch.in_global
        if step is not None and accesses.has_writes(step):
            self._read("global", accesses, step)
            fences = f"{TENSOR_MAP} release", f"{TENSOR_MAP} acquire"
            self._compare_proxies("global", accesses, step, TENSOR_MAP, fences)

    # What textures and surfaces ask and tell.

    def stored_texels(self, address: int, nbytes: int) -> NDArray[np.uint8]:
        """The flags of an image's bytes that were written by a surface, to be set."""
        stored = self._launch.stored_texels
        if address not in stored:
            stored[address] = np.zeros(nbytes, dtype=np.uint8)
        return stored[address]

    def written_bytes(
        self, memory: DeviceMemory, address: int, nbytes: int
    ) -> NDArray[np.uint8] | None:
        """Flags of bytes that the launch has written in any way; None if it has written none."""
        launch, found = self._launch, self._launch.stored_texels.get(address)
        if memory is launch.memory:
            low, shift = address - memory.base, launch.global_shift
            units = launch.in_global.written_within(low, low + nbytes, shift)
            if units is not None:
                first = low & (1 << shift) - 1
                written = np.repeat(units, 1 << shift)[first : first + nbytes].view(np.uint8)
                found = written if found is None else found | written
        return found

    def report_texel(self, where: Where, memory: DeviceMemory, address: int, nbytes: int) -> None:
        """A thread reads such a texel of an image at an address."""
        self._launch.report_texel(where, memory, address, nbytes)

    def _compare_proxies(
        self, space: str, accesses: ShadowMemory, step: AccessStep, proxy: str,
        fences: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """An access reads through another proxy what was perhaps written before."""
        if accesses.has_writes(step):
            accesses.settle(step)
            for old in accesses.written(step.units) + accesses.atomics.found(step.units):
                self._comparison.compare_proxies(space, old, step, proxy, fences)

    def _read(self, space: str, accesses: ShadowMemory, step: AccessStep) -> None:
        accesses.settle(step)
        atomics = accesses.atomics.found_by_others(step.units, step.stamps)
        for old in accesses.written(step.units) + atomics:
            self._compare(space, old, step)

    def _write(
        self, space: str, accesses: ShadowMemory, step: AccessStep, same: WrittenValues
    ) -> None:
        units, stamps = step.units, step.stamps
        for old in accesses.written(units):
            self._compare(space, old, step, same)
        atomics = accesses.atomics.found_by_others(units, stamps)
        reads = accesses.reads.found(units) + accesses.strong_reads.found(units)
        for old in reads + atomics + self._copied(accesses, step):
            self._compare(space, old, step)
        lost = accesses.write(step)
        if lost is not None:
            self._comparison.same_step(space, step, same)

    def _compared(self, step: AccessStep) -> AccessStep:
        """Those of threads that read which are compared with what others did."""
        return step if self.order.is_uneven else _kept(step)

    def _copied(self, accesses: ShadowMemory, step: AccessStep) -> list[Stamps]:
        """The copies that may still read these units."""
        found = [each.reads_of(accesses, step) for each in (self._copies, self._bulk) if each]
        return [each for each in found if each is not None]

    def _strong(
        self,
        space: str,
        accesses: ShadowMemory,
        step: AccessStep,
        role: AccessRole,
        same: WrittenValues,
    ) -> None:
        units, stamps = step.units, step.stamps
        for old in accesses.written(units):
            self._compare(space, old, step, same if not role.reads else None)
        if role.writes:
            for old in accesses.reads.found(units) + self._copied(accesses, step):
                self._compare(space, old, step)
        if self._launch.has_narrow:
            heard = accesses.strong_reads.found(units) if role.writes else []
            for old in heard + accesses.atomics.found(units):
                self._compare(space, old, step)
        if role.is_copy:
            return
        if role.is_volatile and space == "shared":
            met = accesses.strong_reads if role.writes else accesses.atomics
            for old in met.found(units):
                self._comparison.volatile(space, old, step)
        if not role.writes:
            kept = step if role.update else _kept(step)
            accesses.strong_reads.add(kept.units, kept.stamps)
            if role.update:
                self._updates.load(space, accesses, step, role.update)
            return
        if role.update:
            self._updates.store(space, accesses, step, role.update, same)
        accesses.atomics.add(units, stamps)
        if role.scope in NARROW:
            for old in accesses.atomics.found(units):
                self._compare(space, old, step)  # with each other

    # What barriers and waits tell.

    def pass_block(self, lanes: Index) -> None:
        """These threads, all that their blocks have, pass a barrier."""
        launch = self._launch
        alone = launch.cluster_blocks == 1 and not (launch.counted or launch.reads_by_async)
        if self.order.pass_block(lanes) and alone:
            self._in_shared.reset()
            for each in (self._copies, self._bulk):
                each.put_again(self._in_shared)

    def commit_copies(self, lanes: Index, *, bulk: bool) -> None:
        """What these threads began to copy is a group."""
        (self._bulk if bulk else self._copies).commit(lanes)

    def wait_for_copies(
        self, lanes: Index, pending: int, *, bulk: bool, reads_alone: bool = False
    ) -> None:
        """These threads wait for all but so many groups of copies; -1 for everything."""
        copies = self._bulk if bulk else self._copies
        if copies:
            copies.wait(lanes, pending, self._clocks.now, reads_alone=reads_alone)


def _kept(step: AccessStep) -> AccessStep:
    """Those of threads that read whose reads are kept: of many that read one place, the ends."""
    return step.ends() if step.is_uniform and step.count > 2 else step
