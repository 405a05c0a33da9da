"""Loads, stores and reductions over the memories of several devices. PTX ISA, "multimem".

A multicast address stands for one address in the memory of each device of a team. Each member's
memory is accessed as by `ld`, `st` or `red`, one device after the other; so faults and races are
found in each of them. Sums are rounded after each device; with `.acc::f32` those of halves once, at
the end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate import ieee
from ptx.emulate.access.memory_access import Group, divide_into, load_vector, store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.ieee.formats import BF16, F16, Format
from ptx.emulate.ieee.half import nearest, widen
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses
from ptx.emulate.model.errors import OutOfBounds
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.atomic import STORED, TYPES, VECTORS, at, atomic, rule
from ptx.emulate.ops.data_movement import note_write, publish
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_UNIT_BITS = 21  # memory is bound in units of 2 MiB
_FORMATS: dict[str, Format] = {"f16": F16, "bf16": BF16}


def _members(
    fibre: Fibre, addresses: Addresses, offset: int, site: Site
) -> list[tuple[Group | None, list[Addresses]]]:
    """Return groups of lanes, with their addresses in the memory of each device of the team.

    A group is None if it has all lanes.

    Raises:
        OutOfBounds: a lane's address is of no multicast object with memory of every device there.
    """
    find = fibre.blocks.launch.device.multicast
    low, high = addresses.lowest() + offset, addresses.highest() + offset
    members = find(low, high + site.total - low)
    if members is not None:
        return [(None, [addresses.moved(member - low) for member in members])]
    every = addresses.every(fibre.n) + offset
    units = every >> _UNIT_BITS
    positions = [(units == unit).nonzero()[0] for unit in np.unique(units)]
    results: list[tuple[Group | None, list[Addresses]]] = []
    for group in divide_into(fibre, addresses, positions):
        addresses_of_group = group[2]
        first, last = addresses_of_group.lowest() + offset, addresses_of_group.highest() + offset
        members = find(first, last + site.total - first)
        if members is None:
            raise OutOfBounds(
                f"{site.facts.name} of {site.total} bytes at global address {first:#x}, where no "
                "multicast object has mapped memory of each of its devices",
                fibre.where(int(group[0][0]), site.instruction),
                address=first,
                nbytes=site.total,
                space="global",
            )
        results.append((group, [addresses_of_group.moved(member - first) for member in members]))
    return results


def load_reduced(
    fibre: Fibre,
    addresses: Addresses,
    offset: int,
    site: Site,
    name: str,
    ptx_type: str,
    wide: bool,
) -> list[Value]:
    """`multimem.ld_reduce`: combine the elements of all devices. `wide`: sum halves in f32."""
    results: list[Value] = []
    for group, members in _members(fibre, addresses, offset, site):
        part = fibre if group is None else group[1]
        loaded = [load_vector(part, member, offset, site) for member in members]
        combined = [
            _combined(name, ptx_type, list(values), wide) for values in zip(*loaded, strict=True)
        ]
        if group is None:
            return combined
        if not results:
            results = [np.empty(fibre.n, dtype=site.dtype) for _ in combined]
        for result, piece in zip(results, combined, strict=True):
            result[group[0]] = piece
    return results


def _combined(name: str, ptx_type: str, values: list[Value], wide: bool) -> Value:
    """Combine the elements of one place of each device."""
    kind = _FORMATS.get(ptx_type.removesuffix("x2"))
    if wide and kind is not None:
        total = partial(_wide_sum, kind=kind)
        return ieee.packed(total, *values) if ptx_type.endswith("x2") else total(*values)
    step = rule(name, ptx_type, True).step  # as in shared memory: subnormals of f32 stay
    result = np.asarray(values[0])
    for value in values[1:]:
        shape = np.broadcast_shapes(result.shape, value.shape)
        result = np.asarray(step(np.broadcast_to(result, shape), value, value))
    combined: Value = result[()]
    return combined


def _wide_sum(*values: NDArray[Any], kind: Format) -> NDArray[Any]:
    """Sum halves in float32, and round once."""
    total = widen(np.asarray(values[0]), kind)
    for value in values[1:]:
        total = ieee.add(total, widen(np.asarray(value), kind))
    rounded: NDArray[Any] = nearest(total, kind)
    return rounded


def write_all(
    fibre: Fibre,
    addresses: Addresses,
    offset: int,
    site: Site,
    name: str,
    ptx_type: str,
    values: tuple[Value, ...],
    late: bool,
) -> None:
    """`multimem.st`, or `multimem.red` with the name of an operation, for each device.

    `late`: whether the launch is ordered, in which others may see writes later.
    """
    for group, members in _members(fibre, addresses, offset, site):
        part = fibre if group is None else group[1]
        own_values = values if group is None else tuple(at(value, group[0]) for value in values)
        for member in members:
            if late:
                note_write(part, member, offset, site, strong=site.facts.is_strong)
            if name:
                atomic(
                    part,
                    member,
                    offset,
                    site,
                    name,
                    ptx_type,
                    own_values,
                    own_values[0],
                    False,
                    keeps_subnormals=True,
                )
            else:
                store(part, member, offset, site, *own_values)


def _emit_load(e: Emitter, i: Instruction) -> None:
    ptx_type, name = type_suffix(i), _operation_of(e, i)
    target, source = i.operands
    stored, count = STORED.get(ptx_type, ptx_type), _count(e, i, name, "load")
    wide = "acc::f32" in i.modifiers
    if wide and (name != "add" or ptx_type not in STORED):
        raise e.reject("only sums of halves have .acc::f32")
    addresses, offset, _ = e.address(source, "global")
    site = e.site("global", stored, count)
    e.note_access(addresses, offset, site)
    reduced = e.temporary(
        f"{e.helper(load_reduced)}(f, {addresses}, {offset}, {site}, {name!r}, {ptx_type!r},"
        f" {wide})"
    )
    e.assign_all(target, stored, [f"{reduced}[{k}]" for k in range(count)])


def _emit_write(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    name = "" if i.modifiers[0] == "st" else _operation_of(e, i)
    target, source = i.operands
    stored = STORED.get(ptx_type, ptx_type)
    count = _count(e, i, name, "red" if name else "st")
    values = e.values(source, stored)
    if len(values) != count:
        raise e.reject(f"it needs vectors of {count} elements")
    addresses, offset, _ = e.address(target, "global")
    site = e.site("global", stored, count, writes=True)
    e.note_access(addresses, offset, site)
    if e.late.stores and i.facts.publishes:
        e.line(f"{e.helper(publish)}(f)")
    e.line(
        f"{e.helper(write_all)}(f, {addresses}, {offset}, {site}, {name!r}, {ptx_type!r},"
        f" ({', '.join(values)},), {bool(e.late.stores)})"
    )


def _operation_of(e: Emitter, i: Instruction) -> str:
    names = [word for word in i.modifiers if word in _TYPES]
    if len(names) != 1 or type_suffix(i) not in _TYPES[names[0]]:
        raise e.reject("it needs one operation that its type has")
    return names[0]


def _count(e: Emitter, i: Instruction, name: str, form: str) -> int:
    """Return how many elements the instruction has, as NVIDIA's assembler takes it."""
    ptx_type, count = type_suffix(i), i.facts.vector
    is_half = ptx_type in STORED
    if count == 1:
        if ptx_type in _FORMATS:
            raise e.reject("single halves are accessed as vectors")
        if form == "red" and is_half and name != "add":
            raise e.reject(f"{name} of halves needs a vector")
        return 1
    if f"v{count}" not in VECTORS.get(ptx_type, ()):
        raise e.reject(f".v{count} does not fit .{ptx_type}")
    return count


_TYPES = {name: TYPES[name] for name in ("add", "min", "max", "and", "or", "xor")}
_ALL_TYPES = sorted({ptx_type for types in _TYPES.values() for ptx_type in types})
_COMMON = ("weak", "relaxed", "cta", "cluster", "gpu", "sys", "global", "v2", "v4", "v8")
operation(
    "multimem.ld_reduce",
    _ALL_TYPES,
    2,
    _emit_load,
    effect=Effect.MEMORY,
    section="multimem",
    modifiers=("acquire", "acc::f32", *_COMMON, *_TYPES),
)
operation(
    "multimem.st",
    _ALL_TYPES,
    2,
    _emit_write,
    effect=Effect.MEMORY,
    section="multimem",
    writes=0,
    modifiers=("release", *_COMMON),
)
operation(
    "multimem.red",
    _ALL_TYPES,
    2,
    _emit_write,
    effect=Effect.MEMORY,
    section="multimem",
    writes=0,
    modifiers=("release", *_COMMON, *_TYPES),
)
