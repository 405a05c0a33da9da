"""Linking: device functions across translation units, every kind of input, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptx
from ptx import (
    CompileOptions,
    Image,
    ImageCache,
    ImageFormatError,
    ImageKind,
    ImageOrigin,
    LinkError,
    LinkInput,
    LinkKind,
    LinkOptions,
    Target,
)
from ptx._nvrtc import library_path

CALLER = """
extern "C" __device__ float triple(float x);
extern "C" __global__ void k(float* a, int n) {
    int i = threadIdx.x;
    if (i < n) a[i] = triple(a[i]);
}
"""
CALLEE = 'extern "C" __device__ float triple(float x) { return x * 3.0f; }'
ARCH = "sm_90"
RELOCATABLE = "--relocatable-device-code=true"


def part(source: str, kind: ImageKind) -> Image:
    extra = () if kind is ImageKind.LTOIR else (RELOCATABLE,)
    target = Target.parse(ARCH).as_kind(kind)
    return ptx.compile(source, CompileOptions(target=target, extra=extra))


@pytest.mark.slow
@pytest.mark.parametrize("caller", [ImageKind.LTOIR, ImageKind.PTX, ImageKind.CUBIN])
@pytest.mark.parametrize("callee", [ImageKind.LTOIR, ImageKind.PTX, ImageKind.CUBIN])
def test_device_function_is_found_in_another_unit_of_any_kind(
    caller: ImageKind, callee: ImageKind
) -> None:
    image = ptx.link([part(CALLER, caller), part(CALLEE, callee)], Target.cubin(ARCH))
    assert image.kind is ImageKind.CUBIN
    assert image.data[:4] == b"\x7fELF"
    offsets = [(p.offset, p.nbytes) for p in image.signatures["k"].params]
    assert offsets == [(0, 8), (8, 4)]


def test_ltoir_links_to_ptx_with_the_function_inlined() -> None:
    parts = [part(source, ImageKind.LTOIR) for source in (CALLER, CALLEE)]
    image = ptx.link(parts, Target.ptx("compute_90"))
    text = image.ptx or ""
    assert image.data.decode() == text
    assert ".entry k(" in text
    assert "call" not in text
    assert "0f40400000" in text  # 3.0f


def test_ltoir_links_for_a_newer_architecture_and_not_for_an_older() -> None:
    parts = [part(source, ImageKind.LTOIR) for source in (CALLER, CALLEE)]
    assert ptx.link(parts, Target.cubin("sm_100")).target == Target.cubin("sm_100")
    with pytest.raises(LinkError, match="newer than target arch"):
        ptx.link(parts, Target.cubin("sm_80"))


def test_missing_function_is_named_with_the_input_that_wants_it() -> None:
    with pytest.raises(LinkError, match=r"Undefined reference to 'triple' in 'input 1") as caught:
        ptx.link([part(CALLER, ImageKind.CUBIN)], Target.cubin(ARCH))
    assert "triple" in caught.value.log
    assert f"-arch={ARCH}" in caught.value.options


def test_a_function_of_two_inputs_is_rejected() -> None:
    """nvJitLink writes that to standard error, and takes one of them."""
    first, second = (
        part(f'extern "C" __device__ int times(int x) {{ return {n} * x; }}', ImageKind.PTX)
        for n in (2, 3)
    )
    for target in (Target.cubin(ARCH), Target.ptx("compute_90")):
        with pytest.raises(LinkError, match=r"times is defined in input 1 .* and in input 2"):
            ptx.link([first, second], target, cache=False)


def test_ptx_links_to_ptx_without_nvjitlink() -> None:
    parts = [part(source, ImageKind.PTX) for source in (CALLER, CALLEE)]
    image = ptx.link(parts, Target.ptx("compute_90"), LinkOptions(maxrregcount=40))
    assert ".maxnreg 40" in (image.ptx or "")
    assert image.compiler is None
    assert [p.nbytes for p in image.signatures["k"].params] == [8, 4]
    with pytest.raises(LinkError, match=r"Undefined reference to 'triple' in 'input 1"):
        ptx.link(parts[:1], Target.ptx("compute_90"))
    with pytest.raises(LinkError, match="triple is defined in input 1 .* and in input 2"):
        ptx.link([parts[1], parts[1]], Target.ptx("compute_90"))
    with pytest.raises(LinkError, match="newer than target arch compute_80"):
        ptx.link(parts, Target.ptx("compute_80"))


@pytest.mark.slow
def test_ltoir_and_ptx_link_to_ptx() -> None:
    parts = [part(CALLER, ImageKind.LTOIR), part(CALLEE, ImageKind.PTX)]
    image = ptx.link(parts, Target.ptx("compute_90"))
    assert "triple" in (image.ptx or "")
    assert "k" in image.signatures


def test_linking_to_ptx_rejects_machine_code_by_name() -> None:
    with pytest.raises(LinkError, match=r"(?s)is a cubin, which does not link.*\('compute_90'"):
        ptx.link([part(CALLEE, ImageKind.CUBIN)], Target.ptx("compute_90"))


def test_files_are_recognised_by_their_content(tmp_path: Path) -> None:
    cubin, text = tmp_path / "callee.o", tmp_path / "caller.txt"
    cubin.write_bytes(part(CALLEE, ImageKind.CUBIN).data)
    text.write_text(part(CALLER, ImageKind.PTX).ptx or "")
    image = ptx.link([text, cubin], Target.cubin(ARCH))
    assert "k" in image.signatures
    kinds = {
        b"!<arch>\n": LinkKind.ARCHIVE,
        b"\x50\xed\x55\xba": LinkKind.FATBIN,
        b"\x7fELF" + bytes(14) + b"\x3e\0": LinkKind.OBJECT,
        cubin.read_bytes(): LinkKind.CUBIN,
    }
    for data, kind in kinds.items():
        assert LinkInput.of(data).kind is kind
        if kind is not LinkKind.CUBIN:
            with pytest.raises(LinkError, match=kind.value):
                ptx.link([data], Target.ptx("compute_90"))
    with pytest.raises(ImageFormatError, match="input 2 cannot be linked"):
        ptx.link([text, b"BC\xc0\xde"], Target.cubin(ARCH))


def test_an_archive_of_objects_links() -> None:
    archive = cudadevrt()
    user = """
.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b64 result) cudaCGGetIntrinsicHandle (.param .b32 scope);
.visible .entry k() {
  { .param .b32 scope; st.param.b32 [scope], 2; .param .b64 result;
    call.uni (result), cudaCGGetIntrinsicHandle, (scope); }
  ret;
}
"""
    with pytest.raises(LinkError, match="Undefined reference to 'cudaCGGetIntrinsicHandle'"):
        ptx.link([user], Target.cubin(ARCH))
    assert ptx.link([user, archive], Target.cubin(ARCH)).data[:4] == b"\x7fELF"


def cudadevrt() -> Path:
    """CUDA's library of device code, which comes with the toolkit or its run-time package."""
    found = library_path("nvJitLink")
    folders = (Path(found or "/").parent, Path("/usr/local/cuda/lib64"))
    archives = [each / "libcudadevrt.a" for each in folders]
    archive = next((each for each in archives if each.exists()), None)
    if archive is None:
        pytest.skip("needs libcudadevrt.a, an archive of device code")
    return archive


def test_unknown_option_and_damaged_input_are_link_errors() -> None:
    unit = part(CALLEE, ImageKind.CUBIN)
    with pytest.raises(LinkError, match="rejects its options .*-no-such"):
        ptx.link([unit], Target.cubin(ARCH), LinkOptions(extra=("-no-such",)))
    with pytest.raises(LinkError, match="does not accept 'input 1"):
        ptx.link([Image.from_binary(b"no cubin", Target.cubin(ARCH))], Target.cubin(ARCH))
    with pytest.raises(ValueError, match="at least one image"):
        ptx.link([], Target.cubin(ARCH))


def test_options_reach_the_linker() -> None:
    source = "__global__ void k(float* x) { x[0] = x[1] * x[2] + x[3]; }"
    unit = [part(source, ImageKind.LTOIR)]
    fused = ptx.link(unit, Target.ptx(ARCH), LinkOptions(fmad=True))
    apart = ptx.link(unit, Target.ptx(ARCH), LinkOptions(fmad=False))
    assert "fma.rn.f32" in (fused.ptx or "")
    assert "fma.rn.f32" not in (apart.ptx or "")


@pytest.mark.slow
def test_lowered_names_of_every_input_are_stored() -> None:
    source = "template <typename T> __global__ void twice(T* x) { *x *= 2; }"
    options = CompileOptions(target=Target.ltoir(ARCH))
    unit = ptx.compile(source, options, name_expressions=["twice<int>"])
    image = ptx.link([unit, part(CALLEE, ImageKind.LTOIR)], Target.cubin(ARCH))
    assert image.lowered_names["twice<int>"] in image.signatures


def test_linked_image_is_cached_like_a_compiled_one(tmp_path: object) -> None:
    parts = [part(source, ImageKind.LTOIR) for source in (CALLER, CALLEE)]
    first, second = ImageCache(str(tmp_path)), ImageCache(str(tmp_path))
    linked = first.get_or_link(parts, Target.cubin(ARCH))
    again = second.get_or_link(parts, Target.cubin(ARCH))
    assert (linked.origin, again.origin) == (ImageOrigin.COMPILED, ImageOrigin.DISK)
    assert again == linked
    other = second.get_or_link(parts, Target.cubin(ARCH), LinkOptions(fmad=False))
    assert other.origin is ImageOrigin.COMPILED


@pytest.mark.slow
def test_image_from_elsewhere_links() -> None:
    text = part(CALLEE, ImageKind.PTX).ptx or ""
    image = ptx.link([part(CALLER, ImageKind.PTX), Image.from_ptx(text)], Target.cubin(ARCH))
    assert "k" in image.signatures
