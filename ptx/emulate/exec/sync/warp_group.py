"""The lanes that execute one warp instruction together, arranged warp by warp.

A group is a warp, or the part of one that names itself in one membermask. Its 32 places are a row
of a grid; places of lanes that take no part are empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.threads.fibre import Fibre

Words = NDArray[np.uint32]
Grid = NDArray[Any]  # (rows * 32,) of the type of the values that were brought
_WARP_SHIFT = 5


class Group:
    """Rows of 32 places for the threads that execute together.

    Attributes:
        rows: how many groups there are.
        lanes: (m,) chunk lanes of all that take part; None where they are the fibre's own threads.
        slots: (m,) their places in the grid.
        mine: (n,) the places of the fibre that executes.
        dense: the fibre's threads fill the grid in order.
    """

    __slots__ = ("_cache", "_members", "dense", "lanes", "mine", "rows", "slots")

    def __init__(self, rows: int, lanes: Index | None, slots: Index, mine: Index) -> None:
        self.rows: int = rows
        self.lanes: Index | None = lanes
        self.slots: Index = slots
        self.mine: Index = mine
        self.dense: bool = lanes is None and len(mine) == rows * WARP
        self._members: Words | None = None
        self._cache: dict[object, Any] = {}

    @property
    def row(self) -> Index:
        """(n,) the group of each thread of the fibre."""
        return self.mine >> _WARP_SHIFT

    @property
    def members(self) -> Words:
        """(rows,) the occupied places, as bits."""
        if self._members is None:
            if self.dense:
                self._members = np.full(self.rows, 0xFFFFFFFF, dtype=np.uint32)
            else:
                self._members = packed(self.present())
        return self._members

    def present(self) -> NDArray[np.bool_]:
        """(rows * 32,) mask of the occupied places."""
        is_occupied = np.zeros(self.rows * WARP, dtype=np.bool_)
        is_occupied[self.slots] = True
        return is_occupied

    def recall(self, key: object) -> Any:  # of the type given to `remember`
        """Return the value stored under a key, None if there is none."""
        return self._cache.get(key)

    def remember(
        self, key: object, result: Any
    ) -> None:  # any result that depends on the group only
        """Remember something for the next instruction with the same lanes."""
        self._cache[key] = result

    def grid(self, fibre: Fibre, name: str, value: Value, fill: Any = 0) -> Grid:
        """The values that all lanes exchange under `name`; `value` is the fibre's own."""
        if self.dense:
            return fibre.spread(value)
        if self.lanes is not None:
            assert fibre.exchange is not None
            value = fibre.exchange[name].take(self.lanes)
        table = np.full(self.rows * WARP, fill, dtype=value.dtype)
        table[self.slots] = value
        return table

    def each(self, by_row: Grid) -> Grid:
        """(n,) the value of each thread's group."""
        if self.dense:
            return by_row.repeat(WARP)
        return by_row.take(self.row)


def packed(flags: NDArray[np.bool_]) -> Words:
    """(rows,) 32 flags as the bits of a word each, the first lowest."""
    return np.packbits(flags, bitorder="little").view(np.uint32)


def group_of(fibre: Fibre, mask: Value) -> Group:
    """The group that executes now: the fibre's threads, and those of other fibres."""
    exchange = fibre.exchange
    if exchange is not None:
        return _exchanged(fibre, exchange)
    if mask.ndim:
        return _own(fibre, mask)
    group: Group | None = fibre.recall("group")
    if group is None:
        group = _own(fibre, mask)
        fibre.remember("group", group)
    return group


def _own(fibre: Fibre, mask: Value) -> Group:
    slots = np.broadcast_to(np.asarray(fibre.place("warp_slot"), dtype=np.intp), (fibre.n,))
    if not mask.ndim and fibre.lanes is None:
        geometry = fibre.blocks.geometry
        return Group(geometry.warps_per_block * geometry.blocks, None, slots, slots)
    rows, positions = _placed(slots, mask)
    return Group(rows, None, positions, positions)


def leaders(slots: Index, masks: Words) -> tuple[Index, bool]:
    """(n,) for each slot the slot of the lowest lane that it names, and whether all name the same.

    `masks` name lanes that are all among `slots`; two agree if they name the same.
    """
    lowest = masks & (~masks + np.uint32(1))
    # The exponent of a power of two.
    lane = (lowest.astype(np.float64).view(np.int64) >> 52) - 1023
    leader = (slots & ~(WARP - 1)) + lane
    table = np.zeros(int(slots[-1]) // WARP * WARP + WARP, dtype=np.uint32)
    table[slots] = masks
    return leader, bool((table.take(leader) == masks).all())


def _placed(slots: Index, mask: Value) -> tuple[int, Index]:
    """Rows for the warps (and masks) that occur, and each slot's place."""
    first = slots & ~(WARP - 1)
    if mask.ndim:
        is_here = np.zeros(int(slots[-1]) // WARP * WARP + WARP, dtype=np.bool_)
        is_here[slots] = True
        first, _ = leaders(slots, mask & packed(is_here).take(slots >> _WARP_SHIFT))
    heads = np.zeros(int(np.max(first)) + 1, dtype=np.bool_)
    heads[first] = True
    rows = np.cumsum(heads) - 1
    return int(rows[-1]) + 1, rows.take(first) * WARP + (slots & (WARP - 1))


def _exchanged(fibre: Fibre, exchange: dict[str, Value]) -> Group:
    lanes: Index = exchange["here"].nonzero()[0]
    slots = fibre.blocks.geometry.index("warp_slot").take(lanes)
    rows, positions = _placed(slots, exchange["mask"].take(lanes))
    own_positions = positions.take(np.searchsorted(lanes, fibre.lane_numbers()))
    return Group(rows, lanes, positions, own_positions)
