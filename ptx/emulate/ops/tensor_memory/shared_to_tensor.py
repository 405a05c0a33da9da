"""Rows of shared memory to lanes of tensor memory, by one thread. PTX ISA, "tcgen05.cp".

The rows lie as those of a K-major factor. 32 rows go to the lanes of all four warps. Which rows of
the shapes .64x128b and .4x256b go where is not said clearly enough; they are refused, as are copies
to another format.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.order.ordered_blocks import Work, ordered_blocks
from ptx.emulate.exec.sync.issued_copies import note_cells, note_work
from ptx.emulate.memory.site import Site
from ptx.emulate.memory.tensor_memory import HALF, LANES
from ptx.emulate.model.errors import TensorMemoryFault
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.matrix.shared_matrix import SharedMatrix
from ptx.emulate.ops.tensor_memory.tensor_operand import (
    one_by_one,
    require_known_layout,
    slots,
    tensor_address,
)
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_FORMS: Final = {"128x256b": (128, 32), "128x128b": (128, 16), "32x128b.warpx4": (32, 16)}
"""Rows, and bytes of each."""
_FIRST = np.zeros(1, dtype=np.int64)
_ONE = np.zeros(1, dtype=np.intp)


class RowCopy(NamedTuple):
    """One instruction, and how shared memory is read."""

    instruction: Instruction
    matrix: SharedMatrix
    cells: Site


def copy_rows(fibre: Fibre, what: RowCopy, address: Value, descriptor: Value) -> None:
    """The copy of each thread, one after the other."""
    for work in _works(fibre, what, address, descriptor):
        work()


def copy_rows_later(fibre: Fibre, what: RowCopy, address: Value, descriptor: Value) -> None:
    """The same, when somebody waits for it."""
    works = _works(fibre, what, address, descriptor)
    ordered_blocks(fibre).late_copies.tensor_work.add(fibre, works)


def _works(fibre: Fibre, what: RowCopy, address: Value, descriptor: Value) -> list[Work]:
    given = fibre.spread(address).tolist(), fibre.spread(descriptor).tolist()
    works: list[Work] = []
    for one, start, matrix in zip(one_by_one(fibre), *given, strict=True):
        _note(one, what, start, matrix)
        works.append(partial(_copy, one, what, start, matrix))
    return works


def _note(fibre: Fibre, what: RowCopy, address: int, descriptor: int) -> None:
    """Tell what looks for races of one thread's copy, which begins now."""
    if fibre.blocks.races is not None:
        pieces = what.matrix.pieces(np.array([descriptor], dtype=np.uint64), _FIRST)
        note_work(fibre, "work", _ONE, pieces, what.matrix.site)
        columns = (address & 0xFFFF) + np.arange(what.matrix.k_bytes // 4)
        halves = np.arange(0, LANES, HALF)[None, :, None]
        note_cells(fibre, "work", _ONE, halves, columns, what.cells)


def _copy(fibre: Fibre, what: RowCopy, address: int, descriptor: int) -> None:
    if address >> 16:
        raise TensorMemoryFault(
            f"{what.instruction.text} begins at lane {address >> 16} of tensor memory, not at 0",
            fibre.where(0, what.instruction),
        )
    require_known_layout(fibre, what.instruction, descriptor)
    descriptors = np.array([descriptor], dtype=np.uint64)
    words = what.matrix.load(fibre, _ONE, descriptors, _FIRST)
    rows = np.tile(words, (1, LANES // what.matrix.rows, 1))
    lane = np.arange(LANES)[None, :, None]
    column = (address & 0xFFFF) + np.arange(words.shape[2])
    fibre.blocks.tensor_memory.write(fibre, slots(fibre), lane, column, what.instruction, rows)


def _emit(e: Emitter, i: Instruction) -> None:
    rows, nbytes = _FORMS[".".join(i.modifiers[2:])]
    site = Site(i, "shared", "u32", 4, writes=False)
    e.scope.sites.append(site)
    cells = Site(i, "tensor", "u32", 1, writes=True)
    matrix = SharedMatrix("f32", rows, False, site, nbytes)
    what = e.scope.bind(RowCopy(i, matrix, cells), "copy")
    address = tensor_address(e, i.operands[0])
    descriptor = e.temporary(e.value(i.operands[1], "u64"))
    function = e.helper(copy_rows_later if e.late.copies else copy_rows)
    e.line(f"{function}(f, {what}, {address}, {descriptor})")


for _form in _FORMS:
    operation(
        f"tcgen05.cp.cta_group::1.{_form}", ("",), 2, _emit, effect=Effect.MEMORY, writes=0,
        section="tcgen05.cp",
    )  # fmt: skip
