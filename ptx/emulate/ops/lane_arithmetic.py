"""Code of arithmetic and logic for single threads, in Python's numbers.

PTX ISA, "Integer Arithmetic", "Logic and Shift" and "Floating Point Instructions". `ops.integer`,
`ops.logic_and_shift` and `ops.floating_point` have the same operations for arrays. Each gives the
same bits as the NumPy code of the same operation; the tests compare them. Rare results, such as a
NaN among float64, come from the function for arrays: see `with_numpy`.

A float32 operation is done in float64 and rounded to float32. For sums, products, quotients and
roots that equals one rounding (Figueroa, "When is double rounding innocuous?", 1995). Rounding to
nearest alone is done here. Approximate functions are computed in float64 and rounded, as
`ptx.emulate.ieee` does for arrays. All functions beyond quotients and roots are NumPy's, whose last
bits are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from math import copysign, fsum, sqrt
from string import Formatter
from typing import Any, Final

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_table import EmitLane, lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.emulate.ieee import Rounding
from ptx.emulate.ieee.exact import SMALL_PRODUCT
from ptx.emulate.ieee.lanes import F32_NAN
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import NUMPY, kind_of, width_of
from ptx.emulate.ops.floating_point import lanewise
from ptx.emulate.threads.rows import column, float_of_word, value_of
from ptx.isa.model import Immediate, Instruction, Operand


@lru_cache(maxsize=1024)  # one entry an instruction variant: a function, its types and its options
def with_numpy(
    function: Callable[..., Value], kind: str, **options: Hashable
) -> Callable[..., Any]:
    """Wrap a function of arrays so that it takes and returns the values of rows."""
    exact, dtype = lanewise(function, **options), np.dtype(NUMPY[kind])

    def call(*operands: Any) -> Any:
        return column(exact(*[value_of((operand,), dtype) for operand in operands]), 1)[0]

    call.__name__ = f"ask_{function.__name__}"
    return call


_SPLITTER: Final = 2.0**27 + 1.0  # Dekker, "A floating-point technique", 1971


def fused64(
    a: float, b: float, c: float, with_numpy_fma: Callable[[float, float, float], float]
) -> float:
    """a·b+c; `with_numpy_fma` decides where a step may overflow, or lose the lowest bits.

    The product is p + e exactly, by Dekker's splitting; `fsum` rounds the sum of three once.
    """
    p = a * b
    if -SMALL_PRODUCT < p < SMALL_PRODUCT:
        has_zero_factor = not p and not (a and b)
        is_sum_of_zero = has_zero_factor and c and c - c == 0.0  # c is finite, and no zero
        return p + c if is_sum_of_zero else with_numpy_fma(a, b, c)
    t = _SPLITTER * a
    high = t - (t - a)
    low = a - high
    t = _SPLITTER * b
    top = t - (t - b)
    low_part = b - top
    try:
        fused = fsum((p, ((high * top - p) + high * low_part + low * top) + low * low_part, c))
    except (OverflowError, ValueError):
        return with_numpy_fma(a, b, c)
    return fused if fused - fused == 0.0 else with_numpy_fma(a, b, c)


_U, _S = ("u16", "u32", "u64"), ("s16", "s32", "s64")


def _twice(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def _template(
    text: str, result: str = "", rejects: str = "", **helpers: Callable[..., object]
) -> EmitLane:
    """An operation that is one expression: a text with the values of the sources a and b.

    {a} are its bits, {ia} the number that it is, {oa} a number in the same order; {ones} are all
    bits of the type, {width} how many. `result` is the type of the result where it is another one.
    """
    fields = [name for _, name, _, _ in Formatter().parse(text) if name]

    def emit(e: LaneEmitter, i: Instruction) -> None:
        if rejects in i.modifiers:
            e.reject()
        kind = type_suffix(i)
        values: dict[str, object] = {name: e.helper(helper) for name, helper in helpers.items()}
        readers = {"": e.bits, "i": e.integer, "o": e.ordered}
        for field in fields:
            if field == "ones":
                values[field] = e.ones(kind)
            elif field == "width":
                values[field] = 8 * width_of(kind_of(kind))
            elif field not in values:
                operand = i.operands[1 + "ab".index(field[-1])]
                read = readers[field[:-1]]
                values[field] = e.predicate(operand) if kind == "pred" else read(operand, kind)
        e.assign(i.operands[0], result or kind, text.format(**values))

    return emit


def _product(e: LaneEmitter, i: Instruction) -> tuple[str, str]:
    """The product that `.lo`, `.hi` or `.wide` selects, of any size, and its kind."""
    kind = type_suffix(i)
    a, b = i.operands[1:3]
    if "wide" in i.modifiers:
        return f"{e.integer(a, kind)} * {e.integer(b, kind)}", _twice(kind)
    if "hi" in i.modifiers:
        return f"({e.integer(a, kind)} * {e.integer(b, kind)} >> {kind[1:]})", kind
    return f"{e.bits(a, kind)} * {e.bits(b, kind)}", kind


def _multiply(e: LaneEmitter, i: Instruction) -> None:
    product, kind = _product(e, i)
    e.assign(i.operands[0], kind, f"{product} & {e.ones(kind)}")


def _multiply_add(e: LaneEmitter, i: Instruction) -> None:
    if "sat" in i.modifiers:
        e.reject()
    product, kind = _product(e, i)
    e.assign(i.operands[0], kind, f"{product} + {e.bits(i.operands[3], kind)} & {e.ones(kind)}")


def quotient(a: int, b: int, mask: int) -> int:
    """a / b towards zero, as unsigned bits; all ones where b is zero."""
    if b == 0:
        return mask
    magnitude = abs(a) // abs(b)
    return (magnitude if (a < 0) == (b < 0) else -magnitude) & mask


def remainder_of(a: int, b: int, mask: int) -> int:
    """Remainder of a / b towards zero, signed as a, as unsigned bits; all ones where b is zero."""
    if b == 0:
        return mask
    magnitude = abs(a) % abs(b)
    return (magnitude if a >= 0 else -magnitude) & mask


def _absolute(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    value = _named(e, i.operands[1], kind)
    mask = e.ones(kind)
    e.assign(i.operands[0], kind, f"{value} if {value} <= {mask >> 1} else -{value} & {mask}")


def _named(e: LaneEmitter, operand: Operand, kind: str) -> str:
    """An operand's bits under a name that may be used twice."""
    text = e.bits(operand, kind)
    return text if text.isalnum() else e.temporary(text)


lane_operation("add", (*_U, *_S), _template("{a} + {b} & {ones}", rejects="sat"))
lane_operation("sub", (*_U, *_S), _template("{a} - {b} & {ones}", rejects="sat"))
lane_operation("mul", (*_U, *_S), _multiply)
lane_operation("mad", (*_U, *_S), _multiply_add)
_text = "{function}({ia}, {ib}, {ones})"
lane_operation("div", (*_U, *_S), _template(_text, function=quotient))
lane_operation("rem", (*_U, *_S), _template(_text, function=remainder_of))
lane_operation("neg", _S, _template("-{a} & {ones}"))
lane_operation("abs", _S, _absolute)
lane_operation("min", (*_U, *_S), _template("{a} if {oa} < {ob} else {b}", rejects="relu"))
lane_operation("max", (*_U, *_S), _template("{a} if {oa} > {ob} else {b}", rejects="relu"))


_BIT_TYPES = ("b16", "b32", "b64")
_NONE = 0xFFFFFFFF


def _shift_left(e: LaneEmitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    width = 8 * width_of(kind)
    value, by = e.bits(i.operands[1], kind), e.bits(i.operands[2], "u32")
    if isinstance(i.operands[2], Immediate):
        shifted = f"{value} << {by} & {e.ones(kind)}" if int(by) < width else "0"
    else:
        shifted = f"{value} << {by} & {e.ones(kind)} if {by} < {width} else 0"
    e.assign(i.operands[0], kind, shifted)


def _shift_right(e: LaneEmitter, i: Instruction) -> None:
    """An amount of the width or more moves all bits out, and leaves those of the sign."""
    kind = kind_of(type_suffix(i))
    value, by = e.integer(i.operands[1], kind), e.bits(i.operands[2], "u32")
    if kind[0] == "s":
        e.assign(i.operands[0], kind, f"{value} >> {by} & {e.ones(kind)}")
    else:
        e.assign(i.operands[0], kind, f"{value} >> {by}")


def field(a: int, start: int, length: int, width: int) -> int:
    """`bfe.u32`, `bfe.u64`: `length` bits from bit `start` on."""
    if width == 32:
        start, length = start & 255, length & 255
    return a >> start & (1 << min(length, width)) - 1


def _extract(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a = e.bits(i.operands[1], kind)
    start, length = (e.bits(operand, "u32") for operand in i.operands[2:])
    e.assign(i.operands[0], kind, f"{e.helper(field)}({a}, {start}, {length}, {kind[1:]})")


for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):
    lane_operation(_name, (*_BIT_TYPES, "pred"), _template(f"{{a}} {_sign} {{b}}"))
lane_operation("not", _BIT_TYPES, _template("{a} ^ {ones}"))
lane_operation("not", ("pred",), _template("not {a}"))
lane_operation("cnot", _BIT_TYPES, _template("0 if {a} else 1"))
lane_operation("shl", _BIT_TYPES, _shift_left)
lane_operation("shr", [f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64)], _shift_right)
lane_operation("popc", ("b32", "b64"), _template("({a}).bit_count()", "u32"))
_zeros = _template("{width} - ({a}).bit_length()", "u32")
lane_operation("clz", ("b32", "b64"), _zeros)
lane_operation("bfe", ("u32", "u64"), _extract)


_TYPES = ("f32", "f64")
_LEAST = 2.0**-126
_DIRECTED = frozenset({"rz", "rm", "rp"})
_RANGE = 2.0**120  # a float32 below, and above its reciprocal, has float32 neighbours


def operands(e: LaneEmitter, i: Instruction, sources: Sequence[Operand], kind: str) -> list[str]:
    """Return the sources, subnormal ones as zeros if the instruction has `.ftz`."""
    values = [e.real(operand, kind) for operand in sources]
    if "ftz" not in i.modifiers:
        return values
    flushed: dict[str, str] = {}
    for value in values:
        if value not in flushed:
            flushed[value] = e.temporary(
                f"{value} * 0.0 if -{_LEAST} < {value} < {_LEAST} else {value}"
            )
    return [flushed[value] for value in values]


def finish(
    e: LaneEmitter,
    i: Instruction,
    kind: str,
    expression: str,
    slow_path: str,
    *,
    flush: bool = True,
) -> None:
    """Round a result to its type and assign it; `slow_path` has it where it is a NaN, or small.

    `flush`: with `.ftz` the least normal number may be a subnormal one, rounded.
    """
    result = e.temporary(expression)
    if kind == "f32":
        e.line(f"{e.bench('F')}[0] = {result}")
        e.line(f"{result} = F[0]")
    e.line(f"if {result} != {result}: {result} = {_nan(e, kind, slow_path)}")
    if "ftz" in i.modifiers:
        if flush:
            e.line(f"elif -{_LEAST} <= {result} <= {_LEAST}: {result} = {slow_path}")
        else:
            e.line(f"elif -{_LEAST} < {result} < {_LEAST}: {result} *= 0.0")
    e.assign(i.operands[0], kind, saturated(i, result))


def saturated(i: Instruction, result: str) -> str:
    """Return a result clamped to [0, 1] if the instruction has `.sat`; NaN and -0 give +0."""
    if "sat" not in i.modifiers:
        return result
    return f"1.0 if {result} > 1.0 else {result} if {result} > 0.0 else 0.0"


def _nan(e: LaneEmitter, kind: str, slow_path: str) -> str:
    return e.constant(float_of_word(F32_NAN)) if kind == "f32" else slow_path


def _numpy_call(
    e: LaneEmitter,
    i: Instruction,
    function: Callable[..., Value],
    values: Sequence[str],
    **options: Hashable,
) -> str:
    if "ftz" in i.modifiers:
        options["ftz"] = True
    name = e.helper(with_numpy(function, type_suffix(i), **options))
    return f"{name}({', '.join(values)})"


def _rounded(
    text: str,
    function: Callable[..., Value],
    *,
    flush: bool = True,
    **helpers: Callable[..., object],
) -> EmitLane:
    """An operation that is one expression of the sources a and b in float64, then rounded.

    {slow_path} is a call of the function for arrays, where the expression is wrong; `flush` as in
    `finish`.
    """

    def emit(e: LaneEmitter, i: Instruction) -> None:
        if not _DIRECTED.isdisjoint(i.modifiers):
            e.reject()
        kind = type_suffix(i)
        values = operands(e, i, i.operands[1:], kind)
        slow_path = _numpy_call(e, i, function, values)
        helper_names = {name: e.helper(helper) for name, helper in helpers.items()}
        helper_names |= dict(zip("ab", values, strict=False))
        finish(e, i, kind, text.format(slow_path=slow_path, **helper_names), slow_path, flush=flush)

    return emit


def _fused(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b, c = operands(e, i, i.operands[1:], kind)
    slow_path = _numpy_call(e, i, ieee.fma, (a, b, c))
    if kind == "f64":
        name = slow_path.partition("(")[0]
        e.assign(i.operands[0], kind, f"{e.helper(fused64)}({a}, {b}, {c}, {name})")
        return
    total = e.temporary(f"{a} * {b} + {c}")
    e.line(f"{e.bench('F')}[0] = {total}")
    result = e.temporary("F[0]")
    # Double rounding is safe for sums that are neither a float32 nor half way between two.
    e.line(f"if {result} != {total}:")
    e.line(f"    F[0] = {total} = {total} + ({total} - {result})")
    e.line(f"    if F[0] == {total} or {total} != {total}: {result} = {slow_path}")
    if "ftz" in i.modifiers:
        e.line(f"if -{_LEAST} <= {result} <= {_LEAST}: {result} = {slow_path}")
    e.assign(i.operands[0], kind, saturated(i, result))


def _fused_towards(e: LaneEmitter, i: Instruction) -> None:
    """a·b+c of float32 in a directed mode: the nearest float32, or its neighbour."""
    a, b, c = operands(e, i, i.operands[1:], "f32")
    mode = next(word for word in i.modifiers if word in _DIRECTED)
    slow_path = _numpy_call(e, i, ieee.fma, (a, b, c), rounding=Rounding[mode.upper()])
    e.bench("F"), e.bench("I")
    product = e.temporary(f"{a} * {b}")
    total = e.temporary(f"{product} + {c}")
    e.line(f"F[0] = {total}")
    result = e.temporary("F[0]")
    low, high = 1.0 / _RANGE, _RANGE
    e.line(f"if {low} < {result} < {high} or -{low} > {result} > -{high}:")
    # The difference of the exact value and the nearest float32; Knuth's sum.
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
    e.line(f"else: {result} = {slow_path}")
    e.assign(i.operands[0], "f32", saturated(i, result))


def _negate(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    (x,) = operands(e, i, i.operands[1:], kind)
    value = f"-{x}" if i.opcode == "neg" else f"abs({x})"
    slow_path = (
        f"{e.helper(with_numpy(ieee.neg if i.opcode == 'neg' else ieee.absolute, kind))}({x})"
    )
    e.assign(i.operands[0], kind, f"{value} if {x} == {x} else {_nan(e, kind, slow_path)}")


def _extreme(sign: str, function: Callable[..., Value]) -> EmitLane:
    def emit(e: LaneEmitter, i: Instruction) -> None:
        if len(i.operands) != 3 or not {"NaN", "xorsign", "abs"}.isdisjoint(i.modifiers):
            e.reject()
        kind = type_suffix(i)
        a, b = operands(e, i, i.operands[1:], kind)
        slow_path = f"{e.helper(with_numpy(function, kind))}({a}, {b})"
        chosen = f"{a} if {a} {sign} {b} else {b} if {b} {sign} {a}"
        e.assign(i.operands[0], kind, f"{chosen} else {a} if {a} == {b} and {a} else {slow_path}")

    return emit


def _copy_sign(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    sign, magnitude = (e.real(operand, kind) for operand in i.operands[1:])
    e.assign(i.operands[0], kind, f"{e.helper(copysign)}({magnitude}, {sign})")


lane_operation("add", _TYPES, _rounded("{a} + {b}", ieee.add, flush=False))
lane_operation("sub", _TYPES, _rounded("{a} - {b}", ieee.sub, flush=False))
lane_operation("mul", _TYPES, _rounded("{a} * {b}", ieee.mul))
for _name in ("fma", "mad"):
    lane_operation(f"{_name}.rn", _TYPES, _fused)
    for _mode in ("rm", "rp", "rz"):
        lane_operation(f"{_name}.{_mode}", ("f32",), _fused_towards)
_RECIPROCAL = "1.0 / {a} if {a} else {slow_path}"
lane_operation("div.rn", _TYPES, _rounded("{a} / {b} if {b} else {slow_path}", ieee.div))
lane_operation("rcp.rn", _TYPES, _rounded(_RECIPROCAL, ieee.rcp))
_text = "{sqrt}({a}) if {a} >= 0.0 else {slow_path}"
lane_operation("sqrt.rn", _TYPES, _rounded(_text, ieee.sqrt, flush=False, sqrt=sqrt))
lane_operation("neg", _TYPES, _negate)
lane_operation("abs", _TYPES, _negate)
lane_operation("min", _TYPES, _extreme("<", ieee.minimum))
lane_operation("max", _TYPES, _extreme(">", ieee.maximum))
lane_operation("copysign", _TYPES, _copy_sign)


_MOST_DIVISOR = 2.0**126  # of `div.approx`


def _upper_reciprocal(e: LaneEmitter, i: Instruction) -> None:
    """`rcp.approx.ftz.f64`: 1/x of the upper words, where neither is small or large."""
    x = e.real(i.operands[1], "f64")
    slow_path = f"{e.helper(with_numpy(ieee.rcp_approx_f64, 'f64'))}({x})"
    e.bench("Q"), e.bench("D")
    upper, least, most = 0xFFFF_FFFF << 32, 2.0**-1021, 2.0**1021
    e.line(f"D[0] = {x}")
    e.line(f"Q[0] &= {upper}")
    result = e.temporary("D[0]")
    e.line(f"if {least} < {result} < {most} or -{least} > {result} > -{most}:")
    e.line(f"    D[0] = 1.0 / {result}")
    e.line(f"    Q[0] &= {upper}")
    e.line(f"    {result} = D[0]")
    e.line(f"else: {result} = {slow_path}")
    e.assign(i.operands[0], "f64", result)


_F32 = ("f32",)
lane_operation("rcp.approx", _F32, _rounded(_RECIPROCAL, ieee.rcp_approx))
_text = "{sqrt}({a}) if {a} > 0.0 else {slow_path}"
lane_operation("sqrt.approx", _F32, _rounded(_text, ieee.sqrt_approx, sqrt=sqrt))
lane_operation("rsqrt.approx", _F32, _rounded(f"1.0 / {_text}", ieee.rsqrt_approx, sqrt=sqrt))
lane_operation("lg2.approx", _F32, _rounded("{log2}({a})", ieee.lg2_approx, log2=np.log2))
lane_operation("ex2.approx", _F32, _rounded("{exp2}({a})", ieee.ex2_approx, exp2=np.exp2))
lane_operation("tanh.approx", _F32, _rounded("{tanh}({a})", ieee.tanh_approx, tanh=np.tanh))
_text = (
    f"{{a}} / {{b}} if {{b}} and -{_MOST_DIVISOR} <= {{b}} <= {_MOST_DIVISOR} else {{slow_path}}"
)
for _name, _function in (("div.approx", ieee.div_approx), ("div.full", ieee.div_full)):
    lane_operation(_name, _F32, _rounded(_text, _function))
lane_operation("rcp.approx.ftz", ("f64",), _upper_reciprocal)
