"""Merging: fibres that wait at the same basic block become one again."""

from __future__ import annotations

from dataclasses import replace
from operator import is_, itemgetter

import numpy as np

from ptx.emulate.exec.calls import registers_of
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import OpenCall, Registers
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.rows import LANE, Row

_lane_of = itemgetter(LANE)


def merge(fibres: list[Fibre], live: tuple[int, ...]) -> Fibre:
    """One fibre of all threads of `fibres`, which wait at the same block with the same calls open.

    A fibre that retained its arrays merges its parts again: only their writes are copied. The rest
    are joined in the order of their lanes.
    """
    if any(fibre.rows is not None for fibre in fibres):
        joined = _merge_rows(fibres)
        if joined is not None:
            return joined
        for fibre in fibres:
            fibre.leave_rows(live)
    base = max(fibres, key=lambda fibre: (fibre.present is not None, fibre.n))
    if base.present is None:
        return _union(fibres, live)
    other_fibres = [fibre for fibre in fibres if fibre is not base]
    strangers = [fibre for fibre in other_fibres if not _take_back(base, fibre, live)]
    if base.count == base.n:
        base.present = None
        base.token = None
    return _union([base, *strangers], live) if strangers else base


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
    merged.lineage, merged.written = None, 0
    if all(fibre.lineage is first.lineage for fibre in fibres):
        merged.lineage = first.lineage
        for fibre in fibres:
            merged.written |= fibre.written
    return merged


def _take_back(base: Fibre, part: Fibre, live: tuple[int, ...]) -> bool:
    """Return whether all of the part's threads have a place in the base; they are put there."""
    if part.present is not None:
        part.compact(live)
    positions = _positions(base, part)
    if positions is None or (base.calls is not part.calls and not _same_calls(base, part)):
        return False
    written = _written_since(base, part)
    if written:
        for number in live:
            if written >> number & 1:
                base.regs[number] = _replaced(base, number, positions, part.regs[number])
        base.written |= written
    base.count += part.n
    if base.count < base.n:
        assert base.present is not None
        present = base.present.copy()
        present[positions] = True
        base.present = present
    return True


def _same_calls(base: Fibre, part: Fibre) -> bool:
    return all(
        base_call is part_call for base_call, part_call in zip(base.calls, part.calls, strict=True)
    )


def _positions(base: Fibre, part: Fibre) -> Index | None:
    """Return the positions of the part's lanes in the base's arrays; None if some are missing."""
    if base.lanes is None:
        return part.lanes
    if part.lanes is None:
        return None
    table = base.blocks.scratch_index()
    table[base.lanes] = np.arange(base.n, dtype=np.intp)
    positions = table.take(part.lanes)
    np.minimum(positions, base.n - 1, out=positions)
    return positions if np.array_equal(base.lanes.take(positions), part.lanes) else None


def _written_since(base: Fibre, part: Fibre) -> int:
    """Registers that the part wrote since it was split from the base; all if unrelated."""
    token, written = part.lineage, part.written
    while token is not None:
        if token is base.token:
            return written
        written |= token.written
        token = token.parent
    return -1


def _same(a: Value, b: Value) -> bool:
    if a.ndim or b.ndim:
        return False
    return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())


def _replaced(base: Fibre, number: int, positions: Index, value: Value) -> Value:
    old = base.regs[number]
    if _same(old, value):
        return old
    fresh = old.copy() if old.ndim else np.full(base.n, old, dtype=old.dtype)
    assert isinstance(fresh, np.ndarray)
    fresh[positions] = value
    return fresh


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
    if all(fibre.lineage is first.lineage for fibre in fibres):
        union.lineage = first.lineage
        for fibre in fibres:
            union.written |= fibre.written
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
