"""`ptx` and `run`: what is in a file, and one of its kernels on arrays of files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cudadrv.__main__ import main

SOURCE = """template <typename T> __global__ void scale(T* x, T by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
extern "C" __global__ void saxpy(float* y, const float* x, float a, int n)
{
    __shared__ float unused[8];
    if (n < 0) unused[threadIdx.x & 7] = a;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
    __syncthreads();
    if (n < 0) y[0] = unused[0];
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.cu"
    path.write_text(SOURCE)
    return path


def test_ptx_reports_parameters_registers_and_instructions(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ptx", str(file), "--target", "sm_90", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["name"] == "saxpy"
    assert [text[1:] for text in entry["parameters"]] == ["64[8]", "64[8]", "32[4]", "32[4]"]
    assert entry["shared_bytes"] == 32
    assert 4 <= entry["registers"] <= 32
    assert entry["stack_bytes"] == entry["spill_bytes"] == 0
    assert entry["instructions"]["fma"] == 1
    assert entry["instructions"]["bar"] == 1


def test_ptx_shows_the_instructions_of_each_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ptx", str(file), "--target", "sm_90", "--source"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("kernels.cu:11: if (i < n) y[i] = a * x[i] + y[i];")
    end = next(n for n in range(at + 1, len(lines)) if lines[n].startswith("kernels.cu"))
    assert any("fma.rn.f32" in line for line in lines[at:end])


def test_ptx_names_the_kernels_that_there_are(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ptx", str(file), "--target", "sm_90", "--kernel", "nope"]) == 1
    assert "there is no kernel 'nope'; there are: saxpy" in capsys.readouterr().err


def test_run_writes_what_the_kernel_gives(file: Path, tmp_path: Path) -> None:
    x = np.arange(100, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "y.npy"
    status = main(
        ["run", str(file), "--kernel", "saxpy", "--grid", "4", "--block", "32",
         "--arg", f"{out}=float32[100]", "--arg", str(tmp_path / "x.npy"),
         "--arg", "2.5", "--arg", "int32:100"]
    )  # fmt: skip
    assert status == 0
    assert np.array_equal(np.load(out), np.float32(2.5) * x)


def test_run_accepts_an_instance_of_a_template(file: Path, tmp_path: Path) -> None:
    x = np.arange(10, dtype=np.float64)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "out.npy"
    status = main(
        ["run", str(file), "--kernel", "scale<double>", "--block", "16", "--repeat", "2",
         "--arg", f"{out}={tmp_path / 'x.npy'}", "--arg", "3.0", "--arg", "10"]
    )  # fmt: skip
    assert status == 0
    assert np.array_equal(np.load(out), 9 * x)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--kernel", "saxpy", "--arg", "out=float32[3]"], "the .npy file to write"),
        (["--kernel", "saxpy", "--arg", "out.npy=3"], "only an array can be written"),
        (["--kernel", "saxpy", "--arg", "nofloat:3"], "--arg nofloat:3"),
        (["--kernel", "saxpy", "--arg", "absent.npy"], "absent.npy"),
        (["--kernel", "saxpy", "--arg", "int8:300"], "--arg int8:300"),
        (["--kernel", "nope"], "no kernel 'nope'; it has: saxpy"),
        (["--device", "99"], "there is no device 99"),
        ([], "kernel 'saxpy' takes 4 arguments, 0 were given"),
    ],
)
def test_run_reports_what_was_wrong(
    file: Path, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(file), *arguments]) == 1
    assert text in capsys.readouterr().err


def test_a_compile_error_is_reported_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.cu"
    file.write_text("__global__ void f(int* x) { y = 1; }\n")
    assert main(["compile", str(file), "--target", "sm_90"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"{file} does not compile")
    assert told.count('identifier "y" is undefined') == 1


def test_a_source_without_kernels_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "none.cu"
    file.write_text("__device__ int f(int x) { return x; }\n")
    assert main(["compile", str(file), "--target", "compute_90"]) == 0
    assert "has no kernel" in capsys.readouterr().err
