"""Comparison and selection. PTX ISA, "Comparison and Selection Instructions"."""

from __future__ import annotations

from functools import partial

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter, choose
from ptx.emulate.codegen.table import operation, type_suffix
from ptx.emulate.ieee.half import flush, widen
from ptx.emulate.model.types import kind_of
from ptx.emulate.ops.floating_point import call_of, flushed_values
from ptx.isa.model import Instruction, Pair

_operation = partial(operation, section="Comparison and Selection Instructions")
_INTEGERS = tuple(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64))
_FLOATS = ("f32", "f64")
_ORDERED = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OPPOSITE = {"equ": "({a} < {b}) | ({a} > {b})", "ltu": "{a} >= {b}", "leu": "{a} > {b}",
             "gtu": "{a} <= {b}", "geu": "{a} < {b}"}  # fmt: skip
_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_COMPARISONS = frozenset({*_ORDERED, *_OPPOSITE, *_UNSIGNED, "ne", "neu", "num", "nan"})
_BOOLEAN = {"and": "&", "or": "|", "xor": "^"}
_HALVES = {"f16": ieee.F16, "bf16": ieee.BF16}
# The value that `set` writes for true, and its kind; -1 in other types.
_TRUE: dict[str, tuple[int | float, str]] = {
    "f32": (1.0, "f32"),
    "f16": (0x3C00, "u16"),
    "bf16": (0x3F80, "u16"),
}


def comparison(e: Emitter, i: Instruction, name: str, ptx_type: str) -> str:
    """The expression of a comparison of the first two sources, read as a type."""
    left, right = i.operands[1:3]
    if ptx_type in _HALVES:
        halves = (_widened(e, i, ptx_type, e.value(x, "b16")) for x in (left, right))
        return _compare_floats(e, name, *halves)
    kind = kind_of(ptx_type)
    a, b = flushed_values(e, (left, right), kind, "ftz" in i.modifiers)
    if kind[0] == "f":
        return _compare_floats(e, name, a, b)
    if name in _UNSIGNED:
        if kind[0] == "s":
            raise e.reject(f".{name} needs an unsigned type")
        return f"({a} {_UNSIGNED[name]} {b})"
    if name not in ("ne", *_ORDERED):
        raise e.reject(f".{name} needs a floating-point type")
    return f"({a} {_ORDERED.get(name, '!=')} {b})"


def _compare_floats(e: Emitter, name: str, a: str, b: str) -> str:
    """A comparison of floats; a NaN makes ordered ones false and unordered ones true."""
    if name in _ORDERED:
        return f"({a} {_ORDERED[name]} {b})"
    if name == "ne":
        return f"(({a} < {b}) | ({a} > {b}))"
    if name == "neu":
        return f"({a} != {b})"
    if name == "num":
        return f"(({a} == {a}) & ({b} == {b}))"
    if name == "nan":
        return f"(({a} != {a}) | ({b} != {b}))"
    if name not in _OPPOSITE:
        raise e.reject(f".{name} needs an integer type")
    return f"(~({_OPPOSITE[name].format(a=a, b=b)}))"


def _widened(e: Emitter, i: Instruction, half: str, bits: str) -> str:
    """Half-precision bits as float32."""
    kind = _HALVES[half]
    if "ftz" in i.modifiers:
        bits = call_of(e, flush, bits, kind=kind)
    return e.temporary(f"{e.helper(widen)}({bits}, {e.scope.bind(kind)})")


def _compare_packed(e: Emitter, i: Instruction, name: str, half: str) -> tuple[str, str]:
    """The comparisons of the low and of the high halves of two words."""
    u16, sixteen = e.dtype("u16"), e.constant(16, "u32")
    words = [e.value(operand, "b32") for operand in i.operands[1:3]]
    low = [_widened(e, i, half, f"{word}.astype({u16})") for word in words]
    high = [_widened(e, i, half, f"({word} >> {sixteen}).astype({u16})") for word in words]
    return _compare_floats(e, name, *low), _compare_floats(e, name, *high)


def _names(e: Emitter, i: Instruction) -> tuple[str, str | None]:
    """The comparison and the boolean operator among the modifiers."""
    names = [word for word in i.modifiers if word in _COMPARISONS]
    if len(names) != 1:
        raise e.reject("it needs one comparison")
    return names[0], next((word for word in i.modifiers if word in _BOOLEAN), None)


def _combined(e: Emitter, i: Instruction, boolean: str | None, results: list[str]) -> list[str]:
    """The results combined with the predicate operand."""
    if boolean is None:
        if len(i.operands) == 4:
            raise e.reject("it needs a boolean operator")
        return results
    if len(i.operands) != 4:
        raise e.reject("it needs a predicate to combine with")
    third = e.value(i.operands[3], "pred")
    if len(results) > 1:
        third = e.temporary(third)
    return [f"({result} {_BOOLEAN[boolean]} {third})" for result in results]


def _set_predicate(e: Emitter, i: Instruction) -> None:
    name, boolean = _names(e, i)
    result = comparison(e, i, name, type_suffix(i))
    target = i.operands[0]
    if not isinstance(target, Pair):
        e.assign(target, "pred", *_combined(e, i, boolean, [result]))
        return
    result = e.temporary(result)
    first, second = _combined(e, i, boolean, [result, f"(~{result})"])
    _assign_pair(e, target, first, second)


def _set_predicates(e: Emitter, i: Instruction) -> None:
    """The packed form: one predicate for each half."""
    name, boolean = _names(e, i)
    target = i.operands[0]
    if not isinstance(target, Pair):
        raise e.reject("it needs two predicates, p|q")
    results = _compare_packed(e, i, name, type_suffix(i).removesuffix("x2"))
    _assign_pair(e, target, *_combined(e, i, boolean, list(results)))


def _assign_pair(e: Emitter, target: Pair, first: str, second: str) -> None:
    """Write two predicates; both are computed before one of them changes."""
    first, second = e.temporary(first), e.temporary(second)
    e.assign(target.first, "pred", first)
    e.assign(target.second, "pred", second)


def _set_value(e: Emitter, i: Instruction) -> None:
    name, boolean = _names(e, i)
    target, source = type_suffix(i).split(".")
    (result,) = _combined(e, i, boolean, [comparison(e, i, name, source)])
    stored_kind = "b16" if target in _HALVES else target
    if_true = e.constant(*_TRUE.get(target, (-1, kind_of(stored_kind))))
    if_false = e.constant(0, kind_of(stored_kind))
    e.assign(i.operands[0], stored_kind, f"{e.helper(choose)}({result}, {if_true}, {if_false})")


def _set_values(e: Emitter, i: Instruction) -> None:
    """The packed form: one value for each half of the destination."""
    name, boolean = _names(e, i)
    target, source = type_suffix(i).split(".")
    results = _compare_packed(e, i, name, source.removesuffix("x2"))
    value = _TRUE[target.removesuffix("x2")][0] if target.endswith("x2") else 0xFFFF
    pick, zero = e.helper(choose), e.constant(0, "u32")
    low, high = (
        f"{pick}({result}, {e.constant(int(value) << shift, 'u32')}, {zero})"
        for result, shift in zip(_combined(e, i, boolean, list(results)), (0, 16), strict=True)
    )
    e.assign(i.operands[0], "b32", f"({low} | {high})")


def _select(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    target, if_true, if_false, condition = i.operands
    pick = e.helper(choose)
    arguments = f"{e.value(condition, 'pred')}, {e.value(if_true, kind)}, {e.value(if_false, kind)}"
    e.assign(target, kind, f"{pick}({arguments})")


def _select_sign(e: Emitter, i: Instruction) -> None:
    kind, tested = type_suffix(i).split(".")
    target, if_true, if_false, condition = i.operands
    (value,) = flushed_values(e, (condition,), tested, "ftz" in i.modifiers)
    test = f"({value} >= {e.constant(0, tested)})"
    pick = e.helper(choose)
    e.assign(target, kind, f"{pick}({test}, {e.value(if_true, kind)}, {e.value(if_false, kind)})")


_MODIFIERS = (*_COMPARISONS, *_BOOLEAN)
_FLUSHING = (*_MODIFIERS, "ftz")
_PACKED = ("f16x2", "bf16x2")
_operation("setp", (*_INTEGERS, "f64"), (3, 4), _set_predicate, modifiers=_MODIFIERS)
_operation("setp", ("f32", *_HALVES), (3, 4), _set_predicate, modifiers=_FLUSHING)
_operation("setp", _PACKED, (3, 4), _set_predicates, modifiers=_FLUSHING)
_SET_TARGETS = ("u32", "s32", "f32", *_HALVES)
_operation(
    "set",
    [f"{to}.{of}" for to in _SET_TARGETS for of in (*_INTEGERS, "f64")],
    (3, 4),
    _set_value,
    modifiers=_MODIFIERS,
)
_HALF_SETS = (f"{to}.{of}" for to in (*_SET_TARGETS, "u16", "s16") for of in _HALVES)
_operation(
    "set",
    [*(f"{to}.f32" for to in _SET_TARGETS), *_HALF_SETS],
    (3, 4),
    _set_value,
    modifiers=_FLUSHING,
)
_operation(
    "set",
    [f"{to}.{of}" for of in _PACKED for to in (of, "u32", "s32")],
    (3, 4),
    _set_values,
    modifiers=_FLUSHING,
)
_operation("selp", (*_INTEGERS, *_FLOATS), 4, _select)
_operation("slct", [f"{kind}.s32" for kind in (*_INTEGERS, *_FLOATS)], 4, _select_sign)
_operation(
    "slct", [f"{kind}.f32" for kind in (*_INTEGERS, *_FLOATS)], 4, _select_sign, modifiers=("ftz",)
)
