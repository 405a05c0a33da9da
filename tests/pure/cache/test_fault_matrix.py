"""Each fault of the cache folder, before the first image and after it.

Nothing raises, the images are right, and one warning names the remedy. A fault that leaves the
folder usable has none.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import pytest

import ptx
from ptx import CompileOptions, Target, image_cache

from .test_faults import in_namespace, run

PTX80: Final = CompileOptions(target=Target.ptx("compute_80"))
# Sets a folder of the cache, or breaks the present one.
Fault: TypeAlias = Callable[[pytest.MonkeyPatch, Path], None]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="faults of POSIX")


def named(value: str) -> Fault:
    return lambda patch, _: patch.setenv("CUDADRV_CACHE_DIR", value)


def a_file(patch: pytest.MonkeyPatch, top: Path) -> None:
    shutil.rmtree(top / "cache", ignore_errors=True)
    (top / "cache").write_text("a file")


def below_a_file(patch: pytest.MonkeyPatch, top: Path) -> None:
    (top / "file").write_text("a file")
    patch.setenv("CUDADRV_CACHE_DIR", str(top / "file" / "cache"))


def a_fifo(patch: pytest.MonkeyPatch, top: Path) -> None:
    shutil.rmtree(top / "cache", ignore_errors=True)
    os.mkfifo(top / "cache")


def a_link_to_itself(patch: pytest.MonkeyPatch, top: Path) -> None:
    shutil.rmtree(top / "cache", ignore_errors=True)
    (top / "cache").symlink_to(top / "cache")


def a_link_to_nothing(patch: pytest.MonkeyPatch, top: Path) -> None:
    shutil.rmtree(top / "cache", ignore_errors=True)
    (top / "cache").symlink_to(top / "nothing")


def removed(patch: pytest.MonkeyPatch, top: Path) -> None:
    shutil.rmtree(top / "cache", ignore_errors=True)


def images_in_a_file(patch: pytest.MonkeyPatch, top: Path) -> None:
    shutil.rmtree(top / "cache" / "images", ignore_errors=True)
    (top / "cache").mkdir(mode=0o700, exist_ok=True)
    (top / "cache" / "images").write_text("a file")


def files_of_one_byte(patch: pytest.MonkeyPatch, top: Path) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


# Each fault, and the number of warnings.
FAULTS: Final[dict[str, tuple[Fault, int]]] = {
    "blank": (named(""), 0),
    "spaces": (named("   "), 0),
    "a tab and a line's end": (named("\t\n"), 0),
    "a file": (a_file, 1),
    "below a file": (below_a_file, 1),
    "a FIFO": (a_fifo, 1),
    "a device": (named("/dev/null"), 1),
    "a full device": (named("/dev/full/cache"), 1),
    "a folder of the kernel": (named("/proc/cudadrv"), 1),
    "a long name": (named("x" * 300), 1),
    "a link to itself": (a_link_to_itself, 1),
    "a link to nothing": (a_link_to_nothing, 1),
    "removed": (removed, 0),
    "images in a file": (images_in_a_file, 1),
    "files of one byte": (files_of_one_byte, 1),
}


@contextmanager
def unlimited_afterwards() -> Iterator[None]:
    import resource

    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


def compiled(number: int) -> str:
    source = f"__global__ void k(int* x) {{ *x = {number}; }}"
    image = ptx.compile(source, PTX80)
    assert image.ptx is not None
    assert f", {number};" in image.ptx
    return image.origin.value


@pytest.mark.parametrize("when", ["first", "later"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_cache_folder_costs_one_warning_and_no_image(
    name: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDADRV_CACHE_DIR", str(tmp_path / "cache"))
    image_cache._default.cache_clear()  # of earlier tests with a folder of the same name
    fault, expected = FAULTS[name]
    with warnings.catch_warnings(record=True) as caught, unlimited_afterwards():
        warnings.simplefilter("always")
        if when == "later":
            compiled(7)
        fault(monkeypatch, tmp_path)
        assert [compiled(number) for number in (8, 9)] == ["compiled"] * 2
        again = compiled(8)
    texts = [str(each.message) for each in caught]
    assert len(texts) == expected, texts
    assert all("set CUDADRV_CACHE_DIR to a folder of your own" in text for text in texts)
    assert again == "memory"
    assert {path.name for path in tmp_path.iterdir()} <= {"cache", "file", "home", "nothing"}


@pytest.mark.skipif(sys.platform != "linux", reason="no mounts")
@pytest.mark.slow
@pytest.mark.parametrize("when", ["first", "later"])
@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_mounted_folder_with_a_fault_costs_one_warning(
    fault: str, when: str, tmp_path: Path
) -> None:
    size = "4k" if (fault, when) == ("full", "first") else "1m"
    prefix = in_namespace(f"mount -t tmpfs -o size={size} none {tmp_path}")
    breaking = {
        "full": f"open({str(tmp_path / 'rest')!r}, 'wb', 0).write(bytes(1 << 24))",
        "read-only": f"subprocess.run(['mount', '-o', 'remount,ro', {str(tmp_path)!r}])",
    }[fault]
    first = "ptx.ImageCache(FOLDER).get_or_compile('__global__ void first() {}', OPTIONS)"
    folder = str(tmp_path / "cache")
    lines = [
        "import contextlib, subprocess, ptx",
        *([first] if when == "later" else []),
        f"with contextlib.suppress(OSError): {breaking}",
    ]
    before = (
        "\n".join(lines)
        .replace("FOLDER", repr(folder))
        .replace("OPTIONS", "ptx.CompileOptions(target=ptx.Target.ptx('compute_80'))")
    )
    answer = run(tmp_path / "cache", before, prefix=prefix)
    assert answer["right"]
    assert answer["origins"] == ["compiled", "compiled", "memory"]
    found = answer["warnings"]
    assert isinstance(found, list)
    assert len(found) == 1
