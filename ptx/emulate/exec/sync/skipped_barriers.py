"""Detection of threads that go around a barrier, or an instruction of a warp, while others wait.

Barriers do not wait for exited threads (PTX ISA, "barrier"), so a GPU continues. CUDA, however,
requires that a condition around `__syncthreads()` be the same for all threads of the block (CUDA
Programming Guide, "Synchronization Functions"). It also requires that all threads which a mask
names execute the instruction, unless they have exited.

A thread may therefore return early. It may not go around the instruction to code that the others
reach after it.

For each such instruction there is a first block after it that threads can reach without it. The
emulator counts each thread's visits there, minus its executions of the instruction. A meeting with
threads that executed it, at another barrier, counts as an execution: warps may meet from the
branches of an if.

A waiting thread has a count one less than a thread that has just continued, and two less than a
thread that went around the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.kernel_code import BlockFunction, KernelCode
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.threads import Registers
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.instruction_facts import InstructionKind

_ENDS: Final = (InstructionKind.RETURN, InstructionKind.EXIT)
_WENT_AROUND: Final = 2


class SkippedBarriers:
    """The visits of a chunk's threads to the code after each instruction where they meet."""

    def __init__(self, code: KernelCode, threads: int) -> None:
        self._code = code
        self._visits: dict[int, NDArray[np.int32]] = {}
        self._around: dict[int, list[int]] = {}
        for meeting, next_around in _meetings(code).items():
            self._visits[meeting] = np.zeros(threads, dtype=np.int32)
            self._around.setdefault(next_around, []).append(meeting)

    def __getitem__(self, block: int) -> BlockFunction:
        """Return the function of a block, which also counts the visits of threads."""
        if block not in self._around:
            return self._code.blocks[block]

        def count_and_run(fibre: Fibre, registers: Registers) -> int:
            if not fibre.released:  # else it has been here, and waited
                lanes = fibre.lane_numbers()
                present_lanes = lanes if fibre.present is None else lanes[fibre.present]
                for meeting in self._around[block]:
                    self._add(meeting, present_lanes, 1)
            return self._code.blocks[block](fibre, registers)

        return count_and_run

    def arrive(self, meeting: int, lanes: Index) -> None:
        """Count that these threads execute the instruction of a block, or meet threads that do."""
        if meeting in self._visits:
            self._add(meeting, lanes, -1)

    def _add(self, meeting: int, lanes: Index, count: int) -> None:
        visits = self._visits[meeting]
        if len(lanes) == len(visits):  # several times as fast
            visits += count
        else:
            visits[lanes] += count

    def threads_that_skipped(self, meeting: int, waiting: Index, candidates: Index) -> Index:
        """Return which of some other threads went around an instruction at which these wait."""
        visits = self._visits.get(meeting)
        if visits is None or not len(waiting):
            return candidates[:0]
        return candidates[visits[candidates] >= int(np.min(visits[waiting])) + _WENT_AROUND]


def _meetings(code: KernelCode) -> dict[int, int]:
    """Return for each block where threads meet the first one reachable around it."""
    following = _following(code.successors)
    next_around: dict[int, int] = {}
    for block, (first, last) in enumerate(zip(code.first, code.last, strict=True)):
        if not any(
            instruction is not None and instruction.facts.is_meeting
            for instruction in (first, last)
        ):
            continue
        reachable = _reached(code, max(f.entry for f in code.functions if f.entry <= block), block)
        candidate = following[block]
        while candidate >= 0 and candidate not in reachable:
            candidate = following[candidate]
        if candidate >= 0 and not _is_end(code, candidate):
            next_around[block] = candidate
    return next_around


def _is_end(code: KernelCode, block: int) -> bool:
    """Return whether a block only ends the thread, or may repeat, so that it cannot count."""
    first, last = code.first[block], code.last[block]
    if first is None:
        return False
    kind = first.facts.kind
    return (first is last and kind in _ENDS) or kind is InstructionKind.MBARRIER


def _reached(code: KernelCode, entry: int, excluded: int) -> set[int]:
    """The blocks that control may come to from an entry, without going through a block."""
    reached = {excluded}
    waiting = [entry]
    while waiting:
        block = waiting.pop()
        if block not in reached:
            reached.add(block)
            waiting += code.successors[block]
    return reached - {excluded}


def _following(successors: Sequence[tuple[int, ...]]) -> list[int]:
    """Return for each block the next one that control reaches in any case; -1 if there is none.

    Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", from the end.
    """
    end = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(end + 1)]
    for block, targets in enumerate(successors):
        for target in targets or (end,):
            predecessors[target].append(block)
    order, number = _postorder(predecessors, end)
    next_of = {end: end}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            reached = [
                successor for successor in successors[block] or (end,) if successor in next_of
            ]
            common = reached[0]
            for meeting_block in reached[1:]:
                while common != meeting_block:
                    while number[common] < number[meeting_block]:
                        common = next_of[common]
                    while number[meeting_block] < number[common]:
                        meeting_block = next_of[meeting_block]
            if next_of.get(block) != common:
                next_of[block] = common
                changed = True
    return [-1 if next_of.get(block, end) == end else next_of[block] for block in range(end)]


def _postorder(edges: Sequence[Sequence[int]], root: int) -> tuple[list[int], dict[int, int]]:
    """Return the nodes reachable from a root in postorder, and their numbers."""
    order: list[int] = []
    visited = {root}
    stack = [(root, iter(edges[root]))]
    while stack:
        node, successors = stack[-1]
        for successor in successors:
            if successor not in visited:
                visited.add(successor)
                stack.append((successor, iter(edges[successor])))
                break
        else:
            stack.pop()
            order.append(node)
    return order, {node: number for number, node in enumerate(order)}
