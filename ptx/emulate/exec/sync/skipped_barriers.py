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
        self._behind: dict[int, list[int]] = {}
        for meeting, behind in _meetings(code).items():
            self._visits[meeting] = np.zeros(threads, dtype=np.int32)
            self._behind.setdefault(behind, []).append(meeting)

    def __getitem__(self, block: int) -> BlockFunction:
        """Return the function of a block, which also counts the visits of threads."""
        if block not in self._behind:
            return self._code.blocks[block]

        def count_and_run(fibre: Fibre, registers: Registers) -> int:
            if not fibre.released:  # else it has been here, and waited
                lanes = fibre.lane_numbers()
                here = lanes if fibre.present is None else lanes[fibre.present]
                for meeting in self._behind[block]:
                    self._add(meeting, here, 1)
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

    def who_went_around(self, meeting: int, waiting: Index, others: Index) -> Index:
        """Return which of some other threads went around an instruction at which these wait."""
        visits = self._visits.get(meeting)
        if visits is None or not len(waiting):
            return others[:0]
        return others[visits[others] >= int(np.min(visits[waiting])) + _WENT_AROUND]


def _meetings(code: KernelCode) -> dict[int, int]:
    """Return for each block where threads meet the first one reachable around it."""
    following = _following(code.successors)
    found: dict[int, int] = {}
    for block, (first, last) in enumerate(zip(code.first, code.last, strict=True)):
        if not any(each is not None and each.facts.is_meeting for each in (first, last)):
            continue
        without = _reached(code, max(e for e in code.entries if e <= block), block)
        behind = following[block]
        while behind >= 0 and behind not in without:
            behind = following[behind]
        if behind >= 0 and not _is_end(code, behind):
            found[block] = behind
    return found


def _is_end(code: KernelCode, block: int) -> bool:
    """Return whether a block only ends the thread, or may repeat, so that it cannot count."""
    first, last = code.first[block], code.last[block]
    if first is None:
        return False
    kind = first.facts.kind
    return (first is last and kind in _ENDS) or kind is InstructionKind.MBARRIER


def _reached(code: KernelCode, entry: int, without: int) -> set[int]:
    """The blocks that control may come to from an entry, without going through a block."""
    found = {without}
    waiting = [entry]
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += code.successors[block]
    return found - {without}


def _following(successors: Sequence[tuple[int, ...]]) -> list[int]:
    """Return for each block the next one that control reaches in any case; -1 if there is none.

    Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", from the end.
    """
    end = len(successors)
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for block, targets in enumerate(successors):
        for target in targets or (end,):
            before[target].append(block)
    order, number = _postorder(before, end)
    next_of = {end: end}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [each for each in successors[block] or (end,) if each in next_of]
            found = known[0]
            for other in known[1:]:
                while found != other:
                    while number[found] < number[other]:
                        found = next_of[found]
                    while number[other] < number[found]:
                        other = next_of[other]
            if next_of.get(block) != found:
                next_of[block] = found
                changed = True
    return [-1 if next_of.get(block, end) == end else next_of[block] for block in range(end)]


def _postorder(edges: Sequence[Sequence[int]], root: int) -> tuple[list[int], dict[int, int]]:
    """Return the nodes reachable from a root in postorder, and their numbers."""
    order: list[int] = []
    seen = {root}
    stack = [(root, iter(edges[root]))]
    while stack:
        node, rest = stack[-1]
        for each in rest:
            if each not in seen:
                seen.add(each)
                stack.append((each, iter(edges[each])))
                break
        else:
            stack.pop()
            order.append(node)
    return order, {node: at for at, node in enumerate(order)}
