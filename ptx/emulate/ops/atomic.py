"""Atomic operations on global and shared memory. PTX ISA, "atom", "red".

Threads act in the order of their numbers in the chunk, each sees the result of the one before, and
every sum is rounded in its own width. There is no loop over threads: those that address one element
form a group, and within it they act in the order of their positions. Every access is done at once,
so that memory order and scope change nothing but when late stores of an ordered launch are seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate import ieee
from ptx.emulate.access.memory_access import Elements, divide, locate, note_swap
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.ieee.formats import BF16, F16, Format
from ptx.emulate.memory.generic_addresses import SHARED_WINDOW, WINDOW_BYTES, is_mixed
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.data_movement import note_read, order_write, publish
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Immediate, Instruction, Vector

Step = Callable[[Elements, Value, Value], Elements]
_FORMATS: dict[str, Format] = {"f16": F16, "bf16": BF16}
_SAFE = 2.0**-102  # sums of multiples of its last place are zero or normal


@dataclass(frozen=True, slots=True)
class AtomicRule:
    """One operation on one type.

    Attributes:
        name: as in PTX.
        step: returns the new values of different elements, given one value for each (and `cas`'s
            second value).
        ufunc: NumPy's operation if it is the same; for an addition of floats only if `is_plain`
            holds.
        wraps: an integer addition, whose partial sums can be had from any other sum.
        floating: an addition of f32 or f64; flushes: one that makes subnormals zero.
    """

    name: str
    step: Step
    ufunc: np.ufunc | None = None
    wraps: bool = False
    floating: bool = False
    flushes: bool = False

    def is_plain(self, elements: Elements, value: Value) -> bool:
        """Return whether NumPy's addition gives the right bits: no NaN, and nothing to flush."""
        if not self.floating:
            return True
        for array in (elements, np.asarray(value)):
            magnitude = np.abs(array)
            if not np.isfinite(magnitude.max(initial=0)):
                return False
            if self.flushes and ((magnitude < _SAFE) & (magnitude != 0)).any():
                return False
        return True


def _increment(old: Elements, bound: Value, _: Value) -> Elements:
    """`inc`: back to zero from the bound on."""
    return np.where(old >= bound, np.uint32(0), old + np.uint32(1))


def _decrement(old: Elements, bound: Value, _: Value) -> Elements:
    """`dec`: from zero, or from above the bound, to the bound."""
    return np.where((old == 0) | (old > bound), bound, old - np.uint32(1))


def _exchange(old: Elements, value: Value, _: Value) -> Elements:
    return np.broadcast_to(value, old.shape)


def same_bits(a: Value, b: Value) -> Value:
    """Return whether values are equal bit for bit; 16-byte values are compared by halves."""
    if a.dtype != np.complex128:
        return a == b
    left, right = (np.ascontiguousarray(x).reshape(-1).view(np.uint64) for x in (a, b))
    if len(left) != len(right):
        left, right = (np.resize(x, max(len(left), len(right))) for x in (left, right))
    same: Value = (left[0::2] == right[0::2]) & (left[1::2] == right[1::2])
    return same


def _compare_and_swap(old: Elements, expected: Value, value: Value) -> Elements:
    return np.where(same_bits(old, expected), value, old)


def _ufunc_step(ufunc: np.ufunc) -> Step:
    def step(old: Elements, value: Value, _: Value) -> Elements:
        new: Elements = ufunc(old, value)
        return new

    return step


def _float_add(flushes: bool, old: Elements, value: Value, _: Value) -> Elements:
    sums: Elements = ieee.add(old, np.broadcast_to(value, old.shape), ftz=flushes)
    return sums


def _wide_add_in_shared(old: Elements, value: Value, _: Value) -> Elements:
    """Of two NaNs that of the memory is kept, as a GPU of compute capability 9.0 showed."""
    sums: Elements = ieee.add(np.broadcast_to(value, old.shape), old)
    return sums


def _wide_add_in_global(old: Elements, value: Value, unused: Value) -> Elements:
    """A signalling NaN stays one, as a GPU of compute capability 9.0 showed."""
    sums = _float_add(False, old, value, unused)
    for operand in (old, np.broadcast_to(value, old.shape)):
        sums = np.where(np.isnan(operand), operand, sums)
    return sums


_HALF_STEPS: dict[str, Callable[..., Value]] = {
    "add": ieee.half_add,
    "min": ieee.half_minimum,
    "max": ieee.half_maximum,
}


def _half(name: str, kind: Format, old: Elements, value: Value, _: Value) -> Elements:
    function = _HALF_STEPS[name]
    spread = np.broadcast_to(value, old.shape)
    if old.dtype == np.uint32:
        return np.asarray(ieee.packed(function, old, spread, kind=kind))
    return np.asarray(function(old, spread, kind=kind))


_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_STEPS: dict[str, Step] = {
    "inc": _increment,
    "dec": _decrement,
    "exch": _exchange,
    "cas": _compare_and_swap,
}


@lru_cache(maxsize=128)  # one entry an operation, type and memory
def rule(name: str, ptx_type: str, in_shared: bool) -> AtomicRule:
    """The rule of an operation on a type.

    `in_shared`: f32 sums in shared memory keep subnormals, those in global memory flush them (PTX
    ISA, "atom": `.f32` addition).
    """
    half = ptx_type.removesuffix("x2")
    if half in _FORMATS:
        return AtomicRule(name, partial(_half, name, _FORMATS[half]))
    if name in _STEPS:
        return AtomicRule(name, _STEPS[name])
    ufunc = _UFUNCS[name]
    if ptx_type in ("f32", "f64"):
        flushes = ptx_type == "f32" and not in_shared
        step: Step = partial(_float_add, flushes)
        if ptx_type == "f64":
            step = _wide_add_in_shared if in_shared else _wide_add_in_global
        return AtomicRule(name, step, ufunc, floating=True, flushes=flushes)
    return AtomicRule(name, _ufunc_step(ufunc), ufunc, wraps=name == "add")


_SHORT = 12  # groups up to this long are done thread by thread, all groups at once
_CHAIN = 64  # successful swaps of one element that are done for all elements at once


def at(value: Value, positions: Index) -> Value:
    """The values of some threads; a scalar is everyone's."""
    return value.take(positions) if value.ndim else value


class Groups:
    """Positions 0 to n - 1 arranged by the element they address, longest group first.

    Attributes:
        order: (n,) positions, group by group, ascending within each.
        starts, lengths: of each group within `order`; elements: the element of each.
    """

    def __init__(self, index: Index | int, n: int) -> None:
        if not isinstance(index, np.ndarray):
            self.order: Index = np.arange(n, dtype=np.intp)
            self.starts: Index = np.zeros(1, dtype=np.intp)
            self.lengths: Index = np.full(1, n, dtype=np.intp)
            self.elements: Index = np.full(1, index, dtype=np.intp)
            return
        bits = max(1, n - 1).bit_length()
        # Sorting one number for element and position is far quicker than a stable argsort.
        keys = (index.astype(np.int64) << np.int64(bits)) | np.arange(n, dtype=np.int64)
        keys.sort()
        order = keys & np.int64((1 << bits) - 1)
        arranged = keys >> np.int64(bits)
        starts = np.flatnonzero(np.concatenate(([True], arranged[1:] != arranged[:-1])))
        lengths = np.diff(starts, append=n)
        by_length = np.argsort(-lengths, kind="stable")
        self.order = order.astype(np.intp, copy=False)
        self.starts = starts[by_length]
        self.lengths = lengths[by_length]
        self.elements = arranged[self.starts].astype(np.intp, copy=False)

    @property
    def longest(self) -> int:
        """Length of the longest group."""
        return int(self.lengths[0])

    def longer_than(self, length: int) -> int:
        """Return how many groups are longer; they are the first ones."""
        return int(np.searchsorted(-self.lengths, -length, side="left"))

    def ranks(self) -> Index:
        """(n,) each position's place within its group."""
        ranks = np.empty(len(self.order), dtype=np.intp)
        ranks[self.order] = np.arange(len(self.order)) - self.spread(self.starts)
        return ranks

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """One value a group, as one value a place of `order`."""
        by_place = np.argsort(self.starts, kind="stable")
        return np.repeat(values[by_place], self.lengths[by_place])

    def members(self, group: int) -> Index:
        """The positions of one group."""
        start = self.starts[group]
        return self.order[start : start + self.lengths[group]]


def combine_in_order(
    elements: Elements, index: Index | int, n: int, rule: AtomicRule, value: Value, other: Value
) -> Elements:
    """Combine each of n threads' values into its element, or one that all share.

    Returns (n,) the previous value for each thread.
    """
    if rule.name == "cas":
        if isinstance(index, np.ndarray):
            return _swaps(elements, index, value, other)
        return _swaps_of_one(elements, index, n, value, other)
    groups = Groups(index, n)
    if rule.wraps:
        return _sums(elements, groups, value)
    if groups.longest > _SHORT:
        if rule.name == "exch":
            return _exchanges(elements, groups, value)
        if rule.name in ("inc", "dec") and not value.ndim:
            return _cycles(elements, groups, rule.name, int(value))
    old_values = np.empty(n, dtype=elements.dtype)
    turns = groups.longest
    if rule.ufunc is not None and rule.is_plain(elements[groups.elements], value):
        turns = min(turns, _SHORT)
    for turn in range(turns):
        count = groups.longer_than(turn)
        positions = groups.order[groups.starts[:count] + turn]
        element_indices = groups.elements[:count]
        old = elements[element_indices]
        old_values[positions] = old
        elements[element_indices] = rule.step(old, at(value, positions), at(other, positions))
    for group in range(groups.longer_than(turns)):
        _accumulate(elements, groups, group, turns, rule, value, old_values)
    return old_values


def _accumulate(
    elements: Elements,
    groups: Groups,
    group: int,
    first_position: int,
    rule: AtomicRule,
    value: Value,
    old_values: Elements,
) -> None:
    """Combine one long group from a position on, in one running sum, minimum…, step by step."""
    assert rule.ufunc is not None
    positions = groups.members(group)[first_position:]
    element_index = groups.elements[group]
    running = np.empty(len(positions) + 1, dtype=elements.dtype)
    running[0] = elements[element_index]
    running[1:] = at(value, positions)
    rule.ufunc.accumulate(running, out=running)
    old_values[positions] = running[:-1]
    elements[element_index] = running[-1]


def _sums(elements: Elements, groups: Groups, value: Value) -> Elements:
    """Integer additions: a running sum over all groups, less what it was where each begins."""
    n = len(groups.order)
    dtype = elements.dtype
    arranged = np.broadcast_to(value, n) if not value.ndim else value.take(groups.order)
    total = np.cumsum(arranged, dtype=dtype)
    before = total - arranged
    starts = before[groups.starts]
    ends = total[groups.starts + groups.lengths - 1]
    old = elements[groups.elements]
    old_values = np.empty(n, dtype=dtype)
    old_values[groups.order] = before + groups.spread(old - starts)
    elements[groups.elements] = old + (ends - starts)
    return old_values


def _exchanges(elements: Elements, groups: Groups, value: Value) -> Elements:
    """Each thread gets the value that the one before it wrote."""
    n = len(groups.order)
    arranged = np.full(n, value, elements.dtype) if not value.ndim else value.take(groups.order)
    before = np.empty(n, dtype=elements.dtype)
    before[1:] = arranged[:-1]
    before[groups.starts] = elements[groups.elements]
    elements[groups.elements] = arranged[groups.starts + groups.lengths - 1]
    old_values = np.empty_like(before)
    old_values[groups.order] = before
    return old_values


def _cycles(elements: Elements, groups: Groups, name: str, bound: int) -> Elements:
    """`inc` and `dec` with one bound for all: after the first step a cycle of bound + 1 values."""
    period = np.uint64(bound + 1)
    old = elements[groups.elements].astype(np.uint64)
    outside = old > np.uint64(bound)

    def after(first: NDArray[np.uint64], out: NDArray[np.bool_], steps: Index) -> Elements:
        """The element's value after so many steps."""
        steps_from_start = steps.astype(np.uint64)
        # From outside, the first step leads to the start of the cycle.
        start = np.where(out, np.uint64(0 if name == "inc" else bound), first)
        steps_from_start = steps_from_start - (out & (steps > 0))
        moved = steps_from_start % period
        inside = start + moved if name == "inc" else start + period - moved
        return np.where(out & (steps == 0), first, inside % period).astype(np.uint32)

    ranks = groups.ranks()
    order = groups.order
    old_values = np.empty(len(order), dtype=np.uint32)
    old_values[order] = after(groups.spread(old), groups.spread(outside), ranks[order])
    elements[groups.elements] = after(old, outside, groups.lengths)
    return old_values


def _swaps_of_one(
    elements: Elements, index: int, n: int, expected: Value, value: Value
) -> Elements:
    """Compare-and-swap on one element: between two that succeed, all find the same."""
    old_values = np.empty(n, dtype=elements.dtype)
    matches = np.broadcast_to(expected, n)
    start = 0
    while start < n:
        current = elements[index]
        old_values[start:] = current
        hits = same_bits(matches[start:], current)
        first = int(hits.argmax())
        if not hits[first]:
            break
        start += first + 1
        elements[index] = value[start - 1] if value.ndim else value
    return old_values


def _swaps(elements: Elements, index: Index, expected: Value, value: Value) -> Elements:
    """Compare-and-swap: between two that succeed, all find the same.

    Each turn does the next success of every element; those that are left after many turns are done
    one by one.
    """
    n = len(index)
    old_values = elements[index]
    positions = np.arange(n, dtype=np.intp)
    for _ in range(_CHAIN):
        current = elements[index[positions]]
        old_values[positions] = current
        hits = positions[same_bits(current, at(expected, positions))]
        if not len(hits):
            return old_values
        element_indices, first = np.unique(index[hits], return_index=True)
        winners = hits[first]
        elements[element_indices] = at(value, winners)
        positions = _after_winners(index, positions, element_indices, winners)
    for position in positions:
        element = index[position]
        old_values[position] = elements[element]
        if same_bits(old_values[position], expected[position] if expected.ndim else expected):
            elements[element] = value[position] if value.ndim else value
    return old_values


def _after_winners(index: Index, positions: Index, element_indices: Index, winners: Index) -> Index:
    """The positions that come after the winner of their element."""
    element = np.minimum(
        np.searchsorted(element_indices, index[positions]), len(element_indices) - 1
    )
    has_winner = element_indices[element] == index[positions]
    later: Index = positions[has_winner & (positions > winners[element])]
    return later


_SPACES = ("global", "shared", "shared::cta", "shared::cluster")
_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
_SCOPES = ("cta", "cluster", "gpu", "sys")
_HINT = "L2::cache_hint"
_VECTORS = ("v2", "v4", "v8")
STORED = {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}
"""The form in memory of types with which NumPy does not calculate."""


def atomic(
    fibre: Fibre,
    addresses: Addresses,
    offset: int,
    site: Site,
    name: str,
    ptx_type: str,
    values: tuple[Value, ...],
    other: Value,
    result: bool,
    *,
    keeps_subnormals: bool = False,
) -> list[Value]:
    """Combine one value, or a vector of them, into memory for each thread, in their order.

    Returns the value that each thread found there before; meaningless if `result` is False.
    `keeps_subnormals`: whether a sum of f32 does so in global memory, too.
    """
    if site.space == "generic" and is_mixed(addresses, offset):
        return _divided(fibre, addresses, offset, site, name, ptx_type, values, other, result)
    low = addresses.lowest() + offset
    in_shared = site.space == "shared" or (
        site.space == "generic" and SHARED_WINDOW <= low < SHARED_WINDOW + WINDOW_BYTES
    )
    atomic_rule = rule(name, ptx_type, in_shared or (keeps_subnormals and ptx_type == "f32"))
    # Only the result of a compare-and-swap shows whether it writes.
    is_swap = name == "cas" and bool(fibre.blocks.observers)
    elements, index = locate(fibre, addresses, offset, site, is_access=not is_swap)
    old_values: list[Value] = []
    for position, value in enumerate(values):
        part = elements[position:]
        if not result and _is_free(atomic_rule, part, value, index):
            _combine_freely(part, index, fibre.n, atomic_rule, value)
            old_values.append(value)
        else:
            old_values.append(combine_in_order(part, index, fibre.n, atomic_rule, value, other))
    if is_swap:
        note_swap(fibre, addresses, offset, site, same_bits(old_values[0], values[0]))
    return old_values


def _is_free(atomic_rule: AtomicRule, elements: Value, value: Value, index: Value) -> bool:
    """Return whether NumPy may combine: no old values are read, and it gives the right result."""
    if atomic_rule.ufunc is None:
        return False
    return not atomic_rule.floating or atomic_rule.is_plain(elements[index], value)


def _combine_freely(
    elements: Elements, index: Index | int, n: int, atomic_rule: AtomicRule, value: Value
) -> None:
    """Combine without old values; each sum of floats is still rounded by itself, in order."""
    assert atomic_rule.ufunc is not None
    if isinstance(index, np.ndarray):
        atomic_rule.ufunc.at(elements, index, value)
    elif atomic_rule.floating:
        atomic_rule.ufunc.at(elements, np.full(n, index, dtype=np.intp), value)
    else:
        total = atomic_rule.ufunc.reduce(np.broadcast_to(value, n), dtype=elements.dtype)
        elements[index] = atomic_rule.ufunc(elements[index], total)


def _divided(
    fibre: Fibre,
    addresses: Addresses,
    offset: int,
    site: Site,
    name: str,
    ptx_type: str,
    values: tuple[Value, ...],
    other: Value,
    result: bool,
) -> list[Value]:
    """Generic addresses of several spaces: each space by itself."""
    results = [np.empty(fibre.n, dtype=site.dtype) for _ in values]
    for positions, part, addresses_of_part in divide(fibre, addresses, offset):
        chosen = tuple(at(value, positions) for value in values)
        old_of_part = atomic(
            part,
            addresses_of_part,
            offset,
            site,
            name,
            ptx_type,
            chosen,
            at(other, positions),
            result,
        )
        for result_of_all, piece in zip(results, old_of_part, strict=True):
            result_of_all[positions] = piece
    return list(results)


def _emit(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    stored = STORED.get(ptx_type, ptx_type)
    operands = list(i.operands)
    target = operands.pop(0) if i.opcode == "atom" else None
    if _HINT in i.modifiers:
        operands.pop()
    name, count = _name_and_count(e, i, ptx_type)
    if len(operands) != (3 if name == "cas" else 2):
        raise e.reject(f"{len(i.operands)} operands do not fit {name}")
    facts = i.facts
    addresses, offset, space = e.address(operands[0], facts.space)
    values = e.values(operands[1], stored)
    if len(values) != count or (target is not None and _width(target) not in (count, 0)):
        raise e.reject(f"it needs vectors of {count} elements")
    other = e.value(operands[2], stored) if name == "cas" else values[0]
    site = e.site(space, stored, count, writes=True)
    e.note_access(addresses, offset, site)
    is_used = target is not None and e.is_used(target)
    if e.late.stores and facts.publishes:
        e.line(f"{e.helper(publish)}(f)")
    order_write(e, addresses, offset, site, strong=True)
    if e.late.stores and is_used and space in ("global", "generic"):
        e.line(f"{e.helper(note_read)}(f)")
    call = (
        f"{e.helper(atomic)}(f, {addresses}, {offset}, {site}, {name!r}, {ptx_type!r},"
        f" ({', '.join(values)},), {other}, {is_used})"
    )
    if target is None or not is_used:
        e.line(call)
        return
    results = e.temporary(call)
    e.assign_all(target, stored, [f"{results}[{k}]" for k in range(count)])


def _width(operand: object) -> int:
    """Elements of a vector operand, 1 for a register, 0 for a sink."""
    if isinstance(operand, Vector):
        return len(operand.items)
    return 0 if isinstance(operand, Immediate) else 1


def _name_and_count(e: Emitter, i: Instruction, ptx_type: str) -> tuple[str, int]:
    """The operation, and how many elements the instruction has."""
    names = [word for word in i.modifiers if ptx_type in TYPES.get(word, ())]
    count = i.facts.vector
    if len(names) != 1:
        raise e.reject("it needs one operation")
    is_half = ptx_type in STORED
    if is_half != ("noftz" in i.modifiers):
        raise e.reject("halves, and only they, need .noftz")
    if count == 1:
        if is_half and names[0] != "add":
            raise e.reject(f"{names[0]} of halves needs a vector")
        return names[0], 1
    if f"v{count}" not in VECTORS.get(ptx_type, ()):
        raise e.reject(f".v{count} does not fit .{ptx_type}")
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
_ALL_TYPES = sorted({ptx_type for types in TYPES.values() for ptx_type in types})
_MODIFIERS = (*_ORDERS, *_SCOPES, *_SPACES, *_VECTORS, "noftz", _HINT)
operation(
    "atom",
    _ALL_TYPES,
    (3, 4, 5),
    _emit,
    effect=Effect.MEMORY,
    modifiers=(*_MODIFIERS, *TYPES),
    section="atom",
)
operation(
    "red",
    [name for name in _ALL_TYPES if name not in ("b16", "b128")],
    (2, 3),
    _emit,
    effect=Effect.MEMORY,
    modifiers=(*_MODIFIERS, *(set(TYPES) - {"exch", "cas"})),
    writes=0,
    section="red",
)
