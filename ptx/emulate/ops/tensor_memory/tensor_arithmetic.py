"""One product D = A * B + D in tensor memory. PTX ISA, "tcgen05.mma", "Data Path Layout".

D has a row in each lane and a column in each column, of 16 bits in the lower half, where the upper
one becomes zero. Of 64 rows each 16 lie in the lanes of one warp. With `.ws` 64 and 32 rows begin
again in the next lanes with the second half or the further quarters of the columns. A is in shared
memory or, 32 bytes of each row in 8 columns, in tensor memory; B is in shared memory.

The ISA leaves order and rounding of the sums open, and no GPU was asked: products are exact, they
are added to D in the order of k in float64, and the sum is rounded once to nearest.

With `.block_scale` chunks of each row of A and column of B have a factor each, a byte in tensor
memory ("Block Scaling"): that of row r in lane r % 32 of each of the four warps and column r / 32,
those of further chunks in the next bytes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.sync.issued_copies import note_cells, note_work
from ptx.emulate.memory.site import Site
from ptx.emulate.memory.tensor_memory import LANES
from ptx.emulate.model.errors import TensorMemoryFault
from ptx.emulate.model.geometry import WARP
from ptx.emulate.ops.matrix.matrix_arithmetic import Matrices, product
from ptx.emulate.ops.matrix.matrix_element import decoded, encoded, separate
from ptx.emulate.ops.matrix.matrix_scaled import decoded_factors, sum_of_products
from ptx.emulate.ops.matrix.shared_matrix import SharedMatrix
from ptx.emulate.ops.tensor_memory.product_descriptor import (
    BadDescriptor,
    ProductDescriptor,
    Scaling,
    product_descriptor,
)
from ptx.emulate.ops.tensor_memory.tensor_operand import require_known_layout, slots
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_HALF: Final = 16  # lanes, and bits
_WORDS: Final = 8  # of a row of A in tensor memory
_FIRST = np.zeros(1, dtype=np.int64)
_ONE = np.zeros(1, dtype=np.intp)
Numbers = NDArray[np.intp]


class TensorProduct(NamedTuple):
    """One instruction: its kind, how shared memory is read, where A is, and 2**-scale before D.

    `site` is the access to shared memory, `reads` and `writes` are those to tensor memory.
    `chunks`: how many factors a row has, 0 without any; `is_weight_stationary`: `.ws`.
    """

    instruction: Instruction
    kind: str
    site: Site
    reads: Site
    writes: Site
    left_is_here: bool
    scale: int
    chunks: int
    is_weight_stationary: bool


class ProductOperands(NamedTuple):
    """What one thread gives."""

    target: int
    left: int
    right: int
    word: int
    adds: bool
    disabled: NDArray[np.bool_]  # (128,) by lane
    factors: tuple[int, ...]  # where those of A and B are


def multiply_one(fibre: Fibre, what: TensorProduct, given: ProductOperands) -> None:
    """The product of one thread.

    Raises:
        TensorMemoryFault: a descriptor or an address is none.
    """
    try:
        form = product_descriptor(
            given.word, what.kind, what.chunks, is_weight_stationary=what.is_weight_stationary
        )
    except BadDescriptor as bad:
        raise _fault(fibre, what, f"its instruction descriptor {given.word:#010x} {bad}") from None
    lane, column = _places(fibre, what, form, given.target)
    a = _left(fibre, what, form, given, lane[:, 0])
    b = _shared(fibre, what, form.b, form.n, form.transposed[1], given.right).swapaxes(1, 2)
    a, b = (-x if negated else x for x, negated in zip((a, b), form.negated, strict=True))
    if form.scaling is not None:
        a, b = _scaled(fibre, what, form, form.scaling, given, a, b)
    kept = ~given.disabled[lane[:, 0]]
    memory, at = fibre.blocks.tensor_memory, (slots(fibre), lane[None, kept], column)
    c = np.zeros((1, int(kept.sum()), form.n), dtype=np.int64 if form.d == "s32" else np.float64)
    if given.adds:
        cells = memory.read(fibre, *at, what.instruction)
        c = _numbers(cells, form.d) * (1 if form.d == "s32" else 2.0**-what.scale)
    total = _sum(a[:, kept], b, c, form)
    memory.write(fibre, *at, what.instruction, _cells(total, form.d))


def note_product(fibre: Fibre, what: TensorProduct, given: ProductOperands) -> None:
    """Tell what looks for races of one thread's product, which begins now."""
    try:
        form = product_descriptor(
            given.word, what.kind, what.chunks, is_weight_stationary=what.is_weight_stationary
        )
    except BadDescriptor:
        return  # a fault when it is executed
    lane, column = _places(fibre, what, form, given.target)
    rows = lane[::_HALF]  # the others are of the same halves
    if what.left_is_here:
        words = (given.left & 0xFFFF) + np.arange(_WORDS)
        note_cells(fibre, "work", _ONE, rows[None, :, :1], words, what.reads)
    factors = [] if what.left_is_here else [(form.a, form.m, form.transposed[0], given.left)]
    for element, count, transposed, descriptor in (
        *factors, (form.b, form.n, form.transposed[1], given.right),
    ):  # fmt: skip
        matrix = SharedMatrix(element, count, transposed, what.site)
        pieces = matrix.pieces(np.array([descriptor], dtype=np.uint64), _FIRST)
        note_work(fibre, "work", _ONE, pieces, what.site)
    halves = np.arange(0, LANES, _HALF)[None, :, None]
    for address, count in zip(given.factors, (form.m, form.n), strict=False):
        columns = (address & 0xFFFF) + np.arange(-(-count // WARP))
        note_cells(fibre, "work", _ONE, halves, columns, what.reads)
    kept = ~given.disabled[lane[:, 0]].reshape(-1, _HALF).all(axis=1)
    if kept.any():
        note_cells(fibre, "work", _ONE, rows[None, kept], column, what.writes)


def _scaled(
    fibre: Fibre, what: TensorProduct, form: ProductDescriptor, scaling: Scaling,
    given: ProductOperands, a: Matrices, b: Matrices,
) -> tuple[Matrices, Matrices]:  # fmt: skip
    """A and B with their factors."""
    each = a.shape[2] // scaling.chunks
    of_a, of_b = (
        np.repeat(_factors(fibre, what, scaling, address, rows, place), each, axis=2)
        for address, rows, place in zip(
            given.factors, (form.m, form.n), scaling.places, strict=True
        )
    )
    return a * of_a, b * of_b.swapaxes(1, 2)


def _sum(a: Matrices, b: Matrices, c: Matrices, form: ProductDescriptor) -> Matrices:
    types = (form.d, form.a, form.b, form.d)
    if form.d == "s32":
        return product(a, b, c, types, ("satfinite",) if form.saturates else ())
    return sum_of_products(a, b, c, types)


def _places(
    fibre: Fibre, what: TensorProduct, form: ProductDescriptor, address: int
) -> tuple[Numbers, Numbers]:
    """(m, n) the lane and (n,) the column of each element of D.

    Raises:
        TensorMemoryFault: rows do not begin at that lane.
    """
    first, row, column = address >> 16, np.arange(form.m)[:, None], np.arange(form.n)
    halves = form.m < LANES and not what.is_weight_stationary
    if first not in ((0, _HALF) if halves else (0,)):
        raise _fault(
            fibre, what,
            f"{form.m} rows begin at lane {first} of tensor memory, not at"
            f" {'0 or 16' if halves else '0'}",
        )  # fmt: skip
    if halves:
        row = row // _HALF * WARP + row % _HALF + first
    width = form.n if halves else form.n * form.m // LANES
    lane = row + column // width * form.m
    return lane.astype(np.intp), (address & 0xFFFF) + column % width


def _left(
    fibre: Fibre, what: TensorProduct, form: ProductDescriptor, given: ProductOperands,
    lanes: Numbers,
) -> Matrices:  # fmt: skip
    """A: (1, m, k)"""
    if not what.left_is_here:
        return _shared(fibre, what, form.a, form.m, form.transposed[0], given.left)
    if form.transposed[0]:
        raise _fault(fibre, what, "A is transposed, which it cannot be in tensor memory")
    if given.left >> 16 != given.target >> 16:
        raise _fault(fibre, what, "A and D begin at different lanes of tensor memory")
    if what.is_weight_stationary and form.m < LANES:
        raise _fault(
            fibre, what,
            f"where {form.m} rows of A lie in tensor memory with .ws is not known to the emulator",
        )  # fmt: skip
    column = (given.left & 0xFFFF) + np.arange(_WORDS)
    words = fibre.blocks.tensor_memory.read(
        fibre, slots(fibre), lanes[None, :, None], column, what.instruction
    )
    return decoded(separate(words, form.a).reshape(1, form.m, -1), form.a)


def _factors(
    fibre: Fibre, what: TensorProduct, scaling: Scaling, address: int, rows: int, place: int
) -> Matrices:
    """(1, rows, chunks) the factors of rows of A, or of columns of B.

    Raises:
        TensorMemoryFault: they begin at another lane than 0, or their four copies differ.
    """
    if address >> 16:
        raise _fault(fibre, what, f"factors begin at lane {address >> 16} of tensor memory")
    row = np.arange(rows)
    lane = row[:, None] % WARP + np.arange(0, LANES, WARP)
    column = (address & 0xFFFF) + row[:, None] // WARP
    words = fibre.blocks.tensor_memory.read(
        fibre, slots(fibre), lane[None], column[None], what.instruction
    )
    octets = np.ascontiguousarray(words, dtype="<u4")[..., None].view(np.uint8)
    used = octets[..., place : place + scaling.chunks]
    differ = (used != used[:, :, :1]).any(axis=(2, 3))
    if differ.any():
        raise _fault(
            fibre, what,
            f"the factors of row {int(np.argmax(differ))} differ among the lanes of the four warps",
        )  # fmt: skip
    return decoded_factors(used[:, :, 0], scaling.factor)


def _shared(
    fibre: Fibre, what: TensorProduct, element: str, rows: int, transposed: bool, descriptor: int
) -> Matrices:
    """(1, rows, k)"""
    require_known_layout(fibre, what.instruction, descriptor)
    matrix = SharedMatrix(element, rows, transposed, what.site)
    return matrix.read(fibre, _ONE, np.array([descriptor], dtype=np.uint64), _FIRST)


def _numbers(cells: NDArray[np.uint32], element: str) -> NDArray[Any]:
    if element == "f16":
        return decoded(cells.astype(np.uint16), element)
    return decoded(cells, element)


def _cells(values: Matrices, element: str) -> NDArray[np.uint32]:
    if element == "f16":
        return encoded(np.stack([values, np.zeros_like(values)], axis=-1), element)
    return encoded(values[..., None], element)


def _fault(fibre: Fibre, what: TensorProduct, said: str) -> TensorMemoryFault:
    return TensorMemoryFault(f"{what.instruction.text}: {said}", fibre.where(0, what.instruction))
