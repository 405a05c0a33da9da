"""Runs basic blocks for fibres of few threads, each with its own row of registers.

A fibre changes to rows at code that few threads executed often. It changes back at other code, when
it meets others and becomes wide, and when an operation needs all of its registers.
"""

from __future__ import annotations

from typing import Final

from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.lane.lane_code import GOES_ON, LaneCode, LanePart, Loop, Part, VectorPart
from ptx.emulate.exec.lane.lane_memory import Elsewhere, LaneMemory
from ptx.emulate.model.threads import Registers
from ptx.emulate.threads.fibre import Fibre, RunQueue
from ptx.emulate.threads.limits import FewThreads
from ptx.emulate.threads.rows import Row, column, is_held, value_of

_ROOM: Final = 4096  # blocks that a thread executes in a loop before others have their turn


def lane_runner(queue: RunQueue, code: KernelCode) -> LaneRunner | None:
    """Return the runner for fibres of few threads; None where observers follow the threads."""
    blocks, lanes, few = queue.blocks, code.lanes, queue.blocks.launch.limits.few_threads
    if lanes is None or blocks.observers or not few.most:
        return None
    return LaneRunner(queue, code, lanes, few)


class LaneRunner:
    """The fibres of few threads of one chunk.

    Attributes:
        most: threads of a fibre that is one of few.
        memory: the memories that code of single threads accesses, made when first used.
    """

    def __init__(self, queue: RunQueue, code: KernelCode, lanes: LaneCode, few: FewThreads) -> None:
        self._queue = queue
        self._code = code
        self._lanes = lanes
        self._few = few
        self._most = self._few.most
        self._are_apart = False
        self.most: int = self._few.most_in_loop
        self.memory: LaneMemory | None = None
        if lanes.are_apart:
            self.are_apart()

    def are_apart(self) -> None:
        """Raise the limit of threads that count as few, because the threads diverge.

        If results cannot depend on which of them runs first, each runs alone as far as it can.
        """
        if self._are_apart or self._lanes.shows_order():
            return
        self._are_apart = self._lanes.are_apart = True
        self.most = max(self.most, self._few.most_apart)
        self._most = self.most

    def run(self, fibre: Fibre, block: int, steps_left: int) -> int:
        """Execute a block for a fibre; return the next block, as a block's own function does.

        Execute more blocks, up to `steps_left`, if they are a loop and no fibre waits before its
        end.
        """
        rows = fibre.rows
        if rows is None or len(rows) > self._most or self._few.switches is not None:
            rows = self._formed(fibre, block)
            if rows is None:
                return self._code.blocks[block](fibre, fibre.regs)
        lanes, alone = self._lanes, len(rows) == 1
        parts = (lanes.alone if alone else lanes.together).get(block)
        if parts is None and not self._is_hot(block, alone=alone):
            fibre.leave_rows(self._code.live[block])
            return self._code.blocks[block](fibre, fibre.regs)
        if self._are_apart:
            loop = lanes.loop(block, alone=False, apart=True)
            if loop is not None and steps_left:
                return self._run_loop(fibre, rows, loop, block, max(_ROOM, len(loop.blocks)))
        else:
            loop = lanes.loop(block, alone=alone, apart=alone)
            if loop is not None and steps_left >= len(loop.blocks) and self._is_free(fibre, loop):
                return self._run_loop(fibre, rows, loop, block, steps_left)
        if parts is None:
            parts = lanes.parts(block, alone=alone)
        return (
            self._run_alone(fibre, rows[0], parts)
            if alone
            else self._run_together(fibre, rows, parts)
        )

    def _is_free(self, fibre: Fibre, loop: Loop) -> bool:
        """Return whether no fibre waits for its turn before the end of a loop."""
        next_key = self._queue.next_place
        return next_key is None or next_key > (*fibre.prefix, loop.last)

    def _run_loop(self, fibre: Fibre, rows: list[Row], loop: Loop, block: int, budget: int) -> int:
        """Run each thread through a loop until it leaves the loop."""
        following: list[int] = []
        fibre.written |= loop.defined
        try:
            steps_left = loop.function(fibre, rows, following, block, budget)
        except Elsewhere:
            return self._stopped(fibre, rows, following, block)
        if self._are_apart:  # as one turn, lest the others seem to have waited for too long
            self._queue.work += budget - steps_left - 1
        else:
            self._queue.steps += budget - steps_left - 1
        return self._split(fibre, following)

    def _stopped(self, fibre: Fibre, rows: list[Row], following: list[int], block: int) -> int:
        """Execute the next block of a loop together for the threads that have not finished it."""
        finished = len(following)
        if finished:
            for part, to in zip(rows[:finished], following, strict=True):
                self._queue.wait(fibre.with_rows([part]), to)
            remaining = fibre.with_rows(rows[finished:])
            self._queue.successor = remaining
            fibre, rows = remaining, rows[finished:]
        alone = len(rows) == 1
        parts = self._lanes.parts(block, alone=alone)
        if alone:
            return self._run_alone(fibre, rows[0], parts)
        return self._run_together(fibre, rows, parts)

    def _formed(self, fibre: Fibre, block: int) -> list[Row] | None:
        """The rows that a fibre is to have at a block."""
        switches = self._few.switches
        if fibre.count > self._most_at(block) or (switches is not None and switches()):
            fibre.leave_rows(self._code.live[block])
            fibre.few = 0
        elif fibre.rows is None:
            fibre.few += 1
            is_hot = self._is_hot(block, alone=fibre.count == 1)
            if is_hot and fibre.few > self._few.settled and self._may_have_rows(fibre):
                fibre.enter_rows(self._code.live[block])
                if self.memory is None:
                    self.memory = LaneMemory(self._queue.blocks)
        return fibre.rows

    def _most_at(self, block: int) -> int:
        """Return the most threads that count as few at a block."""
        if self._are_apart:
            return self.most
        return self.most if self._lanes.loops.get((block, False, False)) else self._most

    def _may_have_rows(self, fibre: Fibre) -> bool:
        function = fibre.calls[-1].function if fibre.calls else 0
        are_held = self._lanes.held.get(function)
        if are_held is None:
            are_held = self._lanes.held[function] = all(map(is_held, fibre.register_types))
        return are_held

    def _is_hot(self, block: int, *, alone: bool) -> bool:
        """Return whether few threads came here often enough to justify code of their own."""
        heat = self._lanes.heat
        key = (block, alone)
        count = heat[key] = heat.get(key, 0) + 1
        return count > self._few.heat

    def _run_alone(self, fibre: Fibre, row: Row, parts: tuple[Part, ...]) -> int:
        following = GOES_ON
        for part in parts:
            if isinstance(part, LanePart):
                following = part.function(fibre, row)
            else:
                following = self._run_vector(fibre, part)
            if following != GOES_ON:
                return following
        return following

    def _run_together(self, fibre: Fibre, rows: list[Row], parts: tuple[Part, ...]) -> int:
        following: int | list[int] = GOES_ON
        for part in parts:
            if isinstance(part, LanePart):
                following = self._run_part(fibre, rows, part)
            else:
                following = self._run_vector(fibre, part)
            if following != GOES_ON:
                break
        return following if isinstance(following, int) else self._split(fibre, following)

    def _run_part(self, fibre: Fibre, rows: list[Row], part: LanePart) -> int | list[int]:
        undo_values = [[row[number] for number in part.undo] for row in rows]
        try:
            following_blocks: int | list[int] = part.function(fibre, rows)
            return following_blocks
        except Elsewhere:
            for row, values in zip(rows, undo_values, strict=True):
                row.update(zip(part.undo, values, strict=True))
        following: int | list[int] = GOES_ON
        for piece in part.instead():
            if isinstance(piece, LanePart):
                following = piece.function(fibre, rows)
            else:
                following = self._run_vector(fibre, piece)
                same = {id(site.instruction): site for site in piece.sites}
                for site in part.sites:
                    site.bounds = same[id(site.instruction)].bounds
                    if fibre.blocks.accesses is None:
                        site.open_window()
        return following

    def _run_vector(self, fibre: Fibre, part: VectorPart) -> int:
        """Execute instructions with NumPy."""
        if part.needs is not None and (fibre.calls or not part.returns):
            fibre.leave_rows(part.needs)
            return part.function(fibre, fibre.regs)
        rows = fibre.rows
        assert rows is not None
        if not (part.reads or part.writes):
            return part.function(fibre, [])
        dtypes = fibre.register_types
        regs: Registers = [None] * len(dtypes)
        for number in part.reads:
            regs[number] = value_of([row[number] for row in rows], dtypes[number])
        following = part.function(fibre, regs)
        for number in part.writes:
            register_value = regs[number]
            if register_value is not None:  # else a wait brings it, which has given it no value yet
                for row, value in zip(rows, column(register_value, len(rows)), strict=True):
                    row[number] = value
        return following

    def _split(self, fibre: Fibre, following: list[int]) -> int:
        """A branch: the threads that go to the smallest block run on, the others wait."""
        least = min(following)
        if following.count(least) == len(following):
            return least
        groups: dict[int, list[Row]] = {}
        assert fibre.rows is not None
        for row, block in zip(fibre.rows, following, strict=True):
            groups.setdefault(block, []).append(row)
        for block, rows in groups.items():
            part = fibre.with_rows(rows)
            if block == least:
                self._queue.successor = part
            else:
                self._queue.wait(part, block)
        return least
