"""Bulk reductions and stores that signal, operation by operation, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows

Array = NDArray[Any]
HEAD = """.reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<5>; .reg .f64 %fd<5>;
    .shared .align 128 .b8 s[512]; .shared .align 8 .b64 m;
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r5, s; mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
"""
BRING = """mbarrier.init.shared.b64 [m], 1; mbarrier.arrive.expect_tx.shared.b64 _, [m], 512;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 512, [m];
    W: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra W;"""
COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
    "inc": lambda old, bound: np.where(old >= bound, 0, old + 1).astype(np.uint32),
    "dec": lambda old, bound: np.where((old == 0) | (old > bound), bound, old - 1),
}  # fmt: skip
TYPES: dict[str, str] = {
    "u32": "u4", "s32": "i4", "b32": "u4", "u64": "u8", "s64": "i8", "b64": "u8", "f16": "f2",
    "f32": "f4", "f64": "f8",
}  # fmt: skip
SUMS = [("add", kind) for kind in ("u32", "s32", "u64")]
ORDERS = [(name, kind) for name in ("min", "max") for kind in ("u32", "s32")]
STEPS = [("inc", "u32"), ("dec", "u32")]
LOGIC = [(name, "b32") for name in ("and", "or", "xor")]


def noise(nbytes: int, seed: int, kind: str) -> Array:
    rng = np.random.default_rng(seed)
    if kind[0] == "f":
        values: Array = rng.normal(0, 50, 8 * nbytes // int(kind[1:])).astype(TYPES[kind])
        values[::5] *= np.finfo(values.dtype).tiny  # sums of subnormals
        return values
    return rng.integers(0, 256, nbytes, dtype=np.uint8).view(TYPES[kind])


def result(body: str, x: Array, before: Array) -> Array:
    """What `out`, which holds `before` at first, holds in the end."""
    text = ptx_text(HEAD + body + "\nret;", ".param .u64 in, .param .u64 out")
    runner = KernelRunner(text, 1 << 20)
    out = runner.put(before)
    runner.launch("k", 1, 1, runner.put(x), out, cluster=(1, 1, 1))
    return runner.get(out, len(before), before.dtype)


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *SUMS,
        *ORDERS,
        *STEPS,
        *LOGIC,
        *((name, "b64") for name in ("and", "or", "xor")),
        *((name, kind) for name in ("min", "max") for kind in ("u64", "s64", "f16")),
        *(("add", kind) for kind in ("f16", "f32", "f64")),
    ],
)
@pytest.mark.parametrize("hint", ["", ".L2::cache_hint"])
def test_shared_memory_is_combined_into_global(name: str, kind: str, hint: str) -> None:
    x, before = noise(512, 1, kind), noise(512, 2, kind)
    rounded = ".noftz" if (name, kind) == ("add", "f16") else ""
    policy = ", %rd3" if hint else ""
    body = f"""{BRING} mov.u64 %rd3, 0;
        cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}.{name}{rounded}.{kind}
            [%rd2+16], [%r5+32], 480{policy};"""
    expected = before.copy()
    here, there = 32 // x.itemsize, 16 // x.itemsize
    part = slice(there, there + 480 // x.itemsize)
    expected[part] = COMBINE[name](before[part], x[here:])
    assert result(body, x, before).tolist() == expected.tolist()


@all_rows
@pytest.mark.parametrize(("name", "kind"), [*SUMS, *ORDERS, *STEPS, *LOGIC])
def test_shared_memory_is_combined_into_shared(name: str, kind: str) -> None:
    x = noise(512, 3, kind)
    body = f"""{BRING} mbarrier.arrive.expect_tx.shared.b64 _, [m], 256;
        cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{name}.{kind}
            [%r5], [%r5+256], 256, [m];
        V: mbarrier.try_wait.parity.shared.b64 %p2, [m], 1; @!%p2 bra V;
        cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r5], 512;"""
    half = len(x) // 2
    expected = np.concatenate([COMBINE[name](x[:half], x[half:]), x[half:]])
    assert result(body, x, np.zeros_like(x)).tolist() == expected.tolist()


@all_rows
@pytest.mark.parametrize(("name", "kind"), [*SUMS, *ORDERS, *STEPS, *LOGIC])
def test_one_value_is_combined_and_its_bytes_are_counted(name: str, kind: str) -> None:
    x = noise(512, 4, kind)
    wide = x.itemsize == 8
    register = "%rd4" if wide else "%r8"
    load = f"ld.global.b{8 * x.itemsize} {register}, [%rd1+64];"
    body = f"""{BRING} {load} mbarrier.arrive.expect_tx.shared.b64 _, [m], {x.itemsize};
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{name}.{kind}
            [%r5+32], {register}, [m];
        V: mbarrier.try_wait.parity.shared.b64 %p2, [m], 1; @!%p2 bra V;
        cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r5], 512;"""
    expected = x.copy()
    at, of = 32 // x.itemsize, 64 // x.itemsize
    expected[at : at + 1] = COMBINE[name](x[at : at + 1], x[of : of + 1])
    assert result(body, x, np.zeros_like(x)).tolist() == expected.tolist()


@pytest.mark.parametrize(("suffix", "load", "value", "nbytes"), [
    ("b32", "ld.global.b32 %r8, [%rd1+64]", "%r8", 4),
    ("weak.s32", "ld.global.b32 %r8, [%rd1+64]", "%r8", 4),
    ("f32", "ld.global.f32 %f1, [%rd1+64]", "%f1", 4),
    ("u64", "ld.global.b64 %rd4, [%rd1+64]", "%rd4", 8),
    ("f64", "ld.global.f64 %fd1, [%rd1+64]", "%fd1", 8),
    ("v2.u32", "ld.global.v2.b32 {%r8, %r9}, [%rd1+64]", "{%r8, %r9}", 8),
    ("v2.b64", "ld.global.v2.b64 {%rd4, %rd5}, [%rd1+64]", "{%rd4, %rd5}", 16),
    ("v4.f32", "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+64]", "{%f1, %f2, %f3, %f4}", 16),
    ("weak.v4.b32", "ld.global.v4.b32 {%r8, %r9, %r10, %r11}, [%rd1+64]",
     "{%r8, %r9, %r10, %r11}", 16),
])  # fmt: skip
def test_stored_bytes_are_counted(suffix: str, load: str, value: str, nbytes: int) -> None:
    x = noise(512, 5, "u32").view(np.uint8)
    weak = ".weak" if suffix.startswith("weak") else ""
    types = suffix.removeprefix("weak.")
    body = f"""{BRING} {load}; mbarrier.arrive.expect_tx.shared.b64 _, [m], {nbytes};
        st.async{weak}.shared::cluster.mbarrier::complete_tx::bytes.{types} [%r5+32], {value}, [m];
        V: mbarrier.try_wait.parity.shared.b64 %p2, [m], 1; @!%p2 bra V;
        cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r5], 512;"""
    expected = x.copy()
    expected[32 : 32 + nbytes] = x[64 : 64 + nbytes]
    assert result(body, x, np.zeros_like(x)).tolist() == expected.tolist()
