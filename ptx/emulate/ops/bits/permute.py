"""Bytes chosen from two words, and shifts of a pair of words. PTX ISA, "prmt", "shf"."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of
from ptx.isa.model import Immediate, Instruction

# The selector that each mode means, by the two lowest bits of its third operand.
SELECTORS: dict[str, tuple[int, int, int, int]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
_SIGNS = 8  # in a selector's digit: copies of the byte's sign instead of the byte


def permute(a: Value, b: Value, selector: Value) -> Value:
    """Four bytes of the eight of b:a, chosen by four hexadecimal digits."""
    wide = (b.astype(np.uint64) << np.uint64(32)) | a
    result: Value = np.uint32(0)
    for position in range(4):
        digit = (selector >> np.uint32(4 * position)) & np.uint32(15)
        byte = wide >> ((digit & np.uint32(7)) << np.uint32(3)).astype(np.uint64)
        byte = byte.astype(np.uint32) & np.uint32(0xFF)
        signs = (byte >> np.uint32(7)) * np.uint32(0xFF)
        is_sign = (digit >> np.uint32(3)) * np.uint32(0xFF)
        chosen = (byte & ~is_sign) | (signs & is_sign)
        result = result | (chosen << np.uint32(8 * position))
    return result


def selector_of(mode: str, amount: Value) -> Value:
    """The selector that a mode means for each thread's third operand."""
    table = np.array(SELECTORS[mode], dtype=np.uint32)
    return table.take(amount & np.uint32(3))[()]


def _pieces(selector: int) -> Iterator[tuple[int, int, int, bool]]:
    """Source word, shift to the left in bits, mask of the result, whether signs are meant.

    Bytes of one word that move by the same distance are one piece.
    """
    masks: dict[tuple[int, int, bool], int] = {}
    for position in range(4):
        digit = selector >> (4 * position) & 15
        word, byte = divmod(digit & 7, 4)
        signs = bool(digit & _SIGNS)
        # A sign is brought to bit 31 first, then spread.
        shift = 8 * (3 - byte) if signs else 8 * (position - byte)
        key = (word, shift, signs)
        masks[key] = masks.get(key, 0) | 0xFF << 8 * position
    for (word, shift, signs), mask in masks.items():
        yield word, shift, mask, signs


def _constant_permute(e: Emitter, words: tuple[str, str], selector: int) -> str:
    """An expression of shifts and masks for a selector that is known."""
    parts: list[str] = []
    for word, shift, mask, signs in _pieces(selector):
        part = words[word]
        kept = 0xFFFFFFFF
        if shift > 0:
            part = f"({part} << {e.constant(shift, 'u32')})"
            kept = 0xFFFFFFFF << shift & 0xFFFFFFFF
        elif shift < 0:
            part = f"({part} >> {e.constant(-shift, 'u32')})"
            kept = 0xFFFFFFFF >> -shift
        if signs:
            spread = f"{part}.view({e.dtype('s32')}) >> {e.constant(31, 's32')}"
            part, kept = f"({spread}).view({e.dtype('u32')})", 0xFFFFFFFF
        if mask != kept:
            part = f"({part} & {e.constant(mask, 'u32')})"
        parts.append(part)
    return " | ".join(parts)


def _permute(e: Emitter, i: Instruction) -> None:
    target, *sources, amount = i.operands
    modes = [word for word in i.modifiers if word in SELECTORS]
    if len(modes) > 1:
        raise e.refuse("it takes one mode")
    a, b = (e.value(source, "u32") for source in sources)
    if isinstance(amount, Immediate):
        selector = SELECTORS[modes[0]][amount.value & 3] if modes else amount.value
        e.assign(target, "u32", _constant_permute(e, (a, b), selector))
        return
    chosen = e.value(amount, "u32")
    if modes:
        chosen = f"{e.helper(selector_of)}({modes[0]!r}, {chosen})"
    e.assign(target, "u32", f"{e.helper(permute)}({a}, {b}, {chosen})")


def funnel_left(a: Value, b: Value, amount: Value) -> Value:
    """The upper word of b:a shifted to the left by 0 to 32."""
    wide = (b.astype(np.uint64) << np.uint64(32)) | a
    return ((wide << amount.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)


def funnel_right(a: Value, b: Value, amount: Value) -> Value:
    """The lower word of b:a shifted to the right by 0 to 32."""
    wide = (b.astype(np.uint64) << np.uint64(32)) | a
    return (wide >> amount.astype(np.uint64)).astype(np.uint32)


def _funnel(e: Emitter, i: Instruction) -> None:
    directions = [word for word in i.modifiers if word in ("l", "r")]
    modes = [word for word in i.modifiers if word in ("clamp", "wrap")]
    if len(directions) != 1 or len(modes) != 1:
        raise e.refuse("it needs a direction and a mode")
    kind = kind_of(type_suffix(i))
    target, *sources, by = i.operands
    a, b = (e.value(source, kind) for source in sources)
    left, clamp = directions[0] == "l", modes[0] == "clamp"
    if isinstance(by, Immediate):
        steps = by.value & 0xFFFFFFFF
        steps = min(steps, 32) if clamp else steps & 31
        if 0 < steps < 32:
            up, down = (steps, 32 - steps) if left else (32 - steps, steps)
            shifted = f"({b} << {e.constant(up, kind)}) | ({a} >> {e.constant(down, kind)})"
            e.assign(target, kind, shifted)
        else:
            e.assign(target, kind, a if left == (steps == 32) else b)
        return
    amount = e.value(by, "u32")
    limit = e.constant(32 if clamp else 31, "u32")
    amount = f"{e.helper(np.minimum)}({amount}, {limit})" if clamp else f"({amount} & {limit})"
    function = e.helper(funnel_left if left else funnel_right)
    e.assign(target, kind, f"{function}({a}, {b}, {amount})")


operation("prmt", ("b32",), 4, _permute, modifiers=SELECTORS, section="prmt")
operation("shf", ("b32",), 4, _funnel, modifiers=["l", "r", "clamp", "wrap"], section="shf")
