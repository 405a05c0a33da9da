"""Forms of textures, surfaces, tensor maps and video. PTX ISA, chapters of these names.

`ptx.isa.forms.grammar` has the notation. `...` are any operands: those of these instructions are
checked where a kernel is taken from its module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_COMPLETE: Final = "mbarrier::complete_tx::bytes"
_HINT: Final = "L2::cache_hint"
_GEOMETRY: Final = "1d/2d/3d/a1d/a2d/cube/acube"
_OF_SURFACES: Final = "1d/2d/3d/a1d/a2d"
_OF_IMAGES: Final = "width/height/depth/channel_data_type/channel_order/array_size"
_WORDS: Final = "u32.s32 u32.f32 s32.s32 s32.f32 f32.s32 f32.f32"

TEXTURES: Final = f"""
tex | {_GEOMETRY} v4 | {_WORDS} | ...
tex | {_GEOMETRY} v2 | f16x2.s32 f16x2.f32 | ...
tex | 2dms/a2dms v4 | u32.s32 s32.s32 f32.s32 | ...
tex | 2dms/a2dms v2 | f16x2.s32 | ...
tex.base | {_GEOMETRY} v4 | {_WORDS} | ...
tex.base | {_GEOMETRY} v2 | f16x2.s32 f16x2.f32 | ...
tex.level tex.grad | {_GEOMETRY} v4 | u32.f32 s32.f32 f32.f32 | ...
tex.level tex.grad | {_GEOMETRY} v2 | f16x2.f32 | ...
tld4 | r/g/b/a 2d/a2d/cube/acube v4 | u32.f32 s32.f32 f32.f32 | ...
txq | {_OF_IMAGES}/normalized_coords/num_mipmap_levels/num_samples | b32 | N ...
txq | filter_mode/addr_mode_0/addr_mode_1/addr_mode_2/force_unnormalized_coords | b32 | N ...
txq.level | width/height/depth | b32 | N ...
suq | {_OF_IMAGES}/memory_layout | b32 | N ...
suld.b | {_OF_SURFACES} [ca/cg/cs/cv] [v2/v4] trap/clamp/zero | b8 b16 b32 b64 | ...
sust.b | {_OF_SURFACES} [wb/cg/cs/wt] [v2/v4] trap/clamp/zero | b8 b16 b32 b64 | ...
sust.p | {_OF_SURFACES} [v2/v4] trap/clamp/zero | b32 | ...
sured.b | add {_OF_SURFACES} trap/clamp/zero | u32 s32 u64 | ...
sured.b | min/max {_OF_SURFACES} trap/clamp/zero | u32 s32 u64 s64 | ...
sured.b | and/or {_OF_SURFACES} trap/clamp/zero | b32 | ...
sured.p | add/min/max/and/or {_OF_SURFACES} trap/clamp/zero | b32 b64 | ...
"""

_DIMENSIONS: Final = "1d/2d/3d/4d/5d"
_MODES: Final = "tile/tile::gather4/im2col/im2col::w/im2col::w::128"
_GROUP: Final = "cta_group::1/cta_group::2"
TENSOR_MAPS: Final = f"""
cp.async.bulk.tensor | {_DIMENSIONS} [{_MODES}] {_COMPLETE} [multicast::cluster] [{_GROUP}] [{_HINT}] | shared::cluster.global | ...
cp.async.bulk.tensor | {_DIMENSIONS} [{_MODES}] {_COMPLETE} [{_GROUP}] [{_HINT}] | shared::cta.global | ...
cp.async.bulk.tensor | {_DIMENSIONS} [tile/tile::scatter4/im2col_no_offs] bulk_group [{_HINT}] | global.shared::cta | ...
cp.reduce.async.bulk.tensor | {_DIMENSIONS} add/min/max/inc/dec/and/or/xor [tile/im2col_no_offs] bulk_group [{_HINT}] | global.shared::cta | ...
cp.async.bulk.prefetch.tensor | {_DIMENSIONS} L2 [{_MODES}] [{_HINT}] | global | ...
prefetch | [param/const] tensormap | - | ...
tensormap.replace | tile global_address [global/shared::cta] | b1024.b64 | m h
tensormap.replace | tile rank [global/shared::cta] | b1024.b32 | m n
tensormap.replace | tile box_dim/global_dim/element_stride [global/shared::cta] | b1024.b32 | m =0..4 n
tensormap.replace | tile global_stride [global/shared::cta] | b1024.b64 | m =0..4 h
tensormap.replace | tile elemtype [global/shared::cta] | b1024.b32 | m =0..15
tensormap.replace | tile interleave_layout [global/shared::cta] | b1024.b32 | m =0..2
tensormap.replace | tile swizzle_mode/swizzle_atomicity [global/shared::cta] | b1024.b32 | m =0..4
tensormap.replace | tile fill_mode [global/shared::cta] | b1024.b32 | m =0..1
tensormap.cp_fenceproxy | tensormap::generic release cta/cluster/gpu/sys sync aligned | global.shared::cta | m:global m:shared =128
"""

_VIDEO_TYPES: Final = [
    f"{d}.{a}.{b}" for d in ("u32", "s32") for a in ("u32", "s32") for b in ("u32", "s32")
]
_THREE: Final = " ".join(_VIDEO_TYPES)
_SHIFTS: Final = " ".join(each for each in _VIDEO_TYPES if each.endswith(".u32"))
_TWO: Final = "u32.u32 u32.s32 s32.u32 s32.s32"
_SECOND: Final = "add/min/max"
_COMPARE: Final = "eq/ne/lt/le/gt/ge"
_PAIRS: Final = "vadd2 vsub2 vabsdiff2 vmin2 vmax2 vavrg2"
_QUADS: Final = "vadd4 vsub4 vabsdiff4 vmin4 vmax4 vavrg4"
VIDEO: Final = f"""
vadd vsub vabsdiff vmin vmax | [sat] | {_THREE} | d e2 e3 ; E e2 e3 a
vadd vsub vabsdiff vmin vmax | [sat] {_SECOND} | {_THREE} | d e2 e3 a
vshl vshr | [sat] clamp/wrap | {_SHIFTS} | d e2 e3 ; E e2 e3 a
vshl vshr | [sat] clamp/wrap {_SECOND} | {_SHIFTS} | d e2 e3 a
vset | {_COMPARE} | {_TWO} | N e1 e2 ; V e1 e2 n
vset | {_COMPARE} {_SECOND} | {_TWO} | N e1 e2 n
vmad | [sat] [shr7/shr15] | {_THREE} | d g2 g3 G
vmad | [sat] [shr7/shr15] po | {_THREE} | d e2 e3 a
{_PAIRS} | [sat] | {_THREE} | F2 f2 f2 r
{_PAIRS} | add | {_THREE} | F2 f2 f2 r
{_QUADS} | [sat] | {_THREE} | F4 f4 f4 r
{_QUADS} | add | {_THREE} | F4 f4 f4 r
vset2 | {_COMPARE} | {_TWO} | F2 f2 f2 N
vset2 | {_COMPARE} add | {_TWO} | F2 f2 f2 N
vset4 | {_COMPARE} | {_TWO} | F4 f4 f4 N
vset4 | {_COMPARE} add | {_TWO} | F4 f4 f4 N
"""

_SCOPED: Final = "cta/cluster/gpu/sys"
_MINI: Final = (
    ("[v2/v4]", "e4m3x4 e5m2x4"), ("v2/v4/v8", "e4m3x2 e5m2x2"), ("v4/v8", "e4m3 e5m2"),
)  # fmt: skip


def _multimem() -> Iterator[str]:
    """`multimem.ld_reduce`, `.st` and `.red` of one value, or of a vector of floats."""
    plain = (
        ("min/max", "u32 s32 u64 s64"), ("add", "u32 s32 u64 f32 f64"), ("and/or/xor", "b32 b64"),
    )  # fmt: skip
    for order in ("[weak]", f"relaxed/acquire {_SCOPED}"):
        for operation, types in plain:
            yield f"multimem.ld_reduce | {order} [global] {operation} | {types} | *d M:multimem"
        yield f"multimem.ld_reduce | {order} [global] add v2/v4 | f32 | *d M:multimem"
        for width, types in (("v2/v4/v8", "f16 bf16"), ("[v2/v4]", "f16x2 bf16x2")):
            for operation in ("add [acc::f32]", "min/max"):
                yield f"multimem.ld_reduce | {order} [global] {operation} {width} | {types} | *d M:multimem"
        for width, types in _MINI:
            for operation in ("add [acc::f16]", "min/max"):
                yield f"multimem.ld_reduce | {order} [global] {operation} {width} | {types} | *d M:multimem"
    for order in ("[weak]", f"relaxed/release {_SCOPED}"):
        types = "b32 b64 u32 u64 s32 s64 f32 f64 f16x2 bf16x2"
        yield f"multimem.st | {order} [global] | {types} | M:multimem *a"
        yield f"multimem.st | {order} [global] v2/v4 | f32 f16x2 bf16x2 | M:multimem *a"
        yield f"multimem.st | {order} [global] v2/v4/v8 | f16 bf16 | M:multimem *a"
        for width, types in _MINI:
            yield f"multimem.st | {order} [global] {width} | {types} | M:multimem *a"
    for order in ("", f"relaxed/release {_SCOPED}"):
        for operation, types in plain:
            yield f"multimem.red | {order} [global] {operation} | {types} | M:multimem *a"
        yield f"multimem.red | {order} [global] add v2/v4 | f32 | M:multimem *a"
        yield f"multimem.red | {order} [global] add | f16x2 bf16x2 | M:multimem *a"
        for width, types in (("v2/v4/v8", "f16 bf16"), ("v2/v4", "f16x2 bf16x2")):
            yield f"multimem.red | {order} [global] add/min/max {width} | {types} | M:multimem *a"


MULTIMEM: Final = "\n".join(_multimem())
