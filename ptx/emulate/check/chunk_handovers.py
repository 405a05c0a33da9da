"""What the fences and the accesses of a chunk's threads tell through memory, noted for later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from ptx.emulate.check.access_role import AccessRole
from ptx.emulate.check.clocks import Clocks, Fences, Small
from ptx.emulate.check.handover import Place
from ptx.emulate.check.keys import (
    key_of_block,
    key_of_fenced,
    key_of_strong,
    key_of_thread,
    key_of_warp,
)
from ptx.emulate.check.polls import Polls
from ptx.emulate.check.stamps import WARP_SHIFT, Stamps, epochs_of
from ptx.emulate.check.step import Step, Units
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Geometry, Value

if TYPE_CHECKING:
    from ptx.emulate.check.races import RaceCheck

_Known = tuple[tuple[int, int], ...]
_NOTHING_TOLD: Final[list[_Known]] = [()]


class ChunkHandovers:
    """What the threads of the blocks from number `first` on hand over to each other.

    The epochs of the threads go on at once; all else is put off until somebody asks.

    Attributes:
        fences: of each level, what threads hand over since their last one; once all is settled.
        has_fences: whether there was any.
    """

    def __init__(self, launch: RaceCheck, geometry: Geometry, first: int, clocks: Clocks) -> None:
        self.fences: list[Fences] = [Fences(geometry.threads) for _ in range(launch.levels)]
        self.has_fences: bool = False
        self._clocks = clocks
        self._launch = launch
        self._known = launch.handovers
        self._first = first
        # The epoch below which all of a block had been before a fence of each, at its last barrier.
        self._fenced = np.zeros(geometry.blocks, dtype=np.int64)
        self._unit_type = np.int32 if launch.memory.nbytes < 1 << 31 else np.int64
        # Those who may have told, since their epoch began, of their strong accesses in it.
        self._has_told = np.zeros(geometry.threads, dtype=np.bool_)
        self._last_known = clocks.block_known, clocks.warp_known
        self._last_lanes: tuple[Index, Small] | None = None
        self._polls: dict[tuple[int, int], Polls] = {}  # by sites and levels
        # Numbers of four bytes that are not counted yet, at first the chunk's fences and stamps.
        self._uncounted = geometry.threads * (6 * launch.levels + 2)

    # What is noted.

    @property
    def hands_over(self) -> bool:
        """Whether anything was handed over, or may have been."""
        return bool(self._launch.handover_log) or self._known.anything

    def _soon(self, work: Callable[[], None], numbers: int) -> None:
        """Do this before anything is asked; at once where nothing was handed over so far."""
        if self.hands_over:
            self._launch.handover_log.put_off(work, numbers)
        else:
            work()

    def _small(self, lanes: Index) -> Small:
        """The same numbers to be kept: an array for a fence and the access behind it."""
        last = self._last_lanes
        if last is None or not _same(last[0], lanes):
            last = self._last_lanes = lanes, lanes.astype(np.int32)
            self._uncounted += len(lanes)
        return last[1]

    def _new_numbers(self) -> int:
        """How much memory is kept that what was put off last did not, beside its own numbers."""
        known, count = (self._clocks.block_known, self._clocks.warp_known), self._uncounted
        last, self._last_known, self._uncounted = self._last_known, known, 0
        each = zip(known, last, strict=True)
        return count + sum(2 * len(new) for new, old in each if new is not old)

    def fence(self, lanes: Index, scope: str) -> None:
        """These threads execute a fence."""
        self._begin_epoch(lanes, self._launch.level_of(scope), takes=True)

    def _begin_epoch(self, lanes: Index, level: int, *, takes: bool) -> None:
        """What these threads did so far is handed over by what they write from now on."""
        self.has_fences = True
        block, warp = self._clocks.block_known, self._clocks.warp_known
        ended = self._clocks.advance(lanes).astype(np.int32)
        self._has_told[lanes] = False
        work = partial(self._fence_now, self._small(lanes), ended, block, warp, level, takes)
        self._soon(work, len(lanes) + self._new_numbers())

    def pass_on(self, space: str, step: Step, role: AccessRole, wrote: Value | None) -> None:
        """What these threads take over at a place and hand over there, one after the other.

        `wrote`: which of them did so; None for all, if it is a write.
        """
        if not (self.has_fences or role.releases or self.hands_over):
            return
        self._part(step)
        lanes, top = step.lanes, self._launch.level_of(role.scope)
        writers = lanes if role.writes else lanes[:0]
        if wrote is not None:
            wrote = step.spread(wrote)
            writers = lanes[wrote]
        if role.releases and len(writers):
            self._begin_epoch(writers, top, takes=False)
        if not self.hands_over and not self._any_fenced(writers, top):
            return
        places = step.places
        if isinstance(places, np.ndarray):
            places = places.astype(self._unit_type)
        epochs: Small | None = None
        if len(writers):
            epochs = epochs_of(self._clocks.now[lanes]).astype(np.int32)
            if wrote is not None:
                epochs[~wrote] = -1
        work = partial(self._pass_on_now, space, self._small(lanes), places, epochs, step.site)
        self._has_told[writers] = True
        kept = isinstance(places, np.ndarray) + (epochs is not None)
        self._launch.handover_log.put_off(work, len(lanes) * kept + self._new_numbers())

    def _part(self, step: Step) -> None:
        """Begin an epoch for a strong access behind what a thread told of its others so far."""
        told = step.threads[self._has_told[step.threads]]
        if len(told):
            self._clocks.advance(told)
            self._has_told[told] = False
            step.moment = self._clocks.moment

    def meet_before_barrier(self, lanes: Index) -> None:
        """These threads, all that their blocks have, come to a barrier."""
        if self.has_fences:
            self._soon(partial(self._note_fenced, self._small(lanes)), self._new_numbers())

    def meet_blocks(self, slots: Index) -> None:
        """All threads of these blocks have passed a barrier."""
        if self.hands_over:
            self._soon(partial(self._meet_blocks_now, slots.tolist()), 2 * len(slots))

    def meet_all_warps(self) -> None:
        """All threads of the chunk meet those of their warps."""
        if self.hands_over:
            self._soon(self._meet_all_warps_now, 1)

    def meet(self, keys: Stamps, lanes: Index) -> None:
        """Those of these threads meet that have the same key."""
        if self.hands_over:
            threads = self._clocks.threads[lanes]
            self._soon(partial(self._meet_now, keys, threads), 4 * len(lanes))

    def _any_fenced(self, lanes: Index, top: int) -> bool:
        return any((each.ended[lanes] >= 0).any() for each in self.fences[: top + 1])

    # What is done late.

    def _fence_now(
        self, lanes: Small, ended: Small, block: Stamps, warp: Stamps, level: int, takes: bool
    ) -> None:
        for fences in self.fences[: level + 1]:
            self._clocks.end(fences, lanes, ended, block, warp)
        if takes and self._known.anything:
            self._known.fence_all(self._clocks.threads[lanes].tolist(), level)

    def _pass_on_now(
        self, space: str, lanes: Small, places: Units | int, epochs: Small | None, site: int
    ) -> None:
        """What `pass_on` says; `epochs`: those of threads that write."""
        role = self._launch.role(site)
        threads = self._clocks.threads[lanes].tolist()
        for level in range(self._launch.level_of(role.scope), self._launch.lowest_level - 1, -1):
            if epochs is None:
                told = _NOTHING_TOLD * len(threads)
            else:
                told = self._told(self.fences[level], lanes, threads, epochs)
            if not any(told):
                if role.reads and self._known.anything:
                    self._read_now(space, lanes, places, site, level)
                continue
            for thread, unit, known in zip(threads, _numbers(places, lanes), told, strict=True):
                place = self._place(space, unit, thread, level)
                if role.reads:
                    self._known.read(place, thread, level, at_once=role.acquires)
                if known:
                    self._known.write(place, thread, known, level, at_once=role.releases)

    def _read_now(
        self, space: str, lanes: Small, places: Units | int, site: int, level: int
    ) -> None:
        """These threads read and hand over nothing; those that poll one place do so together."""
        threads, at_once = self._clocks.threads[lanes], self._launch.role(site).acquires
        if level == self._launch.levels - 1 and isinstance(places, int):
            place = self._place(space, places, 0, level)
            self._known.read_together(place, threads.tolist(), level, at_once=at_once)
            return
        units = np.asarray(_numbers(places, lanes))
        if not at_once:
            self._read_each(space, threads, units, level, at_once=False)
            return
        polls = self._polls.get((site, level))
        if polls is None:
            polls = self._polls[site, level] = Polls(len(self._clocks.threads))
        new = polls.new(lanes, units, self._known.lengths.every)
        numbers = self._read_each(space, threads[new], units[new], level, at_once=True)
        polls.note(lanes[new], units[new], numbers, self._known.lengths.every)

    def _read_each(
        self, space: str, threads: Stamps, units: Index, level: int, *, at_once: bool
    ) -> list[int]:
        """The numbers of the chains that these threads read."""
        return [
            self._known.read(self._place(space, unit, thread, level), thread, level,
                             at_once=at_once)
            for thread, unit in zip(threads.tolist(), units.tolist(), strict=True)
        ]  # fmt: skip

    def _told(
        self, fences: Fences, lanes: Small, threads: list[int], epochs: Small
    ) -> list[_Known]:
        """What each of these threads hands over by a write in these epochs, if it had a fence.

        Epoch -1 is of one that does not write.
        """
        shift, ended = self._clocks.shift, fences.ended[lanes]
        if not (ended >= 0).any():
            return _NOTHING_TOLD * len(threads)
        columns = (ended, fences.warp[lanes], fences.block[lanes], epochs,
                   self._fenced[self._clocks.slots(lanes)])  # fmt: skip
        return [
            (
                (key_of_thread(thread), epoch + 1),
                (key_of_warp(thread), warp),
                (key_of_block(thread, shift), block),
                # Its atomic and volatile writes are seen by who sees its last one.
                (key_of_strong(thread), strong + 1),
                (key_of_fenced(thread, shift), fenced),
            )
            if epoch >= 0 and strong >= 0
            else ()
            for thread, epoch, warp, block, strong, fenced in zip(
                threads, *(each.tolist() for each in columns), strict=True
            )
        ]

    def _meet_blocks_now(self, slots: list[int]) -> None:
        for slot in slots:
            self._known.meet_block(self._first + slot)

    def _note_fenced(self, lanes: Small) -> None:
        """Threads that meet at a barrier of their blocks may all have had a fence before it."""
        slots = self._clocks.slots(lanes)
        least = np.full(len(self._fenced), np.iinfo(np.int64).max)
        np.minimum.at(least, slots, self.fences[-1].ended[lanes])
        here = np.unique(slots)
        self._fenced[here] = least[here] + 1

    def _meet_all_warps_now(self) -> None:
        threads = self._clocks.threads
        self._meet_now(threads >> WARP_SHIFT, threads)

    def _meet_now(self, keys: Stamps, threads: Stamps) -> None:
        if self._known.anything:
            for key in np.unique(keys).tolist():
                self._known.meet_threads(threads[keys == key].tolist())

    def ended(self, fences: Fences, lane: int) -> tuple[tuple[int, int], ...]:
        """What a thread hands over: up to where it, its warp and its block are over for it."""
        thread = int(self._clocks.threads[lane])
        return (
            (key_of_thread(thread), int(fences.ended[lane]) + 1),
            (key_of_warp(thread), int(fences.warp[lane])),
            (key_of_block(thread, self._clocks.shift), int(fences.block[lane])),
        )

    def _place(self, space: str, unit: int, thread: int, level: int) -> Place:
        # What is handed over within blocks has a place of its own in each, and so in clusters.
        name = space if space == "global" else f"shared {self._first}"
        if level == self._launch.levels - 1:
            return name, unit
        block = thread >> self._clocks.shift
        if level:
            return f"{name} in cluster {block // self._launch.cluster_blocks}", unit
        return f"{name} in {block}", unit


def _numbers(places: Units | int, lanes: Small) -> Sequence[int]:
    if isinstance(places, int):
        return [places] * len(lanes)
    return range(places.start, places.stop) if isinstance(places, slice) else places.tolist()


def _same(one: Index, other: Index) -> bool:
    return one is other or (len(one) == len(other) and bool((one == other).all()))
