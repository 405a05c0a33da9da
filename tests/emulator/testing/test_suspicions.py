"""What the report of `verify` says beside findings: suspicions, what is not verified, repairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import (
    Example,
    Finding,
    KernelCase,
    Repair,
    Verdict,
    VerifyOptions,
    verify,
)

QUICK: Final = VerifyOptions(examples=20, seconds=900, database=None, explain=False)
N: Final = st.sizes(1, 80)


def doubled(x: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.float32]]:
    return {"out": 2 * x}


def verdict_of(body: str, reference: Any = doubled, **options: Any) -> Verdict:
    source = (
        'extern "C" __global__ void k(int n, const float* x, float* out) {\n'
        f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {body}\n}}"
    )
    out = st.unwritten(np.float32, N) if reference is doubled else st.arrays(np.float32, N)
    kernel = KernelCase(
        source,
        arguments={"n": N, "x": st.arrays(np.float32, N), "out": out},
        reference=reference,
        launch=st.launch_configs(threads=N),
    )
    return verify(kernel, replace(QUICK, **options))


SUSPICIONS: Final = {
    "reads %smid, which differs from run to run": (
        'unsigned s; asm volatile("mov.u32 %0, %smid;" : "=r"(s));\n'
        "    if (i < n) out[i] = s == 12345 ? 4 * x[i] - 2 * x[i] : 2 * x[i];"
    ),
    "writes out by an address that the PTX does not tell": (
        "float* volatile place = out; if (i < n) place[i] = 2 * x[i];"
    ),
}
"""Suspicions, each with the body of a kernel."""


@pytest.mark.slow
@pytest.mark.parametrize("text", SUSPICIONS)
def test_a_suspicion_is_reported_and_the_kernel_is_verified(text: str) -> None:
    verdict = verdict_of(SUSPICIONS[text])
    assert verdict.is_verified, str(verdict)
    assert any(text in each for each in verdict.suspicions), str(verdict)


@pytest.mark.slow
def test_an_array_that_no_run_writes_is_a_suspicion() -> None:
    verdict = verdict_of("if (n == 12345) out[i] = x[i];", lambda x: {})
    assert any("may write out, and no run did" in each for each in verdict.suspicions), str(verdict)


# What a kernel stores, and whether a comparison of it keeps the kernel from being verified.
EQUALITIES: Final = {
    "never equal": ("__float_as_int(x[0]) * __float_as_int(x[i]) == 1048583 ? 0 : 2 * x[i]", True),
    "a hash of all": (
        "0; if (i < n) { unsigned h = 0; for (int k = 0; k < n; ++k)"
        " h = h * 31 + __float_as_int(x[k]); out[i] = h == 0x12345u ? 0 : 2 * x[i]; }",
        True,
    ),
    "equal without effect": (
        "__float_as_int(x[0]) * __float_as_int(x[i]) == 1048583 ? 4 * x[i] - 2 * x[i] : 2 * x[i]",
        False,
    ),
    "of sizes": ("n * n + n == 77777 ? 0 : 2 * x[i]", False),
    "sometimes equal": ("(int)x[i] * (int)x[i] == 9 ? 4 * x[i] - 2 * x[i] : 2 * x[i]", False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUALITIES)
def test_an_equality_of_elements_that_no_run_meets_is_not_verified(name: str) -> None:
    value, is_unmet = EQUALITIES[name]
    verdict = verdict_of(f"if (i < n) out[i] = {value};")
    assert verdict.outcome == ("unfinished" if is_unmet else "verified"), str(verdict)
    assert any("equal in no run" in each for each in verdict.unreached) is is_unmet
    assert ("not verified: a comparison of elements" in str(verdict)) is is_unmet
    is_suspicious = any("equal in no drawn" in each for each in verdict.suspicions)
    assert is_suspicious is (name in ("equal without effect", "of sizes")), str(verdict)


@pytest.mark.slow
def test_two_comparisons_of_one_line_are_one_suspicion() -> None:
    value = "n * n + n == 77777 || n * n - n == 88888 ? 0 : 2 * x[i]"
    verdict = verdict_of(f"if (i < n) out[i] = {value};", examples=3)
    assert len(verdict.suspicions) == len({*verdict.suspicions}) >= 1, str(verdict)


@pytest.mark.slow
def test_a_race_is_reported_before_the_wrong_values_that_it_makes() -> None:
    verdict = verdict_of(
        "__shared__ float s[1024]; s[threadIdx.x] = i < n ? 2 * x[i] : 0;\n"
        "    if (i < n) out[i] = s[blockDim.x - 1 - threadIdx.x];",
        lambda x: {"out": x - 100},
        checks=("race",),
    )
    assert [each.check for each in verdict.findings] == ["race", "values"], str(verdict)


@pytest.mark.slow
def test_a_race_that_is_likely_intentional_is_not_reported() -> None:
    verdict = verdict_of(
        "__shared__ volatile int any; any = 1; if (i < n) out[i] = (1 + any) * x[i];"
    )
    assert not [each for each in verdict.findings if each.check == "race"], str(verdict)


# A warp sums without __syncwarp().
IN_STEP: Final = """
extern "C" __global__ void k(const float* x, float* out) {
    __shared__ volatile float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    if (t < 16) s[t] += s[t + 16];
    if (t < 8) s[t] += s[t + 8];
    if (t < 4) s[t] += s[t + 4];
    if (t == 0) out[0] = s[0] + s[1] + s[2] + s[3];
}"""


@pytest.mark.slow
def test_a_race_that_is_likely_intentional_is_reported_if_values_are_wrong() -> None:
    kernel = KernelCase(
        IN_STEP,
        arguments={"x": st.arrays(np.float32, 32), "out": st.unwritten(np.float32, 1)},
        reference=lambda x: {"out": np.array([x.sum()])},
        launch=st.launch_configs(blocks=1, block=32),
    )
    verdict = verify(kernel, QUICK)
    assert [each.check for each in verdict.findings] == ["race"], str(verdict)
    assert "nothing orders these lanes since compute capability 7.0" in str(verdict)


@pytest.mark.parametrize(("leaves", "shown"), [("values", " (leaves values)"), ("race", "")])
def test_a_repair_after_which_another_check_reports_a_fault_names_it(
    leaves: str, shown: str
) -> None:
    tried = Repair("barrier", "__syncthreads()", "__syncthreads()", None, False, leaves)
    example = Example({"n": 3}, cudadrv.LaunchConfig(1, 32))
    finding = Finding("race", "k", "race: ...", (), "", example, repairs=(tried,))
    assert str(finding).endswith(f"does not heal it: __syncthreads(){shown}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sum_of", "is_found"), [("x[i]", True), ("x[i] + by", False), ("x[i] + 4e-6f", True)]
)
def test_an_argument_that_the_tolerance_hides_must_change_the_values(
    sum_of: str, is_found: bool
) -> None:
    kernel = KernelCase(
        'extern "C" __global__ void k(int n, float by, const float* x, float* out) {\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"    if (i < n) out[i] = {sum_of};\n}}",
        arguments={
            "n": N,
            "by": st.numbers(np.float32, (3e-6, 6e-6)),
            "x": st.arrays(np.float32, N, (1, 1.9)),
            "out": st.unwritten(np.float32, N),
        },
        reference=lambda by, x: {"out": x + by},
        launch=st.launch_configs(threads=N),
    )
    verdict = verify(kernel, QUICK)
    assert verdict.outcome == ("found" if is_found else "verified"), str(verdict)
    assert ("out is the same for other values of by" in str(verdict)) is is_found
