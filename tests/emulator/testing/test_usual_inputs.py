"""Kernels that are wrong for launches, sizes and contents that users have, and few draws have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudadrv import LaunchConfig
from cudadrv.testing import strategies as st
from cudadrv.testing.strategies import DrawnArray
from cudadrv.testing.verify import KernelCase, Verdict, VerifyOptions, verify
from cudadrv.testing.verify.contents import allowed_differences
from cudadrv.testing.verify.verdict import Example

QUICK = VerifyOptions(examples=20, seconds=900, database=None, explain=False)


def scale(body: str, most: int = 300, before: str = "", **fields: Any) -> KernelCase:
    """Return a case of `y = 2 * x`; `body` may change the value `v` of element `i`."""
    n = st.sizes(1, most)
    source = f"""{before}
    extern "C" __global__ void scale(int n, const float* x, float* y) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
        float v = 2 * x[i]; {body} y[i] = v; }}"""
    standard = {
        "arguments": {"n": n, "x": st.arrays(np.float32, n), "y": st.unwritten(np.float32, n)},
        "launch": st.launch_configs(threads=n),
        "reference": lambda x: {"y": 2 * x},
    }
    return KernelCase(source, **{**standard, **fields})


def plane(body: str, most: int) -> KernelCase:
    """Return a case of `y = 2 * x` with rows and columns."""
    n, m = st.sizes(1, most), st.sizes(1, most)
    source = f"""extern "C" __global__ void scale(int n, int m, const float* x, float* y) {{
        int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
        if (r >= n || c >= m) return;
        int i = r * m + c; float v = 2 * x[i]; {body} y[i] = v; }}"""
    arrays = {"x": st.arrays(np.float32, (n, m)), "y": st.unwritten(np.float32, (n, m))}
    return KernelCase(
        source,
        arguments={"n": n, "m": m, **arrays},
        launch=st.launch_configs(threads=(m, n)),
        reference=lambda x: {"y": 2 * x},
    )


def found_by(kernel: KernelCase) -> str:
    """Return the measure that finds wrong values, or "drawn"; "" if nothing does."""
    verdict = verify(kernel, QUICK)
    assert {finding.check for finding in verdict.findings} <= {"values"}, str(verdict)
    return last_measure(verdict) if verdict.findings else ""


def last_measure(verdict: Verdict) -> str:
    return ["drawn", *(measure.name for measure in verdict.measures)][-1]


@pytest.mark.slow
def test_a_kernel_that_is_wrong_where_all_sizes_are_large_is_found() -> None:
    assert found_by(plane("if (n * m > 85000) v = 0;", 300)) == "sizes"


@pytest.mark.slow
def test_a_kernel_that_is_wrong_for_round_sizes_is_found() -> None:
    assert found_by(scale("v += __clz(n % 1000) >> 5;", most=4096)) == "sizes"


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["blockDim.x % 192 == 0", "blockDim.x == 320"])
def test_a_kernel_that_is_wrong_for_some_multiples_of_a_warp_is_found(condition: str) -> None:
    assert found_by(scale(f"if ({condition}) v = 0;")) in ("drawn", "geometry")


@pytest.mark.slow
def test_a_kernel_that_is_wrong_for_blocks_higher_than_wide_is_found() -> None:
    assert found_by(plane("if (blockDim.y > blockDim.x) v = 0;", 20)) in ("drawn", "geometry")


@pytest.mark.slow
def test_a_kernel_that_is_wrong_with_more_blocks_than_needed_is_found() -> None:
    assert found_by(scale("if ((gridDim.x - 1) * blockDim.x >= n) v = 0;")) == "geometry"


@pytest.mark.slow
def test_a_kernel_that_needs_its_number_of_blocks_is_verified() -> None:
    n = st.sizes(1, 300)
    kernel = KernelCase(
        """extern "C" __global__ void sums(int n, const int* x, int* y) {
            int i = blockIdx.x * 32 + threadIdx.x, v = i < n ? x[i] : 0;
            v = __reduce_add_sync(~0u, v); if (threadIdx.x == 0) y[blockIdx.x] = v; }""",
        arguments={
            "n": n,
            "x": st.arrays(np.int32, n),
            "y": st.unwritten(np.int32, (n + 31) // 32),
        },
        launch=st.launch_configs(threads=n, block=32),
        reference=lambda x: {"y": np.add.reduceat(x, np.arange(0, len(x), 32))},
    )
    verdict = verify(kernel, QUICK)
    assert verdict.is_verified, str(verdict)


ALL: dict[str, str] = {"ones": "x[k] == 1", "counting numbers": "x[k] == k"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_a_kernel_that_is_wrong_for_usual_arrays_is_found(name: str, dtype: str) -> None:
    n, kind = st.sizes(1, 300), {"f4": "float", "i4": "int"}[dtype]
    kernel = KernelCase(
        f"""extern "C" __global__ void scale(int n, const {kind}* x, {kind}* y) {{
            int all = n > 4;
            for (int k = threadIdx.x; k < n; k += 64) all &= {ALL[name]};
            all = __syncthreads_and(all);
            for (int k = threadIdx.x; k < n; k += 64) y[k] = 2 * x[k] + all; }}""",
        arguments={"n": n, "x": st.arrays(dtype, n), "y": st.unwritten(dtype, n)},
        launch=st.launch_configs(blocks=1, block=64),
        reference=lambda x: {"y": 2 * x},
    )
    assert found_by(kernel) in ("drawn", "contents")


LIMITS = {
    "an element": scale("v = fminf(v, 200);"),
    "a comparison": scale("if (x[i] > 1000) v = 2000;"),
    "a sum": scale("float s = 0; for (int k = 0; k < n; k++) s += x[k]; if (s > 3000) v = 0;"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITS)
def test_a_kernel_that_is_wrong_above_its_own_limit_is_found(name: str) -> None:
    assert found_by(LIMITS[name]) == "contents"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "function"),
    [
        ("v = expf(fminf(x[i], 88));", np.exp),
        ("v = x[i] > 100 ? x[i] : log1pf(expf(x[i]));", lambda x: np.logaddexp(0, x)),
        ("v = sinf(x[i]);", np.sin),
        ("v = powf(fabsf(x[i]), 1.5f);", lambda x: np.abs(x) ** 1.5),
        ("v = tanhf(x[i]);", np.tanh),
        ("v = erff(x[i]) + lgammaf(1 + x[i] * x[i]);", None),
    ],
)
def test_a_right_kernel_with_limits_is_verified(body: str, function: Any) -> None:
    if function is None:
        scipy = pytest.importorskip("scipy.special")
        function = lambda x: scipy.erf(x) + scipy.gammaln(1 + x * x)  # noqa: E731
    kernel = scale(body, reference=lambda x: {"y": function(x.astype(np.float64))})
    verdict = verify(kernel, QUICK)
    assert verdict.is_verified, str(verdict)


def test_a_result_may_be_off_by_what_either_factor_changes_alone() -> None:
    """Where changes of both factors cancel, no element of a right kernel had any allowance."""
    n = st.sizes(64, 64)
    case = KernelCase(
        """extern "C" __global__ void k(const float* x, float s, float* y)
           { y[threadIdx.x] = sinf(x[threadIdx.x] * s); }""",
        arguments={"x": st.arrays("f4", n), "s": st.numbers("f4"), "y": st.unwritten("f4", n)},
        launch=st.launch_configs(blocks=1, block=64),
        reference=lambda x, s: {"y": np.sin(x.astype(np.float64) * float(s))},
    )
    large = np.float32(132018.75)
    x = DrawnArray(np.full(64, large), True)
    y = DrawnArray(np.zeros(64, np.float32), False)
    example = Example({"x": x, "s": large, "y": y}, LaunchConfig(1, 64))
    allowed = allowed_differences(case, example, case.expected(example), is_wide=True)
    assert np.min(allowed["y"]) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "directive", ["#ifdef __NVCC__", "#if __GNUC__ > 0", "#if __has_include(<stdio.h>)"]
)
def test_a_kernel_that_is_wrong_with_the_compiler_of_a_user_is_found(directive: str) -> None:
    assert found_by(scale(f"\n{directive}\nv += 1;\n#endif\n")) in ("drawn", "builds")


@pytest.mark.slow
def test_a_source_for_several_compilers_is_verified() -> None:
    before = """
    #if defined(_MSC_VER) && !defined(__CUDACC__)
    #include <intrin.h>
    #elif defined(__GNUC__)
    #define RESTRICT __restrict__
    #endif
    #ifdef NDEBUG
    #define CHECK(condition)
    #else
    #define CHECK(condition) assert(condition)
    #endif"""
    verdict = verify(scale("CHECK(i < n);", before=before), QUICK)
    assert verdict.is_verified, str(verdict)
