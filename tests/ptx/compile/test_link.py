"""Linking: device functions across translation units, every kind of input, and refusals."""

from __future__ import annotations

import pytest

import ptx
from ptx import (
    CompileOptions,
    Image,
    ImageCache,
    ImageKind,
    ImageOrigin,
    LinkError,
    LinkOptions,
    Target,
)

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


def test_linking_to_ptx_says_that_it_takes_ltoir() -> None:
    with pytest.raises(LinkError, match=r"takes LTO-IR only, not cubin.*Target\.ltoir\('sm_90'\)"):
        ptx.link([part(CALLEE, ImageKind.CUBIN)], Target.ptx("compute_90"))


def test_unknown_option_and_damaged_input_are_link_errors() -> None:
    unit = part(CALLEE, ImageKind.CUBIN)
    with pytest.raises(LinkError, match="refuses its options .*-no-such"):
        ptx.link([unit], Target.cubin(ARCH), LinkOptions(extra=("-no-such",)))
    with pytest.raises(LinkError, match="does not take 'input 1"):
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


def test_lowered_names_of_every_input_are_kept() -> None:
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


def test_image_from_elsewhere_links() -> None:
    text = part(CALLEE, ImageKind.PTX).ptx or ""
    image = ptx.link([part(CALLER, ImageKind.PTX), Image.from_ptx(text)], Target.cubin(ARCH))
    assert "k" in image.signatures
