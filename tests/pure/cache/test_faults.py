"""A disk that refuses: everything works, uncached, with one warning."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ptx
from ptx import CompileOptions, ImageCache, ImageOrigin, Target
from ptx.cache.folder import take
from ptx.cache.key import sealed_key
from ptx.cache.store import Store
from tests.patience import SECONDS

SOURCE = "__global__ void k(int* x) { *x = 1; }"
PTX80 = CompileOptions(target=Target.ptx("compute_80"))

SCRIPT = """
import json, os, sys, warnings
{before}
import ptx
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cache = ptx.ImageCache({folder!r})
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_80"))
    images = [
        cache.get_or_compile("__global__ void k(int* x) {{ *x = %d; }}" % n, options)
        for n in (1, 2, 1)
    ]
print(json.dumps({{
    "origins": [image.origin.value for image in images],
    "right": all(".entry _Z1kPi" in image.ptx for image in images),
    "warnings": [str(w.message) for w in caught],
    "failed": cache.stats().process.failed,
    "files": [name for _, _, names in os.walk({folder!r}) for name in names],
}}))
"""


def run(folder: Path, before: str = "", *, prefix: tuple[str, ...] = ()) -> dict[str, object]:
    script = SCRIPT.format(folder=str(folder), before=before)
    done = subprocess.run(
        [*prefix, sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_file_where_the_folder_should_be_costs_one_warning(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    path.write_text("not a folder")
    cache = ImageCache(path)
    with pytest.warns(ptx.CacheWarning, match="CUDADRV_CACHE_DIR"):
        first = cache.get_or_compile(SOURCE, PTX80)
    # The second time without a warning, which would be an error here.
    second = cache.get_or_compile(SOURCE + " ", PTX80)
    assert (first.origin, second.origin) == (ImageOrigin.COMPILED, ImageOrigin.COMPILED)
    assert cache.get_or_compile(SOURCE, PTX80).origin is ImageOrigin.MEMORY
    assert path.read_text() == "not a folder"


def test_file_where_the_images_should_be_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("not a folder")
    with pytest.warns(ptx.CacheWarning):
        image = ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    assert image.origin is ImageOrigin.COMPILED


def test_each_fault_is_logged_though_only_the_first_one_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cache"
    path.write_text("not a folder")
    store, image = Store(path, 1 << 20), ptx.Image(Target.parse("compute_80"), b"an image")
    caplog.set_level("INFO", logger="ptx.image_cache")
    with pytest.warns(ptx.CacheWarning) as caught:
        store.put(sealed_key({"number": "1"}), image)
    store.put(sealed_key({"number": "2"}), image)
    assert len(caught) == 1
    assert [record.message.split(":")[0] for record in caplog.records] == ["cache folder"] * 2


def test_a_header_folder_that_cannot_be_removed_keeps_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "headers-12.9", tmp_path / "headers-13.0"]
    for folder in folders:
        folder.mkdir(mode=0o700)
        (folder / ".nvrtc_headers_version").touch()
    failures: list[object] = []

    def fail_first(path: str, *, dir_fd: int | None = None) -> None:
        if not failures:
            failures.append(path)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        real(path, dir_fd=dir_fd)

    real = os.rmdir
    monkeypatch.setattr(os, "rmdir", fail_first)
    Store(tmp_path, 1 << 20).clear()
    assert failures
    assert len([folder for folder in folders if folder.exists()]) == 1


def in_namespace(command: str) -> tuple[str, ...]:
    """A prefix that runs what follows after a mount of its own; skips where that is no right."""
    prefix = ("unshare", "-rm", "sh", "-c", f'{command} && exec "$@"', "sh")
    if shutil.which("unshare") is None or subprocess.run([*prefix, "true"]).returncode:
        pytest.skip("no right to mount in a namespace")
    return prefix


@pytest.mark.skipif(os.name == "nt", reason="no POSIX permissions")
def test_read_only_folder_still_gives_hits(tmp_path: Path) -> None:
    ImageCache(tmp_path).get_or_compile(SOURCE, PTX80)
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:  # who may write whatever the mode says
        prefix = in_namespace(
            f"mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path}"
        )
    for folder in folders:
        folder.chmod(0o500)
    try:
        answer = run(tmp_path, prefix=prefix)
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert answer["right"]
    assert answer["origins"] == ["disk", "compiled", "memory"]
    assert len(answer["warnings"]) == 1  # type: ignore[arg-type]  # JSON


@pytest.mark.skipif(os.name == "nt", reason="a file in use cannot be read there, either")
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_reads_that_fail_cost_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    sources = (SOURCE, SOURCE + " ")
    for source in sources:
        ImageCache(tmp_path).get_or_compile(source, PTX80)

    def fail(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith(".image"):
            raise OSError(code, os.strerror(code), path)
        return real(path, flags, mode, dir_fd=dir_fd)

    real = os.open
    monkeypatch.setattr(os, "open", fail)
    cache = ImageCache(tmp_path)
    with pytest.warns(
        ptx.CacheWarning, match=f"(?s){os.strerror(code)}.*CUDADRV_CACHE_DIR"
    ) as caught:
        images = [cache.get_or_compile(source, PTX80) for source in sources]
    assert len(caught) == 1
    assert [image.origin for image in images] == [ImageOrigin.COMPILED] * 2


@pytest.mark.skipif(os.name == "nt", reason="no RLIMIT_FSIZE")
def test_write_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    before = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))"
    answer = run(tmp_path / "cache", before)
    assert answer["right"]
    assert answer["origins"] == ["compiled", "compiled", "memory"]
    assert answer["failed"] == 2
    assert len(answer["warnings"]) == 1  # type: ignore[arg-type]  # JSON
    names = answer["files"]
    assert isinstance(names, list)
    assert not [name for name in names if name.endswith(".image") or name.startswith(".")]


@pytest.mark.skipif(sys.platform != "linux", reason="no tmpfs")
def test_full_disk_costs_one_warning(tmp_path: Path) -> None:
    prefix = in_namespace(f"mount -t tmpfs -o size=4k none {tmp_path}")
    answer = run(tmp_path / "cache", prefix=prefix)
    assert answer["right"]
    assert answer["failed"] == 2
    assert len(answer["warnings"]) == 1  # type: ignore[arg-type]  # JSON
    assert answer["origins"] == ["compiled", "compiled", "memory"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no interval timers")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a listing's end
def test_interrupts_leave_no_lock_and_no_torn_entry(tmp_path: Path) -> None:
    store, digest = Store(tmp_path, 1 << 20), "ab" * 32

    def interrupt(*_: object) -> None:
        interrupted.append(True)
        raise KeyboardInterrupt

    def use_until_interrupted(after_s: float) -> None:
        interrupted.clear()
        signal.setitimer(signal.ITIMER_REAL, after_s)
        while not interrupted:  # a finalizer may have swallowed it
            with store.lock(digest):
                store.write(digest, b"an entry")
            assert store.read(digest) == b"an entry"
        raise KeyboardInterrupt

    interrupted: list[bool] = []
    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(200):
            with pytest.raises(KeyboardInterrupt):
                use_until_interrupted(5e-5 + number % 40 * 5e-5)
    finally:
        signal.signal(signal.SIGALRM, old)
    with (tmp_path / "locks" / digest[:2]).open("r+b") as file:
        assert take(file.fileno())
    assert store.read(digest) == b"an entry"


def test_zero_megabytes_turn_the_disk_off(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_CACHE_MAX_MB", "0")
    assert ptx.compile(SOURCE, PTX80).origin is ImageOrigin.COMPILED
    assert ptx.compile(SOURCE, PTX80).origin is ImageOrigin.MEMORY
    assert ptx.default_cache().folder is None
    assert not cache_folder.exists()


def test_bound_that_is_no_number_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_CACHE_MAX_MB", "lots")
    with pytest.raises(ValueError, match="CUDADRV_CACHE_MAX_MB='lots' is not a number"):
        ptx.compile(SOURCE, PTX80)


def test_environment_names_folder_and_bound(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_CACHE_MAX_MB", "1.5")
    ptx.compile(SOURCE, PTX80)
    stats = ptx.default_cache().stats()
    assert (stats.folder, stats.max_bytes, stats.entries) == (cache_folder, 3 << 19, 1)


def test_platform_folder_is_used_where_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDADRV_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform != "linux":
        pytest.skip("XDG_CACHE_HOME is Linux's")
    assert ptx.default_cache().folder == tmp_path / "cudadrv"
