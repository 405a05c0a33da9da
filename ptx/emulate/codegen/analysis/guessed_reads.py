"""Reads of a value that a compare-and-swap checks before anything comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptx.emulate.codegen.analysis.places import Place, Places
from ptx.emulate.codegen.cfg import Block, BlockStep


def guessed_reads(blocks: Sequence[Block]) -> set[int]:
    """The loads of a function, by identity, behind which each way comes to a compare-and-swap.

    It has the same address. The value that was loaded is a guess then: where it is old, the swap
    fails and gives the present one. A load that may decide that there is nothing to swap is none.
    """
    swaps = [step.instruction for block in blocks for step in block.steps if _is_swap(step)]
    if not swaps:
        return set()
    places = Places(blocks)
    swapped = {places.of(each) for each in swaps}
    return {
        id(step.instruction)
        for block in blocks
        for at, step in enumerate(block.steps)
        if step.instruction.opcode == "ld"
        and (place := places.of(step.instruction)) in swapped
        and _is_checked(blocks, block, at + 1, _Swaps(places, place))
    }


class _Swaps:
    """The compare-and-swaps of a place."""

    def __init__(self, places: Places, place: Place | None) -> None:
        self._places = places
        self._place = place

    def any_of(self, steps: Iterable[BlockStep]) -> bool:
        """Whether one of these is one."""
        return any(
            _is_swap(each) and self._places.of(each.instruction) == self._place for each in steps
        )


def _is_checked(blocks: Sequence[Block], block: Block, start: int, swaps: _Swaps) -> bool:
    if swaps.any_of(block.steps[start:]):
        return True
    waiting, known = [block], {block.index}
    while waiting:
        here = waiting.pop()
        following = list(here.successors)
        if not following and here.steps[-1].instruction.opcode != "trap":
            return False  # the function ends, and nothing was swapped
        for each in following:
            if each not in known and not swaps.any_of(blocks[each].steps):
                known.add(each)
                waiting.append(blocks[each])
    return True


def _is_swap(step: BlockStep) -> bool:
    return "cas" in step.instruction.modifiers
