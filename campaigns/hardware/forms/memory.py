"""Forms of atomic operations, loads, stores, and copies by the thread and in bulk."""

from __future__ import annotations

from itertools import product
from typing import Final

from .form import FormList, bits

_ATOMICS: Final = (
    *((op, t) for op in ("add", "min", "max") for t in ("u32", "s32", "u64", "s64")
      if (op, t) != ("add", "s64")),
    ("exch", "b32"), ("exch", "b64"), ("inc", "u32"), ("dec", "u32"),
    *((op, t) for op in ("and", "or", "xor") for t in ("b32", "b64")),
    ("add", "f32"), ("add", "f64"), ("add.noftz", "f16"), ("add.noftz", "f16x2"),
    ("add.noftz", "bf16"), ("add.noftz", "bf16x2"),
)  # fmt: skip
_SEMANTICS: Final = (".relaxed.gpu", ".acq_rel.cta", ".release.sys", ".acquire.gpu", "")
_SPACES: Final = (".global", ".shared", "")
_VECTORS: Final = (
    (2, "f32"), (4, "f32"), (2, "f16"), (4, "f16"), (8, "f16"), (2, "bf16"), (4, "bf16"),
    (2, "f16x2"), (4, "f16x2"), (2, "bf16x2"), (4, "bf16x2"),
)  # fmt: skip
_VECTOR_LOADS: Final = (
    (2, "u8"), (4, "s8"), (2, "s16"), (4, "u16"), (2, "f32"), (4, "b32"), (2, "b64"), (2, "f64"),
)  # fmt: skip
_BULK: Final = (
    ("add", "u32"), ("add", "s32"), ("add", "u64"), ("min", "u32"), ("min", "s32"),
    ("max", "s64"), ("max", "u64"), ("inc", "u32"), ("dec", "u32"), ("and", "b32"), ("or", "b32"),
    ("xor", "b64"), ("add", "f32"), ("add", "f64"), ("add.noftz", "f16"), ("add.noftz", "bf16"),
    ("min", "f16"), ("max", "bf16"), ("and", "b64"), ("or", "b64"), ("xor", "b32"),
    ("max", "f16"), ("min", "bf16"), ("max", "s32"), ("max", "u32"), ("min", "s64"), ("min", "u64"),
)  # fmt: skip
_SHARED_BULK: Final = (
    ("add", "u32"), ("add", "s32"), ("add", "u64"), ("min", "u32"), ("min", "s32"), ("max", "u32"),
    ("max", "s32"), ("inc", "u32"), ("dec", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32"),
)  # fmt: skip
_READ_ONLY: Final = (
    "u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64", "f32", "f64",
)  # fmt: skip
_FILL: Final = "st.global.v2.b64 [$m],{$a,$b}; "
_READ_GLOBAL: Final = "ld.global.v2.b64 {$d,$d2},[$m];"
_READ_SHARED: Final = "ld.shared.v2.b64 {$d,$d2},[$s];"


def add_forms(found: FormList) -> None:
    """Add all forms of the family."""
    _atomics(found)
    _compare_and_swap(found)
    _one_cell(found)
    _vector_atomics(found)
    _wide_atomics(found)
    _loads_and_stores(found)
    _copies(found)
    _mbarriers(found)
    _bulk_copies(found)
    _bulk_sums(found)
    _remote(found)
    _read_only(found)
    _hints(found)
    _fences(found)


def _register(t: str) -> str:
    return "b32" if t.endswith("x2") else "b16" if t in ("f16", "bf16") else t


def _atomics(found: FormList) -> None:
    for number, ((op, t), space) in enumerate(product(_ATOMICS, _SPACES)):
        address = "$s" if space == ".shared" else "$m"
        register = _register(t)
        plain = f"b{bits(register)}"
        semantics = _SEMANTICS[number % len(_SEMANTICS)]
        before = f"st{space}.{plain} [{address}],$a;"
        atom = f"atom{semantics}{space}.{op}.{t}"
        text = f"{before} {atom} $d,[{address}],$b; ld{space}.{plain} $d2,[{address}];"
        found.add(atom, [register] * 2, [register] * 2, text, "memory")
        if op != "exch":
            red = f"red{space}.{op}.{t}"
            text = f"{before} {red} [{address}],$b; ld{space}.{plain} $d,[{address}];"
            found.add(red, [register] * 2, register, text, "memory")


def _compare_and_swap(found: FormList) -> None:
    for t, space in product(("b16", "b32", "b64"), _SPACES):
        address = "$s" if space == ".shared" else "$m"
        before = f"st{space}.{t} [{address}],$a;"
        after = f"ld{space}.{t} $d2,[{address}];"
        text = f"{before} atom{space}.cas.{t} $d,[{address}],$a,$c; {after}"
        found.add(f"atom{space}.cas.{t}", [t] * 3, [t] * 2, text, "memory")
        text = f"{before} atom{space}.cas.{t} $d,[{address}],$b,$c; {after}"
        found.add(f"atom{space}.cas.{t}.unequal", [t] * 3, [t] * 2, text, "memory")


def _one_cell(found: FormList) -> None:
    """Operations of all threads on one cell, whose result does not depend on their order."""
    for op, t in _ATOMICS:
        if op in ("add", "min", "max", "and", "or", "xor") and t[0] in "usb" and t[1] != "f":
            text = (
                "{.reg .pred z0; .reg .b64 zz; .reg .b32 tt; mov.b64 zz,0; mov.u32 tt,%tid.x; "
                "setp.eq.u32 z0,tt,0; @z0 st.shared.b64 [$s0],zz; bar.sync 0; "
                f"red.shared.{op}.{t} [$s0],$a; bar.sync 0; ld.shared.b{bits(t)} $d,[$s0];}}"
            )
            found.add(f"red.all.{op}.{t}", [t], t, text, "memory")


def _vector_atomics(found: FormList) -> None:
    for count, t in _VECTORS:
        register, names = _register(t), ("$a", "$b", "$c", "$e")
        plain, nbytes = f"b{bits(register)}", bits(register) // 8
        mode = "" if t == "f32" else ".noftz"
        old = ",".join(f"y{i}" for i in range(count))
        given = ",".join(names[i % 4] for i in range(count))
        before = "".join(
            f"st.global.{plain} [$m+{i * nbytes}],{names[(i + 1) % 4]}; " for i in range(count)
        )
        op = f"atom.global.v{count}.add{mode}.{t}"
        text = (
            f"{{.reg .{register} y<{count}>; {before}{op} {{{old}}},[$m],{{{given}}}; "
            f"mov.{plain} $d,y0; mov.{plain} $d2,y{count - 1}; ld.global.{plain} $d3,[$m]; "
            f"ld.global.{plain} $d4,[$m+{(count - 1) * nbytes}];}}"
        )
        found.add(op, [register] * 4, [register] * 4, text, "memory")


def _wide_atomics(found: FormList) -> None:
    for op, comparand in (("exch", ""), ("cas", "z,")):
        text = (
            "{.reg .b128 x,y,z; st.global.v2.b64 [$m],{$a,$b}; mov.b128 x,{$c,$e}; "
            f"mov.b128 z,{{$a,$b}}; atom.global.{op}.b128 y,[$m],{comparand}x; "
            "mov.b128 {$d,$d2},y; ld.global.v2.b64 {$d3,$d4},[$m];}"
        )
        found.add(f"atom.{op}.b128", ["b64"] * 4, ["b64"] * 4, text, "memory")


def _loads_and_stores(found: FormList) -> None:
    types = ("u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32")
    for t, register in product(types, ("b16", "b32", "b64")):
        if bits(t) <= bits(register):
            text = f"st.global.b64 [$m],$a; ld.global.{t} $d,[$m+4];"
            found.add(f"ld.{t}.{register}", ["b64"], register, text, "memory")
            text = f"st.global.b64 [$m],-1; st.global.{t} [$m],$a; ld.global.b64 $d,[$m];"
            found.add(f"st.{t}.{register}", [register], "b64", text, "memory")
    for count, t in _VECTOR_LOADS:
        register = t if t[0] == "f" else f"b{max(16, bits(t))}"
        elements = ",".join(f"y{i}" for i in range(count))
        text = (
            f"{{.reg .{register} y<4>; st.shared.v2.b64 [$s],{{$a,$b}}; "
            f"ld.shared.v{count}.{t} {{{elements}}},[$s]; "
            f"mov.b{bits(register)} $d,y0; mov.b{bits(register)} $d2,y{count - 1};}}"
        )
        found.add(f"ld.v{count}.{t}", ["b64"] * 2, [register] * 2, text, "memory")
    text = "{.reg .b64 g; cvta.shared.u64 g,$s64; isspacep.shared $p,g; isspacep.global $p2,g;}"
    found.add("isspacep", ["b64"], ["pred", "pred2"], text, "memory")
    for name, text in {
        "cvta.to.shared": "cvta.shared.u64 g,$s64; cvta.to.shared.u64 g,g; sub.u64 g,g,$s64;",
        "cvta.to.global": "cvta.to.global.u64 g,$m; cvta.global.u64 g,g; sub.u64 g,g,$m;",
    }.items():
        found.add(name, ["b64"], "b64", f"{{.reg .b64 g; {text} add.u64 $d,g,$a;}}", "memory")
    for name, text in {
        "ld.generic": "st.b64 [$m],$a; ld.b64 $d,[$m];",
        "ld.volatile": "st.volatile.global.b64 [$m],$a; ld.volatile.global.b64 $d,[$m];",
        "ld.acquire": "st.release.gpu.global.b64 [$m],$a; ld.acquire.gpu.global.b64 $d,[$m];",
        "ld.relaxed": "st.relaxed.sys.global.b64 [$m],$a; ld.relaxed.sys.global.b64 $d,[$m];",
        "ld.s64": "st.global.s64 [$m],$a; ld.global.s64 $d,[$m];",
        "ld.cg": "st.global.cg.b64 [$m],$a; ld.global.cg.b64 $d,[$m];",
        "ld.cv": "st.global.wt.b64 [$m],$a; ld.global.cv.b64 $d,[$m];",
        "prefetch": "st.global.b64 [$m],$a; prefetch.global.L2 [$m]; ld.global.b64 $d,[$m];",
        "prefetchu": "st.global.b64 [$m],$a; prefetchu.L1 [$m]; ld.global.b64 $d,[$m];",
    }.items():
        found.add(name, ["b64"], "b64", text, "memory")


def _copies(found: FormList) -> None:
    clear = "st.shared.v2.b64 [$s],{-1,-1}; "
    for nbytes, level in ((4, "ca"), (8, "ca"), (16, "ca"), (16, "cg")):
        text = (
            f"{_FILL}{clear}cp.async.{level}.shared.global [$s],[$m],{nbytes}; "
            f"cp.async.commit_group; cp.async.wait_group 0; {_READ_SHARED}"
        )
        found.add(f"cp.async.{level}.{nbytes}", ["b64"] * 2, ["b64"] * 2, text, "memory")
    for nbytes in (4, 8, 16):
        text = (
            f"{{.reg .b32 z; and.b32 z,$c,{nbytes - 1}; {_FILL}{clear}"
            f"cp.async.ca.shared.global [$s],[$m],{nbytes},z; cp.async.wait_all; {_READ_SHARED}}}"
        )
        found.add(f"cp.async.zfill.{nbytes}", ["b64", "b64", "b32"], ["b64"] * 2, text, "memory")


_START: Final = (
    "{.reg .pred q,w; .reg .b32 t,u; .reg .b64 st0; mov.u32 t,%tid.x; setp.eq.u32 q,t,0; "
)


def _mbarriers(found: FormList) -> None:
    wait = "W: mbarrier.try_wait.shared.b64 $p,[$s0],st0; @!$p bra W; mov.b64 $d,3;}"
    for name, arrive in {
        "arrive": "mbarrier.arrive.shared.b64 st0,[$s0];",
        "arrive.count": "mbarrier.arrive.shared.b64 st0,[$s0],1;",
        "arrive.release": "mbarrier.arrive.release.cta.shared::cta.b64 st0,[$s0];",
        "arrive_drop": "mbarrier.arrive_drop.shared.b64 st0,[$s0];",
        "arrive.expect_tx": "mbarrier.arrive.expect_tx.shared.b64 st0,[$s0],0;",
        "arrive_drop.expect_tx": "mbarrier.arrive_drop.expect_tx.shared.b64 st0,[$s0],0;",
    }.items():
        text = f"{_START}@q mbarrier.init.shared.b64 [$s0],256; bar.sync 0; {arrive} {wait}"
        found.add(f"mbarrier.{name}", ["b32"], ["b64", "pred"], text, "memory")
    text = (
        f"{_START}@q mbarrier.init.shared.b64 [$s0],257; bar.sync 0; "
        "mbarrier.arrive.shared.b64 st0,[$s0]; mbarrier.pending_count.b64 u,st0; "
        "mbarrier.test_wait.parity.shared.b64 $p,[$s0],0; mov.b32 $d,7;}"
    )
    found.add("mbarrier.parity", ["b32"], ["b32", "pred"], text, "memory")

    text = (
        f"{_START}@q mbarrier.init.shared.b64 [$s0],512; bar.sync 0; "
        "mbarrier.arrive_drop.noComplete.shared.b64 st0,[$s0],1; bar.sync 0; "
        f"mbarrier.arrive.shared.b64 st0,[$s0]; {wait}"
    )
    found.add("mbarrier.arrive_drop.noComplete", ["b32"], ["b64", "pred"], text, "memory")


def _bulk_copies(found: FormList) -> None:
    end = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; "
    for op, t in _BULK:
        text = (
            f"{_FILL}st.shared.v2.b64 [$s],{{$c,$e}}; fence.proxy.async; "
            f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{t} [$m],[$s],16; {end}"
            f"fence.proxy.async; {_READ_GLOBAL}"
        )
        found.add(f"cp.reduce.{op}.{t}", ["b64"] * 4, ["b64"] * 2, text, "memory")
    text = (
        "st.shared.v2.b64 [$s],{$a,$b}; fence.proxy.async; "
        f"cp.async.bulk.global.shared::cta.bulk_group [$m],[$s],16; {end}{_READ_GLOBAL}"
    )
    found.add("cp.async.bulk.to_global", ["b64"] * 2, ["b64"] * 2, text, "memory")
    text = (
        f"{_START}{_FILL}@q mbarrier.init.shared.b64 [$s0],256; fence.proxy.async; bar.sync 0; "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$s],[$m],16,[$s0]; "
        "mbarrier.arrive.expect_tx.shared.b64 st0,[$s0],16; "
        f"W: mbarrier.try_wait.shared.b64 w,[$s0],st0; @!w bra W; {_READ_SHARED}}}"
    )
    found.add("cp.async.bulk.to_shared", ["b64"] * 2, ["b64"] * 2, text, "memory")


def _bulk_sums(found: FormList) -> None:
    """Sums in bulk: with a hint for the cache, and of shared memory."""
    end = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; "
    for op, t in _BULK:
        text = (
            "{.reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy,1.0; "
            f"{_FILL}st.shared.v2.b64 [$s],{{$c,$e}}; fence.proxy.async; "
            f"cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.{op}.{t} "
            f"[$m],[$s],16,policy; {end}fence.proxy.async; {_READ_GLOBAL}}}"
        )
        found.add(f"cp.reduce.hint.{op}.{t}", ["b64"] * 4, ["b64"] * 2, text, "memory")
    for op, t in _SHARED_BULK:  # each even thread adds its bytes to those of the next one
        text = (
            f"{_START}@q mbarrier.init.shared.b64 [$s0],256; st.shared.v2.b64 [$s],{{$a,$b}}; "
            "fence.proxy.async; bar.sync 0; and.b32 t,t,1; setp.eq.u32 q,t,0; mov.u32 u,0; "
            "@q mov.u32 u,16; @q cp.reduce.async.bulk.shared::cluster.shared::cta."
            f"mbarrier::complete_tx::bytes.{op}.{t} [$s+16],[$s],16,[$s0]; "
            "mbarrier.arrive.expect_tx.shared.b64 st0,[$s0],u; "
            f"W: mbarrier.try_wait.shared.b64 w,[$s0],st0; @!w bra W; {_READ_SHARED}}}"
        )
        found.add(f"cp.reduce.shared.{op}.{t}", ["b64"] * 2, ["b64"] * 2, text, "cluster")


def _remote(found: FormList) -> None:
    """Stores and sums that complete at an mbarrier."""
    forms = [
        (f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.{t}", t)
        for t in ("b32", "b64", "u32", "s32", "u64", "s64", "f32", "f64")
    ]
    forms += [
        (f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op}.{t}", t)
        for op, t in _SHARED_BULK
    ]
    for op, t in forms:
        nbytes = bits(t) // 8
        text = (
            f"{_START}@q mbarrier.init.shared.b64 [$s0],256; st.shared.b{bits(t)} [$s],$a; "
            f"bar.sync 0; mbarrier.arrive.expect_tx.shared.b64 st0,[$s0],{nbytes}; "
            f"{op} [$s],$b,[$s0]; W: mbarrier.try_wait.shared.b64 w,[$s0],st0; @!w bra W; "
            f"ld.shared.b{bits(t)} $d,[$s];}}"
        )
        name = op.replace("shared::cluster.mbarrier::complete_tx::bytes.", "")
        found.add(name, [t, t], t, text, "cluster")


def _read_only(found: FormList) -> None:
    """Loads from a buffer that the kernel does not write: the operands of the thread."""
    for t in _READ_ONLY:
        register = t if t[0] == "f" else f"b{max(16, bits(t))}"
        found.add(f"ldu.{t}", ["b64"], register, f"ldu.global.{t} $d,[x];", "memory")
    text = "{.reg .b128 y; ldu.global.b128 y,[x]; mov.b128 {$d,$d2},y;}"
    found.add("ldu.b128", ["b64"], ["b64", "b64"], text, "memory")


def _hints(found: FormList) -> None:
    """Instructions that change no value."""
    first = (
        "{.reg .pred q; .reg .b32 t; mov.u32 t,%tid.x; and.b32 t,t,7; setp.eq.u32 q,t,0; "
        "st.global.b64 [$m],$a; bar.sync 0; "
    )
    discarded = "bar.sync 0; st.global.b64 [$m],$a; "
    for name, text, after in (
        ("applypriority", "@q applypriority.global.L2::evict_normal [$m],128; ", ""),
        ("discard", "@q discard.global.L2 [$m],128; ", discarded),
        ("cp.async.bulk.prefetch", "cp.async.bulk.prefetch.L2.global [$m],16; ", ""),
        ("pmevent", "pmevent 3; ", ""),
        ("pmevent.mask", "pmevent.mask 5; ", ""),
    ):
        text = f"{first}{text}{after}ld.global.b64 $d,[$m];}}"
        found.add(name, ["b64"], "b64", text, "memory")
    text = (
        "{.reg .b64 g; .reg .b32 r; cvta.shared.u64 g,$s64; getctarank.u64 r,g; add.u32 $d,r,$a;}"
    )
    found.add("getctarank.u64", ["b32"], "b32", text, "memory")


def _fences(found: FormList) -> None:
    for fence in (
        "membar.proxy.alias", "fence.proxy.tensormap::generic.release.gpu",
        "membar.cta", "membar.gl", "membar.sys", "fence.sc.gpu", "fence.acq_rel.cta",
        "fence.acq_rel.gpu", "fence.acq_rel.sys", "fence.proxy.alias", "fence.proxy.async",
        "fence.proxy.async.global", "fence.mbarrier_init.release.cluster",
    ):  # fmt: skip
        text = f"st.global.b64 [$m],$a; {fence}; ld.global.b64 $d,[$m];"
        found.add(fence, ["b64"], "b64", text, "memory")
