"""Atomic operations on global and shared memory. PTX ISA, "atom", "red".

Threads act in the order of their numbers in the chunk, each sees what the one before left, and
every sum is rounded in its own width. Every access is done at once, so that memory order and scope
change nothing but when late stores of an ordered launch are seen.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.access.memory_access import Elements, divide, locate, note_swap
from ptx.emulate.codegen.count_writer import count_access
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.memory.generic_addresses import SHARED_WINDOW, WINDOW_BYTES, is_mixed
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.memory.combine import Rule, rule, same_bits
from ptx.emulate.ops.memory.in_order import at, combine_in_order
from ptx.emulate.ops.memory.late_store import note_write, publish
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Immediate, Instruction, Vector

_SPACES = ("global", "shared", "shared::cta", "shared::cluster")
_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
_SCOPES = ("cta", "cluster", "gpu", "sys")
_HINT = "L2::cache_hint"
_VECTORS = ("v2", "v4", "v8")
# What memory holds of the types that NumPy does not calculate with.
_STORED = {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}


def atomic(
    fibre: Fibre, addresses: Addresses, offset: int, site: Site, name: str, ptx_type: str,
    values: tuple[Value, ...], other: Value, result: bool, *, keeps_subnormals: bool = False,
) -> list[Value]:  # fmt: skip
    """Combine one value, or a vector of them, into memory for each thread, in their order.

    Gives what each thread found there before; where `result` is False, nothing of use.
    `keeps_subnormals`: whether a sum of f32 does so in global memory, too.
    """
    if site.space == "generic" and is_mixed(addresses, offset):
        return _divided(fibre, addresses, offset, site, name, ptx_type, values, other, result)
    low = addresses.lowest() + offset
    in_shared = site.space == "shared" or (
        site.space == "generic" and SHARED_WINDOW <= low < SHARED_WINDOW + WINDOW_BYTES
    )
    how = rule(name, ptx_type, in_shared or (keeps_subnormals and ptx_type == "f32"))
    # Whether a compare-and-swap writes is known behind it.
    is_swap = name == "cas" and fibre.blocks.races is not None
    elements, index = locate(fibre, addresses, offset, site, is_access=not is_swap)
    found: list[Value] = []
    for position, value in enumerate(values):
        part = elements[position:]
        if not result and _is_free(how, part, value, index):
            _combine_freely(part, index, fibre.n, how, value)
            found.append(value)
        else:
            found.append(combine_in_order(part, index, fibre.n, how, value, other))
    if is_swap:
        note_swap(fibre, addresses, offset, site, same_bits(found[0], values[0]))
    return found


def atomic_strong(
    fibre: Fibre, addresses: Addresses, offset: int, site: Site, name: str, ptx_type: str,
    values: tuple[Value, ...], other: Value, result: bool, *, keeps_subnormals: bool = False,
) -> list[Value]:  # fmt: skip
    """An atomic operation, which other blocks see at once."""
    note_write(fibre, addresses, offset, site, strong=True)
    return atomic(
        fibre, addresses, offset, site, name, ptx_type, values, other, result,
        keeps_subnormals=keeps_subnormals,
    )  # fmt: skip


def _is_free(how: Rule, elements: Value, value: Value, index: Value) -> bool:
    """Whether NumPy may combine: no old values are read, and it gives the right result."""
    if how.ufunc is None:
        return False
    return not how.floating or how.is_plain(elements[index], value)


def _combine_freely(
    elements: Elements, index: Index | int, n: int, how: Rule, value: Value
) -> None:
    """Combine without old values; each sum of floats is still rounded by itself, in order."""
    assert how.ufunc is not None
    if isinstance(index, np.ndarray):
        how.ufunc.at(elements, index, value)
    elif how.floating:
        how.ufunc.at(elements, np.full(n, index, dtype=np.intp), value)
    else:
        whole = how.ufunc.reduce(np.broadcast_to(value, n), dtype=elements.dtype)
        elements[index] = how.ufunc(elements[index], whole)


def _divided(
    fibre: Fibre, addresses: Addresses, offset: int, site: Site, name: str, ptx_type: str,
    values: tuple[Value, ...], other: Value, result: bool,
) -> list[Value]:  # fmt: skip
    """Generic addresses of several spaces: each space by itself."""
    found = [np.empty(fibre.n, dtype=site.dtype) for _ in values]
    for positions, part, where in divide(fibre, addresses, offset):
        chosen = tuple(at(value, positions) for value in values)
        done = atomic(
            part, where, offset, site, name, ptx_type, chosen, at(other, positions), result
        )
        for whole, piece in zip(found, done, strict=True):
            whole[positions] = piece
    return list(found)


def _emit(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    stored = _STORED.get(ptx_type, ptx_type)
    operands = list(i.operands)
    target = operands.pop(0) if i.opcode == "atom" else None
    if _HINT in i.modifiers:
        operands.pop()
    name, count = _name_and_count(e, i, ptx_type)
    if len(operands) != (3 if name == "cas" else 2):
        raise e.refuse(f"{len(i.operands)} operands do not fit {name}")
    facts = facts_of(i)
    where, offset, space = e.address(operands[0], facts.space)
    values = e.values(operands[1], stored)
    if len(values) != count or (target is not None and _width(target) not in (count, 0)):
        raise e.refuse(f"it needs vectors of {count} elements")
    other = e.value(operands[2], stored) if name == "cas" else values[0]
    site = e.site(space, stored, count, writes=True)
    count_access(e, where, offset, site)
    used = target is not None and e.is_used(target)
    if e.late.stores and facts.publishes:
        e.line(f"{e.helper(publish)}(f)")
    function = e.helper(atomic_strong if e.late.stores else atomic)
    call = (
        f"{function}(f, {where}, {offset}, {site}, {name!r}, {ptx_type!r},"
        f" ({', '.join(values)},), {other}, {used})"
    )
    if target is None or not used:
        e.line(call)
        return
    found = e.temporary(call)
    e.assign_all(target, stored, [f"{found}[{k}]" for k in range(count)])


def _width(operand: object) -> int:
    """Elements of a vector operand, 1 for a register, 0 for a sink."""
    if isinstance(operand, Vector):
        return len(operand.items)
    return 0 if isinstance(operand, Immediate) else 1


def _name_and_count(e: Emitter, i: Instruction, ptx_type: str) -> tuple[str, int]:
    """The operation, and how many elements the instruction has."""
    names = [word for word in i.modifiers if ptx_type in TYPES.get(word, ())]
    count = facts_of(i).vector
    if len(names) != 1:
        raise e.refuse("it needs one operation")
    is_half = ptx_type in _STORED
    if is_half != ("noftz" in i.modifiers):
        raise e.refuse("halves, and only they, need .noftz")
    if count == 1:
        if is_half and names[0] != "add":
            raise e.refuse(f"{names[0]} of halves needs a vector")
        return names[0], 1
    if f"v{count}" not in VECTORS.get(ptx_type, ()):
        raise e.refuse(f".v{count} does not fit .{ptx_type}")
    return names[0], count


_HALVES = ("f16", "f16x2", "bf16", "bf16x2")
TYPES: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "f32", "f64", *_HALVES),
    "min": ("u32", "s32", "u64", "s64", *_HALVES),
    "max": ("u32", "s32", "u64", "s64", *_HALVES),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64", "b128"),
    "cas": ("b16", "b32", "b64", "b128"),
    "inc": ("u32",),
    "dec": ("u32",),
}
VECTORS: dict[str, tuple[str, ...]] = {
    "f32": ("v2", "v4"), "f16": ("v2", "v4", "v8"), "bf16": ("v2", "v4", "v8"),
    "f16x2": ("v2", "v4"), "bf16x2": ("v2", "v4"),
}  # fmt: skip
_ALL_TYPES = sorted({each for types in TYPES.values() for each in types})
_MODIFIERS = (*_ORDERS, *_SCOPES, *_SPACES, *_VECTORS, "noftz", _HINT)
operation(
    "atom", _ALL_TYPES, (3, 4, 5), _emit, effect=Effect.MEMORY, modifiers=(*_MODIFIERS, *TYPES),
    section="atom",
)  # fmt: skip
operation(
    "red", [each for each in _ALL_TYPES if each not in ("b16", "b128")], (2, 3), _emit,
    effect=Effect.MEMORY, modifiers=(*_MODIFIERS, *(set(TYPES) - {"exch", "cas"})), writes=0,
    section="red",
)  # fmt: skip
