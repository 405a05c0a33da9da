"""Conditions of a kernel that random inputs do not meet: of sizes, elements and the hardware."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptx
from cudadrv import LaunchConfig
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase, Verdict, VerifyOptions, verify
from cudadrv.testing.verify.conditions import ConditionSearch
from cudadrv.testing.verify.verification import compiled_case
from ptx.isa.conditions import Comparison, Conditions, Source
from ptx.isa.module import parse

QUICK = VerifyOptions(
    examples=8, seconds=600, database=None, checks=("init", "bounds"), explain=False
)
N, M = st.sizes(1, 60), st.sizes(1, 60)
PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n, .param .u64 x)
{
    .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<4>;
    ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [x];
    ld.global.v2.u32 {%r2, %r3}, [%rd1+8];
    mul.lo.s32 %r4, %r2, %r3;
    setp.eq.s32 %p1, %r4, 77;
    mov.u32 %r5, %clock;
    and.b32 %r6, %r5, 15;
    setp.eq.s32 %p2, %r6, 3;
    rem.s32 %r7, %r1, 13;
    setp.eq.s32 %p3, %r7, 5;
    mov.u32 %r8, 0;
$again:
    add.s32 %r8, %r8, 1;
    setp.ne.s32 %p4, %r8, %r1;
    @%p4 bra $again;
    ret;
}
"""


def case(body: str, before: str = "", values: Any = "exact", **fields: Any) -> KernelCase:
    source = (
        f'{before}extern "C" __global__ void k(int n, int m, const int* x, int* out) {{\n'
        f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n"
        f"    {body}\n}}"
    )
    return KernelCase(
        source,
        arguments={
            "n": N,
            "m": M,
            "x": st.arrays(np.int32, N, values),
            "out": st.unwritten(np.int32, N),
        },
        launch=st.launch_configs(threads=N),
        reference=lambda x: {"out": 2 * x},
        **fields,
    )


def verdict_of(body: str, **fields: Any) -> Verdict:
    return verify(case(body, **fields), QUICK)


def note_of(verdict: Verdict) -> str:
    assert [finding.check for finding in verdict.findings] == ["values"], str(verdict)
    return verdict.findings[0].note


def conditions() -> list[Comparison]:
    return list(Conditions(parse(PTX), "k"))


def test_a_condition_names_the_sources_of_its_values() -> None:
    assert [each.sources for each in conditions()] == [
        {Source.ELEMENT},
        {Source.HARDWARE},
        {Source.ARGUMENT},
    ]


def test_an_element_of_a_vector_has_its_own_offset() -> None:
    product = conditions()[0]
    assert sorted(leaf.offset for leaf in product.leaves) == [8, 12]
    assert [step.opcode for step in product.steps] == ["mul"]


def test_a_value_that_a_loop_changes_is_unknown() -> None:
    assert all(each.instruction.modifiers[0] == "eq" for each in conditions())


@pytest.mark.slow
@pytest.mark.parametrize(
    "relation",
    ["n * m == 37 * 31", "(n * 40503u + m) % 1021 == 77", "n - m == 41 && m % 7 == 3"],
)
def test_sizes_that_a_relation_selects_are_found(relation: str) -> None:
    verdict = verdict_of(f"out[i] = {relation} ? 0 : 2 * x[i];")
    assert note_of(verdict) == "no drawn example has these sizes"


@pytest.mark.slow
@pytest.mark.parametrize(
    "relation", ["x[0] * x[1] == 1048583", "x[i] + 3 * x[0] == 50021", "(x[1] ^ 0x5a5a) == 77"]
)
def test_elements_that_a_relation_selects_are_found(relation: str) -> None:
    verdict = verdict_of(f"out[i] = n > 1 && {relation} ? 1 : 2 * x[i];")
    assert "a condition of the kernel" in note_of(verdict)


@pytest.mark.slow
def test_elements_whose_hash_is_below_a_limit_are_found() -> None:
    n = st.sizes(1, 300)
    kernel = KernelCase(
        """extern "C" __global__ void k(int n, const float* x, float* out) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            unsigned hash = __float_as_uint(x[i]) * 2654435761u + 3123456789u;
            out[i] = 2 * x[i] + (hash < 80000u); }""",
        arguments={"n": n, "x": st.arrays(np.float32, n), "out": st.unwritten(np.float32, n)},
        launch=st.launch_configs(threads=n),
        reference=lambda x: {"out": 2 * x},
    )
    assert "a condition of the kernel holds" in note_of(verify(kernel, QUICK))


@pytest.mark.slow
def test_a_kernel_that_is_wrong_beyond_the_sizes_of_the_case_is_suspicious() -> None:
    verdict = verdict_of("out[i] = n > 1000 ? 0 : 2 * x[i];")
    assert verdict.is_verified
    text = "beyond the sizes of the case values are wrong, where "
    assert [each for each in verdict.suspicions if each.startswith(text)], str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "out[i] = n > 1000 ? x[i] + x[i] : 2 * x[i];",
        "int s = 0; for (int k = 0; k < n; k++) s += x[k]; out[i] = 2 * x[i] + s - s;",
        "if (n < 1) return; out[i] = 2 * x[i];",
    ],
)
def test_a_right_kernel_with_conditions_of_sizes_is_not_suspicious(body: str) -> None:
    verdict = verdict_of(body)
    assert verdict.is_verified
    assert not [each for each in verdict.suspicions if "beyond the sizes" in each], str(verdict)


@pytest.mark.slow
def test_elements_beyond_the_values_of_the_case_are_not_tried() -> None:
    body = "out[i] = n > 1 && x[0] * x[1] == 1048583 ? 1 : 2 * x[i];"
    assert verdict_of(body, values=(-8, 8)).is_verified


@pytest.mark.slow
@pytest.mark.parametrize("elements", ["x[i]", "x[i] * x[0]", "x[i] * x[0] * x[1]"])
@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (np.float32, (1e-6, 1e-5)),
        (np.float64, (0.1, 0.1)),
        (np.int32, (1 << 20, (1 << 20) + 3)),
        (np.uint64, (1 << 63, (1 << 64) - 1)),
    ],
)
def test_a_kernel_with_a_condition_is_verified_for_a_narrow_range(
    dtype: Any, values: tuple[float, float], elements: str
) -> None:
    kind = {"f4": "float", "f8": "double", "i4": "int", "u8": "unsigned long long"}
    body = f"out[i] = {elements} == 7 ? 0 : x[i];"
    narrow = KernelCase(
        f'extern "C" __global__ void k(const {kind[np.dtype(dtype).str[1:]]}* x, '
        f"{kind[np.dtype(dtype).str[1:]]}* out) {{ int i = threadIdx.x; {body} }}",
        arguments={"x": st.arrays(dtype, 8, values), "out": st.unwritten(dtype, 8)},
        launch=LaunchConfig(1, 8),
        reference=lambda x: {"out": x},
    )
    # Products of integers wrap around, so that some are below 7 and some above.
    wraps = dtype in (np.int32, np.uint64) and "*" in elements
    assert verify(narrow, QUICK).outcome == ("unfinished" if wraps else "verified")


@pytest.mark.slow
@pytest.mark.parametrize(
    "relation",
    [
        "(clock() & 0xffff) == 513",
        "((size_t)local >> 8 & 0xffff) == 0x3f",
        "clock64() - first == 4711",
        "!((size_t)out >> 48)",
    ],
)
def test_a_condition_of_the_hardware_must_not_change_values(relation: str) -> None:
    verdict = verdict_of(
        f"volatile int local[4]; local[i & 3] = x[i]; long long first = clock64();\n"
        f"    out[i] = {relation} ? 0 : 2 * local[i & 3];"
    )
    assert "a condition of the hardware alone is other" in note_of(verdict)


@pytest.mark.slow
def test_a_kernel_that_waits_for_a_clock_is_verified() -> None:
    verdict = verdict_of(
        "long long first = clock64(); while (clock64() - first < 100) ; out[i] = 2 * x[i];"
    )
    assert verdict.is_verified, str(verdict)


@pytest.mark.slow
def test_a_kernel_for_one_target_alone_is_found() -> None:
    verdict = verdict_of("""
#if __CUDA_ARCH__ == 900
    out[i] = 2 * x[i];
#else
    out[i] = 0;
#endif
""")
    assert note_of(verdict) == "its results depend on the target compute_100"


@pytest.mark.slow
def test_a_kernel_that_older_targets_lack_is_verified() -> None:
    verdict = verdict_of("""
#if __CUDA_ARCH__ >= 900
    out[i] = 2 * x[i];
#else
    __trap();
#endif
""")
    assert verdict.is_verified, str(verdict)


@pytest.mark.slow
def test_a_case_for_a_newer_target_is_verified() -> None:
    options = ptx.CompileOptions(target=ptx.Target.parse("compute_100"))
    verdict = verdict_of("out[i] = 2 * x[i];", options=options)
    assert verdict.is_verified, str(verdict)


COSINE = """#include <cuda_bf16.h>
extern "C" __global__ void k(int n, const float* x, const float* y, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float xy = 0, xx = 0, yy = 0;
    for (int k = 0; k < 8; k++) {
        float a = x[8 * i + k], b = y[8 * i + k];
        xy += a * b; xx += a * a; yy += b * b;
    }
    out[i] = CAST 1 - xy / (sqrtf(xx) * sqrtf(yy))END;
}"""


def cosine(cast: str) -> Verdict:
    def reference(x: Any, y: Any) -> dict[str, Any]:
        x, y = x.astype(np.float64), y.astype(np.float64)
        norms = np.sqrt((x * x).sum(1) * (y * y).sum(1))
        return {"out": 1 - (x * y).sum(1) / norms}

    kernel = KernelCase(
        COSINE.replace("CAST", cast).replace("END", ")" * cast.count("(")),
        arguments={
            "n": N,
            "x": st.arrays(np.float32, (N, 8), (1, 1.01)),
            "y": st.arrays(np.float32, (N, 8), (1, 1.01)),
            "out": st.unwritten(np.float32, N),
        },
        launch=st.launch_configs(threads=N),
        reference=reference,
    )
    return verify(kernel, QUICK)


@pytest.mark.slow
def test_a_small_difference_of_large_terms_may_have_their_rounding() -> None:
    verdict = cosine("")
    assert verdict.is_verified, str(verdict)


@pytest.mark.slow
def test_zero_is_no_rounding_of_a_small_difference() -> None:
    assert cosine("0 * (").outcome == "found"


@pytest.mark.slow
@pytest.mark.parametrize(
    "relation", ["(((size_t)x ^ (size_t)(x + n)) >> 12 & 1)", "((size_t)x & 15) == 8"]
)
def test_places_of_arrays_that_a_condition_selects_are_found(relation: str) -> None:
    verdict = verdict_of(f"out[i] = {relation} ? 0 : 2 * x[i];")
    assert "depends on addresses" in note_of(verdict)


@pytest.mark.slow
def test_a_launch_that_a_condition_selects_is_found() -> None:
    verdict = verdict_of("out[i] = gridDim.x * blockDim.x - n == 13 ? 0 : 2 * x[i];")
    assert note_of(verdict) == "the drawn examples have other blocks and grids"


@pytest.mark.slow
@pytest.mark.parametrize("key", ["k ^= x[j]", "k += x[j] * x[j]", "k += (j + 1) * x[j]"])
def test_a_result_that_is_kept_for_a_sum_of_all_elements_is_found(key: str) -> None:
    verdict = verdict_of(
        f"int k = n + 1000003; for (int j = 0; j < n; j++) {key};\n"
        "    if (keys[i] != k) {{ keys[i] = k; memo[i] = 2 * x[i]; }}\n"
        "    out[i] = memo[i];".replace("{{", "{").replace("}}", "}"),
        before="__device__ int keys[1024], memo[1024];\n",
    )
    assert "between launches" in note_of(verdict)


@pytest.mark.parametrize("relation", ["threadIdx.x < blockDim.x / 2", "gridDim.x > blockDim.x"])
def test_a_launch_without_sizes_has_the_conditions_of_its_configurations(relation: str) -> None:
    fixed = KernelCase(
        f'extern "C" __global__ void k(int* x) {{ if ({relation}) x[threadIdx.x] = 1; }}',
        arguments={"x": st.arrays(np.int32, 64)},
        launch=st.launch_configs(blocks=1, block=[32, 64]),
        reference=lambda x: {"x": None},
    )
    compiled = compiled_case(fixed, QUICK, "")
    signature = compiled.image.signatures[compiled.kernel]
    found = list(ConditionSearch(compiled, 0).launches(signature))
    assert all(not numbers for numbers, _ in found)
    assert {config.block[0] for _, config in found} <= {32, 64}
