"""Merging: fibres that wait at the same basic block become one again."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import is_, itemgetter, or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.calls import registers_of
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import OpenCall, Registers
from ptx.emulate.threads.fibre import Fibre, Lineage
from ptx.emulate.threads.rows import LANE, Row

_lane_of = itemgetter(LANE)


def merge(fibres: list[Fibre], live: tuple[int, ...]) -> Fibre:
    """One fibre of all threads of `fibres`, which wait at the same block with the same calls open.

    If they are all parts of one split, only what they wrote since then is copied. Others are joined
    in the order of their lanes.
    """
    if any(fibre.rows is not None for fibre in fibres):
        joined = _merge_rows(fibres)
        if joined is not None:
            return joined
        for fibre in fibres:
            fibre.leave_rows(live)
    split, written = _last_split(fibres)
    if split is not None and split.count == sum(fibre.count for fibre in fibres):
        parts = [_part(*of_fibre, split, live) for of_fibre in zip(fibres, written, strict=True)]
        if None not in parts:
            whole = _restored(split, list(filter(None, parts)), live)
            whole.compact(live)
            return whole
    union = _union(fibres, live)
    if split is not None:
        union.lineage, union.written = split, reduce(or_, written)
    return union


def _merge_rows(fibres: list[Fibre]) -> Fibre | None:
    """One fibre of all, which have rows and the same calls open; None where they have not."""
    first = fibres[0]
    rows: list[Row] = []
    for fibre in fibres:
        if fibre.rows is None or not all(map(is_, fibre.calls, first.calls)):
            return None
        rows += fibre.rows
    rows.sort(key=_lane_of)
    merged = first.with_rows(rows)
    if merged.n == first.blocks.geometry.threads:
        merged.lanes = None
    merged.lineage, written = _last_split(fibres)
    merged.written = reduce(or_, written, 0)
    return merged


def _last_split(fibres: list[Fibre]) -> tuple[Lineage | None, list[int]]:
    """The last split that all fibres are parts of, and the registers that each wrote since then."""
    last = fibres[0].lineage
    if all(fibre.lineage is last for fibre in fibres):
        return last, [fibre.written for fibre in fibres]
    chains = list(map(_splits, fibres))
    for split in chains[0]:
        if all(split in chain for chain in chains):
            return split, [chain[split] for chain in chains]
    return None, []


def _splits(fibre: Fibre) -> dict[Lineage, int]:
    """The splits that a fibre is a part of, the last one first, and what it wrote since each."""
    split, written = fibre.lineage, fibre.written
    found: dict[Lineage, int] = {}
    while split is not None:
        found[split] = written
        written |= split.written
        split = split.parent
    return found


class _Part(NamedTuple):
    """A fibre as a part of a split.

    Attributes:
        written: registers that it wrote since then.
        places: where its threads are in the arrays of that time, as positions or as a mask.
    """

    fibre: Fibre
    written: int
    places: Index | NDArray[np.bool_]

    def put(self, number: int, into: NDArray[Any]) -> None:
        """Write the values of a register to their places."""
        value = self.fibre.regs[number]
        if self.fibre.present is not None:
            np.copyto(into, value, casting="unsafe", where=self.places)
        else:
            into[self.places] = value


def _part(fibre: Fibre, written: int, split: Lineage, live: tuple[int, ...]) -> _Part | None:
    """The fibre as a part of a split; None if the registers of its callers are not those of then.

    Its arrays may still be those of that time, with an element for each thread.
    """
    if len(fibre.calls) != len(split.calls) or not all(map(is_, fibre.calls, split.calls)):
        return None
    if fibre.rest is not None and fibre.lineage is not split:
        fibre.compact(live)  # it may lack what was written between the two splits
    if fibre.present is not None:
        if fibre.lanes is split.lanes and fibre.n == split.n:
            return _Part(fibre, written, fibre.present)
        fibre.compact(live)
    lanes = fibre.lane_numbers()
    if split.lanes is None:
        return _Part(fibre, written, lanes)
    table = fibre.blocks.scratch_index()
    table[split.lanes] = np.arange(split.n, dtype=np.intp)
    return _Part(fibre, written, table.take(lanes))


def _restored(split: Lineage, parts: list[_Part], live: tuple[int, ...]) -> Fibre:
    """The fibre that was split, with what its parts wrote."""
    written = reduce(or_, [part.written for part in parts])
    regs = list(split.regs)
    for number in live:
        if written >> number & 1:
            writers = [part for part in parts if part.written >> number & 1]
            regs[number] = _rewritten(split, number, writers, is_all=len(writers) == len(parts))
    whole = split.whole(parts[0].fibre, regs, written)
    whole.few = min(part.fibre.few for part in parts)
    return whole


def _rewritten(split: Lineage, number: int, writers: list[_Part], *, is_all: bool) -> Value:
    """A register that some of the parts wrote, or all of them."""
    first, old = writers[0].fibre.regs[number], split.regs[number]
    same = first if is_all else old
    if all(_same(same, part.fibre.regs[number]) for part in writers):
        return same
    if not is_all:
        fresh = old.copy() if old.ndim else np.full(split.n, old, dtype=old.dtype)
    else:
        fresh = np.empty(split.n, dtype=first.dtype)
    for part in writers:
        part.put(number, fresh)
    return fresh


def _same(a: Value, b: Value) -> bool:
    if a.ndim or b.ndim:
        return False
    return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())


def _union(fibres: list[Fibre], live: tuple[int, ...]) -> Fibre:
    """A new fibre of several that share no thread, its lanes in ascending order."""
    if len(fibres) == 1:
        return fibres[0]
    for fibre in fibres:
        fibre.compact(live)
    blocks = fibres[0].blocks
    mark = np.zeros(blocks.geometry.threads, dtype=np.bool_)
    for fibre in fibres:
        mark[fibre.lane_numbers()] = True
    lanes: Index | None = mark.nonzero()[0]
    assert lanes is not None
    count = len(lanes)
    positions: list[Index] = []
    if count == blocks.geometry.threads:
        lanes = None
        positions = [fibre.lane_numbers() for fibre in fibres]
    else:
        table = blocks.scratch_index()
        table[lanes] = np.arange(count, dtype=np.intp)
        positions = [table.take(fibre.lane_numbers()) for fibre in fibres]
    regs: Registers = list(fibres[0].regs)
    for number in live:
        regs[number] = _joined([fibre.regs[number] for fibre in fibres], positions, count)
    union = Fibre(fibres[0].scheduler, regs, lanes, count)
    first = fibres[0]
    union.prefix, union.stack_pointer = first.prefix, first.stack_pointer
    union.few = min(fibre.few for fibre in fibres)
    union.calls = _merged_calls(fibres, positions, lanes, count)
    return union


def _joined(values: list[Value], positions: list[Index], count: int) -> Value:
    first = values[0]
    if all(_same(first, value) for value in values[1:]):
        return first
    fresh = np.empty(count, dtype=first.dtype)
    for value, indices in zip(values, positions, strict=True):
        fresh[indices] = value
    return fresh


def _merged_calls(
    fibres: list[Fibre], positions: list[Index], lanes: Index | None, count: int
) -> tuple[OpenCall, ...]:
    """The callers' registers: shared where all fibres share them, else joined lane by lane."""
    merged: list[OpenCall] = []
    for calls in zip(*(fibre.calls for fibre in fibres), strict=True):
        first = calls[0]
        if all(call is first for call in calls):
            merged.append(first)
            continue
        regs: Registers = list(first.registers)
        columns = [registers_of(fibre, call) for fibre, call in zip(fibres, calls, strict=True)]
        for number in first.live:
            regs[number] = _joined([column[number] for column in columns], positions, count)
        merged.append(replace(first, registers=regs, lanes=lanes))
    return tuple(merged)
