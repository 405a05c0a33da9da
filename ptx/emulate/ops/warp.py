"""Exchanges among the lanes of a warp, and how lanes meet for them.

PTX ISA, "shfl.sync", "vote.sync", "match.sync", "activemask", "redux.sync", "elect.sync",
"bar.warp.sync".
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import MARKS, Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.exec.sync.warp_group import Group, group_of, packed
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import SynchronisationFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.model.types import NUMPY, kind_of
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Operand, Pair

_ALL = 0xFFFFFFFF


def sync_lanes(e: Emitter, i: Instruction, mask: Operand, values: dict[str, str]) -> str:
    """Wait for the lanes that `mask` names; the name of their `Group` when all are there.

    `values` are names of variables that every lane exchanges; the first is the instruction's second
    operand. Lanes wait for each other that execute the same opcode with the same modifiers,
    wherever it stands.
    """
    word = e.temporary(e.value(mask, "u32"))
    if values:
        values = {**values, **e.bring(i)}
    _wait(e, word, ".".join((i.opcode, *i.modifiers)), values)
    return e.temporary(f"{e.helper(group_of)}(f, {word})")


def sync_warp(e: Emitter, i: Instruction, values: dict[str, str], warps: int = 1) -> str:
    """Wait for the other lanes of each warp at this very instruction; the name of their `Group`.

    Of `warps` together, all wait for each other.

    `values` are names of variables that every lane exchanges. All 32 lanes of a warp must execute
    the instruction, and none may have exited; the ISA leaves open what happens otherwise, here it
    is a fault.
    """
    word = e.constant(_ALL, "u32")
    key = f"{'.'.join((i.opcode, *i.modifiers))} in block {e.here}"
    _wait(e, word, key, values, f", {warps}" if warps > 1 else "")
    instruction = e.scope.bind(i, "instruction")
    return e.temporary(f"{e.helper(whole_warps)}(f, {word}, {instruction})")


def _wait(e: Emitter, mask: str, key: str, values: dict[str, str], more: str = "") -> None:
    """Leave the block until all lanes that the mask names are at a place with the same key."""
    exchanged = ", ".join(f"{name!r}: {value}" for name, value in {"mask": mask, **values}.items())
    arrive = (
        f"f.scheduler.waiting.warp_sync.arrive(f, {mask}, {e.here}, {key!r}, {{{exchanged}}}{more})"
    )
    e.line(f"if not {arrive}: return -1")


def undefined_in_any(fibre: Fibre, group: Group, undefined: Value) -> Value:
    """Return for each thread a read that a value of its group depends on, 0 for none."""
    return group.each(undefined_grid(fibre, group, undefined).max(axis=1))


def undefined_grid(fibre: Fibre, group: Group, undefined: Value) -> NDArray[np.int32]:
    """(rows, 32) the read that each lane's value depends on, 0 for none."""
    return group.grid(fibre, MARKS, undefined).reshape(-1, WARP)


def whole_warps(fibre: Fibre, mask: Value, instruction: Instruction) -> Group:
    """The warps that execute now.

    Raises:
        SynchronisationFault: a warp lacks lanes, which have exited or never were.
    """
    group = group_of(fibre, mask)
    if not group.dense and len(group.slots) != 32 * group.rows:
        members = group.members
        row = int(np.argmax(members != _ALL))
        position = int(np.argmax(group.row == row))
        raise SynchronisationFault(
            f"{instruction.opcode}.sync.aligned is executed by the lanes {int(members[row]):#010x}"
            " of a warp; all 32 must exist and must not have exited",
            fibre.where(position, instruction),
        )
    return group


MODES = ("up", "down", "bfly", "idx")
_LANES = np.arange(WARP, dtype=np.int64)


def source_lanes(
    mode: str, lane: Value, b: Value, c: Value
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The lane that each lane reads, and whether it lies in the segment.

    All are int64 arrays that broadcast. `c` has the clamp value in its low 5 bits and the segment
    mask in bits 8 to 12. A lane whose source is outside of its segment reads itself.
    """
    amount, clamp, segment = b & 31, c & 31, c >> 8 & 31
    least = lane & segment
    most = least | (clamp & ~segment)
    if mode == "up":
        source = lane - amount
        inside = source >= most
    else:
        if mode == "down":
            source = lane + amount
        elif mode == "bfly":
            source = lane ^ amount
        else:
            source = least | (amount & ~segment)
        inside = source <= most
    return np.where(inside, source, lane), inside


@lru_cache(maxsize=1024)  # modes by the constants that occur in kernels
def _table(mode: str, b: int, c: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    return source_lanes(mode, _LANES, b, c)


@lru_cache(maxsize=64)  # as above, for chunks of as many whole warps
def _dense(mode: str, b: int, c: int, rows: int) -> tuple[Index, NDArray[np.bool_]]:
    table, flags = _table(mode, b, c)
    first = np.arange(rows, dtype=np.intp)[:, None] * WARP
    return (first + table).reshape(-1), np.tile(flags, rows)


def _sources(group: Group, mode: str, b: Value, c: Value) -> tuple[Index, NDArray[np.bool_]]:
    """(n,) the place in the grid that each thread reads, and the predicate."""
    key = None
    if not b.ndim and not c.ndim:
        key = (mode, int(b) & 31, int(c) & 0x1F1F)
        if group.dense:
            return _dense(*key, group.rows)
        source_and_predicate: tuple[Index, NDArray[np.bool_]] | None = group.recall(key)
        if source_and_predicate is not None:
            return source_and_predicate
        table, flags = _table(*key)
        lane = group.mine & (WARP - 1)
        source_and_predicate = group.mine - lane + table.take(lane), flags.take(lane)
        group.remember(key, source_and_predicate)
        return source_and_predicate
    lane = (group.mine & (WARP - 1)).astype(np.int64)
    source, inside = source_lanes(mode, lane, b.astype(np.int64), c.astype(np.int64))
    return (group.mine - lane) + source, inside


def shuffle(
    fibre: Fibre, group: Group, mode: str, a: Value, b: Value, c: Value, name: str = "a"
) -> tuple[Value, Value]:
    """`shfl.sync`: the value that each thread reads, and whether its source was in its segment.

    `a` is the fibre's own value under `name`. A lane that takes no part gives zero, as the hardware
    does; the ISA leaves it open.
    """
    positions, inside = _sources(group, mode, b, c)
    if not a.ndim and group.dense:
        return a, inside
    return group.grid(fibre, name, a).take(positions, mode="clip"), inside


def _emit(e: Emitter, i: Instruction) -> None:
    mode = i.modifiers[1]
    target, *sources, mask = i.operands
    a, b, c = (e.temporary(e.value(operand, "u32")) for operand in sources)
    group = sync_lanes(e, i, mask, {"a": a})
    call = f"{e.helper(shuffle)}(f, {group}, {mode!r}"
    result = e.temporary(f"{call}, {a}, {b}, {c})")
    own_sources = tuple(sources[1:])
    if isinstance(target, Pair):
        e.note_exchange(i, target.second, e.constant(0, "s32"), own_sources)
        e.assign(target.second, "pred", f"{result}[1]")
        target = target.first
    e.note_exchange(i, target, f"{call}, {MARKS}, {b}, {c}, {MARKS!r})[0]", own_sources)
    e.assign(target, "b32", f"{result}[0]")


for _mode in MODES:
    operation(f"shfl.sync.{_mode}", ("b32",), 5, _emit, effect=Effect.SYNCS, section="shfl.sync")


_FULL = np.uint32(0xFFFFFFFF)


def ballot(fibre: Fibre, group: Group, flag: Value) -> Value:
    """`vote.ballot`: the lanes whose predicate holds, as bits."""
    if not flag.ndim and group.dense:
        return _FULL if flag else np.uint32(0)
    return group.each(packed(group.grid(fibre, "flag", flag, fill=False)))


def vote(fibre: Fibre, group: Group, mode: str, flag: Value) -> Value:
    """`vote`: whether the predicate holds in all lanes, in any, or is the same in all (`uni`)."""
    if not flag.ndim and group.dense:
        return np.bool_(True) if mode == "uni" else flag
    set_bits = packed(group.grid(fibre, "flag", flag, fill=False))
    if mode == "any":
        return group.each(set_bits != 0)
    verdict = set_bits == group.members
    if mode == "uni":
        verdict |= set_bits == 0
    return group.each(verdict)


def undefined_vote(fibre: Fibre, group: Group, mode: str, flag: Value, undefined: Value) -> Value:
    """Return for each thread a read that `vote` depends on, 0 if defined lanes decide."""
    reads = undefined_grid(fibre, group, undefined)
    is_defined = group.present().reshape(-1, WARP) & (reads == 0)
    holds = group.grid(fibre, "flag", flag, fill=False).reshape(-1, WARP)
    some_true, some_false = (is_defined & holds).any(axis=1), (is_defined & ~holds).any(axis=1)
    decided = {"any": some_true, "all": some_false, "uni": some_true & some_false}[mode]
    return group.each(np.where(decided, np.int32(0), reads.max(axis=1)))


def active_lanes(fibre: Fibre) -> Value:
    """`activemask`: the lanes of the warp that are at this place together."""
    exchange, fibre.exchange = fibre.exchange, None
    group = group_of(fibre, _FULL)
    fibre.exchange = exchange
    return _FULL if group.dense else group.each(group.members)


def elect(group: Group) -> tuple[Value, Value]:
    """`elect.sync`: the lowest lane of the group, and whether a thread is that one."""
    members = group.members
    lowest_bit = members & (~members + np.uint32(1))
    lowest = (np.frexp(lowest_bit.astype(np.float64))[1] - 1).astype(np.uint32)
    leader: Value = group.each(lowest)
    return leader, leader == (group.mine & (WARP - 1))


def _ballot(e: Emitter, i: Instruction) -> None:
    flag = e.temporary(e.value(i.operands[1], "pred"))
    group = sync_lanes(e, i, i.operands[2], {"flag": flag})
    e.note_exchange(i, i.operands[0], f"{e.helper(undefined_in_any)}(f, {group}, {MARKS})")
    e.assign(i.operands[0], "b32", f"{e.helper(ballot)}(f, {group}, {flag})")


def _vote(e: Emitter, i: Instruction) -> None:
    flag = e.temporary(e.value(i.operands[1], "pred"))
    group = sync_lanes(e, i, i.operands[2], {"flag": flag})
    arguments = f"(f, {group}, {i.modifiers[1]!r}, {flag}"
    e.note_exchange(i, i.operands[0], f"{e.helper(undefined_vote)}{arguments}, {MARKS})")
    e.assign(i.operands[0], "pred", f"{e.helper(vote)}{arguments})")


def _active_mask(e: Emitter, i: Instruction) -> None:
    e.assign(i.operands[0], "b32", f"{e.helper(active_lanes)}(f)")


def _elect(e: Emitter, i: Instruction) -> None:
    group = sync_lanes(e, i, i.operands[1], {})
    result = e.temporary(f"{e.helper(elect)}({group})")
    target = i.operands[0]
    if isinstance(target, Pair):
        e.assign(target.second, "pred", f"{result}[1]")
        target = target.first
    e.assign(target, "b32", f"{result}[0]")


def _sync_only(e: Emitter, i: Instruction) -> None:
    sync_lanes(e, i, i.operands[0], {})


operation("vote.sync.ballot", ("b32",), 3, _ballot, effect=Effect.SYNCS, section="vote.sync")
for _mode in ("all", "any", "uni"):
    operation(f"vote.sync.{_mode}", ("pred",), 3, _vote, effect=Effect.SYNCS, section="vote.sync")
# Which lanes are together is known only where no lane is absent: in a block of its own.
operation("activemask", ("b32",), 1, _active_mask, effect=Effect.MEMORY, section="activemask")
operation("elect.sync", ("",), 2, _elect, effect=Effect.SYNCS, section="elect.sync")
operation(
    "bar.warp.sync", ("",), 1, _sync_only, effect=Effect.SYNCS, writes=0, section="bar.warp.sync"
)


def match_any(fibre: Fibre, group: Group, value: Value) -> Value:
    """`match.any`: the lanes that hold the thread's own value."""
    if not value.ndim and group.lanes is None:
        return group.each(group.members)
    grid = group.grid(fibre, "value", value).reshape(-1, WARP)
    matches = np.zeros(grid.shape, dtype=np.uint32)
    for lane in range(WARP):
        matches |= (grid == grid[:, lane : lane + 1]).astype(np.uint32) << np.uint32(lane)
    own_matches = matches.reshape(-1).take(group.mine)
    return own_matches & group.each(group.members)


def match_all(fibre: Fibre, group: Group, value: Value) -> tuple[Value, Value]:
    """`match.all`: the group's lanes if all hold one value, else none; and whether they do."""
    members = group.members
    if not value.ndim and group.lanes is None:
        return group.each(members), np.bool_(True)
    grid = group.grid(fibre, "value", value).reshape(-1, WARP)
    if group.dense:
        alike = (grid == grid[:, :1]).all(axis=1)
    else:
        is_occupied = group.present().reshape(-1, WARP)
        first = is_occupied.argmax(axis=1)
        alike = ((grid == grid[np.arange(len(grid)), first][:, None]) | ~is_occupied).all(axis=1)
    return group.each(np.where(alike, members, np.uint32(0))), group.each(alike)


def undefined_match(fibre: Fibre, group: Group, value: Value, undefined: Value) -> Value:
    """Return for each thread a read that `match.all` depends on, 0 if two defined lanes differ."""
    reads = undefined_grid(fibre, group, undefined)
    is_defined = group.present().reshape(-1, WARP) & (reads == 0)
    grid = group.grid(fibre, "value", value).reshape(-1, WARP)
    first = grid[np.arange(len(grid)), is_defined.argmax(axis=1)]
    differs = (is_defined & (grid != first[:, None])).any(axis=1)
    return group.each(np.where(differs, np.int32(0), reads.max(axis=1)))


def _any(e: Emitter, i: Instruction) -> None:
    value = e.temporary(e.value(i.operands[1], type_suffix(i)))
    group = sync_lanes(e, i, i.operands[2], {"value": value})
    e.note_exchange(i, i.operands[0], f"{e.helper(undefined_in_any)}(f, {group}, {MARKS})")
    e.assign(i.operands[0], "b32", f"{e.helper(match_any)}(f, {group}, {value})")


def _all(e: Emitter, i: Instruction) -> None:
    value = e.temporary(e.value(i.operands[1], type_suffix(i)))
    group = sync_lanes(e, i, i.operands[2], {"value": value})
    result = e.temporary(f"{e.helper(match_all)}(f, {group}, {value})")
    target = i.operands[0]
    reads = f"{e.helper(undefined_match)}(f, {group}, {value}, {MARKS})"
    e.note_exchange(i, target, reads)
    if isinstance(target, Pair):
        e.assign(target.second, "pred", f"{result}[1]")
        target = target.first
    e.assign(target, "b32", f"{result}[0]")


for _mode, _emit in (("any", _any), ("all", _all)):
    operation(
        f"match.{_mode}.sync", ("b32", "b64"), 3, _emit, effect=Effect.SYNCS, section="match.sync"
    )


_UFUNCS: dict[str, Any] = {  # NumPy's stubs give `reduce` no dtype of its own
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_CANONICAL_NAN = np.uint32(0x7FFFFFFF).view(np.float32)


def _neutral(name: str, kind: str) -> Value:
    """Return the neutral element of a reduction."""
    dtype = NUMPY[kind]
    if name in ("min", "max"):
        info = np.iinfo(kind.replace("u", "uint").replace("s", "int"))
        return dtype(info.max if name == "min" else info.min)
    return dtype(0xFFFFFFFF if name == "and" else 0)


def reduce_integers(fibre: Fibre, group: Group, name: str, kind: str, value: Value) -> Value:
    """`redux.sync` of 32-bit integers; a sum wraps."""
    grid = group.grid(fibre, "value", value, fill=_neutral(name, kind)).reshape(-1, WARP)
    return group.each(_UFUNCS[name].reduce(grid, axis=1, dtype=grid.dtype))


def reduce_floats(
    fibre: Fibre, group: Group, name: str, absolute: bool, nan: bool, value: Value
) -> Value:
    """`redux.sync.min` and `.max` of f32: -0 is below +0.

    A NaN counts only if all are, or with `.NaN` if one is; then the result is the canonical NaN.
    """
    grid = group.grid(fibre, "value", value, fill=np.float32("nan")).reshape(-1, WARP)
    if absolute:
        grid = np.abs(grid)
    is_occupied = group.present().reshape(-1, WARP)
    is_nan = np.isnan(grid)
    # In this order of integers the floats are ordered, signed zeros too.
    bits = grid.view(np.int32)
    order = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)
    edge = np.iinfo(np.int32)
    last = np.int32(edge.max if name == "min" else edge.min)
    best = _UFUNCS[name].reduce(np.where(is_nan | ~is_occupied, last, order), axis=1)
    result = np.where(best < 0, best ^ np.int32(0x7FFFFFFF), best).view(np.float32)
    wrong = (is_nan & is_occupied).any(axis=1) if nan else (is_nan | ~is_occupied).all(axis=1)
    return group.each(np.where(wrong, _CANONICAL_NAN, result))


def _emit_integer(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    value = e.temporary(e.value(i.operands[1], ptx_type))
    group = sync_lanes(e, i, i.operands[2], {"value": value})
    _follow(e, i, group)
    call = f"{e.helper(reduce_integers)}(f, {group}, {i.modifiers[1]!r}, {kind_of(ptx_type)!r}"
    e.assign(i.operands[0], ptx_type, f"{call}, {value})")


def _emit_float(e: Emitter, i: Instruction) -> None:
    value = e.temporary(e.value(i.operands[1], "f32"))
    group = sync_lanes(e, i, i.operands[2], {"value": value})
    name, absolute, nan = i.modifiers[1], "abs" in i.modifiers, "NaN" in i.modifiers
    _follow(e, i, group)
    call = f"{e.helper(reduce_floats)}(f, {group}, {name!r}, {absolute}, {nan}, {value})"
    e.assign(i.operands[0], "f32", call)


def _follow(e: Emitter, i: Instruction, group: str) -> None:
    e.note_exchange(i, i.operands[0], f"{e.helper(undefined_in_any)}(f, {group}, {MARKS})")


_operation = partial(operation, arity=3, effect=Effect.SYNCS, section="redux.sync")
for _name in ("add", "min", "max"):
    _operation(f"redux.sync.{_name}", ("u32", "s32"), emit=_emit_integer)
for _name in ("and", "or", "xor"):
    _operation(f"redux.sync.{_name}", ("b32",), emit=_emit_integer)
for _name in ("min", "max"):
    _operation(f"redux.sync.{_name}", ("f32",), emit=_emit_float, modifiers=("abs", "NaN"))
