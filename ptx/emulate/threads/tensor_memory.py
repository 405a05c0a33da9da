"""The tensor memory of a chunk's blocks. PTX ISA, "Tensor Memory".

A block has 128 lanes of 512 columns of 32 bits. On a GPU the blocks of a multiprocessor share them.
Here each block has its own, so that it only waits for columns that it holds itself. An address has
the lane in its upper 16 bits and the column in its lower ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import (
    OutOfBounds,
    TensorMemoryFault,
    Where,
)
from ptx.emulate.model.threads import Threads
from ptx.emulate.observer import Observer, Places
from ptx.isa.model import Instruction

LANES: Final = 128
COLUMNS: Final = 512
HALF: Final = 16  # lanes that instructions reach together, of the 32 of a warp
_UNIT: Final = 32  # columns
_UNITS: Final = COLUMNS // _UNIT
Cells = NDArray[np.uint32]
Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class HeldColumns:
    """Columns that a block holds, and the instruction that allocated them."""

    columns: int
    where: Where


class TensorMemory:
    """(blocks, 128, 512) cells of 32 bits, and which of their columns each block holds.

    Attributes:
        granted: columns of warps whose fibre waits for those of others, by their lowest lane.
    """

    def __init__(self, blocks: int, observers: tuple[Observer, ...]) -> None:
        self._observers = observers
        self._cells: Cells = np.zeros((blocks, LANES, COLUMNS), dtype=np.uint32)
        self._held = np.zeros((blocks, _UNITS), dtype=np.bool_)
        self._allocations: dict[tuple[int, int], HeldColumns] = {}
        self.granted: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._relinquished: set[int] = set()

    def allocate(self, block: int, columns: int, where: Where) -> int | None:
        """The first column of so many for a block; None while it must wait for them.

        Raises:
            TensorMemoryFault: the number is not allowed, or the block may not allocate any more.
        """
        self._require_number(columns, where)
        if block in self._relinquished:
            raise TensorMemoryFault(
                "tensor memory is asked for after tcgen05.relinquish_alloc_permit of the block",
                where,
            )
        if columns > self._last.get(block, COLUMNS):
            raise TensorMemoryFault(
                f"{columns} columns of tensor memory are asked for after {self._last[block]}: the"
                " numbers that a block asks for must not increase",
                where,
            )
        units = columns // _UNIT
        for first in range(_UNITS - units + 1):
            if not self._held[block, first : first + units].any():
                self._held[block, first : first + units] = True
                self._allocations[block, first * _UNIT] = HeldColumns(columns, where)
                self._last[block] = columns
                return first * _UNIT
        return None

    def free(self, block: int, address: int, columns: int, where: Where) -> None:
        """`tcgen05.dealloc`.

        Raises:
            TensorMemoryFault: the block holds no such allocation.
        """
        self._require_number(columns, where)
        allocation = self._allocations.get((block, address))
        if allocation is None:
            raise TensorMemoryFault(
                f"tensor memory at {address:#x} is given back, where the block holds no"
                " allocation, or none any more",
                where,
            )
        if allocation.columns != columns:
            raise TensorMemoryFault(
                f"{columns} columns of tensor memory at {address:#x} are given back, of"
                f" {allocation.columns} that were allocated in {allocation.where}",
                where,
            )
        del self._allocations[block, address]
        units = slice(address // _UNIT, (address + columns) // _UNIT)
        self._held[block, units] = False
        for observer in self._observers:
            observer.free_cells(block, address, columns)

    def relinquish(self, block: int) -> None:
        """`tcgen05.relinquish_alloc_permit`."""
        self._relinquished.add(block)

    def require_all_free(self) -> None:
        """Raise if columns are still held when all threads have exited.

        Raises:
            TensorMemoryFault: a block still holds what it allocated.
        """
        for (_, first), allocation in self._allocations.items():
            raise TensorMemoryFault(
                f"{allocation.columns} columns of tensor memory at {first:#x} are still allocated"
                " when the block ends: give them back by tcgen05.dealloc",
                allocation.where,
            )

    def read(
        self, threads: Threads, block: Index, lane: Numbers, column: Numbers, i: Instruction
    ) -> Cells:
        """The cells at lanes and columns, (n, …) both, of the blocks (n,) of some threads.

        Raises:
            OutOfBounds: the block does not hold a column.
        """
        cells = self._places(threads, block, lane, column, i)
        for observer in self._observers:
            observer.read_cells(threads, cells, i)
        return self._cells[cells]

    def write(
        self,
        threads: Threads,
        block: Index,
        lane: Numbers,
        column: Numbers,
        i: Instruction,
        cells: Cells,
    ) -> None:
        """Write cells in the same way.

        Raises:
            OutOfBounds: the block does not hold a column.
        """
        indices = self._places(threads, block, lane, column, i)
        self._cells[indices] = cells
        for observer in self._observers:
            observer.write_cells(indices)

    def _places(
        self, threads: Threads, block: Index, lane: Numbers, column: Numbers, i: Instruction
    ) -> Places:
        """The indices of cells.

        Raises:
            OutOfBounds: the block does not hold a column, or there is no such lane.
        """
        lane, column = np.broadcast_arrays(lane, column)
        blocks = np.broadcast_to(block.reshape(-1, *(1,) * (lane.ndim - 1)), lane.shape)
        inside = (column < COLUMNS) & (lane < LANES)
        is_allocated = inside & self._held[blocks, np.minimum(column // _UNIT, _UNITS - 1)]
        if not is_allocated.all():
            first = tuple(np.argwhere(~is_allocated)[0])
            address = int(lane[first]) << 16 | int(column[first])
            raise OutOfBounds(
                f"{i.text} reaches lane {lane[first]}, column {column[first]} of tensor memory,"
                " which the block has not allocated, or given back",
                threads.where(int(first[0]), i),
                address=address,
                nbytes=4,
                space="tensor",
            )
        return blocks, lane, column

    @staticmethod
    def _require_number(columns: int, where: Where) -> None:
        if not _UNIT <= columns <= COLUMNS or columns & columns - 1:
            raise TensorMemoryFault(
                f"{columns} columns of tensor memory: the number is a power of two from {_UNIT} to"
                f" {COLUMNS}",
                where,
            )
