"""Compiling with NVRTC: images of each kind, names, headers, and refusals."""

from __future__ import annotations

import pytest

import ptx
from ptx import CompileError, CompileOptions, HeaderNotFoundError, ImageKind, Target
from ptx.isa.errors import syntax_error

SAXPY = """
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""

SCALE = "template <typename T> __global__ void scale(T* x, T a) { x[threadIdx.x] *= a; }"


def test_ptx_image_is_text_for_the_virtual_architecture() -> None:
    image = ptx.compile(SAXPY, CompileOptions(target=Target.ptx("compute_80")))
    assert image.kind is ImageKind.PTX
    assert image.ptx is not None
    assert image.data == image.ptx.encode()
    assert ".target sm_80" in image.ptx
    assert ".entry saxpy" in image.ptx
    assert b"\0" not in image.data
    assert image.compiler == ptx.nvrtc_version()


def test_cubin_image_is_an_elf_with_its_ptx_beside_it() -> None:
    image = ptx.compile(SAXPY, CompileOptions(target=Target.cubin("sm_90")))
    assert image.data[:4] == b"\x7fELF"
    assert image.ptx is not None
    assert ".entry saxpy" in image.ptx


def test_ltoir_image_has_no_ptx() -> None:
    image = ptx.compile(SAXPY, CompileOptions(target=Target.ltoir("sm_90")))
    assert len(image.data) > 100
    assert image.ptx is None


@pytest.mark.slow
def test_architecture_specific_targets_compile_on_request() -> None:
    for arch in ("sm_90a", "sm_100f", "sm_100a"):
        if int(arch[3:-1]) not in [t.number for t in ptx.supported_targets()]:
            pytest.skip(f"this NVRTC does not know {arch}")
        image = ptx.compile(SAXPY, CompileOptions(target=Target.cubin(arch)))
        assert f".target {arch}" in (image.ptx or "")


def test_signature_has_each_parameter_with_its_place() -> None:
    image = ptx.compile(SAXPY, CompileOptions(target=Target.cubin("sm_80")))
    params = image.signatures["saxpy"].params
    assert [(p.offset, p.nbytes) for p in params] == [(0, 4), (8, 8), (16, 8), (24, 4)]
    assert params[0].ptx_type == "f32"


def test_name_expressions_give_lowered_names_that_are_kernels() -> None:
    image = ptx.compile(SCALE, name_expressions=["scale<float>", "scale<double>"])
    assert set(image.lowered_names) == {"scale<float>", "scale<double>"}
    assert set(image.lowered_names.values()) == set(image.signatures)
    assert image.lowered_names["scale<float>"] == "_Z5scaleIfEvPT_S0_"


def test_name_expression_that_is_nothing_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="nothing_such"):
        ptx.compile(SCALE, name_expressions=["nothing_such<float>"])


def test_headers_in_memory_are_found() -> None:
    source = '#include "width.h"\n__global__ void k(int* x) { *x = WIDTH; }'
    image = ptx.compile(source, headers={"width.h": "#define WIDTH 77777\n"})
    assert "77777" in (image.ptx or "")


def test_options_reach_the_compiler() -> None:
    source = "__global__ void k(float* x) { x[0] = x[1] * x[2] + x[3] * N; }"
    fused = ptx.compile(source, CompileOptions(defines={"N": 3}))
    apart = ptx.compile(source, CompileOptions(defines={"N": 3}, fmad=False))
    assert "fma.rn.f32" in (fused.ptx or "")
    assert "fma.rn.f32" not in (apart.ptx or "")


def test_warning_is_in_the_log_of_a_good_image() -> None:
    with pytest.warns(ptx.CompileWarning):
        image = ptx.compile("__global__ void k() { int unused; }", name="quiet.cu")
    assert "quiet.cu(1): warning" in image.log


def test_error_points_at_the_line_with_a_caret() -> None:
    source = "// first\n__global__ void k(int* a) {\n    a[0] = missing;\n}\n"
    options = CompileOptions(target=Target.cubin("sm_80"))
    with pytest.raises(CompileError) as caught:
        ptx.compile(source, options, name="dir/bad.cu")
    error = caught.value
    assert (error.file, error.line) == ("dir/bad.cu", 3)
    assert error.options == options
    assert 'identifier "missing" is undefined' in error.log
    first = error.first_error
    assert first is not None
    assert first.source == "    a[0] = missing;"
    assert first.column == 12
    assert "        a[0] = missing;\n               ^" in str(error)


def test_every_error_of_a_source_is_a_diagnostic() -> None:
    source = "__global__ void k(int* a) {\n  a[0] = b;\n\ta[1] = c;\n}"
    with pytest.raises(CompileError) as caught:
        ptx.compile(source)
    errors = [d for d in caught.value.diagnostics if d.is_error]
    assert [(d.line, d.column) for d in errors] == [(2, 10), (3, 9)]


def test_unknown_option_is_a_compile_error_with_nvrtcs_words() -> None:
    with pytest.raises(CompileError, match="no-such-option"):
        ptx.compile(SAXPY, CompileOptions(extra=("--no-such-option",)))


def test_unknown_architecture_lists_the_known_ones() -> None:
    with pytest.raises(ptx.UnsupportedTargetError, match=r"does not compile for sm_85.*sm_80"):
        ptx.compile(SAXPY, CompileOptions(target=Target.cubin("sm_85")))


def test_missing_header_is_named_with_the_folders_searched(tmp_path: object) -> None:
    with pytest.raises(HeaderNotFoundError, match=r"'nowhere\.h' was not found") as caught:
        ptx.compile('#include "nowhere.h"\n', CompileOptions(include_paths=(str(tmp_path),)))
    assert caught.value.header == "nowhere.h"
    assert caught.value.searched[0] == str(tmp_path)
    assert caught.value.package is None


def test_sources_that_are_not_text_are_rejected() -> None:
    with pytest.raises(TypeError, match="source is b.*, of type bytes: give text"):
        ptx.compile(b"")  # type: ignore[arg-type]  # what an untyped caller might pass
    with pytest.raises(ValueError, match="source contains a NUL character"):
        ptx.compile("a\0b")


def test_empty_source_compiles_to_an_image_without_kernels() -> None:
    assert ptx.compile("").signatures == {}


def test_image_is_good_where_our_reader_does_not_understand_the_ptx(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reject(text: str) -> dict[str, ptx.KernelSignature]:
        raise syntax_error(text, 0, "a directive of the future")

    monkeypatch.setattr("ptx.isa.signature.signatures_of", reject)
    image = ptx.compile(SAXPY, CompileOptions(target=Target.cubin("sm_90")), cache=False)
    assert image.data[:4] == b"\x7fELF"
    assert image.signatures == {}
    assert "parameter types are not known" in image.log
    assert "a directive of the future" in image.log


def test_errors_that_repeat_are_named_by_their_lines() -> None:
    source = "int twice(int x) { return 2 * x; }\nint thrice(int x) { return 3 * x; }\n"
    with pytest.raises(ptx.CompileError) as caught:
        ptx.compile(source, cache=False, name="own.cu")
    first, _, _, advice, second = str(caught.value).splitlines()
    assert first.startswith("own.cu does not compile: own.cu(1): error: ")
    assert "-default-device" not in first
    assert advice.startswith("mark it __device__, or all such code by CompileOptions(extra=")
    assert second == "own.cu(2): the same"
    assert "-default-device" in caught.value.diagnostics[0].message
