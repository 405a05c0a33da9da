"""Rows of moves, conversions of addresses, and accesses to memory, with multimem.

PTX ISA, "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptx.isa.opcodes.opcode_row import Chapter

_ACCESSED: Final = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
_SPACES: Final = "global/shared/shared::cta/shared::cluster/local"
_SHARED: Final = "shared/shared::cta/shared::cluster"
_L1: Final = "L1::evict_normal/L1::evict_unchanged/L1::evict_first/L1::evict_last/L1::no_allocate"
_IN_LOAD: Final = f"ca/cg/cs/lu/cv/{_L1}"  # a cache operation or an eviction priority
_IN_STORE: Final = f"wb/cg/cs/wt/{_L1}"
_UNCHANGING: Final = f"ca/cg/cs/{_L1}"
_L2: Final = "L2::evict_normal/L2::evict_first/L2::evict_last"
_PREFETCH: Final = "L2::64B/L2::128B/L2::256B"
_VECTOR: Final = "[v2/v4/v8]"
_SCOPE: Final = "cta/cluster/gpu/sys"
_COMPLETE: Final = "mbarrier::complete_tx::bytes"

_GLOBAL: Final = "[global]"
_STRONG: Final = "[global/shared/shared::cta/shared::cluster]"
_ORDER: Final = "[relaxed/acquire/release/acq_rel]"
_ANYWHERE: Final = f"[global/{_SHARED}]"
_MINI: Final = (
    # Widths, types, and the registers of an element.
    ("[v2/v4]", "e4m3x4 e5m2x4", "b32"),
    ("v2/v4/v8", "e4m3x2 e5m2x2", "b16"),
    ("v4/v8", "e4m3 e5m2", "b8"),
)


def _multimem() -> Iterator[str]:
    """`multimem.ld_reduce`, `.st` and `.red` of one value, or of a vector of floats."""
    plain = (
        ("min/max", "u32 s32 u64 s64"),
        ("add", "u32 s32 u64"),
        ("and/or/xor", "b32 b64"),
    )
    # A float alone may stand in braces, but for `.red`.
    for order in ("[weak]", f"relaxed/acquire {_SCOPE}"):
        for operation, types in plain:
            yield f"multimem.ld_reduce | {order} [global] {operation} | {types} | d M:multimem"
        yield f"multimem.ld_reduce | {order} [global] add [v2/v4] | f32 | *d M:multimem"
        yield f"multimem.ld_reduce | {order} [global] add | f64 | *d M:multimem"
        for width, types in (("v2/v4/v8", "f16 bf16"), ("[v2/v4]", "f16x2 bf16x2")):
            for operation in ("add [acc::f32]", "min/max"):
                yield f"multimem.ld_reduce | {order} [global] {operation} {width} | {types} | *d M:multimem"
        for width, types, held in _MINI:
            for operation in ("add [acc::f16]", "min/max"):
                yield f"multimem.ld_reduce | {order} [global] {operation} {width} | {types} | *d:{held} M:multimem"
    for order in ("[weak]", f"relaxed/release {_SCOPE}"):
        yield f"multimem.st | {order} [global] | b32 b64 u32 u64 s32 s64 | M:multimem a"
        yield f"multimem.st | {order} [global] | f64 | M:multimem *a"
        yield f"multimem.st | {order} [global] [v2/v4] | f32 f16x2 bf16x2 | M:multimem *a"
        yield f"multimem.st | {order} [global] v2/v4/v8 | f16 bf16 | M:multimem *a"
        for width, types, held in _MINI:
            yield f"multimem.st | {order} [global] {width} | {types} | M:multimem *r:{held}"
    for order in ("", f"relaxed/release {_SCOPE}"):
        for operation, types in plain:
            yield f"multimem.red | {order} [global] {operation} | {types} | M:multimem a"
        yield f"multimem.red | {order} [global] add v2/v4 | f32 | M:multimem *a"
        yield f"multimem.red | {order} [global] add | f32 f64 f16x2 bf16x2 | M:multimem a"
        for width, types in (("v2/v4/v8", "f16 bf16"), ("v2/v4", "f16x2 bf16x2")):
            yield f"multimem.red | {order} [global] add/min/max {width} | {types} | M:multimem *a"


_NEEDS_OF_ACCESSES: Final = """\
needs cluster/shared::cluster | sm_90 7.8
needs shared::cta | sm_30 7.8
needs mmio | sm_70 8.2
needs local volatile | sm_30 9.1
needs param::entry/param::func | sm_10 8.3
needs L1::* | sm_70 7.4
needs L2::64B/L2::128B | sm_75 7.4
needs L2::256B/L2::cache_hint | sm_80 7.4
needs b128 | sm_70 8.3
needs b128 sys | sm_70 8.4
needs v8 b32/u32/s32/f32 | sm_100 8.8
needs v4 b64/u64/s64/f64 | sm_100 8.8"""

OPCODES: Final = Chapter(
    f"""
opcode st | store, copies_value | async:bulk_copy bulk:bulk_copy data_movement | lane_data | sm_10 1.0
needs relaxed/acquire/release | sm_70 6.0
needs weak | sm_70 6.0
{_NEEDS_OF_ACCESSES}
needs async | sm_90 8.1
needs async mmio | sm_100 8.7
needs bulk | sm_100 8.6
needs bulk 2:N | sm_100 9.0
st.async | [weak] [shared::cluster] {_COMPLETE} [v2/v4] | b32 u32 s32 f32 | m:sharedword *a m:shared
st.async | [weak] [shared::cluster] {_COMPLETE} [v2] | b64 u64 s64 f64 | m:sharedword *a m:shared
st.bulk | [weak] [shared::cta] | - | M N/H/=0..16777216%8 =0
st | [weak] [{_SPACES}] [wb/cg/cs/wt] {_VECTOR} | {_ACCESSED} | m *A
st | [weak] {_GLOBAL} [{_L1}] {_VECTOR} | {_ACCESSED} | m *A
st | [weak] {_GLOBAL} [{_IN_STORE}] {_L2} v4 | b64 u64 s64 f64 | m *A
st | [weak] {_GLOBAL} [{_IN_STORE}] {_L2} L2::cache_hint v4 | b64 u64 s64 f64 | m *A h
st | [weak] {_GLOBAL} [{_IN_STORE}] {_L2} v8 | b32 u32 s32 f32 | m *A
st | [weak] {_GLOBAL} [{_IN_STORE}] {_L2} L2::cache_hint v8 | b32 u32 s32 f32 | m *A h
st | [weak] {_GLOBAL} [{_IN_STORE}] L2::cache_hint {_VECTOR} | {_ACCESSED} | m *A h
st | volatile [{_SPACES}] {_VECTOR} | {_ACCESSED} | m *A
st | volatile {_GLOBAL} {_L2} v4 | b64 u64 s64 f64 | m *A
st | volatile {_GLOBAL} {_L2} v8 | b32 u32 s32 f32 | m *A
st | relaxed/release {_SCOPE} {_STRONG} {_VECTOR} | {_ACCESSED} | m *A
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_VECTOR} | {_ACCESSED} | m *A
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_L2} v4 | b64 u64 s64 f64 | m *A
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_L2} L2::cache_hint v4 | b64 u64 s64 f64 | m *A h
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_L2} v8 | b32 u32 s32 f32 | m *A
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_L2} L2::cache_hint v8 | b32 u32 s32 f32 | m *A h
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] L2::cache_hint {_VECTOR} | {_ACCESSED} | m *A h
st | mmio relaxed sys {_GLOBAL} | {_ACCESSED} | m *A
st | [weak] param [wb/cg/cs/wt] {_VECTOR} | {_ACCESSED} | m:argument *A
st | [weak] param::func [wb/cg/cs/wt] {_VECTOR} | {_ACCESSED} | m *A

opcode red | reduction | atomic async:bulk_copy | - | sm_11 1.0
needs cta/gpu/sys/f64 | sm_60 5.0
needs relaxed/acquire/release/acq_rel | sm_70 6.0
needs and/or/xor/min/max b64/u64/s64 | sm_32 3.1
needs f16x2 | sm_60 6.2
needs f16/b16 | sm_70 6.3
needs bf16/bf16x2/cluster/shared::cluster | sm_90 7.8
needs shared::cta | sm_30 7.8
needs L2::cache_hint | sm_80 7.4
needs v2/v4/v8 | sm_90 8.1
needs async | sm_90 8.1
red.async | relaxed cluster {_COMPLETE} [shared::cluster] inc/dec | u32 | m:sharedword a m:shared
red.async | relaxed cluster {_COMPLETE} [shared::cluster] min/max | u32 s32 | m:sharedword a m:shared
red.async | relaxed cluster {_COMPLETE} [shared::cluster] add | u32 s32 u64 | m:sharedword a m:shared
red.async | relaxed cluster {_COMPLETE} [shared::cluster] and/or/xor | b32 | m:sharedword a m:shared
red | and/or/xor [relaxed/release] [{_SCOPE}] {_ANYWHERE} | b32 b64 | m a
red | and/or/xor [relaxed/release] [{_SCOPE}] {_GLOBAL} L2::cache_hint | b32 b64 | m a h
red | inc/dec [relaxed/release] [{_SCOPE}] {_ANYWHERE} | u32 | m a
red | inc/dec [relaxed/release] [{_SCOPE}] {_GLOBAL} L2::cache_hint | u32 | m a h
red | add [relaxed/release] [{_SCOPE}] {_ANYWHERE} | u32 s32 u64 f32 f64 | m a
red | add [relaxed/release] [{_SCOPE}] {_GLOBAL} L2::cache_hint | u32 s32 u64 f32 f64 | m a h
red | min/max [relaxed/release] [{_SCOPE}] {_ANYWHERE} | u32 s32 u64 s64 | m a
red | min/max [relaxed/release] [{_SCOPE}] {_GLOBAL} L2::cache_hint | u32 s32 u64 s64 | m a h
red | add noftz [relaxed/release] [{_SCOPE}] {_ANYWHERE} | f16 f16x2 bf16 bf16x2 | m a
red | add noftz [relaxed/release] [{_SCOPE}] {_GLOBAL} L2::cache_hint | f16 f16x2 bf16 bf16x2 | m a h
red | add [relaxed/release] [{_SCOPE}] {_GLOBAL} v2/v4 | f32 | m {{va}}
red | add [relaxed/release] [{_SCOPE}] {_GLOBAL} L2::cache_hint v2/v4 | f32 | m {{va}} h
red | add/min/max noftz [relaxed/release] [{_SCOPE}] {_GLOBAL} v2/v4/v8 | f16 bf16 | m {{va}}
red | add/min/max noftz [relaxed/release] [{_SCOPE}] {_GLOBAL} L2::cache_hint v2/v4/v8 | f16 bf16 | m {{va}} h
red | add/min/max noftz [relaxed/release] [{_SCOPE}] {_GLOBAL} v2/v4 | f16x2 bf16x2 | m {{va}}
red | add/min/max noftz [relaxed/release] [{_SCOPE}] {_GLOBAL} L2::cache_hint v2/v4 | f16x2 bf16x2 | m {{va}} h

opcode mov | move, copies_value, passes_operand | data_movement | lane_data | sm_10 1.0
needs b128 | sm_70 8.3
mov | | u16 s16 b16 u32 s32 b32 u64 s64 b64 f32 f64 b128 pred | d a
mov | | u32 s32 b32 u64 s64 b64 u16 s16 b16 | d s ; d y
mov | | pred | d X
mov | | b16 b32 b64 | d {{1a}} ; {{1d}} a ; {{1d}} y ; {{1d}} s
mov | | b128 | d {{1a}} ; {{1d}} a
mov | | b16 | d {{2a:b8}} ; {{2d:b8_}} a ; {{2d:b8_}} y
mov | | b32 | d {{2a:b16}} ; {{2d:b16_}} a ; {{2d:b16_}} y ; d {{4a:b8}} ; {{4d:b8_}} a ; {{4d:b8_}} y
mov | | b64 | d {{2a:b32}} ; {{2d:b32_}} a ; {{2d:b32_}} y ; d {{4a:b16}} ; {{4d:b16_}} a ; {{4d:b16_}} y
mov | | b128 | d {{2a:b64}} ; {{2d:b64_}} a ; d {{4a:b32}} ; {{4d:b32_}} a
mov | v2/v4 | u16 s16 b16 u32 s32 b32 u64 s64 b64 f32 f64 | {{vd_}} {{va}} ; {{vd_}} a
mov | v4 | u32 s32 b32 u16 s16 b16 | {{vd_}} x

opcode cvta | move, passes_operand | data_movement | lane_data | sm_20 2.0
needs param/param::entry | sm_70 7.7
needs param::entry | sm_70 8.3
needs shared::cta | sm_30 7.8
needs shared::cluster | sm_90 7.8
cvta | global/shared/shared::cta/shared::cluster/local/const/param/param::entry | u32 u64 | d a
cvta | global/shared/shared::cta/shared::cluster/local/const/param/param::entry | u32 u64 | d Y
cvta.to | global/shared/shared::cta/shared::cluster/local/const/param/param::entry | u32 u64 | d a

opcode isspacep | move, gives_number | data_movement | - | sm_20 2.0
needs param/param::entry | sm_70 7.7
needs param::entry | sm_70 8.3
needs shared::cluster | sm_90 7.8
needs shared::cta | sm_30 7.8
isspacep | global/shared/shared::cta/shared::cluster/local/const/param/param::entry | - | q a:u64 ; q n

opcode mapa | move | barrier | - | sm_90 7.8
mapa | [shared::cluster] | u32 s32 u64 s64 | d a n ; d y:shared n

opcode getctarank | move | barrier | - | sm_90 7.8
getctarank | [shared::cluster] | u32 s32 u64 s64 | N a ; N y:shared

opcode istypep | move | texture | - | sm_30 4.0
istypep | | texref samplerref surfref | q h

opcode ld | load, gives_number | data_movement | lane_data | sm_10 1.0
needs relaxed/acquire/release | sm_70 6.0
needs weak | sm_70 6.0
needs nc | sm_32 3.1
{_NEEDS_OF_ACCESSES}
ld | [weak] [{_SPACES}] [ca/cg/cs/lu/cv] {_VECTOR} | {_ACCESSED} | *D_ m
ld | [weak] {_GLOBAL} [{_IN_LOAD}] [{_PREFETCH}] {_VECTOR} | {_ACCESSED} | *D_ m
ld | [weak] {_GLOBAL} [{_IN_LOAD}] {_L2} [{_PREFETCH}] v4 | b64 u64 s64 f64 | *D_ m
ld | [weak] {_GLOBAL} [{_IN_LOAD}] {_L2} L2::cache_hint [{_PREFETCH}] v4 | b64 u64 s64 f64 | *D_ m h
ld | [weak] {_GLOBAL} [{_IN_LOAD}] {_L2} [{_PREFETCH}] v8 | b32 u32 s32 f32 | *D_ m
ld | [weak] {_GLOBAL} [{_IN_LOAD}] {_L2} L2::cache_hint [{_PREFETCH}] v8 | b32 u32 s32 f32 | *D_ m h
ld | [weak] {_GLOBAL} [{_IN_LOAD}] [{_PREFETCH}] L2::cache_hint {_VECTOR} | {_ACCESSED} | *D_ m h
ld | volatile [{_SPACES}] {_VECTOR} | {_ACCESSED} | *D_ m
ld | volatile {_GLOBAL} {_PREFETCH} {_VECTOR} | {_ACCESSED} | *D_ m
ld | volatile {_GLOBAL} {_L2} [{_PREFETCH}] v4 | b64 u64 s64 f64 | *D_ m
ld | volatile {_GLOBAL} {_L2} [{_PREFETCH}] v8 | b32 u32 s32 f32 | *D_ m
ld | relaxed/acquire {_SCOPE} {_STRONG} {_VECTOR} | {_ACCESSED} | *D_ m
ld | relaxed/acquire {_SCOPE} {_GLOBAL} [{_L1}] [{_PREFETCH}] {_VECTOR} | {_ACCESSED} | *D_ m
ld | relaxed/acquire {_SCOPE} {_GLOBAL} [{_L1}] {_L2} [{_PREFETCH}] v4 | b64 u64 s64 f64 | *D_ m
ld | relaxed/acquire {_SCOPE} {_GLOBAL} [{_L1}] {_L2} L2::cache_hint [{_PREFETCH}] v4 | b64 u64 s64 f64 | *D_ m h
ld | relaxed/acquire {_SCOPE} {_GLOBAL} [{_L1}] {_L2} [{_PREFETCH}] v8 | b32 u32 s32 f32 | *D_ m
ld | relaxed/acquire {_SCOPE} {_GLOBAL} [{_L1}] {_L2} L2::cache_hint [{_PREFETCH}] v8 | b32 u32 s32 f32 | *D_ m h
ld | relaxed/acquire {_SCOPE} {_GLOBAL} [{_L1}] [{_PREFETCH}] L2::cache_hint {_VECTOR} | {_ACCESSED} | *D_ m h
ld | mmio relaxed sys {_GLOBAL} | {_ACCESSED} | *D_ m
ld | global nc [{_UNCHANGING}] [{_PREFETCH}] {_VECTOR} | {_ACCESSED} | *D_ m
ld | global nc [{_UNCHANGING}] {_L2} [{_PREFETCH}] v4 | b64 u64 s64 f64 | *D_ m
ld | global nc [{_UNCHANGING}] {_L2} L2::cache_hint [{_PREFETCH}] v4 | b64 u64 s64 f64 | *D_ m h
ld | global nc [{_UNCHANGING}] {_L2} [{_PREFETCH}] v8 | b32 u32 s32 f32 | *D_ m
ld | global nc [{_UNCHANGING}] {_L2} L2::cache_hint [{_PREFETCH}] v8 | b32 u32 s32 f32 | *D_ m h
ld | global nc [{_UNCHANGING}] [{_PREFETCH}] L2::cache_hint {_VECTOR} | {_ACCESSED} | *D_ m h
ld | [weak] const/param/param::entry/param::func [ca/cg/cs/lu/cv] {_VECTOR} | {_ACCESSED} | *D_ m

opcode ldu | load, gives_number | data_movement | lane_data | sm_20 2.0
ldu | {_GLOBAL} [v2/v4] | {_ACCESSED} | *D_ m

opcode prefetch | prefetch | data_movement tensormap:tensor_copy | - | sm_20 2.0
needs L2::* | sm_80 7.4
needs tensormap | sm_90 8.0
prefetch | [global/local] L1/L2 | - | m
prefetch | {_GLOBAL} L2::evict_last/L2::evict_normal | - | m
prefetch | [param/const] tensormap | - | ...

opcode prefetchu | prefetch | data_movement | - | sm_20 2.0
prefetchu | L1 | - | m:none

opcode applypriority | prefetch | data_movement | - | sm_80 7.4
applypriority | {_GLOBAL} L2::evict_normal | - | m =128

opcode discard | prefetch | data_movement | - | sm_80 7.4
discard | {_GLOBAL} L2 | - | m =128

opcode atom | atomic, gives_number | atomic | - | sm_11 1.0
needs cta/gpu/sys/f64 | sm_60 5.0
needs relaxed/acquire/release/acq_rel | sm_70 6.0
needs and/or/xor/min/max b64/u64/s64 | sm_32 3.1
needs f16x2 | sm_60 6.2
needs f16/b16 | sm_70 6.3
needs bf16/bf16x2/cluster/shared::cluster | sm_90 7.8
needs shared::cta | sm_30 7.8
needs L2::cache_hint | sm_80 7.4
needs v2/v4/v8 | sm_90 8.1
needs b128 | sm_90 8.3
needs b128 sys | sm_90 8.4
atom | and/or/xor/exch {_ORDER} [{_SCOPE}] {_ANYWHERE} | b32 b64 | d_ m a
atom | and/or/xor/exch {_ORDER} [{_SCOPE}] {_GLOBAL} L2::cache_hint | b32 b64 | d_ m a h
atom | cas {_ORDER} [{_SCOPE}] {_ANYWHERE} | b16 b32 b64 b128 | d_ m a a
atom | exch {_ORDER} [{_SCOPE}] {_ANYWHERE} | b128 | d_ m a
atom | exch {_ORDER} [{_SCOPE}] {_GLOBAL} L2::cache_hint | b128 | d_ m a h
atom | inc/dec {_ORDER} [{_SCOPE}] {_ANYWHERE} | u32 | d_ m a
atom | inc/dec {_ORDER} [{_SCOPE}] {_GLOBAL} L2::cache_hint | u32 | d_ m a h
atom | add {_ORDER} [{_SCOPE}] {_ANYWHERE} | u32 s32 u64 f32 f64 | d_ m a
atom | add {_ORDER} [{_SCOPE}] {_GLOBAL} L2::cache_hint | u32 s32 u64 f32 f64 | d_ m a h
atom | min/max {_ORDER} [{_SCOPE}] {_ANYWHERE} | u32 s32 u64 s64 | d_ m a
atom | min/max {_ORDER} [{_SCOPE}] {_GLOBAL} L2::cache_hint | u32 s32 u64 s64 | d_ m a h
atom | add noftz {_ORDER} [{_SCOPE}] {_ANYWHERE} | f16 f16x2 bf16 bf16x2 | d_ m a
atom | add noftz {_ORDER} [{_SCOPE}] {_GLOBAL} L2::cache_hint | f16 f16x2 bf16 bf16x2 | d_ m a h
atom | add {_ORDER} [{_SCOPE}] {_GLOBAL} v2/v4 | f32 | {{vd_}} m {{va}}
atom | add {_ORDER} [{_SCOPE}] {_GLOBAL} L2::cache_hint v2/v4 | f32 | {{vd_}} m {{va}} h
atom | add/min/max noftz {_ORDER} [{_SCOPE}] {_GLOBAL} v2/v4/v8 | f16 bf16 | {{vd_}} m {{va}}
atom | add/min/max noftz {_ORDER} [{_SCOPE}] {_GLOBAL} L2::cache_hint v2/v4/v8 | f16 bf16 | {{vd_}} m {{va}} h
atom | add/min/max noftz {_ORDER} [{_SCOPE}] {_GLOBAL} v2/v4 | f16x2 bf16x2 | {{vd_}} m {{va}}
atom | add/min/max noftz {_ORDER} [{_SCOPE}] {_GLOBAL} L2::cache_hint v2/v4 | f16x2 bf16x2 | {{vd_}} m {{va}} h

opcode multimem | reduction, ld_reduce=load, st=store, gives_number, has_two_words | multimem | - | sm_90 8.1
needs acc::f32 | sm_90 8.2
needs acc::f16/e4m3*/e5m2* | sm_100a 8.6, sm_120a 8.7, sm_121a sm_100f sm_110f 8.8
forms multimem
""",
    {"multimem": _multimem},
)
