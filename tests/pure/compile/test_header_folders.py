"""Which folders of CUDA's headers go with an NVRTC; the folders are small ones made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptx.headers import (
    CudaHeaders,
    HeaderFolder,
    Version,
    choose,
    found_folders,
    inspect,
    named_folders,
)

from .fake_headers import write_cccl, write_crt, write_runtime, write_toolkit


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip packages may lie in."""
    monkeypatch.syspath_prepend(tmp_path / "site")
    (tmp_path / "site").mkdir()
    return tmp_path / "site"


def found(here: Path, nvrtc: Version, library: str | None = None) -> list[HeaderFolder]:
    """The folders found in a test's own folder: the machine's are left out."""
    folders = found_folders(nvrtc, library)
    return [folder for folder in folders if Path(folder.path).is_relative_to(here)]


def chosen(folders: list[HeaderFolder], nvrtc: Version, bundle: str | None = None) -> CudaHeaders:
    return choose(nvrtc, folders, lambda: bundle)


def not_to_be_unpacked() -> str:
    raise AssertionError("the bundled headers are not needed")


@pytest.mark.parametrize("version", [(13, 5), (13, 0), (12, 9), (12, 4)])
def test_headers_report_their_version_of_cuda(tmp_path: Path, version: Version) -> None:
    write_runtime(tmp_path / "a", *version)
    write_cccl(tmp_path / "b", *version)
    assert inspect(str(tmp_path / "a"), "").versions == (("runtime", version),)
    assert inspect(str(tmp_path / "b"), "").versions == (("CCCL", version),)
    assert inspect(str(write_crt(tmp_path / "c")), "").versions == ()


@pytest.mark.parametrize("version", [(13, 5), (12, 9)])
def test_a_toolkit_of_nvrtcs_version_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: Version
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(write_toolkit(tmp_path, *version)))
    headers = chosen(found(tmp_path, version), version)
    include = str(tmp_path / "include")
    split = version[0] >= 13
    assert headers.paths == ((include, f"{include}/cccl") if split else (include,))
    assert headers.rejected == ()
    assert {folder.origin for folder in headers.folders} == {"toolkit of CUDA_HOME"}


@pytest.mark.parametrize(
    ("toolkit", "nvrtc"), [((13, 0), (13, 5)), ((13, 0), (12, 9)), ((12, 9), (13, 0))]
)
def test_a_toolkit_of_another_version_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolkit: Version, nvrtc: Version
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(write_toolkit(tmp_path, *toolkit)))
    headers = chosen(found(tmp_path, nvrtc), nvrtc)
    assert headers.folders == ()
    told = [part for folder in headers.rejected for part in folder.versions]
    assert told == [("runtime", toolkit), ("CCCL", toolkit)]


def test_packages_of_cuda_12_are_used_beside_a_toolkit_of_cuda_13(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(write_toolkit(tmp_path / "toolkit", 13, 0)))
    runtime = write_runtime(site / "nvidia/cuda_runtime/include", 12, 9)
    cccl = write_cccl(site / "nvidia/cuda_cccl/include", 12, 9)
    crt = write_crt(site / "nvidia/cuda_nvcc/include")
    (site / "nvidia_cuda_nvcc_cu12-12.9.86.dist-info").mkdir()
    headers = chosen(found(tmp_path, (12, 9)), (12, 9))
    assert headers.paths == (str(runtime), str(cccl), str(crt))
    assert headers.folders[2].versions == (("crt", (12, 9)),)
    assert [folder.origin for folder in headers.rejected] == ["toolkit of CUDA_HOME"] * 2


def test_whole_packages_make_unpacking_needless(tmp_path: Path, site: Path) -> None:
    include = site / "nvidia/cu13/include"
    write_cccl(write_crt(write_runtime(include, 13, 5)) / "cccl", 13, 5)
    headers = choose((13, 5), found(tmp_path, (13, 5)), not_to_be_unpacked)
    assert headers.paths == (str(include), str(include / "cccl"))


def test_bundled_headers_come_before_parts_of_packages_and_those_before_toolkits(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(write_toolkit(tmp_path / "toolkit", 13, 5)))
    pip = write_runtime(site / "nvidia/cu13/include", 13, 5)
    headers = chosen(found(tmp_path, (13, 5)), (13, 5), bundle="/b")
    toolkit = tmp_path / "toolkit/include"
    assert headers.paths == ("/b", "/b/cccl", str(pip), str(toolkit), str(toolkit / "cccl"))
    assert headers.folders[0].contents() == "runtime 13.5, crt 13.5"
    assert headers.folders[1].contents() == "CCCL 13.5"


def test_an_nvrtc_that_bundles_none_is_not_queried_for_them(tmp_path: Path) -> None:
    assert choose((13, 2), found(tmp_path, (13, 2)), not_to_be_unpacked).folders == ()


def test_one_package_of_another_version_rejects_the_folder_that_it_shares(
    tmp_path: Path, site: Path
) -> None:
    write_crt(write_runtime(site / "nvidia/cu13/include", 13, 2))
    (site / "nvidia_cuda_crt-13.0.48.dist-info").mkdir()
    headers = chosen(found(tmp_path, (13, 2)), (13, 2))
    assert headers.folders == ()
    assert headers.rejected[0].misfits((13, 2)) == (("crt", (13, 0)),)


def test_a_newer_cccl_is_rejected_and_the_rest_used(tmp_path: Path, site: Path) -> None:
    include = write_runtime(site / "nvidia/cu13/include", 13, 0)
    write_cccl(include / "cccl", 13, 5)
    headers = chosen(found(tmp_path, (13, 0)), (13, 0))
    assert headers.paths == (str(include),)
    assert headers.rejected[0].path == str(include / "cccl")


def test_headers_without_a_version_go_with_every_nvrtc(tmp_path: Path, site: Path) -> None:
    include = site / "nvidia/cu13/include"
    include.mkdir(parents=True)
    (include / "nvrtc.h").write_text("")
    assert found(tmp_path, (13, 5)) == []
    (include / "curand_kernel.h").write_text("")
    assert chosen(found(tmp_path, (13, 5)), (13, 5)).paths == (str(include),)


def test_the_toolkit_that_nvrtc_is_of_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write_toolkit(tmp_path / "own", 13, 0)
    monkeypatch.setenv("CUDA_HOME", str(write_toolkit(tmp_path / "named", 13, 0)))
    for library in ("lib64/libnvrtc.so.13", "targets/x86_64-linux/lib/libnvrtc.so.13"):
        folders = found(tmp_path, (13, 0), str(own / library))
        assert [Path(folder.path).relative_to(tmp_path).parts[0] for folder in folders] == [
            "own",
            "own",
            "named",
            "named",
        ]
        assert folders[0].origin == "toolkit of NVRTC"


def test_a_folder_with_several_names_stands_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_toolkit(tmp_path / "cuda-13.0", 13, 0)
    (root / "targets/x86_64-linux").mkdir(parents=True)
    (root / "targets/x86_64-linux/include").symlink_to(root / "include")
    (tmp_path / "cuda").symlink_to(root)
    monkeypatch.setenv("CUDA_PATH", str(root))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert [folder.path for folder in found(tmp_path, (13, 0))] == [
        f"{root}/include",
        f"{root}/include/cccl",
    ]


def test_named_folders_are_taken_as_they_are(tmp_path: Path) -> None:
    include = write_toolkit(tmp_path, 13, 0) / "include"
    absent = str(tmp_path / "absent")
    folders = named_folders((str(include), absent))
    assert [folder.path for folder in folders] == [str(include), f"{include}/cccl", absent]
    assert folders[1].contents() == "CCCL 13.0"
