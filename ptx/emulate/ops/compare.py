"""Comparison and selection. PTX ISA, "Comparison and Selection Instructions"."""

from __future__ import annotations

from ptx.emulate.emitter import Emitter, choose
from ptx.emulate.table import operation, type_suffix
from ptx.emulate.types import kind_of
from ptx.isa.model import Instruction, Operand, Pair

_SECTION = "Comparison and Selection Instructions"
_INTEGERS = tuple(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64))
_FLOATS = ("f32", "f64")
_ORDERED = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OPPOSITE = {"equ": "({a} < {b}) | ({a} > {b})", "ltu": "{a} >= {b}", "leu": "{a} > {b}",
             "gtu": "{a} <= {b}", "geu": "{a} < {b}"}  # fmt: skip
_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_COMPARISONS = frozenset({*_ORDERED, *_OPPOSITE, *_UNSIGNED, "ne", "neu", "num", "nan"})
_BOOLEAN = {"and": "&", "or": "|", "xor": "^"}


def comparison(e: Emitter, name: str, kind: str, left: Operand, right: Operand) -> str:
    """The expression of a comparison; a NaN makes ordered ones false and unordered ones true."""
    a, b = e.value(left, kind), e.value(right, kind)
    if kind[0] != "f":
        if name in _UNSIGNED:
            if kind[0] == "s":
                raise e.refuse(f".{name} needs an unsigned type")
            return f"({a} {_UNSIGNED[name]} {b})"
        if name not in ("ne", *_ORDERED):
            raise e.refuse(f".{name} needs a floating-point type")
        return f"({a} {_ORDERED.get(name, '!=')} {b})"
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
        raise e.refuse(f".{name} needs an integer type")
    return f"(~({_OPPOSITE[name].format(a=a, b=b)}))"


def _names(e: Emitter, i: Instruction) -> tuple[str, str | None]:
    """The comparison and the boolean operator among the modifiers."""
    names = [word for word in i.modifiers if word in _COMPARISONS]
    if len(names) != 1:
        raise e.refuse("it needs one comparison")
    return names[0], next((word for word in i.modifiers if word in _BOOLEAN), None)


def _set_predicate(e: Emitter, i: Instruction) -> None:
    name, boolean = _names(e, i)
    kind = kind_of(type_suffix(i))
    target = i.operands[0]
    result = comparison(e, name, kind, i.operands[1], i.operands[2])
    first, second = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    if second is not None:
        result = e.temporary(result)
    opposite = f"(~{result})"
    if boolean is not None:
        third = e.value(i.operands[3], "pred")
        if second is not None:
            third = e.temporary(third)
        result = f"({result} {_BOOLEAN[boolean]} {third})"
        opposite = f"({opposite} {_BOOLEAN[boolean]} {third})"
    e.assign(first, "pred", result)
    if second is not None:
        e.assign(second, "pred", opposite)


def _set_value(e: Emitter, i: Instruction) -> None:
    name, boolean = _names(e, i)
    target_type, source_type = type_suffix(i).split(".")
    result = comparison(e, name, kind_of(source_type), i.operands[1], i.operands[2])
    if boolean is not None:
        result = f"({result} {_BOOLEAN[boolean]} {e.value(i.operands[3], 'pred')})"
    kind = kind_of(target_type)
    yes = e.constant(1.0 if kind == "f32" else -1, kind)
    pick = e.helper(choose)
    e.assign(i.operands[0], target_type, f"{pick}({result}, {yes}, {e.constant(0, kind)})")


def _select(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    target, yes, no, condition = i.operands
    pick = e.helper(choose)
    arguments = f"{e.value(condition, 'pred')}, {e.value(yes, kind)}, {e.value(no, kind)}"
    e.assign(target, kind, f"{pick}({arguments})")


def _select_sign(e: Emitter, i: Instruction) -> None:
    kind, tested = type_suffix(i).split(".")
    target, yes, no, condition = i.operands
    test = f"{e.value(condition, tested)} >= {e.constant(0, tested)}"
    pick = e.helper(choose)
    e.assign(target, kind, f"{pick}({test}, {e.value(yes, kind)}, {e.value(no, kind)})")


_MODIFIERS = (*_COMPARISONS, *_BOOLEAN)
operation(
    "setp", (*_INTEGERS, *_FLOATS), (3, 4), _set_predicate, modifiers=_MODIFIERS, section=_SECTION
)
operation(
    "set",
    [f"{to}.{of}" for to in ("u32", "s32", "f32") for of in (*_INTEGERS, *_FLOATS)],
    (3, 4),
    _set_value,
    modifiers=_MODIFIERS,
    section=_SECTION,
)
operation("selp", (*_INTEGERS, *_FLOATS), 4, _select, section=_SECTION)
operation(
    "slct",
    [f"{kind}.{tested}" for kind in (*_INTEGERS, *_FLOATS) for tested in ("s32", "f32")],
    4,
    _select_sign,
    section=_SECTION,
)
