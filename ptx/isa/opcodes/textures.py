"""Rows of textures, surfaces and tensor maps. PTX ISA, chapters of these names.

`...` are any operands: those of these instructions are
checked where a kernel is taken from its module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptx.isa.opcodes.opcode_row import RECENT, Chapter

_GEOMETRY: Final = "1d/2d/3d/a1d/a2d/cube/acube"
_OF_SURFACES: Final = "1d/2d/3d/a1d/a2d"
_OF_IMAGES: Final = "width/height/depth/channel_data_type/channel_order/array_size"
_WORDS: Final = "u32.s32 u32.f32 s32.s32 s32.f32 f32.s32 f32.f32"
# The fields of a tensor map, their types, and the operands after the address.
_FIELDS: Final = (
    ("global_address", "b64", "a2"), ("rank", "b32", "a2"),
    ("box_dim/global_dim/element_stride", "b32", "=0..4 n"), ("global_stride", "b64", "=0..4 a2"),
    ("elemtype", "b32", "=0..15"), ("interleave_layout", "b32", "=0..2"),
    ("swizzle_mode", "b32", "=0..4"), ("swizzle_atomicity", "b32", "=0..3"),
    ("fill_mode", "b32", "=0..1"),
)  # fmt: skip
_PLACES: Final = (("", "policy"), ("global", "globalword"), ("shared::cta", "sharedword"))


def _tensor_map_fields() -> Iterator[str]:
    """Yield the forms of `tensormap.replace`, whose address has 32 or 64 bits."""
    for space, place in _PLACES:
        for names, kind, operands in _FIELDS:
            yield f"tensormap.replace | tile {names} {space} | b1024.{kind} | m:{place} {operands}"


OPCODES: Final = Chapter(
    f"""
opcode tex | texture, gives_number | texture | - | sm_10 1.0
needs f16x2 | sm_53 4.2
tex | {_GEOMETRY} v4 | {_WORDS} | ...
tex | {_GEOMETRY} v2 | f16x2.s32 f16x2.f32 | ...
tex | 2dms/a2dms v4 | u32.s32 s32.s32 f32.s32 | ...
tex | 2dms/a2dms v2 | f16x2.s32 | ...
tex.base | {_GEOMETRY} v4 | {_WORDS} | ...
tex.base | {_GEOMETRY} v2 | f16x2.s32 f16x2.f32 | ...
tex.level tex.grad | {_GEOMETRY} v4 | u32.f32 s32.f32 f32.f32 | ...
tex.level tex.grad | {_GEOMETRY} v2 | f16x2.f32 | ...
tex.level tex.grad | {_OF_SURFACES} v4 | u32.s32 s32.s32 f32.s32 | ...
tex.level tex.grad | {_OF_SURFACES} v2 | f16x2.s32 | ...

opcode tld4 | texture, gives_number | texture | - | sm_20 3.0
needs f16x2 | sm_53 4.2
tld4 | r/g/b/a 2d/a2d/cube/acube v4 | u32.f32 s32.f32 f32.f32 | ...

opcode txq | texture, gives_number | texture | - | sm_20 2.0
txq | {_OF_IMAGES}/normalized_coords/num_mipmap_levels/num_samples | b32 | N ...
txq | filter_mode/addr_mode_0/addr_mode_1/addr_mode_2/force_unnormalized_coords | b32 | N ...
txq.level | width/height/depth | b32 | N ...

opcode suq | surface | texture | - | sm_20 2.0
suq | {_OF_IMAGES}/memory_layout | b32 | N ...

opcode suld | surface, gives_number | surface | - | sm_20 2.0
suld.b | {_OF_SURFACES} [ca/cg/cs/cv] [v2/v4] trap/clamp/zero | b8 b16 b32 b64 | ...

opcode sust | surface | surface | - | sm_20 2.0
sust.b | {_OF_SURFACES} [wb/cg/cs/wt] [v2/v4] trap/clamp/zero | b8 b16 b32 b64 | ...
sust.p | {_OF_SURFACES} [v2/v4] trap/clamp/zero | b32 | ...

opcode sured | surface | surface | - | sm_20 2.0
sured.b | add {_OF_SURFACES} trap/clamp/zero | u32 s32 u64 | ...
sured.b | min/max {_OF_SURFACES} trap/clamp/zero | u32 s32 u64 s64 | ...
sured.b | and/or {_OF_SURFACES} trap/clamp/zero | b32 | ...
sured.p | add/min/max/and/or {_OF_SURFACES} trap/clamp/zero | b32 b64 | ...

opcode tensormap | tensor map | tensor_copy | - | -
needs replace !swizzle_atomicity | sm_90a 8.3, {RECENT} 8.6
needs replace swizzle_atomicity | {RECENT} 8.6
needs cp_fenceproxy | sm_90 8.3
needs elemtype 2:=13..15 | {RECENT} 8.7
needs swizzle_mode 2:=4 | sm_103a 8.8, sm_107a 9.4
forms tensor_map_fields
tensormap.cp_fenceproxy | tensormap::generic release cta/cluster/gpu/sys sync aligned | global.shared::cta | m:global m:shared =128
""",
    {"tensor_map_fields": _tensor_map_fields},
)
