"""Forms of instructions that the threads of a warp or block execute together."""

from __future__ import annotations

from itertools import product
from typing import Final

from .form import FormList

_SPECIAL: Final = (
    "laneid", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "tid.x",
    "ntid.x", "ctaid.x", "nctaid.x", "cluster_ctaid.x", "cluster_nctaid.x", "clusterid.x",
    "nclusterid.x", "cluster_ctarank", "cluster_nctarank", "total_smem_size", "dynamic_smem_size",
    "aggr_smem_size",
)  # fmt: skip


def add_forms(found: FormList) -> None:
    """Add all forms of the family."""
    _shuffles(found)
    _votes(found)
    _matches(found)
    _reductions(found)
    _block_barriers(found)
    for name in _SPECIAL:
        found.add(f"sreg.{name}", ["b32"], "b32", f"mov.u32 $d,%{name};", "warp")
    text = "{.reg .pred q; mov.pred q,%is_explicit_cluster; selp.b32 $d,1,0,q;}"
    found.add("sreg.is_explicit_cluster", ["b32"], "b32", text, "warp")


def _shuffles(found: FormList) -> None:
    for mode in ("up", "down", "bfly", "idx"):
        op = f"shfl.sync.{mode}.b32"
        clamp = 0 if mode == "up" else 31
        text = f"{{.reg .b32 x,y; and.b32 x,$b,31; and.b32 y,$c,0x1f1f; {op} $d|$p,$a,x,y,-1;}}"
        found.add(f"shfl.{mode}", ["b32"] * 3, ["b32", "pred"], text, "warp")
        found.add(
            f"shfl.{mode}.raw", ["b32"] * 3, ["b32", "pred"], f"{op} $d|$p,$a,$b,$c,-1;", "warp"
        )
        for width, mask in ((2, 0x1E), (8, 0x18), (16, 0x10)):
            text = f"{op} $d|$p,$a,{width // 2},{mask << 8 | clamp},-1;"
            found.add(f"shfl.{mode}.{width}", ["b32"] * 2, ["b32", "pred"], text, "warp")
        text = (
            "{.reg .pred q; .reg .b32 m; mov.u32 m,%laneid; and.b32 m,m,1; setp.eq.u32 q,m,0; "
            f"mov.b32 $d,77; @q {op} $d,$a,2,{clamp},0x55555555; "
            f"@!q {op} $d,$a,4,{clamp},0xaaaaaaaa;}}"
        )
        found.add(f"shfl.{mode}.half", ["b32"] * 2, "b32", text, "warp")


def _votes(found: FormList) -> None:
    for mode in ("all", "any", "uni"):
        text = f"{{.reg .pred q; setp.gt.s32 q,$a,-2000000000; vote.sync.{mode}.pred $p,q,-1;}}"
        found.add(f"vote.{mode}", ["s32"], "pred", text, "warp")
        text = f"{{.reg .pred q; setp.eq.s32 q,$a,123; vote.sync.{mode}.pred $p,!q,-1;}}"
        found.add(f"vote.{mode}.negated", ["s32"], "pred", text, "warp")
    text = "{.reg .pred q; setp.gt.s32 q,$a,0; vote.sync.ballot.b32 $d,q,-1;}"
    found.add("vote.ballot", ["s32"], "b32", text, "warp")
    text = (
        "{.reg .pred q,r; .reg .b32 l; mov.u32 l,%laneid; setp.gt.s32 q,$a,0; setp.lt.u32 r,l,20; "
        "mov.b32 $d,5; @r vote.sync.ballot.b32 $d,q,0xfffff;}"
    )
    found.add("vote.ballot.part", ["s32"], "b32", text, "warp")
    found.add("elect", ["b32"], ["b32", "pred"], "elect.sync $d|$p,0xffffffff;", "warp")
    text = (
        "{.reg .pred q; .reg .b32 l; mov.u32 l,%laneid; setp.lt.u32 q,l,7; mov.b32 $d,1; "
        "@q activemask.b32 $d;}"
    )
    found.add("activemask", ["s32"], "b32", text, "warp")


def _matches(found: FormList) -> None:
    for t in ("b32", "b64"):
        text = f"{{.reg .{t} x; and.{t} x,$a,3; match.any.sync.{t} $d,x,-1;}}"
        found.add(f"match.any.{t}", [t], "b32", text, "warp")
        text = f"{{.reg .{t} x; and.{t} x,$a,0; match.all.sync.{t} $d|$p,x,-1;}}"
        found.add(f"match.all.{t}", [t], ["b32", "pred"], text, "warp")
        text = f"match.all.sync.{t} $d|$p,$a,-1;"
        found.add(f"match.all.{t}.unequal", [t], ["b32", "pred"], text, "warp")


def _reductions(found: FormList) -> None:
    for op, t in product(("add", "min", "max"), ("u32", "s32")):
        found.add(f"redux.{op}.{t}", [t], t, f"redux.sync.{op}.{t} $d,$a,-1;", "warp")
        text = (
            "{.reg .pred r; .reg .b32 l; mov.u32 l,%laneid; setp.ge.u32 r,l,9; mov.b32 $d,5; "
            f"@r redux.sync.{op}.{t} $d,$a,0xfffffe00;}}"
        )
        found.add(f"redux.{op}.{t}.part", [t], t, text, "warp")
    for op in ("and", "or", "xor"):
        found.add(f"redux.{op}.b32", ["b32"], "b32", f"redux.sync.{op}.b32 $d,$a,-1;", "warp")


def _block_barriers(found: FormList) -> None:
    for barrier, limit in product(("bar", "barrier", "bar.cta", "barrier.cta"), (0, 31)):
        text = (
            f"{{.reg .pred q; setp.gt.s32 q,$a,{limit}; {barrier}.red.popc.u32 $d,0,q; "
            f"{barrier}.red.or.pred $p,0,q; {barrier}.red.and.pred $p2,1,256,q;}}"
        )
        name = f"{barrier}.red.{limit}"
        found.add(name, ["s32"], ["b32", "pred", "pred2"], text, "memory")
    for barrier in ("bar", "barrier", "bar.cta", "barrier.cta"):
        text = (
            "{.reg .pred q; .reg .b32 t; mov.u32 t,%tid.x; setp.lt.u32 q,t,128; mov.b64 $d,$a; "
            f"st.shared.b64 [$s],$a; @q {barrier}.arrive 2,256; @!q {barrier}.sync 2,256; "
            "@!q ld.shared.b64 $d,[$s+-2048];}"
        )
        found.add(f"{barrier}.arrive", ["b64"], "b64", text, "memory")
    text = (
        "st.shared.b64 [$s],$a; barrier.cluster.arrive; barrier.cluster.wait; "
        "ld.shared.b64 $d,[$s];"
    )
    found.add("barrier.cluster", ["b64"], "b64", text, "memory")
