"""Tensor memory: allocation, loads and stores, copies, commits. PTX ISA, "tcgen05".

**Allocation** ("tcgen05.alloc"). The lowest lane of a warp does it for all. If too few columns are
free, it repeats the instruction until another warp of the block has freed some.

**Loads and stores** ("tcgen05.ld", "tcgen05.st"). A warp accesses the 32 lanes of its position
among four warps: all of them, or 16 from the first or the seventeenth on. Figures of the ISA define
the layout of each thread's registers ("Matrix fragments").

`.pack::16b` combines 16 bits of each of two columns in one register; `.unpack::16b` separates them.
The ISA does not define the upper halves of the cells, which become zero here. Loads are done at
once. In an ordered launch a store is done at the wait for it.

**Copies** ("tcgen05.cp") of rows of shared memory, by one thread. The rows lie as those of a
K-major factor. 32 rows go to the lanes of all four warps. The ISA does not define clearly enough
how the shapes .64x128b and .4x256b distribute rows. They are rejected, as are copies to another
format.

**Commits** ("tcgen05.commit"). When all work that the thread has begun is done, an mbarrier object
gets one arrival. It may also be the object at the same offset in each of several blocks of the
cluster. The fences have no effect, because work is done in order anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.order.ordered_blocks import Stage, Work, ordered_blocks, without_registers
from ptx.emulate.exec.sync.bulk_copy import Pointer, ranks_named
from ptx.emulate.exec.sync.issued_copies import note_cells, note_work
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.kernel_facts import WorkerKind
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.errors import Deadlock, TensorMemoryFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.data_movement import nothing
from ptx.emulate.ops.matrix import SharedMatrix
from ptx.emulate.ops.mbarrier import mbarrier_place
from ptx.emulate.ops.warp import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.tensor_memory import HALF, LANES
from ptx.isa.model import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    SpecialRegister,
    Vector,
)

_SWIZZLES: Final = (0, 2, 4, 6)  # none, by 128, 64, 32 bytes


def tensor_address(e: Emitter, operand: Operand) -> str:
    """The name of an address in tensor memory, u32: `[taddr]`, `[taddr + 8]`, `[16]`."""
    if not isinstance(operand, Address):
        raise e.reject(f"it needs an address, not {operand}")
    if operand.base is None:
        return e.constant(operand.offset, "u32")
    if not isinstance(operand.base, Register):
        raise e.reject("an address in tensor memory comes from a register")
    base = e.temporary(e.value(operand.base, "u32"))
    return e.temporary(f"{base} + {e.constant(operand.offset, 'u32')}") if operand.offset else base


def slots(fibre: Fibre) -> Index:
    """(n,) the block of each thread."""
    return np.broadcast_to(np.asarray(fibre.place("slot"), dtype=np.intp), (fibre.n,))


def each(fibre: Fibre, value: Value) -> Index:
    """(n,) a value for each thread."""
    return np.broadcast_to(np.asarray(value), (fibre.n,)).astype(np.intp)


def one_by_one(fibre: Fibre) -> list[Fibre]:
    """Yield each thread by itself, without registers, for its asynchronous work."""
    return [fibre.subset(np.array([k], dtype=np.intp), ()) for k in range(fibre.n)]


def require_agreement(
    fibre: Fibre, group: Group, name: str, value: Value, instruction: Instruction
) -> None:
    """Raise unless all lanes of a warp have the same value.

    Raises:
        TensorMemoryFault: two differ.
    """
    grid = group.grid(fibre, name, value).reshape(-1, WARP)
    differ = (grid != grid[:, :1]).any(axis=1)
    if differ.any():
        position = int(np.argmax(differ[group.row]))
        raise TensorMemoryFault(
            f"the lanes of a warp give {instruction.text} different values of its {name}",
            fibre.where(position, instruction),
        )


def require_known_layout(fibre: Fibre, instruction: Instruction, descriptor: int) -> None:
    """A shared memory descriptor of the fifth generation. PTX ISA, "Shared memory descriptor".

    Raises:
        TensorMemoryFault: it is invalid, or has a layout that the emulator does not support.
    """
    reason = ""
    if descriptor >> 46 & 7 != 1 or descriptor >> 53 & 0xFF:
        reason = "is none: from bit 46 on stand 1, 0, 0, and from bit 53 on eight zeros"
    elif descriptor >> 52 & 1:
        reason = (
            "has an absolute address of the leading dimension, which the emulator does not know"
        )
    elif descriptor >> 61 == 1:
        reason = "swizzles 128 bytes in pieces of 32, which the emulator does not know"
    elif descriptor >> 61 not in _SWIZZLES:
        reason = f"has the swizzling {descriptor >> 61}, which there is not"
    if reason:
        raise TensorMemoryFault(
            f"the matrix descriptor {descriptor:#018x} of {instruction.text} {reason}",
            fibre.where(0, instruction),
        )


_ALLOCATION = ".cta_group::1.sync.aligned"


def allocate(
    fibre: Fibre, group: Group, columns: Value, addresses: Addresses, offset: int, site: Site
) -> bool:
    """Write where the columns are, for each warp; False if one must wait for them.

    Raises:
        Deadlock: it would wait for ever.
    """
    require_agreement(fibre, group, "columns", columns, site.instruction)
    leaders = _leaders(group)
    memory, blocks, lanes = fibre.blocks.tensor_memory, slots(fibre), fibre.lane_numbers()
    granted = memory.granted
    numbers = each(fibre, columns)
    for position in leaders.tolist():
        if lanes[position] not in granted:
            where_of_warp = fibre.where(position, site.instruction)
            column = memory.allocate(int(blocks[position]), int(numbers[position]), where_of_warp)
            if column is not None:
                granted[int(lanes[position])] = column
    if any(int(lanes[position]) not in granted for position in leaders.tolist()):
        # The lanes from other program counters have continued.
        fibre.released = fibre.exchange is not None
        if fibre.count == fibre.scheduler.alive:
            raise Deadlock(
                f"{fibre.count} threads wait for columns of tensor memory, and nobody is left to"
                " give any back",
                fibre.where(0, site.instruction),
            )
        return False
    if len(leaders):
        starts = np.array([granted.pop(int(lanes[k])) for k in leaders], dtype=np.uint32)
        targets = addresses_in(addresses.every(fibre.n)[leaders])
        store(fibre.subset(leaders, ()), targets, offset, site, starts)
    return True


def free(
    fibre: Fibre, group: Group, address: Value, columns: Value, instruction: Instruction
) -> None:
    """`tcgen05.dealloc`."""
    require_agreement(fibre, group, "address", address, instruction)
    require_agreement(fibre, group, "columns", columns, instruction)
    blocks, addresses, numbers = slots(fibre), each(fibre, address), each(fibre, columns)
    for position in _leaders(group).tolist():
        fibre.blocks.tensor_memory.free(
            int(blocks[position]),
            int(addresses[position]),
            int(numbers[position]),
            fibre.where(position, instruction),
        )


def relinquish(fibre: Fibre, group: Group) -> None:
    """`tcgen05.relinquish_alloc_permit`."""
    blocks = slots(fibre)
    for position in _leaders(group).tolist():
        fibre.blocks.tensor_memory.relinquish(int(blocks[position]))


def _leaders(group: Group) -> Index:
    """The threads that are the lowest of their warps."""
    leaders: Index = (group.mine % WARP == 0).nonzero()[0]
    return leaders


def _allocate(e: Emitter, i: Instruction) -> None:
    columns = e.temporary(e.value(i.operands[1], "u32"))
    group = sync_warp(e, i, {"columns": columns})
    addresses, offset, space = e.address(i.operands[0], i.facts.space)
    site = e.site(space, "u32", writes=True)
    call = f"{e.helper(allocate)}(f, {group}, {columns}, {addresses}, {offset}, {site})"
    e.line(f"if not {call}: return {e.here}")


def _free(e: Emitter, i: Instruction) -> None:
    address, columns = (e.temporary(e.value(operand, "u32")) for operand in i.operands)
    group = sync_warp(e, i, {"address": address, "columns": columns})
    instruction = e.scope.bind(i, "instruction")
    e.line(f"{e.helper(free)}(f, {group}, {address}, {columns}, {instruction})")


def _relinquish(e: Emitter, i: Instruction) -> None:
    e.line(f"{e.helper(relinquish)}(f, {sync_warp(e, i, {})})")


operation(
    f"tcgen05.alloc{_ALLOCATION}",
    ("b32",),
    2,
    _allocate,
    effect=Effect.SYNCS,
    modifiers=("shared::cta",),
    writes=0,
    section="tcgen05.alloc",
)
operation(
    f"tcgen05.dealloc{_ALLOCATION}",
    ("b32",),
    2,
    _free,
    effect=Effect.SYNCS,
    writes=0,
    section="tcgen05.dealloc",
)
operation(
    f"tcgen05.relinquish_alloc_permit{_ALLOCATION}",
    ("",),
    0,
    _relinquish,
    effect=Effect.SYNCS,
    writes=0,
    section="tcgen05.relinquish_alloc_permit",
)


Numbers = NDArray[np.intp]
_HALF: Final = 16  # lanes, and bits


class Movement(NamedTuple):
    """The layout of one instruction's registers, from the warp's address on.

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
    own_lane = each(fibre, warp) % 4 * WARP
    first = start >> 16
    _, warps = np.unique(group.row, return_index=True)
    lanes, columns = (reached[None] for reached in movement.reached)
    kind: WorkerKind = "stores" if movement.site.writes else "loads"
    lanes, columns = first[warps, None] + lanes, (start[warps, None] & 0xFFFF) + columns
    note_cells(fibre, kind, warps, lanes % LANES, columns, movement.site)
    fits = (first == own_lane) | (first == own_lane + _HALF) & (movement.lanes == _HALF)
    if not fits.all():
        position = int(np.argmin(fits))
        raise TensorMemoryFault(
            f"{movement.instruction.text} of warp {int(each(fibre, warp)[position])} begins at"
            f" lane {first[position]} of tensor memory: a warp reaches the lanes"
            f" {own_lane[position]} to {own_lane[position] + WARP - 1}, by 16 from the first or the"
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
    cells = _cells(fibre, group, address, warp, movement)
    read = partial(fibre.blocks.tensor_memory.read, fibre, cells.block, cells.lane)
    words = read(cells.column, movement.instruction)
    if movement.packed:
        upper = read(cells.column + 1, movement.instruction)
        words = words & np.uint32(0xFFFF) | upper << np.uint32(_HALF)
    return list(np.ascontiguousarray(words.T))


def store_cells(
    fibre: Fibre,
    group: Group,
    address: Value,
    warp: Value,
    movement: Movement,
    values: list[Value],
    late: bool,
) -> None:
    """Write the registers of each thread; `late`: when the threads wait for it."""
    cells = _cells(fibre, group, address, warp, movement)
    rows = np.stack([fibre.spread(value).astype(np.uint32) for value in values], axis=1)

    def land(part: Fibre, positions: Index | None) -> Stage | None:
        _write(
            part, cells.part(positions), movement, rows if positions is None else rows[positions]
        )
        return None

    if late:
        ordered_blocks(fibre).late_copies.tensor_stores.add(fibre, land)
    else:
        land(fibre, None)


def _write(fibre: Fibre, cells: _Cells, movement: Movement, rows: NDArray[np.uint32]) -> None:
    memory, i = fibre.blocks.tensor_memory, movement.instruction
    if not movement.packed:
        memory.write(fibre, cells.block, cells.lane, cells.column, i, rows)
        return
    memory.write(fibre, cells.block, cells.lane, cells.column, i, rows & np.uint32(0xFFFF))
    memory.write(fibre, cells.block, cells.lane, cells.column + 1, i, rows >> np.uint32(_HALF))


def _movement(e: Emitter, i: Instruction, split: int) -> str:
    shape = i.modifiers[3]
    repeats = int(i.modifiers[4][1:])
    packed = not {"pack::16b", "unpack::16b"}.isdisjoint(i.modifiers)
    lane, column = _pieces(shape, repeats, split, packed)
    lanes = WARP if shape == "32x32b" else _HALF
    site = Site(i, "tensor", "u32", 1, writes=i.modifiers[0] == "st")
    cells = np.stack([lane // _HALF * _HALF, column]).reshape(2, -1)
    both_columns = (
        np.concatenate([cells, cells + np.array([[0], [1]])], axis=1) if packed else cells
    )
    reached = np.unique(both_columns, axis=1)
    return e.scope.bind(Movement(i, lane, column, packed, lanes, site, reached), "movement")


def _split(e: Emitter, i: Instruction) -> int:
    """Return how far the columns of the second half of a warp lie from the first one's."""
    if "16x32bx2" not in i.modifiers:
        return 0
    offset = i.operands[2 if i.modifiers[0] == "ld" else 1]
    if not isinstance(offset, Immediate) or offset.value < 0:
        raise e.reject("the distance of its two halves is a constant")
    return offset.value


def _load(e: Emitter, i: Instruction) -> None:
    movement = _movement(e, i, _split(e, i))
    address = tensor_address(e, i.operands[1])
    warp = e.temporary(e.value(SpecialRegister("%warpid"), "u32"))
    group = sync_warp(e, i, {"address": address})
    registers = e.temporary(f"{e.helper(load_cells)}(f, {group}, {address}, {warp}, {movement})")
    target = i.operands[0]
    count = len(target.items) if isinstance(target, Vector) else 1
    if count != _registers(i):
        raise e.reject(f"it has {count} registers of {_registers(i)}")
    e.assign_all(target, "b32", [f"{registers}[{k}]" for k in range(count)])


def _store(e: Emitter, i: Instruction) -> None:
    movement = _movement(e, i, _split(e, i))
    address = tensor_address(e, i.operands[0])
    values = [e.temporary(value) for value in e.values(i.operands[-1], "b32")]
    if len(values) != _registers(i):
        raise e.reject(f"it has {len(values)} registers of {_registers(i)}")
    warp = e.temporary(e.value(SpecialRegister("%warpid"), "u32"))
    group = sync_warp(e, i, {"address": address})
    arguments = f"{group}, {address}, {warp}, {movement}, [{', '.join(values)}], {e.late.copies}"
    e.line(f"{e.helper(store_cells)}(f, {arguments})")


def note_wait_for(fibre: Fibre, kind: WorkerKind) -> None:
    """Report that these threads have waited."""
    for observer in fibre.blocks.order_observers:
        observer.commit_work(kind, fibre.lane_numbers())
        observer.wait_for_work(kind, fibre.lane_numbers())


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
            f"tcgen05.ld.sync.aligned.{_shape}.x{_repeats}",
            ("b32",),
            3 if _halves else 2,
            _load,
            effect=Effect.SYNCS,
            modifiers=("pack::16b",),
            section="tcgen05.ld",
        )
        operation(
            f"tcgen05.st.sync.aligned.{_shape}.x{_repeats}",
            ("b32",),
            3 if _halves else 2,
            _store,
            effect=Effect.SYNCS,
            modifiers=("unpack::16b",),
            writes=0,
            section="tcgen05.st",
        )
for _name in ("wait::ld", "wait::st"):
    operation(
        f"tcgen05.{_name}.sync.aligned",
        ("",),
        0,
        _wait,
        effect=Effect.SYNCS,
        writes=0,
        section="tcgen05.wait",
    )


_FORMS: Final = {"128x256b": (128, 32), "128x128b": (128, 16), "32x128b.warpx4": (32, 16)}
"""Rows, and bytes of each."""
_FIRST = np.zeros(1, dtype=np.int64)
_ONE = np.zeros(1, dtype=np.intp)


class RowCopy(NamedTuple):
    """One instruction, and how shared memory is read."""

    instruction: Instruction
    matrix: SharedMatrix
    cells: Site


def copy_rows(
    fibre: Fibre, row_copy: RowCopy, address: Value, descriptor: Value, late: bool
) -> None:
    """The copy of each thread, one after the other; `late`: when somebody waits for it."""
    operands = fibre.spread(address).tolist(), fibre.spread(descriptor).tolist()
    works: list[Work] = []
    for thread, start, matrix in zip(one_by_one(fibre), *operands, strict=True):
        _note(thread, row_copy, start, matrix)
        works.append(partial(_copy, thread, row_copy, start, matrix))
    if late:
        ordered_blocks(fibre).late_copies.tensor_work.add(fibre, works)
        return
    for work in works:
        work()


def _note(fibre: Fibre, row_copy: RowCopy, address: int, descriptor: int) -> None:
    """Report one thread's copy, which begins now."""
    if fibre.blocks.order_observers:
        pieces = row_copy.matrix.pieces(np.array([descriptor], dtype=np.uint64), _FIRST)
        note_work(fibre, "work", _ONE, pieces, row_copy.matrix.site)
        columns = (address & 0xFFFF) + np.arange(row_copy.matrix.k_bytes // 4)
        halves = np.arange(0, LANES, HALF)[None, :, None]
        note_cells(fibre, "work", _ONE, halves, columns, row_copy.cells)


def _copy(fibre: Fibre, row_copy: RowCopy, address: int, descriptor: int) -> None:
    if address >> 16:
        raise TensorMemoryFault(
            f"{row_copy.instruction.text} begins at lane {address >> 16} of tensor memory,"
            " not at 0",
            fibre.where(0, row_copy.instruction),
        )
    require_known_layout(fibre, row_copy.instruction, descriptor)
    descriptors = np.array([descriptor], dtype=np.uint64)
    words = row_copy.matrix.load(fibre, _ONE, descriptors, _FIRST)
    rows = np.tile(words, (1, LANES // row_copy.matrix.rows, 1))
    lane = np.arange(LANES)[None, :, None]
    column = (address & 0xFFFF) + np.arange(words.shape[2])
    fibre.blocks.tensor_memory.write(fibre, slots(fibre), lane, column, row_copy.instruction, rows)


def _emit(e: Emitter, i: Instruction) -> None:
    rows, nbytes = _FORMS[".".join(i.modifiers[2:])]
    site = Site(i, "shared", "u32", 4, writes=False)
    e.sites.append(site)
    cells = Site(i, "tensor", "u32", 1, writes=True)
    matrix = SharedMatrix("f32", rows, False, site, nbytes)
    row_copy = e.scope.bind(RowCopy(i, matrix, cells), "copy")
    address = tensor_address(e, i.operands[0])
    descriptor = e.temporary(e.value(i.operands[1], "u64"))
    e.line(f"{e.helper(copy_rows)}(f, {row_copy}, {address}, {descriptor}, {e.late.copies})")


for _form in _FORMS:
    operation(
        f"tcgen05.cp.cta_group::1.{_form}",
        ("",),
        2,
        _emit,
        effect=Effect.MEMORY,
        writes=0,
        section="tcgen05.cp",
    )


def commit(
    fibre: Fibre,
    late: bool,
    addresses: Addresses,
    offset: int,
    site: Site,
    ranks: Value | None = None,
) -> None:
    """Arrive when all is done: at once, or `late`, when a thread waits for the arrival."""
    for part, pointer in _places(fibre, Pointer(addresses, offset, site), ranks):
        _note_commit(part, pointer)
        if not late:
            _arrive(part, pointer)
            continue
        copies, threads = ordered_blocks(fibre).late_copies, without_registers(part)
        work = copies.tensor_work.committed(threads)
        copies.add(threads, pointer, work, partial(_arrive, threads, pointer))


def _places(fibre: Fibre, barrier: Pointer, ranks: Value | None) -> Iterator[tuple[Fibre, Pointer]]:
    if ranks is None:
        yield fibre, barrier
        return
    for rank, chosen in ranks_named(fibre, ranks):
        yield fibre.subset(chosen, ()), barrier.in_block(fibre, chosen, rank)


def _note_commit(fibre: Fibre, pointer: Pointer) -> None:
    """Report a commit: it releases all work when the work is done."""
    observers = fibre.blocks.order_observers
    if observers:
        objects = mbarriers_of(fibre.blocks).places(
            fibre, pointer.addresses, pointer.offset, pointer.site
        )
        for observer in observers:
            observer.arrive(fibre.lane_numbers(), "mbarrier", objects)
            observer.hand_over_work(fibre.lane_numbers(), objects)


def _arrive(fibre: Fibre, pointer: Pointer) -> None:
    barriers = mbarriers_of(fibre.blocks)
    barrier = pointer.addresses, pointer.offset, pointer.site
    barriers.arrive(fibre, *barrier, np.uint32(1), is_noted=True)


def _commit(e: Emitter, i: Instruction) -> None:
    is_multicast = "multicast::cluster" in i.modifiers
    if len(i.operands) != 1 + is_multicast:
        raise e.reject("with .multicast::cluster, and only then, it takes a mask of blocks")
    if is_multicast and not i.facts.reaches_cluster:
        raise e.reject("it tells several blocks by addresses of .shared::cluster")
    location = mbarrier_place(e, i, i.operands[0])
    ranks = f", {e.temporary(e.value(i.operands[1], 'u16'))}" if is_multicast else ""
    e.line(f"{e.helper(commit)}(f, {e.late.copies}, {location}{ranks})")


operation(
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one",
    ("b64",),
    (1, 2),
    _commit,
    effect=Effect.MEMORY,
    modifiers=("shared::cluster", "multicast::cluster"),
    writes=0,
    section="tcgen05.commit",
)
for _name in ("before_thread_sync", "after_thread_sync"):
    operation(
        f"tcgen05.fence::{_name}",
        ("",),
        0,
        nothing,
        effect=Effect.MEMORY,
        writes=0,
        section="tcgen05.fence",
    )
