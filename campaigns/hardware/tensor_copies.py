"""Copies and sums of boxes of tensors in 1 to 5 dimensions, and tensor maps that a kernel changes.

The tensor is the first buffer. A buffer of the kind "map" has no memory: its parameter is a tensor
map over the tensor, with the extents and the box that the kind names.
"""

from __future__ import annotations

from typing import Final

from .case import Buffer, Case

DIMENSIONS: Final = 5
_THREADS: Final = 128
_EXTENTS: Final = ((2048,), (32, 64), (8, 8, 32), (4, 8, 4, 16), (4, 4, 4, 4, 8))
_BOXES: Final = ((128,), (8, 16), (4, 4, 8), (2, 4, 2, 8), (2, 2, 4, 2, 4))
_STARTS: Final = ((64,), (48, 3), (8, 5, 2), (8, 1, 3, 1), (4, 1, 0, 2, 1))
"""Innermost first, as the instructions have it."""
_SUMS: Final = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
_NBYTES: Final = 8192
_HEAD: Final = """\
.version 9.0
.target sm_90a
.address_size 64
.visible .entry K(.param .u64 T,.param .align 64 .b8 map[128],{})
{{
.reg .b64 x,m,s0,g; .reg .b32 t,s,b,w,r; .reg .pred q,p,v;
.shared .align 128 .b8 sm[512]; .shared .align 128 .b8 copy[128]; .shared .align 8 .b64 bar;
mov.u32 t,%tid.x; mov.u32 s,sm; mov.u32 b,bar; mov.b64 m,map; cvta.param.u64 m,m;
setp.eq.u32 q,t,0; mad.lo.u32 w,t,4,s; @q mbarrier.init.shared.b64 [b],1;
fence.mbarrier_init.release.cluster; bar.sync 0;"""


def tensor_copies_case(number: int) -> Case:
    """Return the case of one number of dimensions, counted from 0."""
    rank = number + 1
    start = ",".join(map(str, _STARTS[number]))
    place = f"[m,{{{start}}}]"
    lines = [
        "prefetch.param.tensormap [map]; prefetch.tensormap [m];",
        f"@q cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile {place};",
        *_loaded(rank, place, 0),
    ]
    for index, op in enumerate(_SUMS, 1):
        lines += [
            f"mad.lo.u32 r,t,{0x9E3779B1 ^ index << 9},{index * 0x1234567}; st.shared.b32 [w],r; "
            "fence.proxy.async; bar.sync 0;",
            f"@q cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.tile.bulk_group "
            f"{place},[s];",
            "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; fence.proxy.async; "
            "bar.sync 0;",
            *_loaded(rank, place, index),
        ]
    names = ["load", *_SUMS]
    return _case(f"tensor_copies{rank}", number, lines, [f"tensor.{rank}d.{n}" for n in names])


def _loaded(rank: int, place: str, index: int, nbytes: int = 512) -> list[str]:
    """Return the lines that copy a box to shared memory, and each thread's word to a result."""
    return [
        f"@q mbarrier.arrive.expect_tx.shared.b64 s0,[b],{nbytes};",
        f"@q cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile."
        f"mbarrier::complete_tx::bytes [s],{place},[b];",
        f"W{index}: mbarrier.try_wait.parity.shared.b64 p,[b],{index % 2}; @!p bra W{index};",
        f"ld.shared.b32 r,[w]; ld.param.u64 x,[O{index}]; mad.wide.u32 x,t,4,x; "
        "st.global.b32 [x],r; bar.sync 0;",
    ]


_REPLACEMENTS: Final = (
    ("global_dim", "b32", "0,51", 512), ("global_dim", "b32", "1,9", 512),
    ("box_dim", "b32", "1,4", 256), ("box_dim", "b32", "0,32", 512),
    ("element_stride", "b32", "1,2", 256), ("global_stride", "b64", "0,512", 256),
    ("global_address", "b64", "g", 256), ("swizzle_mode", "b32", "3", 256),
    ("rank", "b32", "1", 256), ("interleave_layout", "b32", "0", 256),
    ("fill_mode", "b32", "0", 256), ("elemtype", "b32", "3", 256),
)  # fmt: skip
"""Fields, types and values, one after the other, and the bytes of a box after each."""


def replaced_maps_case() -> Case:
    """Return the case of a tensor map that the kernel changes, field by field."""
    place = "[m,{48,3}]"
    lines = [
        "ld.param.u64 g,[T]; add.u64 g,g,256; mov.u32 r,copy; setp.lt.u32 v,t,32;",
        "mad.wide.u32 x,t,4,m; @v ld.b32 w,[x]; mad.lo.u32 r,t,4,r; @v st.shared.b32 [r],w;",
        "mad.lo.u32 w,t,4,s; bar.sync 0; mov.u32 r,copy; ld.param.u64 m,[G];",
    ]
    for index, (field, t, value, nbytes) in enumerate(_REPLACEMENTS):
        lines += [
            f"mov.u32 r,copy; @q tensormap.replace.tile.{field}.shared::cta.b1024.{t} [r],{value};",
            "bar.sync 0; setp.lt.u32 v,t,32; @!v bra S%;".replace("%", str(index)),
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
            " [m],[r],128;",
            f"S{index}: bar.sync 0; fence.proxy.tensormap::generic.acquire.gpu [m],128; "
            "mov.u32 r,0; st.shared.b32 [w],r; fence.proxy.async; bar.sync 0;",
            *_loaded(2, place, index, nbytes),
        ]
    names = [f"tensormap.replace.{k}.{each[0]}" for k, each in enumerate(_REPLACEMENTS)]
    return _case("replaced_maps", 1, lines, names, is_replaced=True)


def _case(
    name: str, number: int, lines: list[str], forms: list[str], *, is_replaced: bool = False
) -> Case:
    own = [".param .u64 G"] * is_replaced
    parameters = ",".join((*own, *(f".param .u64 O{k}" for k in range(len(forms)))))
    text = "\n".join((_HEAD.format(parameters), *lines, "ret;", "}", ""))
    extents, box = (",".join(map(str, each[number])) for each in (_EXTENTS, _BOXES))
    buffers = [
        Buffer("b32", _NBYTES),
        Buffer(f"map {extents} {box}", 0),
        *([Buffer("zero", 128)] * is_replaced),
        *(Buffer("zero", _THREADS * 4, "u4") for _ in forms),
    ]
    return Case(name, text, tuple(buffers), tuple(forms), threads=_THREADS)
