"""Floating-point instructions on exact values, each written from its description in the PTX ISA.

The bits of NaNs, which the PTX ISA leaves open in part, are those that a GPU of compute capability
9.0 gave; tests/emulator/engine/test_reference.py holds all of this against its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt

from tests.emulator.engine.reference.formats import F32, F64, FORMS, Dyadic, Form, rounded

MODES = ("rn", "rz", "rm", "rp")
ARITHMETIC = ("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt")
# Whose NaN a result of f64 takes, by the operands' numbers.
_NAN_ORDER = {"add": (1, 0), "sub": (1, 0), "mul": (1, 0), "div": (0, 1), "fma": (1, 2, 0),
              "mad": (1, 2, 0), "rcp": (0,), "sqrt": (0,)}  # fmt: skip
# Enough bits for a quotient or root whose rest only breaks ties.
_BITS = 120


def mode_of(words: Sequence[str]) -> str:
    return next((word for word in words if word in MODES), "rn")


def compute(opcode: str, words: Sequence[str], types: Sequence[str], given: list[int]) -> int:
    """The bits of an instruction's result, from those of its operands."""
    kind = types[0]
    if kind.endswith("x2"):
        return _packed(opcode, words, kind.removesuffix("x2"), given)
    form = FORMS[kind]
    if len(types) == 2:
        # The half operands of mixed precision are widened, which is exact.
        half = FORMS[types[1]]
        given = [*(widened(half, bits) for bits in given[:-1]), given[-1]]
    given = [bits & (2 * form.sign - 1) for bits in given]
    if "ftz" in words:
        given = [form.flushed(bits) for bits in given]
    if opcode in ARITHMETIC:
        found = arithmetic(opcode, form, mode_of(words), given, flush="ftz" in words)
    elif opcode in ("min", "max"):
        found = _extreme(opcode, words, form, given)
    elif opcode == "copysign":
        found = given[0] & form.sign | given[1] & ~form.sign
    else:
        (bits,) = given
        changed = bits ^ form.sign if opcode == "neg" else bits & ~form.sign
        found = nan_of(form, given, (0,)) if form.is_nan(bits) else changed
    if "sat" in words:
        found = saturated(form, found)
    if "relu" in words:
        found = rectified(form, found)
    return found


def _packed(opcode: str, words: Sequence[str], kind: str, given: list[int]) -> int:
    width = FORMS[kind].width
    lanes = [
        compute(opcode, words, (kind,), [bits >> at & ((1 << width) - 1) for bits in given])
        for at in (0, width)
    ]
    return lanes[0] | lanes[1] << width


def widened(half: Form, bits: int) -> int:
    """The bits of a half as f32; a NaN becomes some NaN."""
    bits &= 2 * half.sign - 1
    sign = F32.sign if half.is_negative(bits) else 0
    if half.is_nan(bits):
        return F32.nan
    if half.is_infinite(bits):
        return sign | F32.infinity
    return rounded(F32, "rn", half.exact(bits), negative_zero=bool(sign))


def nan_of(form: Form, given: Sequence[int], order: Sequence[int]) -> int:
    """The NaN of a result: in f64 that of an operand, made quiet."""
    if form is F64:
        for number in order:
            if form.is_nan(given[number]):
                return given[number] | form.quiet
    return form.nan


def saturated(form: Form, bits: int) -> int:
    """Clamped to [0, 1]; NaN and -0 give +0."""
    if form.is_negative(bits) or form.is_nan(bits):
        return 0
    return min(bits, form.one)


def rectified(form: Form, bits: int) -> int:
    """A negative number and -0 give +0."""
    return 0 if form.is_negative(bits) and not form.is_nan(bits) else bits


def arithmetic(opcode: str, form: Form, mode: str, given: list[int], *, flush: bool) -> int:
    """add sub mul fma div rcp sqrt, of operands that are flushed already."""
    if any(form.is_nan(bits) for bits in given):
        return nan_of(form, given, _NAN_ORDER[opcode])
    if opcode == "rcp":
        opcode, given = "div", [form.one, *given]
    if opcode == "sub":
        opcode, given = "add", [given[0], given[1] ^ form.sign]
    functions: dict[str, Callable[..., int]] = {
        "add": _add, "mul": _multiply, "fma": _fuse, "mad": _fuse, "div": _divide, "sqrt": _root,
    }  # fmt: skip
    return functions[opcode](form, mode, flush, *given)


def _add(form: Form, mode: str, flush: bool, a: int, b: int) -> int:
    return _fuse(form, mode, flush, a, form.one, b)


def _multiply(form: Form, mode: str, flush: bool, a: int, b: int) -> int:
    return _fuse(form, mode, flush, a, b, (a ^ b) & form.sign)


def _fuse(form: Form, mode: str, flush: bool, a: int, b: int, c: int) -> int:
    """a·b+c; a zero of two zeros of different signs, or of a cancellation, is negative in .rm."""
    sign = (a ^ b) & form.sign
    if form.is_infinite(a) or form.is_infinite(b):
        lost = form.is_infinite(c) and c & form.sign != sign
        if form.is_zero(a) or form.is_zero(b) or lost:
            return form.nan
        return sign | form.infinity
    if form.is_infinite(c):
        return c
    x, y, z = form.exact(a), form.exact(b), form.exact(c)
    e = min(x.e + y.e, z.e)
    total = Dyadic((x.m * y.m << (x.e + y.e - e)) + (z.m << (z.e - e)), e)
    negative = bool(sign) if sign == c & form.sign else mode == "rm"
    return rounded(form, mode, total, negative_zero=negative, flush=flush)


def _divide(form: Form, mode: str, flush: bool, a: int, b: int) -> int:
    sign = (a ^ b) & form.sign
    if form.is_infinite(a) or form.is_zero(b):
        invalid = form.is_infinite(b) if form.is_infinite(a) else form.is_zero(a)
        return form.nan if invalid else sign | form.infinity
    if form.is_infinite(b) or form.is_zero(a):
        return sign
    x, y = form.exact(a), form.exact(b)
    quotient, rest = divmod(abs(x.m) << _BITS, abs(y.m))
    found = Dyadic(-quotient if sign else quotient, x.e - y.e - _BITS)
    return rounded(form, mode, found, more=rest > 0, flush=flush)


def _root(form: Form, mode: str, flush: bool, a: int) -> int:
    if form.is_zero(a):
        return a
    if form.is_negative(a):
        return form.nan
    if form.is_infinite(a):
        return a
    x = form.exact(a)
    shift = 2 * _BITS + (x.e & 1)
    m = x.m << shift
    root = isqrt(m)
    found = Dyadic(root, (x.e - shift) // 2)
    return rounded(form, mode, found, more=root * root != m, flush=flush)


def _order(form: Form, bits: int) -> int:
    """A key that orders numbers, -0 below +0."""
    magnitude = bits & ~form.sign
    return -1 - magnitude if form.is_negative(bits) else magnitude


def _extreme(opcode: str, words: Sequence[str], form: Form, given: list[int]) -> int:
    """min and max: a number beats a NaN, unless .NaN."""
    terms = [bits & ~form.sign for bits in given] if "abs" in words else given
    numbers = [bits for bits in terms if not form.is_nan(bits)]
    if not numbers or ("NaN" in words and len(numbers) < len(terms)):
        return nan_of(form, given, range(len(given))[::-1])
    pick = min if opcode == "min" else max
    found = pick(numbers, key=lambda bits: _order(form, bits))
    if "xorsign" in words:
        sign = 0
        for bits in given:
            sign ^= bits & form.sign
        found |= sign
    return found


def compare(name: str, kind: str, words: Sequence[str], a: int, b: int) -> bool:
    """The comparison of setp and set."""
    form = FORMS[kind]
    a, b = (bits & (2 * form.sign - 1) for bits in (a, b))
    if "ftz" in words:
        a, b = form.flushed(a), form.flushed(b)
    unordered = form.is_nan(a) or form.is_nan(b)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if unordered:
        return len(name) == 3  # equ, neu, ltu …
    x, y = (0 if form.is_zero(bits) else _order(form, bits) for bits in (a, b))
    results = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    return results[name[:2]]


def has_property(name: str, kind: str, bits: int) -> bool:
    """testp."""
    form = FORMS[kind]
    bits &= 2 * form.sign - 1
    nan, infinite = form.is_nan(bits), form.is_infinite(bits)
    return {
        "finite": not nan and not infinite,
        "infinite": infinite,
        "number": not nan,
        "notanumber": nan,
        # The hardware counts zero among them.
        "normal": not nan and not infinite and not form.is_subnormal(bits),
        "subnormal": form.is_subnormal(bits),
    }[name]
