"""Atomic operations. PTX ISA, "atom", "red"."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptx.emulate.access import Elements, Site, divide, is_mixed, locate
from ptx.emulate.emitter import Emitter
from ptx.emulate.fibre import Fibre
from ptx.emulate.geometry import Value
from ptx.emulate.ops.memory import space_of
from ptx.emulate.span import Index, Span
from ptx.emulate.table import Effect, operation, type_suffix
from ptx.isa.model import Instruction

Combine = Callable[[Elements, Value, Value], Elements]

_HINTS = (
    "relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "global", "shared",
    "shared::cta",
)  # fmt: skip


def _wrapping_increment(old: Elements, bound: Value, _: Value) -> Elements:
    """`inc`: (old >= bound) ? 0 : old + 1."""
    return np.where(old >= bound, np.uint32(0), old + np.uint32(1))


def _wrapping_decrement(old: Elements, bound: Value, _: Value) -> Elements:
    """`dec`: (old == 0 or old > bound) ? bound : old - 1."""
    return np.where((old == 0) | (old > bound), bound, old - np.uint32(1))


def _minimum(old: Elements, value: Value, _: Value) -> Elements:
    found: Elements = np.minimum(old, value)
    return found


def _maximum(old: Elements, value: Value, _: Value) -> Elements:
    found: Elements = np.maximum(old, value)
    return found


COMBINE: dict[str, Combine] = {
    "add": lambda old, value, _: old + value,
    "and": lambda old, value, _: old & value,
    "or": lambda old, value, _: old | value,
    "xor": lambda old, value, _: old ^ value,
    "exch": lambda old, value, _: np.broadcast_to(value, old.shape),
    "cas": lambda old, wanted, value: np.where(old == wanted, value, old),
    "min": _minimum,
    "max": _maximum,
    "inc": _wrapping_increment,
    "dec": _wrapping_decrement,
}
_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def _rounds(index: Index) -> list[Index]:
    """Positions grouped so that no group hits an element twice, in the order of the threads.

    The k-th group holds each element's k-th thread.
    """
    order = np.argsort(index, kind="stable")
    arranged = index[order]
    starts = np.flatnonzero(np.r_[True, arranged[1:] != arranged[:-1]])
    lengths = np.diff(np.r_[starts, len(index)])
    longest = int(lengths.max())
    if longest == 1:
        return [order]
    rank = np.arange(len(index)) - np.repeat(starts, lengths)
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))
    return [np.sort(part) for part in np.split(order[by_rank], ends[:-1])]


def _at(value: Value, positions: Index) -> Value:
    return value.take(positions) if value.ndim else value


def _serial(elements: Elements, index: Index, name: str, value: Value, other: Value) -> Elements:
    """Combine in the order of the threads; (n,) what each found before."""
    combine = COMBINE[name]
    found = np.empty(len(index), dtype=elements.dtype)
    for positions in _rounds(index):
        where = index[positions]
        old = elements[where]
        found[positions] = old
        elements[where] = combine(old, _at(value, positions), _at(other, positions))
    return found


def atomic(
    fibre: Fibre, addresses: Span, offset: int, site: Site, name: str, result: bool,
    value: Value, other: Value,
) -> Value:  # fmt: skip
    """Combine a value into memory for each thread, in their order, each step rounded.

    Gives what each thread found there before; where `result` is False, nothing of use.
    """
    if site.space == "generic" and is_mixed(addresses, offset):
        results = np.empty(fibre.n, dtype=site.dtype)
        for positions, part, where in divide(fibre, addresses, offset):
            results[positions] = atomic(
                part,
                where,
                offset,
                site,
                name,
                result,
                _at(value, positions),
                _at(other, positions),
            )
        return results
    elements, index = locate(fibre, addresses, offset, site)
    if not isinstance(index, np.ndarray):
        index = np.full(fibre.n, index, dtype=np.intp)
    ufunc = _UFUNCS.get(name)
    if not result and ufunc is not None:
        ufunc.at(elements, index, value)
        return value
    return _serial(elements, index, name, value, other)


def _emit(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    name = next(word for word in i.modifiers if word in COMBINE)
    operands = i.operands if i.opcode == "red" else i.operands[1:]
    where, offset, space = e.address(operands[0], space_of(i))
    value = e.value(operands[1], kind)
    other = e.value(operands[2], kind) if name == "cas" else value
    if name == "cas" and len(operands) != 3:
        raise e.refuse("cas takes two values")
    used = i.opcode == "atom" and e.is_used(i.operands[0])
    site = e.site(space, kind, writes=True)
    function = e.helper(atomic)
    call = f"{function}(f, {where}, {offset}, {site}, {name!r}, {used}, {value}, {other})"
    if used:
        e.assign(i.operands[0], kind, call)
    else:
        e.line(call)


_TYPES: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "exch": ("b32", "b64"),
    "cas": ("b16", "b32", "b64"),
    "inc": ("u32",),
    "dec": ("u32",),
}
_BY_TYPE: dict[str, list[str]] = {}
for _name, _types in _TYPES.items():
    for _type in _types:
        _BY_TYPE.setdefault(_type, []).append(_name)
for _type, _names in _BY_TYPE.items():
    operation(
        "atom", (_type,), (3, 4), _emit, effect=Effect.MEMORY, modifiers=(*_HINTS, *_names),
        section="atom",
    )  # fmt: skip
    operation(
        "red", (_type,), 2, _emit, effect=Effect.MEMORY, modifiers=(*_HINTS, *_names),
        writes=0, section="red",
    )  # fmt: skip
