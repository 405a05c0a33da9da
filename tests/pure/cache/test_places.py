"""Where a process may find itself: no home, no working folder, names that are not UTF-8."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NoReturn

import pytest

import ptx
from cudadrv.cli.info import gather
from cudadrv.runtime.calibration import CalibrationStore
from ptx import CompileOptions, ImageCache, ImageOrigin, Target, image_cache
from ptx.cache import toolchain
from ptx.cache.folder import NoCacheFolderError, PrivateFolder, folder_from_environment, seal
from ptx.cache.header_dependencies import HeaderMemo
from ptx.cache.store import decode, decode_key

SOURCE: Final = "__global__ void k(int* x) { *x = 1; }"
INCLUDES: Final = '#include "a.h"\n__global__ void k(int* x) { *x = VALUE; }'
PTX80: Final = CompileOptions(target=Target.ptx("compute_80"))


@pytest.mark.skipif(os.name == "nt", reason="HOME is POSIX's")
@pytest.mark.parametrize("home", [None, "", "relative"])
def test_without_a_home_images_are_compiled_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    import pwd

    def nobody(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.chdir(tmp_path)
    for name in ("CUDADRV_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    image_cache._default.cache_clear()
    with pytest.warns(ptx.CacheWarning, match="(?s)no home folder.*CUDADRV_CACHE_DIR") as caught:
        images = [ptx.compile(SOURCE + end, PTX80) for end in ("", " ", "")]
    assert [image.origin.value for image in images] == ["compiled", "compiled", "memory"]
    assert len(caught) == 1
    assert list(tmp_path.iterdir()) == []
    assert CalibrationStore.from_environment().load("a device") is None
    assert gather().cache_folder.startswith("none: there is no home folder")


def test_an_unknown_users_home_is_reported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_CACHE_DIR", "~nobody-has-this-name/cache")
    with pytest.raises(NoCacheFolderError, match="~nobody-has-this-name/cache"):
        folder_from_environment()
    with pytest.warns(ptx.CacheWarning, match="~nobody-has-this-name/cache"):
        assert ImageCache().get_or_compile(SOURCE, PTX80).origin is ImageOrigin.COMPILED


@pytest.fixture
def removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder is removed."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    try:
        (tmp_path / "gone").rmdir()
    except OSError:
        pytest.skip("a working folder cannot be removed here")


@pytest.mark.usefixtures("removed")
def test_in_a_removed_working_folder_everything_compiles(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#define VALUE 1\n")
    cache = ImageCache(tmp_path / "cache")
    for options in (PTX80, CompileOptions(lineinfo=True), CompileOptions(debug=True)):
        assert cache.get_or_compile(SOURCE, options).origin is ImageOrigin.COMPILED
    including = CompileOptions(include_paths=(tmp_path,))
    right = ptx.compile(INCLUDES, including, cache=False)
    assert cache.get_or_compile(INCLUDES, including) == right
    assert cache.get_or_compile(SOURCE, PTX80).origin is ImageOrigin.MEMORY
    assert cache.stats().process.uncacheable == 3


@pytest.mark.usefixtures("removed")
def test_a_relative_cache_folder_in_a_removed_working_folder_costs_one_warning() -> None:
    cache = ImageCache("relative")
    with pytest.warns(ptx.CacheWarning, match="does not work: "):
        assert cache.get_or_compile(SOURCE, PTX80).origin is ImageOrigin.COMPILED
    assert cache.get_or_compile(SOURCE, PTX80).origin is ImageOrigin.MEMORY


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A folder whose name is not UTF-8."""
    path = tmp_path / os.fsdecode(b"caf\xe9 \xff")
    try:
        path.mkdir(mode=0o700)
    except OSError:
        pytest.skip("the file system has no names but of UTF-8")
    return path


def test_a_cache_folder_need_not_be_utf_8(strange: Path) -> None:
    ImageCache(strange / "cache").get_or_compile(SOURCE, PTX80)
    cache = ImageCache(strange / "cache")
    assert cache.get_or_compile(SOURCE, PTX80).origin is ImageOrigin.DISK
    assert cache.verify() == ptx.Verification(1, ())
    cache.close()
    assert cache.clear() == 1


def test_include_paths_and_names_of_sources_need_not_be_utf_8(strange: Path) -> None:
    header = strange / "a.h"
    by_path = CompileOptions(target=PTX80.target, include_paths=(strange,), lineinfo=True)
    for value in (1, 2):
        header.write_text(f"#define VALUE {value}\n")
        cache = ImageCache(strange / "cache")
        for options, name in ((by_path, "kernel.cu"), (PTX80, str(strange / "kernel.cu"))):
            image = cache.get_or_compile(INCLUDES, options, name=name)
            assert image.origin is ImageOrigin.COMPILED
            assert f"{value};" in (image.ptx or "")
            again = ImageCache(strange / "cache").get_or_compile(INCLUDES, options, name=name)
            assert (again.origin, again) == (ImageOrigin.DISK, image)
    assert cache.explain(
        ptx.CompileRequest.of(INCLUDES + " ", by_path, "kernel.cu", (), None)
    ).differing == ("source",)


def test_an_error_in_a_source_whose_name_is_not_utf_8_points_at_its_line(strange: Path) -> None:
    with pytest.raises(ptx.CompileError) as caught:
        ptx.compile("\nnonsense;", name=str(strange / "kernel.cu"), cache=False)
    assert caught.value.line == 2
    assert caught.value.name == str(strange / "kernel.cu")


MALFORMED: Final = (
    b"", b"[]", b"{", b"{1: 2}", b"(" * 5000, b"-" * 100_000 + b"1", b"\xff\xfe", b"None",
    b"{'paths': 5}", b"'" + b"a" * 100,
)  # fmt: skip


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_notes_memos_and_entries_are_passed_over(tmp_path: Path, content: bytes) -> None:
    folder = PrivateFolder(tmp_path / "cache")
    folder.write(toolchain.FILE, seal(content))
    assert toolchain.build_of("nvrtc", folder).version == ptx.nvrtc_version()
    memo = HeaderMemo()
    memo.add(seal(content))
    assert memo.header("a.h") is None
    assert decode(seal(content), "a" * 64) is None
    assert decode_key(seal(content)) is None


@pytest.mark.parametrize(
    "note",
    [5, [], {}, {"path": 1}, {"path": "/", "stamp": [], "version": [1], "archs": 5},
     {"path": "a\0b", "stamp": [1, 2, 3], "version": (1, 2), "archs": ()}, {"folders": 5},
     {"folders": [b"", None]}, {"folders": [("a", 1), "b"]}, {"folders": [("a\0b", "")]}],
)  # fmt: skip
def test_malformed_notes_of_libraries_and_headers_are_passed_over(
    tmp_path: Path, note: object
) -> None:
    folder = PrivateFolder(tmp_path / "cache")
    keys = [f"{kind} {toolchain.fingerprint()}" for kind in ("nvrtc", "headers (13, 5)")]
    folder.write(toolchain.FILE, seal(repr(dict.fromkeys(keys, note)).encode()))
    assert toolchain.build_of("nvrtc", folder).version == ptx.nvrtc_version()
    found = (("folder", "runtime 13.5"),)
    assert toolchain.folders_of_headers((13, 5), folder, lambda *_: found) == found


def test_a_cache_reports_where_it_is(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path, max_bytes=1000)
    cache.get_or_compile(SOURCE, PTX80)
    assert repr(cache) == (
        f"<ptx.ImageCache {str(tmp_path)!r}, at most 1000 bytes, 1 images in memory>"
    )
    assert repr(ImageCache(max_bytes=0)) == "<ptx.ImageCache in memory alone, 0 images in memory>"
