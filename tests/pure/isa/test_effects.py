"""What a kernel may touch, by its PTX: listed for kernels of known accesses."""

from __future__ import annotations

import pytest

import ptx
from ptx.isa.effects import OTHER, Effects, effects_of
from ptx.isa.module import parse
from tests.rows import all_rows

HEAD = """
__device__ int memo[8];
__device__ int counter;
__constant__ float table[4];
__device__ const float fixed[2] = {1, 2};
__device__ __noinline__ void through(float* p, float v) { *p = v; }
"""
ALL = ("argument 0", "argument 1", "argument 2", "argument 3")


def effects(body: str, before: str = HEAD) -> Effects:
    source = (
        f'{before}extern "C" __global__ void k(const float* x, float* y, int n, size_t pitch) {{\n'
        f"    int i = threadIdx.x;\n    {body}\n}}"
    )
    options = ptx.CompileOptions(extra=("--diag-suppress=177",))  # unused variables
    module = parse(ptx.compile(source, options).data.decode())
    return effects_of(module, "k")


@all_rows
@pytest.mark.parametrize(
    ("body", "reads", "writes", "updates", "kept", "hardware", "calls"),
    [
        ("", (), (), (), (), (), ()),
        ("y[i] = x[i];", ("argument 0",), ("argument 1",), (), (), (), ()),
        ("y[i * pitch] = x[(n - i) * pitch + 3];",
         ("argument 0",), ("argument 1",), (), (), (), ()),
        ("const float* p = n > 3 ? x : y; y[0] = p[i];", ("argument 0", "argument 1"),
         ("argument 1",), (), (), (), ()),
        ("for (const float* p = x; p < x + n; p += 4) y[i] += *p;",
         ("argument 0", "argument 1"), ("argument 1",), (), (), (), ()),
        ("__shared__ float s[64]; s[i] = x[i]; __syncthreads(); y[i] = s[63 - i];",
         ("argument 0",), ("argument 1",), (), (), (), ()),
        ("float l[8]; for (int k = 0; k < n; ++k) l[k & 7] = x[k]; y[i] = l[i & 7];",
         ("argument 0",), ("argument 1",), (), (), (), ()),
        ("atomicAdd(y + i, 1.f);", (), (), ("argument 1",), (), (), ()),
        ("y[i] = table[i & 3] + fixed[i & 1];",
         ("table", "fixed"), ("argument 1",), (), (), (), ()),
        ("if (!memo[i & 7]) memo[i & 7] = n; y[i] = memo[i & 7];", ("memo",),
         ("memo", "argument 1"), (), ("memo",), (), ()),
        ("y[i] = atomicAdd(&counter, 1);", (), ("argument 1",), ("counter",), ("counter",), (), ()),
        ("y[i] = clock64();", (), ("argument 1",), (), (), ("%clock64",), ()),
        ('unsigned s; asm("mov.u32 %0, %smid;" : "=r"(s)); y[i] = s;', (), ("argument 1",), (), (),
         ("%smid",), ()),
        ("((float**)x)[i][2] = 1;", ("argument 0",), (OTHER,), (), (), (), ()),
        ("*(float*)pitch = 1;", (), ("argument 3",), (), (), (), ()),
        ("*(float*)4096 = 1;", (), (OTHER,), (), (), (), ()),
        ("through(y + i, 1);", (), tuple(sorted((*ALL, OTHER))), (), (), (), ()),
    ],
)  # fmt: skip
def test_a_kernel_may_touch_what_its_addresses_come_from(
    body: str,
    reads: tuple[str, ...],
    writes: tuple[str, ...],
    updates: tuple[str, ...],
    kept: tuple[str, ...],
    hardware: tuple[str, ...],
    calls: tuple[str, ...],
) -> None:
    found = effects(body)
    for name, wanted in (
        ("reads", reads), ("writes", writes), ("updates", updates), ("kept", kept),
        ("hardware", hardware), ("calls", calls),
    ):  # fmt: skip
        assert set(getattr(found, name)) == set(wanted), (body, name, found)


def test_a_call_without_a_body_is_listed() -> None:
    assert effects('if (i == 0) printf("%d", n);').calls == ("vprintf",)


def test_functions_of_a_table_are_followed() -> None:
    before = """__device__ int calls;
    __device__ __noinline__ int count(int v) { return v + atomicAdd(&calls, 1); }
    __device__ __noinline__ int late(int v) { return v + clock64(); }
    __device__ int (*table[2])(int) = {count, late};
    """
    found = effects("y[i] = table[n & 1](n);", before)
    assert (found.kept, found.hardware, found.calls) == (("calls",), ("%clock64",), ("an address",))


def test_atomic_operations_are_listed_with_their_types() -> None:
    body = "atomicAdd(y + i, 1.f); atomicMax(&counter, n); atomicCAS(memo, 1, n);"
    assert set(effects(body).atomics) == {"add.f32", "max.s32", "cas.b32"}
