"""Lanes of a warp that wait for each other. PTX ISA, "membermask" of the `.sync` instructions.

A fibre that holds all lanes that its masks name passes at once. Any other waits with its values.
When nothing else can run, complete groups execute their instruction, from every place where their
lanes wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.merge import merge
from ptx.emulate.exec.sync.skipped_barriers import SkippedBarriers
from ptx.emulate.exec.sync.warp_group import leaders
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import SynchronisationFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.threads.fibre import Fibre, RunQueue

Bools = NDArray[np.bool_]
Words = NDArray[np.uint32]
_FULL = 0xFFFFFFFF


@dataclass(slots=True)
class WarpWait:
    """A fibre that waits for lanes of its warps; its block is executed again when they are there.

    `mask` names the lanes it waits for, `key` its instruction, `values` its exchanged values,
    `warps` how many warps of its block execute it together.
    """

    fibre: Fibre
    block: int
    mask: Value
    key: str
    values: dict[str, Value]
    warps: int


class WarpSync:
    """The fibres of one chunk that wait at warp instructions."""

    def __init__(self, queue: RunQueue, skipped: SkippedBarriers | None) -> None:
        self._queue = queue
        self._skipped = skipped
        self._blocks = queue.blocks
        self._exited: Words | None = None
        self._exits_seen = 0
        self.waiting: list[WarpWait] = []

    def arrive(
        self,
        fibre: Fibre,
        mask: Value,
        block: int,
        key: str,
        values: dict[str, Value],
        warps: int = 1,
    ) -> bool:
        """Return whether all lanes that `mask` names are here; otherwise the fibre waits.

        They are those of `warps` warps together, from a multiple of that number on. Lanes that
        execute `key` at another place count as well; after the release, their values are in
        `fibre.exchange`.

        Raises:
            SynchronisationFault: a thread's mask does not name itself.
        """
        if fibre.released:
            fibre.released = False
            return True
        fibre.exchange = None
        if self._skipped is not None:
            self._skipped.arrive(block, fibre.lane_numbers())
            self._check_skipped(fibre, mask, block)
        if not mask.ndim and mask == _FULL:
            if fibre.count == self._queue.alive:
                if fibre.lanes is None:
                    for observer in self._blocks.order_observers:
                        observer.pass_warps()
                else:
                    self._report_synchronised(fibre.lane_numbers(), mask)
                return True
        else:
            self._check_own_bit(fibre, mask, block)
        if self._is_complete(fibre, mask) and (
            warps == 1 or not self._lacking_warps(self._slots(fibre) // WARP, warps).any()
        ):
            self._report_synchronised(fibre.lane_numbers(), mask)
            return True
        self.waiting.append(WarpWait(fibre, block, mask, key, values, warps))
        return False

    def resolve(self) -> bool:
        """Release complete groups; return whether there were any."""
        entries, self.waiting = self.waiting, []
        released = False
        for key in dict.fromkeys(entry.key for entry in entries):
            group = [entry for entry in entries if entry.key == key]
            ready: list[WarpWait] = []
            for entry, missing in zip(group, self._missing_with_warps(group), strict=True):
                for chosen, into in ((missing == 0, ready), (missing != 0, self.waiting)):
                    part = self._part(entry, chosen)
                    if part is not None:
                        into.append(part)
            if ready:
                released = True
                self._check_masks(ready)
                for warp_wait in ready:
                    self._check_skipped(warp_wait.fibre, warp_wait.mask, warp_wait.block)
                self._release(ready)
        return released

    def missing(self, entry: WarpWait) -> Words:
        """(n,) the lanes that each thread of an entry still waits for, as bits."""
        group = [other for other in self.waiting if other.key == entry.key]
        return self._missing(group)[next(index for index, e in enumerate(group) if e is entry)]

    def _report_synchronised(self, lanes: Index, mask: Value) -> None:
        """Report that each of these lanes has met the lanes in its mask."""
        for observer in self._blocks.order_observers:
            masks: Words = np.broadcast_to(np.asarray(mask, dtype=np.uint32), (len(lanes),))
            warps = self._blocks.geometry.index("warp_slot")[lanes] // WARP
            observer.pass_warp(lanes, masks, masks | self._exited_lanes()[warps] == _FULL)

    def _check_own_bit(self, fibre: Fibre, mask: Value, block: int) -> None:
        lane = np.asarray(fibre.place("laneid"), dtype=np.uint32)
        has_own_bit = np.asarray(mask, dtype=np.uint32) >> lane & 1
        if has_own_bit.all():
            return
        position = int(np.argmin(np.broadcast_to(has_own_bit, (fibre.n,))))
        word = int(mask[position] if mask.ndim else mask)
        raise SynchronisationFault(
            f"lane {int(np.broadcast_to(lane, (fibre.n,))[position])} executes a warp instruction"
            f" whose membermask {word:#010x} does not name it",
            fibre.where(position, self._blocks.code.first[block]),
        )

    def _check_masks(self, ready: list[WarpWait]) -> None:
        """Raise if a lane names another at the same instruction whose mask names other lanes.

        In a loop the other one may come again, with the mask that is waited for.

        Raises:
            SynchronisationFault: there are such lanes.
        """
        code = self._blocks.code
        for entry in self.waiting:
            key = (entry.fibre.prefix, entry.block)
            fibres = [e.fibre for e in ready if (e.fibre.prefix, e.block) == key]
            if not fibres or code.comes_again(entry.block):
                continue
            present_bits = self._bits([self._slots(fibre) for fibre in fibres])
            named_lanes = entry.mask & present_bits.take(self._slots(entry.fibre) // WARP)
            if named_lanes.any():
                position = int(np.argmax(named_lanes != 0))
                mask = int(entry.mask[position] if entry.mask.ndim else entry.mask)
                raise SynchronisationFault(
                    f"the membermask {mask:#010x} names the lanes "
                    f"{int(named_lanes[position]):#010x}, which execute this warp instruction"
                    " with another membermask",
                    entry.fibre.where(position, code.first[entry.block]),
                )

    def _check_skipped(self, fibre: Fibre, mask: Value, block: int) -> None:
        """Raise if a mask names exited lanes that went around the instruction, if this is checked.

        Raises:
            SynchronisationFault: there are such lanes.
        """
        skipped, exits = self._skipped, self._queue.exited
        if skipped is None or not exits:
            return
        slots = self._blocks.geometry.index("warp_slot")
        exited = np.concatenate(exits)
        lanes = fibre.lane_numbers()
        masks = np.broadcast_to(np.asarray(mask, dtype=np.uint32), (len(lanes),))
        warps = slots[lanes] // WARP
        for warp, word in dict.fromkeys(zip(warps.tolist(), masks.tolist(), strict=True)):
            own_lanes = lanes[(warps == warp) & (masks == word)]
            exited_lanes = exited[slots[exited] // WARP == warp]
            named_lanes = exited_lanes[(word >> (slots[exited_lanes] % WARP) & 1).astype(np.bool_)]
            skipping = skipped.threads_that_skipped(block, own_lanes, named_lanes)
            if len(skipping):
                raise SynchronisationFault(
                    f"the membermask {word:#010x} names {len(skipping)} lanes that went around this"
                    " warp instruction, and exited: all that it names must execute it",
                    fibre.where(0, self._blocks.code.first[block]),
                )

    def _bits(self, slot_lists: list[Index]) -> Words:
        geometry = self._blocks.geometry
        is_here = np.zeros(geometry.warps_per_block * geometry.blocks * WARP, dtype=np.bool_)
        for slots in slot_lists:
            is_here[slots] = True
        return np.packbits(is_here, bitorder="little").view(np.uint32)

    def _slots(self, fibre: Fibre) -> Index:
        return np.broadcast_to(np.asarray(fibre.place("warp_slot"), dtype=np.intp), (fibre.n,))

    def _is_complete(self, fibre: Fibre, mask: Value) -> bool:
        """Return whether every thread finds all lanes that its mask names in this fibre."""
        slots = self._slots(fibre)
        warps = slots // WARP
        present_bits = self._bits([slots])
        needed_lanes = mask & ~self._exited_lanes().take(warps)
        if (needed_lanes & ~present_bits.take(warps)).any():
            return False
        if not mask.ndim:
            return True
        leader, agree = leaders(slots, np.asarray(needed_lanes))
        if not agree:
            return False
        present = np.bincount(leader, weights=(1 << (slots % WARP)).astype(np.float64))
        present_masks: Words = present.astype(np.uint32)
        return bool((present_masks.take(leader) == needed_lanes).all())

    def _missing(self, group: list[WarpWait]) -> list[Words]:
        """Return for each entry (n,) the lanes that a thread waits for and that no entry has."""
        exited_bits = self._exited_lanes()
        keys: list[NDArray[np.uint64]] = []
        lanes: list[Words] = []
        for entry in group:
            slots = self._slots(entry.fibre)
            key = (slots // WARP).astype(np.uint64) << np.uint64(32)
            keys.append(key | np.asarray(entry.mask, dtype=np.uint64))
            lanes.append(np.uint32(1) << (slots % WARP).astype(np.uint32))
        distinct, index_of_key = np.unique(np.concatenate(keys), return_inverse=True)
        present_bits = np.zeros(len(distinct), dtype=np.uint32)
        np.bitwise_or.at(present_bits, index_of_key.reshape(-1), np.concatenate(lanes))
        missing = distinct.astype(np.uint32) & ~(
            present_bits | exited_bits.take((distinct >> 32).astype(np.intp))
        )
        ends = np.cumsum([len(key) for key in keys])[:-1]
        return np.split(missing.take(index_of_key.reshape(-1)), ends)

    def _missing_with_warps(self, group: list[WarpWait]) -> list[Words]:
        """Return the missing lanes; all lanes for a thread that waits for other warps."""
        missing_lanes = self._missing(group)
        warps = group[0].warps
        if warps == 1:
            return missing_lanes
        of_threads = [self._slots(entry.fibre) // WARP for entry in group]
        complete_warps = np.concatenate(
            [
                warps_of_threads[missing == 0]
                for warps_of_threads, missing in zip(of_threads, missing_lanes, strict=True)
            ]
        )
        if not len(complete_warps):
            return missing_lanes
        lacking = np.ones(len(self._exited_lanes()), dtype=np.bool_)
        lacking[complete_warps] = self._lacking_warps(complete_warps, warps)
        return [
            np.where(lacking[warps_of_threads] & (missing == 0), np.uint32(_FULL), missing)
            for warps_of_threads, missing in zip(of_threads, missing_lanes, strict=True)
        ]

    def _lacking_warps(self, warp_numbers: Index, warps: int) -> Bools:
        """Return whether each of these warps lacks one of its group that has not exited."""
        of_block = self._blocks.geometry.warps_per_block
        has_all_lanes = self._exited_lanes() == _FULL
        has_all_lanes[warp_numbers] = True
        every = np.arange(len(has_all_lanes))
        groups = every // of_block * of_block + every % of_block // warps * warps
        is_whole_group = np.ones(len(has_all_lanes), dtype=np.bool_)
        np.logical_and.at(is_whole_group, groups, has_all_lanes)
        lacking: Bools = ~is_whole_group[groups[warp_numbers]]
        return lacking

    def _exited_lanes(self) -> Words:
        """(warps,) lanes that have exited, or that a block's last warp does not have."""
        blocks = self._blocks
        exits = self._queue.exited
        slots = blocks.geometry.index("warp_slot")
        if self._exited is None:
            self._exited = ~self._bits([slots])
        if self._exits_seen < len(exits):
            fresh = exits[self._exits_seen :]
            self._exits_seen = len(exits)
            self._exited = self._exited | self._bits([slots.take(lanes) for lanes in fresh])
        return self._exited

    def _part(self, entry: WarpWait, chosen: Bools) -> WarpWait | None:
        """The entry for some of its threads; None if there are none."""
        if chosen.all():
            return entry
        positions = chosen.nonzero()[0]
        if not len(positions):
            return None

        def part(value: Value) -> Value:
            return value.take(positions) if value.ndim else value

        fibre = entry.fibre.subset(positions, self._blocks.code.live[entry.block])
        values = {name: part(value) for name, value in entry.values.items()}
        return WarpWait(fibre, entry.block, part(entry.mask), entry.key, values, entry.warps)

    def _release(self, ready: list[WarpWait]) -> None:
        """Execute the instruction from each place where lanes of complete groups wait."""
        blocks = self._blocks
        if blocks.order_observers:
            lanes = np.concatenate([warp_wait.fibre.lane_numbers() for warp_wait in ready])
            masks = [np.broadcast_to(warp_wait.mask, (warp_wait.fibre.n,)) for warp_wait in ready]
            self._report_synchronised(lanes, np.concatenate(masks))
        exchange: dict[str, Value] | None = None
        keys = dict.fromkeys((*entry.fibre.prefix, entry.block) for entry in ready)
        if len(keys) > 1:
            exchange = self._exchange(ready)
        for key in keys:
            fibres = [e.fibre for e in ready if (*e.fibre.prefix, e.block) == key]
            fibre = fibres[0] if len(fibres) == 1 else merge(fibres, blocks.code.live[key[-1]])
            fibre.released = True
            fibre.exchange = exchange
            self._queue.released.append((fibre, key[-1]))

    def _exchange(self, ready: list[WarpWait]) -> dict[str, Value]:
        """Return each exchanged value of the released lanes, (threads of the chunk,)."""
        exchanged: dict[str, Value] = {}
        for name, value in ready[0].values.items():
            table = np.zeros(self._blocks.geometry.threads, dtype=value.dtype)
            for entry in ready:
                table[entry.fibre.lane_numbers()] = entry.values[name]
            exchanged[name] = table
        is_here = np.zeros(self._blocks.geometry.threads, dtype=np.bool_)
        for entry in ready:
            is_here[entry.fibre.lane_numbers()] = True
        exchanged["here"] = is_here
        return exchanged
