"""The sixteen barriers of every thread block of a chunk. PTX ISA, "barrier".

A fibre that holds all threads of the chunk that are alive passes a barrier for all at once. Any
other waits; barriers that are complete release their threads when nothing else can run, or
before the first thread of their next phase arrives.

An aligned barrier, such as `bar.sync`, must be executed by all threads of a warp at one place; what
happens otherwise is undefined. Different warps may come from different places. CUDA requires more
of `__syncthreads`: one instruction for all threads of the block that have not exited.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.merge import merge
from ptx.emulate.exec.sync.skipped_barriers import SkippedBarriers
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import SynchronisationFault
from ptx.emulate.model.geometry import WARP, Geometry, Value
from ptx.emulate.threads.fibre import GONE, Fibre, RunQueue
from ptx.isa.model import Instruction

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]  # (blocks of the chunk,)
Lanes = NDArray[np.intp]
BARRIERS = 16


@dataclass(slots=True)
class BarrierWait:
    """A fibre that waits at a barrier.

    It continues at `block`; with a `flag` it executes that block again, for the reduction.
    """

    fibre: Fibre
    block: int
    instruction: Instruction | None
    flag: Value | None = None


class _ThreadCounts:
    """Counts threads of the blocks of one chunk, as barriers do: whole warps.

    The last thread of a block also counts for the lanes that its warp does not have.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry

    def none(self) -> Counts:
        """No thread of any block."""
        return np.zeros(self._geometry.blocks, dtype=np.int64)

    def of(self, fibre: Fibre, *, padded: bool = True) -> Counts:
        """For how many threads of each block a fibre stands, lanes that are not there included."""
        return self.among(np.broadcast_to(np.asarray(fibre.place("lane")), (fibre.n,)), padded)

    def among(self, lanes: Lanes, padded: bool = True) -> Counts:
        """Return the number of threads in each block among the given ones."""
        geometry = self._geometry
        threads = geometry.threads_per_block
        slots = lanes // threads if geometry.blocks > 1 else np.zeros(len(lanes), dtype=np.intp)
        counts = np.bincount(slots, minlength=geometry.blocks)
        padding = geometry.warps_per_block * WARP - threads
        if padding and padded:
            last = slots[lanes - slots * threads == threads - 1]
            counts += padding * np.bincount(last, minlength=geometry.blocks)
        return counts

    def last_to_come(self, arrivals: list[Lanes], extra: Counts) -> Bools:
        """Return a mask of the threads that came last: each block's excess, in whole warps."""
        geometry = self._geometry
        late = np.zeros(geometry.threads, dtype=np.bool_)
        excess = extra.copy()
        for lanes in reversed(arrivals):
            warps = geometry.index("warp_slot").take(lanes) // WARP
            for warp in np.unique(warps)[::-1]:
                warp_lanes = lanes[warps == warp]
                weights = self.among(warp_lanes)
                if (weights <= excess).all():
                    excess -= weights
                    late[warp_lanes] = True
        return late

    def exited_in_warps_of(self, waiting: Iterable[Lanes], exited: Iterable[Lanes]) -> Counts:
        """(blocks,) the exited threads of those warps that have waiting threads."""
        geometry = self._geometry
        warps: Lanes = geometry.index("warp_slot") // WARP
        has_waiting = np.zeros(geometry.warps_per_block * geometry.blocks, dtype=np.bool_)
        for lanes in waiting:
            has_waiting[warps.take(lanes)] = True
        counts = self.none()
        for lanes in exited:
            counts += self.among(lanes[has_waiting.take(warps.take(lanes))])
        return counts


class _Barrier:
    """One barrier of all blocks: waiting threads, and the numbers of arrived and expected ones."""

    def __init__(self, blocks: int) -> None:
        self.waiting: list[BarrierWait] = []
        self.arrived: Counts = np.zeros(blocks, dtype=np.int64)
        self.expected: Counts = np.zeros(blocks, dtype=np.int64)  # 0: all that are alive
        self.some_went_on: Bools = np.zeros(blocks, dtype=np.bool_)  # arrived without waiting


class BlockBarriers:
    """The barriers that threads of one chunk wait at."""

    def __init__(self, queue: RunQueue, skipped: SkippedBarriers | None) -> None:
        self._queue = queue
        self._skipped = skipped
        self._blocks = queue.blocks
        self._barriers: dict[int, _Barrier] = {}
        self._counts = _ThreadCounts(self._blocks.geometry)
        self._exited: Counts = self._counts.none()
        self._exits_seen = 0
        limits = self._blocks.launch.limits
        strict = limits.strict_barriers or limits.check_synchronisation
        # If true, a fibre of all live threads passes without a report to any check.
        self._is_plain = not strict and not self._blocks.order_observers

    # Called by generated code.

    def sync(self, fibre: Fibre, barriers: Value, threads: Value | None, block: int) -> int:
        """`barrier.sync`: return `block` if the fibre continues at once, GONE if it waits.

        `threads` are expected at these barriers, all that have not exited if None.
        """
        blocks = self._blocks
        queue = self._queue
        is_alone = threads is None and not self._barriers and self._is_plain
        if is_alone and fibre.count == queue.alive and barriers.ndim == 0 and barriers < BARRIERS:
            return block
        parts = self._alike(fibre, barriers, threads, blocks.code.live[block])
        if len(parts) > 1:
            for part, barrier, expected in parts:
                if self.sync(part, barrier, expected, block) != GONE:
                    queue.wait(part, block)
            return GONE
        instruction = blocks.code.last[block - 1]
        number, count = self._checked(parts[0], threads is None, instruction)
        if self._skipped is not None:
            self._skipped.arrive(block - 1, fibre.lane_numbers())
        if self._passes(fibre, number, count):
            for observer in blocks.order_observers:
                observer.pass_block(fibre.lane_numbers())
            return block
        barrier = self._arrives(fibre, number, count, instruction)
        barrier.waiting.append(BarrierWait(fibre, block, instruction))
        return GONE

    def arrive(self, fibre: Fibre, barriers: Value, threads: Value, block: int) -> None:
        """`barrier.arrive`: count the threads of a fibre in `block` without waiting."""
        for part in self._alike(fibre, barriers, threads, ()):
            instruction = self._blocks.code.first[block]
            number, count = self._checked(part, False, instruction)
            # Threads waiting for a complete phase first acquire what was released before it.
            barrier = self._arrives(part[0], number, count, instruction)
            barrier.some_went_on |= self._counts.of(part[0]) > 0
            for observer in self._blocks.order_observers:
                lanes = part[0].lane_numbers()
                slots = self._blocks.geometry.index("slot")[lanes]
                observer.arrive(lanes, f"barrier {number}", slots)

    def reduce(
        self, fibre: Fibre, barriers: Value, threads: Value | None, block: int, flag: Value
    ) -> tuple[Counts, Counts] | None:
        """`barrier.red`: for each thread block, how many flags are true, and how many there are.

        None where the fibre waits; then `block` is executed again when all have arrived.
        """
        if fibre.released:
            fibre.released = False
            results: dict[str, Value] = fibre.exchange or {}
            return results["set"], results["all"]
        blocks = self._blocks
        instruction = blocks.code.first[block]
        for part, barrier, expected in self._alike(
            fibre, barriers, threads, blocks.code.live[block]
        ):
            number, count = self._checked((part, barrier, expected), threads is None, instruction)
            own_flag = flag
            if self._skipped is not None:
                self._skipped.arrive(block, part.lane_numbers())
            if part is not fibre and flag.ndim:
                own_flag = flag.take(np.searchsorted(fibre.lane_numbers(), part.lane_numbers()))
            entry = BarrierWait(part, block, instruction, own_flag)
            if part is fibre and self._passes(part, number, count):
                for observer in blocks.order_observers:
                    observer.pass_block(fibre.lane_numbers())
                return self._votes([entry])
            self._arrives(part, number, count, instruction).waiting.append(entry)
        return None

    # Called by the queue.

    @property
    def waiting(self) -> dict[int, list[BarrierWait]]:
        """The waiting threads, by the barrier's number."""
        return {number: b.waiting for number, b in self._barriers.items() if b.waiting}

    def resolve(self, *, lenient: bool = False) -> bool:
        """Release the threads of complete barriers; whether there were any.

        `lenient`: at a barrier with a count, exited threads of warps that wait have arrived.
        """
        released = [self._resolve(number, lenient=lenient) for number in list(self._barriers)]
        return any(released)

    def missing(self, number: int) -> Counts:
        """Return how many threads of each block a barrier still waits for."""
        barrier = self._barriers[number]
        missing = self._wanted(barrier) - barrier.arrived
        # A last thread that is missing does not miss the lanes that its warp does not have.
        most = np.full_like(missing, self._blocks.geometry.threads_per_block)
        for entry in barrier.waiting:
            most -= self._counts.of(entry.fibre, padded=False)
        return np.where(barrier.arrived > 0, np.clip(missing, 0, most), 0)

    def _passes(self, fibre: Fibre, number: int, count: int | None) -> bool:
        """Return whether the barrier, in every block, waits for no thread outside this fibre."""
        blocks = self._blocks
        queue = self._queue
        everyone = fibre.count == queue.alive and number not in self._barriers
        limits = blocks.launch.limits
        strict = limits.strict_barriers or limits.check_synchronisation
        strict = strict and queue.alive < blocks.geometry.threads
        return everyone and not strict and count in (None, blocks.geometry.warps_per_block * WARP)

    def _arrives(
        self, fibre: Fibre, number: int, count: int | None, instruction: Instruction | None
    ) -> _Barrier:
        """Count the fibre's threads; a phase that is complete ends before the next one begins."""
        blocks = self._blocks.geometry.blocks
        weights = self._counts.of(fibre)
        barrier = self._barriers.setdefault(number, _Barrier(blocks))
        full = (barrier.arrived >= self._wanted(barrier)) & (barrier.arrived > 0)
        if (full & (weights > 0)).any():
            self._resolve(number)
            barrier = self._barriers.setdefault(number, _Barrier(blocks))
        # All must name one count: a GPU waits for one of two, or for ever.
        most = self._blocks.geometry.warps_per_block * WARP
        expected = np.where(barrier.expected > 0, barrier.expected, most)
        wrong = (barrier.arrived > 0) & (weights > 0) & (expected != (count or most))
        if wrong.any():
            raise SynchronisationFault(
                f"barrier {number} with {count or most} threads, where others of the block wait"
                f" for {expected[np.argmax(wrong)]} at it",
                fibre.where(0, instruction),
            )
        barrier.arrived += weights
        if count is not None:
            barrier.expected[weights > 0] = count
        return barrier

    def _wanted(self, barrier: _Barrier) -> Counts:
        """The threads that each block's barrier waits for."""
        blocks = self._blocks
        queue = self._queue
        if not blocks.launch.limits.strict_barriers:
            for lanes in queue.exited[self._exits_seen :]:
                self._exited += self._counts.among(lanes)
            self._exits_seen = len(queue.exited)
        alive = blocks.geometry.warps_per_block * WARP - self._exited
        return np.where(barrier.expected > 0, barrier.expected, alive)

    def _resolve(self, number: int, *, lenient: bool = False) -> bool:
        barrier = self._barriers[number]
        arrived = barrier.arrived
        if lenient and (barrier.expected > 0).any():
            waiting = (entry.fibre.lane_numbers() for entry in barrier.waiting)
            arrived = arrived + self._counts.exited_in_warps_of(waiting, self._queue.exited)
        complete: Bools = (arrived >= self._wanted(barrier)) & (barrier.arrived > 0)
        if not complete.any():
            return False
        # If more have arrived than the barrier expects, the last ones begin its next phase.
        overfull = complete & (barrier.expected > 0) & (barrier.arrived > barrier.expected)
        extra = np.where(overfull, barrier.arrived % np.maximum(barrier.expected, 1), 0)
        released, remaining = self._divide(barrier, complete, extra)
        limits = self._blocks.launch.limits
        _check_warps(released, sync=not limits.divergent_barriers)
        if self._skipped is not None:
            _check_skipped(self._skipped, self._queue, released, barrier.expected == 0)
        if limits.strict_barriers and not barrier.expected[complete].any():
            _check_blocks(released)
        barrier.waiting = remaining
        if self._blocks.order_observers and released:
            self._report_synchronised(number, barrier, released)
        barrier.arrived[complete] = extra[complete]
        barrier.expected[complete & (extra == 0)] = 0
        barrier.some_went_on[complete & (extra == 0)] = False
        if not barrier.arrived.any():
            del self._barriers[number]
        self._release(released)
        return True

    def _divide(
        self, barrier: _Barrier, complete: Bools, extra: Counts
    ) -> tuple[list[BarrierWait], list[BarrierWait]]:
        """Return the waits that end and those that remain, such as the `extra` last ones."""
        late = None
        if extra.any():
            arrivals = [entry.fibre.lane_numbers() for entry in barrier.waiting]
            late = self._counts.last_to_come(arrivals, extra)
        released: list[BarrierWait] = []
        remaining: list[BarrierWait] = []
        for entry in barrier.waiting:
            chosen = complete.take(np.asarray(entry.fibre.place("slot")))
            if late is not None:
                chosen = chosen & ~late.take(entry.fibre.lane_numbers())
            for part, into in ((chosen, released), (~chosen, remaining)):
                part_of_entry = self._part(entry, part)
                if part_of_entry is not None:
                    into.append(part_of_entry)
        return released, remaining

    def _report_synchronised(
        self, number: int, barrier: _Barrier, released: list[BarrierWait]
    ) -> None:
        """Report that threads have met, all of their block or a counted part."""
        lanes = np.concatenate([entry.fibre.lane_numbers() for entry in released])
        slots = self._blocks.geometry.index("slot")[lanes]
        everyone = self._blocks.geometry.warps_per_block * WARP
        part = (barrier.expected > 0) & (barrier.expected < everyone) | barrier.some_went_on
        chosen = part[slots]
        for observer in self._blocks.order_observers:
            if not chosen.all():
                observer.pass_block(lanes[~chosen])
            if chosen.any():
                observer.arrive(lanes[chosen], f"barrier {number}", slots[chosen])
                observer.end_wait(lanes[chosen], f"barrier {number}", slots[chosen])

    def _part(self, entry: BarrierWait, chosen: Bools) -> BarrierWait | None:
        """The entry for some of its threads; None if there are none."""
        if chosen.all():
            return entry
        positions = np.broadcast_to(chosen, (entry.fibre.n,)).nonzero()[0]
        if not len(positions):
            return None
        flag = entry.flag
        if flag is not None and flag.ndim:
            flag = flag.take(positions)
        fibre = entry.fibre.subset(positions, self._blocks.code.live[entry.block])
        return BarrierWait(fibre, entry.block, entry.instruction, flag)

    def _release(self, entries: list[BarrierWait]) -> None:
        blocks = self._blocks
        queue = self._queue
        reducing = [entry for entry in entries if entry.flag is not None]
        votes = self._votes(reducing) if reducing else None
        for key in dict.fromkeys((*e.fibre.prefix, e.block) for e in reducing):
            fibres = [e.fibre for e in reducing if (*e.fibre.prefix, e.block) == key]
            fibre = fibres[0] if len(fibres) == 1 else merge(fibres, blocks.code.live[key[-1]])
            assert votes is not None
            fibre.released = True
            fibre.exchange = {"set": votes[0], "all": votes[1]}
            queue.released.append((fibre, key[-1]))
        for entry in entries:
            if entry.flag is None:
                queue.wait(entry.fibre, entry.block)

    def _votes(self, entries: list[BarrierWait]) -> tuple[Counts, Counts]:
        blocks = self._blocks.geometry.blocks
        true_count, total = (np.zeros(blocks, dtype=np.int64) for _ in range(2))
        for entry in entries:
            slots = np.broadcast_to(np.asarray(entry.fibre.place("slot")), (entry.fibre.n,))
            total += np.bincount(slots, minlength=blocks)
            assert entry.flag is not None
            chosen = slots[np.broadcast_to(entry.flag, slots.shape)]
            true_count += np.bincount(chosen, minlength=blocks)
        return true_count, total

    @staticmethod
    def _alike(
        fibre: Fibre, barriers: Value, threads: Value | None, live: tuple[int, ...]
    ) -> list[tuple[Fibre, Value, Value]]:
        """The fibre divided into parts; each part has one barrier number and one thread count."""
        expected = np.uint32(0) if threads is None else threads
        if barriers.ndim == 0 and expected.ndim == 0:
            return [(fibre, barriers, expected)]
        pairs = np.stack(np.broadcast_arrays(barriers, expected), axis=1)
        kinds, kind_of_thread = np.unique(pairs, axis=0, return_inverse=True)
        if len(kinds) == 1:
            return [(fibre, kinds[0, 0], kinds[0, 1])]
        return [
            (
                fibre.subset((kind_of_thread.reshape(-1) == number).nonzero()[0], live),
                barrier,
                count,
            )
            for number, (barrier, count) in enumerate(kinds)
        ]

    def _checked(
        self, part: tuple[Fibre, Value, Value], everyone: bool, instruction: Instruction | None
    ) -> tuple[int, int | None]:
        """The barrier's number and count, None for all threads.

        Raises:
            SynchronisationFault: a block cannot have such a barrier or count.
        """
        number, count = int(part[1]), int(part[2])
        most = self._blocks.geometry.warps_per_block * WARP
        wrong = ""
        if number >= BARRIERS:
            wrong = f"barrier {number}, but a block has only {BARRIERS}"
        elif not everyone and (count % WARP or not 0 < count <= most):
            wrong = (
                f"barrier {number} with {count} threads: it takes a multiple of {WARP}, and the"
                f" block has {most}"
            )
        if wrong:
            raise SynchronisationFault(wrong, part[0].where(0, instruction))
        return number, None if everyone else count


def _is_aligned(entry: BarrierWait) -> bool:
    instruction = entry.instruction
    assert instruction is not None
    return instruction.opcode == "bar" or "aligned" in instruction.facts.words


def _check_warps(entries: list[BarrierWait], *, sync: bool) -> None:
    """Raise if threads of one warp are at different aligned barriers.

    An H100 lets them pass at `barrier.sync`, which counts only if `sync`, and hangs at a reduction.

    Raises:
        SynchronisationFault: there are such threads.
    """
    chosen = [e for e in entries if _is_aligned(e) and (sync or e.flag is not None)]
    _check(
        chosen,
        "warp_slot",
        WARP,
        "threads of one warp wait at different barriers, PTX lines {}:"
        " an aligned barrier is for all of a warp's threads, and a GPU may hang (PTX ISA,"
        ' "barrier"; Limits.divergent_barriers lets them pass)',
    )


def _check_blocks(entries: list[BarrierWait]) -> None:
    """Raise if threads of one block are at different aligned barriers.

    Raises:
        SynchronisationFault: there are such threads.
    """
    _check(
        [entry for entry in entries if _is_aligned(entry)],
        "slot",
        1,
        "threads of one block wait at different barriers, PTX lines {}: __syncthreads is for all of"
        " a block's threads (Limits.strict_barriers asks for this)",
    )


def _check_skipped(
    skipped: SkippedBarriers, queue: RunQueue, entries: list[BarrierWait], for_all: Bools
) -> None:
    """Raise if other threads of the block went around a barrier.

    Such threads have exited, or wait at another barrier. Only blocks whose barrier is `for_all`
    threads are checked: a barrier with a count is for some.

    Raises:
        SynchronisationFault: there are such threads.
    """
    slots: Index = queue.blocks.geometry.index("slot")
    nobody = np.zeros(0, dtype=np.int64)
    exited = np.concatenate(queue.exited) if queue.exited else nobody
    entries_of: dict[int, list[BarrierWait]] = {}
    for entry in entries:
        entries_of.setdefault(entry.block - (entry.flag is None), []).append(entry)
    lanes = {
        meeting: np.concatenate([entry.fibre.lane_numbers() for entry in group])
        for meeting, group in entries_of.items()
    }
    waiting = {
        meeting: lanes_here[for_all[slots[lanes_here]]] for meeting, lanes_here in lanes.items()
    }
    elsewhere = {
        meeting: np.concatenate(
            [nobody, *(lanes_there for to, lanes_there in waiting.items() if to != meeting)]
        )
        for meeting in waiting
    }
    for meeting, lanes_here in waiting.items():
        first = entries_of[meeting][0]
        for slot in np.unique(slots[lanes_here]):
            for other_lanes, end in (
                (exited, "exited"),
                (elsewhere[meeting], "wait at another one"),
            ):
                other_lanes_of_block = other_lanes[slots[other_lanes] == slot]
                skipping = skipped.threads_that_skipped(
                    meeting, lanes_here[slots[lanes_here] == slot], other_lanes_of_block
                )
                if len(skipping):
                    thread = queue.blocks.thread_of(int(skipping[0]))
                    raise SynchronisationFault(
                        f"{len(skipping)} threads of the block, {thread} the first of them, went"
                        f" around a barrier at which others wait, and {end}: the condition around"
                        " it must be the same for all threads of the block",
                        first.fibre.where(0, first.instruction),
                    )
    for meeting, other_lanes in elsewhere.items():
        skipped.arrive(meeting, other_lanes)  # they have met the threads that wait there


def _check(entries: list[BarrierWait], index_name: str, size: int, words: str) -> None:
    """Raise if two entries have threads of one group: their index divided by `size` is equal."""
    entries_of = {id(entry.instruction): entry for entry in entries}
    if len(entries_of) < 2:
        return
    groups: Index = entries[0].fibre.blocks.geometry.index(index_name) // size
    came_from = np.zeros(int(np.max(groups)) + 1, dtype=np.int64)
    for entry in entries:
        groups_here = groups.take(entry.fibre.lane_numbers())
        instruction_ids = came_from.take(groups_here)
        wrong = (instruction_ids != 0) & (instruction_ids != id(entry.instruction))
        if wrong.any():
            position = int(np.argmax(wrong))
            pair = (entries_of[int(instruction_ids[position])].instruction, entry.instruction)
            lines = " and ".join(
                str(instruction.line) for instruction in pair if instruction is not None
            )
            raise SynchronisationFault(
                words.format(lines), entry.fibre.where(position, entry.instruction)
            )
        came_from[groups_here] = id(entry.instruction)
