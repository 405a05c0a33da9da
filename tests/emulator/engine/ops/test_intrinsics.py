"""CUDA's integer and SIMD intrinsics through NVRTC, against Python's integers.

The kernels are the corpus: one for each intrinsic, for targets of both PTX dialects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ptx
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.assembly import Rows, sample_rows
from tests.emulator.engine.ops.bit_reference import as_signed, clamped, fns, prmt, typed
from tests.short_cases import few

TARGETS = ("compute_75", "compute_90", "compute_100", "compute_120")
MASK32 = 0xFFFFFFFF
Reference = Callable[[int, int, int], int]


def by_parts(bits: int, signed: bool, function: Callable[..., int], arity: int = 2) -> Reference:
    """Apply a function to each part of the first `arity` words."""

    def whole(*words: int) -> int:
        result = 0
        for low in range(0, 32, bits):
            parts = [typed(word >> low, f"{'s' if signed else 'u'}{bits}") for word in words]
            result |= (function(*parts[:arity]) & ((1 << bits) - 1)) << low
        return result

    return whole


def sum_of_parts(bits: int, signed: bool, function: Callable[[int, int], int]) -> Reference:
    def whole(*words: int) -> int:
        total = 0
        for low in range(0, 32, bits):
            x, y, _ = (typed(word >> low, f"{'s' if signed else 'u'}{bits}") for word in words)
            total += function(x, y)
        return total

    return whole


def simd(n: int) -> Iterator[tuple[str, Reference]]:
    """The SIMD intrinsics on two halves or four bytes."""
    bits = 32 // n
    top = (1 << bits - 1) - 1

    def up(value: int) -> int:
        return clamped(value, bits, False)

    def within(value: int) -> int:
        return clamped(value, bits, True)

    unary: dict[str, Callable[[int], int]] = {
        "abs": abs,
        "absss": lambda x: min(abs(x), top),
        "neg": lambda x: -x,
        "negss": lambda x: min(-x, top),
    }
    for name, one in unary.items():
        yield f"__v{name}{n}(x)", by_parts(bits, True, one, 1)
    plain: dict[str, tuple[bool, Callable[[int, int], int]]] = {
        "add": (False, lambda x, y: x + y),
        "sub": (False, lambda x, y: x - y),
        "addss": (True, lambda x, y: within(x + y)),
        "subss": (True, lambda x, y: within(x - y)),
        "addus": (False, lambda x, y: up(x + y)),
        "subus": (False, lambda x, y: up(x - y)),
        "avgs": (True, lambda x, y: (x + y + 1) >> 1 if x + y >= 0 else (x + y) >> 1),
        "avgu": (False, lambda x, y: (x + y + 1) >> 1),
        "haddu": (False, lambda x, y: (x + y) >> 1),
        "maxs": (True, max),
        "maxu": (False, max),
        "mins": (True, min),
        "minu": (False, min),
        "absdiffs": (True, lambda x, y: abs(x - y)),
        "absdiffu": (False, lambda x, y: abs(x - y)),
    }
    for name, (signed, function) in plain.items():
        yield f"__v{name}{n}(x, y)", by_parts(bits, signed, function)
    for kind in "su":
        name = f"__vsad{kind}{n}(x, y)"
        yield name, sum_of_parts(bits, kind == "s", lambda x, y: abs(x - y))
    yield from comparisons(n)


def comparisons(n: int) -> Iterator[tuple[str, Reference]]:
    compare: dict[str, Callable[[int, int], bool]] = {
        "eq": lambda x, y: x == y,
        "ne": lambda x, y: x != y,
        "ge": lambda x, y: x >= y,
        "gt": lambda x, y: x > y,
        "le": lambda x, y: x <= y,
        "lt": lambda x, y: x < y,
    }
    for name, test in compare.items():
        for kind in ("",) if name in ("eq", "ne") else ("s", "u"):
            signed = kind == "s"
            yield (
                f"__vcmp{name}{kind}{n}(x, y)",
                by_parts(32 // n, signed, lambda x, y, test=test: -int(test(x, y))),
            )
            yield (
                f"__vset{name}{kind}{n}(x, y)",
                by_parts(32 // n, signed, lambda x, y, test=test: int(test(x, y))),
            )


def dpx() -> Iterator[tuple[str, Reference]]:
    """The intrinsics for dynamic programming."""
    for suffix, bits, signed in (
        ("s32", 32, True),
        ("u32", 32, False),
        ("s16x2", 16, True),
        ("u16x2", 16, False),
    ):
        kind = f"{'s' if signed else 'u'}{bits}"
        for name, best in (("max", max), ("min", min)):

            def add(x: int, y: int, z: int, best: Callable[..., int] = best, k: str = kind) -> int:
                return best(typed(x + y, k), z)

            yield f"__viadd{name}_{suffix}(x, y, z)", by_parts(bits, signed, add, 3)
            yield f"__vi{name}3_{suffix}(x, y, z)", by_parts(bits, signed, best, 3)
            if not signed:
                continue

            def relu(*v: int, best: Callable[..., int] = best) -> int:
                return max(0, best(*v))

            yield f"__vi{name}3_{suffix}_relu(x, y, z)", by_parts(bits, True, relu, 3)
            yield f"__vi{name}_{suffix}_relu(x, y)", by_parts(bits, True, relu, 2)
            yield (
                f"__viadd{name}_{suffix}_relu(x, y, z)",
                by_parts(bits, True, lambda x, y, z, add=add: max(0, add(x, y, z)), 3),
            )


def chosen(best: Callable[[int, int], int], bits: int, signed: bool) -> Reference:
    """__vib…: the extreme, and the predicates that say where it came from x, added."""
    kind = f"{'s' if signed else 'u'}{bits}"

    def whole(x: int, y: int, z: int) -> int:
        extreme = by_parts(bits, signed, best)(x, y, z)
        flags = [
            best(typed(x >> low, kind), typed(y >> low, kind)) == typed(x >> low, kind)
            for low in range(0, 32, bits)
        ]
        return extreme + 3 * flags[0] + (5 * flags[-1] if bits == 16 else 0)

    return whole


def choosing() -> Iterator[tuple[str, Reference]]:
    for name, best in (("max", max), ("min", min)):
        for sign in "su":
            yield f"(__vib{name}_{sign}32(x, y, &p) + 3 * p)", chosen(best, 32, sign == "s")
            yield (
                f"(__vib{name}_{sign}16x2(x, y, &q, &p) + 3 * p + 5 * q)",
                chosen(best, 16, sign == "s"),
            )


def s(value: int) -> int:
    return as_signed(value, 32)


def pair(high: int, low: int) -> int:
    return high << 32 | low


def s64(value: int) -> int:
    return as_signed(value, 64)


def dot(x: int, y: int, z: int, signed: bool, first: int, second: int, offset: int = 0) -> int:
    kind = "s" if signed else "u"
    return z + sum(
        typed(x >> first * k, f"{kind}{first}")
        * typed(y >> second * (k + offset), f"{kind}{second}")
        for k in range(32 // first)
    )


def reversed_bits(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


SCALARS: dict[str, Reference] = {
    "__byte_perm(x, y, z)": lambda x, y, z: prmt([], x, y, z & 0x7777),
    "__ffs(x)": lambda x, y, z: (x & -x).bit_length(),
    "__clz(x)": lambda x, y, z: 32 - x.bit_length(),
    "__popc(x)": lambda x, y, z: x.bit_count(),
    "__brev(x)": lambda x, y, z: reversed_bits(x, 32),
    "__ffsll(w)": lambda x, y, z: (pair(x, y) & -pair(x, y)).bit_length(),
    "__clzll(w)": lambda x, y, z: 64 - pair(x, y).bit_length(),
    "__popcll(w)": lambda x, y, z: pair(x, y).bit_count(),
    "__brevll(w) >> 5": lambda x, y, z: reversed_bits(pair(x, y), 64) >> 5,
    "__fns(x, y & 31, (int)(z & 63) - 32)": lambda x, y, z: fns([], x, y & 31, (z & 63) - 32),
    "__funnelshift_l(x, y, z)": lambda x, y, z: pair(y, x) << (z & 31) >> 32,
    "__funnelshift_lc(x, y, z)": lambda x, y, z: pair(y, x) << min(z, 32) >> 32,
    "__funnelshift_r(x, y, z)": lambda x, y, z: pair(y, x) >> (z & 31),
    "__funnelshift_rc(x, y, z)": lambda x, y, z: pair(y, x) >> min(z, 32),
    "__funnelshift_l(x, x, 7)": lambda x, y, z: x << 7 | x >> 25,
    "__dp4a((int)x, (int)y, (int)z)": lambda x, y, z: dot(x, y, z, True, 8, 8),
    "__dp4a(x, y, z)": lambda x, y, z: dot(x, y, z, False, 8, 8),
    "__dp2a_lo((int)x, (int)y, (int)z)": lambda x, y, z: dot(x, y, z, True, 16, 8),
    "__dp2a_hi((int)x, (int)y, (int)z)": lambda x, y, z: dot(x, y, z, True, 16, 8, 2),
    "__dp2a_lo(x, y, z)": lambda x, y, z: dot(x, y, z, False, 16, 8),
    "__dp2a_hi(x, y, z)": lambda x, y, z: dot(x, y, z, False, 16, 8, 2),
    "__sad((int)x, (int)y, z)": lambda x, y, z: abs(s(x) - s(y)) + z,
    "__usad(x, y, z)": lambda x, y, z: abs(x - y) + z,
    "__hadd((int)x, (int)y)": lambda x, y, z: s(x) + s(y) >> 1,
    "__rhadd((int)x, (int)y)": lambda x, y, z: s(x) + s(y) + 1 >> 1,
    "__uhadd(x, y)": lambda x, y, z: x + y >> 1,
    "__urhadd(x, y)": lambda x, y, z: x + y + 1 >> 1,
    "__mul24((int)x, (int)y)": lambda x, y, z: as_signed(x, 24) * as_signed(y, 24),
    "__umul24(x, y)": lambda x, y, z: (x & 0xFFFFFF) * (y & 0xFFFFFF),
    "__mulhi((int)x, (int)y)": lambda x, y, z: s(x) * s(y) >> 32,
    "__umulhi(x, y)": lambda x, y, z: x * y >> 32,
    "__umul64hi(w, v) >> 7": lambda x, y, z: pair(x, y) * pair(z, x) >> 71,
    "__mul64hi(w, v) >> 7": lambda x, y, z: s64(pair(x, y)) * s64(pair(z, x)) >> 71,
    "x & y | ~z": lambda x, y, z: x & y | ~z,
    "(x & y) ^ (y & z) ^ (z & x)": lambda x, y, z: (x & y) ^ (y & z) ^ (z & x),
    "(x >> (y & 31)) & 0x1f": lambda x, y, z: x >> (y & 31) & 31,
    "(int)(x << 12) >> 20": lambda x, y, z: as_signed(x >> 8, 12),
}


@cache
def intrinsics() -> dict[str, Reference]:
    return {**SCALARS, **dict(simd(2)), **dict(simd(4)), **dict(dpx()), **dict(choosing())}


def source() -> str:
    kernels = [
        f"__global__ void k{number}(const uint4* in, unsigned* out) {{"
        " int i = threadIdx.x; unsigned x = in[i].x, y = in[i].y, z = in[i].z; bool p = 0, q = 0;"
        " unsigned long long w = ((unsigned long long)x << 32) | y;"
        f" unsigned long long v = ((unsigned long long)z << 32) | x; out[i] = {expression}; }}"
        for number, expression in enumerate(intrinsics())
    ]
    return 'extern "C" {\n' + "\n".join(kernels) + "\n}"


def run(runner: KernelRunner, number: int, rows: Rows) -> list[int]:
    out = runner.put(np.zeros(len(rows), np.uint32))
    runner.launch(f"k{number}", 1, len(rows), runner.put(rows), out)
    return [int(value) for value in runner.get(out, len(rows), np.uint32)]


@pytest.mark.slow
@pytest.mark.parametrize("target", few(TARGETS, 2))
def test_intrinsics_give_what_python_integers_give(target: str) -> None:
    # Every kernel has the same variables, of which an expression uses some.
    options = ptx.CompileOptions(target=ptx.Target.ptx(target), extra=("-w",))
    text = ptx.compile(source(), options, cache=False).ptx
    assert text is not None
    runner = KernelRunner(text, 1 << 24)
    rows = sample_rows(64, seed=3)
    wrong = []
    for number, (expression, reference) in enumerate(intrinsics().items()):
        expected = [reference(int(x), int(y), int(z)) & MASK32 for x, y, z, _ in rows]
        if run(runner, number, rows) != expected:
            wrong.append(expression)
    assert wrong == []


def test_every_simd_intrinsic_of_the_headers_is_in_the_corpus() -> None:
    names: set[str] = set()
    for directory in ptx.cuda_headers().paths:
        header = Path(directory) / "crt" / "device_functions.h"
        if header.exists():
            names |= set(re.findall(r"\b(__v[a-z]+[24]|__vi[a-z0-9_]+)\s*\(", header.read_text()))
    if not names:
        pytest.skip("the CUDA headers are not installed")
    used = set(re.findall(r"\w+", " ".join(intrinsics())))
    assert names - used == set()
