"""Copies from global to shared memory that need no register. PTX ISA, "cp.async".

The ISA lets such a copy happen at any time until it is waited for. Here it happens at once, so that
groups are always complete; in an ordered launch it happens late (`exec/order`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import load_vector, store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, EmitFunction, operation
from ptx.emulate.exec.order.ordered_blocks import Stage, chosen, chosen_addresses, ordered_blocks
from ptx.emulate.exec.sync.issued_copies import note_commit, note_copy, note_part, note_wait
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.errors import Misaligned, OutOfBounds
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Immediate, Instruction, Operand, Register


def group_operation(kind: str) -> EmitFunction:
    """The emitter of `commit_group`, `wait_group` and `wait_all` of "copies" or "bulk" copies."""

    def emit(e: Emitter, i: Instruction) -> None:
        groups, bulk = f"f.blocks.late_copies.{kind}", kind == "bulk"
        if "commit_group" in i.modifiers:
            e.line(f"{e.helper(note_commit)}(f, {bulk=})")
            if e.late.copies:
                e.line(f"{groups}.commit(f)")
            return
        newest = i.operands[0] if i.operands else Immediate(-1)
        if not isinstance(newest, Immediate):
            raise e.reject("it waits for a constant number of groups")
        read = "read" in i.modifiers
        e.line(f"{e.helper(note_wait)}(f, {newest.value}, {bulk=}, reads_alone={read})")
        if e.late.copies and i.operands:
            e.line(f"{groups}.wait(f, {newest.value}, {read=})")
        elif e.late.copies:
            e.line(f"{groups}.wait_all(f)")

    return emit


_HINTS = ("shared", "shared::cta", "global", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B")


class Sites:
    """The accesses of one copy: its source, its target, and its source byte by byte."""

    __slots__ = ("byte", "nbytes", "source", "target")

    def __init__(self, i: Instruction, nbytes: int, spaces: tuple[str, str]) -> None:
        count = nbytes // 4
        self.nbytes: int = nbytes
        self.target: Site = Site(i, spaces[0], "u32", count, writes=True)
        self.source: Site = Site(i, spaces[1], "u32", count, writes=False)
        self.byte: Site = Site(i, spaces[1], "u8", 1, writes=False)


def copy(
    fibre: Fibre,
    target: Addresses,
    target_offset: int,
    source: Addresses,
    source_offset: int,
    sites: Sites,
) -> None:
    """Copy `cp-size` bytes for each thread."""
    store(
        fibre,
        target,
        target_offset,
        sites.target,
        *load_vector(fibre, source, source_offset, sites.source),
    )


def copy_part(
    fibre: Fibre,
    target: Addresses,
    target_offset: int,
    source: Addresses,
    source_offset: int,
    sites: Sites,
    nbytes: Value,
) -> None:
    """Copy the first `nbytes` bytes of each thread's `cp-size`, and fill up with zeros.

    Bytes that are not copied are not read either.

    Raises:
        OutOfBounds: `nbytes` is above `cp-size`, which the ISA leaves undefined.
        Misaligned: an address from which something is copied is no multiple of `cp-size`; a GPU
            then copies fewer bytes.
    """
    amounts = np.broadcast_to(nbytes, (fibre.n,))
    source_addresses = source.every(fibre.n) + source_offset
    _check(fibre, amounts, source_addresses, sites)
    words: list[NDArray[Any]] = [
        np.zeros(fibre.n, dtype=np.uint32) for _ in range(sites.source.count)
    ]
    complete: Index = (amounts == sites.nbytes).nonzero()[0]
    if len(complete):
        words_read = load_vector(
            fibre.subset(complete, ()), addresses_in(source_addresses[complete]), 0, sites.source
        )
        for word, value in zip(words, words_read, strict=True):
            word[complete] = value
    short: Index = ((amounts > 0) & (amounts < sites.nbytes)).nonzero()[0]
    if len(short):
        parts = _parts(fibre, short, source_addresses, amounts, sites)
        for k, word in enumerate(words):
            word[short] = parts[:, k]
    store(fibre, target, target_offset, sites.target, *words)


def copy_later(
    fibre: Fibre,
    target: Addresses,
    target_offset: int,
    source: Addresses,
    source_offset: int,
    sites: Sites,
    nbytes: Value | None = None,
) -> None:
    """`cp.async`: until the thread waits for its group."""
    count = fibre.n

    def land(part: Fibre, positions: Index | None) -> Stage | None:
        target_addresses = chosen_addresses(target, count, positions)
        source_addresses = chosen_addresses(source, count, positions)
        if nbytes is None:
            copy(part, target_addresses, target_offset, source_addresses, source_offset, sites)
        else:
            copy_part(
                part,
                target_addresses,
                target_offset,
                source_addresses,
                source_offset,
                sites,
                chosen(nbytes, positions),
            )
        return None

    ordered_blocks(fibre).late_copies.copies.add(fibre, land)


def _check(fibre: Fibre, amounts: Value, addresses: NDArray[np.int64], sites: Sites) -> None:
    too_large = amounts > sites.nbytes
    wrong = too_large | ((amounts > 0) & (addresses & (sites.nbytes - 1) != 0))
    if not wrong.any():
        return
    position = int(np.argmax(wrong))
    address = int(addresses[position]) % (1 << 64)
    where_of_thread = fibre.where(position, sites.source.instruction)
    if too_large[position]:
        raise OutOfBounds(
            f"copy of {int(amounts[position])} bytes by an instruction that copies {sites.nbytes}",
            where_of_thread,
            address=address,
            nbytes=sites.nbytes,
            space=sites.source.space,
        )
    raise Misaligned(
        f"misaligned read of {int(amounts[position])} bytes at {address:#x}, which is no multiple"
        f" of {sites.nbytes}, the size of the copy",
        where_of_thread,
        address=address,
        nbytes=sites.nbytes,
        space=sites.source.space,
    )


def _parts(
    fibre: Fibre, short: Index, addresses: NDArray[np.int64], amounts: Value, sites: Sites
) -> NDArray[np.uint32]:
    """(threads of `short`, words): less than all bytes of each."""
    rows = np.zeros((len(short), sites.nbytes), dtype=np.uint8)
    for byte in range(sites.nbytes):
        positions: Index = (amounts[short] > byte).nonzero()[0]
        if len(positions):
            threads = short[positions]
            fibre_part = fibre.subset(threads, ())
            rows[positions, byte] = load_vector(
                fibre_part, addresses_in(addresses[threads]), byte, sites.byte
            )[0]
    return rows.view(np.uint32)


def ignored(nbytes: int, ignore: Value) -> Value:
    """The bytes that are copied where `ignore-src` is given: none or all."""
    return np.where(ignore, np.uint32(0), np.uint32(nbytes))


def _copy(e: Emitter, i: Instruction) -> None:
    target, source, size, *remaining = i.operands
    if "L2::cache_hint" in i.modifiers:
        if not remaining:
            raise e.reject("it has no cache policy")
        remaining.pop()
    sizes = (16,) if "cg" in i.modifiers else (4, 8, 16)
    if not isinstance(size, Immediate) or size.value not in sizes or len(remaining) > 1:
        raise e.reject(f"it copies {' or '.join(map(str, sizes))} bytes")
    target_addresses, target_offset, target_space = e.address(target, "shared")
    source_addresses, source_offset, source_space = e.address(source, "global")
    sites = Sites(i, size.value, (target_space, source_space))
    e.sites.extend((sites.target, sites.source, sites.byte))
    name = e.scope.bind(sites, "sites")
    arguments = (
        f"f, {target_addresses}, {target_offset}, {source_addresses}, {source_offset}, {name}"
    )
    e.note_access(source_addresses, source_offset, e.scope.bind(sites.source, "site"))
    e.note_access(target_addresses, target_offset, e.scope.bind(sites.target, "site"))
    site_names = ", ".join(
        e.scope.bind(copy_site, "site") for copy_site in (sites.target, sites.source)
    )
    operands = (
        f"f, {target_addresses}, {target_offset}, {source_addresses}, {source_offset}, {site_names}"
    )
    if remaining:
        nbytes = _amount(e, remaining[0], size.value)
        byte = e.scope.bind(sites.byte, "site")
        e.line(f"{e.helper(note_part)}({operands}, {byte}, {nbytes})")
        e.line(f"{e.helper(copy_later if e.late.copies else copy_part)}({arguments}, {nbytes})")
    else:
        e.line(f"{e.helper(note_copy)}({operands})")
        e.line(f"{e.helper(copy_later if e.late.copies else copy)}({arguments})")


def _amount(e: Emitter, operand: Operand, size: int) -> str:
    """`src-size`, or the size by the predicate `ignore-src`."""
    if isinstance(operand, Register) and operand.ptx_type == "pred":
        return e.temporary(f"{e.helper(ignored)}({size}, {e.value(operand, 'pred')})")
    return e.temporary(e.value(operand, "u32"))


for _level in ("ca", "cg"):
    operation(
        f"cp.async.{_level}",
        ("",),
        (3, 4, 5),
        _copy,
        effect=Effect.MEMORY,
        writes=0,
        modifiers=_HINTS,
        section="cp.async",
    )


for _name, _arity in (("commit_group", 0), ("wait_group", 1), ("wait_all", 0)):
    operation(
        f"cp.async.{_name}",
        ("",),
        _arity,
        group_operation("copies"),
        effect=Effect.MEMORY,
        writes=0,
        section=f"cp.async.{_name}",
    )
