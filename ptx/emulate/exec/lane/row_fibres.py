"""Fibres whose threads have rows: how they come to be, part, meet, and end."""

from __future__ import annotations

from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.rows import LANE, LOCAL, SHARED, Row, column, value_of

if TYPE_CHECKING:
    from ptx.emulate.threads.fibre import Fibre

_lane_of = itemgetter(LANE)


def dtypes_of(fibre: Fibre) -> list[np.dtype[Any]]:
    """The types of the registers of the function that a fibre is in."""
    code = fibre.blocks.code
    return code.dtypes(fibre.calls[-1].function if fibre.calls else 0)


def enter_rows(fibre: Fibre, live: tuple[int, ...]) -> None:
    """Give each thread a row of its own, with just the live registers."""
    fibre.compact(live)
    blocks = fibre.blocks
    size = blocks.geometry.threads_per_block
    count = fibre.n
    lanes: list[int] = fibre.lane_numbers().tolist()
    columns = [column(fibre.regs[number], count) for number in live]
    columns.append([lane // size * blocks.shared_stride for lane in lanes])
    columns.append([lane * blocks.local_stride for lane in lanes])
    columns.append(lanes)
    names = (*live, SHARED, LOCAL, LANE)
    rows: list[Row] = [dict(zip(names, each, strict=True)) for each in zip(*columns, strict=True)]
    fibre.rows = rows
    fibre.regs = []


def leave_rows(fibre: Fibre, live: tuple[int, ...]) -> None:
    """Have the live registers as NumPy values again."""
    rows = fibre.rows
    if rows is None:
        return
    dtypes = dtypes_of(fibre)
    unset: Value = np.uint32(0)
    fibre.regs = [unset] * len(dtypes)
    for number in live:
        fibre.regs[number] = value_of([row[number] for row in rows], dtypes[number])
    fibre.rows = None


def value_in(fibre: Fibre, number: int) -> Value:
    """A register of a fibre in any form."""
    if fibre.rows is None:
        return fibre.regs[number]
    return value_of([row[number] for row in fibre.rows], dtypes_of(fibre)[number])


def with_rows(fibre: Fibre, rows: list[Row]) -> Fibre:
    """A fibre of those threads of another one that have these rows."""
    lanes = np.array([row[LANE] for row in rows], dtype=np.intp)
    found = type(fibre)(fibre.scheduler, [], lanes, len(rows))
    found.rows = rows
    found.prefix = fibre.prefix
    found.calls = fibre.calls
    found.stack_pointer = fibre.stack_pointer
    found.lineage = fibre.lineage
    found.written = fibre.written
    found.few = fibre.few
    return found


def part_of_rows(fibre: Fibre, positions: Index, live: tuple[int, ...]) -> Fibre:
    """`Fibre.subset`; without a live register it is given no row."""
    rows = fibre.rows
    assert rows is not None
    found = with_rows(fibre, [rows[each] for each in positions.tolist()])
    if not live:
        unset: Value = np.uint32(0)
        found.regs = [unset] * len(dtypes_of(fibre))
        found.rows = None
    return found


def merge_rows(fibres: list[Fibre]) -> Fibre | None:
    """One fibre of all, which have rows and the same calls open; None where they have not."""
    first = fibres[0]
    rows: list[Row] = []
    for fibre in fibres:
        if fibre.rows is None or not all(map(is_, fibre.calls, first.calls)):
            return None
        rows += fibre.rows
    rows.sort(key=_lane_of)
    found = with_rows(first, rows)
    if found.n == first.blocks.geometry.threads:
        found.lanes = None
    found.lineage, found.written = None, 0
    if all(fibre.lineage is first.lineage for fibre in fibres):
        found.lineage = first.lineage
        for fibre in fibres:
            found.written |= fibre.written
    return found
