"""Rows of arithmetic. PTX ISA, "Integer Arithmetic Instructions" to "Comparison and Selection"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptx.isa.opcodes.opcode_row import Chapter

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
_SELECTED_BY_INTEGER: Final = " ".join(f"{kind}.s32" for kind in _SELECTED.split())
_SELECTED_BY_FLOAT: Final = " ".join(f"{kind}.f32" for kind in _SELECTED.split())

OPCODES: Final = Chapter(
    f"""
opcode add | addition | floating_point integer | lane_arithmetic | sm_10 1.0
needs f16/f16x2 | sm_53 4.2
needs bf16/bf16x2 !f32 | sm_90 7.8
needs u16x2/s16x2 | sm_90 8.0
needs sat u32/u16x2/s16x2 | sm_107f 9.4, sm_120f 9.2
needs f32x2/f32.f16/f32.bf16 | sm_100 8.6
add | | u16 u32 u64 s16 s64 | d a a
add | | u16x2 s16x2 | d a a
add | [sat] | s32 | d a a
add | sat | u32 u16x2 s16x2 | d a a
add | cc | u32 u64 s32 s64 | d a a
add | [rn/rz/rm/rp] [ftz] [sat] | f32 | d a a
add | [rn/rz/rm/rp] | f64 | d a a
add | [rn/rz/rm/rp] [ftz] | f32x2 | d a a
add | [rn/rz/rm/rp] [sat] | f32.f16 f32.bf16 | d a2 a
add | [rn] [ftz] [sat] | f16 f16x2 | d a a
add | [rn] | bf16 bf16x2 | d a a

opcode sub | addition | floating_point integer | lane_arithmetic | sm_10 1.0
needs f16/f16x2 | sm_53 4.2
needs bf16/bf16x2 !f32 | sm_90 7.8
needs f32x2/f32.f16/f32.bf16 | sm_100 8.6
sub | | u16 u32 u64 s16 s64 | d a a
sub | [sat] | s32 | d a a
sub | cc | u32 u64 s32 s64 | d a a
sub | [rn/rz/rm/rp] [ftz] [sat] | f32 | d a a
sub | [rn/rz/rm/rp] | f64 | d a a
sub | [rn/rz/rm/rp] [ftz] | f32x2 | d a a
sub | [rn/rz/rm/rp] [sat] | f32.f16 f32.bf16 | d a2 a
sub | [rn] [ftz] [sat] | f16 f16x2 | d a a
sub | [rn] | bf16 bf16x2 | d a a

opcode addc subc | arithmetic with a carry | integer | - | sm_10 1.2
addc subc | [cc] | u32 u64 s32 s64 | d a a
addc subc | | u16 s16 | d a a

opcode mul | multiplication | floating_point integer | lane_arithmetic | sm_10 1.0
needs f16/f16x2 | sm_53 4.2
needs bf16/bf16x2 !f32 | sm_90 7.8
needs f32x2/f32.f16/f32.bf16 | sm_100 8.6
mul.lo mul.hi | | u16 u32 u64 s16 s32 s64 | d a a
mul.wide | | u16 u32 s16 s32 | d:W a a
mul | [rn/rz/rm/rp] [ftz] | f32x2 | d a a
mul | [rn/rz/rm/rp] [ftz] [sat] | f32 | d a a
mul | [rn/rz/rm/rp] | f64 | d a a
mul | [rn] [ftz] [sat] | f16 f16x2 | d a a
mul | [rn] | bf16 bf16x2 | d a a

opcode mad | multiply-add | floating_point integer | lane_arithmetic | sm_10 1.0
mad.lo | | u16 u32 u64 s16 s32 s64 | d a a a
mad.hi | | u16 u32 u64 s16 s64 | d a a a
mad.hi | [sat] | s32 | d a a a
mad.wide | | u16 u32 s16 s32 | d:W a a a:W
mad.lo mad.hi | cc | u32 u64 s32 s64 | d a a a
mad | rn/rz/rm/rp [ftz] [sat] | f32 | d a a a
mad | rn/rz/rm/rp | f64 | d a a a

opcode madc | arithmetic with a carry | integer | - | sm_20 3.0
madc.lo madc.hi | [cc] | u32 u64 s32 s64 | d a a a
madc.lo madc.hi | | u16 s16 | d a a a

opcode mul24 | arithmetic | integer | - | sm_10 1.0
mul24.lo mul24.hi | | u32 s32 | d a a

opcode mad24 | arithmetic | integer | - | sm_10 1.0
mad24.lo mad24.hi | | u32 s32 | d a a a
mad24.hi | sat | s32 | d a a a

opcode sad | arithmetic | integer | - | sm_10 1.0
sad | | u16 u32 u64 s16 s32 s64 | d a a a

opcode div | division | floating_point integer | lane_arithmetic | sm_10 1.0
div | | u16 u32 u64 s16 s32 s64 | d a a
div | approx [ftz] | f32 | d a a
div.full | [ftz] | f32 | d a a
div | rn/rz/rm/rp [ftz] | f32 | d a a
div | rn/rz/rm/rp | f64 | d a a

opcode rem | arithmetic | integer | lane_arithmetic | sm_10 1.0
rem | | u16 u32 u64 s16 s32 s64 | d a a

opcode abs | arithmetic | floating_point integer | lane_arithmetic | sm_10 1.0
needs f16/f16x2 | sm_53 6.5
needs bf16/bf16x2 | sm_80 7.0
abs | | s16 s32 s64 | d a
abs | [ftz] | f32 | d a
abs | | f64 | d a
abs | [ftz] | f16 f16x2 | d a
abs | | bf16 bf16x2 | d a

opcode neg | arithmetic | floating_point integer | lane_arithmetic | sm_10 1.0
needs f16/f16x2 | sm_53 6.0
needs bf16/bf16x2 | sm_80 7.0
neg | | s16 s32 s64 | d a
neg | [ftz] | f32 | d a
neg | | f64 | d a
neg | [ftz] | f16 f16x2 | d a
neg | | bf16 bf16x2 | d a

opcode min max | arithmetic, passes_operand, is_idempotent | floating_point integer | lane_arithmetic | sm_10 1.0
needs u16x2/s16x2 | sm_90 8.0
needs f16/f16x2/bf16/bf16x2/NaN | sm_80 7.0
needs xorsign | sm_86 7.2
needs f32 4: | sm_100 8.8
needs relu s32 | sm_90 8.0
min max | | u16 u32 u64 s16 s64 u16x2 | d a a
min max | [relu] | s32 s16x2 | d a a
min max | [ftz] [NaN] | f32 | d a a ; d a a a
min max | [ftz] [NaN] abs | f32 | d a a a
min max | [ftz] [NaN] xorsign abs | f32 | d a a
min max | | f64 | d a a
min max | [ftz] [NaN] | f16 f16x2 | d a a
min max | [ftz] [NaN] xorsign abs | f16 f16x2 | d a a
min max | [NaN] | bf16 bf16x2 | d a a
min max | [NaN] xorsign abs | bf16 bf16x2 | d a a

opcode popc clz | bit | integer | lane_arithmetic | sm_20 2.0
popc clz | | b32 b64 | N a

opcode bfind | bit | integer | - | sm_20 2.0
bfind | [shiftamt] | u32 u64 s32 s64 | N a

opcode fns | bit | integer | - | sm_30 6.0
fns | | b32 | d a a a

opcode brev | bit | integer | - | sm_20 2.0
brev | | b32 b64 | d a

opcode bfe | bit | integer | lane_arithmetic | sm_20 2.0
bfe | | u32 u64 s32 s64 | d a N/=0..255 N/=0..255

opcode bfi | bit, copies_value | integer | - | sm_20 2.0
bfi | | b32 b64 | d a a N/=0..255 N/=0..255

opcode bmsk | bit | integer | - | sm_70 7.6
bmsk | clamp/wrap | b32 | N n n

opcode szext | bit | integer | - | sm_70 7.6
szext | clamp/wrap | u32 s32 | d a n

opcode dp4a | arithmetic | integer | - | sm_61 5.0
dp4a | | u32.u32 u32.s32 s32.u32 s32.s32 | N a a2 n

opcode dp2a | arithmetic | integer | - | sm_61 5.0
dp2a.lo dp2a.hi | | u32.u32 u32.s32 s32.u32 s32.s32 | N a a2 n

opcode testp | arithmetic, gives_number | floating_point | - | sm_20 2.0
testp | finite/infinite/number/notanumber/normal/subnormal | f32 f64 | q a

opcode copysign | arithmetic | floating_point | lane_arithmetic | sm_20 2.0
copysign | | f32 f64 | d a a

opcode fma | multiply-add | floating_point | lane_arithmetic | sm_10 1.0
needs f16/f16x2 | sm_53 4.2
needs f32x2/f32.f16/f32.bf16 | sm_100 8.6
needs bf16/bf16x2/relu | sm_80 7.0
needs oob | sm_90 8.1
fma | rn/rz/rm/rp [ftz] [sat] | f32 | d a a a
fma | rn/rz/rm/rp | f64 | d a a a
fma | rn/rz/rm/rp [ftz] | f32x2 | d a a a
fma | rn/rz/rm/rp [sat] | f32.f16 f32.bf16 | d a2 a2 a
fma | rn [ftz] [sat] | f16 f16x2 | d a a a
fma | rn [ftz] relu | f16 f16x2 | d a a a
fma | rn oob [relu] | f16 f16x2 | d a a a
fma | rn/rz/rm/rp [oob] [relu] | bf16 bf16x2 | d a a a

opcode rcp | special function | floating_point | lane_arithmetic | sm_10 1.0
rcp | approx [ftz] | f32 | d a
rcp | approx ftz | f64 | d a
rcp | rn/rz/rm/rp [ftz] | f32 | d a
rcp | rn/rz/rm/rp [ftz] | f64 | d a

opcode sqrt | special function | floating_point | lane_arithmetic | sm_10 1.0
sqrt | rn/rz/rm/rp [ftz] | f32 | d a
sqrt | rn/rz/rm/rp | f64 | d a
sqrt | approx [ftz] | f32 | d a

opcode rsqrt | special function | floating_point | lane_arithmetic | sm_10 1.0
rsqrt | approx [ftz] | f32 | d a
rsqrt | approx [ftz] | f64 | d a

opcode sin cos | special function | floating_point | - | sm_10 1.0
sin cos | approx [ftz] | f32 | d a

opcode lg2 | special function | floating_point | lane_arithmetic | sm_10 1.0
lg2 | approx [ftz] | f32 | d a

opcode ex2 | special function | floating_point | lane_arithmetic | sm_10 1.0
needs f16/f16x2 | sm_75 7.0
needs bf16/bf16x2 | sm_90 7.8
ex2 | approx [ftz] | f32 | d a
ex2 | approx | f16 f16x2 | d a
ex2 | approx ftz | bf16 bf16x2 | d a

opcode tanh | special function | floating_point | lane_arithmetic | sm_75 7.0
needs bf16/bf16x2 | sm_90 7.8
tanh | approx | f32 f16 f16x2 bf16 bf16x2 | d a

opcode setp | arithmetic, gives_number | comparison | lane_data | sm_10 1.0
needs f16/f16x2 | sm_53 4.2
needs bf16/bf16x2 | sm_90 7.8
forms comparisons

opcode set | arithmetic, gives_number | comparison | lane_data | sm_10 1.0
needs f16/f16x2 | sm_53 4.2
needs u16.f16/s16.f16/u32.f16/s32.f16/u32.f16x2/s32.f16x2 | sm_53 6.5
needs bf16/bf16x2 | sm_90 7.8
forms comparisons

opcode selp | move, copies_value, is_idempotent | comparison | lane_data | sm_10 1.0
selp | | {_SELECTED} | d a a p

opcode slct | move | comparison | - | sm_10 1.0
slct | | {_SELECTED_BY_INTEGER} | d a a a2
slct | [ftz] | {_SELECTED_BY_FLOAT} | d a a a2

opcode and or | bit, is_idempotent | logic_and_shift | lane_arithmetic | sm_10 1.0
and or | | b16 b32 b64 | d a a
and or | | pred | d a a

opcode xor | bit | logic_and_shift | lane_arithmetic | sm_10 1.0
xor | | b16 b32 b64 | d a a
xor | | pred | d a a

opcode not | bit | logic_and_shift | lane_arithmetic | sm_10 1.0
not | | b16 b32 b64 | d a
not | | pred | d a

opcode cnot | bit | logic_and_shift | lane_arithmetic | sm_10 1.0
cnot | | b16 b32 b64 | d a

opcode lop3 | bit | logic_and_shift | - | sm_50 4.3
needs and/or/xor | sm_70 8.2
lop3 | | b32 | d a a a i
lop3 | or/and | b32 | d|q a a a i p

opcode shf | bit | logic_and_shift | - | sm_32 3.1
shf.l shf.r | clamp/wrap | b32 | d a a n

opcode shl | bit | logic_and_shift | lane_arithmetic | sm_10 1.0
shl | | b16 b32 b64 | d a n

opcode shr | bit | logic_and_shift | lane_arithmetic | sm_10 1.0
shr | | b16 b32 b64 u16 u32 u64 s16 s32 s64 | d a n

opcode prmt | bit, copies_value | data_movement | - | sm_20 2.0
prmt | [f4e/b4e/rc8/ecl/ecr/rc16] | b32 | d a a a
""",
    {"comparisons": _comparisons},
)
