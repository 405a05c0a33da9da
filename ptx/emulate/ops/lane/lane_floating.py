"""Arithmetic of single threads on f32 and f64. PTX ISA, "Floating Point Instructions".

A float32 operation is done in float64 and rounded to float32: for sums, products, quotients and
roots that is as one rounding (Figueroa, "When is double rounding innocuous?", 1995). Rounding to
nearest alone is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign, sqrt

from ptx.emulate import ieee
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_table import EmitLane, lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.emulate.ieee import Rounding
from ptx.emulate.ieee.nan import F32_NAN
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.lane.asking import asked
from ptx.emulate.ops.lane.lane_fma import fused64
from ptx.emulate.threads.rows import float_of_word
from ptx.isa.model import Instruction, Operand

_TYPES = ("f32", "f64")
_LEAST = 2.0**-126
_DIRECTED = frozenset({"rz", "rm", "rp"})
_RANGE = 2.0**120  # a float32 below, and above its reciprocal, has float32 neighbours


def operands(e: LaneEmitter, i: Instruction, sources: Sequence[Operand], kind: str) -> list[str]:
    """The sources, subnormal ones as zeros if the instruction says `.ftz`."""
    values = [e.real(operand, kind) for operand in sources]
    if "ftz" not in i.modifiers:
        return values
    known: dict[str, str] = {}
    for value in values:
        if value not in known:
            known[value] = e.temporary(
                f"{value} * 0.0 if -{_LEAST} < {value} < {_LEAST} else {value}"
            )
    return [known[value] for value in values]


def finish(
    e: LaneEmitter, i: Instruction, kind: str, expression: str, ask: str, *, flush: bool = True
) -> None:
    """Round a result to its type and assign it; `ask` has it where it is a NaN, or small.

    `flush`: with `.ftz` the least normal number may be a subnormal one, rounded.
    """
    result = e.temporary(expression)
    if kind == "f32":
        e.line(f"{e.bench('F')}[0] = {result}")
        e.line(f"{result} = F[0]")
    e.line(f"if {result} != {result}: {result} = {_nan(e, kind, ask)}")
    if "ftz" in i.modifiers:
        if flush:
            e.line(f"elif -{_LEAST} <= {result} <= {_LEAST}: {result} = {ask}")
        else:
            e.line(f"elif -{_LEAST} < {result} < {_LEAST}: {result} *= 0.0")
    e.assign(i.operands[0], kind, saturated(i, result))


def saturated(i: Instruction, result: str) -> str:
    """A result clamped to [0, 1] if the instruction says so; NaN and -0 give +0."""
    if "sat" not in i.modifiers:
        return result
    return f"1.0 if {result} > 1.0 else {result} if {result} > 0.0 else 0.0"


def _nan(e: LaneEmitter, kind: str, ask: str) -> str:
    return e.constant(float_of_word(F32_NAN)) if kind == "f32" else ask


def _asked(
    e: LaneEmitter, i: Instruction, function: Callable[..., Value], values: Sequence[str],
    rounding: Rounding = Rounding.RN,
) -> str:  # fmt: skip
    options: dict[str, bool | Rounding] = {"rounding": rounding}
    if "ftz" in i.modifiers:
        options["ftz"] = True
    name = e.helper(asked(function, type_suffix(i), **options))
    return f"{name}({', '.join(values)})"


def _check(e: LaneEmitter, i: Instruction) -> None:
    if not _DIRECTED.isdisjoint(i.modifiers):
        e.refuse()


def _infix(sign: str, function: Callable[..., Value]) -> EmitLane:
    def emit(e: LaneEmitter, i: Instruction) -> None:
        _check(e, i)
        kind = type_suffix(i)
        a, b = operands(e, i, i.operands[1:], kind)
        ask = _asked(e, i, function, (a, b))
        finish(e, i, kind, f"{a} {sign} {b}", ask, flush=sign == "*")

    return emit


def _divide(e: LaneEmitter, i: Instruction) -> None:
    _check(e, i)
    kind = type_suffix(i)
    values = operands(e, i, i.operands[1:], kind)
    ask = _asked(e, i, ieee.div if i.opcode == "div" else ieee.rcp, values)
    a, b = values if i.opcode == "div" else ("1.0", *values)
    finish(e, i, kind, f"{a} / {b} if {b} else {ask}", ask)


def _root(e: LaneEmitter, i: Instruction) -> None:
    _check(e, i)
    kind = type_suffix(i)
    (x,) = operands(e, i, i.operands[1:], kind)
    ask = _asked(e, i, ieee.sqrt, (x,))
    finish(e, i, kind, f"{e.helper(sqrt)}({x}) if {x} >= 0.0 else {ask}", ask, flush=False)


def _fused(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b, c = operands(e, i, i.operands[1:], kind)
    ask = _asked(e, i, ieee.fma, (a, b, c))
    if kind == "f64":
        name = ask.partition("(")[0]
        e.assign(i.operands[0], kind, f"{e.helper(fused64)}({a}, {b}, {c}, {name})")
        return
    total = e.temporary(f"{a} * {b} + {c}")
    e.line(f"{e.bench('F')}[0] = {total}")
    result = e.temporary("F[0]")
    # What is neither a float32 nor half way between two rounds safely twice.
    e.line(f"if {result} != {total}:")
    e.line(f"    F[0] = {total} = {total} + ({total} - {result})")
    e.line(f"    if F[0] == {total} or {total} != {total}: {result} = {ask}")
    if "ftz" in i.modifiers:
        e.line(f"if -{_LEAST} <= {result} <= {_LEAST}: {result} = {ask}")
    e.assign(i.operands[0], kind, saturated(i, result))


def _fused_towards(e: LaneEmitter, i: Instruction) -> None:
    """a·b+c of float32 in a directed mode: the nearest float32, or its neighbour."""
    a, b, c = operands(e, i, i.operands[1:], "f32")
    mode = next(word for word in i.modifiers if word in _DIRECTED)
    ask = _asked(e, i, ieee.fma, (a, b, c), Rounding[mode.upper()])
    e.bench("F"), e.bench("I")
    product = e.temporary(f"{a} * {b}")
    total = e.temporary(f"{product} + {c}")
    e.line(f"F[0] = {total}")
    result = e.temporary("F[0]")
    low, high = 1.0 / _RANGE, _RANGE
    e.line(f"if {low} < {result} < {high} or -{low} > {result} > -{high}:")
    # What the exact value is beyond the nearest float32; Knuth's sum.
    part = e.temporary("None")
    e.lines.pop()
    e.line(f"    {part} = {total} - {product}")
    e.line(f"    {part} = {total} - {result} + (({product} - ({total} - {part})) + ({c} - {part}))")
    up = {"rp": f"{part} > 0.0", "rm": "False", "rz": f"{part} > 0.0 > {result}"}[mode]
    down = {"rp": "False", "rm": f"{part} < 0.0", "rz": f"{part} < 0.0 < {result}"}[mode]
    if up != "False":
        e.line(f"    if {up}: I[0] += 1 if {result} > 0.0 else -1")
    if down != "False":
        e.line(f"    if {down}: I[0] -= 1 if {result} > 0.0 else -1")
    e.line(f"    {result} = F[0]")
    e.line(f"else: {result} = {ask}")
    e.assign(i.operands[0], "f32", saturated(i, result))


def _negate(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    (x,) = operands(e, i, i.operands[1:], kind)
    value = f"-{x}" if i.opcode == "neg" else f"abs({x})"
    ask = f"{e.helper(asked(ieee.neg if i.opcode == 'neg' else ieee.absolute, kind))}({x})"
    e.assign(i.operands[0], kind, f"{value} if {x} == {x} else {_nan(e, kind, ask)}")


def _extreme(sign: str, function: Callable[..., Value]) -> EmitLane:
    def emit(e: LaneEmitter, i: Instruction) -> None:
        if len(i.operands) != 3 or not {"NaN", "xorsign", "abs"}.isdisjoint(i.modifiers):
            e.refuse()
        kind = type_suffix(i)
        a, b = operands(e, i, i.operands[1:], kind)
        ask = f"{e.helper(asked(function, kind))}({a}, {b})"
        chosen = f"{a} if {a} {sign} {b} else {b} if {b} {sign} {a}"
        e.assign(i.operands[0], kind, f"{chosen} else {a} if {a} == {b} and {a} else {ask}")

    return emit


def _copy_sign(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    sign, magnitude = (e.real(operand, kind) for operand in i.operands[1:])
    e.assign(i.operands[0], kind, f"{e.helper(copysign)}({magnitude}, {sign})")


for _name, _sign, _function in (
    ("add", "+", ieee.add), ("sub", "-", ieee.sub), ("mul", "*", ieee.mul),
):  # fmt: skip
    lane_operation(_name, _TYPES, _infix(_sign, _function))
for _name in ("fma", "mad"):
    lane_operation(f"{_name}.rn", _TYPES, _fused)
    for _mode in ("rm", "rp", "rz"):
        lane_operation(f"{_name}.{_mode}", ("f32",), _fused_towards)
lane_operation("div.rn", _TYPES, _divide)
lane_operation("rcp.rn", _TYPES, _divide)
lane_operation("sqrt.rn", _TYPES, _root)
lane_operation("neg", _TYPES, _negate)
lane_operation("abs", _TYPES, _negate)
lane_operation("min", _TYPES, _extreme("<", ieee.minimum))
lane_operation("max", _TYPES, _extreme(">", ieee.maximum))
lane_operation("copysign", _TYPES, _copy_sign)
