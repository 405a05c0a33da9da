"""Matrices spread over the registers of a warp. PTX ISA, "mma.sync" and "wmma" fragments.

A lane is a group (lane / 4) and a place in it (lane % 4). Every register of 32 bits holds e = 32 /
width elements of one row of A (of one column of B) that lie side by side; a 64-bit one holds one.
A register is a tile of 8 rows (columns of B) by 4 * e elements. Of A, the two halves of 16 rows
come first, then further tiles along k, then the next 16 rows; of B, tiles along k, then the next 8
columns. Of C a group holds a row, a place two columns; the tile 8 rows further comes next, then
those of the next columns, then the next 16 rows.

The fragments of `wmma`, which the ISA leaves open, are those of an H100: the same, with copies
where registers are left over, and all transposed where 8 rows meet 32 columns. Those of
`mma.m8n8k4` with f16 are of Volta: four products of eight lanes each.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import WARP
from ptx.emulate.ops.matrix.matrix_element import WIDTHS, decoded, encoded, separate

Words = NDArray[Any]  # (warps, 32, registers) of uint32 or float64
Matrices = NDArray[Any]  # (warps * count, rows, columns) of float64 or int64
Places = tuple[Index, Index]  # (32, registers, e): row and column of each lane's elements


class MatrixShape(NamedTuple):
    """An `mma` multiplies an (m, k) matrix by an (k, n) one."""

    m: int
    n: int
    k: int


@lru_cache(maxsize=64)  # by the modifiers that PTX has
def shape_of(word: str) -> MatrixShape:
    """The shape that a modifier such as "m16n8k16" names."""
    m, rest = word[1:].split("n")
    n, k = rest.split("k")
    return MatrixShape(int(m), int(n), int(k))


class Fragment:
    """How a warp holds the elements of a matrix, or of `count` matrices of one shape.

    Attributes:
        row, column: (32, registers, e) of each lane's elements.
        spots: (32 * registers * e,) those places as one number over all matrices.
        homes: (count * rows * columns,) where each element lies among all lanes' elements, the
            first place if it has several.
    """

    __slots__ = ("column", "columns", "count", "element", "homes", "row", "rows", "spots")

    def __init__(
        self, rows: int, columns: int, element: str, places: Places, matrix: Index | None = None
    ) -> None:
        self.rows: int = rows
        self.columns: int = columns
        self.element: str = element
        self.row: Index = places[0]
        self.column: Index = places[1]
        place = self.row * columns + self.column
        self.count: int = 1
        if matrix is not None:
            self.count = int(np.max(matrix)) + 1
            place = place + matrix * (rows * columns)
        self.spots: Index = place.reshape(-1)
        self.homes: Index = np.empty(self.count * rows * columns, dtype=np.intp)
        self.homes[self.spots[::-1]] = np.arange(self.spots.size - 1, -1, -1)

    @property
    def registers(self) -> int:
        """How many registers of each lane it takes."""
        return int(self.row.shape[1])

    def gathered(self, words: Words) -> Matrices:
        """The matrices that the warps' registers hold, those of a warp one after another."""
        elements = separate(words, self.element).reshape(len(words), -1)
        values = decoded(elements.take(self.homes, axis=1), self.element)
        return values.reshape(-1, self.rows, self.columns)

    def spread(self, values: Matrices) -> Words:
        """The registers that hold results, rounded to the type."""
        flat = values.reshape(-1, self.homes.size).take(self.spots, axis=1)
        return encoded(flat.reshape(-1, *self.row.shape), self.element)


def _extent(shape: MatrixShape, role: str) -> tuple[int, int]:
    extents = {"a": (shape.m, shape.k), "b": (shape.k, shape.n), "c": (shape.m, shape.n)}
    return extents[role]


def _places(rows: int, columns: int, element: str, role: str) -> Places:
    """`role` is "a", "b" or "c"."""
    if role == "b":
        column, row = _places(columns, rows, element, "b transposed")
        return row, column
    width = WIDTHS[element]
    each = max(1, 32 // width)
    lane = np.arange(WARP)[:, None, None]
    register = np.arange(rows * columns // (WARP * each))[None, :, None]
    part = np.arange(each)[None, None, :]
    group, place = lane >> 2, lane & 3
    halves = 2 if rows > 8 and role != "b transposed" else 1
    if role == "c":
        number = register * each + part
        pair, tile, step = number & 1, number >> 1, 8
        along = 2 * place + pair
    else:
        tile, step = register + 0 * part, 4 * each
        along = place * each + part
    half, tile = tile % halves, tile // halves
    column = along + tile % (columns // step) * step
    row = group + 8 * (half + halves * (tile // (columns // step)))
    row, column = np.broadcast_arrays(row, column)
    return row.astype(np.intp), column.astype(np.intp)


@lru_cache(maxsize=256)  # by the shapes and types that PTX has
def fragment(shape: MatrixShape, element: str, role: str) -> Fragment:
    """The fragment of `mma` that the ISA describes."""
    rows, columns = _extent(shape, role)
    return Fragment(rows, columns, element, _places(rows, columns, element, role))


@lru_cache(maxsize=256)  # by the shapes and types that PTX has
def opaque_fragment(shape: MatrixShape, element: str, role: str) -> Fragment:
    """The fragment of `wmma`."""
    rows, columns = _extent(shape, role)
    if shape.m == 8 and shape.n == 32:
        other = {"a": "b", "b": "a", "c": "c"}[role]
        column, row = _places(columns, rows, element, other)
    else:
        row, column = _places(rows, columns, element, role)
    if element == "f16" and role != "c":
        copies = 8 // row.shape[1]
        row, column = np.tile(row, (1, copies, 1)), np.tile(column, (1, copies, 1))
    return Fragment(rows, columns, element, (row, column))


@lru_cache(maxsize=16)  # by the types and orders that PTX has
def quad_fragment(element: str, role: str, order: str) -> Fragment:
    """The fragment of `mma.m8n8k4` with f16: lanes 4q to 4q+3 and 16 more hold matrices q."""
    lane, number = np.broadcast_arrays(np.arange(WARP)[:, None], np.arange(8 if role == "c" else 4))
    quad, lower = (lane & 15) >> 2, 4 * (lane >> 4)
    if role == "c" and element == "f32":
        row = (lane & 1) + (number & 2) + lower
        column = (number & 4) + (lane & 2) + (number & 1)
    elif role == "c" or (role == "a") == (order == "row"):
        # Each lane holds a row, or a column of B.
        row, column = (lane & 3) + lower, number
    else:
        # Each lane holds a half of a column of A, or of a row of B.
        row, column = (number & 3) + lower, lane & 3
    if role == "b":
        row, column = column, row
    each = 32 // WIDTHS[element]
    row, column, quad = (x.reshape(WARP, -1, each).astype(np.intp) for x in (row, column, quad))
    rows, columns = _extent(MatrixShape(8, 8, 4), role)
    return Fragment(rows, columns, element, (row, column), quad)
