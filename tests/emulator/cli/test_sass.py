"""The command that prints machine code beside source and PTX, and `Module.sass`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.errors import UnsupportedError
from ptx.disassembler import find_nvdisasm

from .in_process import Command, command

SOURCE = """template <class T> __global__ void scale(T* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void add(float* x)
{
    x[threadIdx.x] += 1;
}
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    try:
        find_nvdisasm()
    except ptx.errors.NvdisasmNotFoundError:
        pytest.skip("nvdisasm is not installed")
    return command(capsys)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    return path


@pytest.mark.slow
def test_sass_prints_instructions_below_their_lines_of_source_and_ptx(
    run: Command, file: Path
) -> None:
    done = run("sass", str(file), "add", "--arch", "sm_90")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "kernel add: sm_90"
    at = lines.index("    add.f32 %f2, %f1, 0f3F800000;")
    assert lines[at + 1].split()[1:] == ["FADD", "R5,", "R0,", "1"]
    assert "k.cu:4: x[threadIdx.x] += 1;" in lines[:at]
    assert "NOP" not in done.stdout


@pytest.mark.slow
def test_sass_as_json_has_each_instruction_with_its_lines(run: Command, file: Path) -> None:
    name = "scale<float>"
    done = run("sass", str(file), name, "--name", name, "--arch", "sm_90", "--json")
    (function,) = json.loads(done.stdout)
    assert (function["name"], function["arch"]) == ("_Z5scaleIfEvPT_", "sm_90")
    assert function["is_kernel"]
    (store,) = (i for i in function["instructions"] if i["text"].startswith("STG"))
    assert (store["file"], store["line"]) == (str(file), 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_sass_reads_ptx_and_cubins(run: Command, file: Path, kind: str) -> None:
    made = file.with_suffix(f".{kind}")
    arch = "sm_90" if kind == "cubin" else "compute_90"
    assert run("compile", str(file), "--target", arch, "--out", str(made)).returncode == 0
    done = run("sass", str(made), "--arch", "sm_90")
    assert done.stdout.splitlines()[0] == "kernel add: sm_90"
    assert "FADD" in done.stdout


@pytest.mark.slow
def test_sass_reports_a_missing_kernel_with_those_that_exist(run: Command, file: Path) -> None:
    done = run("sass", str(file), "absent", "--arch", "sm_90")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{file}: there is no kernel 'absent'; there are: add\n"


@pytest.mark.slow
def test_a_module_has_its_machine_code_by_kernel(run: Command) -> None:
    del run  # nvdisasm is installed
    with emulator.session(compute_capability=(8, 0)):
        context = cudadrv.cuda_context_for(0)
        module = context.compile(SOURCE, name_expressions=["scale<float>"])
        sass = module.sass()
        assert set(sass) == {"add", "scale<float>"}
        assert sass["add"].target == ptx.Target.cubin("sm_80")
        assert "FADD" in [each.opcode for each in sass["add"].instructions]
        assert sass["scale<float>"].name == "_Z5scaleIfEvPT_"


def test_a_module_of_bytes_has_none() -> None:
    with emulator.session():
        context = cudadrv.cuda_context_for(0)
        image = ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
        module = context.load_module(image.data)
        with pytest.raises(
            UnsupportedError, match=r"from bytes\n.*from_binary\(data, ptx.Target.cubin"
        ):
            module.sass()
