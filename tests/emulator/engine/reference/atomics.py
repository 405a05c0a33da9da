"""What atomic operations leave in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tests.emulator.engine.reference import floats, integers
from tests.emulator.engine.reference.formats import F32, F64, FORMS
from tests.emulator.engine.reference.integers import wrap


def atomic(words: Sequence[str], kind: str, old: int, given: list[int], *, in_shared: bool) -> int:
    """The new bits of an element, given what was there and the operands' bits."""
    name = next(
        word
        for word in words
        if word in ("cas", "exch", "inc", "dec", "add", "and", "or", "xor", "min", "max")
    )
    if kind.removesuffix("x2") in FORMS and name in ("add", "min", "max"):
        return _of_floats(name, kind, in_shared, old, given[0])
    bits = integers.bits_of(kind)
    value = wrap(given[0], bits)
    if name == "cas":
        return wrap(given[1], bits) if old == value else old
    if name == "exch":
        return value
    if name == "inc":
        return 0 if old >= value else old + 1
    if name == "dec":
        return value if old == 0 or old > value else old - 1
    if name in ("and", "or", "xor"):
        return integers.logic(name, kind, [old, value])
    return integers.arithmetic(name, (), kind, [old, value])


def _of_floats(name: str, kind: str, in_shared: bool, old: int, value: int) -> int:
    """Sums of f32 in global memory flush subnormals (PTX ISA, "atom")."""
    if kind == "f64" and not in_shared:
        # A signalling NaN stays one on a GPU of compute capability 9.0.
        for bits in (value, old):
            if F64.is_nan(bits):
                return bits
    words = ("ftz",) if kind == F32.name and not in_shared else ()
    # Of two NaNs of f64 the second one stays. In shared memory that is the memory's.
    return floats.compute(name, words, (kind,), [value, old])
