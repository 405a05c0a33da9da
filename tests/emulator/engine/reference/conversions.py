"""cvt on exact values, written from its description in the PTX ISA; NaNs as in `floats`."""

from __future__ import annotations

from collections.abc import Sequence

from tests.emulator.engine.reference.floats import MODES, mode_of, rectified, saturated
from tests.emulator.engine.reference.formats import (
    BF16,
    F16,
    F32,
    F64,
    FORMS,
    Dyadic,
    Form,
    rounded,
    whole,
)
from tests.emulator.engine.reference.integers import bits_of, number, wrap

_INTEGRAL = {f"{mode}i": mode for mode in MODES}


def convert(words: Sequence[str], to: str, of: str, given: list[int]) -> int:
    """The bits of the result; two operands are packed, the first one above."""
    if to.endswith("x2"):
        half = to.removesuffix("x2")
        high, low = (convert(words, half, of, [value]) for value in given)
        return high << 16 | low
    (value,) = given
    if of in FORMS:
        form = FORMS[of]
        value &= 2 * form.sign - 1
        if to in FORMS:
            return _among_floats(words, FORMS[to], form, value)
        return _to_integer(words, to, form, value)
    if to in FORMS:
        exact = Dyadic(number(value, of), 0)
        found = rounded(FORMS[to], mode_of(words), exact)
        return saturated(FORMS[to], found) if "sat" in words else found
    value = number(value, of)
    return wrap(_clamped(value, to) if "sat" in words else value, bits_of(to))


def _clamped(value: int, kind: str) -> int:
    bits = bits_of(kind)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, 2**bits - 1)
    return max(low, min(high, value))


def _to_integer(words: Sequence[str], to: str, form: Form, value: int) -> int:
    """Clamped always; a NaN gives 0, or the top bit where either side has 64 bits."""
    bits = bits_of(to)
    if form.is_nan(value):
        return 1 << (bits - 1) if form is F64 or bits == 64 else 0
    if "ftz" in words:
        value = form.flushed(value)
    if form.is_infinite(value):
        exact = -(1 << 70) if form.is_negative(value) else 1 << 70
    else:
        exact = whole(form.exact(value), next(_INTEGRAL[w] for w in words if w in _INTEGRAL))
    return wrap(_clamped(exact, to), bits)


def _among_floats(words: Sequence[str], to: Form, of: Form, value: int) -> int:
    integral = next((_INTEGRAL[word] for word in words if word in _INTEGRAL), None)
    # The hardware was seen not to flush there.
    flushes = "ftz" in words and not (to is F16 and mode_of(words) in ("rm", "rp"))
    if flushes and of is F32:
        value = of.flushed(value)
    if of.is_nan(value):
        plain = "ftz" not in words and integral is None
        found = _nan(to, of, value, plain)
    elif of.is_infinite(value):
        found = to.infinity | (to.sign if of.is_negative(value) else 0)
    else:
        exact, flush = of.exact(value), "ftz" in words and to is F32
        if integral is not None:
            exact, flush = Dyadic(whole(exact, integral), 0), False
        negative = of.is_negative(value)
        found = rounded(to, mode_of(words), exact, negative_zero=negative, flush=flush)
    if "satfinite" in words and to.is_infinite(found):
        found -= 1
    if "sat" in words:
        found = saturated(to, found)
    return rectified(to, found) if "relu" in words else found


def _nan(to: Form, of: Form, value: int, plain: bool) -> int:
    """Canonical, but that f64 keeps the top of a payload from either side, and bf16 to f32 too."""
    if to is of:
        if to is F64:
            return value if plain else value | to.quiet
        return value if plain and to is F32 else to.nan
    if F64 not in (to, of) and not (of is BF16 and to is F32 and plain):
        return to.nan
    if of is F32 and not plain:
        value = of.nan
    sign = to.sign if of.is_negative(value) else 0
    payload = value & ((1 << (of.precision - 1)) - 1)
    shift = to.precision - of.precision
    moved = payload << shift if shift >= 0 else payload >> -shift
    quiet = 0 if of is BF16 and to is F32 else to.quiet
    return sign | to.infinity | quiet | moved
