"""Verifying kernels: planted faults are found and shrunk, and right kernels are verified."""

from __future__ import annotations

import json
import math
import re
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as hypothesis_strategies

import cudadrv
from cudadrv.emulator.checks import CheckName
from cudadrv.emulator.timeline.schedule import Schedule
from cudadrv.errors import ArgumentError, LaunchConfigError
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import (
    CannotVerifyError,
    Example,
    Finding,
    KernelCase,
    Tolerance,
    Verdict,
    VerificationError,
    VerifyOptions,
    mutate,
    verify,
    verify_kernel,
)
from cudadrv.testing.verify.comparison import difference
from cudadrv.testing.verify.ptx_edit import EditablePtx
from cudadrv.testing.verify.verification import compiled_case

QUICK = VerifyOptions(
    examples=12, seconds=600, database=None, checks=("race", "init", "bounds"), explain=False
)
N = st.sizes(1, 80)
SAXPY = """extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (GUARD) y[i] = a * x[i] + y[i];
}"""


def saxpy(guard: str = "i < n", **changes: Any) -> KernelCase:  # of any field
    fields: dict[str, Any] = {
        "arguments": {
            "n": N,
            "a": st.numbers(np.float32),
            "x": st.arrays(np.float32, N),
            "y": st.arrays(np.float32, N),
        },
        "launch": st.launch_configs(threads=N),
        "reference": lambda a, x, y: {"y": a * x + y},
    }
    return KernelCase(SAXPY.replace("GUARD", guard), **{**fields, **changes})


SCALE = 'extern "C" __global__ void scale(int* x) { x[threadIdx.x] *= 2; }'
STRANGE = hypothesis_strategies.integers().map(lambda number: number // 0)


def from_source(source: str) -> KernelCase:
    return KernelCase(source, arguments={}, launch=st.launch_configs(1), reference=lambda: None)


def found_in(case: KernelCase, options: VerifyOptions = QUICK) -> Finding:
    verdict = verify(case, options)
    assert verdict.outcome == "found"
    return verdict.findings[0]


def shape(finding: Finding) -> tuple[object, int, int]:
    example = finding.example
    return example.arguments["n"], example.config.blocks, example.config.threads


@pytest.mark.slow
def test_a_right_kernel_is_verified() -> None:
    verdict = verify(saxpy(), QUICK, name="cases.py::saxpy")
    assert verdict.is_verified
    assert (verdict.kernel, verdict.findings, verdict.is_complete) == ("saxpy", (), True)
    assert verdict.checks == ("values", "race", "init", "bounds")
    assert 1 <= verdict.examples <= 12
    assert str(verdict).startswith("cases.py::saxpy: verified (")


@pytest.mark.slow
def test_a_bound_is_found_with_one_block_of_two_threads() -> None:
    finding = found_in(saxpy("i <= n"))
    assert finding.check == "bounds"
    assert shape(finding) == (1, 1, 2)
    assert "address x + 4" in finding.text
    assert [(line.line, line.text) for line in finding.lines] == [
        (3, "if (i <= n) y[i] = a * x[i] + y[i];")
    ]


@pytest.mark.slow
def test_a_wrong_value_is_found_at_the_smallest_size() -> None:
    finding = found_in(saxpy("i < n && i != 4"))
    assert (finding.check, finding.variable) == ("values", "y")
    assert shape(finding) == (5, 2, 4)
    assert finding.text.startswith("values: y[4] is ")


def test_a_race_is_found_with_two_threads() -> None:
    source = """extern "C" __global__ void reverse(int n, int* x) {
        extern __shared__ int each[];
        each[threadIdx.x] = x[threadIdx.x];
        x[threadIdx.x] = each[n - 1 - threadIdx.x];
    }"""
    case = KernelCase(
        source,
        arguments={"n": N, "x": st.arrays(np.int32, N)},
        launch=st.launch_configs(blocks=1, block=N, shared_bytes=lambda block: 4 * block),
        reference=lambda x: {"x": x[::-1]},
    )
    verdict = verify(case, QUICK)
    races = [each for each in verdict.findings if each.check == "race"]
    assert [shape(each) for each in races] == [(2, 1, 2)]
    assert {line.line for line in races[0].lines} == {3, 4}


def test_a_finding_calls_a_kernel_that_the_case_does_not_name_as_cuda_does() -> None:
    case = KernelCase(
        "__global__ void beyond(int n, int* x) { if (threadIdx.x <= n) x[threadIdx.x] = 1; }",
        arguments={"n": (n := st.sizes(1, 20)), "x": st.arrays(np.int32, n)},
        launch=st.launch_configs(blocks=1, block=32),
        reference=lambda n, x: {"x": np.ones(n, np.int32)},
    )
    (finding,) = verify(case, QUICK).findings
    assert "in kernel beyond, block (0, 0, 0), thread (1, 0, 0)" in finding.text
    assert "_Z" not in str(finding)


@pytest.mark.slow
def test_one_seed_gives_one_verdict() -> None:
    def plain(seed: int) -> dict[str, Any]:  # of JSON
        options = replace(QUICK, seed=seed)
        return {**verify(saxpy("i <= n"), options).to_json(), "seconds": 0}

    assert plain(3) == plain(3)


@pytest.mark.slow
def test_a_verdict_survives_json() -> None:
    verdict = verify(saxpy("i <= n"), QUICK, name="cases.py::saxpy")
    text = json.dumps(verdict.to_json())
    again = Verdict.from_json(json.loads(text))
    assert json.dumps(again.to_json()) == text
    assert again.findings[0].lines == verdict.findings[0].lines
    assert again.findings[0].example.config == verdict.findings[0].example.config
    command = "python -m cudadrv verify cases.py::saxpy --examples 12 --checks race,init,bounds"
    assert again.findings[0].repeat == command
    assert f"repeat: {command}" in str(again)
    with pytest.raises(CannotVerifyError, match="format 0"):
        Verdict.from_json({**verdict.to_json(), "format": 0})


def test_an_example_keeps_every_bit() -> None:
    array = st.DrawnArray(np.array([np.nan, -0.0, np.inf], np.float16), is_written=False)
    given = Example(
        {"n": 3, "a": np.float32("nan"), "x": array},
        cudadrv.LaunchConfig((2, 3), 4, 16),
        Schedule("random", 7),
        "new",
    )
    again = Example.from_json(json.loads(json.dumps(given.to_json())))
    assert again.to_json() == given.to_json()
    assert (again.config, again.schedule, again.stream) == (
        given.config,
        given.schedule,
        given.stream,
    )
    read = again.arguments["x"]
    assert isinstance(read, st.DrawnArray)
    assert read.contents.tobytes() == array.contents.tobytes()


@pytest.mark.slow
def test_a_failure_is_stored_and_runs_first(tmp_path: Path) -> None:
    fields = {name: getattr(QUICK, name) for name in QUICK.__dataclass_fields__}
    first = VerifyOptions(**{**fields, "database": tmp_path})
    found = verify(saxpy("i <= n"), first)
    again = verify(saxpy("i <= n"), VerifyOptions(**{**fields, "database": tmp_path, "seed": 9}))
    assert shape(found.findings[0]) == shape(again.findings[0])
    assert again.examples <= found.examples
    assert list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_unchanged_argument_must_stay() -> None:
    case = saxpy(reference=lambda a, x, y: None)
    assert found_in(case).variable == "y"


@pytest.mark.slow
def test_a_reference_may_change_its_arrays() -> None:
    def reference(a: np.float32, x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> None:
        y += a * x

    assert verify(saxpy(reference=reference), QUICK).is_verified


@pytest.mark.slow
def test_an_unwritten_array_that_is_read_is_found() -> None:
    arguments = {
        "n": N,
        "a": st.numbers(np.float32),
        "x": st.arrays(np.float32, N),
        "y": st.unwritten(np.float32, N),
    }
    found = found_in(saxpy(arguments=arguments, reference=lambda a, x: {"y": a * x}))
    assert found.check == "init"


def test_what_the_reference_leaves_open_is_not_compared() -> None:
    source = 'extern "C" __global__ void half(int* x, int* y) { x[2 * threadIdx.x] = y[0] = 1; }'

    def reference(x: npt.NDArray[np.int32]) -> dict[str, object]:
        x[::2] = 1
        return {"x": x, "y": None}

    case = KernelCase(
        source,
        arguments={"x": st.unwritten(np.int32, 2 * N), "y": st.unwritten(np.int32, 1)},
        launch=st.launch_configs(blocks=1, block=N),
        reference=reference,
    )
    assert verify(case, VerifyOptions(examples=5, database=None, checks=("init",))).is_verified


@pytest.mark.slow
def test_a_program_launches_several_kernels() -> None:
    def twice(stream: Any, module: Any, config: Any, *args: object) -> None:  # as documented
        for _ in range(2):
            module.kernel("saxpy").launch(stream, config, *args)

    case = saxpy(program=twice, reference=lambda a, x, y: {"y": a * x + (a * x + y)})
    assert verify(case, QUICK).is_verified


def test_assume_skips_examples() -> None:
    n, _, _ = shape(found_in(saxpy("i <= n", assume=lambda n: n > 2)))
    assert n == 3


@pytest.mark.slow
def test_an_assume_that_skips_every_example_is_an_error() -> None:
    with pytest.raises(CannotVerifyError, match="assume= skips almost every example"):
        verify(saxpy(assume=lambda n: False), VerifyOptions(examples=1, database=None, checks=()))


def test_assume_protects_the_launch_from_sizes_that_it_skips() -> None:
    n = st.sizes(1, 300)

    def blocks_of_64(least: int) -> KernelCase:
        return KernelCase(
            'extern "C" __global__ void k(int* x, int n) { x[blockIdx.x * 64 + threadIdx.x] = 7; }',
            arguments={"x": st.unwritten(np.int32, n), "n": n},
            launch=st.launch_configs(blocks=n // 64, block=64),
            reference=lambda x: {"x": np.where(np.arange(x.size) < x.size // 64 * 64, 7, x)},
            assume=lambda n: n >= least,
        )

    options = VerifyOptions(examples=10, database=None, checks=())
    assert verify(blocks_of_64(64), options).is_verified
    with pytest.raises(LaunchConfigError, match=r"grid is \(0, 1, 1\)"):
        verify(blocks_of_64(1), options)


@pytest.mark.slow
def test_the_limit_of_seconds_ends_a_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    verdict = verify(saxpy(), VerifyOptions(seconds=6, database=None, checks=()))
    assert (verdict.examples, verdict.is_complete) == (3, False)
    assert "ended by the limit of seconds" in str(verdict)
    assert (verdict.outcome, verdict.is_verified) == ("unfinished", False)
    assert {"contents", "sizes"} <= set(verdict.left_out)
    assert "left out by the limit of seconds: " in str(verdict)
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict
    verdict.raise_findings()


@pytest.mark.slow
def test_a_case_without_a_run_is_not_verified() -> None:
    with pytest.raises(CannotVerifyError, match="no example ran within"):
        verify(saxpy(), VerifyOptions(seconds=1e-6, database=None, checks=()))


@pytest.mark.slow
def test_verify_kernel_fails_a_test() -> None:
    arguments = {"n": N, "x": st.arrays(np.int32, N)}
    source = 'extern "C" __global__ void k(int n, int* x) { x[threadIdx.x] += n; }'
    launch = st.launch_configs(blocks=1, block=N)
    assert verify_kernel(source, lambda n, x: {"x": x + n}, arguments, launch, QUICK).is_verified
    with pytest.raises(VerificationError, match=r"found values") as caught:
        verify_kernel(source, lambda n, x: {"x": x - n}, arguments, launch, QUICK)
    assert caught.value.verdict.findings[0].example.arguments["n"] == 1
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (lambda: saxpy(kernel="axpy"), "no kernel 'axpy'"),
        (lambda: saxpy("i <"), "error"),
        (lambda: saxpy(reference=lambda x: {"y": x[:-1]}), "reference's y has shape"),
        (lambda: saxpy(reference=lambda x: {"y": x * 1j}), "reference's y has dtype complex64"),
        (lambda: saxpy(reference=lambda x: {"z": x}), "returns 'z', which is no array"),
        (lambda: saxpy(reference=lambda x: x), "returned ndarray: return a dict"),
        (lambda: saxpy(reference=lambda x: 1 // 0), "raised ZeroDivisionError"),
        (lambda: saxpy(arguments={"n": N, "a": 1, "x": 2, "y": 3, "z": 4}), "has 4 parameters"),
        (lambda: saxpy(arguments={"n": 1.5, "a": 1, "x": 2, "y": 3}), "n|parameter"),
        (lambda: KernelCase(Path("absent.cu"), arguments={}, reference=lambda: None,
                            launch=st.launch_configs(1)), "cannot be read"),
        (lambda: saxpy(reference=lambda x: sys.exit(5)), "reference of .* raised SystemExit: 5"),
        (lambda: saxpy(assume=lambda n: 1 // 0), "assume= raised ZeroDivisionError"),
        (lambda: saxpy(program=lambda *args: 1 // 0), "program= raised ZeroDivisionError"),
        (lambda: saxpy(program=lambda stream: None), "program= raised TypeError"),
        (lambda: saxpy(reference=lambda: None, program=lambda *args: None,
                       arguments={"x": st.arrays(np.float32, N - 40)}),
         "shape of an array is .*: give sizes of 0 or more"),
        (lambda: saxpy(arguments={"n": N, "a": 1, "y": 3, "x": st.arrays(np.float32, 1 << 40)}),
         "array of shape .* has 4398046511104 bytes: draw at most 268435456"),
        (lambda: saxpy(arguments={"n": STRANGE, "a": 1, "y": 3, "x": st.arrays(np.float32, N)}),
         "drawing an example raised ZeroDivisionError"),
        (lambda: from_source(""), "kernel.cu has no kernel\n  give a source with a __global__"),
        (lambda: from_source(SAXPY.replace("GUARD", "1") + SCALE),
         "has several kernels: saxpy, scale\n  give one of them as kernel="),
    ],
)  # fmt: skip
def test_a_case_that_cannot_be_verified_is_named(
    case: Callable[[], KernelCase], words: str
) -> None:
    with pytest.raises(CannotVerifyError, match=words):
        verify(case(), VerifyOptions(examples=3, database=None, checks=()))


@pytest.mark.parametrize("in_zip_file", [False, True])
def test_a_case_reads_a_file_of_a_package(tmp_path: Path, in_zip_file: bool) -> None:
    text = 'extern "C" __global__ void set(int* x) { *x = 3; }'
    file: Path | zipfile.Path = tmp_path / "set.cu"
    if in_zip_file:
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr("set.cu", text)
        file = zipfile.Path(tmp_path / "a.zip", "set.cu")
    else:
        (tmp_path / "set.cu").write_text(text)
    case = KernelCase(
        file,
        arguments={"x": st.unwritten(np.int32, 1)},
        launch=cudadrv.LaunchConfig(1, 1),
        reference=lambda: {"x": np.full(1, 4, np.int32)},
    )
    verdict = verify(case, QUICK)
    assert "set.cu:1" in str(verdict)


def test_a_source_of_another_type_is_rejected() -> None:
    with pytest.raises(ArgumentError, match="KernelCase: source"):
        KernelCase(
            3,  # type: ignore[arg-type]
            arguments={},
            launch=st.launch_configs(1),
            reference=lambda: None,
        )


def test_the_line_of_a_reference_that_fails_is_named() -> None:
    def reference(x: npt.NDArray[np.float32]) -> None:
        np.concatenate([x, 3])

    with pytest.raises(
        CannotVerifyError, match=r"raised ValueError: .*\n  at test_verify.py:\d+\n"
    ):
        verify(saxpy(reference=reference), VerifyOptions(examples=3, database=None, checks=()))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reference": lambda q: None}, "parameter 'q', which is no argument"),
        ({"arguments": {"n": "many"}, "reference": lambda n: None}, "argument n is 'many'"),
        ({"launch": 3}, "launch"),
    ],
)
def test_a_wrong_case_is_named(changes: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        saxpy(**changes)


@pytest.mark.parametrize(
    ("tolerance", "actual", "expected", "differs"),
    [
        (Tolerance(), 1.0, 1.0 + 1e-6, False),
        (Tolerance(), 1.0, 1.0 + 1e-4, True),
        (Tolerance(), np.nan, np.nan, False),
        (Tolerance(), np.inf, -np.inf, True),
        (Tolerance(), np.nan, 1.0, True),
        (Tolerance(), np.inf, 1e39, False),
        (Tolerance(ulps=1), 1.0, float(np.nextafter(np.float32(1), np.float32(2))), False),
        (Tolerance(ulps=1), 1.0, 1.0 + 3e-7, True),
        (Tolerance(absolute=0.5), 1.0, 1.4, False),
        (Tolerance(relative=0.1), 100.0, 120.0, True),
    ],
)
def test_a_tolerance_decides(
    tolerance: Tolerance, actual: float, expected: float, differs: bool
) -> None:
    kernel, reference = np.array([actual], np.float32), np.array([expected], np.float64)
    assert bool(difference("y", kernel, reference, tolerance)) is differs


@pytest.mark.parametrize("given", [math.inf, math.nan, -1.0, np.float32(np.inf)])
@pytest.mark.parametrize("name", ["relative", "absolute"])
def test_a_tolerance_is_finite(name: str, given: Any) -> None:
    fields: dict[str, Any] = {name: given}
    words = f"Tolerance: {name} is .*: give a finite number of 0 or more"
    with pytest.raises(ArgumentError, match=words):
        Tolerance(**fields)


@pytest.mark.parametrize("given", [1.5, math.inf, -1, True, "2"])
def test_a_tolerance_in_ulps_is_an_integer(given: Any) -> None:
    with pytest.raises(ArgumentError, match="Tolerance: ulps is .*: give an integer"):
        Tolerance(ulps=given)


def test_integers_must_be_equal() -> None:
    words = difference("y", np.array([[1, 2]]), np.array([[1, 3]]), Tolerance())
    assert words == "values: y[0, 1] is 2, the reference has 3\n  1 of 2 elements of y differ"


@pytest.mark.slow
def test_mutants_are_noticed_and_the_others_are_listed() -> None:
    source = """extern "C" __global__ void clipped(int n, int* x) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        __syncthreads();
        if (i < n) x[i] = min(x[i] + 1, 7);
    }"""
    case = KernelCase(
        source,
        arguments={"n": N, "x": st.arrays(np.int32, N)},
        launch=st.launch_configs(N),
        reference=lambda x: {"x": np.minimum(x + 1, 7)},
    )
    report = mutate(case, QUICK, name="cases.py::clipped")
    assert report.total == len(report.tried) > 6
    assert [each.kind for each in report.unnoticed] == ["barrier"]
    assert report.unnoticed[0].line.text == "__syncthreads();"
    kinds = {each.kind: each.noticed_by for each in report.tried}
    assert kinds["bound"]
    assert kinds["operator"] == "values" or kinds["operator"] == "bounds"
    assert json.loads(json.dumps(report.to_json()))["total"] == report.total
    assert "not noticed, or equivalent" in str(report)


SHIFT = """extern "C" __global__ void shift(int n, const int* in, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i OFFSET];
}"""


def shifted(offset: str, launch: st.LaunchConfigs, size: Any = N) -> KernelCase:  # int or Size
    return KernelCase(
        SHIFT.replace("OFFSET", offset),
        arguments={"n": size, "in": st.arrays(np.int32, size), "out": st.arrays(np.int32, size)},
        launch=launch,
        reference=lambda n: {"out": None},
    )


@pytest.mark.slow
def test_an_address_before_an_array_has_its_name() -> None:
    finding = found_in(shifted("- 1", st.launch_configs(threads=N)))
    assert "out-of-bounds read of 4 bytes at global address in - 4\n" in finding.text


@pytest.mark.slow
def test_a_source_that_is_text_has_no_folder() -> None:
    finding = found_in(shifted("- 1", st.launch_configs(threads=N)))
    assert str(Path.cwd()) not in finding.text
    assert "ld.global.u32 at kernel.cu:3 (PTX line" in finding.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launch", "note"),
    [
        (st.launch_configs(blocks=64, block=1), "the case fixes the grid"),
        (st.launch_configs(threads=64, block=8), "the case fixes the threads"),
        (st.launch_configs(blocks=st.sizes(3, 5), block=1), ""),
        (st.launch_configs(blocks=2, block=1), ""),
    ],
)
def test_a_finding_names_a_launch_that_cannot_be_smaller(
    launch: st.LaunchConfigs, note: str
) -> None:
    case = shifted("- 1", launch, 64)
    finding = found_in(case, VerifyOptions(("bounds",), examples=2, database=None, explain=False))
    assert finding.note.startswith(note)
    assert bool(finding.note) == bool(note)
    assert finding.note in str(finding)
    assert Finding.from_json(json.loads(json.dumps(finding.to_json()))).note == finding.note


def test_code_of_no_line_has_no_place() -> None:
    """NVRTC gives code that it moves out of a loop the line 0."""
    compiled = compiled_case(saxpy(), QUICK, "")
    text = re.sub(r"\.loc\t1 \d+ ", ".loc\t1 0 ", compiled.image.data.decode())
    image = replace(compiled.image, data=text.encode(), ptx=text)
    editable = EditablePtx(replace(compiled, image=image))
    instructions = list(chain.from_iterable(editable.functions.values()))
    assert {editable.place(instruction) for instruction in instructions} == {(None, None)}
    assert {editable.call_place(instruction) for instruction in instructions} == {(None, None)}


FILLS = """extern "C" __global__ void fill(int n, int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (GUARD) x[i] = VALUE;
}"""


def filled(guard: str, value: str, reference: object, checks: tuple[CheckName, ...]) -> Verdict:
    n = st.sizes(2, 40)
    case = KernelCase(
        FILLS.replace("GUARD", guard).replace("VALUE", value),
        arguments={"n": n, "x": st.unwritten(np.int32, n)},
        launch=st.launch_configs(threads=n),
        reference=lambda n, x: {"x": np.full(n, reference, np.int32)},
    )
    options = VerifyOptions(checks, examples=12, database=None, explain=False)
    return verify(case, options, name="fill")


@pytest.mark.slow
def test_elements_that_the_kernel_leaves_out_are_found_as_unwritten_ones() -> None:
    # Fresh memory may have the reference's value by chance: zeros on the emulator.
    for reference in (0, 7):
        verdict = filled("i < n - 1", str(reference), reference, ("init",))
        (finding,) = verdict.findings
        assert (finding.check, finding.variable) == ("init", "x")
        assert finding.text == (
            "init: x[1] has a value in the reference, and the kernel does not write it\n"
            "  1 of 2 elements of x are unwritten: does the grid cover them?"
        )
    assert not filled("i < n", "7", 7, ("init",)).findings
    # Without the check a wrong value is all that can be seen.
    (finding,) = filled("i < n - 1", "7", 7, ()).findings
    assert finding.check == "values"


@pytest.mark.slow
def test_missing_and_wrong_elements_are_two_findings() -> None:
    verdict = filled("i < n - 1", "i == 0 && n > 5 ? 8 : 7", 7, ("init",))
    assert [finding.check for finding in verdict.findings] == ["init"]
    verdict = filled("i < n - (n > 9)", "i == 0 && n > 5 ? 8 : 7", 7, ("init",))
    assert {finding.check for finding in verdict.findings} == {"init", "values"}


@pytest.mark.slow
def test_an_element_that_the_reference_leaves_open_may_stay_unwritten() -> None:
    n = st.sizes(2, 40)
    options = VerifyOptions(("init",), examples=12, database=None)
    references: tuple[Callable[..., dict[str, Any]], ...] = (
        lambda n, x: {"x": np.where(np.arange(n) < n // 2, 7, x)},
        lambda x: {"x": None},
    )
    for reference in references:
        case = KernelCase(
            FILLS.replace("GUARD", "i < n / 2").replace("VALUE", "7"),
            arguments={"n": n, "x": st.unwritten(np.int32, n)},
            launch=st.launch_configs(threads=n),
            reference=reference,
        )
        assert verify(case, options, name="fill").is_verified
