"""Bulk reductions, and stores and reductions that an mbarrier object counts.

PTX ISA, "cp.reduce.async.bulk", "st.async", "red.async", "st.bulk". What becomes of subnormals and
NaNs in bulk sums of f32 and f64 the ISA does not say; here it is as an H100 showed: the first are
kept.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ptx.emulate.access.memory_access import store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.exec.order.ordered_blocks import Stage, chosen, ordered_blocks, without_registers
from ptx.emulate.exec.sync.bulk_copy import Amounts, Place, clear_bulk, deliver, load_pieces
from ptx.emulate.exec.sync.issued_copies import note_bulk, note_sent
from ptx.emulate.model.addresses import Index, addresses_in
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of, width_of
from ptx.emulate.ops.asynchronous.bulk_copy import SIGNAL, place, signal
from ptx.emulate.ops.asynchronous.late_copy import combine_later, store_later
from ptx.emulate.ops.memory.atomic import atomic
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Immediate, Instruction

_SECTION = "cp.reduce.async.bulk"
_HINT = "L2::cache_hint"
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
    fibre: Fibre, target: Place, source: Place, nbytes: Value, name: str, ptx_type: str
) -> None:
    """`cp.reduce`: combine elements into memory instead, as `red` does."""
    amounts = Amounts(fibre, nbytes, target.site.instruction)
    if not len(amounts.thread):
        return
    data = load_pieces(fibre.subset(amounts.thread, ()), amounts, source, fibre.n)
    values = np.stack(data, axis=1).view(target.site.dtype).reshape(-1)
    thread, start = amounts.elements(target.site.nbytes)
    where = addresses_in(target.every(fibre.n)[thread] + start)
    part = fibre.subset(thread, ())
    atomic(
        part, where, 0, target.site, name, ptx_type, (values,), values, False,
        keeps_subnormals=True,
    )  # fmt: skip


def reduce_bulk_later(
    fibre: Fibre, target: Place, source: Place, nbytes: Value, name: str, ptx_type: str,
    barrier: Place | None = None,
) -> None:  # fmt: skip
    """`cp.reduce.async.bulk`: for an object that counts bytes, or a group."""
    count = fibre.n
    if barrier is not None:
        threads = without_registers(fibre)
        ordered_blocks(fibre).late_copies.add(
            fibre,
            barrier,
            partial(reduce_bulk, threads, target, source, nbytes, name, ptx_type),
            partial(deliver, threads, barrier, nbytes),
        )
        return

    def land(part: Fibre, positions: Index | None) -> Stage | None:
        to, of = target.part(count, positions), source.part(count, positions)
        ordered_blocks(fibre).late_stores.publish()
        reduce_bulk(part, to, of, chosen(nbytes, positions), name, ptx_type)
        return None

    ordered_blocks(fibre).late_copies.bulk.add(fibre, land)


def _operation_of(i: Instruction) -> str:
    return next(word for word in i.modifiers if word in _IN_BLOCKS)


def _reduce(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    to = facts_of(i).space
    target, source, nbytes, *rest = i.operands
    if len(rest) != (SIGNAL in i.modifiers) + (_HINT in i.modifiers):
        raise e.refuse("its operands do not fit")
    there = place(e, target, to, _STORED.get(ptx_type, ptx_type), 1, writes=True)
    here = place(e, source, "shared", "u64", 2, writes=False)
    amount = e.temporary(e.value(nbytes, "u32"))
    how = f"{_operation_of(i)!r}, {ptx_type!r}"
    barrier = signal(e, rest[0]) if to == "shared" else "None"
    e.line(f"{e.helper(note_bulk)}(f, {there}, {here}, {amount}, {barrier})")
    if e.late.copies:
        every = f"{there}, {here}, {amount}, {how}, {barrier}"
        e.line(f"{e.helper(reduce_bulk_later)}(f, {every})")
        return
    e.line(f"{e.helper(reduce_bulk)}(f, {there}, {here}, {amount}, {how})")
    if to == "shared":
        e.line(f"{e.helper(deliver)}(f, {barrier}, {amount})")


def _store_and_signal(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    values = e.values(i.operands[1], ptx_type)
    if len(values) != facts_of(i).vector:
        raise e.refuse("its vector does not fit")
    where, offset, _ = e.address(i.operands[0], "shared")
    site = e.site("shared", ptx_type, len(values), writes=True)
    nbytes = e.constant(len(values) * width_of(kind_of(ptx_type)), "u32")
    barrier, data = signal(e, i.operands[2]), ", ".join(values)
    there = f"{e.helper(Place)}({where}, {offset}, {site})"
    e.line(f"{e.helper(note_sent)}(f, {there}, {barrier})")
    if e.late.copies:
        e.line(f"{e.helper(store_later)}(f, {there}, {nbytes}, {barrier}, {data})")
        return
    e.line(f"{e.helper(store)}(f, {where}, {offset}, {site}, {data})")
    e.line(f"{e.helper(deliver)}(f, {barrier}, {nbytes})")


def _reduce_and_signal(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    value = e.value(i.operands[1], ptx_type)
    where, offset, _ = e.address(i.operands[0], "shared")
    site = e.site("shared", ptx_type, writes=True)
    name = f"{_operation_of(i)!r}, {ptx_type!r}"
    nbytes, barrier = e.constant(width_of(kind_of(ptx_type)), "u32"), signal(e, i.operands[2])
    there = f"{e.helper(Place)}({where}, {offset}, {site})"
    e.line(f"{e.helper(note_sent)}(f, {there}, {barrier})")
    if e.late.copies:
        e.line(f"{e.helper(combine_later)}(f, {there}, {nbytes}, {barrier}, {name}, {value})")
        return
    how = f"{name}, ({value},), {value}, False"
    e.line(f"{e.helper(atomic)}(f, {where}, {offset}, {site}, {how})")
    e.line(f"{e.helper(deliver)}(f, {barrier}, {nbytes})")


def _clear(e: Emitter, i: Instruction) -> None:
    """`st.bulk`: only zeros can be stored."""
    initial = i.operands[2]
    if not isinstance(initial, Immediate) or initial.value != 0:
        raise e.refuse("it stores only zeros")
    where, offset, space = e.address(i.operands[0], facts_of(i).space)
    target = f"{e.helper(Place)}({where}, {offset}, {e.site(space, 'u64', writes=True)})"
    e.line(f"{e.helper(clear_bulk)}(f, {target}, {e.value(i.operands[1], 'u64')})")


for _name, _types in _IN_BLOCKS.items():
    operation(
        f"cp.reduce.async.bulk.shared::cluster.shared::cta.{SIGNAL}.{_name}", _types, 4, _reduce,
        effect=Effect.MEMORY, writes=0, section=_SECTION,
    )  # fmt: skip
    operation(
        f"red.async.relaxed.cluster.shared::cluster.{SIGNAL}.{_name}", _types, 3,
        _reduce_and_signal, effect=Effect.MEMORY, writes=0, section="red.async",
    )  # fmt: skip
for _name, _types in _IN_GLOBAL.items():
    for _middle in ("", f".{_HINT}"):
        operation(
            f"cp.reduce.async.bulk.global.shared::cta.bulk_group{_middle}.{_name}", _types, (3, 4),
            _reduce, effect=Effect.MEMORY, writes=0, section=_SECTION,
        )  # fmt: skip
operation(
    "st.async", ("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"), 3, _store_and_signal,
    effect=Effect.MEMORY, writes=0, modifiers=("weak", "shared::cluster", SIGNAL, "v2", "v4"),
    section="st.async",
)  # fmt: skip
operation(
    "st.bulk", ("",), 3, _clear, effect=Effect.MEMORY, writes=0, modifiers=("weak", "shared::cta"),
    section="st.bulk",
)  # fmt: skip
