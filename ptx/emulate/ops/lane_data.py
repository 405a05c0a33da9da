"""Code of comparisons, moves, conversions, loads and stores for single threads.

PTX ISA, "Comparison and Selection" and "Data Movement and Conversion Instructions".
`ops.comparison`, `ops.data_movement` and `ops.conversion` have the same operations for arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, copysign, floor, trunc
from typing import Any, Final

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_registers import held_as
from ptx.emulate.codegen.lane.lane_table import lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.emulate.exec.lane.lane_memory import Elsewhere, lane_load, lane_store
from ptx.emulate.ieee import Rounding
from ptx.emulate.memory.generic_addresses import LOCAL_WINDOW, SHARED_WINDOW
from ptx.emulate.memory.site import Site
from ptx.emulate.model.types import NUMPY, kind_of, unsigned, width_of
from ptx.emulate.ops.data_movement import space_of
from ptx.emulate.ops.lane_arithmetic import operands, saturated, with_numpy
from ptx.emulate.threads.rows import float_of_word, word_of_float
from ptx.isa.model import (
    Address,
    FloatImmediate,
    Instruction,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)

_MOVE_TYPES = tuple(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64))
_WINDOWS = {
    "shared": SHARED_WINDOW,
    "shared::cta": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
}
_FLOAT_OF = {4: "f32", 8: "f64"}


def _move(e: LaneEmitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    target, source = i.operands
    if kind == "pred":
        e.assign(target, kind, e.predicate(source))
    elif isinstance(source, Vector):
        e.assign(target, kind, _packed(e, kind, source))
    elif isinstance(target, Vector):
        _unpack(e, kind, target, source)
    else:
        value, kind = moved(e, source, kind)
        e.assign(target, kind, value)


def moved(e: LaneEmitter, source: Operand, kind: str) -> tuple[str, str]:
    """Return a moved value in the form in which it is held: a float stays a float."""
    if isinstance(source, Register):
        form = e.held(source)
        if form in ("f32", "f64") and width_of(form) == width_of(kind):
            return e.real(source, form), form
        if e.scope.width[e.scope.number(source)] == width_of(kind) and kind[0] == "f":
            return e.bits(source, f"u{8 * width_of(kind)}"), f"u{8 * width_of(kind)}"
    if kind[0] == "f" or isinstance(source, FloatImmediate):
        kind = _FLOAT_OF[width_of(kind)]
        return e.real(source, kind), kind
    return e.bits(source, kind), kind


def _packed(e: LaneEmitter, kind: str, source: Vector) -> str:
    """The elements side by side, the first lowest."""
    bits = 8 * width_of(kind) // len(source.items)
    if kind[0] == "f" or bits not in (8, 16, 32):
        e.reject()
    pieces = [e.bits(item, f"u{bits}") for item in source.items]
    return " | ".join(
        f"{piece} << {position * bits}" if position else piece
        for position, piece in enumerate(pieces)
    )


def _unpack(e: LaneEmitter, kind: str, target: Vector, source: Operand) -> None:
    bits = 8 * width_of(kind) // len(target.items)
    if kind[0] == "f" or bits not in (8, 16, 32):
        e.reject()
    value = e.temporary(e.bits(source, kind))
    for position, item in enumerate(target.items):
        if not isinstance(item, Sink):
            mask = (1 << bits) - 1
            e.assign(item, f"u{bits}", f"{value} >> {position * bits} & {mask}")


def _convert_address(e: LaneEmitter, i: Instruction) -> None:
    """`cvta[.to]`: generic addresses of shared and local memory lie in windows of their own."""
    kind = type_suffix(i)
    value = e.bits(i.operands[1], kind)
    window = next((_WINDOWS[word] for word in i.modifiers if word in _WINDOWS), None)
    if "param" in i.modifiers and e.scope.is_parameter(i.operands[1]):
        window = LOCAL_WINDOW  # a function has its parameters in its frame
    if window is not None:
        value = f"{value} {'-' if 'to' in i.modifiers else '+'} {window} & {e.ones(kind)}"
    elif "const" in i.modifiers and kind == "u64":
        value = f"{value} | ({e.scope.const_base} if {value} >> 32 == 0 else 0)"
    e.assign(i.operands[0], kind, value)


lane_operation("mov", (*_MOVE_TYPES, "f32", "f64", "pred"), _move)
lane_operation("cvta", ("u32", "u64"), _convert_address)


_INTEGERS = tuple(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64))
_FLOATS = ("f32", "f64")
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
          "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}  # fmt: skip
_FLOAT_TESTS = {
    "eq": "{a} == {b}", "lt": "{a} < {b}", "le": "{a} <= {b}", "gt": "{a} > {b}",
    "ge": "{a} >= {b}", "ne": "({a} < {b} or {a} > {b})", "neu": "{a} != {b}",
    "equ": "not ({a} < {b} or {a} > {b})", "ltu": "not {a} >= {b}", "leu": "not {a} > {b}",
    "gtu": "not {a} <= {b}", "geu": "not {a} < {b}", "num": "{a} == {a} and {b} == {b}",
    "nan": "({a} != {a} or {b} != {b})",
}  # fmt: skip
_BOOLEAN = {"and": "&", "or": "|", "xor": "^"}


def test(e: LaneEmitter, i: Instruction, kind: str) -> str:
    """The comparison of the first two sources, and its combination with a predicate."""
    name = next(word for word in i.modifiers if word in _SIGNS or word in _FLOAT_TESTS)
    if kind[0] == "f":
        a, b = operands(e, i, i.operands[1:3], kind)
        expression = _FLOAT_TESTS[name].format(a=a, b=b)
    else:
        kind = kind_of(kind)
        read = e.bits if name in ("eq", "ne") else e.ordered
        a, b = (read(operand, kind) for operand in i.operands[1:3])
        expression = f"{a} {_SIGNS[name]} {b}"
    boolean = next((_BOOLEAN[word] for word in i.modifiers if word in _BOOLEAN), None)
    if boolean is not None:
        expression = f"({expression}) {boolean} {e.predicate(i.operands[3])}"
    return expression


def _set_predicate(e: LaneEmitter, i: Instruction) -> None:
    if isinstance(i.operands[0], Pair):
        e.reject()
    e.assign(i.operands[0], "pred", test(e, i, type_suffix(i)))


def _select(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    target, if_true, if_false, condition = i.operands
    (a, a_kind), (b, b_kind) = (moved(e, operand, kind_of(kind)) for operand in (if_true, if_false))
    if a_kind[0] != b_kind[0] and "f" in (a_kind[0], b_kind[0]):
        if kind[0] == "f":
            a, b, a_kind = e.real(if_true, kind), e.real(if_false, kind), kind
        else:
            a, b, a_kind = e.bits(if_true, kind), e.bits(if_false, kind), kind
    e.assign(target, a_kind, f"{a} if {e.predicate(condition)} else {b}")


def _set_value(e: LaneEmitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    condition = test(e, i, source)
    if target == "f32":
        e.assign(i.operands[0], target, f"1.0 if {condition} else 0.0")
    else:
        e.assign(i.operands[0], target, f"{e.ones(target)} if {condition} else 0")


lane_operation("setp", (*_INTEGERS, *_FLOATS), _set_predicate)
lane_operation("selp", (*_INTEGERS, *_FLOATS), _select)
lane_operation(
    "set",
    [f"{to}.{of}" for to in ("u32", "s32", "f32") for of in (*_INTEGERS, *_FLOATS)],
    _set_value,
)


_CONVERTED = tuple(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
_FORMATS = {"f32": ieee.F32, "f64": ieee.F64}
_MODES: Final[dict[str, Callable[[float], int]]] = {
    "rni": round,
    "rzi": trunc,
    "rmi": floor,
    "rpi": ceil,
}
_ROUNDINGS = {f"{mode.name.lower()}i": mode for mode in Rounding}
_FLAGS = frozenset({"ftz", "sat", "relu", "satfinite", "rz", "rm", "rp"})
_INTEGRAL = 2.0**52  # from here on every float64 is one


def _check(e: LaneEmitter, i: Instruction) -> None:
    if not _FLAGS.isdisjoint(i.modifiers):
        e.reject()


def _among_integers(e: LaneEmitter, i: Instruction) -> None:
    _check(e, i)
    target, source = type_suffix(i).split(".")
    read = e.bits if target[1:] == source[1:] else e.integer
    e.assign(i.operands[0], target, f"{read(i.operands[1], source)} & {e.ones(target)}")


def _from_integer(e: LaneEmitter, i: Instruction) -> None:
    _check(e, i)
    target, source = type_suffix(i).split(".")
    if target == "f32" and source[1:] == "64":
        e.reject()  # rounded to float64 first, it would be rounded twice
    result = e.temporary(f"float({e.integer(i.operands[1], source)})")
    if target == "f32":
        e.line(f"{e.bench('F')}[0] = {result}")
        e.line(f"{result} = F[0]")
    e.assign(i.operands[0], target, result)


def _to_integer(e: LaneEmitter, i: Instruction) -> None:
    _check(e, i)
    target, source = type_suffix(i).split(".")
    mode = next(word for word in i.modifiers if word in _MODES)
    x = e.real(i.operands[1], source)
    dtype: np.dtype[Any] = np.dtype(NUMPY[target])
    slow_path = e.helper(
        with_numpy(ieee.float_to_integer, source, dtype=dtype, rounding=_ROUNDINGS[mode])
    )
    most = e.ones(target) >> (target[0] == "s")
    least = -most - 1 if target[0] == "s" else 0
    if most >= 2**53:
        most >>= 1  # so that it is a float
    is_in_range = f"{float(least)!r} <= {x} <= {float(most)!r}"
    value = f"{e.helper(_MODES[mode])}({x}) & {e.ones(target)}"
    e.assign(i.operands[0], target, f"{value} if {is_in_range} else {slow_path}({x})")


def _among_floats(e: LaneEmitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    if i.modifiers[:-2] != ("sat",):
        _check(e, i)
    elif (target, source) != ("f32", "f32"):
        e.reject()
    x = e.real(i.operands[1], source)
    mode = next((word for word in i.modifiers if word in _MODES), None)
    if mode is not None:
        if target != source:
            e.reject()
        slow_path = e.helper(
            with_numpy(
                ieee.round_to_integral, source, source=_FORMATS[source], rounding=_ROUNDINGS[mode]
            )
        )
        rounded = f"{e.helper(copysign)}(float({e.helper(_MODES[mode])}({x})), {x})"
        is_in_range = f"-{_INTEGRAL} < {x} < {_INTEGRAL}"
        e.assign(i.operands[0], target, f"{rounded} if {is_in_range} else {slow_path}({x})")
        return
    if (target, source) == ("f32", "f32"):
        e.assign(i.operands[0], target, saturated(i, x))
        return
    slow_path = e.helper(
        with_numpy(ieee.convert_float, source, source=_FORMATS[source], target=_FORMATS[target])
    )
    if (target, source) == ("f32", "f64"):
        result = e.temporary(x)
        e.line(f"{e.bench('F')}[0] = {x}")
        e.line(f"{result} = F[0] if {x} == {x} else {slow_path}({x})")
        e.assign(i.operands[0], target, result)
        return
    e.assign(i.operands[0], target, f"{x} if {x} == {x} else {slow_path}({x})")


lane_operation("cvt", [f"{to}.{of}" for to in _CONVERTED for of in _CONVERTED], _among_integers)
for _float in _FORMATS:
    lane_operation("cvt", [f"{_float}.{of}" for of in _CONVERTED], _from_integer)
    lane_operation("cvt", [f"{to}.{_float}" for to in _CONVERTED], _to_integer)
    lane_operation("cvt", [f"{to}.{_float}" for to in _FORMATS], _among_floats)


_TYPES = (*(f"{sign}{bits}" for sign in "bus" for bits in (8, 16, 32, 64)), "f32", "f64")


class LanePlace:
    """The address of an access: a base register or none, an offset, and the space."""

    def __init__(self, e: LaneEmitter, operand: Operand, space: str) -> None:
        if not isinstance(operand, Address):
            e.reject()
        self.offset: int = operand.offset
        self.width: int = 0
        self.base: str = "0"
        self.space: str = space
        if isinstance(operand.base, Register):
            self.space = e.scope.space_of_register(e.instruction) if space == "param" else space
            self.width = e.scope.width[e.scope.number(operand.base)]
            if self.width not in (4, 8):
                e.reject()
            self.base = e.bits(operand.base, f"u{8 * self.width}")
            if self.width == 4 and e.instruction.facts.space == "const":
                self.base, self.width = f"({self.base} + {e.scope.const_base})", 8
        elif isinstance(operand.base, Symbol):
            space_of_symbol, self.base = e.scope.symbol(operand.base.name, e.instruction)
            self.space = (
                "generic" if (space, space_of_symbol) == ("generic", "param") else space_of_symbol
            )

    @property
    def expression(self) -> str:
        """The address."""
        return f"{self.base} + {self.offset}" if self.offset else self.base

    @property
    def arguments(self) -> str:
        """The arguments of the same address for the slow path."""
        return f"{self.base}, {self.width}, {self.offset}"


def _site(e: LaneEmitter, i: Instruction, place: LanePlace, kind: str, count: int) -> Site:
    if i.used_bytes is not None:
        e.reject()
    site = Site(i, place.space, kind, count, writes=i.opcode == "st")
    e.sites.append(site)
    return site


def _begin(e: LaneEmitter, place: LanePlace, site: Site) -> tuple[str, str, str]:
    """The test for the short way, an expression of the first element's index, and the memory.

    For a global access the memory is `v`, its bits are `w`.
    """
    address = e.temporary(place.expression)
    even = f" and not {address} & {site.total - 1}" if site.total > 1 else ""
    if place.space in ("shared", "local"):
        memory = e.bench(f"{place.space}_{site.kind}")
        start = "R[-3]" if place.space == "shared" else "R[-2]"
        most = e.before(f"{place.space}_bytes", f"B.{place.space}_bytes")
        return (
            f"0 <= {address} <= {most} - {site.total}{even}",
            f"{start} + {address} >> {site.shift}",
            memory,
        )
    version = e.before("version", "B.memory.version")
    e.line(f"low, high, known, first, v, w = {e.scope.bind(site, 'site')}.window")
    return (
        f"low <= {address} <= high and known == {version}{even}",
        f"({address} >> {site.shift}) - first",
        "v",
    )


def _load(e: LaneEmitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    target = i.operands[0]
    items = target.items if isinstance(target, Vector) else (target,)
    if space_of(i) == "param" and _load_parameter(e, i, kind, items):
        return
    place = LanePlace(e, i.operands[1], space_of(i))
    if place.space == "param":
        e.reject()
    # Bits without a sign, as a row holds them; `assign` extends them where the register is wider.
    site = _site(e, i, place, unsigned(kind) if kind[0] == "s" else kind, len(items))
    test, index, memory = _begin(e, place, site)
    results = [e.temporary("None") for _ in items] if len(items) > 1 else [f"x{len(e.lines)}"]
    e.line(f"if {test}:")
    if len(items) > 1:
        e.line(f"    k = {index}")
        index = "k"
    for number, result in enumerate(results):
        e.line(f"    {result} = {memory}[{index}{f' + {number}' if number else ''}]")
        if kind == "f32":
            bits = "w" if memory == "v" else e.bench(memory.replace("f32", "u32"))
            word = f"{bits}[{index}{f' + {number}' if number else ''}]"
            e.line(f"    if {result} != {result}: {result} = {e.helper(float_of_word)}({word})")
    _otherwise(
        e,
        f"{', '.join(results)}{',' if len(results) == 1 else ''} = ",
        lane_load_call(e, place, site),
    )
    for item, result in zip(items, results, strict=True):
        if not isinstance(item, Sink):
            e.assign(item, kind, result)


def lane_load_call(e: LaneEmitter, place: LanePlace, site: Site) -> str:
    """The slow path of a load."""
    return f"{e.helper(lane_load)}(f, {place.arguments}, {e.scope.bind(site, 'site')})"


def _otherwise(e: LaneEmitter, target: str, call: str) -> None:
    """The slow path: at once for one thread; several stop, and take it together."""
    e.line(
        f"else: {target}{call}"
        if e.alone
        else f"else: raise {e.scope.bind(Elsewhere, 'elsewhere')}"
    )


def _load_parameter(e: LaneEmitter, i: Instruction, kind: str, items: tuple[Operand, ...]) -> bool:
    """A kernel parameter at a fixed place."""
    source = i.operands[1]
    if not isinstance(source, Address) or not isinstance(source.base, Symbol):
        return False
    if i.used_bytes is not None:
        return False
    space, expression = e.scope.symbol(source.base.name, i)
    if space != "param":
        return False
    params, start = e.bench("params"), int(expression) + source.offset
    for index, item in enumerate(items):
        if not isinstance(item, Sink):
            e.assign(item, kind, f"{params}[{kind!r}, {start + index * width_of(kind)}]")
    return True


def _store(e: LaneEmitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    source = i.operands[1]
    items = source.items if isinstance(source, Vector) else (source,)
    place = LanePlace(e, i.operands[0], space_of(i))
    if place.space == "param":
        e.reject()
    stored = unsigned(kind)
    if held_as(kind) != "int" or all(_is_float(e, item, kind) for item in items):
        stored = f"f{8 * width_of(kind)}"
        values = [e.real(item, stored) for item in items]
    else:
        values = [e.bits(item, kind) for item in items]
    site = _site(e, i, place, stored, len(items))
    test, index, memory = _begin(e, place, site)
    e.line(f"if {test}:")
    if len(items) > 1:
        e.line(f"    k = {index}")
        index = "k"
    for number, value in enumerate(values):
        element = f"{memory}[{index}{f' + {number}' if number else ''}]"
        if stored != "f32":
            e.line(f"    {element} = {value}")
            continue
        bits = "w" if memory == "v" else e.bench(memory.replace("f32", "u32"))
        e.line(f"    if {value} == {value}: {element} = {value}")
        element = f"{bits}[{index}{f' + {number}' if number else ''}]"
        e.line(f"    else: {element} = {e.helper(word_of_float)}({value})")
    site_name = e.scope.bind(site, "site")
    call = f"{e.helper(lane_store)}(f, {place.arguments}, {site_name}, {', '.join(values)})"
    _otherwise(e, "", call)


def _is_float(e: LaneEmitter, item: Operand, kind: str) -> bool:
    """Return whether a register is held as a float of a type's width, and needs its bits read."""
    return (
        isinstance(item, Register)
        and width_of(kind) in (4, 8)
        and e.scope.width[e.scope.number(item)] == width_of(kind)
        and e.held(item) == f"f{8 * width_of(kind)}"
    )


lane_operation("ld", _TYPES, _load)
lane_operation("ldu", _TYPES, _load)
lane_operation("st", _TYPES, _store)
