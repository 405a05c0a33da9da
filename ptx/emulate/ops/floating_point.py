"""Arithmetic on f16, bf16, f32 and f64, and how generated code calls `ptx.emulate.ieee`.

PTX ISA, "Floating Point Instructions", "Half Precision Floating Point Instructions", "Mixed
Precision Floating Point Instructions". Rounding to nearest without `.ftz` is what NumPy's operators
do, but for NaNs: see `settled`.

A launch has set `np.errstate` already, and the functions' own setting costs microseconds. So the
functions inside of the `elementwise` wrapper are called, with uniform values as arrays of one lane.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache, partial

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.analysis.float_registers import is_subnormal
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.ieee import Rounding, flush_subnormals
from ptx.emulate.ieee.exact import fma32, uniform_fma32
from ptx.emulate.ieee.half import widen
from ptx.emulate.ieee.lanes import F32_NAN, settle_nans
from ptx.emulate.model.geometry import Value
from ptx.isa.model import FloatImmediate, Instruction, Operand, Register

ROUNDINGS: dict[str, Rounding] = {name: Rounding[name.upper()] for name in ("rn", "rz", "rm", "rp")}
INTEGRAL_ROUNDINGS: dict[str, Rounding] = {f"{name}i": mode for name, mode in ROUNDINGS.items()}


def rounding_of(i: Instruction, modes: dict[str, Rounding] = ROUNDINGS) -> Rounding | None:
    """The rounding mode among the modifiers, None if there is none."""
    return next((modes[word] for word in i.modifiers if word in modes), None)


@lru_cache(maxsize=1024)  # one entry an instruction variant: a function and its options
def lanewise(function: Callable[..., Value], **options: Hashable) -> Callable[..., Value]:
    """A function of arrays, with fixed options, that takes scalars and gives one for them."""
    kernel = inspect.unwrap(function)

    def call(*operands: Value) -> Value:
        for operand in operands:
            if operand.ndim:
                arrays = [x if x.ndim else x.reshape(1) for x in operands]
                return kernel(*arrays, **options)
        return kernel(*[x.reshape(1) for x in operands], **options)[0]

    call.__name__ = function.__name__
    return call


@lru_cache(maxsize=1024)  # as above
def lanewise_packed(
    function: Callable[..., Value], part: str, word: str, **options: Hashable
) -> Callable[..., Value]:
    """A function of lanes of NumPy type `part`, applied to unsigned words of several of them."""
    kernel = inspect.unwrap(function)

    def call(*operands: Value) -> Value:
        n = max(x.size for x in operands)
        uniform = all(x.ndim == 0 for x in operands)
        lanes = [np.ascontiguousarray(x if x.ndim else np.full(n, x)).view(part) for x in operands]
        result = kernel(*lanes, **options).view(word)
        return result[0] if uniform else result

    call.__name__ = function.__name__
    return call


def call_of(e: Emitter, function: Callable[..., Value], *operands: str, **options: Hashable) -> str:
    """The expression of a call of a function, lane by lane."""
    return f"{e.helper(lanewise(function, **options))}({', '.join(operands)})"


def flushed(e: Emitter, operand: Operand) -> str:
    """The value of a float32 operand with subnormal numbers flushed, at no cost if it has none."""
    value = e.value(operand, "f32")
    if isinstance(operand, Register) and operand.name in e.scope.without_subnormals:
        return value
    if (
        isinstance(operand, FloatImmediate)
        and operand.width == 32
        and not is_subnormal(operand.bits)
    ):
        return value
    return e.temporary(call_of(e, flush_subnormals, value))


def flushed_values(e: Emitter, operands: Sequence[Operand], kind: str, ftz: bool) -> list[str]:
    """The values of operands, flushed if the instruction has `.ftz`; equal operands only once."""
    if not ftz:
        return [e.value(operand, kind) for operand in operands]
    values: dict[Operand, str] = {}
    for operand in operands:
        if operand not in values:
            values[operand] = flushed(e, operand)
    return [values[operand] for operand in operands]


_TYPES = ("f32", "f64")
_operation = partial(operation, section="Floating Point Instructions")
_CANONICAL = np.uint32(F32_NAN).view(np.float32)
_HALVES = {"f16": ieee.F16, "bf16": ieee.BF16}


def settled(result: Value) -> Value:
    """A new float32 result with the canonical NaN where it is one."""
    if result.ndim:
        return settle_nans(result)
    return result if result == result else _CANONICAL


def settled64(result: Value, *operands: Value) -> Value:
    """A new float64 result with the NaN that hardware takes from the operands, first ones first."""
    if result.ndim:
        return settle_nans(result, *operands)
    if result == result:
        return result
    return settle_nans(result.reshape(1), *(x.reshape(1) for x in operands))[0]


def settle(e: Emitter, target: Operand, kind: str, expression: str, *operands: str) -> str:
    """The expression of a result whose NaNs have the hardware's bits wherever they can be seen.

    `operands` are those whose NaN a float64 result takes, in the hardware's order.
    """
    if kind == "f64":
        return f"{e.helper(settled64)}({', '.join((expression, *operands))})"
    if not _shows_nans(e, target):
        return expression
    return f"{e.helper(settled)}({expression})"


def finish(e: Emitter, i: Instruction, kind: str, expression: str) -> None:
    """Assign a result, saturated if the instruction has `.sat`."""
    if "sat" in i.modifiers:
        expression = call_of(e, ieee.saturate, expression)
    e.assign(i.operands[0], kind, expression)


def _is_plain(i: Instruction) -> bool:
    """Return whether NumPy's operators do it."""
    return rounding_of(i) in (None, Rounding.RN) and "ftz" not in i.modifiers


def options_of(i: Instruction) -> dict[str, bool | Rounding]:
    """The options of the functions of `ieee` for an instruction's modifiers."""
    options: dict[str, bool | Rounding] = {"rounding": rounding_of(i) or Rounding.RN}
    if "ftz" in i.modifiers:
        options["ftz"] = True
    return options


def _shows_nans(e: Emitter, target: Operand) -> bool:
    return not isinstance(target, Register) or target.name in e.scope.visible_bits


def _flushed_options(e: Emitter, i: Instruction) -> dict[str, bool | Rounding]:
    """The options where the operands are those of `_values`."""
    options = options_of(i)
    if "ftz" in options:
        options["flushed"] = True
    if type_suffix(i) == "f32" and not _shows_nans(e, i.operands[0]):
        options["nans"] = False
    return options


def _values(e: Emitter, i: Instruction, kind: str) -> list[str]:
    """Return the source operands, subnormal ones as zeros if the instruction has `.ftz`."""
    return flushed_values(e, i.operands[1:], kind, "ftz" in i.modifiers)


def _sum_or_product(sign: str, function: Callable[..., Value]) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        a, b = _values(e, i, kind)
        if not _is_plain(i):
            result = call_of(e, function, a, b, **_flushed_options(e, i))
        elif "sat" in i.modifiers:
            result = f"({a} {sign} {b})"
        else:
            result = settle(e, i.operands[0], kind, f"({a} {sign} {b})", b, a)
        finish(e, i, kind, result)

    return emit


def fused(a: Value, b: Value, c: Value, nans: bool) -> Value:
    """a·b+c of float32 rounded once to nearest, fast for arrays and for scalars.

    `nans`: a NaN gets the canonical bits.
    """
    if a.ndim or b.ndim or c.ndim:
        return fma32(
            a if a.ndim else a.reshape(1),
            b if b.ndim else b.reshape(1),
            c if c.ndim else c.reshape(1),
            Rounding.RN,
            nans=nans,
        )
    return uniform_fma32(a, b, c)


def _fused(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b, c = _values(e, i, kind)
    if kind == "f32" and _is_plain(i):
        nans = _shows_nans(e, i.operands[0])
        result = f"{e.helper(fused)}({a}, {b}, {c}, {nans})"
    else:
        result = call_of(e, ieee.fma, a, b, c, **_flushed_options(e, i))
    finish(e, i, kind, result)


def _divide(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b = _values(e, i, kind)
    if _is_plain(i):
        result = settle(e, i.operands[0], kind, f"({a} / {b})", a, b)
    else:
        result = call_of(e, ieee.div, a, b, **_flushed_options(e, i))
    e.assign(i.operands[0], kind, result)


def _of_one(plain: Callable[[Emitter, str, str], str], exact: Callable[..., Value]) -> EmitFunction:
    """An operation on one value: `plain` gives NumPy's text for it, of the value and its type."""

    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        (x,) = _values(e, i, kind)
        if _is_plain(i):
            result = settle(e, i.operands[0], kind, plain(e, x, kind), x)
        else:
            result = call_of(e, exact, x, **_flushed_options(e, i))
        e.assign(i.operands[0], kind, result)

    return emit


_reciprocal = _of_one(lambda e, x, kind: f"({e.constant(1.0, kind)} / {x})", ieee.rcp)
_root = _of_one(lambda e, x, kind: f"{e.helper(np.sqrt)}({x})", ieee.sqrt)


def _packed(function: Callable[..., Value]) -> EmitFunction:
    """`f32x2`: two operations on the halves of 64-bit words."""

    def emit(e: Emitter, i: Instruction) -> None:
        words = [e.value(operand, "b64") for operand in i.operands[1:]]
        call = lanewise_packed(function, "float32", "uint64", **options_of(i))
        e.assign(i.operands[0], "b64", f"{e.helper(call)}({', '.join(words)})")

    return emit


def _mixed(function: Callable[..., Value]) -> EmitFunction:
    """`add.f32.f16` and the like: the halves are widened, which is exact."""

    def emit(e: Emitter, i: Instruction) -> None:
        half = type_suffix(i).split(".")[1]
        name, kind = e.helper(widen), e.scope.bind(_HALVES[half])
        *halves, last = i.operands[1:]
        values = [f"{name}({e.value(operand, 'b16')}, {kind})" for operand in halves]
        result = call_of(e, function, *values, e.value(last, "f32"), **options_of(i))
        finish(e, i, "f32", result)

    return emit


_MIXED = ("f32.f16", "f32.bf16")
_function: Callable[..., Value]
for _name, _sign, _function in (
    ("add", "+", ieee.add),
    ("sub", "-", ieee.sub),
    ("mul", "*", ieee.mul),
):
    _operation(
        _name, ("f32",), 3, _sum_or_product(_sign, _function), modifiers=(*ROUNDINGS, "ftz", "sat")
    )
    _operation(_name, ("f64",), 3, _sum_or_product(_sign, _function), modifiers=ROUNDINGS)
    _operation(_name, ("f32x2",), 3, _packed(_function), modifiers=(*ROUNDINGS, "ftz"))
    if _name != "mul":
        operation(
            _name,
            _MIXED,
            3,
            _mixed(_function),
            modifiers=(*ROUNDINGS, "sat"),
            section="Mixed Precision Floating Point Instructions",
        )
for _mode in ROUNDINGS:
    _operation(f"fma.{_mode}", ("f32",), 4, _fused, modifiers=("ftz", "sat"))
    _operation(f"mad.{_mode}", ("f32",), 4, _fused, modifiers=("ftz", "sat"))
    _operation(f"fma.{_mode}", ("f64",), 4, _fused)
    _operation(f"mad.{_mode}", ("f64",), 4, _fused)
    _operation(f"fma.{_mode}", ("f32x2",), 4, _packed(ieee.fma), modifiers=("ftz",))
    operation(
        f"fma.{_mode}",
        _MIXED,
        4,
        _mixed(ieee.fma),
        modifiers=("sat",),
        section="Mixed Precision Floating Point Instructions",
    )
    for _name, _arity, _emit in (("div", 3, _divide), ("rcp", 2, _reciprocal), ("sqrt", 2, _root)):
        _operation(f"{_name}.{_mode}", ("f32",), _arity, _emit, modifiers=("ftz",))
        _operation(f"{_name}.{_mode}", ("f64",), _arity, _emit)


_PROPERTIES = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")


def _negate(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    (x,) = _values(e, i, kind)
    e.assign(i.operands[0], kind, settle(e, i.operands[0], kind, f"(-{x})", x))


def _absolute(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    (x,) = _values(e, i, kind)
    magnitude = f"{e.helper(np.absolute)}({x})"
    e.assign(i.operands[0], kind, settle(e, i.operands[0], kind, magnitude, x))


def _copy_sign(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    sign, magnitude = (e.value(operand, kind) for operand in i.operands[1:])
    e.assign(i.operands[0], kind, f"{e.helper(np.copysign)}({magnitude}, {sign})")


def _test(e: Emitter, i: Instruction) -> None:
    property_name = next(word for word in i.modifiers if word in _PROPERTIES)
    value = e.value(i.operands[1], type_suffix(i))
    e.assign(i.operands[0], "pred", call_of(e, ieee.testp, value, which=property_name))


def _extreme(function: Callable[..., Value]) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        words = i.modifiers
        if "xorsign" in words and ("abs" not in words or len(i.operands) == 4):
            raise e.reject(".xorsign goes with .abs and two operands")
        options: dict[str, bool] = {}
        if "NaN" in words:
            options["nan"] = True
        if "xorsign" in words:
            options["xorsign"] = True
        elif "abs" in words:
            options["magnitudes"] = True
        e.assign(i.operands[0], kind, call_of(e, function, *_values(e, i, kind), **options))

    return emit


for _name, _emit in (("neg", _negate), ("abs", _absolute)):
    _operation(_name, ("f32",), 2, _emit, modifiers=("ftz",))
    _operation(_name, ("f64",), 2, _emit)
for _name, _function in (("min", ieee.minimum), ("max", ieee.maximum)):
    _operation(
        _name, ("f32",), (3, 4), _extreme(_function), modifiers=("ftz", "NaN", "xorsign", "abs")
    )
    _operation(_name, ("f64",), 3, _extreme(_function))
_operation("copysign", ("f32", "f64"), 3, _copy_sign)
for _property in _PROPERTIES:
    _operation(f"testp.{_property}", ("f32", "f64"), 2, _test)


def _approximate(function: Callable[..., Value], *, flushes: bool = True) -> EmitFunction:
    """An operation that one function does; `flushes`: `.ftz` is an option of it."""

    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        operands = [e.value(operand, kind) for operand in i.operands[1:]]
        options = {"ftz": True} if flushes and "ftz" in i.modifiers else {}
        e.assign(i.operands[0], kind, call_of(e, function, *operands, **options))

    return emit


for _name, _function in (
    ("rcp", ieee.rcp_approx),
    ("sqrt", ieee.sqrt_approx),
    ("rsqrt", ieee.rsqrt_approx),
    ("sin", ieee.sin_approx),
    ("cos", ieee.cos_approx),
    ("lg2", ieee.lg2_approx),
    ("ex2", ieee.ex2_approx),
):
    _operation(f"{_name}.approx", ("f32",), 2, _approximate(_function), modifiers=("ftz",))
_operation("tanh.approx", ("f32",), 2, _approximate(ieee.tanh_approx, flushes=False))
_operation("div.approx", ("f32",), 3, _approximate(ieee.div_approx), modifiers=("ftz",))
_operation("div.full", ("f32",), 3, _approximate(ieee.div_full), modifiers=("ftz",))
_operation("rcp.approx.ftz", ("f64",), 2, _approximate(ieee.rcp_approx_f64, flushes=False))
_operation("rsqrt.approx", ("f64",), 2, _approximate(ieee.rsqrt_approx_f64), modifiers=("ftz",))


_half_operation = partial(operation, section="Half Precision Floating Point Instructions")
_FORMATS = {"f16": ieee.F16, "bf16": ieee.BF16}
_F16 = ("f16", "f16x2")
_BF16 = ("bf16", "bf16x2")
_OPTIONS = {"ftz": "ftz", "sat": "sat", "relu": "relu", "oob": "oob", "NaN": "nan"}


def _half_call(function: Callable[..., Value]) -> EmitFunction:
    """An operation that one function of halves' bits does."""

    def emit(e: Emitter, i: Instruction) -> None:
        half = type_suffix(i)
        options: dict[str, Hashable] = {"kind": _FORMATS[half.removesuffix("x2")]}
        for word, option in _OPTIONS.items():
            if word in i.modifiers:
                options[option] = True
        if "xorsign" in i.modifiers:
            if "abs" not in i.modifiers or len(i.operands) == 4:
                raise e.reject(".xorsign goes with .abs and two operands")
            options["xorsign"] = True
        elif "abs" in i.modifiers:
            raise e.reject(".abs alone is not executed on halves")
        packed = half.endswith("x2")
        call = (
            lanewise_packed(function, "uint16", "uint32", **options)
            if packed
            else lanewise(function, **options)
        )
        stored_kind = "b32" if packed else "b16"
        values = ", ".join(e.value(operand, stored_kind) for operand in i.operands[1:])
        e.assign(i.operands[0], stored_kind, f"{e.helper(call)}({values})")

    return emit


for _name, _function in (("add", ieee.half_add), ("sub", ieee.half_sub), ("mul", ieee.half_mul)):
    _half_operation(_name, _F16, 3, _half_call(_function), modifiers=("rn", "ftz", "sat"))
    _half_operation(_name, _BF16, 3, _half_call(_function), modifiers=("rn",))
_half_fused = _half_call(ieee.half_fma)
_half_operation("fma.rn", _F16, 4, _half_fused, modifiers=("ftz", "sat", "relu", "oob"))
_half_operation("fma.rn", _BF16, 4, _half_fused, modifiers=("relu", "oob"))
for _name, _function in (("neg", ieee.half_neg), ("abs", ieee.half_abs)):
    _half_operation(_name, _F16, 2, _half_call(_function), modifiers=("ftz",))
    _half_operation(_name, _BF16, 2, _half_call(_function))
for _name, _function in (("min", ieee.half_minimum), ("max", ieee.half_maximum)):
    _half_operation(
        _name, _F16, (3, 4), _half_call(_function), modifiers=("ftz", "NaN", "xorsign", "abs")
    )
    _half_operation(
        _name, _BF16, (3, 4), _half_call(_function), modifiers=("NaN", "xorsign", "abs")
    )
_half_operation("ex2.approx", _F16, 2, _half_call(ieee.half_ex2_approx))
_half_operation("ex2.approx.ftz", _BF16, 2, _half_call(ieee.half_ex2_approx))
_half_operation("tanh.approx", (*_F16, *_BF16), 2, _half_call(ieee.half_tanh_approx))
