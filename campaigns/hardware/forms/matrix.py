"""Forms of products of matrices, and of the instructions that move matrices."""

from __future__ import annotations

from itertools import product

from .form import FormList, Fragments

_SIGNS = ("", ".satfinite")


def add_forms(found: FormList) -> None:
    """Add all forms of the family."""
    _halves(found)
    _bytes_and_bits(found)
    _doubles(found)
    _sparse(found)
    _moves(found)


def _mma(found: FormList, name: str, fragments: Fragments, extra: str = "") -> None:
    operands = ",".join(
        "{" + ",".join(f"{register}{i}" for i in range(count)) + "}"
        for register, count in (
            ("dd", fragments.c),
            ("aa", fragments.a),
            ("bb", fragments.b),
            ("cc", fragments.c),
        )
    )
    text = f"mma.{name} {operands}{extra};"
    suffix = extra.removeprefix(",ee").replace(",", ".")
    found.add(f"mma.{name}{suffix}", [], [], text, "matrix", fragments)


def _halves(found: FormList) -> None:
    dense = "sync.aligned.m16n8k{}.row.col.{}"
    for d, c in (("f16", 2), ("f32", 4)):
        for k, a, b in ((8, 2, 1), (16, 4, 2)):
            _mma(found, dense.format(k, f"{d}.f16.f16.{d}"), Fragments(a, b, c, "f16", d))
        for la, lb in product(("row", "col"), ("row", "col")):
            name = f"sync.aligned.m8n8k4.{la}.{lb}.{d}.f16.f16.{d}"
            _mma(found, name, Fragments(2, 2, 2 * c, "f16", d))
        for x, y in product(("e4m3", "e5m2"), ("e4m3", "e5m2")):
            for k, a, b in ((16, 2, 1), (32, 4, 2)):
                _mma(found, dense.format(k, f"{d}.{x}.{y}.{d}"), Fragments(a, b, c, x, d))
    for k, a, b in ((8, 2, 1), (16, 4, 2)):
        _mma(found, dense.format(k, "f32.bf16.bf16.f32"), Fragments(a, b, 4, "bf16", "f32"))
    for k, a, b in ((4, 2, 1), (8, 4, 2)):
        _mma(found, dense.format(k, "f32.tf32.tf32.f32"), Fragments(a, b, 4, "tf32", "f32"))


def _bytes_and_bits(found: FormList) -> None:
    for width, scale in ((8, 1), (4, 2)):
        for x, y, sat in product("us", "us", _SIGNS):
            types = f"{sat}.s32.{x}{width}.{y}{width}.s32"
            for m, k, a, b, c in ((8, 16, 1, 1, 2), (16, 16, 2, 1, 4), (16, 32, 4, 2, 4)):
                name = f"sync.aligned.m{m}n8k{k * scale}.row.col{types}"
                _mma(found, name, Fragments(a, b, c, "b32", "b32"))
    for op in ("xor", "and"):
        for m, k, a, b, c in ((8, 128, 1, 1, 2), (16, 128, 2, 1, 4), (16, 256, 4, 2, 4)):
            name = f"sync.aligned.m{m}n8k{k}.row.col.s32.b1.b1.s32.{op}.popc"
            _mma(found, name, Fragments(a, b, c, "b32", "b32"))


def _doubles(found: FormList) -> None:
    for rounding in ("", ".rn", ".rz", ".rm", ".rp"):
        for m, k, a, b, c in (
            (8, 4, 1, 1, 2),
            (16, 4, 2, 1, 4),
            (16, 8, 4, 2, 4),
            (16, 16, 8, 4, 4),
        ):
            name = f"sync.aligned.m{m}n8k{k}.row.col{rounding}.f64.f64.f64.f64"
            _mma(found, name, Fragments(a, b, c, "f64", "f64"))


def _sparse(found: FormList) -> None:
    halves = Fragments(4, 4, 2, "f16", "f16")
    for selector in (0, 1):
        for name, fragments in (
            ("m16n8k16.row.col.f32.f16.f16.f32", Fragments(2, 2, 4, "f16", "f32")),
            ("m16n8k8.row.col.f32.tf32.tf32.f32", Fragments(2, 2, 4, "tf32", "f32")),
            ("m16n8k32.row.col.s32.s8.u8.s32", Fragments(2, 2, 4, "b32", "b32")),
        ):
            _mma(found, f"sp.sync.aligned.{name}", fragments, f",ee,{selector}")
    _mma(found, "sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", halves, ",ee,0")
    saturating = "sp.sync.aligned.m16n8k64.row.col.satfinite.s32.u8.s8.s32"
    _mma(found, saturating, Fragments(4, 4, 4, "b32", "b32"), ",ee,0")
    ordered = "sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
    _mma(found, ordered, Fragments(4, 4, 4, "bf16", "f32"), ",ee,0")


def _moves(found: FormList) -> None:
    names = ("$d", "$d2", "$d3", "$d4"), ("$a", "$b", "$c", "$e")
    for count, transposed in product((1, 2, 4), ("", ".trans")):
        results, operands = (",".join(each[:count]) for each in names)
        matrices = f"m8n8.x{count}{transposed}.shared.b16"
        text = (
            "st.shared.v2.b64 [$s],{$a,$b}; bar.warp.sync -1; "
            f"ldmatrix.sync.aligned.{matrices} {{{results}}},[$s];"
        )
        found.add(f"ldmatrix.x{count}{transposed}", ["b64"] * 2, ["b32"] * count, text, "memory")
        text = (
            "st.shared.v2.b64 [$s],{0,0}; bar.warp.sync -1; "
            f"stmatrix.sync.aligned.{matrices} [$s],{{{operands}}}; bar.warp.sync -1; "
            "ld.shared.v2.b64 {$d,$d2},[$s];"
        )
        found.add(f"stmatrix.x{count}{transposed}", ["b32"] * 4, ["b64"] * 2, text, "memory")
    text = "movmatrix.sync.aligned.m8n8.trans.b16 $d,$a;"
    found.add("movmatrix", ["b32"], "b32", text, "warp")
