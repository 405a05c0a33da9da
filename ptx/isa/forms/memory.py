"""Forms of moves, conversions of addresses, accesses to memory, and asynchronous copies.

PTX ISA, "Data Movement and Conversion Instructions". `ptx.isa.forms.grammar` has the notation.
"""

from __future__ import annotations

from typing import Final

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

MOVES: Final = """
mov | | u16 s16 b16 u32 s32 b32 u64 s64 b64 f32 f64 b128 pred | d a
mov | | u32 s32 b32 u64 s64 b64 u16 s16 b16 | d s ; d y
mov | | pred | d X
mov | | b16 b32 b64 | d {1a} ; {1d} a ; {1d} y ; {1d} s
mov | | b128 | d {1a} ; {1d} a
mov | | b16 | d {2a:b8} ; {2d:b8_} a ; {2d:b8_} y
mov | | b32 | d {2a:b16} ; {2d:b16_} a ; {2d:b16_} y ; d {4a:b8} ; {4d:b8_} a ; {4d:b8_} y
mov | | b64 | d {2a:b32} ; {2d:b32_} a ; {2d:b32_} y ; d {4a:b16} ; {4d:b16_} a ; {4d:b16_} y
mov | | b128 | d {2a:b64} ; {2d:b64_} a
mov | v2/v4 | u16 s16 b16 u32 s32 b32 u64 s64 b64 f32 f64 | {vd_} {va} ; {vd_} a
mov | v4 | u32 s32 b32 u16 s16 b16 | {vd_} x
cvta | global/shared/shared::cta/shared::cluster/local/const/param/param::entry | u32 u64 | d a
cvta | global/shared/shared::cta/shared::cluster/local/const/param/param::entry | u32 u64 | d Y
cvta.to | global/shared/shared::cta/shared::cluster/local/const/param/param::entry | u32 u64 | d a
isspacep | global/shared/shared::cta/shared::cluster/local/const/param/param::entry | - | q a:u64 ; q n
mapa | [shared::cluster] | u32 s32 u64 s64 | d a n ; d y:shared n
getctarank | [shared::cluster] | u32 s32 u64 s64 | N a ; N y:shared
istypep | | texref samplerref surfref | q h
"""

_GLOBAL: Final = "[global]"
_STRONG: Final = "[global/shared/shared::cta/shared::cluster]"
ACCESSES: Final = f"""
ld | [weak] [{_SPACES}] [ca/cg/cs/lu/cv] {_VECTOR} | {_ACCESSED} | *D_ m
ld | [weak] {_GLOBAL} [{_IN_LOAD}] [{_PREFETCH}] {_VECTOR} | {_ACCESSED} | *D_ m
ld | [weak] {_GLOBAL} [{_IN_LOAD}] {_L2} [{_PREFETCH}] v4 | b64 u64 s64 f64 | *D_ m
ld | [weak] {_GLOBAL} [{_IN_LOAD}] {_L2} L2::cache_hint [{_PREFETCH}] v4 | b64 u64 s64 f64 | *D_ m h
ld | [weak] {_GLOBAL} [{_IN_LOAD}] {_L2} [{_PREFETCH}] v8 | b32 u32 s32 f32 | *D_ m
ld | [weak] {_GLOBAL} [{_IN_LOAD}] {_L2} L2::cache_hint [{_PREFETCH}] v8 | b32 u32 s32 f32 | *D_ m h
ld | [weak] {_GLOBAL} [{_IN_LOAD}] [{_PREFETCH}] L2::cache_hint {_VECTOR} | {_ACCESSED} | *D_ m h
ld | volatile [{_SPACES}] {_VECTOR} | {_ACCESSED} | *D_ m
ld | volatile {_GLOBAL} {_PREFETCH} {_VECTOR} | {_ACCESSED} | *D_ m
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
ld | const/param/param::entry/param::func [ca/cg/cs/lu/cv] {_VECTOR} | {_ACCESSED} | *D_ m
ldu | {_GLOBAL} [v2/v4] | {_ACCESSED} | *D_ m
st | [weak] [{_SPACES}] [wb/cg/cs/wt] {_VECTOR} | {_ACCESSED} | m *A
st | [weak] {_GLOBAL} [{_L1}] {_VECTOR} | {_ACCESSED} | m *A
st | [weak] {_GLOBAL} [{_IN_STORE}] {_L2} v4 | b64 u64 s64 f64 | m *A
st | [weak] {_GLOBAL} [{_IN_STORE}] {_L2} L2::cache_hint v4 | b64 u64 s64 f64 | m *A h
st | [weak] {_GLOBAL} [{_IN_STORE}] {_L2} v8 | b32 u32 s32 f32 | m *A
st | [weak] {_GLOBAL} [{_IN_STORE}] {_L2} L2::cache_hint v8 | b32 u32 s32 f32 | m *A h
st | [weak] {_GLOBAL} [{_IN_STORE}] L2::cache_hint {_VECTOR} | {_ACCESSED} | m *A h
st | volatile [{_SPACES}] {_VECTOR} | {_ACCESSED} | m *A
st | relaxed/release {_SCOPE} {_STRONG} {_VECTOR} | {_ACCESSED} | m *A
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_VECTOR} | {_ACCESSED} | m *A
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_L2} v4 | b64 u64 s64 f64 | m *A
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_L2} L2::cache_hint v4 | b64 u64 s64 f64 | m *A h
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_L2} v8 | b32 u32 s32 f32 | m *A
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] {_L2} L2::cache_hint v8 | b32 u32 s32 f32 | m *A h
st | relaxed/release {_SCOPE} {_GLOBAL} [{_L1}] L2::cache_hint {_VECTOR} | {_ACCESSED} | m *A h
st | mmio relaxed sys {_GLOBAL} | {_ACCESSED} | m *A
st | param/param::func {_VECTOR} | {_ACCESSED} | m:argument *A
prefetch | [global/local] L1/L2 | - | m
prefetch | {_GLOBAL} L2::evict_last/L2::evict_normal | - | m
prefetchu | L1 | - | m:none
applypriority | {_GLOBAL} L2::evict_normal | - | m =128
discard | {_GLOBAL} L2 | - | m =128
"""

_ORDER: Final = "[relaxed/acquire/release/acq_rel]"
_ANYWHERE: Final = f"[global/{_SHARED}]"
ATOMICS: Final = f"""
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
"""
