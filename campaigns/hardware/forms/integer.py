"""Forms of integer arithmetic, logic, shifts and comparisons."""

from __future__ import annotations

from itertools import product
from typing import Final

from .form import INTEGERS, FormList, bits

_COMPARISONS: Final = {
    "u": "eq ne lt le gt ge lo ls hi hs",
    "s": "eq ne lt le gt ge",
    "b": "eq ne",
    "f": "eq ne lt le gt ge equ neu ltu leu gtu geu num nan",
}
_LOOKUPS: Final = (0x00, 0x1B, 0x96, 0xE8, 0xCA, 0x7F, 0x80, 0x6A)


def add_forms(found: FormList) -> None:
    """Add all forms of the family."""
    _arithmetic(found)
    _narrow_arithmetic(found)
    _bits(found)
    _moves(found)
    _shifts(found)
    _carries(found)
    _comparisons(found)
    _half_comparisons(found)


def _arithmetic(found: FormList) -> None:
    for t in INTEGERS:
        for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem"):
            found.plain(f"{op}.{t}", [t, t], t)
        for op in ("mad.lo", "mad.hi", "sad"):
            found.plain(f"{op}.{t}", [t, t, t], t)
        if bits(t) < 64:
            wide = t[0] + str(2 * bits(t))
            found.plain(f"mul.wide.{t}", [t, t], wide)
            found.plain(f"mad.wide.{t}", [t, t, wide], wide)
        if t[0] == "s":
            found.plain(f"abs.{t}", [t], t)
            found.plain(f"neg.{t}", [t], t)
        found.plain(f"shr.{t}", [t, "u32"], t)
    for op in ("add.sat.s32", "sub.sat.s32"):
        found.plain(op, ["s32"] * 2, "s32")
    found.plain("mad.hi.sat.s32", ["s32"] * 3, "s32")
    found.plain("mad24.hi.sat.s32", ["s32"] * 3, "s32")


def _narrow_arithmetic(found: FormList) -> None:
    for t, other in (("u32", "s32"), ("s32", "u32")):
        for half in ("hi", "lo"):
            found.plain(f"mul24.{half}.{t}", [t] * 2, t)
            found.plain(f"mad24.{half}.{t}", [t] * 3, t)
        for op in ("dp4a", "dp2a.lo", "dp2a.hi"):
            found.plain(f"{op}.{t}.{t}", [t] * 3, t)
            found.plain(f"{op}.{t}.{other}", [t, t, "s32"], "s32")
        for mode in ("clamp", "wrap"):
            found.plain(f"szext.{mode}.{t}", [t, "u32"], t)
    for t in ("u16x2", "s16x2"):
        for op in ("add", "min", "max"):
            found.plain(f"{op}.{t}", ["b32"] * 2, "b32")
    for op in ("min", "max"):
        found.plain(f"{op}.relu.s16x2", ["b32"] * 2, "b32")
        found.plain(f"{op}.relu.s32", ["s32"] * 2, "s32")


def _bits(found: FormList) -> None:
    for t in ("u32", "s32", "u64", "s64"):
        for amount in ("", ".shiftamt"):
            found.plain(f"bfind{amount}.{t}", [t], "u32")
        found.plain(f"bfe.{t}", [t, "u32", "u32"], t)
        small = f"{{.reg .b32 x,y; and.b32 x,$b,63; and.b32 y,$c,63; bfe.{t} $d,$a,x,y;}}"
        found.add(f"bfe.{t}.small", [t, "u32", "u32"], t, small)
    for b in ("b32", "b64"):
        found.plain(f"popc.{b}", [b], "u32")
        found.plain(f"clz.{b}", [b], "u32")
        found.plain(f"brev.{b}", [b], b)
        found.plain(f"bfi.{b}", [b, b, "u32", "u32"], b)
        small = f"{{.reg .b32 x,y; and.b32 x,$c,63; and.b32 y,$e,63; bfi.{b} $d,$a,$b,x,y;}}"
        found.add(f"bfi.{b}.small", [b, b, "u32", "u32"], b, small)
    for lut in _LOOKUPS:
        found.add(f"lop3.{lut}", ["b32"] * 3, "b32", f"lop3.b32 $d,$a,$b,$c,{lut};")
    for op in ("or", "and"):
        text = f"{{.reg .pred q; setp.lt.s32 q,$a,0; lop3.{op}.b32 $d|$p, $a,$b,$c,0x69,q;}}"
        found.add(f"lop3.{op}", ["b32"] * 3, ["b32", "pred"], text)
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        found.plain(f"prmt.b32{mode}", ["b32"] * 3, "b32")
    for mode in ("clamp", "wrap"):
        found.plain(f"bmsk.{mode}.b32", ["b32"] * 2, "b32")
        small = f"{{.reg .b32 x,y; and.b32 x,$a,63; and.b32 y,$b,63; bmsk.{mode}.b32 $d,x,y;}}"
        found.add(f"bmsk.{mode}.small", ["b32"] * 2, "b32", small)
    text = "{.reg .b32 x,y; and.b32 x,$b,31; and.b32 y,$c,15; sub.s32 y,y,8; fns.b32 $d,$a,x,y;}"
    found.add("fns", ["b32", "u32", "u32"], "b32", text)
    for t in ("b16", "b32", "b64"):
        for op in ("and", "or", "xor"):
            found.plain(f"{op}.{t}", [t, t], t)
        for op in ("not", "cnot"):
            found.plain(f"{op}.{t}", [t], t)
    for op in ("and", "or", "xor"):
        text = (
            "{.reg .pred q,r; setp.gt.s32 q,$a,0; setp.gt.s32 r,$b,0; "
            f"{op}.pred q,q,r; not.pred $p,q;}}"
        )
        found.add(f"{op}.pred", ["s32", "s32"], "pred", text)


def _moves(found: FormList) -> None:
    for t in ("s16", "s32", "s64"):
        found.plain(f"mov.{t}", [t], t)
    for t in ("b32", "u32"):
        text = (
            f"{{.reg .b32 x<4>; mov.v4.{t} {{x0,x1,x2,x3}},%tid; add.u32 $d,x0,$a; "
            "mov.b32 $d2,x1;}"
        )
        found.add(f"mov.v4.{t}", ["b32"], ["b32", "b32"], text, "warp")


def _shifts(found: FormList) -> None:
    for t in ("b16", "b32", "b64"):
        found.plain(f"shl.{t}", [t, "u32"], t)
        found.plain(f"shr.{t}", [t, "u32"], t)
    for name, op, t in (("shl.small", "shl.b64", "b64"), ("shr.s.small", "shr.s64", "s64")):
        text = f"{{.reg .b32 x; and.b32 x,$b,127; {op} $d,$a,x;}}"
        found.add(name, [t, "u32"], t, text)
    for d, mode in product("lr", ("clamp", "wrap")):
        op = f"shf.{d}.{mode}.b32"
        found.plain(op, ["b32", "b32", "u32"], "b32")
        text = f"{{.reg .b32 x; and.b32 x,$c,63; {op} $d,$a,$b,x;}}"
        found.add(f"shf.{d}.{mode}.small", ["b32", "b32", "u32"], "b32", text)


def _carries(found: FormList) -> None:
    for t in ("u32", "s32", "u64", "s64"):
        for name, first, second in (
            ("addcc", "add.cc.{} $d,$a,$b", "addc.cc.{} $d2,$c,$e"),
            ("subcc", "sub.cc.{} $d,$a,$b", "subc.cc.{} $d2,$c,$e"),
            ("madcc", "mad.lo.cc.{} $d,$a,$b,$c", "madc.hi.cc.{} $d2,$a,$b,$e"),
            ("madcc2", "mad.hi.cc.{} $d,$a,$b,$c", "madc.lo.cc.{} $d2,$a,$b,$e"),
        ):
            text = f"{{{first.format(t)}; {second.format(t)}; addc.u32 $d3,0,0;}}"
            found.add(f"{name}.{t}", [t] * 4, [t, t, "u32"], text)


def _comparisons(found: FormList) -> None:
    for t in (*INTEGERS, "f32", "f64", "b16", "b32", "b64"):
        for comparison in _COMPARISONS[t[0]].split():
            for ftz in ("", ".ftz") if t == "f32" else ("",):
                op = f"setp.{comparison}{ftz}.{t}"
                found.add(op, [t, t], "pred", f"{op} $p,$a,$b;")
        chosen = "ne" if t[0] == "b" else "lt"
        for combined in ("and", "or", "xor"):
            op = f"setp.{chosen}.{combined}.{t}"
            text = f"{{.reg .pred q; setp.gt.s32 q,$c,0; {op} $p|$p2,$a,$b,q;}}"
            found.add(op, [t, t, "u32"], ["pred", "pred2"], text)
        for result in ("u32", "s32", "f32", "f16", "bf16"):
            found.plain(f"set.{chosen}.{result}.{t}", [t, t], result)
        op = f"set.{chosen}.and.f32.{t}"
        text = f"{{.reg .pred q; setp.gt.s32 q,$c,0; {op} $d,$a,$b,q;}}"
        found.add(op, [t, t, "u32"], "f32", text)
        found.plain(f"slct.{t}.s32", [t, t, "s32"], t)
        for ftz in ("", ".ftz"):
            found.plain(f"slct{ftz}.{t}.f32", [t, t, "f32"], t)
        text = f"{{.reg .pred q; setp.gt.s32 q,$c,0; selp.{t} $d,$a,$b,q;}}"
        found.add(f"selp.{t}", [t, t, "s32"], t, text)


def _half_comparisons(found: FormList) -> None:
    for t in ("f16", "bf16"):
        for comparison in _COMPARISONS["f"].split():
            for ftz in ("", ".ftz") if t == "f16" else ("",):
                op = f"setp.{comparison}{ftz}.{t}"
                found.add(op, [t, t], "pred", f"{op} $p,$a,$b;")
        results = ("u16", "s16", "u32", "s32", *(("f16", "bf16") if t == "f16" else (t,)))
        for comparison, result in product(("lt", "equ", "nan"), results):
            found.plain(f"set.{comparison}.{result}.{t}", [t, t], result)
        found.plain(f"set.ge.{t}x2.{t}x2", ["b32", "b32"], "b32")
        for result in ("u32", "s32"):
            found.plain(f"set.ge.{result}.{t}x2", ["b32", "b32"], result)
        op = f"setp.leu.{t}x2"
        found.add(op, ["b32", "b32"], ["pred", "pred2"], f"{op} $p|$p2,$a,$b;")
