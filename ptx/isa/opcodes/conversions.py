"""Rows of conversions. PTX ISA, "cvt", "cvt.pack"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptx.isa.opcodes.opcode_row import RECENT, Chapter

_INTEGERS: Final = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
_FLOATS: Final = ("f16", "f32", "f64")
_ROUND: Final = "rn/rz/rm/rp"
_ROUND_TO_INTEGER: Final = "rni/rzi/rmi/rpi"


def _holds(wide: str, narrow: str) -> bool:
    """Return whether an integer type has all values of another one."""
    bits, of_narrow = int(wide[1:]), int(narrow[1:])
    if wide[0] == narrow[0]:
        return bits >= of_narrow
    return wide[0] == "s" and bits > of_narrow


def _scalars() -> Iterator[str]:
    """The conversions between two scalars."""
    for target in _INTEGERS:
        for source in _INTEGERS:
            sat = "" if _holds(target, source) else "[sat]"
            yield f"cvt | {sat} | {target}.{source} | D A2 ; D S"
        for source in _FLOATS:
            ftz = "[ftz]" if source == "f32" else ""
            yield f"cvt | {_ROUND_TO_INTEGER} {ftz} [sat] | {target}.{source} | D A2"
        yield f"cvt | {_ROUND_TO_INTEGER} | {target}.bf16 | d a2"
    for source in _INTEGERS:
        for target in _FLOATS:
            ftz = "[ftz]" if target == "f32" else ""
            yield f"cvt | {_ROUND} {ftz} [sat] | {target}.{source} | D A2"
        yield f"cvt | {_ROUND} | bf16.{source} | d a2"


OPCODES: Final = Chapter(
    f"""
opcode cvt | conversion, copies_value, passes_operand | conversion | lane_data | sm_10 1.0
needs pack | sm_72 6.5
needs pack u2/s2/u4/s4 | sm_75 6.5
needs bf16.f32/bf16x2/tf32/f16x2/relu !rs | sm_80 7.0
needs f32.bf16 | sm_80 7.1
needs f32.bf16 ftz | sm_90 7.8
needs bf16 !bf16.f32 !f32.bf16 | sm_90 7.8
needs f16.f32 satfinite | sm_70 8.1
needs bf16.f32/bf16x2.f32/f16x2.f32/tf32.f32 satfinite | sm_80 8.1
needs tf32 rn/rz | sm_90 7.8
needs tf32 rn/rz satfinite | sm_100 8.6
needs e4m3x2/e5m2x2 | sm_89 8.1, sm_90 7.8
needs e4m3x2.bf16x2/e5m2x2.bf16x2 | {RECENT} 9.1
needs bf16x2.e4m3x2/bf16x2.e5m2x2 | {RECENT} 9.2
needs e2m1x2/e2m3x2/e3m2x2/ue8m0x2 | {RECENT} 8.6
needs e2m1x2/e2m3x2/e3m2x2 satfinite f16x2/bf16x2 | {RECENT} 9.1
needs bf16x2.e2m1x2/bf16x2.e2m3x2/bf16x2.e3m2x2 | {RECENT} 9.2
needs rz e2m1x2/e2m3x2/e3m2x2/e4m3x2/e5m2x2 | sm_107f 9.4
needs rs | sm_100a sm_103a sm_107a 8.7
needs s2f6x2 | sm_100a sm_103a sm_107a sm_110a sm_120a sm_121a 9.1
forms scalars
cvt | [{_ROUND_TO_INTEGER}] [ftz] [sat] | f32.f32 | D A2
cvt | [{_ROUND_TO_INTEGER}] [sat] | f64.f64 f16.f16 | D A2
cvt | [{_ROUND_TO_INTEGER}] | bf16.bf16 | d a2
cvt | {_ROUND} [ftz] [sat] | f32.f64 f16.f32 | D A2
cvt | {_ROUND} [sat] | f16.f64 | D A2
cvt | {_ROUND} | bf16.f64 | d a2
cvt | [ftz] [sat] | f64.f32 f32.f16 | D A2
cvt | [{_ROUND}] [ftz] | f32.bf16 | d a2
cvt | [sat] | f64.f16 | D A2
cvt | [{_ROUND}] | f64.bf16 | d a2
cvt | [{_ROUND}] | f16.bf16 bf16.f16 | d a2
cvt | rn/rz [relu] [satfinite] | f16.f32 | D A2
cvt | rn/rz [relu] [satfinite] | bf16.f32 | d a2
cvt | {_ROUND} [ftz] | bf16.f32 | d a2
cvt | rn/rz [relu] [satfinite] | f16x2.f32 | D A2 A2
cvt | rn/rz [relu] [satfinite] | bf16x2.f32 | d a2 a2
cvt | rs [relu] [satfinite] | f16x2.f32 | D A2 A2 r:bf16x2
cvt | rs [relu] [satfinite] | bf16x2.f32 | d a2 a2 r:bf16x2
cvt | rna [satfinite] | tf32.f32 | d a2
cvt | rn/rz [relu] [satfinite] | tf32.f32 | d a2
cvt | rn satfinite [relu] | e4m3x2.f32 e5m2x2.f32 | d a2 a2
cvt | rn satfinite [relu] | e4m3x2.f16x2 e5m2x2.f16x2 | d a2
cvt | rn [relu] | f16x2.e4m3x2 f16x2.e5m2x2 | d a2
cvt | rs satfinite [relu] | e4m3x4.f32 e5m2x4.f32 | d {{4d:f32}} r:bf16x2
cvt | rn satfinite [relu] | e2m1x2.f32 e2m3x2.f32 e3m2x2.f32 | d a2 a2
cvt | rn satfinite [relu] | e2m1x2.f16x2 e2m3x2.f16x2 e3m2x2.f16x2 | d a2
cvt | rn satfinite [relu] | e2m1x2.bf16x2 | d r:b32
cvt | rn satfinite [relu] | e2m3x2.bf16x2 e3m2x2.bf16x2 e4m3x2.bf16x2 e5m2x2.bf16x2 | d a2
cvt | rn [relu] | bf16x2.e4m3x2 bf16x2.e5m2x2 bf16x2.e2m1x2 bf16x2.e2m3x2 bf16x2.e3m2x2 | d a2
cvt | rn [relu] | f16x2.e2m1x2 f16x2.e2m3x2 f16x2.e3m2x2 | d a2
cvt | rs satfinite [relu] | e2m1x4.f32 e2m3x4.f32 e3m2x4.f32 | d {{4d:f32}} r:bf16x2
cvt | rz/rp [satfinite] | ue8m0x2.f32 | d a2 a2
cvt | rz/rp [satfinite] | ue8m0x2.bf16x2 | d a2
cvt | rn | bf16x2.ue8m0x2 | d a2
cvt.pack | sat | u16.s32 s16.s32 | D:s32 A:s32 A:s32
cvt.pack | sat | u8.s32.b32 s8.s32.b32 u4.s32.b32 s4.s32.b32 u2.s32.b32 s2.s32.b32 | D:s32 A:s32 A:s32 A:b32
""",
    {"scalars": _scalars},
)
