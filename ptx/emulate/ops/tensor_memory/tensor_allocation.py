"""Columns of tensor memory, asked for and given back by a warp. PTX ISA, "tcgen05.alloc".

The lowest lane of a warp does it for all. One that asks for more than is free executes the
instruction again until another warp of the block has given some back.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.access.memory_access import store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.errors import Deadlock
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.tensor_memory.tensor_operand import each, require_agreement, slots
from ptx.emulate.ops.warp.lane_sync import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Instruction

_FIRST = ".cta_group::1.sync.aligned"


def allocate(
    fibre: Fibre, group: Group, columns: Value, where: Addresses, offset: int, site: Site,
) -> bool:  # fmt: skip
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
            place = fibre.where(position, site.instruction)
            found = memory.allocate(int(blocks[position]), int(numbers[position]), place)
            if found is not None:
                granted[int(lanes[position])] = found
    if any(int(lanes[position]) not in granted for position in leaders.tolist()):
        # The lanes that came from other places have gone on.
        fibre.released = fibre.exchange is not None
        if fibre.count == fibre.scheduler.alive:
            raise Deadlock(
                f"{fibre.count} threads wait for columns of tensor memory, and nobody is left to"
                " give any back",
                fibre.where(0, site.instruction),
            )
        return False
    if len(leaders):
        addresses = np.array([granted.pop(int(lanes[k])) for k in leaders], dtype=np.uint32)
        there = addresses_in(where.every(fibre.n)[leaders])
        store(fibre.subset(leaders, ()), there, offset, site, addresses)
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
            int(blocks[position]), int(addresses[position]), int(numbers[position]),
            fibre.where(position, instruction),
        )  # fmt: skip


def relinquish(fibre: Fibre, group: Group) -> None:
    """`tcgen05.relinquish_alloc_permit`."""
    blocks = slots(fibre)
    for position in _leaders(group).tolist():
        fibre.blocks.tensor_memory.relinquish(int(blocks[position]))


def _leaders(group: Group) -> Index:
    """The threads that are the lowest of their warps."""
    found: Index = (group.mine % WARP == 0).nonzero()[0]
    return found


def _allocate(e: Emitter, i: Instruction) -> None:
    columns = e.temporary(e.value(i.operands[1], "u32"))
    group = sync_warp(e, i, {"columns": columns})
    where, offset, space = e.address(i.operands[0], facts_of(i).space)
    site = e.site(space, "u32", writes=True)
    call = f"{e.helper(allocate)}(f, {group}, {columns}, {where}, {offset}, {site})"
    e.line(f"if not {call}: return {e.here}")


def _free(e: Emitter, i: Instruction) -> None:
    address, columns = (e.temporary(e.value(operand, "u32")) for operand in i.operands)
    group = sync_warp(e, i, {"address": address, "columns": columns})
    instruction = e.scope.bind(i, "instruction")
    e.line(f"{e.helper(free)}(f, {group}, {address}, {columns}, {instruction})")


def _relinquish(e: Emitter, i: Instruction) -> None:
    e.line(f"{e.helper(relinquish)}(f, {sync_warp(e, i, {})})")


operation(
    f"tcgen05.alloc{_FIRST}", ("b32",), 2, _allocate, effect=Effect.SYNCS,
    modifiers=("shared::cta",), writes=0, section="tcgen05.alloc",
)  # fmt: skip
operation(
    f"tcgen05.dealloc{_FIRST}", ("b32",), 2, _free, effect=Effect.SYNCS, writes=0,
    section="tcgen05.dealloc",
)  # fmt: skip
operation(
    f"tcgen05.relinquish_alloc_permit{_FIRST}", ("",), 0, _relinquish, effect=Effect.SYNCS,
    writes=0, section="tcgen05.relinquish_alloc_permit",
)  # fmt: skip
