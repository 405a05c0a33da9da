"""The programs that are run under compute-sanitizer."""

from __future__ import annotations

from collections import Counter

from campaigns.race_truth.judging import programs
from campaigns.race_truth.program import RIGHT
from campaigns.sanitized.selection import chosen


def test_every_class_of_fault_has_its_share_and_right_ones_are_twins() -> None:
    some = chosen(programs(), 100)
    count = Counter(each.fault for each in some)
    assert len({each.name for each in some}) == 100
    assert count[RIGHT] == 30
    assert {count[fault] for fault in count if fault != RIGHT} == {6, 7}
    assert set(count) == {each.fault for each in programs()}
    assert len({each.pattern for each in some}) > 60
    faulty = {(e.pattern, e.over, e.kind, e.block) for e in some if not e.is_right}
    assert all((e.pattern, e.over, e.kind, e.block) in faulty for e in some if e.is_right)


def test_the_same_ones_are_chosen_again() -> None:
    assert chosen(programs(), 20) == chosen(programs()[::-1], 20)
    assert chosen(programs(), 20) != chosen(programs(), 20, seed=2)
