"""Counters of blocks that are executed together, called by generated code that counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.count.count_writer import CountWriter
from ptx.emulate.count.counts import Branches
from ptx.emulate.count.launch_counts import LaunchCounts
from ptx.emulate.count.warp_rows import (
    Rows,
    global_atomic_transactions,
    global_traffic,
    shared_atomic_wavefronts,
    shared_traffic,
)
from ptx.emulate.kernel_facts import Instrument
from ptx.emulate.memory.generic_addresses import by_space
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.model.threads import ThreadBlocks, Threads
from ptx.emulate.observer import ObservedLaunch, Observer
from ptx.isa.instruction_facts import InstructionKind

Bools = NDArray[np.bool_]


class CountedLaunch(Observer):
    """Counts the instructions of one launch in `counts`."""

    def __init__(self, counts: LaunchCounts, launch: ObservedLaunch) -> None:
        self._counts = counts
        for instrument in launch.code.instruments:
            if isinstance(instrument, CountWriter):
                counts.code = launch.code, instrument.counted

    def begin(self, blocks: ThreadBlocks, shared: NDArray[np.uint8]) -> Observer:
        """Return the counters of a chunk."""
        return ChunkCounts(self._counts, blocks)


class ChunkCounts(Observer):
    """Counters of blocks that are executed together."""

    def __init__(self, launch: LaunchCounts, blocks: ThreadBlocks) -> None:
        geometry = blocks.geometry
        self._launch = launch
        self._first = blocks.first
        self._stride = blocks.shared_stride
        self._slots = geometry.index("warp_slot")
        self._warps = geometry.blocks * geometry.warps_per_block
        self._is_dense = geometry.threads_per_block % WARP == 0

    def follow(self, instrument: Instrument) -> object | None:
        """Return the counters, which generated code calls."""
        return self if isinstance(instrument, CountWriter) else None

    # Called by generated code.

    def block(self, threads: Threads, number: int) -> None:
        """Count a basic block that these threads execute."""
        self._launch.warps[number] += self._count_warps(threads)
        self._launch.threads[number] += threads.count

    def guard(self, threads: Threads, number: int, condition: Value) -> None:
        """Count a guarded instruction for the threads for which the condition holds."""
        self._launch.guarded[number] += self._count_true(threads, condition)

    def branch(self, threads: Threads, number: int, condition: Value) -> None:
        """Count a branch taken by the threads for which the condition holds."""
        self.guard(threads, number, condition)
        self._add_branch(threads, number, condition)

    def chosen_branch(self, threads: Threads, number: int, choice: Value) -> None:
        """Count a branch of these threads to targets given by an index or an address."""
        self._launch.guarded[number] += threads.count
        self._add_branch(threads, number, choice)

    def count_access(self, threads: Threads, addresses: Addresses, offset: int, site: Site) -> None:
        """Count an access of these threads to memory."""
        every = addresses.every(threads.n) + offset
        for space, chosen, addresses_in_space in by_space(every, site):
            if space == "global":
                self._access_global(threads, chosen, addresses_in_space, site)
            # Of an asynchronous copy only the reads count.
            elif space == "shared" and site.facts.kind is not InstructionKind.COPY:
                self._access_shared(threads, chosen, addresses_in_space, site)

    # Counting accesses.

    def _access_global(
        self, threads: Threads, chosen: Index | None, addresses: Rows, site: Site
    ) -> None:
        rows = self._rows(threads, chosen, addresses)
        if site.facts.is_atomic:
            transactions = global_atomic_transactions(rows)
            self._launch.atomics[site, "global"].add(rows, rows, transactions)
        else:
            self._launch.in_global[site] += global_traffic(rows, site.total)

    def _access_shared(
        self, threads: Threads, chosen: Index | None, addresses: Rows, site: Site
    ) -> None:
        rows = self._rows(threads, chosen, addresses)
        if site.facts.matrices:  # eight threads each give the addresses of one matrix's rows
            rows[:, 8 * site.facts.matrices :] = -1
        if not site.facts.is_atomic:
            merges = site.facts.kind is InstructionKind.LOAD
            self._launch.in_shared[site] += shared_traffic(rows, site.total, merges=merges)
            return
        slots = np.broadcast_to(np.asarray(threads.place("slot"), dtype=np.int64), (threads.n,))
        blocks = slots if chosen is None else slots[chosen]
        element_rows = self._rows(
            threads, chosen, (blocks + self._first) * self._stride + addresses
        )
        transactions = shared_atomic_wavefronts(rows, site.total)
        self._launch.atomics[site, "shared"].add(rows, element_rows, transactions)

    def _add_branch(self, threads: Threads, number: int, value: Value) -> None:
        divergent = 0
        if value.ndim:
            slots, values = self._slots_of(threads), np.asarray(value)
            if threads.present is not None:
                slots, values = slots[threads.present], values[threads.present]
            divergent = _partings(slots >> 5, values)
        executed = self._count_warps(threads)
        self._launch.branches[number] += Branches(executed, divergent)

    def _count_true(self, threads: Threads, condition: Value) -> int:
        if condition.ndim == 0:
            return threads.count if condition else 0
        if threads.present is not None:
            condition = condition & threads.present
        return int(np.count_nonzero(condition))

    def _count_warps(self, threads: Threads) -> int:
        if threads.present is not None:
            return len(_starts(self._slots_of(threads)[threads.present] >> 5))
        if threads.lanes is None:
            return self._warps
        n_warps = threads.recall("warps")
        if n_warps is None:
            n_warps = len(_starts(self._slots_of(threads) >> 5))
            threads.remember("warps", n_warps)
        return int(n_warps)

    def _slots_of(self, threads: Threads) -> Index:
        """(n,) each thread's place among whole warps."""
        return self._slots if threads.lanes is None else self._slots[threads.lanes]

    def _rows(self, threads: Threads, chosen: Index | None, addresses: Rows) -> Rows:
        """A row for each warp that has one of the chosen threads."""
        if threads.lanes is None and chosen is None and self._is_dense:
            return addresses.reshape(-1, WARP)
        slots = self._slots_of(threads)
        if chosen is not None:
            slots = slots[chosen]
        warps = slots >> 5
        starts = _starts(warps)
        row = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(warps)))
        rows = np.full((len(starts), WARP), -1, dtype=np.int64)
        rows[row, slots & (WARP - 1)] = addresses
        return rows


def _partings(warps: Index, choices: NDArray[Any]) -> int:
    """Return how many ways more than one the threads of each warp go, added up.

    A warp that calls three functions by their addresses parts twice, as measured on an H200.
    """
    if choices.dtype != np.bool_:
        order = np.lexsort((choices, warps))
        warps, choices = warps[order], choices[order]
        return int(np.count_nonzero((warps[1:] == warps[:-1]) & (choices[1:] != choices[:-1])))
    starts = _starts(warps)
    low, high = (reduce.reduceat(choices, starts) for reduce in (np.minimum, np.maximum))
    return int(np.count_nonzero(low != high))


def _starts(warps: Index) -> Index:
    """Return the start of each warp in an ascending list of warps."""
    return np.flatnonzero(np.concatenate(([True], warps[1:] != warps[:-1])))
