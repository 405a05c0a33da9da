"""Rows of asynchronous copies, cache policies, and matrix loads and stores.

PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy", "... Bulk copy", "...
Tensor copy".
"""

from __future__ import annotations

from typing import Final

from ptx.isa.opcodes.opcode_row import RECENT, Chapter

_COMPLETE: Final = "mbarrier::complete_tx::bytes"
_SHARED: Final = "shared/shared::cta"
_PREFETCH: Final = "[L2::64B/L2::128B/L2::256B]"
_SIZES: Final = "=4/=8/=16"
_HINT: Final = "L2::cache_hint"
_BYTES: Final = "N/=0..1048560%16"
_DIMENSIONS: Final = "1d/2d/3d/4d/5d"
_MODES: Final = "tile/tile::gather4/im2col/im2col::w/im2col::w::128"
_GROUP: Final = "cta_group::1/cta_group::2"

OPCODES: Final = Chapter(
    f"""
opcode cp | copy, has_two_words | async_copy bulk_copy mbarrier:mbarrier tensor:tensor_copy | - | -
needs async | sm_80 7.0
needs async L2::* | sm_80 7.4
needs async 4:P | sm_80 7.5
needs mbarrier shared::cta | sm_80 7.8
needs bulk | sm_90 8.0
needs bulk shared::cta.global | sm_90 8.6
needs bulk cp_mask | sm_100 8.6
needs bulk cta_group::1/cta_group::2 | sm_100f sm_110f 8.6
needs bulk tile::gather4 | sm_100 8.6
needs bulk tile::gather4 !shared::cta.global | sm_100f sm_110f 8.6
needs bulk tile::scatter4 | sm_100f sm_110f 8.6
needs bulk im2col::w | sm_100 8.6
needs bulk im2col::w !shared::cta.global | sm_100f sm_110f 8.6
needs bulk im2col::w::128 | sm_100f sm_110f 8.6
cp.async | ca {_PREFETCH} | shared.global shared::cta.global | m:shared m:source {_SIZES}
cp.async | ca {_PREFETCH} | shared.global shared::cta.global | m:shared m:source =4 N/P/=0..4 ; m:shared m:source =8 N/P/=0..8 ; m:shared m:source =16 N/P/=0..16
cp.async | ca {_PREFETCH} {_HINT} | shared.global shared::cta.global | m:shared m:source {_SIZES} h
cp.async | ca {_PREFETCH} {_HINT} | shared.global shared::cta.global | m:shared m:source =4 N/P/=0..4 h ; m:shared m:source =8 N/P/=0..8 h ; m:shared m:source =16 N/P/=0..16 h
cp.async | cg {_PREFETCH} | shared.global shared::cta.global | m:shared m:source =16
cp.async | cg {_PREFETCH} | shared.global shared::cta.global | m:shared m:source =16 N/P/=0..16
cp.async | cg {_PREFETCH} {_HINT} | shared.global shared::cta.global | m:shared m:source =16 h
cp.async | cg {_PREFETCH} {_HINT} | shared.global shared::cta.global | m:shared m:source =16 N/P/=0..16 h
cp.async.commit_group cp.async.wait_all cp.async.bulk.commit_group | | - |
cp.async.wait_group | | - | i
cp.async.bulk.wait_group | [read] | - | i
cp.async.bulk | {_COMPLETE} | shared::cluster.global | m:shared m:bulk {_BYTES} m:shared
cp.async.bulk | {_COMPLETE} {_HINT} | shared::cluster.global | m:shared m:bulk {_BYTES} m:shared h
cp.async.bulk | {_COMPLETE} multicast::cluster | shared::cluster.global | m:shared m:bulk {_BYTES} m:shared r:u16
cp.async.bulk | {_COMPLETE} multicast::cluster {_HINT} | shared::cluster.global | m:shared m:bulk {_BYTES} m:shared r:u16 h
cp.async.bulk | {_COMPLETE} | shared::cta.global | m:shared m:bulk {_BYTES} m:shared
cp.async.bulk | {_COMPLETE} {_HINT} | shared::cta.global | m:shared m:bulk {_BYTES} m:shared h
cp.async.bulk | {_COMPLETE} | shared::cluster.shared::cta | m:shared m:shared {_BYTES} m:shared
cp.async.bulk | bulk_group | global.shared::cta | m:bulk m:shared {_BYTES}
cp.async.bulk | bulk_group {_HINT} | global.shared::cta | m:bulk m:shared {_BYTES} h
cp.async.bulk | bulk_group cp_mask | global.shared::cta | m:bulk m:shared {_BYTES} r:u16
cp.async.bulk | bulk_group {_HINT} cp_mask | global.shared::cta | m:bulk m:shared {_BYTES} h r:u16
cp.async.bulk.prefetch | L2 | global | m:bulk {_BYTES}
cp.async.bulk.prefetch | L2 {_HINT} | global | m:bulk {_BYTES} h
cp.reduce.async.bulk | bulk_group and/or/xor | global.shared::cta.b32 global.shared::cta.b64 | m:bulk m:shared {_BYTES}
cp.reduce.async.bulk | bulk_group inc/dec | global.shared::cta.u32 | m:bulk m:shared {_BYTES}
cp.reduce.async.bulk | bulk_group min/max | global.shared::cta.u32 global.shared::cta.s32 global.shared::cta.u64 global.shared::cta.s64 global.shared::cta.f16 global.shared::cta.bf16 | m:bulk m:shared {_BYTES}
cp.reduce.async.bulk | bulk_group add | global.shared::cta.u32 global.shared::cta.s32 global.shared::cta.u64 global.shared::cta.f32 global.shared::cta.f64 | m:bulk m:shared {_BYTES}
cp.reduce.async.bulk | bulk_group add noftz | global.shared::cta.f16 global.shared::cta.bf16 | m:bulk m:shared {_BYTES}
cp.reduce.async.bulk | bulk_group {_HINT} and/or/xor | global.shared::cta.b32 global.shared::cta.b64 | m:bulk m:shared {_BYTES} h
cp.reduce.async.bulk | bulk_group {_HINT} inc/dec | global.shared::cta.u32 | m:bulk m:shared {_BYTES} h
cp.reduce.async.bulk | bulk_group {_HINT} min/max | global.shared::cta.u32 global.shared::cta.s32 global.shared::cta.u64 global.shared::cta.s64 global.shared::cta.f16 global.shared::cta.bf16 | m:bulk m:shared {_BYTES} h
cp.reduce.async.bulk | bulk_group {_HINT} add | global.shared::cta.u32 global.shared::cta.s32 global.shared::cta.u64 global.shared::cta.f32 global.shared::cta.f64 | m:bulk m:shared {_BYTES} h
cp.reduce.async.bulk | bulk_group {_HINT} add noftz | global.shared::cta.f16 global.shared::cta.bf16 | m:bulk m:shared {_BYTES} h
cp.reduce.async.bulk | {_COMPLETE} and/or/xor | shared::cluster.shared::cta.b32 | m:shared m:shared {_BYTES} m:shared
cp.reduce.async.bulk | {_COMPLETE} inc/dec | shared::cluster.shared::cta.u32 | m:shared m:shared {_BYTES} m:shared
cp.reduce.async.bulk | {_COMPLETE} min/max | shared::cluster.shared::cta.u32 shared::cluster.shared::cta.s32 | m:shared m:shared {_BYTES} m:shared
cp.reduce.async.bulk | {_COMPLETE} add | shared::cluster.shared::cta.u32 shared::cluster.shared::cta.s32 shared::cluster.shared::cta.u64 | m:shared m:shared {_BYTES} m:shared
cp.async.mbarrier.arrive | [noinc] | b64 | M
cp.async.mbarrier.arrive | [noinc] | shared.b64 shared::cta.b64 b64.shared b64.shared::cta | m:shared
cp.async.bulk.tensor | {_DIMENSIONS} [{_MODES}] {_COMPLETE} [multicast::cluster] [{_GROUP}] [{_HINT}] | shared::cluster.global | ...
cp.async.bulk.tensor | {_DIMENSIONS} [{_MODES}] {_COMPLETE} [{_GROUP}] [{_HINT}] | shared::cta.global | ...
cp.async.bulk.tensor | {_DIMENSIONS} [tile/tile::scatter4/im2col_no_offs] bulk_group [{_HINT}] | global.shared::cta | ...
cp.reduce.async.bulk.tensor | {_DIMENSIONS} add/min/max/inc/dec/and/or/xor [tile/im2col_no_offs] bulk_group [{_HINT}] | global.shared::cta | ...
cp.async.bulk.prefetch.tensor | {_DIMENSIONS} L2 [{_MODES}] [{_HINT}] | global | ...

opcode createpolicy | move | data_movement | - | sm_80 7.4
createpolicy.range | global L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged | b64 | H m:globalword n n
createpolicy.range | L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged | b64 | H m:policy n n
createpolicy.range | global L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged L2::evict_first/L2::evict_unchanged | b64 | H m:globalword n n
createpolicy.range | L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged L2::evict_first/L2::evict_unchanged | b64 | H m:policy n n
createpolicy.fractional | L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged | b64 | H ; H a:f32
createpolicy.fractional | L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged L2::evict_first/L2::evict_unchanged | b64 | H ; H a:f32
createpolicy.cvt | L2 | b64 | H h

opcode ldmatrix | load matrix | matrix_move | - | sm_75 6.5
needs shared::cta | sm_75 7.8
needs m16n16/m8n16/b8/b8x16 | {RECENT} 8.6
ldmatrix | sync aligned m8n8 x1 [trans] [{_SHARED}] | b16 | {{1d:b32}} M:matrix
ldmatrix | sync aligned m8n8 x2 [trans] [{_SHARED}] | b16 | {{2d:b32}} M:matrix
ldmatrix | sync aligned m8n8 x4 [trans] [{_SHARED}] | b16 | {{4d:b32}} M:matrix
ldmatrix | sync aligned m8n16 x1 [{_SHARED}] | b8x16.b6x16_p32 b8x16.b4x16_p64 | {{1d:b32}} M:matrix
ldmatrix | sync aligned m8n16 x2 [{_SHARED}] | b8x16.b6x16_p32 b8x16.b4x16_p64 | {{2d:b32}} M:matrix
ldmatrix | sync aligned m8n16 x4 [{_SHARED}] | b8x16.b6x16_p32 b8x16.b4x16_p64 | {{4d:b32}} M:matrix
ldmatrix | sync aligned m16n16 x1 trans [{_SHARED}] | b8 b8x16.b6x16_p32 b8x16.b4x16_p64 | {{2d:b32}} M:matrix
ldmatrix | sync aligned m16n16 x2 trans [{_SHARED}] | b8 b8x16.b6x16_p32 b8x16.b4x16_p64 | {{4d:b32}} M:matrix

opcode stmatrix | store matrix | matrix_move | - | sm_90 7.8
needs m16n8/b8 | {RECENT} 8.6
stmatrix | sync aligned m8n8 x1 [trans] [{_SHARED}] | b16 | M:matrix {{1d:b32}}
stmatrix | sync aligned m8n8 x2 [trans] [{_SHARED}] | b16 | M:matrix {{2d:b32}}
stmatrix | sync aligned m8n8 x4 [trans] [{_SHARED}] | b16 | M:matrix {{4d:b32}}
stmatrix | sync aligned m16n8 x1 trans [{_SHARED}] | b8 | M:matrix {{1d:b32}}
stmatrix | sync aligned m16n8 x2 trans [{_SHARED}] | b8 | M:matrix {{2d:b32}}
stmatrix | sync aligned m16n8 x4 trans [{_SHARED}] | b8 | M:matrix {{4d:b32}}
""",
    {},
)
