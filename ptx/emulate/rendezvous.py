"""Where threads of several fibres meet: block barriers, and the lanes of a warp.

A fibre that holds all threads of the chunk that are still alive passes at once. Any other is
parked; when nothing else can run, everything that is complete by then is released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.errors import BarrierDivergence, Deadlock
from ptx.emulate.fibre import GONE, Fibre
from ptx.emulate.geometry import WARP, Value
from ptx.emulate.merge import merge

if TYPE_CHECKING:
    from ptx.emulate.chunk import Chunk

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]


@dataclass(slots=True)
class _AtBarrier:
    """A fibre that waits at a block barrier and goes on at `block`."""

    fibre: Fibre
    block: int


@dataclass(slots=True)
class _AtWarp:
    """A fibre that waits for lanes of its warps; its block is executed again when they are there.

    `mask` names the lanes it waits for, `key` what it executes, `values` what it brings.
    """

    fibre: Fibre
    block: int
    mask: Value
    key: str
    values: dict[str, Value]


class Rendezvous:
    """The threads of one chunk that wait for each other."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._barriers: dict[int, list[_AtBarrier]] = {}
        self._arrived: dict[int, Counts] = {}
        self._expected: dict[int, Counts] = {}
        self._warps: list[_AtWarp] = []

    # Called by generated code.

    def barrier(self, fibre: Fibre, which: Value, threads: Value | None, block: int) -> int:
        """`barrier.sync`: `block` where the fibre goes on at once, GONE where it waits.

        `threads` are expected at barrier `which`, all that have not exited if None.
        """
        chunk = self._chunk
        parts = self._alike(fibre, which, threads, chunk.code.live[block])
        if len(parts) > 1:
            for part, one, expected in parts:
                if self.barrier(part, one, expected, block) != GONE:
                    chunk.wait(part, block)
            return GONE
        number, count = int(parts[0][1]), None if threads is None else int(parts[0][2])
        everyone = fibre.count == chunk.alive and number not in self._arrived
        strict = chunk.launch.limits.strict_barriers and chunk.alive < chunk.geometry.threads
        if everyone and not strict and count in (None, chunk.geometry.threads_per_block):
            return block
        self._barriers.setdefault(number, []).append(_AtBarrier(fibre, block))
        self._expect(fibre, number, count)
        return GONE

    def arrive(self, fibre: Fibre, which: Value, threads: Value | None) -> None:
        """`barrier.arrive`: count the threads without waiting."""
        parts = self._alike(fibre, which, threads, ())
        if len(parts) > 1:
            for part, one, expected in parts:
                self.arrive(part, one, expected)
            return
        number, count = int(parts[0][1]), None if threads is None else int(parts[0][2])
        arrived = self._arrived.setdefault(
            number, np.zeros(self._chunk.geometry.blocks, dtype=np.int64)
        )
        arrived += self._by_block(fibre)
        self._expect(fibre, number, count)

    def meets(
        self, fibre: Fibre, mask: Value, block: int, key: str, values: dict[str, Value]
    ) -> bool:
        """Whether all lanes that `mask` names are here; otherwise the fibre is parked.

        Lanes that execute `key` at another place meet as well; after the release, what they
        brought is in `fibre.exchange`.
        """
        if fibre.released:
            fibre.released = False
            return True
        fibre.exchange = None
        if fibre.count == self._chunk.alive or self._complete_warps(fibre, mask):
            return True
        self._warps.append(_AtWarp(fibre, block, mask, key, values))
        return False

    # Called by the scheduler.

    @property
    def anyone(self) -> bool:
        """Whether a fibre is parked here."""
        return bool(self._barriers or self._warps)

    def resolve(self) -> bool:
        """Release what is complete; whether anything was.

        Raises:
            Deadlock: threads wait and nothing is left that runs or is complete.
        """
        released = False
        for number in list(self._barriers):
            released |= self._resolve_barrier(number)
        released |= self._resolve_warps()
        if not released and not self._chunk.has_runnable and (self._barriers or self._warps):
            raise self._deadlock()
        return released

    @staticmethod
    def _alike(
        fibre: Fibre, which: Value, threads: Value | None, live: tuple[int, ...]
    ) -> list[tuple[Fibre, Value, Value]]:
        """The fibre in parts that name one barrier and one number of threads each."""
        expected = np.uint32(0) if threads is None else threads
        if which.ndim == 0 and expected.ndim == 0:
            return [(fibre, which, expected)]
        pairs = np.stack(np.broadcast_arrays(which, expected), axis=1)
        kinds, place = np.unique(pairs, axis=0, return_inverse=True)
        if len(kinds) == 1:
            return [(fibre, kinds[0, 0], kinds[0, 1])]
        return [
            (
                fibre.subset((place.reshape(-1) == at).nonzero()[0], live),
                one,
                None if threads is None else count,
            )
            for at, (one, count) in enumerate(kinds)
        ]

    def _by_block(self, fibre: Fibre) -> Counts:
        slots = fibre.place("slot")
        return np.bincount(np.asarray(slots), minlength=self._chunk.geometry.blocks)

    def _expect(self, fibre: Fibre, number: int, count: int | None) -> None:
        if count is None:
            return
        expected = self._expected.setdefault(
            number, np.zeros(self._chunk.geometry.blocks, dtype=np.int64)
        )
        expected[np.asarray(fibre.place("slot"))] = count

    def _all_threads(self) -> Counts:
        """Threads of each block that a barrier without a count waits for."""
        geometry = self._chunk.geometry
        threads = np.full(geometry.blocks, geometry.threads_per_block, dtype=np.int64)
        if not self._chunk.launch.limits.strict_barriers:
            for lanes in self._chunk.exited:
                threads -= np.bincount(
                    lanes // geometry.threads_per_block, minlength=geometry.blocks
                )
        return threads

    def _resolve_barrier(self, number: int) -> bool:
        waiting = self._barriers[number]
        blocks = self._chunk.geometry.blocks
        arrived = self._arrived.get(number, np.zeros(blocks, dtype=np.int64)).copy()
        for entry in waiting:
            arrived += self._by_block(entry.fibre)
        expected = self._all_threads()
        counts = self._expected.get(number)
        if counts is not None:
            expected = np.where(counts > 0, counts, expected)
        complete: Bools = (arrived >= expected) & (arrived > 0)
        if not complete.any():
            return False
        del self._barriers[number]
        for entry in waiting:
            go, stay = self._divide(entry.fibre, entry.block, complete)
            if go is not None:
                self._chunk.wait(go, entry.block)
            if stay is not None:
                self._barriers.setdefault(number, []).append(_AtBarrier(stay, entry.block))
        if number in self._arrived:
            self._arrived[number][complete] = 0
            if not self._arrived[number].any():
                del self._arrived[number]
        if counts is not None:
            counts[complete] = 0
        return True

    def _divide(
        self, fibre: Fibre, block: int, complete: Bools
    ) -> tuple[Fibre | None, Fibre | None]:
        """The threads whose thread block is complete, and the others."""
        return self._select(fibre, block, complete.take(np.asarray(fibre.place("slot"))))

    def _select(self, fibre: Fibre, block: int, chosen: Bools) -> tuple[Fibre | None, Fibre | None]:
        if chosen.all():
            return fibre, None
        if not chosen.any():
            return None, fibre
        live = self._chunk.code.live[block]
        return (
            fibre.subset(chosen.nonzero()[0], live),
            fibre.subset((~chosen).nonzero()[0], live),
        )

    def _lane_bits(self, lane_lists: list[NDArray[np.intp]]) -> NDArray[np.uint32]:
        """(warps,) which lanes of each warp are in the lists."""
        geometry = self._chunk.geometry
        here = np.zeros(geometry.warps_per_block * geometry.blocks * WARP, dtype=np.bool_)
        slots = geometry.index("warp_slot")
        for lanes in lane_lists:
            here[slots.take(lanes)] = True
        return np.packbits(here, bitorder="little").view(np.uint32)

    def _complete_warps(self, fibre: Fibre, mask: Value) -> bool:
        missing = self._missing(fibre, mask, self._lane_bits([fibre.lane_numbers()]))
        return not missing.any()

    def _missing(self, fibre: Fibre, mask: Value, here: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """(n,) for each thread, the lanes it waits for that are neither here nor exited."""
        gone = self._lane_bits(self._chunk.exited)
        warps = np.asarray(fibre.place("warp_slot")) // WARP
        return np.asarray(mask, dtype=np.uint32) & ~(here | gone).take(warps)

    def _resolve_warps(self) -> bool:
        entries, self._warps = self._warps, []
        released = False
        for key in dict.fromkeys(entry.key for entry in entries):
            group = [entry for entry in entries if entry.key == key]
            here = self._lane_bits([entry.fibre.lane_numbers() for entry in group])
            ready: list[_AtWarp] = []
            for entry in group:
                missing = self._missing(entry.fibre, entry.mask, here)
                go, stay = self._select(entry.fibre, entry.block, missing == 0)
                for fibre, into in ((go, ready), (stay, self._warps)):
                    if fibre is not None:
                        into.append(self._narrowed(entry, fibre))
            if ready:
                released = True
                self._release(ready)
        return released

    @staticmethod
    def _narrowed(entry: _AtWarp, fibre: Fibre) -> _AtWarp:
        """The entry for some of its threads."""
        if fibre is entry.fibre:
            return entry
        lanes, all_lanes = fibre.lane_numbers(), entry.fibre.lane_numbers()
        where = np.searchsorted(all_lanes, lanes)

        def part(value: Value) -> Value:
            return value.take(where) if value.ndim else value

        values = {name: part(value) for name, value in entry.values.items()}
        return _AtWarp(fibre, entry.block, part(entry.mask), entry.key, values)

    def _release(self, ready: list[_AtWarp]) -> None:
        """Let complete warps execute their instruction, from each place where lanes wait."""
        chunk = self._chunk
        exchange: dict[str, Value] | None = None
        places = dict.fromkeys((*entry.fibre.prefix, entry.block) for entry in ready)
        if len(places) > 1:
            exchange = self._exchange(ready)
        for place in places:
            fibres = [e.fibre for e in ready if (*e.fibre.prefix, e.block) == place]
            fibre = fibres[0] if len(fibres) == 1 else merge(fibres, chunk.code.live[place[-1]])
            fibre.released = True
            fibre.exchange = exchange
            chunk.run_one(fibre, place[-1])

    def _exchange(self, ready: list[_AtWarp]) -> dict[str, Value]:
        """For each value, (threads of the chunk,) what every released lane brought."""
        found: dict[str, Value] = {}
        for name, value in ready[0].values.items():
            table = np.zeros(self._chunk.geometry.threads, dtype=value.dtype)
            for entry in ready:
                table[entry.fibre.lane_numbers()] = entry.values[name]
            found[name] = table
        here = np.zeros(self._chunk.geometry.threads, dtype=np.bool_)
        for entry in ready:
            here[entry.fibre.lane_numbers()] = True
        found["here"] = here
        return found

    def _deadlock(self) -> Deadlock:
        chunk = self._chunk
        for number, waiting in self._barriers.items():
            fibre = waiting[0].fibre
            where = chunk.launch.where_of_block(chunk, fibre, waiting[0].block - 1, last=True)
            count = sum(entry.fibre.count for entry in waiting)
            return BarrierDivergence(
                f"{count} threads wait at barrier {number} for threads that will never reach it:"
                f" {self._whereabouts()}",
                where,
            )
        entry = self._warps[0]
        missing = self._missing(entry.fibre, entry.mask, self._lane_bits([]))
        where = chunk.launch.where_of_block(chunk, entry.fibre, entry.block)
        return Deadlock(
            f"a warp instruction waits for lanes {int(np.max(missing)):#010x}, and some will never"
            f" execute it: {self._whereabouts()}",
            where,
        )

    def _whereabouts(self) -> str:
        parts = [
            f"{sum(entry.fibre.count for entry in waiting)} at barrier {number}"
            for number, waiting in self._barriers.items()
        ]
        if self._warps:
            count = sum(entry.fibre.count for entry in self._warps)
            parts.append(f"{count} at warp instructions")
        exited = sum(len(lanes) for lanes in self._chunk.exited)
        return ", ".join([*parts, f"{exited} exited"])
