"""Which programs of the ground truth are taken: as many of each class of fault, and right twins."""

from __future__ import annotations

import random
from collections.abc import Iterable

from campaigns.race_truth.program import Program

_RIGHT_SHARE = 0.3


def chosen(every: Iterable[Program], count: int, seed: int = 1) -> list[Program]:
    """The same ones for the same seed: patterns that none was taken of come first.

    Three in ten are right, and twins of faulty ones that were taken.
    """
    mixed = sorted(every, key=lambda each: each.name)
    random.Random(seed).shuffle(mixed)
    right = {_twins(each): each for each in mixed if each.is_right}
    by_fault: dict[str, list[Program]] = {}
    for each in mixed:
        if not each.is_right:
            by_fault.setdefault(each.fault, []).append(each)
    faulty = _in_turn(
        [by_fault[fault] for fault in sorted(by_fault)], round(count * (1 - _RIGHT_SHARE))
    )
    twins = list(dict.fromkeys(right[_twins(each)] for each in faulty))
    return [*faulty, *_in_turn([twins], count - len(faulty))]


def _twins(program: Program) -> tuple[str, str, str, int]:
    return program.pattern, program.over, program.kind, program.block


def _in_turn(classes: list[list[Program]], count: int) -> list[Program]:
    """One of each class, again and again, of the pattern that the fewest were taken of."""
    left = [list(each) for each in classes]
    taken: list[Program] = []
    uses: dict[str, int] = {}
    while len(taken) < count and any(left):
        for some in left:
            if some and len(taken) < count:
                best = min(some, key=lambda each: uses.get(each.pattern, 0))
                some.remove(best)
                uses[best.pattern] = uses.get(best.pattern, 0) + 1
                taken.append(best)
    return taken
