"""Integer instructions on Python integers, each written from its description in the PTX ISA.

A value is its bits, a non-negative integer. `operation(instruction words, type, operands)` gives
the bits of the result.
"""

from __future__ import annotations

from collections.abc import Callable

Operands = list[int]


def bits_of(ptx_type: str) -> int:
    return int(ptx_type[1:])


def wrap(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def number(value: int, ptx_type: str) -> int:
    """The bits read as a type: signed for .sN."""
    bits = bits_of(ptx_type)
    value = wrap(value, bits)
    return value - (1 << bits) if ptx_type[0] == "s" and value >> (bits - 1) else value


def quotient(a: int, b: int) -> int:
    """Rounded towards zero; by zero, what GPUs give in every bit."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def arithmetic(opcode: str, words: tuple[str, ...], ptx_type: str, given: Operands) -> int:
    """add sub mul mad div rem min max abs neg sad mul24 mad24."""
    bits = bits_of(ptx_type)
    if opcode in ("mul24", "mad24"):
        cut = f"{ptx_type[0]}24"
        product = number(given[0], cut) * number(given[1], cut)
        part = product >> 16 if "hi" in words else product
        return wrap(part + (given[2] if opcode == "mad24" else 0), bits)
    a, *rest = (number(value, ptx_type) for value in given)
    if opcode in ("mul", "mad"):
        product = a * rest[0]
        if "wide" in words:
            twice = f"{ptx_type[0]}{2 * bits}"
            addend = number(given[2], twice) if opcode == "mad" else 0
            return wrap(product + addend, 2 * bits)
        part = product >> bits if "hi" in words else product
        return wrap(part + (rest[1] if opcode == "mad" else 0), bits)
    if opcode in ("add", "sub"):
        total = a + rest[0] if opcode == "add" else a - rest[0]
        if "sat" in words:
            total = max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, total))
        return wrap(total, bits)
    if opcode == "div":
        return wrap(quotient(a, rest[0]), bits)
    if opcode == "rem":
        return wrap(a - quotient(a, rest[0]) * rest[0] if rest[0] else -1, bits)
    if opcode == "sad":
        return wrap(rest[1] + abs(a - rest[0]), bits)
    simple: dict[str, Callable[[], int]] = {
        "min": lambda: min(a, rest[0]),
        "max": lambda: max(a, rest[0]),
        "abs": lambda: abs(a),
        "neg": lambda: -a,
    }
    return wrap(simple[opcode](), bits)


def logic(opcode: str, ptx_type: str, given: Operands) -> int:
    """and or xor not cnot shl shr; amounts above the width act as the width."""
    bits = 1 if ptx_type == "pred" else bits_of(ptx_type)
    a = wrap(given[0], bits)
    if opcode == "not":
        return wrap(~a, bits)
    if opcode == "cnot":
        return int(a == 0)
    if opcode == "shl":
        return wrap(a << min(given[1], bits), bits)
    if opcode == "shr":
        return wrap(number(a, ptx_type) >> min(given[1], bits), bits)
    b = wrap(given[1], bits)
    return {"and": a & b, "or": a | b, "xor": a ^ b}[opcode]


def fields(opcode: str, words: tuple[str, ...], ptx_type: str, given: Operands) -> int:
    """bfe bfi bfind brev clz popc prmt lop3 shf."""
    if opcode == "lop3":
        a, b, c, table = given
        return sum(
            (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k
            for k in range(32)
        )
    if opcode == "prmt":
        return _permute(given)
    if opcode == "shf":
        low, high, amount = given
        amount = amount & 31 if "wrap" in words else min(amount, 32)
        both = high << 32 | low
        return wrap(both >> amount, 32) if "r" in words else wrap(both << amount >> 32, 32)
    bits = bits_of(ptx_type)
    a = wrap(given[0], bits)
    if opcode == "clz":
        return bits - a.bit_length()
    if opcode == "popc":
        return a.bit_count()
    if opcode == "brev":
        return int(f"{a:0{bits}b}"[::-1], 2)
    if opcode == "bfind":
        if ptx_type[0] == "s" and a >> (bits - 1):
            a = wrap(~a, bits)
        top = a.bit_length() - 1
        if top < 0:
            return 0xFFFFFFFF
        return bits - 1 - top if "shiftamt" in words else top
    if opcode == "bfi":
        base, start, length = wrap(given[1], bits), given[2] & 0xFF, given[3] & 0xFF
        for k in range(length):
            if start + k < bits:
                base = base & ~(1 << (start + k)) | (a >> k & 1) << (start + k)
        return base
    start, length = given[1] & 0xFF, given[2] & 0xFF
    sign = 0
    if ptx_type[0] == "s" and length:
        sign = a >> min(start + length - 1, bits - 1) & 1
    picked = [
        a >> (start + k) & 1 if k < length and start + k < bits else sign for k in range(bits)
    ]
    return sum(bit << k for k, bit in enumerate(picked))


def _permute(given: Operands) -> int:
    data = given[0] | given[1] << 32
    result = 0
    for k in range(4):
        choice = given[2] >> 4 * k & 15
        byte = data >> 8 * (choice & 7) & 0xFF
        if choice & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * k
    return result


def compare(name: str, ptx_type: str, a: int, b: int) -> bool:
    """The comparison of setp and set."""
    x, y = number(a, ptx_type), number(b, ptx_type)
    plain = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(name, name)
    results = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    return results[plain]


def dot(words: tuple[str, ...], types: tuple[str, ...], given: Operands) -> int:
    """dp4a, and dp2a.lo and .hi: bytes of b with bytes or halves of a."""
    parts = 2 if "lo" in words or "hi" in words else 4
    wide = 32 // parts
    first = 2 if "hi" in words else 0
    total = number(given[2], "s32" if "s32" in types else "u32")
    for k in range(parts):
        x = number(given[0] >> wide * k, f"{types[0][0]}{wide}")
        y = number(given[1] >> 8 * (first + k), f"{types[1][0]}8")
        total += x * y
    return wrap(total, 32)
