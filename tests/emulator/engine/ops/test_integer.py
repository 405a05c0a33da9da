"""Integer instructions on edge values and random bits, against Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.engine.kernel_runner import run
from tests.rows import all_rows

Reference = Callable[[int, int, int], int]


def wrap(value: int, kind: str) -> int:
    """A value modulo the width of a kind, negative where its sign bit says so."""
    bits = int(kind[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


def clamp(value: int, kind: str) -> int:
    bits = int(kind[1:])
    low, high = (
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    )
    return min(max(value, low), high)


def quotient(a: int, b: int, kind: str) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def operands(kind: str, count: int) -> np.ndarray:
    """(n, count) edge values in all combinations, then random bits."""
    bits = int(kind[1:])
    edges = [
        0,
        1,
        2,
        7,
        (1 << bits) - 1,
        1 << (bits - 1),
        (1 << (bits - 1)) - 1,
        0x5A5A % (1 << bits),
    ]
    rows = list(itertools.islice(itertools.product(edges, repeat=count), 300))
    rng = np.random.default_rng(bits)
    rows += [tuple(int(v) % (1 << bits) for v in rng.integers(0, 2**63, count)) for _ in range(200)]
    return np.array(rows, dtype=f"u{bits // 8}")


def check(opcode: str, kind: str, count: int, reference: Reference, result: str = "") -> None:
    result = result or kind
    rows = operands(kind, count)
    names = {16: "%rs", 32: "%r", 64: "%rd"}
    size = int(kind[1:])
    base = 10
    source, target = names[size], names[int(result[1:])]
    loads = " ".join(
        f"ld.global.u{size} {source}{base + k}, [%rd1+{k * size // 8}];" for k in range(count)
    )
    arguments = ", ".join(f"{source}{base + k}" for k in range(count))
    found = run(
        f"{loads} {opcode} {target}30, {arguments}; st.global.u{result[1:]} [%rd2], {target}30;",
        rows,
        f"u{int(result[1:]) // 8}",
    )
    expected = [
        wrap(reference(*(wrap(int(v), kind) for v in (*row, 0, 0)[:3])), "u" + result[1:])
        for row in rows
    ]
    wrong = [
        (opcode, [hex(v) for v in row], hex(int(f)), hex(x))
        for row, f, x in zip(rows.tolist(), found, expected, strict=True)
        if int(f) != x
    ]
    assert not wrong, wrong[:3]


ALL = ["u16", "s16", "u32", "s32", "u64", "s64"]


@pytest.mark.parametrize("kind", ALL)
def test_sums_products_and_quotients_wrap(kind: str) -> None:
    bits = int(kind[1:])
    check(f"add.{kind}", kind, 2, lambda a, b, c: a + b)
    check(f"sub.{kind}", kind, 2, lambda a, b, c: a - b)
    check(f"mul.lo.{kind}", kind, 2, lambda a, b, c: a * b)
    check(f"mul.hi.{kind}", kind, 2, lambda a, b, c: a * b >> bits)
    check(f"mad.lo.{kind}", kind, 3, lambda a, b, c: a * b + c)
    check(f"mad.hi.{kind}", kind, 3, lambda a, b, c: (a * b >> bits) + c)
    check(f"div.{kind}", kind, 2, lambda a, b, c: quotient(a, b, kind))
    check(f"rem.{kind}", kind, 2, lambda a, b, c: a - b * quotient(a, b, kind) if b else -1)
    check(f"min.{kind}", kind, 2, lambda a, b, c: min(a, b))
    check(f"max.{kind}", kind, 2, lambda a, b, c: max(a, b))
    if kind[0] == "s":
        check(f"neg.{kind}", kind, 1, lambda a, b, c: -a)
        check(f"abs.{kind}", kind, 1, lambda a, b, c: abs(a))


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_products_keep_every_bit(kind: str) -> None:
    wide = f"{kind[0]}{2 * int(kind[1:])}"
    check(f"mul.wide.{kind}", kind, 2, lambda a, b, c: a * b, wide)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_products_with_a_constant_keep_every_bit(kind: str) -> None:
    bits = int(kind[1:])
    rows = operands(kind, 1)
    register, wide = ("%rs", "%r") if bits == 16 else ("%r", "%rd")
    for factor in (0, 3, 8, 100, 1 << (bits - 1), (1 << bits) - 3):
        found = run(
            f"ld.global.u{bits} {register}10, [%rd1];"
            f"mul.wide.{kind} {wide}30, {register}10, {factor};"
            f"st.global.u{2 * bits} [%rd2], {wide}30;",
            rows,
            f"u{bits // 4}",
        )
        exact = [wrap(value, kind) * wrap(factor, kind) for value in rows[:, 0].tolist()]
        assert found.tolist() == [wrap(product, f"u{2 * bits}") for product in exact], factor


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_24_bit_products_use_the_low_24_bits(kind: str) -> None:
    def low(a: int) -> int:
        a &= 0xFFFFFF
        return a - (1 << 24) if kind == "s32" and a >> 23 else a

    check(f"mul24.lo.{kind}", kind, 2, lambda a, b, c: low(a) * low(b))
    check(f"mul24.hi.{kind}", kind, 2, lambda a, b, c: low(a) * low(b) >> 16)
    check(f"mad24.lo.{kind}", kind, 3, lambda a, b, c: low(a) * low(b) + c)


def test_saturating_sums_clamp() -> None:
    check("add.sat.s32", "s32", 2, lambda a, b, c: clamp(a + b, "s32"))
    check("sub.sat.s32", "s32", 2, lambda a, b, c: clamp(a - b, "s32"))
    check("mad.hi.sat.s32", "s32", 3, lambda a, b, c: clamp((a * b >> 32) + c, "s32"))


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_logic_acts_on_bits(kind: str) -> None:
    unsigned = "u" + kind[1:]
    check(f"and.{kind}", unsigned, 2, lambda a, b, c: a & b)
    check(f"or.{kind}", unsigned, 2, lambda a, b, c: a | b)
    check(f"xor.{kind}", unsigned, 2, lambda a, b, c: a ^ b)
    check(f"not.{kind}", unsigned, 1, lambda a, b, c: ~a)
    check(f"cnot.{kind}", unsigned, 1, lambda a, b, c: int(a == 0))


SHIFTS = [0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 255, 65536, 0x80000000, 0xFFFFFFFF]


@all_rows
@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("constant", [False, True])
def test_shifts_clamp_their_amount(kind: str, constant: bool) -> None:
    bits = int(kind[1:])
    register = {16: "%rs", 32: "%r", 64: "%rd"}[bits]
    values = operands(kind, 1)[:, 0].tolist()
    for shift in SHIFTS if constant else [None]:
        rows = np.array(
            [(v, s) for v in values[:12] for s in (SHIFTS if shift is None else [shift])],
            dtype=np.uint64,
        )
        for opcode in (f"shl.b{bits}", f"shr.{kind}"):
            found = run(
                f"ld.global.u{bits} {register}10, [%rd1]; ld.global.u32 %r11, [%rd1+8];"
                f"{opcode} {register}12, {register}10, {'%r11' if shift is None else shift};"
                f"st.global.u{bits} [%rd2], {register}12;",
                rows,
                f"u{bits // 8}",
            )
            for (value, by), result in zip(rows.tolist(), found.tolist(), strict=True):
                by = min(by, bits)
                a = wrap(value, kind)
                exact = a << by if opcode[2] == "l" else a >> by
                assert result == wrap(exact, f"u{bits}"), (opcode, value, by)


COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@all_rows
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("name", COMPARE)
def test_comparisons_and_selection(kind: str, name: str) -> None:
    test = COMPARE[name]
    register = {16: "%rs", 32: "%r", 64: "%rd"}[int(kind[1:])]
    bits = int(kind[1:])
    rows = operands(kind, 2)
    load = (
        f"ld.global.u{bits} {register}10, [%rd1]; ld.global.u{bits} {register}11,"
        f" [%rd1+{bits // 8}];"
    )
    pairs = [(wrap(a, kind), wrap(b, kind)) for a, b in rows.tolist()]
    found = run(
        f"{load} setp.{name}.{kind} %p1|%p2, {register}10, {register}11;"
        "selp.u32 %r20, 1, 0, %p1; selp.u32 %r21, 2, 0, %p2; or.b32 %r20, %r20, %r21;"
        f"setp.{name}.and.{kind} %p3, {register}10, {register}11, !%p1;"
        "@%p3 or.b32 %r20, %r20, 16;"
        f"set.{name}.u32.{kind} %r22, {register}10, {register}11; and.b32 %r22, %r22, 4;"
        "or.b32 %r20, %r20, %r22; st.global.u32 [%rd2], %r20;",
        rows,
        np.uint32,
    )
    assert found.tolist() == [5 if test(a, b) else 2 for a, b in pairs]


def test_unsigned_comparisons_have_names_of_their_own() -> None:
    rows = operands("u32", 2)
    found = run(
        "ld.global.u32 %r10, [%rd1]; ld.global.u32 %r11, [%rd1+4]; setp.lo.u32 %p1, %r10, %r11;"
        "setp.hs.xor.u32 %p2, %r10, %r11, %p1; setp.ls.u32 %p3, %r10, %r11;"
        "setp.hi.or.u32 %p4, %r10, %r11, %p3; and.pred %p1, %p2, %p4;"
        "selp.u32 %r12, 1, 0, %p1; st.global.u32 [%rd2], %r12;",
        rows,
        np.uint32,
    )
    assert (found == 1).all()


@all_rows
@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("target", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("saturate", [False, True])
def test_conversions_extend_cut_and_clamp(source: str, target: str, saturate: bool) -> None:
    names = {8: "%rs", 16: "%rs", 32: "%r", 64: "%rd"}
    size, width = int(source[1:]), int(target[1:])
    rows = operands("u64", 1)
    room = {8: 16}.get(width, width)
    found = run(
        f"ld.global.u64 %rd10, [%rd1]; cvt.u{max(size, 16)}.u64 {names[size]}11, %rd10;"
        f"cvt{'.sat' if saturate else ''}.{target}.{source} {names[width]}12, {names[size]}11;"
        f"st.global.u{room} [%rd2], {names[width]}12;",
        rows,
        f"u{room // 8}",
    )
    for (value,), result in zip(rows.tolist(), found.tolist(), strict=True):
        exact = wrap(value, source)
        exact = clamp(exact, target) if saturate else wrap(exact, target)
        assert result == wrap(exact, f"u{room}"), (hex(value), hex(result))


@pytest.mark.parametrize("bits", [32, 64])
def test_carries_make_long_sums_differences_and_products(bits: int) -> None:
    register = "%r" if bits == 32 else "%rd"
    rows = operands(f"u{bits}", 4)
    size = bits // 8
    r = [f"{register}{k}" for k in range(40)]
    load = " ".join(f"ld.global.u{bits} {r[10 + k]}, [%rd1+{k * size}];" for k in range(4))
    store = f"st.global.v2.u{bits} [%rd2], {{{r[20]}, {r[21]}}};"
    pair = np.dtype([("low", f"u{size}"), ("high", f"u{size}")])

    def outcome(code: str) -> list[int]:
        found = run(f"{load} {code} {store}", rows, pair)
        return [int(low) | int(high) << bits for low, high in found.tolist()]

    full = 1 << 2 * bits
    joined = [(a | b << bits, c | d << bits) for a, b, c, d in rows.tolist()]
    assert outcome(
        f"add.cc.u{bits} {r[20]}, {r[10]}, {r[12]}; addc.u{bits} {r[21]}, {r[11]}, {r[13]};"
    ) == [(x + y) % full for x, y in joined]
    assert outcome(
        f"sub.cc.u{bits} {r[20]}, {r[10]}, {r[12]}; subc.u{bits} {r[21]}, {r[11]}, {r[13]};"
    ) == [(x - y) % full for x, y in joined]
    assert outcome(
        f"mad.lo.cc.u{bits} {r[20]}, {r[10]}, {r[11]}, {r[12]};"
        f"madc.hi.u{bits} {r[21]}, {r[10]}, {r[11]}, {r[13]};"
    ) == [(a * b + (c | d << bits)) % full for a, b, c, d in rows.tolist()]
    assert outcome(
        f"addc.cc.u{bits} {r[20]}, {r[10]}, {r[12]}; addc.cc.u{bits} {r[20]}, {r[11]}, {r[13]};"
        f"addc.u{bits} {r[21]}, 0, 0;"
    ) == [
        (
            ((b + d + ((a + c) >> bits)) % (1 << bits))
            | ((b + d + ((a + c) >> bits)) >> bits) << bits
        )
        for a, b, c, d in rows.tolist()
    ]


@pytest.mark.parametrize("bits", [32, 64])
def test_additions_and_subtractions_hand_each_other_the_carry_of_the_adder(bits: int) -> None:
    register = "%r" if bits == 32 else "%rd"
    rows = operands(f"u{bits}", 2)
    a, b, low, high = (f"{register}{k}" for k in (10, 11, 20, 21))
    pair = np.dtype([("first", f"u{bits // 8}"), ("second", f"u{bits // 8}")])

    def outcome(code: str) -> list[tuple[int, int]]:
        load = f"ld.global.u{bits} {a}, [%rd1]; ld.global.u{bits} {b}, [%rd1+{bits // 8}];"
        store = f"st.global.v2.u{bits} [%rd2], {{{low}, {high}}};"
        return [tuple(row) for row in run(f"{load} {code} {store}", rows, pair).tolist()]

    full = 1 << bits
    pairs = [(int(x), int(y)) for x, y in rows.tolist()]
    # A subtraction adds the complement and one: it carries where it borrows nothing.
    assert outcome(
        f"sub.cc.u{bits} {low}, {a}, {b}; addc.cc.u{bits} {low}, 0, 0; subc.u{bits} {high}, 0, 0;"
    ) == [(int(x >= y), full - 1) for x, y in pairs]
    assert outcome(
        f"add.cc.u{bits} {low}, {a}, {b}; subc.cc.u{bits} {low}, {a}, {b};"
        f"addc.u{bits} {high}, 0, 0;"
    ) == [((x - y - (x + y < full)) % full, int(x >= y + (x + y < full))) for x, y in pairs]
    assert outcome(f"mad.lo.cc.u{bits} {low}, {a}, {b}, {b}; subc.u{bits} {high}, {a}, 0;") == [
        ((x * y + y) % full, (x - (x * y % full + y < full)) % full) for x, y in pairs
    ]


def test_moves_pack_and_unpack_the_first_element_lowest() -> None:
    rows = np.array([[0x0123456789ABCDEF]], np.uint64)
    found = run(
        "ld.global.u64 %rd10, [%rd1]; mov.b64 {%r10, %r11}, %rd10; mov.b32 {%rs1, %rs2}, %r10;"
        "mov.b32 %r12, {%rs2, %rs1}; mov.b64 %rd11, {%r12, %r11}; mov.b64 {_, %r13}, %rd11;"
        "mov.b64 {%rs3, %rs4, %rs5, %rs6}, %rd11; mov.b64 %rd12, {%rs6, %rs5, %rs4, %rs3};"
        "xor.b64 %rd11, %rd11, %rd12; st.global.u64 [%rd2], %rd11;",
        rows,
        np.uint64,
    )
    first, second = 0x01234567_CDEF_89AB, 0x89AB_CDEF_4567_0123
    assert found[0] == first ^ second


def test_moves_pack_and_unpack_128_bits_as_two_or_four_elements() -> None:
    rows = np.array([[0x0123456789ABCDEF, 0xFEDCBA9876543210]], np.uint64)
    for word, expected in (("%rd12", 0x7_FEDCBA98), ("%rd13", 0x01234567_89ABCDEF)):
        found = run(
            ".reg .b128 %q<2>; ld.global.u64 %rd10, [%rd1]; ld.global.u64 %rd11, [%rd1+8];"
            "mov.b128 %q0, {%rd10, %rd11}; mov.b128 {%r10, %r11, _, %r13}, %q0;"
            "mov.b128 %q1, {%r13, 7, %r10, %r11}; mov.b128 {%rd12, %rd13}, %q1;"
            f"st.global.u64 [%rd2], {word};",
            rows,
            np.uint64,
        )
        assert int(found[0]) == expected
