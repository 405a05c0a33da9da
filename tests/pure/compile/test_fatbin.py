"""Fatbins: built by nvFatbin, and read."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

import ptx
from ptx import _nvrtc
from ptx.errors import FatbinError, ImageFormatError, NvFatbinNotFoundError

from ...emulator.fatbins import fatbin

SOURCE = "template <class T> __global__ void scale(T* x) { x[threadIdx.x] *= 2; }"
ARCHITECTURES = ("compute_80", "sm_80", "sm_90", "sm_90a", "sm_100f", "lto_90", "sm_120")
PTX = ".version 8.0\n.target sm_{0}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"


@functools.cache
def images() -> tuple[ptx.Image, ...]:
    return tuple(
        ptx.compile(
            SOURCE,
            ptx.CompileOptions(target=ptx.Target.parse(each)),
            name_expressions=["scale<int>"],
            cache=False,
        )
        for each in ARCHITECTURES
    )


@pytest.fixture
def nvfatbin() -> None:
    try:
        _nvrtc.fatbin_api()
    except NvFatbinNotFoundError:
        pytest.skip("nvFatbin is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("compress", [False, True])
def test_a_fatbin_holds_the_images_that_it_was_built_from(nvfatbin: None, compress: bool) -> None:
    built = ptx.Fatbin.build(images(), compress=compress)
    assert [each.target for each in built.entries] == [each.target for each in images()]
    for entry, image in zip(built.entries, images(), strict=True):
        if image.kind is ptx.ImageKind.PTX:
            # Without the comments, which have the types of C++.
            assert list(entry.image().signatures) == list(image.signatures)
        elif image.kind is not ptx.ImageKind.LTOIR or not compress:
            assert entry.data.rstrip(b"\0") == image.data.rstrip(b"\0")
    assert built.lowered_names == {"scale<int>": "_Z5scaleIiEvPT_"}
    whole = built.image()
    assert (whole.kind, whole.target.number) == (ptx.ImageKind.FATBIN, 80)
    assert whole.lowered_names == built.lowered_names
    assert list(whole.signatures) == ["_Z5scaleIiEvPT_"]


def test_compressed_ltoir_is_listed_and_not_read(nvfatbin: None) -> None:
    (entry,) = ptx.Fatbin.build([images()[5]], compress=True).entries
    assert entry.target == ptx.Target.parse("lto_90")
    with pytest.raises(ImageFormatError, match="build the fatbin without compression"):
        _ = entry.data


def test_compression_makes_a_fatbin_smaller(nvfatbin: None) -> None:
    sizes = [len(ptx.Fatbin.build(images(), compress=each).data) for each in (False, True)]
    assert sizes[1] < sizes[0] / 2


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        ((8, 0), "sm_80"),
        ((8, 9), "sm_80"),
        ((9, 0), "sm_90a"),
        ((10, 3), "sm_100f"),
        ((11, 0), "compute_80"),
        ((12, 1), "sm_120"),
    ],
)
def test_the_image_that_fits_a_device_best_is_machine_code_of_its_major_else_ptx(
    nvfatbin: None, capability: tuple[int, int], target: str
) -> None:
    found = ptx.Fatbin.build(images()).image_for(capability)
    assert found.target == ptx.Target.parse(target)


def test_a_device_that_is_too_old_is_rejected_with_the_targets() -> None:
    given = ptx.Fatbin.read(fatbin((1, 80, PTX.format(80).encode()), (2, 86, b"\x7fELF")))
    with pytest.raises(ptx.UnsupportedTargetError, match=r"7\.5: it has ptx.*cubin") as caught:
        given.image_for((7, 5))
    assert [each.number for each in caught.value.supported] == [80, 86]


def test_a_fatbin_of_a_file_is_read_without_nvfatbin(tmp_path: Path) -> None:
    file = tmp_path / "k.fatbin"
    file.write_bytes(fatbin((1, 80, PTX.format(80).encode()), (99, 80, b"unknown"), (8, 90, b"i")))
    found = ptx.Fatbin.read(file)
    assert [str(each.target) for each in found.entries] == ["ptx for compute_80", "ltoir for sm_90"]
    assert found.entries[0].data.decode() == PTX.format(80)
    assert list(found.entries[0].image().signatures) == ["k"]
    assert found.data == file.read_bytes()
    with pytest.raises(ImageFormatError, match="no fatbin"):
        ptx.Fatbin.read(b"none")


def test_an_image_of_another_architecture_is_rejected_by_nvfatbin(nvfatbin: None) -> None:
    wrong = ptx.Image.from_binary(images()[2].data, ptx.Target.cubin("sm_80"))
    with pytest.raises(FatbinError, match="cubin for sm_80: .*ARCH_MISMATCH"):
        ptx.Fatbin.build([wrong])


def test_what_is_no_sequence_of_images_is_rejected() -> None:
    with pytest.raises(ValueError, match="images is empty"):
        ptx.Fatbin.build([])
    with pytest.raises(TypeError, match=r"Fatbin\.build: images"):
        ptx.Fatbin.build(["text"])  # type: ignore[list-item]  # what is tested
    with pytest.raises(TypeError, match=r"Fatbin\.read: fatbin"):
        ptx.Fatbin.read("text")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ptx.errors.PtxArgumentValueError, match="fatbin contains a NUL character"):
        ptx.Fatbin.read(Path("a\0b"))


def test_a_missing_library_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    _nvrtc.fatbin_api.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvfatbin", None)
    with pytest.raises(NvFatbinNotFoundError, match="pip install nvidia-nvfatbin") as caught:
        ptx.Fatbin.build([ptx.Image.from_ptx(PTX.format(80))])
    assert "cuda.bindings.nvfatbin" in caught.value.reason
