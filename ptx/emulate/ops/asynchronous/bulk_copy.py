"""Bulk copies between global and shared memory. PTX ISA, "cp.async.bulk"."""

from __future__ import annotations

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.bulk_copy import Place, copy_bulk, copy_masked, copy_to_blocks, deliver
from ptx.emulate.exec.sync.issued_copies import (
    note_bulk,
    note_bulk_to_blocks,
    note_commit,
    note_wait,
)
from ptx.emulate.ops.asynchronous.late_copy import (
    copy_back_later,
    copy_bulk_later,
    copy_masked_later,
    copy_to_blocks_later,
)
from ptx.emulate.ops.groups import group_operation
from ptx.emulate.ops.nothing import nothing
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Immediate, Instruction, Operand

_SECTION = "cp.async.bulk"
_HINT = "L2::cache_hint"
SIGNAL = "mbarrier::complete_tx::bytes"
_MULTICAST = "multicast::cluster"


def place(e: Emitter, operand: Operand, space: str, kind: str, count: int, *, writes: bool) -> str:
    """The name of a `Place`: an operand that is an address in a space."""
    where, offset, found = e.address(operand, space)
    if found != space:
        raise e.refuse(f"its address is not in {space} memory")
    site = e.site(space, kind, count, writes=writes)
    return e.temporary(f"{e.helper(Place)}({where}, {offset}, {site})")


def signal(e: Emitter, operand: Operand) -> str:
    """The `Place` of an mbarrier object that counts bytes."""
    return place(e, operand, "shared", "u64", 1, writes=True)


def _operands(i: Instruction) -> list[Operand]:
    """All but the cache policy."""
    operands = list(i.operands)
    if _HINT in i.modifiers:
        operands.pop(-2 if "cp_mask" in i.modifiers else -1)
    return operands


def _ends(e: Emitter, i: Instruction) -> tuple[str, str]:
    """The spaces of the target and the source."""
    spaces = facts_of(i).spaces
    if len(spaces) != 2 or spaces == ("global", "global"):
        raise e.refuse("it needs the spaces of its target and its source")
    return spaces[0], spaces[1]


def _copy(e: Emitter, i: Instruction) -> None:
    """From global or the block's memory to a block's memory; an mbarrier object there counts it."""
    operands = _operands(i)
    many = _MULTICAST in i.modifiers
    to, of = _ends(e, i)
    if to != "shared" or len(operands) != 4 + many:
        raise e.refuse("its operands do not fit")
    target = place(e, operands[0], to, "u64", 2, writes=True)
    source = place(e, operands[1], of, "u64", 2, writes=False)
    nbytes = e.temporary(e.value(operands[2], "u32"))
    barrier = signal(e, operands[3])
    if many:
        ranks = e.value(operands[4], "u16")
        every = f"{target}, {source}, {nbytes}, {barrier}, {ranks}"
        e.line(f"{e.helper(note_bulk_to_blocks)}(f, {every})")
        e.line(f"{e.helper(copy_to_blocks_later if e.late.copies else copy_to_blocks)}(f, {every})")
        return
    e.line(f"{e.helper(note_bulk)}(f, {target}, {source}, {nbytes}, {barrier})")
    if e.late.copies:
        e.line(f"{e.helper(copy_bulk_later)}(f, {target}, {source}, {nbytes}, {barrier})")
        return
    e.line(f"{e.helper(copy_bulk)}(f, {target}, {source}, {nbytes})")
    e.line(f"{e.helper(deliver)}(f, {barrier}, {nbytes})")


def _copy_back(e: Emitter, i: Instruction) -> None:
    """The block's memory to global memory."""
    operands = _operands(i)
    masked = "cp_mask" in i.modifiers
    if _ends(e, i) != ("global", "shared") or len(operands) != 3 + masked:
        raise e.refuse("its operands do not fit")
    target = place(e, operands[0], "global", "u64", 2, writes=True)
    source = place(e, operands[1], "shared", "u64", 2, writes=False)
    nbytes = e.temporary(e.value(operands[2], "u32"))
    e.line(f"{e.helper(note_bulk)}(f, {target}, {source}, {nbytes})")
    if masked:
        byte = e.site("global", "u8", writes=True)
        mask = e.value(operands[3], "u16")
        every = f"{target}, {source}, {nbytes}, {mask}, {byte}"
        e.line(f"{e.helper(copy_masked_later if e.late.copies else copy_masked)}(f, {every})")
        return
    function = e.helper(copy_back_later if e.late.copies else copy_bulk)
    e.line(f"{function}(f, {target}, {source}, {nbytes})")


def _commit(e: Emitter, i: Instruction) -> None:
    e.line(f"{e.helper(note_commit)}(f, bulk=True)")
    group_operation("bulk")(e, i)


def _wait(e: Emitter, i: Instruction) -> None:
    count = i.operands[0]
    if not isinstance(count, Immediate):
        raise e.refuse("the number of groups is a constant")
    reads = "read" in i.modifiers
    e.line(f"{e.helper(note_wait)}(f, {count.value}, bulk=True, reads_alone={reads})")
    group_operation("bulk")(e, i)


operation(
    "cp.async.bulk", ("",), (4, 5, 6), _copy, effect=Effect.MEMORY, writes=0,
    modifiers=("shared::cluster", "shared::cta", "global", SIGNAL, _MULTICAST, _HINT),
    section=_SECTION,
)  # fmt: skip
operation(
    "cp.async.bulk.global.shared::cta.bulk_group", ("",), (3, 4, 5), _copy_back,
    effect=Effect.MEMORY, writes=0, modifiers=(_HINT, "cp_mask"), section=_SECTION,
)  # fmt: skip
operation(
    "cp.async.bulk.prefetch.L2", ("",), (2, 3), nothing, writes=0, modifiers=("global", _HINT),
    section="cp.async.bulk.prefetch",
)  # fmt: skip
operation(
    "cp.async.bulk.commit_group", ("",), 0, _commit, effect=Effect.MEMORY, writes=0,
    section=_SECTION,
)  # fmt: skip
operation(
    "cp.async.bulk.wait_group", ("",), 1, _wait, effect=Effect.MEMORY, writes=0,
    modifiers=("read",), section=_SECTION,
)  # fmt: skip
