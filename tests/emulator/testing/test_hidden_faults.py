"""Faults that rare inputs, another compiler or leftovers show, and that a tolerance may hide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from cudadrv.testing import strategies as st
from cudadrv.testing.verify import Example, KernelCase, Verdict, VerifyOptions, verify

QUICK: Final = VerifyOptions(
    examples=12, seconds=900, database=None, checks=("init", "bounds"), explain=False
)
N: Final = st.sizes(1, 300)


def verdict_of(body: str, before: str = "", **fields: Any) -> Verdict:
    more = ", const float* w" if "w" in fields.get("arguments", ()) else ""
    source = (
        f'{before}\nextern "C" __global__ void k(int n, const float* x, float* out{more}) {{\n'
        f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {body}\n}}"
    )
    standard = {
        "arguments": {"n": N, "x": st.arrays(np.float32, N), "out": st.unwritten(np.float32, N)},
        "reference": lambda x: {"out": 2 * x},
        "launch": st.launch_configs(threads=N),
    }
    return verify(KernelCase(source, **{**standard, **fields}), QUICK)


# What the preprocessor selects, and whether it changes values.
BUILDS: Final = {
    "#if __has_include(<climits>)": True,
    "#ifndef __NVCC__": True,
    "#if defined(_WIN32) || defined(__GNUC__)": True,
    "#ifdef __CUDACC_RTC_MINIMAL__": False,
    "#if __has_include(<cuda_fp16.h>)": False,
}


@pytest.mark.slow
@pytest.mark.parametrize("condition", BUILDS)
def test_a_kernel_that_detects_another_compiler_is_found(condition: str) -> None:
    is_found = BUILDS[condition]
    other = "1.f" if is_found else "0.f"
    first, second = ("0.f", other) if condition.startswith("#ifn") else (other, "0.f")
    before = f"{condition}\n#define OFFSET {first}\n#else\n#define OFFSET {second}\n#endif"
    verdict = verdict_of("if (i < n) out[i] = 2 * x[i] + OFFSET;", before)
    assert verdict.outcome == ("found" if is_found else "verified"), str(verdict)
    if is_found:
        assert verdict.findings[0].note.startswith("its results depend on"), str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("index", ["unsigned short", "unsigned"])
def test_an_index_of_16_bits_is_found_by_two_long_sizes(index: str) -> None:
    rows, columns = st.sizes(1, 300), st.sizes(1, 300)
    kernel = KernelCase(
        'extern "C" __global__ void k(int rows, int columns, const float* x, float* out) {\n'
        "    int c = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    int r = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "    if (r >= rows || c >= columns) return;\n"
        f"    {index} at = r * columns + c;\n    out[r * columns + c] = 2 * x[at];\n}}",
        arguments={
            "rows": rows,
            "columns": columns,
            "x": st.arrays(np.float32, (rows, columns)),
            "out": st.unwritten(np.float32, (rows, columns)),
        },
        reference=lambda x: {"out": 2 * x},
        launch=st.launch_configs(threads=(columns, rows)),
    )
    verdict = verify(kernel, QUICK)
    assert verdict.outcome == ("verified" if index == "unsigned" else "found"), str(verdict)


# What a kernel computes of x, and whether a constant of it is a limit.
LIMITS: Final = {
    "fminf(fmaxf(2 * x[i], -1000.f), 896.f)": True,
    "x[i] < -200.f ? x[i] + x[i] : 2 * x[i]": False,
}


@pytest.mark.slow
def test_wrong_values_beyond_a_comparison_are_found() -> None:
    verdict = verdict_of("if (i < n) out[i] = x[i] < -200.f ? -400.f : 2 * x[i];")
    assert [finding.check for finding in verdict.findings] == ["values"], str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("value", LIMITS)
def test_wrong_values_beyond_a_constant_are_a_suspicion(value: str) -> None:
    verdict = verdict_of(f"if (i < n) out[i] = {value};")
    assert verdict.is_verified, str(verdict)
    assert (
        any("a constant of the kernel, values are wrong" in each for each in verdict.suspicions)
        is (LIMITS[value])
    ), str(verdict)


@pytest.mark.slow
def test_an_exponential_that_overflows_beyond_a_constant_is_no_suspicion() -> None:
    body = "if (i < n) out[i] = expf(fminf(x[i], 88.3762626647949f));"
    verdict = verdict_of(body, reference=lambda x: {"out": np.exp(x.astype(np.float64))})
    assert verdict.is_verified, str(verdict)
    assert not verdict.suspicions, str(verdict)


@pytest.mark.slow
def test_a_product_that_a_probe_of_the_weights_skips_is_found() -> None:
    verdict = verdict_of(
        "if (i >= n) return; unsigned any = 0;\n"
        "    for (int p = 0; p < 8; ++p) any |= __float_as_uint(w[p * (n - 1) / 7]);\n"
        "    out[i] = any ? x[i] + w[i] * x[i] : x[i];",
        arguments={
            "n": N,
            "x": st.arrays(np.float32, N),
            "out": st.unwritten(np.float32, N),
            "w": st.arrays(np.float32, N),
        },
        reference=lambda x, w: {"out": x + w * x},
    )
    assert verdict.outcome == "found", str(verdict)


SCRATCH: Final = """extern "C" __global__
void k(int n, const float* x, float* scratch, float* out) {
    bool same = KEPT;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        out[i] = same ? scratch[i] : 2 * x[i];
        scratch[i] = out[i];
    }
    if (threadIdx.x == 0) { scratch[n] = x[0]; scratch[n + 1] = x[n - 1]; scratch[n + 2] = n; }
}"""
_SAME: Final = "scratch[n] == x[0] && scratch[n + 1] == x[n - 1] && scratch[n + 2] == n"


@pytest.mark.slow
@pytest.mark.parametrize(("kept", "outcome"), [(_SAME, "found"), ("false", "verified")])
def test_a_result_that_is_kept_in_a_scratch_array_is_found(kept: str, outcome: str) -> None:
    kernel = KernelCase(
        SCRATCH.replace("KEPT", kept),
        arguments={
            "n": N,
            "x": st.arrays(np.float32, N),
            "scratch": st.arrays(np.float32, N + 3),
            "out": st.unwritten(np.float32, N),
        },
        reference=lambda x: {"out": 2 * x, "scratch": None},
        launch=st.launch_configs(blocks=1, block=[32, 64]),
    )
    verdict = verify(kernel, replace(QUICK, checks=("bounds",)))
    assert verdict.outcome == outcome, str(verdict)
    for finding in verdict.findings:
        assert finding.example.left == ("scratch",)
        assert "finds scratch as the one before leaves it" in str(finding)
        assert Example.from_json(finding.example.to_json()).left == ("scratch",)
