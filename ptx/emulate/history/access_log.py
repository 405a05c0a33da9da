"""The accesses of a launch to some bytes, or of one thread, in the order in which they ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.emulate.kernel_facts import Instrument
from ptx.emulate.memory.generic_addresses import by_space
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.errors import Where, bytes_text
from ptx.emulate.model.geometry import WARP, Dim3
from ptx.emulate.model.threads import Threads
from ptx.emulate.observer import ObservedLaunch, Observer, Watcher


@dataclass(frozen=True, slots=True)
class LoggedAccess:
    """One access of one thread.

    Attributes:
        step: counts the accesses of all threads; threads that execute an instruction together
            access in one step.
        kind: "read", "write" or "atomic".
        space: "global", "shared", "local" or "param".
        address: of the first byte; in the block's or the thread's memory if it is not global.
        nbytes: how many bytes.
        where: the thread and the instruction.
    """

    step: int
    kind: str
    space: str
    address: int
    nbytes: int
    where: Where

    @property
    def what(self) -> str:
        """The kind and the size in words, such as "read of 4 bytes"."""
        return f"{self.kind} of {bytes_text(self.nbytes)}"


class AccessWriter(BlockInstrument):
    """Writes code that records each access, before its addresses are checked."""

    def access(self, e: Emitter, addresses: str, offset: int, site: str) -> None:
        """Write code that records an access."""
        e.line(f"{self.follower}.record(f, {addresses}, {offset}, {site})")


class AccessLog(Observer):
    """Records accesses of the launches that `watcher` observes.

    Args:
        space: only accesses to it; "" is every space.
        bounds: returns the first address, and the one after the last; None is every address.
        block, thread: the coordinates of the only block and thread; None is every one.
        warp: the number of the only warp of each block; None is every one.
        most: how many steps of one instruction to record at most; None is no limit.

    Attributes:
        accesses: those that were recorded, in order.
        watcher: for `Limits.watchers`.
    """

    def __init__(
        self,
        space: str = "",
        bounds: Callable[[], tuple[int, int]] | None = None,
        block: Dim3 | None = None,
        thread: Dim3 | None = None,
        warp: int | None = None,
        most: int | None = None,
    ) -> None:
        self.accesses: list[LoggedAccess] = []
        self.watcher: Watcher = Watcher(self._begin_launch, AccessWriter)
        self._space = space
        self._bounds = bounds
        self._block = block
        self._thread = thread
        self._warp = warp
        self._most = most
        self._steps_of: Counter[int] = Counter()  # recorded ones, by the line of PTX
        self._step = 0

    def _begin_launch(self, launch: ObservedLaunch) -> Observer:
        return self

    def follow(self, instrument: Instrument) -> object | None:
        """Return the log, which generated code calls."""
        return self if isinstance(instrument, AccessWriter) else None

    def record(self, threads: Threads, addresses: Addresses, offset: int, site: Site) -> None:
        """Record an access of these threads; called by generated code."""
        for space, chosen, in_space in by_space(addresses.every(threads.n) + offset, site):
            self._record(threads, space, chosen, in_space, site)

    def _record(
        self, threads: Threads, space: str, chosen: Index | None, addresses: Index, site: Site
    ) -> None:
        """Record the accesses of these threads, `chosen` of them, to one space."""
        self._step += 1
        if self._space not in ("", space):
            return
        positions = np.arange(threads.n) if chosen is None else chosen
        is_recorded = np.full(len(positions), fill_value=True)
        if threads.present is not None:
            is_recorded &= threads.present[positions]
        if self._bounds is not None:
            first, end = self._bounds()
            is_recorded &= (addresses < end) & (addresses + site.total > first)
        is_recorded &= self._are_of_warp(threads, positions)
        line = site.instruction.line
        if self._most is not None and is_recorded.any():
            self._steps_of[line] += 1
            if self._steps_of[line] > self._most:
                return
        kind = "atomic" if site.facts.is_atomic else "write" if site.writes else "read"
        for position, address in zip(positions[is_recorded], addresses[is_recorded], strict=True):
            where = threads.where(int(position), site.instruction)
            if self._block in (None, where.block) and self._thread in (None, where.thread):
                self.accesses.append(
                    LoggedAccess(self._step, kind, space, int(address), site.total, where)
                )

    def _are_of_warp(self, threads: Threads, positions: Index) -> NDArray[np.bool_]:
        """Return which threads belong to the only warp, and to the only block if there is one."""
        lanes = threads.lane_numbers()[positions]
        if self._warp is None:
            return np.full(len(lanes), fill_value=True)
        blocks, numbers = np.divmod(lanes, threads.blocks.geometry.threads_per_block)
        is_of_warp = np.asarray(numbers // WARP == self._warp)
        if self._block is not None:
            for block in np.unique(blocks[is_of_warp]):
                first = int(block) * threads.blocks.geometry.threads_per_block
                if threads.blocks.block_of(first) != self._block:
                    is_of_warp &= blocks != block
        return is_of_warp
