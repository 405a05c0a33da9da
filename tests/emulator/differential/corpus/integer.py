"""Integers: arithmetic, bits, carries, comparison, selection, and what packs several in a word."""

from __future__ import annotations

from itertools import product

import ptx
from tests.emulator.differential.case import Source
from tests.emulator.differential.lanes import Lanes, four, lanes, predicates, three, two, uniform

_WIDTHS = (16, 32, 64)


def _typed(opcodes: str, kinds: str, width: int) -> list[str]:
    """Each opcode with each letter of `kinds` before the width."""
    return [f"{op}.{kind}{width}" for op in opcodes.split() for kind in kinds]


def _arithmetic() -> list[Lanes]:
    found = []
    for width in _WIDTHS:
        kind, out = f"u{width}", f"u{width // 8}"
        pair, triple = f"{kind} {kind}", f"{kind} {kind} {kind}"
        rows = three(*_typed("add sub min max", "us", width))
        if width == 32:
            rows += three("add.sat.s32", "sub.sat.s32")
        found.append(lanes(f"integer_add_{width}", "integer", pair, out, rows))
        rows = three(*_typed("mul.lo mul.hi", "us", width))
        rows += four(*_typed("mad.lo mad.hi", "us", width))
        if width == 32:
            rows += four("mad.hi.sat.s32")
        found.append(lanes(f"integer_multiply_{width}", "integer", triple, out, rows))
        # What a division by zero gives is not said: the divisor is odd.
        rows = [
            f"{{ .reg .b{width} d; or.b{width} d, %2, 1; {op} %0, %1, d; }}"
            for op in _typed("div rem", "us", width)
        ]
        found.append(lanes(f"integer_divide_{width}", "integer", pair, out, rows))
        rows = two(f"abs.s{width}", f"neg.s{width}") + four(*_typed("sad", "us", width))
        found.append(lanes(f"integer_sign_{width}", "integer", triple, out, rows))
    for width in (16, 32):
        kinds, out = f"u{width} u{width} u{2 * width}", f"u{width // 4}"
        rows = three(*_typed("mul.wide", "us", width)) + four(*_typed("mad.wide", "us", width))
        found.append(lanes(f"integer_wide_{width}", "integer", kinds, out, rows))
    rows = three(*_typed("mul24.lo mul24.hi", "us", 32))
    rows += four(*_typed("mad24.lo mad24.hi", "us", 32), "mad24.hi.sat.s32")
    found.append(lanes("integer_24", "integer", "u32 u32 u32", "u4", rows))
    return found


def _bits() -> list[Lanes]:
    found = []
    for width in _WIDTHS:
        kind, out, b = f"u{width}", f"u{width // 8}", f"b{width}"
        rows = three(f"and.{b}", f"or.{b}", f"xor.{b}") + two(f"not.{b}", f"cnot.{b}")
        found.append(lanes(f"bits_logic_{width}", "bit", f"{kind} {kind}", out, rows))
        rows = three(f"shl.{b}", f"shr.{b}", f"shr.u{width}", f"shr.s{width}")
        found.append(lanes(f"bits_shift_{width}", "bit", f"{kind} u32", out, rows))
    for width in (32, 64):
        kind, b = f"u{width}", f"b{width}"
        rows = two(f"popc.{b}", f"clz.{b}", f"bfind.u{width}", f"bfind.s{width}")
        rows += two(f"bfind.shiftamt.u{width}", f"bfind.shiftamt.s{width}")
        found.append(lanes(f"bits_count_{width}", "bit", kind, "u4", rows))
        rows = two(f"brev.{b}") + four(f"bfe.u{width}", f"bfe.s{width}")
        found.append(
            lanes(f"bits_extract_{width}", "bit", f"{kind} u32 u32", f"u{width // 8}", rows)
        )
        rows = [f"bfi.{b} %0, %1, %2, %3, %4", f"bfi.{b} %0, %2, %1, %4, %3"]
        kinds = f"{kind} {kind} u32 u32"
        found.append(lanes(f"bits_insert_{width}", "bit", kinds, f"u{width // 8}", rows))
    rows = [
        f"prmt.b32{mode} %0, %1, %2, %3"
        for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")
    ]
    rows += [f"prmt.b32 %0, %1, %2, {selector}" for selector in (0x3210, 0x0123, 0xBA98, 0x7654)]
    found.append(lanes("bits_permute", "bit", "u32 u32 u32", "u4", rows))
    tables = (
        0x00,
        0x01,
        0x1E,
        0x2D,
        0x3C,
        0x69,
        0x80,
        0x96,
        0xAC,
        0xB8,
        0xCA,
        0xE8,
        0xEA,
        0xFE,
        0xFF,
    )
    rows = [f"lop3.b32 %0, %1, %2, %3, {table}" for table in tables]
    found.append(lanes("bits_lookup", "bit", "u32 u32 u32", "u4", rows))
    rows = four(*(f"shf.{way}.{mode}.b32" for way, mode in product("lr", ("clamp", "wrap"))))
    found.append(lanes("bits_funnel", "bit", "u32 u32 u32", "u4", rows))
    rows = three(*(f"{op}.{mode}.{kind}32" for op, kind, mode in
                   (("bmsk", "b", "clamp"), ("bmsk", "b", "wrap"), ("szext", "u", "clamp"),
                    ("szext", "s", "clamp"), ("szext", "u", "wrap"),
                    ("szext", "s", "wrap"))))  # fmt: skip
    rows += [
        f"{{ .reg .b32 n; or.b32 n, %3, 1; fns.b32 %0, %1, {base}, n; }}" for base in (0, 7, 31)
    ]
    found.append(lanes("bits_mask", "bit", "u32 u32 u32", "u4", rows))
    return found


def _carries() -> list[Lanes]:
    found = []
    for width in (32, 64):
        kind, out = f"u{width}", f"u{width // 8}"
        rows = []
        for letter in "us":
            t, b = f"{letter}{width}", f"b{width}"
            rows += [
                f"{{ .reg .{b} l; add.cc.{t} l, %1, %2; addc.{t} %0, %3, %1; }}",
                f"{{ .reg .{b} l; add.cc.{t} l, %1, %2; addc.cc.{t} l, l, %3;"
                f" addc.{t} %0, l, 0; }}",
                f"{{ .reg .{b} l; sub.cc.{t} l, %1, %2; subc.{t} %0, %3, %1; }}",
                f"{{ .reg .{b} l; sub.cc.{t} l, %1, %2; subc.cc.{t} l, l, %3;"
                f" subc.{t} %0, l, 0; }}",
                f"{{ .reg .{b} l; mad.lo.cc.{t} l, %1, %2, %3; madc.hi.{t} %0, %1, %2, %3; }}",
                f"{{ .reg .{b} l; mad.lo.cc.{t} l, %1, %2, %3; madc.hi.cc.{t} l, %1, %3, l;"
                f" addc.{t} %0, l, %2; }}",
                f"{{ .reg .{b} l; mad.hi.cc.{t} l, %1, %2, %3; madc.lo.cc.{t} l, %1, %3, l;"
                f" madc.lo.{t} %0, l, %2, %1; }}",
            ]
        found.append(lanes(f"carry_{width}", "carry", f"{kind} {kind} {kind}", out, rows))
    # Two words each of x and y; the four words of the product folded into one result.
    rows = [
        "{ .reg .b32 a, b, c, d, p, q, r, s; mov.b64 {a, b}, %1; mov.b64 {c, d}, %2;"
        " mul.lo.u32 p, a, c; mul.hi.u32 q, a, c; mad.lo.cc.u32 q, a, d, q; madc.hi.u32 r, a, d, 0;"
        " mad.lo.cc.u32 q, b, c, q; madc.hi.cc.u32 r, b, c, r; addc.u32 s, 0, 0;"
        f" mad.lo.cc.u32 r, b, d, r; madc.hi.u32 s, b, d, s; mov.b64 %0, {{{pair}}}; }}"
        for pair in ("p, q", "r, s")
    ]
    found.append(lanes("carry_128", "carry", "u64 u64", "u8", rows))
    rows = [
        "(unsigned long long)(((unsigned __int128)x * y) >> 64)",
        "(unsigned long long)(((__int128)(long long)x * (long long)y) >> 60)",
        "(unsigned long long)((((unsigned __int128)x << 64 | y)"
        " + ((unsigned __int128)y << 64 | x)) >> 37)",
        "(unsigned long long)((((unsigned __int128)x << 64 | y)"
        " - ((unsigned __int128)y << 64 | x)) >> 91)",
    ]
    found.append(lanes("carry_int128", "carry", "u64 u64", "u8", rows))
    return found


def _comparisons() -> list[Lanes]:
    found = []
    for width in _WIDTHS:
        kind = f"u{width}"
        signed = [f"setp.{c}.s{width}" for c in ("eq", "ne", "lt", "le", "gt", "ge")]
        rest = [f"setp.{c}.u{width}" for c in ("lo", "ls", "hi", "hs", "lt", "ge")]
        rows = predicates(*signed, *rest, f"setp.eq.b{width}", f"setp.ne.b{width}")
        rows += [f"set.{c}.{r}.s{width} %0, %1, %2" for c, r in (("lt", "u32"), ("ge", "s32"))]
        rows += [
            f"{{ .reg .pred p, q, r; setp.ne.u{width} r, %2, 0;"
            f" setp.{c}.{b}.s{width} p|q, %1, %2, r;"
            " .reg .b32 s; selp.u32 %0, 1, 0, p; selp.u32 s, 2, 0, q; or.b32 %0, %0, s; }"
            for c, b in (("lt", "and"), ("eq", "or"), ("gt", "xor"), ("le", "and"))
        ]
        found.append(lanes(f"compare_{width}", "compare", f"{kind} {kind}", "u4", rows))
        out = f"u{width // 8}"
        rows = [
            f"{{ .reg .pred p; setp.lt.s{width} p, %1, %2; selp.{t} %0, %1, %3, p; }}"
            for t in (f"b{width}", f"s{width}", f"u{width}")
        ]
        rows += [
            f"{{ .reg .pred p; setp.lt.u{width} p, %1, %2; @{sign}p add.u{width} %0, %2, %3; }}"
            for sign in ("", "!")
        ]
        found.append(lanes(f"select_{width}", "select", f"{kind} {kind} {kind}", out, rows))
        rows = [f"slct.{t}.s32 %0, %1, %2, %3" for t in (f"b{width}", f"s{width}", f"u{width}")]
        found.append(lanes(f"select_sign_{width}", "select", f"{kind} {kind} u32", out, rows))
    rows = [f"slct{ftz}.b32.f32 %0, %1, %2, %3" for ftz in ("", ".ftz")]
    found.append(lanes("select_float_sign", "select", "u32 u32 f32", "u4", rows))
    rows = [
        "{ .reg .pred p, q, r; setp.lt.s32 p, %1, %2; setp.lt.u32 q, %1, %2; "
        f"{op} selp.u32 %0, %1, %2, r; }}"
        for op in ("and.pred r, p, q;", "or.pred r, p, q;", "xor.pred r, p, q;", "not.pred r, p;",
                   "mov.pred r, q;")
    ]  # fmt: skip
    found.append(lanes("predicate_logic", "select", "u32 u32", "u4", rows))
    return found


def _packed() -> list[Lanes]:
    kinds = [f"{a}.{b}" for a, b in product(("u32", "s32"), repeat=2)]
    found = [
        lanes("packed_dp4a", "integer", "u32 u32 u32", "u4", four(*(f"dp4a.{k}" for k in kinds))),
        lanes(
            "packed_dp2a",
            "integer",
            "u32 u32 u32",
            "u4",
            four(*(f"dp2a.{half}.{k}" for half in ("lo", "hi") for k in kinds)),
        ),
        lanes(
            "packed_16x2",
            "integer",
            "u32 u32",
            "u4",
            three(
                *(f"{op}.{t}16x2" for op in ("min", "max") for t in "us"), "add.u16x2", "add.s16x2"
            ),
        ),
    ]
    parts = (("vadd", "", 0, 1), ("vsub", ".sat", 3, 0), ("vabsdiff", "", 2, 1),
             ("vmin", "", 1, 0), ("vmax", ".sat", 0, 0))  # fmt: skip
    rows = [f"{op}.s32.u32.s32{sat}.add %0, %1.b{a}, %2.h{b}, %3" for op, sat, a, b in parts]
    rows += [
        "vmad.s32.s32.u32 %0, %1.b2, %2.h1, %3",
        "vshl.u32.u32.u32.clamp %0, %1.b1, %2",
        "vshr.s32.s32.u32.wrap %0, %1, %2.b0",
        "vset.s32.u32.lt %0, %1.h0, %2.h1",
    ]
    found.append(lanes("video_scalar", "integer", "u32 u32 u32", "u4", rows))
    rows = [f"{op}.{d}.u32.u32{sat}{add} %0, %1, %2, %3"
            for op in ("vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vadd2", "vsub2",
                       "vavrg2", "vabsdiff2", "vmin2", "vmax2")
            for d, sat, add in (("u32", "", ""), ("s32", ".sat", ""),
                                ("u32", "", ".add"))]  # fmt: skip
    found.append(lanes("video_simd", "integer", "u32 u32 u32", "u4", rows))
    intrinsics = ("vadd4", "vsub4", "vaddss4", "vsubus2", "vabsdiffs4", "vavgu2", "vmaxs4",
                  "vminu2", "vcmpeq4", "vcmpgts2", "vcmpleu4", "vseteq2", "vsads4",
                  "vsadu2")  # fmt: skip
    rows = [f"__{name}(x, y)" for name in intrinsics]
    rows += ["__vabs4(x)", "__vnegss2(x)"]
    found.append(lanes("video_intrinsics", "integer", "u32 u32", "u4", rows))
    rows = ["__brev(x)", "__popc(x)", "__ffs(x)", "__clz(x)", "__byte_perm(x, y, z)",
            "__funnelshift_lc(x, y, z)", "__funnelshift_r(x, y, z)", "__mul24(x, y)",
            "__umulhi(x, y)", "__sad(x, y, z)", "__usad(x, y, z)", "__hadd(x, y)", "__urhadd(x, y)",
            "__dp4a(x, y, z)", "x / (y | 1)", "(int)x % (int)(y | 1)", "x % 1000u",
            "(unsigned)((int)x / 7)", "min((int)x, (int)y)", "abs((int)x)", "x << (y & 31)",
            "(unsigned)((int)x >> (y & 31))", "(unsigned)(signed char)x",
            "(unsigned)(short)x"]  # fmt: skip
    found.append(lanes("integer_expressions", "integer", "u32 u32 u32", "u4", rows))
    rows = ["x / (y | 1)", "x % (y | 1)", "(unsigned long long)((long long)x / (long long)(y | 1))",
            "(unsigned long long)((long long)x % (long long)(y | 1))", "x % 1000003u",
            "__umul64hi(x, y)", "__mul64hi(x, y)", "__brevll(x)",
            "__clzll(x) + 64ull * __popcll(y)", "__ffsll(x)"]  # fmt: skip
    found.append(lanes("integer_expressions_64", "integer", "u64 u64", "u8", rows))
    rows = ["(unsigned short)(x + y)", "(unsigned short)((short)x * (short)y)",
            "(unsigned short)((signed char)x + (signed char)y)", "(unsigned short)(x / (y | 1))",
            "(unsigned short)((short)x >> (y & 15))",
            "(unsigned short)(unsigned char)(x - y)"]  # fmt: skip
    found.append(lanes("integer_expressions_16", "integer", "u16 u16", "u2", rows))
    return found


def _kernels() -> list[Lanes]:
    found = [*_arithmetic(), *_bits(), *_carries(), *_comparisons(), *_packed()]
    alike = ("integer_add_32", "integer_multiply_64", "integer_divide_32", "bits_shift_16",
             "bits_extract_32", "bits_permute", "carry_32", "carry_64", "compare_16",
             "packed_dp4a", "integer_expressions")  # fmt: skip
    return found + [uniform(kernel) for kernel in found if kernel.name in alike]


def source() -> Source:
    kernels = _kernels()
    return Source(
        "integer",
        "".join(kernel.text() for kernel in kernels),
        tuple(kernel.case() for kernel in kernels),
        ptx.CompileOptions(extra=("--device-int128",)),
    )
