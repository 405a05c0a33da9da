"""Damaged, foreign and untrusted entries: a miss or the right image, never a wrong one."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

import ptx
from ptx import CompileOptions, ImageCache, ImageOrigin, Target
from ptx.cache import toolchain
from ptx.cache.folder import MOST_BYTES, PrivateFolder, seal
from ptx.cache.header_dependencies import HeaderMemo
from ptx.cache.key import differences, sealed_key
from ptx.cache.store import decode, decode_key, encode

SOURCE = "__global__ void k(int* x) { *x = 1; }"
PTX80 = CompileOptions(target=Target.ptx("compute_80"))
KEY = sealed_key({"source": "s"}, [("a.h", "0" * 64)])


def entry_of(folder: Path) -> Path:
    (path,) = (folder / "images").iterdir()
    return path


@pytest.fixture
def entry(tmp_path: Path) -> bytes:
    return encode(ptx.compile(SOURCE, PTX80, cache=False), KEY)


@pytest.mark.filterwarnings("ignore::ptx.CompileWarning")  # their log is stored as well
def test_entry_returns_what_was_stored() -> None:
    for target in ("compute_80", "sm_90a", "lto_90"):
        image = ptx.compile(
            "template <typename T> __global__ void k(T* x) { int unused; *x += 1; }",
            CompileOptions(target=Target.parse(target)),
            name_expressions=["k<float>"],
            cache=False,
        )
        data = encode(image, KEY)
        assert decode(data, KEY.digest) == image
        stored = decode_key(data)
        assert stored is not None
        assert stored.digest == KEY.digest
        assert differences(stored, KEY) == ()


def test_every_flipped_byte_is_a_miss(entry: bytes) -> None:
    for place in range(len(entry)):
        for flip in (0x01, 0xFF):
            damaged = bytearray(entry)
            damaged[place] ^= flip
            assert decode(bytes(damaged), KEY.digest) is None


def test_every_truncation_is_a_miss(entry: bytes) -> None:
    for length in range(len(entry)):
        assert decode(entry[:length], KEY.digest) is None
    assert decode(entry + b"\0", KEY.digest) is None


def test_entry_of_another_key_is_a_miss(entry: bytes) -> None:
    assert decode(entry, sealed_key({"source": "t"}).digest) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 4096, b"cudadrv cache 1\n", os.urandom(4096)],
    ids=["empty", "zeros", "header", "random"],
)
def test_foreign_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    entry_of(tmp_path).write_bytes(content)
    cache = ImageCache(tmp_path)
    assert cache.get_or_compile(SOURCE, PTX80).origin is ImageOrigin.COMPILED
    assert cache.stats().process.rejected == 1
    assert ImageCache(tmp_path).get_or_compile(SOURCE, PTX80).origin is ImageOrigin.DISK


def test_damage_on_disk_gives_the_right_image(tmp_path: Path) -> None:
    right = ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    path = entry_of(tmp_path)
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 20):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        assert ImageCache(tmp_path).get_or_compile(SOURCE, PTX80) == right
        path.write_bytes(whole[:place])
        assert ImageCache(tmp_path).get_or_compile(SOURCE, PTX80) == right


def test_damaged_memo_of_headers_hides_no_change(tmp_path: Path) -> None:
    header = tmp_path / "a.h"
    header.write_text("#define V 1\n")
    os.utime(header, (1e9, 1e9))
    options = CompileOptions(target=PTX80.target, include_paths=(tmp_path,))
    source = '#include "a.h"\n__global__ void k(int* x) { *x = V; }'
    ImageCache(tmp_path / "c").get_or_compile(source, options)
    memos = list((tmp_path / "c" / "memos").iterdir())
    assert memos
    for memo in memos:
        memo.write_bytes(memo.read_bytes()[:-3] + b"999")
    (tmp_path / "c" / toolchain.FILE).write_bytes(b"cudadrv cache 1\n{}")
    header.write_text("#define V 2\n")
    image = ImageCache(tmp_path / "c").get_or_compile(source, options)
    assert image.origin is ImageOrigin.COMPILED


@pytest.mark.parametrize("content", ["[]", '{"a.h": [1]}', '{"a.h": [[1,2,3,4], "d", [[]]]}', "no"])
def test_memo_of_another_version_is_passed_over(content: str) -> None:
    memo = HeaderMemo()
    memo.add(seal(content.encode()))
    assert memo.header("a.h") is None


def test_verify_names_damaged_entries_and_removes_them(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    cache.get_or_compile(SOURCE, PTX80)
    path = entry_of(tmp_path)
    cache.get_or_compile(SOURCE + " ", PTX80)
    assert cache.verify() == ptx.Verification(2, ())
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.verify() == ptx.Verification(2, (path.stem,))
    assert cache.verify(remove=True).damaged == (path.stem,)
    assert cache.verify() == ptx.Verification(1, ())


@pytest.mark.skipif(os.name == "nt", reason="no POSIX permissions")
def test_files_are_private_to_the_user(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        ImageCache(tmp_path / "new").get_or_compile(SOURCE, PTX80)
    finally:
        os.umask(old)
    for path in (tmp_path / "new", *(tmp_path / "new").rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.skipif(os.name == "nt", reason="no POSIX permissions")
@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_entry_that_others_can_write_is_not_trusted(tmp_path: Path, mode: int) -> None:
    ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    entry_of(tmp_path).chmod(mode)
    assert ImageCache(tmp_path).get_or_compile(SOURCE, PTX80).origin is ImageOrigin.COMPILED
    assert stat.S_IMODE(entry_of(tmp_path).stat().st_mode) == 0o600


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root to give a file away")
def test_entry_of_another_owner_is_not_trusted(tmp_path: Path) -> None:
    ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    os.chown(entry_of(tmp_path), 65534, 65534)
    assert ImageCache(tmp_path).get_or_compile(SOURCE, PTX80).origin is ImageOrigin.COMPILED


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root to give a folder away")
def test_folder_of_another_owner_is_not_trusted(tmp_path: Path) -> None:
    ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    os.chown(tmp_path / "images", 65534, 65534)
    with pytest.warns(ptx.CacheWarning, match="belongs to user 65534"):
        image = ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    assert image.origin is ImageOrigin.COMPILED


@pytest.mark.skipif(os.name == "nt", reason="no POSIX permissions")
def test_folder_that_everybody_can_write_is_not_trusted(tmp_path: Path) -> None:
    ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    (tmp_path / "images").chmod(0o777)
    cache = ImageCache(tmp_path)
    with pytest.warns(ptx.CacheWarning, match="writable by everybody"):
        image = cache.get_or_compile(SOURCE, PTX80)
    assert image.origin is ImageOrigin.COMPILED
    # The second time without a warning, which would be an error here.
    assert cache.get_or_compile(SOURCE + " ", PTX80).origin is ImageOrigin.COMPILED


@pytest.mark.skipif(os.name == "nt", reason="no links")
def test_entry_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    path = entry_of(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert ImageCache(tmp_path).get_or_compile(SOURCE, PTX80).origin is ImageOrigin.COMPILED


def test_nothing_in_the_package_can_run_what_it_reads() -> None:
    words = re.compile(r"\b(pickle|marshal|shelve|exec|eval)\b\s*[(.\n]")
    package = Path(ptx.__file__).parent
    for path in (*(package / "cache").glob("*.py"), package / "image_cache.py"):
        assert not words.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("kind", ["memos", toolchain.FILE, "cudadrv-statistics"])
def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, kind: str) -> None:
    header, folder = tmp_path / "a.h", tmp_path / "cache"
    header.write_text("#define V 1\n")
    options = CompileOptions(target=PTX80.target, include_paths=(tmp_path,))
    source = '#include "a.h"\n__global__ void k(int* x) { *x = V; }'
    right = ImageCache(folder).get_or_compile(source, options)
    path = folder / kind
    if path.is_dir():
        (path,) = path.iterdir()
    path.touch(0o600)
    os.truncate(path, MOST_BYTES + 1)
    assert PrivateFolder(path.parent).read(path.name) is None
    cache = ImageCache(folder)
    assert cache.get_or_compile(source, options).data == right.data
