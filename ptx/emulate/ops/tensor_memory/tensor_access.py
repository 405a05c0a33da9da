"""Tensor memory to registers and back, by warps. PTX ISA, "tcgen05.ld", "tcgen05.st".

A warp reaches the 32 lanes of its place among four warps: all of them, or 16 from the first or the
seventeenth on. Where each thread's registers lie is in figures of the ISA ("Matrix fragments"). Of
16 bits of each of two columns `.pack::16b` makes one register; `.unpack::16b` parts one, and the
upper halves of the cells, of which the ISA does not speak, become zero.

Loads are done at once. In an ordered launch a store is done when it is waited for.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.order.ordered_blocks import Stage, ordered_blocks
from ptx.emulate.exec.sync.issued_copies import note_cells
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.kernel_facts import WorkerKind
from ptx.emulate.memory.site import Site
from ptx.emulate.memory.tensor_memory import LANES
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import TensorMemoryFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.tensor_memory.tensor_operand import (
    each,
    require_agreement,
    slots,
    tensor_address,
)
from ptx.emulate.ops.warp.lane_sync import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Immediate, Instruction, SpecialRegister, Vector

Numbers = NDArray[np.intp]
_HALF: Final = 16  # lanes, and bits


class Movement(NamedTuple):
    """Where the registers of one instruction lie, from the warp's address on.

    Attributes:
        lane, column: (registers, 32) of each thread's register; of two columns the first.
        packed: whether a register has 16 bits of each of two columns.
        lanes: how many a warp reaches.
        site: the access.
        reached: (2, k) each half of the lanes, by its first one, with each column of it.
    """

    instruction: Instruction
    lane: Numbers
    column: Numbers
    packed: bool
    lanes: int
    site: Site
    reached: Numbers


def _pieces(shape: str, repeats: int, split: int, packed: bool) -> tuple[Numbers, Numbers]:
    """(registers, 32) lanes and columns of a shape."""
    thread = np.arange(WARP)
    if shape == "32x32b":
        register = np.arange(repeats)[:, None]
        lane, column = thread, register
    elif shape == "16x32bx2":
        register = np.arange(repeats)[:, None]
        lane, column = thread % _HALF, register
    elif shape == "16x64b":
        register = np.arange(repeats)[:, None]
        lane, column = thread // 4 + thread % 2 * 8, 2 * register + thread // 2 % 2
    elif shape == "16x128b":
        register = np.arange(2 * repeats)[:, None]
        lane, column = thread // 4 + register % 2 * 8, register // 2 * 4 + thread % 4
    else:
        register = np.arange(4 * repeats)[:, None]
        lane = thread // 4 + register // 2 % 2 * 8
        column = register // 4 * 8 + thread % 4 * 2 + register % 2
    lane, column = np.broadcast_arrays(lane, column * (2 if packed else 1))
    if shape == "16x32bx2":
        column = column + thread // _HALF * split
    return lane.astype(np.intp), column.astype(np.intp)


class _Cells(NamedTuple):
    """The cells of some threads: (n,) their blocks, (n, registers) lanes and columns."""

    block: Index
    lane: Numbers
    column: Numbers

    def part(self, positions: Index | None) -> _Cells:
        if positions is None:
            return self
        return _Cells(self.block[positions], self.lane[positions], self.column[positions])


def _cells(fibre: Fibre, group: Group, address: Value, warp: Value, movement: Movement) -> _Cells:
    """The cells of each thread.

    Raises:
        TensorMemoryFault: the lanes of a warp give several addresses, or one that is not theirs.
    """
    require_agreement(fibre, group, "address", address, movement.instruction)
    start = each(fibre, address)
    own = each(fibre, warp) % 4 * WARP
    first = start >> 16
    _, warps = np.unique(group.row, return_index=True)
    lanes, columns = (each[None] for each in movement.reached)
    kind: WorkerKind = "stores" if movement.site.writes else "loads"
    lanes, columns = first[warps, None] + lanes, (start[warps, None] & 0xFFFF) + columns
    note_cells(fibre, kind, warps, lanes % LANES, columns, movement.site)
    fits = (first == own) | (first == own + _HALF) & (movement.lanes == _HALF)
    if not fits.all():
        position = int(np.argmin(fits))
        raise TensorMemoryFault(
            f"{movement.instruction.text} of warp {int(each(fibre, warp)[position])} begins at"
            f" lane {first[position]} of tensor memory: a warp reaches the lanes"
            f" {own[position]} to {own[position] + WARP - 1}, by 16 from the first or the"
            " seventeenth, by 32 from the first on",
            fibre.where(position, movement.instruction),
        )
    thread = group.mine % WARP
    lane = first[:, None] + movement.lane.T[thread]
    column = (start & 0xFFFF)[:, None] + movement.column.T[thread]
    return _Cells(slots(fibre), lane, column)


def load_cells(
    fibre: Fibre, group: Group, address: Value, warp: Value, movement: Movement
) -> list[Value]:
    """The registers of each thread."""
    at = _cells(fibre, group, address, warp, movement)
    read = partial(fibre.blocks.tensor_memory.read, fibre, at.block, at.lane)
    found = read(at.column, movement.instruction)
    if movement.packed:
        upper = read(at.column + 1, movement.instruction)
        found = found & np.uint32(0xFFFF) | upper << np.uint32(_HALF)
    return list(np.ascontiguousarray(found.T))


def store_cells(
    fibre: Fibre, group: Group, address: Value, warp: Value, movement: Movement,
    values: list[Value],
) -> None:  # fmt: skip
    """Write the registers of each thread."""
    at = _cells(fibre, group, address, warp, movement)
    _write(fibre, at, movement, _rows(fibre, values))


def store_cells_later(
    fibre: Fibre, group: Group, address: Value, warp: Value, movement: Movement,
    values: list[Value],
) -> None:  # fmt: skip
    """The same, when the threads wait for it."""
    at = _cells(fibre, group, address, warp, movement)
    rows = _rows(fibre, values)

    def land(part: Fibre, positions: Index | None) -> Stage | None:
        _write(part, at.part(positions), movement, rows if positions is None else rows[positions])
        return None

    ordered_blocks(fibre).late_copies.tensor_stores.add(fibre, land)


def _rows(fibre: Fibre, values: list[Value]) -> NDArray[np.uint32]:
    """(n, registers)"""
    return np.stack([fibre.spread(value).astype(np.uint32) for value in values], axis=1)


def _write(fibre: Fibre, at: _Cells, movement: Movement, rows: NDArray[np.uint32]) -> None:
    memory, i = fibre.blocks.tensor_memory, movement.instruction
    if not movement.packed:
        memory.write(fibre, at.block, at.lane, at.column, i, rows)
        return
    memory.write(fibre, at.block, at.lane, at.column, i, rows & np.uint32(0xFFFF))
    memory.write(fibre, at.block, at.lane, at.column + 1, i, rows >> np.uint32(_HALF))


def _movement(e: Emitter, i: Instruction, split: int) -> str:
    shape = i.modifiers[3]
    repeats = int(i.modifiers[4][1:])
    packed = not {"pack::16b", "unpack::16b"}.isdisjoint(i.modifiers)
    lane, column = _pieces(shape, repeats, split, packed)
    lanes = WARP if shape == "32x32b" else _HALF
    site = Site(i, "tensor", "u32", 1, writes=i.modifiers[0] == "st")
    cells = np.stack([lane // _HALF * _HALF, column]).reshape(2, -1)
    both = np.concatenate([cells, cells + np.array([[0], [1]])], axis=1) if packed else cells
    reached = np.unique(both, axis=1)
    return e.scope.bind(Movement(i, lane, column, packed, lanes, site, reached), "movement")


def _split(e: Emitter, i: Instruction) -> int:
    """How far the columns of the second half of a warp lie from the first one's."""
    if "16x32bx2" not in i.modifiers:
        return 0
    given = i.operands[2 if i.modifiers[0] == "ld" else 1]
    if not isinstance(given, Immediate) or given.value < 0:
        raise e.refuse("the distance of its two halves is a constant")
    return given.value


def _load(e: Emitter, i: Instruction) -> None:
    movement = _movement(e, i, _split(e, i))
    address = tensor_address(e, i.operands[1])
    warp = e.temporary(e.value(SpecialRegister("%warpid"), "u32"))
    group = sync_warp(e, i, {"address": address})
    found = e.temporary(f"{e.helper(load_cells)}(f, {group}, {address}, {warp}, {movement})")
    target = i.operands[0]
    count = len(target.items) if isinstance(target, Vector) else 1
    if count != _registers(i):
        raise e.refuse(f"it has {count} registers of {_registers(i)}")
    e.assign_all(target, "b32", [f"{found}[{k}]" for k in range(count)])


def _store(e: Emitter, i: Instruction) -> None:
    movement = _movement(e, i, _split(e, i))
    address = tensor_address(e, i.operands[0])
    values = [e.temporary(value) for value in e.values(i.operands[-1], "b32")]
    if len(values) != _registers(i):
        raise e.refuse(f"it has {len(values)} registers of {_registers(i)}")
    warp = e.temporary(e.value(SpecialRegister("%warpid"), "u32"))
    group = sync_warp(e, i, {"address": address})
    function = e.helper(store_cells_later if e.late.copies else store_cells)
    e.line(f"{function}(f, {group}, {address}, {warp}, {movement}, [{', '.join(values)}])")


def note_wait_for(fibre: Fibre, kind: WorkerKind) -> None:
    """Tell what looks for races that these threads have waited."""
    if fibre.blocks.races is not None:
        fibre.blocks.races.workers.commit(kind, fibre.lane_numbers())
        fibre.blocks.races.workers.wait(kind, fibre.lane_numbers())


def _registers(i: Instruction) -> int:
    return _PER_REPEAT[i.modifiers[3]] * int(i.modifiers[4][1:])


def _wait(e: Emitter, i: Instruction) -> None:
    sync_warp(e, i, {})
    kind = "loads" if i.modifiers[0] == "wait::ld" else "stores"
    e.line(f"{e.helper(note_wait_for)}(f, {kind!r})")
    if e.late.copies and i.modifiers[0] == "wait::st":
        e.line("f.blocks.late_copies.tensor_stores.wait_all(f)")


_PER_REPEAT: Final = {"32x32b": 1, "16x64b": 1, "16x32bx2": 1, "16x128b": 2, "16x256b": 4}
_MOST: Final = 128  # registers

for _shape, _per_repeat in _PER_REPEAT.items():
    _halves = _shape == "16x32bx2"
    for _repeats in (1, 2, 4, 8, 16, 32, 64, 128):
        if _repeats * _per_repeat > _MOST:
            continue
        operation(
            f"tcgen05.ld.sync.aligned.{_shape}.x{_repeats}", ("b32",), 3 if _halves else 2, _load,
            effect=Effect.SYNCS, modifiers=("pack::16b",), section="tcgen05.ld",
        )  # fmt: skip
        operation(
            f"tcgen05.st.sync.aligned.{_shape}.x{_repeats}", ("b32",), 3 if _halves else 2, _store,
            effect=Effect.SYNCS, modifiers=("unpack::16b",), writes=0, section="tcgen05.st",
        )  # fmt: skip
for _name in ("wait::ld", "wait::st"):
    operation(
        f"tcgen05.{_name}.sync.aligned", ("",), 0, _wait, effect=Effect.SYNCS, writes=0,
        section="tcgen05.wait",
    )  # fmt: skip
