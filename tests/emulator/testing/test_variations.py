"""Kernels that are right in a new module, at aligned addresses, on one multiprocessor only."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
from cudadrv.testing import strategies as st
from cudadrv.testing.strategies import DrawnArray
from cudadrv.testing.verify import (
    CannotVerifyError,
    Example,
    Finding,
    KernelCase,
    Tolerance,
    Verdict,
    VerifyOptions,
    verify as verified,
)
from cudadrv.testing.verify.contents import neighbours

QUICK = VerifyOptions(
    examples=8, seconds=600, database=None, checks=("race", "init", "bounds"), explain=False
)
N = st.sizes(1, 80)
MEMO = "__device__ float memo[1024]; __device__ int have[1024];\n"


def case(body: str, before: str = "", **fields: Any) -> KernelCase:
    source = (
        f'{before}extern "C" __global__ void k(int n, const float* x, float* out) {{\n'
        f"    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {body}\n}}"
    )
    standard = {
        "arguments": {"n": N, "x": st.arrays(np.float32, N), "out": st.unwritten(np.float32, N)},
        "reference": lambda x: {"out": 2 * x},
        "launch": st.launch_configs(threads=N),
    }
    return KernelCase(source, **{**standard, **fields})


def found(kernel: KernelCase, options: VerifyOptions = QUICK) -> Finding:
    verdict = verified(kernel, options)
    assert [finding.check for finding in verdict.findings] == ["values"], str(verdict)
    return verdict.findings[0]


def test_a_kernel_that_returns_its_first_result_again_is_found_by_two_launches() -> None:
    finding = found(
        case(
            "if (i < n) { if (!have[i]) { memo[i] = 2 * x[i]; have[i] = 1; } out[i] = memo[i]; }",
            MEMO,
        )
    )
    (earlier,) = finding.example.earlier
    assert not np.array_equal(
        earlier.arguments["x"].contents[:1],  # type: ignore[union-attr]  # an array
        finding.example.arguments["x"].contents[:1],  # type: ignore[union-attr]  # an array
    )
    assert "between launches" in finding.note
    assert "before it, launch 1 of the same module:" in str(finding)


def test_a_kernel_that_is_wrong_from_the_fourth_launch_on_is_found_by_four() -> None:
    finding = found(
        case(
            "if (i < n) out[i] = 2 * x[i] + (calls[i]++ < 3 ? 0.f : 1.f);",
            "__device__ int calls[1024];\n",
        )
    )
    assert len(finding.example.earlier) == 3
    assert all(each.arguments == finding.example.arguments for each in finding.example.earlier)


def test_a_kernel_that_depends_on_addresses_is_found_by_moved_arrays() -> None:
    finding = found(case("if (i < n) out[i] = (size_t)x % 256 == 0 ? 2 * x[i] : 0;"))
    assert finding.example.shift % 16 == 0 < finding.example.shift < 256
    assert "addresses" in finding.note


@pytest.mark.slow
def test_a_kernel_that_adds_in_the_lower_half_of_an_address_is_found() -> None:
    body = """if (i < n) {
        size_t base = (size_t)x; unsigned low = (unsigned)base + 4u * i;
        out[i] = 2 * *(const float*)((base >> 32 << 32) | low);
    }"""
    verdict = verified(case(body), replace(QUICK, checks=("race",)))
    assert [each.check for each in verdict.findings] == ["values"], str(verdict)
    finding = verdict.findings[0]
    assert finding.example.is_across
    assert "a multiple of 4 GiB is within each array" in str(finding)
    assert Example.from_json(finding.example.to_json()).is_across


@pytest.mark.slow
def test_a_kernel_of_many_arrays_is_verified_across_4_gib() -> None:
    names = [f"x{number}" for number in range(6)]
    kernel = KernelCase(
        f'extern "C" __global__ void k({", ".join(f"const float* {name}" for name in names)},'
        f" float* out) {{ out[threadIdx.x] = {' + '.join(f'{n}[threadIdx.x]' for n in names)}; }}",
        arguments={
            **{name: st.arrays(np.float32, 32) for name in names},
            "out": st.unwritten(np.float32, 32),
        },
        launch=cudadrv.LaunchConfig(1, 32),
        reference=lambda x0, x1, x2, x3, x4, x5: {"out": x0 + x1 + x2 + x3 + x4 + x5},
    )
    verdict = verified(kernel, QUICK)
    assert verdict.is_verified, str(verdict)


@pytest.mark.parametrize(
    "byte", [0x7B, *(pytest.param(each, marks=pytest.mark.slow) for each in range(0x70, 0x7B))]
)
def test_a_byte_past_the_end_of_a_moved_array_is_found_whatever_its_value(byte: int) -> None:
    kernel = case(
        "if (i < n) out[i] = 2 * x[i];\n"
        f"    if (i == 0 && (size_t)out % 256) *(unsigned char*)(out + n) = {byte};"
    )
    verdict = verified(kernel, replace(QUICK, examples=3, checks=("race",)))
    assert [finding.check for finding in verdict.findings] == ["bounds"], str(verdict)


def test_a_kernel_that_depends_on_the_multiprocessor_is_found() -> None:
    read = 'unsigned s; asm volatile("mov.u32 %0, %smid;" : "=r"(s));'
    finding = found(case(f"{read}\n    if (i < n) out[i] = s == blockIdx.x ? 2 * x[i] : 0;"))
    assert finding.example.hardware_seed
    assert "multiprocessors" in finding.note


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.slow)], ids=["one", "all"])
def test_right_kernels_with_state_vectors_and_clocks_are_verified(count: int) -> None:
    right = [
        case(
            "if (i < n) { calls[i] = 0; out[i] = 2 * x[i] + calls[i]; }",
            "__device__ int calls[1024];\n",
        ),
        KernelCase(
            """extern "C" __global__ void k(const float4* x, float4* out) {
                float4 v = x[threadIdx.x]; v.x *= 2; v.y *= 2; v.z *= 2; v.w *= 2;
                out[threadIdx.x] = v;
            }""",
            arguments={"x": st.arrays(np.float32, 64), "out": st.unwritten(np.float32, 64)},
            launch=cudadrv.LaunchConfig(1, 16),
            reference=lambda x: {"out": 2 * x},
        ),
        case("long long t = clock64(); if (i < n && t >= 0) out[i] = 2 * x[i];"),
    ]
    for kernel in right[:count]:
        verdict = verified(kernel, QUICK)
        assert verdict.is_verified, str(verdict)
        assert verdict.examples <= 8


READ = 'unsigned s; asm volatile("mov.u32 %0, %{};" : "=r"(s)); '
CALLS = "__device__ unsigned calls[1024];\n"
SUM = """__device__ float kept, key;
extern "C" __global__ void k(int n, const float* x, float* out) {
    if (threadIdx.x) return;
    float now = n, sum = 0; %s
    for (int i = 0; i < n; ++i) sum += x[i] * x[i];
    if (kept == 0 || now != key) { kept = sum + 1; key = now; }
    out[0] = kept - 1; }"""
KEYS = {
    "each seventh element": "for (int i = 0; i < n; i += 7) now = now * 31 + x[i];",
    "the sum of the elements": "for (int i = 0; i < n; ++i) now += x[i] + 1000 * x[0];",
    "the upper halves of the elements": (
        "unsigned h = n; for (int i = 0; i < n; ++i) h = (h ^ __float_as_uint(x[i]) >> 16) * 31;"
        " now = h >> 8;"
    ),
    "the ends": "now += 1000 * x[0] + 50000 * x[n - 1];",
}


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_a_result_that_is_kept_for_a_part_of_the_input_is_found(key: str) -> None:
    size = st.sizes(1, 300)
    kernel = KernelCase(
        SUM % KEYS[key],
        arguments={"n": size, "x": st.arrays(np.float32, size), "out": st.unwritten(np.float32, 1)},
        launch=cudadrv.LaunchConfig(1, 32),
        reference=lambda x: {"out": np.array([np.sum(x * x)])},
    )
    assert "between launches" in found(kernel).note


@pytest.mark.slow
def test_a_kernel_that_counts_launches_with_certain_contents_is_found() -> None:
    source = """__device__ int calls;
    extern "C" __global__ void k(int n, const float* x, float* out) {
        if (threadIdx.x) return;
        if (n > 3 && x[0] > x[1]) calls++;
        for (int i = 0; i < n; ++i) out[i] = calls > 3 ? 1 : 2 * x[i];
    }"""
    size = st.sizes(1, 300)
    kernel = KernelCase(
        source,
        arguments={
            "n": size,
            "x": st.arrays(np.float32, size),
            "out": st.unwritten(np.float32, size),
        },
        launch=cudadrv.LaunchConfig(1, 32),
        reference=lambda x: {"out": 2 * x},
    )
    for seed in range(4):
        finding = found(kernel, replace(QUICK, examples=30, seed=seed))
        assert "between launches" in finding.note


CHEATS = {
    "wrong after a million launches": (
        CALLS, "if (i < n) out[i] = 2 * x[i] + (calls[i]++ < 1000000u ? 0.f : 1.f);", "launches"),
    "wrong in each eighth launch": (
        CALLS, "if (i < n) out[i] = 2 * x[i] + (calls[i]++ % 8 == 7);", "launches"),
    "the last result of the same addresses": (
        MEMO + "__device__ const float* last[1024];\n",
        "if (i < n) { if (last[i] != x) { memo[i] = 2 * x[i]; last[i] = x; } out[i] = memo[i]; }",
        "launches"),
    "wrong at one size": ("", "if (i < n) out[i] = n == 61 ? 1 : 2 * x[i];", "sizes"),
    "wrong at a size that no constant tells": (
        "", "if (i < n) out[i] = (n * 2654435761u >> 26) == 39 ? 1 : 2 * x[i];", "sizes"),
    "wrong in blocks of one size": (
        "", "if (i < n) out[i] = blockDim.x == 96 ? 1 : 2 * x[i];", "sizes"),
    "wrong for one number": (
        "", "if (i < n) out[i] = x[i] == 1234.5f ? 1 : 2 * x[i];", "contents"),
    "wrong for sorted numbers": (
        "", "if (i < n) { bool up = n > 8; for (int k = 1; k < n; ++k) up &= x[k] >= x[k - 1];"
        " out[i] = up && x[0] != x[n - 1] ? 1 : 2 * x[i]; }", "contents"),
    "wrong for descending numbers": (
        "", "if (i < n) { bool down = n > 8; for (int k = 1; k < n; ++k) down &= x[k] < x[k - 1];"
        " out[i] = down ? 1 : 2 * x[i]; }", "contents"),
    "wrong for few numbers that are not zero": (
        "", "if (i < n) { int zeros = 0; for (int k = 0; k < n; ++k) zeros += x[k] == 0;"
        " out[i] = n > 20 && zeros < n && zeros * 10 > n * 9 ? 0 : 2 * x[i]; }", "contents"),
    "wrong for alternating signs": (
        "", "if (i < n) { bool turns = n > 20; for (int k = 1; k < n; ++k) turns &= x[k] * x[k - 1]"
        " < 0; out[i] = turns ? 0 : 2 * x[i]; }", "contents"),
    "wrong for one negative number": (
        "", "if (i < n) { int below = 0; for (int k = 0; k < n; ++k) below += x[k] < 0;"
        " out[i] = n > 20 && below == 1 ? 0 : 2 * x[i]; }", "contents"),
    "wrong for large numbers": (
        "", "if (i < n) out[i] = 2 * fminf(fmaxf(x[i], -10), 10);", "contents"),
    "an input that changes by its last bit": (
        "", "if (i < n) { out[i] = 2 * x[i]; ((float*)x)[i] *= 1.0000001f; }", "inputs"),
    "wrong where pointers are aligned to four bytes": (
        "", "if (i < n) out[i] = (size_t)x % 16 ? 1 : 2 * x[i];", "addresses"),
    "wrong where two pointers are aligned otherwise": (
        "", "if (i < n) out[i] = ((size_t)x ^ (size_t)out) & 255 ? 1 : 2 * x[i];", "addresses"),
    "a store before an array": (
        "", "if (i < n) out[i] = 2 * x[i]; if (i == 0 && (size_t)out % 256) out[-1] = 3;",
        "addresses"),
    "another compiler": (
        "", "if (i < n) out[i] = 2 * x[i];\n#ifndef __CUDACC_RTC__\nout[0] = 1;\n#endif", "builds"),
    "other numbers of multiprocessors": (
        "", READ.format("nsmid") + "if (i < n) out[i] = s % 4 ? 1 : 2 * x[i];", "same bits"),
}  # fmt: skip


def approximate(instruction: str, **fields: Any) -> KernelCase:
    body = f'if (i < n) {{ float r; asm("{instruction}.f32 %0, %1;" : "=f"(r) : "f"(x[i])); '
    return KernelCase(
        case(body + "out[i] = r; }").source,
        arguments={
            "n": N,
            "x": st.arrays(np.float32, N, (0.5, 1)),
            "out": st.unwritten(np.float32, N),
        },
        launch=st.launch_configs(threads=N),
        **fields,
    )


@pytest.mark.slow
def test_an_approximation_is_found_that_is_within_the_tolerance_on_the_emulator_alone() -> None:
    finding = found(approximate("tanh.approx", reference=lambda x: {"out": np.tanh(x)}))
    assert "approximate instructions" in finding.note


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instruction", "reference", "tolerance"),
    [
        ("tanh.approx", np.tanh, Tolerance(relative=1e-3)),
        ("ex2.approx", np.exp2, Tolerance()),
        (
            "{ .reg .f32 f; mov.f32 f, %1;\\n ex2.approx.ftz.f32 f, f;\\n mov.f32 %0, f; } //",
            np.exp2,
            Tolerance(),
        ),
    ],
)
def test_approximations_within_the_tolerance_are_verified(
    instruction: str, reference: Any, tolerance: Tolerance
) -> None:
    kernel = approximate(
        instruction, reference=lambda x: {"out": reference(x)}, tolerance=tolerance
    )
    verdict = verified(kernel, QUICK)
    assert verdict.is_verified, str(verdict)
    assert "approximations" in [measure.name for measure in verdict.measures]


@pytest.mark.slow
def test_a_function_of_double_that_relies_on_exact_powers_of_two_is_verified() -> None:
    kernel = KernelCase(
        'extern "C" __global__ void k(const double* x, double* out) {'
        " out[threadIdx.x] = tanh(x[threadIdx.x]); }",
        arguments={"x": st.arrays(np.float64, N), "out": st.unwritten(np.float64, N)},
        launch=st.launch_configs(blocks=1, block=N),
        reference=lambda x: {"out": np.tanh(x)},
    )
    verdict = verified(kernel, QUICK)
    assert verdict.is_verified, str(verdict)
    assert "approximations" in [measure.name for measure in verdict.measures]


@pytest.mark.slow
def test_a_kernel_that_detects_the_emulator_by_an_approximation_is_found() -> None:
    body = 'float r; asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(0.3f)); if (i < n) '
    finding = found(case(f"{body} out[i] = r == 1.23114439f ? 2 * x[i] : 0;"))
    assert "approximate instructions" in finding.note


@pytest.mark.slow
def test_a_random_state_that_is_wrong_in_one_of_256_launches_is_found_by_more_launches() -> None:
    finding = found(
        case(
            "if (i < n) { seed[i] = seed[i] * 1664525u + 1013904223u;"
            " out[i] = seed[i] >> 24 == 123 ? 0 : 2 * x[i] + 1 - 1; }",
            "__device__ unsigned seed[1024];\n",
            kernel="k",
        )
    )
    assert len(finding.example.earlier) > 40


def test_lower_bits_of_one_float_change_between_the_ends() -> None:
    x = np.array([1, 2, 8, 4, 5], np.float32)
    example = Example({"n": 5, "x": DrawnArray(x)}, cudadrv.LaunchConfig(1, 32))
    *_, near = neighbours(case(""), example)
    changed = near.arguments["x"].contents  # type: ignore[union-attr]  # an array
    (place,) = np.flatnonzero(changed != x)
    assert 0 < place < 4
    assert 0 < abs(changed[place] / x[place] - 1) < 2**-9
    assert max(changed.tolist()) <= 8


# Values are right for those inputs that random ones, or whole numbers, are.
SKIPPED: Final = """__shared__ int any; if (threadIdx.x == 0) any = 0; __syncthreads();
    if (threadIdx.x < 32 && i < n && x[i] {0} 0) atomicOr(&any, 1); __syncthreads();
    if (i < n) out[i] = any ? {1}(x[i], 0.f) : 0.f;"""


@pytest.mark.slow
@pytest.mark.parametrize(("sign", "function"), [(">", "fmaxf"), ("<", "fminf")])
@pytest.mark.parametrize("values", ["exact", (-6, 6)], ids=str)
def test_a_block_that_is_skipped_for_its_first_elements_is_found(
    sign: str, function: str, values: Any
) -> None:
    size = st.sizes(1, 300)
    arrays = {"x": st.arrays(np.float32, size, values), "out": st.unwritten(np.float32, size)}
    kernel = case(
        SKIPPED.replace("{0}", sign).replace("{1}", function),
        arguments={"n": size, **arrays},
        reference=lambda x: {"out": np.maximum(x, 0) if sign == ">" else np.minimum(x, 0)},
        launch=st.launch_configs(threads=size),
    )
    assert "mostly" in found(kernel, replace(QUICK, examples=20)).note


@pytest.mark.slow
def test_an_input_that_keeps_its_value_but_not_its_bits_is_found() -> None:
    source = """extern "C" __global__ void k(int n, float* x, const float* y, float* out) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) { x[i] += y[i]; out[i] = x[i]; x[i] -= y[i]; } }"""
    arrays = {"x": st.arrays(np.float32, N), "y": st.arrays(np.float32, N)}
    kernel = KernelCase(
        source,
        arguments={"n": N, **arrays, "out": st.unwritten(np.float32, N)},
        launch=st.launch_configs(threads=N),
        reference=lambda x, y: {"out": x + y},
    )
    finding = found(kernel)
    assert finding.variable == "x"
    assert finding.note == "the reference never changes this array"


def measured(name: str) -> str:
    """Return what finds a cheat: a measure, or "drawn"; "" if nothing does."""
    before, body, _ = CHEATS[name]
    verdict = verified(case(body, before), replace(QUICK, examples=20))
    names = ["drawn", *(measure.name for measure in verdict.measures)]
    return names[-1] if verdict.findings else ""


def test_a_measure_finds_a_kernel_that_is_wrong_for_large_numbers() -> None:
    assert measured("wrong for large numbers") == "contents"


@pytest.mark.slow
def test_a_measure_finds_each_cheat() -> None:
    found = {name: measured(name) for name in CHEATS}
    assert {name: by for name, by in found.items() if by not in (CHEATS[name][2], "drawn")} == {}


def test_a_kernel_that_computes_integers_as_floats_is_found() -> None:
    kernel = KernelCase(
        'extern "C" __global__ void k(const int* x, const int* y, int* out) {'
        " int i = threadIdx.x; out[i] = (float)x[i] * y[i] + y[i]; }",
        arguments={
            "x": st.arrays(np.int32, 32),
            "y": st.arrays(np.int32, 32),
            "out": st.unwritten(np.int32, 32),
        },
        launch=cudadrv.LaunchConfig(1, 32),
        reference=lambda x, y: {"out": x * y + y},
    )
    assert "integers do not" in found(kernel).note


INTEGERS = {
    "wrong for one number": "x[i] == 123456 ? 1 : x[i] + y[i]",
    "wrong for one sum": "x[i] + y[i] == 777 ? 1 : x[i] + y[i]",
    "wrong for one argument": "a == 4242 ? 1 : x[i] + y[i]",
}


@pytest.mark.slow
def test_a_kernel_that_is_wrong_for_an_integer_of_its_comparisons_is_found() -> None:
    passed = []
    for name, value in INTEGERS.items():
        kernel = KernelCase(
            'extern "C" __global__ void k(int n, int a, const int* x, const int* y, int* out) {'
            f" int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = {value}; }}",
            arguments={
                "n": N,
                "a": st.numbers(np.int32),
                "x": st.arrays(np.int32, N),
                "y": st.arrays(np.int32, N),
                "out": st.unwritten(np.int32, N),
            },
            launch=st.launch_configs(threads=N),
            reference=lambda x, y: {"out": x + y},
        )
        verdict = verified(kernel, QUICK)
        if "integers of the kernel's comparisons" not in str(verdict):
            passed.append(f"{name}: {verdict}")
    assert passed == []


@pytest.mark.slow
def test_counters_of_eight_bits_are_found_by_equal_integers() -> None:
    size = st.sizes(1, 400)
    kernel = KernelCase(
        """extern "C" __global__ void k(int n, const int* x, int* out) {
            __shared__ unsigned counts; counts = 0; __syncthreads();
            for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&counts, 1u << 8 * x[i]);
            __syncthreads();
            if (threadIdx.x < 4) out[threadIdx.x] = counts >> 8 * threadIdx.x & 255;
        }""",
        arguments={
            "n": size,
            "x": st.arrays(np.int32, size, (0, 3)),
            "out": st.unwritten(np.int32, 4),
        },
        launch=cudadrv.LaunchConfig(1, 32),
        reference=lambda x: {"out": np.bincount(x, minlength=4)},
    )
    assert "equal numbers do not" in found(kernel).note


def on_host(stream: Any, module: Any, config: Any, n: int, x: Any, out: Any) -> None:
    module.kernel("k").launch(stream, config, n, x, out)
    stream.copy(out, 2 * stream.to_host(x))


def half_on_host(stream: Any, module: Any, config: Any, n: int, x: Any, out: Any) -> None:
    module.kernel("k").launch(stream, config, n, x, out)
    both = stream.to_host(out)
    both[n // 2 :] = 2 * stream.to_host(x)[n // 2 :]
    stream.copy(out, both)


def test_a_program_that_computes_on_the_host_is_found() -> None:
    for program, body, text in (
        (on_host, "if (i < n) out[i] = 0;", "values: they are right without the kernels"),
        (half_on_host, "if (i < n) out[i] = i < n / 2 ? 2 * x[i] : 0;", "of out are right"),
    ):
        verdict = verified(case(body, program=program), replace(QUICK, examples=4))
        assert [measure.name for measure in verdict.measures][-1] == "program", str(verdict)
        assert text in verdict.findings[0].text
        assert "the host computes them" in verdict.findings[0].text


def test_a_program_that_fills_and_copies_arrays_for_its_kernel_is_verified() -> None:
    def program(stream: Any, module: Any, config: Any, n: int, x: Any, out: Any) -> None:
        stream.copy(out, stream.to_host(x))
        module.kernel("k").launch(stream, config, n, x, out)

    verdict = verified(case("if (i < n) out[i] += x[i];", program=program), QUICK)
    assert verdict.is_verified, str(verdict)


# Examples of some seeds launch on another stream than the one that advances the counters.
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 5, 6])
def test_a_kernel_with_few_blocks_that_counts_its_launches_is_found(seed: int) -> None:
    kernel = case(
        "unsigned c = calls; __syncthreads(); if (i < n) out[i] = c < 1000u ? 2 * x[i] : 0.f;"
        " __syncthreads(); if (gridDim.x == 1 && i == 0) calls = c + 1;",
        "__device__ unsigned calls;\n",
    )
    verdict = verified(kernel, replace(QUICK, seed=seed))
    assert [finding.check for finding in verdict.findings] == ["values"], str(verdict)
    assert verdict.findings[0].example.skipped


# Counters that a repeated example does not step evenly, or not within the launches.
PATIENT: Final = VerifyOptions(seconds=900, database=None)
COUNTERS: Final = {
    "every third launch": ("c, t", "c >= 500", "t = (t + 1) % 3; if (t == 0) c++;"),
    "growing steps": ("c, t", "c > 100000000", "t += 3; c += t;"),
    "two values of it": ("c", "c * 3 == c + 2468", "c++;"),
    "a hash": ("c", "(c * 2654435761u >> 12) == 0x12345", "c++;"),
    "one number twice": ("c", "c == 1 && x[0] == 7777", "if (x[0] == 4444) c = 1;"),
    "a maximum": ("c", "c > 1000000000", "c = max((int)c, (int)x[0]);"),
    "two numbers later": ("c", "c && n > 2 && x[1] == 5 && x[2] == 6", "if (x[0] == 4444) c = 1;"),
    "a size after two": (
        "c",
        "c == 2 && n == 4",
        "c = n == 71 ? 1 : n == 13 && c == 1 ? 2 : n != 4 ? 0 : c;",
    ),
}
HONEST: Final = {
    "a message": ("c", "", 'if (++c == 1000000) printf("a million");'),
    "a capped count": ("c", "", "if (atomicAdd(&c, 1u) >= 100000u) atomicExch(&c, 0u);"),
    "another way of the same": ("c", "", "c++; if (c > 100000u) out[0] = x[0] + x[0];"),
    "another way for a size": ("c", "", "if (++c > 100000u && n == 77) out[0] = x[0] + x[0];"),
}


def counting(variables: str, bad: str, step: str) -> KernelCase:
    """Return a case whose first thread changes variables, and is wrong where `bad`."""
    return case(
        f"__shared__ int wrong; if (threadIdx.x == 0) {{ wrong = {bad or 0}; }} __syncthreads();\n"
        "if (i < n) out[i] = wrong ? 0 : 2 * x[i];\n"
        f"__syncthreads(); if (i == 0) {{ {step} }}",
        "".join(f"__device__ unsigned {name};\n" for name in variables.split(", ")),
        launch=st.launch_configs(blocks=1, block=[96, 128]),
    )


@pytest.mark.slow
def test_a_kernel_that_may_keep_memory_of_the_heap_is_not_verified() -> None:
    verdict = verified(
        case(
            "if (i == 0) { if (!heap) heap = (int*)malloc(4); *heap = 0; }"
            " if (i < n) out[i] = 2 * x[i];",
            "__device__ int* heap;\n",
            launch=st.launch_configs(blocks=1, block=80),
        ),
        QUICK,
    )
    assert verdict.outcome == "unfinished", str(verdict)
    assert "memory from malloc" in str(verdict)


@pytest.mark.slow
def test_a_kernel_that_is_wrong_for_some_launches_without_a_comparison_is_found() -> None:
    finding = found(counting("c", "(300 - c & c - 900) >> 31", "c++;"), PATIENT)
    assert 300 <= finding.example.skipped < 900


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTERS)
def test_a_comparison_with_a_kept_variable_that_no_launch_meets_is_not_verified(name: str) -> None:
    verdict = verified(counting(*COUNTERS[name]), PATIENT)
    assert verdict.outcome == "unfinished", str(verdict)
    assert all("in no launch" in text for text in verdict.unreached)
    assert "not verified: a comparison with " in str(verdict)
    assert Verdict.from_json(verdict.to_json()).unreached == verdict.unreached


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_a_comparison_with_a_kept_variable_that_changes_no_value_is_verified(name: str) -> None:
    verdict = verified(counting(*HONEST[name]), PATIENT)
    assert verdict.is_verified, str(verdict)
    assert not verdict.unreached


def test_the_report_has_a_line_for_each_measure_and_each_suspicion() -> None:
    kernel = case("if (n == 77777) out[0] = 3; else if (i < n) atomicExch(out + i, 2 * x[i]);")
    verdict = verified(kernel, replace(QUICK, examples=4))
    assert verdict.is_verified
    lines = [line.strip().partition(" (")[0] for line in str(verdict).splitlines()[1:]]
    assert lines == [
        "may read: x",
        "may write: out",
        "may update: out",
        "atomics: exch.b32",
        "observed reads: out, x",
        "observed writes: out",
        "inputs: unchanged where the reference leaves them",
        "launches: after others of the same module, counters advanced",
        "same bits: on other hardware and in another order",
        "addresses: moved arrays, between intact guard zones",
        "contents: other contents that its values allow",
        "sizes: 1, primes, powers of two, unequal ones and those of comparisons, of 1 to 80",
        "geometry: other blocks and grids",
        "suspicion: the kernel compares n with 77777 for equality",
        "suspicion: a comparison is equal in no drawn example: kernel.cu:3: if",
    ]
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_an_example_with_earlier_launches_is_saved_and_read() -> None:
    single = Example({"n": 3}, cudadrv.LaunchConfig(2, 32))
    whole = replace(single, earlier=(single, single), shift=16, hardware_seed=7, skipped=9)
    saved = json.loads(json.dumps(whole.to_json()))
    assert Example.from_json(saved) == whole
    assert Example.from_json(single.to_json()) == single
    assert set(single.to_json()) == {"arguments", "launch", "schedule", "stream"}
    for wrong in (
        {"earlier": [saved]},
        {"earlier": [single.to_json()] * 65},
        {"earlier": 3},
        {"shift": -1},
        {"shift": 1 << 40},
        {"hardware_seed": "1"},
    ):
        with pytest.raises(CannotVerifyError):
            Example.from_json({**saved, **wrong})


SMALLER_TYPES = {
    "half": ("f4", "#include <cuda_fp16.h>",
             "out[i] = __half2float(__hmul(__float2half(x[i]), __float2half(y[i])));"),
    "bfloat16": ("f4", "#include <cuda_bf16.h>",
                 "out[i] = __bfloat162float(__float2bfloat16(x[i])) * y[i];"),
    "tf32": ("f4", "", "out[i] = __uint_as_float(__float_as_uint(x[i]) & 0xffffe000) * y[i];"),
    "float": ("f8", "", "out[i] = (float)x[i] * (float)y[i];"),
    "int": ("f4", "", "out[i] = (int)x[i] * y[i];"),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow) if k else kind
        for k, kind in enumerate(SMALLER_TYPES)
    ],
)
def test_a_kernel_that_computes_in_a_smaller_type_is_found_with_fractions(kind: str) -> None:
    dtype, header, body = SMALLER_TYPES[kind]
    name = {"f4": "float", "f8": "double"}[dtype]
    source = f"""{header}
    extern "C" __global__ void k(int n, const {name}* x, const {name}* y, {name}* out) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {{ {body} }}
    }}"""
    kernel = KernelCase(
        source,
        arguments={
            "n": N,
            "x": st.arrays(dtype, N),
            "y": st.arrays(dtype, N),
            "out": st.unwritten(dtype, N),
        },
        launch=st.launch_configs(threads=N),
        reference=lambda x, y: {"out": x * y},
    )
    assert ("fractions do not" if kind == "int" else "smaller type") in found(kernel).note


INTEGER_RESULTS: Final[dict[str, tuple[str, str, Any]]] = {
    "an index": (
        "f4",
        "int b = 0; for (int k = 1; k < n; ++k) if ((int)x[k] > (int)x[b]) b = k; out[i] = b;",
        lambda x: np.full(len(x), x.argmax(), np.int32),
    ),
    "a mask": ("f4", "out[i] = (int)x[i] > 3;", lambda x: (x > 3).astype(np.int32)),
    "a rounded number": (
        "f8",
        "out[i] = __float2int_rn((float)(int)x[i]);",
        lambda x: np.rint(x).astype(np.int32),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INTEGER_RESULTS)
def test_an_integer_result_of_truncated_floats_is_found_with_fractions(name: str) -> None:
    dtype, body, reference = INTEGER_RESULTS[name]
    kernel = KernelCase(
        f"""extern "C" __global__ void k(int n, const {"float" if dtype == "f4" else "double"}* x,
                                         int* out) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {body} }} }}""",
        arguments={"n": N, "x": st.arrays(dtype, N), "out": st.unwritten(np.int32, N)},
        launch=st.launch_configs(threads=N),
        reference=lambda x: {"out": reference(x)},
    )
    assert "give the right values, and" in found(kernel).note


SIZE = st.sizes(1, 300)
RIGHT = {
    "sum in any order": (
        "if (i < n) atomicAdd(out, x[i]);",
        lambda x: {"out": np.array([x.sum()])},
    ),
    "norm": (
        "float s = 0; if (i == 0) { for (int k = 0; k < n; ++k) s += x[k] * x[k];"
        " *out = rsqrtf(s + 1); }",
        lambda x: {"out": np.array([1 / np.sqrt((x * x).sum() + 1)])},
    ),
    "softmax's sum": (
        "if (i == 0) { float s = 0; for (int k = 0; k < n; ++k) s += __expf(x[k]); *out = s; }",
        lambda x: {"out": np.array([np.exp(x).sum()])},
    ),
    "cancellation": (
        "if (i == 0) { float s = 1e4f; for (int k = 0; k < n; ++k) s += x[k];"
        " for (int k = 0; k < n; ++k) s -= x[k]; *out = s; }",
        lambda x: {"out": np.array([1e4], np.float32)},
    ),
    "index of the largest": (
        "if (i == 0) { int b = 0; for (int k = 1; k < n; ++k) if (x[k] > x[b]) b = k; *out = b; }",
        lambda x: {"out": np.array([x.argmax()])},
    ),
    "root of what may be negative": (
        "if (i == 0) *out = sqrtf(x[0]) + logf(x[n - 1]);",
        lambda x: {"out": np.array([np.sqrt(x[0]) + np.log(x[-1])])},
    ),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if k else name for k, name in enumerate(RIGHT)],
)
def test_a_kernel_that_rounds_otherwise_than_numpy_is_verified(name: str) -> None:
    body, reference = RIGHT[name]
    kernel = KernelCase(
        'extern "C" __global__ void k(int n, const float* x, float* out) {'
        f" int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}",
        arguments={"n": SIZE, "x": st.arrays(np.float32, SIZE), "out": np.zeros(1, np.float32)},
        launch=st.launch_configs(threads=SIZE),
        reference=reference,
    )
    verdict = verified(kernel, QUICK)
    assert verdict.is_verified, str(verdict)
