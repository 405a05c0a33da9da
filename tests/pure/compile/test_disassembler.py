"""Machine code by nvdisasm: what it prints, and what becomes of it."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path

import pytest
from cuda import pathfinder

import ptx
from ptx import disassembler
from ptx.disassembler import find_nvdisasm

SM_90 = ptx.Target.cubin("sm_90")
SOURCE = """template <class T> __device__ __noinline__ T quotient(T a, T b) { return a / b; }
template <class T> __global__ void divide(T* x)
{
    x[0] = quotient(x[1], x[2]);
}
extern "C" __global__ void add(float* x)
{
    x[threadIdx.x] += 1;
}
"""
# The form of nvdisasm 13.5's output.
TEXT = """\t.target\tsm_90

//--------------------- .text.shared                 --------------------------
\t.section\t.text.shared,"ax",@progbits
\t.align\t128
.text.shared:
        .type           shared,@function
shared:
        /*0000*/                   RET.REL.NODEC R2 `(f) ;

//--------------------- .text.f                 --------------------------
\t.section\t.text.f,"ax",@progbits
        .global         f
        .other          f,@"STO_CUDA_ENTRY STV_DEFAULT"
f:
.text.f:
\t//## File "/a b/f.cu", line 3
\t//## File ".nv_debug_ptx_txt", line 17
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
\t//## File ".nv_debug_ptx_txt.123", line 19
        /*0010*/              @!P0 BRA `(.L_x_1) ;
        .type           $f$g,@function
$f$g:
        /*0020*/                   NOP;
"""


@functools.cache
def compiled(arch: str, *, lineinfo: bool = False) -> ptx.Image:
    given = ptx.CompileOptions(target=ptx.Target.parse(arch), lineinfo=lineinfo)
    expressions = ["divide<float>"]
    return ptx.compile(SOURCE, given, name="/src/k.cu", name_expressions=expressions)


@pytest.fixture
def nvdisasm() -> str:
    try:
        return find_nvdisasm()
    except ptx.errors.NvdisasmNotFoundError:
        pytest.skip("nvdisasm is not installed")


def test_the_disassemblers_text_becomes_functions_with_lines_and_labels() -> None:
    shared, f = disassembler.functions_in(TEXT, "the PTX")
    assert (shared.name, shared.is_kernel, f.name, f.is_kernel) == ("shared", False, "f", True)
    assert (f.target, f.ptx) == (SM_90, "the PTX")
    load, branch, pad = f.instructions
    assert load == ptx.SassInstruction(0, "LDC R1, c[0x0][0x28]", "/a b/f.cu", 3, 17, ("f",))
    assert branch == ptx.SassInstruction(16, "@!P0 BRA `(.L_x_1)", "/a b/f.cu", 3, 19, (".L_x_1",))
    assert pad == ptx.SassInstruction(32, "NOP", labels=("$f$g",))
    assert [each.opcode for each in f.instructions] == ["LDC", "BRA", "NOP"]
    assert [ptx.SassInstruction(0, text).opcode for text in ("", "@P0", "@P0 EXIT")] == [
        "",
        "",
        "EXIT",
    ]
    assert str(f).splitlines()[3] == "    /*0010*/  @!P0 BRA `(.L_x_1)"


@pytest.mark.parametrize(
    ("header", "arch"),
    [
        ("\t.target\tsm_100a", "sm_100a"),
        # Of images by CUDA 12.
        (
            '\t.headerflags\t@"EF_CUDA_64BIT_ADDRESS EF_CUDA_SM75 '
            'EF_CUDA_VIRTUAL_SM(EF_CUDA_SM75)"',
            "sm_75",
        ),
        (
            '\t.headerflags\t@"EF_CUDA_64BIT_ADDRESS EF_CUDA_ACCELERATORS EF_CUDA_SM90 '
            'EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"',
            "sm_90a",
        ),
    ],
)
def test_a_function_has_the_architecture_of_its_image(header: str, arch: str) -> None:
    _, f = disassembler.functions_in(TEXT.replace("\t.target\tsm_90", header), "")
    assert f.target == ptx.Target.cubin(arch)


def test_an_output_without_an_architecture_is_rejected(nvdisasm: str) -> None:
    with pytest.raises(ptx.errors.DisassembleError, match="names no architecture"):
        list(disassembler.functions_in(TEXT.replace("\t.target\tsm_90", ""), ""))


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_90", "sm_120", "compute_90", "lto_90"])
def test_instructions_are_those_of_the_disassemblers_other_form(
    arch: str, nvdisasm: str, tmp_path: Path
) -> None:
    image = compiled(arch, lineinfo=True)
    functions = ptx.disassemble(image)
    cubin = image
    if image.kind is not ptx.ImageKind.CUBIN:
        cubin = ptx.link([image], SM_90, ptx.LinkOptions(lineinfo=True))
    file = tmp_path / "k.cubin"
    file.write_bytes(cubin.data)
    done = subprocess.run([nvdisasm, "-json", file], capture_output=True, text=True, check=True)
    _, told = json.loads(done.stdout)
    # In this form nvdisasm 13.2 has the parts of a function apart.
    assert {each.name for each in functions} <= {each["function-name"] for each in told}
    assert [i.opcode for each in functions for i in each.instructions] == [
        i["opcode"] for each in told for i in each["sass-instructions"]
    ]
    for each in functions:
        addresses = [instruction.address for instruction in each.instructions]
        assert addresses == list(range(0, 16 * len(addresses), 16))
    assert {"add", "_Z6divideIfEvPT_"} <= {each.name for each in functions if each.is_kernel}


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_90", "compute_90", "lto_90"])
def test_an_instruction_has_the_lines_of_the_source_and_of_the_ptx(
    arch: str, nvdisasm: str
) -> None:
    functions = {each.name: each for each in ptx.disassemble(compiled(arch, lineinfo=True))}
    add = functions["add"]
    (load,) = (each for each in add.instructions if each.opcode.startswith("LDG"))
    assert (load.file, load.line) == ("/src/k.cu", 8)
    assert "ld.global" in add.ptx.splitlines()[load.ptx_line - 1]


@pytest.mark.slow
def test_an_image_without_lines_and_bare_bytes_have_instructions_alone(nvdisasm: str) -> None:
    image = compiled("sm_90")
    for functions in (ptx.disassemble(image), ptx.disassemble(image.data)):
        (add,) = (each for each in functions if each.name == "add")
        assert add.target == SM_90
        assert any(each.opcode == "FADD" for each in add.instructions)
        assert {(each.file, each.line) for each in add.instructions} == {("", 0)}


@pytest.mark.slow
def test_ptx_is_assembled_for_the_given_target(nvdisasm: str) -> None:
    image = compiled("compute_80")
    for target in (ptx.Target.cubin("sm_80"), ptx.Target.cubin("sm_120")):
        assert {each.target for each in ptx.disassemble(image, target)} == {target}


def test_bytes_that_are_no_cubin_are_rejected_with_the_disassemblers_words(nvdisasm: str) -> None:
    with pytest.raises(ptx.errors.DisassembleError, match="file given appears") as caught:
        ptx.disassemble(b"\x7fELF nothing")
    assert caught.value.program == nvdisasm


def test_a_missing_disassembler_is_reported_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pathfinder, "find_nvidia_binary_utility", lambda name: None, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ptx.errors.NvdisasmNotFoundError) as caught:
        ptx.disassemble(compiled("sm_90"))
    assert caught.value.command == "pip install nvidia-cuda-nvdisasm"
    assert len(str(caught.value).splitlines()[0]) <= 100


def test_an_argument_that_is_no_image_is_rejected() -> None:
    with pytest.raises(TypeError, match="disassemble: image"):
        ptx.disassemble("text")  # type: ignore[arg-type]  # what is tested


def test_a_target_that_is_none_is_named() -> None:
    image = compiled("compute_90")
    for wrong in ("", 0, [1]):
        with pytest.raises(TypeError, match="disassemble: target"):
            ptx.disassemble(image, wrong)  # type: ignore[arg-type]  # what is tested
