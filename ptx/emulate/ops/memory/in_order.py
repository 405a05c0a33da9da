"""Combining values into memory one thread after another, without a loop over threads.

Threads that address one element form a group; within it they act in the order of their positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import Elements
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.memory.combine import Rule, same_bits

_SHORT = 12  # groups up to this long are done thread by thread, all groups at once
_CHAIN = 64  # successful swaps of one element that are done for all elements at once


def at(value: Value, positions: Index) -> Value:
    """The values of some threads; a scalar is everyone's."""
    return value.take(positions) if value.ndim else value


class Groups:
    """Positions 0 to n - 1 arranged by the element they address, longest group first.

    Attributes:
        order: (n,) positions, group by group, ascending within each.
        starts, lengths: of each group within `order`; where: the element of each.
    """

    def __init__(self, index: Index | int, n: int) -> None:
        if not isinstance(index, np.ndarray):
            self.order: Index = np.arange(n, dtype=np.intp)
            self.starts: Index = np.zeros(1, dtype=np.intp)
            self.lengths: Index = np.full(1, n, dtype=np.intp)
            self.where: Index = np.full(1, index, dtype=np.intp)
            return
        bits = max(1, n - 1).bit_length()
        # Sorting one number for element and position is far quicker than a stable argsort.
        keys = (index.astype(np.int64) << np.int64(bits)) | np.arange(n, dtype=np.int64)
        keys.sort()
        order = keys & np.int64((1 << bits) - 1)
        arranged = keys >> np.int64(bits)
        starts = np.flatnonzero(np.concatenate(([True], arranged[1:] != arranged[:-1])))
        lengths = np.diff(starts, append=n)
        by_length = np.argsort(-lengths, kind="stable")
        self.order = order.astype(np.intp, copy=False)
        self.starts = starts[by_length]
        self.lengths = lengths[by_length]
        self.where = arranged[self.starts].astype(np.intp, copy=False)

    @property
    def longest(self) -> int:
        """Length of the longest group."""
        return int(self.lengths[0])

    def longer_than(self, length: int) -> int:
        """How many groups are longer; they are the first ones."""
        return int(np.searchsorted(-self.lengths, -length, side="left"))

    def ranks(self) -> Index:
        """(n,) each position's place within its group."""
        ranks = np.empty(len(self.order), dtype=np.intp)
        ranks[self.order] = np.arange(len(self.order)) - self.spread(self.starts)
        return ranks

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """One value a group, as one value a place of `order`."""
        by_place = np.argsort(self.starts, kind="stable")
        return np.repeat(values[by_place], self.lengths[by_place])

    def members(self, group: int) -> Index:
        """The positions of one group."""
        start = self.starts[group]
        return self.order[start : start + self.lengths[group]]


def combine_in_order(
    elements: Elements, index: Index | int, n: int, rule: Rule, value: Value, other: Value
) -> Elements:
    """Combine each of n threads' values into its element, or one that all share.

    Gives (n,) what each found there before.
    """
    if rule.name == "cas":
        if isinstance(index, np.ndarray):
            return _swaps(elements, index, value, other)
        return _swaps_of_one(elements, index, n, value, other)
    groups = Groups(index, n)
    if rule.wraps:
        return _sums(elements, groups, value)
    if groups.longest > _SHORT:
        if rule.name == "exch":
            return _exchanges(elements, groups, value)
        if rule.name in ("inc", "dec") and not value.ndim:
            return _cycles(elements, groups, rule.name, int(value))
    found = np.empty(n, dtype=elements.dtype)
    turns = groups.longest
    if rule.ufunc is not None and rule.is_plain(elements[groups.where], value):
        turns = min(turns, _SHORT)
    for turn in range(turns):
        count = groups.longer_than(turn)
        positions = groups.order[groups.starts[:count] + turn]
        where = groups.where[:count]
        old = elements[where]
        found[positions] = old
        elements[where] = rule.step(old, at(value, positions), at(other, positions))
    for group in range(groups.longer_than(turns)):
        _accumulate(elements, groups, group, turns, rule, value, found)
    return found


def _accumulate(
    elements: Elements, groups: Groups, group: int, done: int, rule: Rule, value: Value,
    found: Elements,
) -> None:  # fmt: skip
    """One long group, from its place `done` on, in one running sum, minimum…, step by step."""
    assert rule.ufunc is not None
    positions = groups.members(group)[done:]
    where = groups.where[group]
    running = np.empty(len(positions) + 1, dtype=elements.dtype)
    running[0] = elements[where]
    running[1:] = at(value, positions)
    rule.ufunc.accumulate(running, out=running)
    found[positions] = running[:-1]
    elements[where] = running[-1]


def _sums(elements: Elements, groups: Groups, value: Value) -> Elements:
    """Integer additions: a running sum over all groups, less what it was where each begins."""
    n = len(groups.order)
    dtype = elements.dtype
    arranged = np.broadcast_to(value, n) if not value.ndim else value.take(groups.order)
    total = np.cumsum(arranged, dtype=dtype)
    before = total - arranged
    starts = before[groups.starts]
    ends = total[groups.starts + groups.lengths - 1]
    old = elements[groups.where]
    found = np.empty(n, dtype=dtype)
    found[groups.order] = before + groups.spread(old - starts)
    elements[groups.where] = old + (ends - starts)
    return found


def _exchanges(elements: Elements, groups: Groups, value: Value) -> Elements:
    """Each thread gets the value that the one before it wrote."""
    n = len(groups.order)
    arranged = np.full(n, value, elements.dtype) if not value.ndim else value.take(groups.order)
    before = np.empty(n, dtype=elements.dtype)
    before[1:] = arranged[:-1]
    before[groups.starts] = elements[groups.where]
    elements[groups.where] = arranged[groups.starts + groups.lengths - 1]
    found = np.empty_like(before)
    found[groups.order] = before
    return found


def _cycles(elements: Elements, groups: Groups, name: str, bound: int) -> Elements:
    """`inc` and `dec` with one bound for all: after the first step a cycle of bound + 1 values."""
    period = np.uint64(bound + 1)
    old = elements[groups.where].astype(np.uint64)
    outside = old > np.uint64(bound)

    def after(first: NDArray[np.uint64], out: NDArray[np.bool_], steps: Index) -> Elements:
        """The element's value after so many steps."""
        taken = steps.astype(np.uint64)
        # From outside, the first step leads to the start of the cycle.
        start = np.where(out, np.uint64(0 if name == "inc" else bound), first)
        taken = taken - (out & (steps > 0))
        moved = taken % period
        inside = start + moved if name == "inc" else start + period - moved
        return np.where(out & (steps == 0), first, inside % period).astype(np.uint32)

    ranks = groups.ranks()
    order = groups.order
    found = np.empty(len(order), dtype=np.uint32)
    found[order] = after(groups.spread(old), groups.spread(outside), ranks[order])
    elements[groups.where] = after(old, outside, groups.lengths)
    return found


def _swaps_of_one(elements: Elements, place: int, n: int, wanted: Value, value: Value) -> Elements:
    """Compare-and-swap on one element: between two that succeed, all find the same."""
    found = np.empty(n, dtype=elements.dtype)
    matches = np.broadcast_to(wanted, n)
    start = 0
    while start < n:
        current = elements[place]
        found[start:] = current
        hits = same_bits(matches[start:], current)
        first = int(hits.argmax())
        if not hits[first]:
            break
        start += first + 1
        elements[place] = value[start - 1] if value.ndim else value
    return found


def _swaps(elements: Elements, index: Index, wanted: Value, value: Value) -> Elements:
    """Compare-and-swap: between two that succeed, all find the same.

    Each turn does the next success of every element; those that are left after many turns are done
    one by one.
    """
    n = len(index)
    found = elements[index]
    positions = np.arange(n, dtype=np.intp)
    for _ in range(_CHAIN):
        current = elements[index[positions]]
        found[positions] = current
        hits = positions[same_bits(current, at(wanted, positions))]
        if not len(hits):
            return found
        where, first = np.unique(index[hits], return_index=True)
        winners = hits[first]
        elements[where] = at(value, winners)
        positions = _behind(index, positions, where, winners)
    for position in positions:
        place = index[position]
        found[position] = elements[place]
        if same_bits(found[position], wanted[position] if wanted.ndim else wanted):
            elements[place] = value[position] if value.ndim else value
    return found


def _behind(index: Index, positions: Index, where: Index, winners: Index) -> Index:
    """The positions that come after the winner of their element."""
    place = np.minimum(np.searchsorted(where, index[positions]), len(where) - 1)
    has_winner = where[place] == index[positions]
    found: Index = positions[has_winner & (positions > winners[place])]
    return found
