"""Forms of arithmetic. PTX ISA, "Integer Arithmetic Instructions" to "Comparison and Selection".

`ptx.isa.forms.grammar` has the notation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

INTEGERS: Final = """
add sub | | u16 u32 u64 s16 s64 | d a a
add | | u16x2 s16x2 | d a a
add sub | [sat] | s32 | d a a
add | sat | u32 u16x2 s16x2 | d a a
add sub | cc | u32 u64 s32 s64 | d a a
addc subc | [cc] | u32 u64 s32 s64 | d a a
addc subc | | u16 s16 | d a a
mul.lo mul.hi | | u16 u32 u64 s16 s32 s64 | d a a
mul.wide | | u16 u32 s16 s32 | d:W a a
mad.lo | | u16 u32 u64 s16 s32 s64 | d a a a
mad.hi | | u16 u32 u64 s16 s64 | d a a a
mad.hi | [sat] | s32 | d a a a
mad.wide | | u16 u32 s16 s32 | d:W a a a:W
mad.lo mad.hi | cc | u32 u64 s32 s64 | d a a a
madc.lo madc.hi | [cc] | u32 u64 s32 s64 | d a a a
madc.lo madc.hi | | u16 s16 | d a a a
mul24.lo mul24.hi | | u32 s32 | d a a
mad24.lo mad24.hi | | u32 s32 | d a a a
mad24.hi | sat | s32 | d a a a
sad | | u16 u32 u64 s16 s32 s64 | d a a a
div rem | | u16 u32 u64 s16 s32 s64 | d a a
abs neg | | s16 s32 s64 | d a
min max | | u16 u32 u64 s16 s64 u16x2 | d a a
min max | [relu] | s32 s16x2 | d a a
popc clz | | b32 b64 | N a
bfind | [shiftamt] | u32 u64 s32 s64 | N a
fns | | b32 | d a a a
brev | | b32 b64 | d a
bfe | | u32 u64 s32 s64 | d a N/=0..255 N/=0..255
bfi | | b32 b64 | d a a N/=0..255 N/=0..255
bmsk | clamp/wrap | b32 | N n n
szext | clamp/wrap | u32 s32 | d a n
dp4a | | u32.u32 u32.s32 s32.u32 s32.s32 | N a a2 n
dp2a.lo dp2a.hi | | u32.u32 u32.s32 s32.u32 s32.s32 | N a a2 n
"""

FLOATS: Final = """
testp | finite/infinite/number/notanumber/normal/subnormal | f32 f64 | q a
copysign | | f32 f64 | d a a
add sub | [rn/rz/rm/rp] [ftz] [sat] | f32 | d a a
add sub | [rn/rz/rm/rp] | f64 | d a a
add sub mul | [rn/rz/rm/rp] [ftz] | f32x2 | d a a
add sub | [rn/rz/rm/rp] [sat] | f32.f16 f32.bf16 | d a2 a
mul | [rn/rz/rm/rp] [ftz] [sat] | f32 | d a a
mul | [rn/rz/rm/rp] | f64 | d a a
fma | rn/rz/rm/rp [ftz] [sat] | f32 | d a a a
fma | rn/rz/rm/rp | f64 | d a a a
fma | rn/rz/rm/rp [ftz] | f32x2 | d a a a
fma | rn/rz/rm/rp [sat] | f32.f16 f32.bf16 | d a2 a2 a
mad | rn/rz/rm/rp [ftz] [sat] | f32 | d a a a
mad | rn/rz/rm/rp | f64 | d a a a
div | approx [ftz] | f32 | d a a
div.full | [ftz] | f32 | d a a
div | rn/rz/rm/rp [ftz] | f32 | d a a
div | rn/rz/rm/rp | f64 | d a a
abs neg | [ftz] | f32 | d a
abs neg | | f64 | d a
min max | [ftz] [NaN] | f32 | d a a ; d a a a
min max | [ftz] [NaN] abs | f32 | d a a a
min max | [ftz] [NaN] xorsign abs | f32 | d a a
min max | | f64 | d a a
rcp | approx [ftz] | f32 | d a
rcp | approx ftz | f64 | d a
rcp sqrt | rn/rz/rm/rp [ftz] | f32 | d a
rcp | rn/rz/rm/rp [ftz] | f64 | d a
sqrt | rn/rz/rm/rp | f64 | d a
sqrt rsqrt sin cos lg2 ex2 | approx [ftz] | f32 | d a
rsqrt | approx [ftz] | f64 | d a
tanh | approx | f32 f16 f16x2 bf16 bf16x2 | d a
ex2 | approx | f16 f16x2 | d a
ex2 | approx ftz | bf16 bf16x2 | d a
add sub mul | [rn] [ftz] [sat] | f16 f16x2 | d a a
add sub mul | [rn] | bf16 bf16x2 | d a a
fma | rn [ftz] [sat] | f16 f16x2 | d a a a
fma | rn [ftz] relu | f16 f16x2 | d a a a
fma | rn oob [relu] | f16 f16x2 | d a a a
fma | rn/rz/rm/rp [oob] [relu] | bf16 bf16x2 | d a a a
neg abs | [ftz] | f16 f16x2 | d a
neg abs | | bf16 bf16x2 | d a
min max | [ftz] [NaN] | f16 f16x2 | d a a
min max | [ftz] [NaN] xorsign abs | f16 f16x2 | d a a
min max | [NaN] | bf16 bf16x2 | d a a
min max | [NaN] xorsign abs | bf16 bf16x2 | d a a
"""

_SIGNED: Final = "eq/ne/lt/le/gt/ge"
_UNSIGNED: Final = f"{_SIGNED}/lo/ls/hi/hs"
_FLOAT: Final = f"{_SIGNED}/equ/neu/ltu/leu/gtu/geu/num/nan"
# Each comparison may be combined with a predicate, which follows its operands.
_COMBINED: Final = "and/or/xor"


def _comparisons() -> Iterator[str]:
    for compare, flush, types in (
        (_UNSIGNED, "", "u16 u32 u64"),
        (_SIGNED, "", "s16 s32 s64"),
        ("eq/ne", "", "b16 b32 b64"),
        (_FLOAT, "[ftz]", "f32"),
        (_FLOAT, "", "f64"),
    ):
        yield f"setp | {compare} {flush} | {types} | q a a ; q|q a a"
        yield f"setp | {compare} {_COMBINED} {flush} | {types} | q a a p ; q|q a a p"
        targets = " ".join(f"{d}.{s}" for d in ("u32", "s32", "f32") for s in types.split())
        yield f"set | {compare} {flush} | {targets} | d a2 a2"
        yield f"set | {compare} {_COMBINED} {flush} | {targets} | d a2 a2 p"
        for half, flushed, p in (("f16", flush, "p"), ("bf16", "", "P")):
            targets = " ".join(f"{half}.{s}" for s in types.split())
            yield f"set | {compare} {flushed} | {targets} | d a2 a2"
            yield f"set | {compare} {_COMBINED} {flushed} | {targets} | d a2 a2 {p}"
    for flush, kind, p in (("[ftz]", "f16", "p"), ("", "bf16", "P")):
        yield f"setp | {_FLOAT} {flush} | {kind} | q a a"
        yield f"setp | {_FLOAT} {_COMBINED} {flush} | {kind} | q a a {p}"
        yield f"setp | {_FLOAT} {flush} | {kind}x2 | q a a ; q|q a a"
        yield f"setp | {_FLOAT} {_COMBINED} {flush} | {kind}x2 | q a a {p} ; q|q a a {p}"
        half = " ".join(f"{d}.{kind}" for d in (kind, "u16", "s16", "u32", "s32"))
        pair = " ".join(f"{d}.{kind}x2" for d in (f"{kind}x2", "u32", "s32"))
        if kind == "f16":
            yield f"set | {_FLOAT} | bf16.f16 | d a2 a2"
            yield f"set | {_FLOAT} {_COMBINED} | bf16.f16 | d a2 a2 P"
        for types in (half, pair):
            yield f"set | {_FLOAT} {flush} | {types} | d a2 a2"
            yield f"set | {_FLOAT} {_COMBINED} {flush} | {types} | d a2 a2 {p}"


_SELECTED: Final = "u16 u32 u64 s16 s32 s64 b16 b32 b64 f32 f64"
COMPARISONS: Final = "\n".join((
    *_comparisons(),
    f"selp | | {_SELECTED} | d a a p",
    f"slct | | {' '.join(f'{kind}.s32' for kind in _SELECTED.split())} | d a a a2",
    f"slct | [ftz] | {' '.join(f'{kind}.f32' for kind in _SELECTED.split())} | d a a a2",
))  # fmt: skip

LOGIC: Final = """
and or xor | | b16 b32 b64 | d a a
and or xor | | pred | d a a
not | | b16 b32 b64 | d a
not | | pred | d a
cnot | | b16 b32 b64 | d a
lop3 | | b32 | d a a a i
lop3 | or/and | b32 | d|q a a a i p
shf.l shf.r | clamp/wrap | b32 | d a a n
shl | | b16 b32 b64 | d a n
shr | | b16 b32 b64 u16 u32 u64 s16 s32 s64 | d a n
prmt | [f4e/b4e/rc8/ecl/ecr/rc16] | b32 | d a a a
"""
