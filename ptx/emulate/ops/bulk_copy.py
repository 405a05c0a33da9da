"""Bulk copies and reductions, and stores and reductions that an mbarrier object counts.

PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk", "st.async", "red.async", "st.bulk". The ISA does
not define subnormals and NaNs in bulk sums of f32 and f64. The emulator follows an H100: subnormals
are preserved. In an ordered launch a copy reads its source when it lands, and its result is not
visible before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ptx.emulate.access.memory_access import store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.exec.order.ordered_blocks import Stage, chosen, ordered_blocks, without_registers
from ptx.emulate.exec.sync.bulk_copy import (
    Amounts,
    BulkCopy,
    Pointer,
    clear_bulk,
    copies_to_blocks,
    copy_bulk,
    copy_masked,
    copy_to_blocks,
    deliver,
    load_pieces,
    require_cluster,
)
from ptx.emulate.exec.sync.issued_copies import (
    note_bulk,
    note_bulk_to_blocks,
    note_sent,
)
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of, width_of
from ptx.emulate.ops.async_copy import group_operation
from ptx.emulate.ops.atomic import atomic
from ptx.emulate.ops.data_movement import nothing
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Immediate, Instruction, Operand


def arrive_later(
    fibre: Fibre, addresses: Addresses, offset: int, site: Site, *, counted: bool
) -> None:
    """`cp.async.mbarrier.arrive`: when the thread's copies have landed.

    `counted`: the object waits for this arrival already, as with `.noinc`.
    """
    blocks = ordered_blocks(fibre)
    barriers, groups = mbarriers_of(blocks), blocks.late_copies.copies
    threads = without_registers(fibre)
    if not counted:
        barriers.await_arrivals(fibre, addresses, offset, site)
    blocks.late_copies.add(
        fibre,
        Pointer(addresses, offset, site),
        partial(groups.wait_all, threads),
        lambda: barriers.arrive(threads, addresses, offset, site, np.uint32(1)),
    )


def deliver_later(
    fibre: Fibre, barrier: Pointer, nbytes: Value, work: Callable[..., object], *arguments: object
) -> None:
    """Do `work(fibre, *arguments)` when a thread waits for the phase that counts its bytes."""
    threads = without_registers(fibre)
    ordered_blocks(fibre).late_copies.add(
        fibre,
        barrier,
        partial(work, threads, *arguments),
        partial(deliver, threads, barrier, nbytes),
    )


def write_later(
    fibre: Fibre,
    work: Callable[..., object],
    target: Pointer,
    source: Pointer,
    *values: Value,
) -> None:
    """Do work of a bulk group, which reads and writes, when the group is waited for."""
    count = fibre.n

    def land(part: Fibre, positions: Index | None) -> Stage | None:
        to, of = target.part(count, positions), source.part(count, positions)
        ordered_blocks(fibre).late_stores.publish()
        work(part, to, of, *(chosen(value, positions) for value in values))
        return None

    ordered_blocks(fibre).late_copies.bulk.add(fibre, land)


def copy_to_blocks_later(
    fibre: Fibre,
    target: Pointer,
    source: Pointer,
    nbytes: Value,
    barrier: Pointer,
    ranks: Value,
) -> None:
    """`.multicast::cluster`: in each block when its own object is waited for."""
    for block_copy in copies_to_blocks(fibre, target, source, nbytes, barrier, ranks):
        every = block_copy.target, block_copy.source, block_copy.nbytes
        deliver_later(block_copy.fibre, block_copy.barrier, block_copy.nbytes, copy_bulk, *every)


def copy_back_later(fibre: Fibre, target: Pointer, source: Pointer, nbytes: Value) -> None:
    """To global memory: read when the group's reads are waited for, written when all of it is."""
    count = fibre.n

    def read(part: Fibre, positions: Index | None) -> Stage | None:
        to, of = target.part(count, positions), source.part(count, positions)
        bulk_copy = BulkCopy(part, to, of, chosen(nbytes, positions))

        def write(_: Fibre, __: Index | None) -> Stage | None:
            ordered_blocks(fibre).late_stores.publish()
            bulk_copy.write()
            return None

        return write

    ordered_blocks(fibre).late_copies.bulk.add(fibre, read)


_operation = partial(operation, section="cp.async.bulk")
_HINT = "L2::cache_hint"
SIGNAL = "mbarrier::complete_tx::bytes"
_MULTICAST = "multicast::cluster"


def place(e: Emitter, operand: Operand, space: str, kind: str, count: int, *, writes: bool) -> str:
    """The name of a `Pointer`: an operand that is an address in a space."""
    addresses, offset, space_of_operand = e.address(operand, space)
    if space_of_operand != space:
        raise e.reject(f"its address is not in {space} memory")
    site = e.site(space, kind, count, writes=writes)
    return e.temporary(f"{e.helper(Pointer)}({addresses}, {offset}, {site})")


def signal(e: Emitter, operand: Operand) -> str:
    """The `Pointer` of an mbarrier object that counts bytes."""
    return place(e, operand, "shared", "u64", 1, writes=True)


def _work(
    e: Emitter, barrier: str, nbytes: str, function: Callable[..., object], arguments: str
) -> None:
    """Call a function, and count the bytes; in an ordered launch when they are waited for."""
    name = e.helper(function)
    if e.late.copies:
        e.line(f"{e.helper(deliver_later)}(f, {barrier}, {nbytes}, {name}, {arguments})")
        return
    e.line(f"{name}(f, {arguments})")
    e.line(f"{e.helper(deliver)}(f, {barrier}, {nbytes})")


def _operands(i: Instruction) -> list[Operand]:
    """Return all operands except the cache policy."""
    operands = list(i.operands)
    if _HINT in i.modifiers:
        operands.pop(-2 if "cp_mask" in i.modifiers else -1)
    return operands


def _ends(e: Emitter, i: Instruction) -> tuple[str, str]:
    """The spaces of the target and the source."""
    spaces = i.facts.spaces
    if len(spaces) != 2 or spaces == ("global", "global"):
        raise e.reject("it needs the spaces of its target and its source")
    return spaces[0], spaces[1]


def _copy(e: Emitter, i: Instruction) -> None:
    """From global or the block's memory to a block's memory; an mbarrier object there counts it."""
    operands = _operands(i)
    is_multicast = _MULTICAST in i.modifiers
    to, of = _ends(e, i)
    if to != "shared" or len(operands) != 4 + is_multicast:
        raise e.reject("its operands do not fit")
    target = place(e, operands[0], to, "u64", 2, writes=True)
    if of == "shared":
        e.line(f"{e.helper(require_cluster)}(f, {target}.site)")
    source = place(e, operands[1], of, "u64", 2, writes=False)
    nbytes = e.temporary(e.value(operands[2], "u32"))
    barrier = signal(e, operands[3])
    if is_multicast:
        ranks = e.value(operands[4], "u16")
        every = f"{target}, {source}, {nbytes}, {barrier}, {ranks}"
        e.line(f"{e.helper(note_bulk_to_blocks)}(f, {every})")
        e.line(f"{e.helper(copy_to_blocks_later if e.late.copies else copy_to_blocks)}(f, {every})")
        return
    e.line(f"{e.helper(note_bulk)}(f, {target}, {source}, {nbytes}, {barrier})")
    _work(e, barrier, nbytes, copy_bulk, f"{target}, {source}, {nbytes}")


def _copy_back(e: Emitter, i: Instruction) -> None:
    """The block's memory to global memory."""
    operands = _operands(i)
    masked = "cp_mask" in i.modifiers
    if _ends(e, i) != ("global", "shared") or len(operands) != 3 + masked:
        raise e.reject("its operands do not fit")
    target = place(e, operands[0], "global", "u64", 2, writes=True)
    source = place(e, operands[1], "shared", "u64", 2, writes=False)
    nbytes = e.temporary(e.value(operands[2], "u32"))
    e.line(f"{e.helper(note_bulk)}(f, {target}, {source}, {nbytes})")
    if masked:
        byte, mask = e.site("global", "u8", writes=True), e.value(operands[3], "u16")
        _write(e, f"{target}, {source}, {nbytes}, {mask}", copy_masked, byte=byte)
        return
    function = e.helper(copy_back_later if e.late.copies else copy_bulk)
    e.line(f"{function}(f, {target}, {source}, {nbytes})")


def _write(e: Emitter, arguments: str, function: Callable[..., object], **constants: str) -> None:
    """Call a function that writes global memory; in an ordered launch when its group is awaited."""
    keywords = "".join(f", {name}={text}" for name, text in constants.items())
    if not e.late.copies:
        e.line(f"{e.helper(function)}(f, {arguments}{keywords})")
        return
    work = f"{e.helper(partial)}({e.helper(function)}{keywords})"
    e.line(f"{e.helper(write_later)}(f, {work}, {arguments})")


_operation(
    "cp.async.bulk",
    ("",),
    (4, 5, 6),
    _copy,
    effect=Effect.MEMORY,
    writes=0,
    modifiers=("shared::cluster", "shared::cta", "global", SIGNAL, _MULTICAST, _HINT),
)
_operation(
    "cp.async.bulk.global.shared::cta.bulk_group",
    ("",),
    (3, 4, 5),
    _copy_back,
    effect=Effect.MEMORY,
    writes=0,
    modifiers=(_HINT, "cp_mask"),
)
operation(
    "cp.async.bulk.prefetch.L2",
    ("",),
    (2, 3),
    nothing,
    writes=0,
    modifiers=("global", _HINT),
    section="cp.async.bulk.prefetch",
)
for _name, _arity, _words in (("commit_group", 0, ()), ("wait_group", 1, ("read",))):
    _operation(
        f"cp.async.bulk.{_name}",
        ("",),
        _arity,
        group_operation("bulk"),
        effect=Effect.MEMORY,
        writes=0,
        modifiers=_words,
    )


_REDUCE_SECTION = "cp.reduce.async.bulk"
_STORED = {"f16": "u16", "bf16": "u16"}
_IN_BLOCKS = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"), "inc": ("u32",),
    "dec": ("u32",), "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip
_IN_GLOBAL = {
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"), "inc": ("u32",), "dec": ("u32",),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "add.noftz": ("f16", "bf16"), "and": ("b32", "b64"), "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}  # fmt: skip


def reduce_bulk(
    fibre: Fibre,
    target: Pointer,
    source: Pointer,
    nbytes: Value,
    name: str,
    ptx_type: str,
) -> None:
    """`cp.reduce`: combine elements into memory instead, as `red` does."""
    amounts = Amounts(fibre, nbytes, target.site.instruction)
    if not len(amounts.thread):
        return
    data = load_pieces(fibre.subset(amounts.thread, ()), amounts, source, fibre.n)
    values = np.stack(data, axis=1).view(target.site.dtype).reshape(-1)
    thread, start = amounts.elements(target.site.nbytes)
    addresses = addresses_in(target.every(fibre.n)[thread] + start)
    part = fibre.subset(thread, ())
    atomic(
        part,
        addresses,
        0,
        target.site,
        name,
        ptx_type,
        (values,),
        values,
        False,
        keeps_subnormals=True,
    )


def _operation_of(i: Instruction) -> str:
    return next(word for word in i.modifiers if word in _IN_BLOCKS)


def _reduce(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    to = i.facts.space
    target, source, nbytes, *remaining = i.operands
    if len(remaining) != (SIGNAL in i.modifiers) + (_HINT in i.modifiers):
        raise e.reject("its operands do not fit")
    target_pointer = place(e, target, to, _STORED.get(ptx_type, ptx_type), 1, writes=True)
    if to == "shared":
        e.line(f"{e.helper(require_cluster)}(f, {target_pointer}.site)")
    source_pointer = place(e, source, "shared", "u64", 2, writes=False)
    amount = e.temporary(e.value(nbytes, "u32"))
    every, name = f"{target_pointer}, {source_pointer}, {amount}", repr(_operation_of(i))
    barrier = signal(e, remaining[0]) if to == "shared" else "None"
    e.line(f"{e.helper(note_bulk)}(f, {every}, {barrier})")
    if to == "shared":
        _work(e, barrier, amount, reduce_bulk, f"{every}, {name}, {ptx_type!r}")
    else:
        _write(e, every, reduce_bulk, name=name, ptx_type=repr(ptx_type))


def _store_and_signal(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    values = e.values(i.operands[1], ptx_type)
    if len(values) != i.facts.vector:
        raise e.reject("its vector does not fit")
    addresses, offset, _ = e.address(i.operands[0], "shared")
    site = e.site("shared", ptx_type, len(values), writes=True)
    e.line(f"{e.helper(require_cluster)}(f, {site})")
    nbytes = e.constant(len(values) * width_of(kind_of(ptx_type)), "u32")
    barrier, data = signal(e, i.operands[2]), ", ".join(values)
    target_pointer = f"{e.helper(Pointer)}({addresses}, {offset}, {site})"
    e.line(f"{e.helper(note_sent)}(f, {target_pointer}, {barrier})")
    _work(e, barrier, nbytes, store, f"{addresses}, {offset}, {site}, {data}")


def _reduce_and_signal(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    value = e.value(i.operands[1], ptx_type)
    addresses, offset, _ = e.address(i.operands[0], "shared")
    site = e.site("shared", ptx_type, writes=True)
    e.line(f"{e.helper(require_cluster)}(f, {site})")
    name = f"{_operation_of(i)!r}, {ptx_type!r}"
    nbytes, barrier = e.constant(width_of(kind_of(ptx_type)), "u32"), signal(e, i.operands[2])
    target_pointer = f"{e.helper(Pointer)}({addresses}, {offset}, {site})"
    e.line(f"{e.helper(note_sent)}(f, {target_pointer}, {barrier})")
    arguments = f"{name}, ({value},), {value}, False"
    _work(e, barrier, nbytes, atomic, f"{addresses}, {offset}, {site}, {arguments}")


def _clear(e: Emitter, i: Instruction) -> None:
    """`st.bulk`: only zeros can be stored."""
    initial = i.operands[2]
    if not isinstance(initial, Immediate) or initial.value != 0:
        raise e.reject("it stores only zeros")
    addresses, offset, space = e.address(i.operands[0], i.facts.space)
    target = f"{e.helper(Pointer)}({addresses}, {offset}, {e.site(space, 'u64', writes=True)})"
    e.line(f"{e.helper(clear_bulk)}(f, {target}, {e.value(i.operands[1], 'u64')})")


for _name, _types in _IN_BLOCKS.items():
    operation(
        f"cp.reduce.async.bulk.shared::cluster.shared::cta.{SIGNAL}.{_name}",
        _types,
        4,
        _reduce,
        effect=Effect.MEMORY,
        writes=0,
        section=_REDUCE_SECTION,
    )
    operation(
        f"red.async.relaxed.cluster.shared::cluster.{SIGNAL}.{_name}",
        _types,
        3,
        _reduce_and_signal,
        effect=Effect.MEMORY,
        writes=0,
        section="red.async",
    )
for _name, _types in _IN_GLOBAL.items():
    for _middle in ("", f".{_HINT}"):
        operation(
            f"cp.reduce.async.bulk.global.shared::cta.bulk_group{_middle}.{_name}",
            _types,
            (3, 4),
            _reduce,
            effect=Effect.MEMORY,
            writes=0,
            section=_REDUCE_SECTION,
        )
operation(
    "st.async",
    ("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"),
    3,
    _store_and_signal,
    effect=Effect.MEMORY,
    writes=0,
    modifiers=("weak", "shared::cluster", SIGNAL, "v2", "v4"),
    section="st.async",
)
operation(
    "st.bulk",
    ("",),
    3,
    _clear,
    effect=Effect.MEMORY,
    writes=0,
    modifiers=("weak", "shared::cta"),
    section="st.bulk",
)
