"""The cache as its users see it: memory, bounds, statistics, explanations, prewarming."""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ptx
from ptx import (
    CompileError,
    CompileOptions,
    CompileRequest,
    Image,
    ImageCache,
    ImageOrigin,
    Prewarmed,
    Target,
    prewarm,
)
from ptx.cache import toolchain
from ptx.cache.folder import PrivateFolder, seal
from ptx.cache.key import Key, sealed_key
from ptx.cache.store import STATISTICS, Store
from ptx.cache.toolchain import build_of
from ptx.image_cache import Made
from tests.patience import SECONDS
from tests.several_threads import all_at_once

PTX80 = CompileOptions(target=Target.ptx("compute_80"))
DEFAULT = CompileOptions()


def source(number: int) -> str:
    return f"__global__ void k(int* x) {{ *x = {number}; }}"


def request(text: str, options: CompileOptions = PTX80, name: str = "kernel.cu") -> CompileRequest:
    return CompileRequest.of(text, options, name, (), None)


def test_second_request_in_a_process_is_served_from_memory(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    first = cache.get_or_compile(source(1), PTX80)
    second = cache.get_or_compile(source(1), PTX80)
    assert (first.origin, second.origin) == (ImageOrigin.COMPILED, ImageOrigin.MEMORY)
    assert first == second


def test_threads_that_want_one_source_at_once_compile_once(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    barrier = threading.Barrier(16)
    images = []

    def want() -> None:
        barrier.wait()
        images.append(cache.get_or_compile(source(1), PTX80))

    all_at_once([want] * 16)
    tally = cache.stats().process
    assert (tally.compiled, tally.hits, len(images)) == (1, 15, 16)
    assert all(image == images[0] for image in images)


def test_threads_that_want_one_bad_source_all_get_its_error(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    barrier = threading.Barrier(8)
    errors = []

    def want() -> None:
        barrier.wait()
        try:
            cache.get_or_compile("__global__ void k() { nonsense; }", PTX80)
        except CompileError as error:
            errors.append(error.line)

    all_at_once([want] * 8)
    assert errors == [1] * 8
    assert cache.stats().entries == 0


def test_bad_source_is_compiled_again_each_time(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path)
    header = tmp_path / "late.h"
    text = '#include "late.h"\n__global__ void k(int* x) { *x = LATE; }'
    options = CompileOptions(include_paths=(tmp_path,))
    with pytest.raises(ptx.HeaderNotFoundError):
        cache.get_or_compile(text, options)
    header.write_text("#define LATE 5\n")
    assert cache.get_or_compile(text, options).origin is ImageOrigin.COMPILED


def test_memory_is_bounded_and_drops_the_least_recently_used(tmp_path: Path) -> None:
    size = len(ptx.compile(source(0), PTX80, cache=False).data)
    cache = ImageCache(tmp_path, memory_bytes=size * 5)  # data and text count: two fit
    for number in (0, 1, 0, 2):
        cache.get_or_compile(source(number), PTX80)
    origins = [cache.get_or_compile(source(number), PTX80).origin for number in (0, 1)]
    assert origins == [ImageOrigin.MEMORY, ImageOrigin.DISK]
    assert cache.stats().memory_bytes <= size * 5


def test_disk_is_bounded_and_evicts_the_least_recently_used(tmp_path: Path) -> None:
    store = Store(tmp_path, 10_000)
    names = [f"{number:064x}" for number in range(9)]
    for age, name in enumerate(names[:8]):
        store.write(name, bytes(1200))
        os.utime(tmp_path / "images" / f"{name}.image", (1e9 + age, 1e9 + age))
    assert store.read(names[0]) is not None  # now the most recently used
    assert store.write(names[8], bytes(1200)) == 2
    for age, name in enumerate([names[0], names[8]], start=20):
        os.utime(tmp_path / "images" / f"{name}.image", (1e9 + age, 1e9 + age))
    assert store.digests() == [names[8], names[0], *names[7:2:-1]]
    _, nbytes = store.usage()
    assert nbytes <= 10_000 * 0.9


def test_what_other_processes_write_is_counted_after_some_writes(tmp_path: Path) -> None:
    ours, others = Store(tmp_path, 4000), Store(tmp_path, 1 << 20)
    for number in range(5):
        assert ours.write(f"{number:064x}", b"x" * 10) == 0
    for number in range(100, 103):
        others.write(f"{number:064x}", b"x" * 1500)
    assert sum(ours.write(f"{number:064x}", b"x" * 10) for number in range(5, 40)) > 0
    assert ours.usage()[1] <= 4000


def test_image_above_the_bound_is_not_cached(tmp_path: Path) -> None:
    cache = ImageCache(tmp_path, max_bytes=500)
    assert cache.get_or_compile(source(1), PTX80).origin is ImageOrigin.COMPILED
    assert cache.stats().entries == 0


def test_statistics_count_hits_bytes_and_time_saved(tmp_path: Path) -> None:
    cold, warm = ImageCache(tmp_path), ImageCache(tmp_path)
    image = cold.get_or_compile(source(1), PTX80)
    for _ in range(3):
        warm.get_or_compile(source(1), PTX80)
    written = cold.stats()
    read = warm.stats()
    assert (written.process.misses, written.process.compiled, written.process.hits) == (1, 1, 0)
    assert written.entries == 1
    assert written.process.bytes_written == read.process.bytes_read
    assert written.process.build_ms == image.build_ms
    assert (read.process.disk_hits, read.process.memory_hits) == (1, 2)
    assert 2 * image.build_ms < read.process.saved_ms < 3 * image.build_ms
    assert read.disk_bytes >= read.process.bytes_read


def test_statistics_of_ended_processes_add_up(tmp_path: Path) -> None:
    script = (
        "import sys, ptx\nptx.ImageCache(sys.argv[1]).get_or_compile('__global__ void k() {}')\n"
    )
    for _ in range(3):
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)],
            check=True,
            cwd=Path(__file__).parents[3],
        )
    stats = ImageCache(tmp_path).stats()
    assert stats.process.hits == 0
    assert (stats.lifetime.misses, stats.lifetime.disk_hits) == (1, 2)


def test_clear_forgets_memory_and_disk(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("not the cache's")
    cache = ImageCache(tmp_path)
    cache.get_or_compile(source(1), PTX80)
    assert cache.clear() == 1
    assert cache.get_or_compile(source(1), PTX80).origin is ImageOrigin.COMPILED
    assert (tmp_path / "mine.txt").exists()


def test_explanation_names_what_differs_from_the_nearest_entry(tmp_path: Path) -> None:
    header = tmp_path / "a.h"
    header.write_text("#define V 1\n")
    text = '#include "a.h"\n__global__ void k(int* x) { *x = V; }'
    options = CompileOptions(target=PTX80.target, include_paths=(tmp_path,))
    cache = ImageCache(tmp_path / "cache")
    assert str(cache.explain(request(text, options))) == (
        "a miss: the cache holds no entry to compare with"
    )
    cache.get_or_compile(text, options)
    cache.get_or_compile(source(9), PTX80)
    assert cache.explain(request(text, options)).hit
    header.write_text("#define V 22\n")
    assert cache.explain(request(text, options)).differing == (f"header {header}: changed",)
    other = CompileOptions(target=Target.cubin("sm_90"), include_paths=(tmp_path,))
    header.write_text("#define V 1\n")
    explanation = cache.explain(request(text, other))
    assert explanation.differing == ("target: ptx for compute_80 became cubin for sm_90",)
    assert cache.explain(request(text, options, name="b.cu")).differing == (
        "name: kernel.cu became b.cu",
    )
    assert cache.stats().process.disk_hits == 0
    (tmp_path / "b.h").write_text("")
    later = cache.explain(request('#include "b.h"\n' + text, options))
    assert later.differing == ("source", f"header {tmp_path / 'b.h'}: newly in reach")
    header.unlink()
    gone = cache.explain(request('#if __has_include("a.h")\n#endif\n', options))
    assert gone.differing == ("source", f"header {header}: no longer in reach")


def test_decisions_are_logged_and_quiet_by_default(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    cache = ImageCache(tmp_path)
    with caplog.at_level(logging.DEBUG, logger="ptx.image_cache"):
        cache.get_or_compile(source(1), PTX80, name="logged.cu")
        ImageCache(tmp_path).get_or_compile(source(1), PTX80, name="logged.cu")
    levels = [(record.levelname, record.message.split(":")[0]) for record in caplog.records]
    assert levels == [("INFO", "miss"), ("DEBUG", "hit")]
    assert "logged.cu" in caplog.records[0].message
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("processes", [1, 2])
def test_prewarming_compiles_what_is_missing_and_reports_progress(
    tmp_path: Path, processes: int
) -> None:
    ImageCache(tmp_path).get_or_compile(source(0), PTX80)
    requests = [request(source(n)) for n in range(3)] + [request("nonsense", name="bad.cu")]
    seen: list[tuple[int, int]] = []

    def progress(result: Prewarmed, done: int, total: int) -> None:
        seen.append((done, total))

    cache = ImageCache(tmp_path)
    results = prewarm(requests, cache, processes=processes, on_progress=progress)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [result.origin for result in results] == [
        ImageOrigin.DISK,
        ImageOrigin.COMPILED,
        ImageOrigin.COMPILED,
        None,
    ]
    assert "bad.cu(1): error" in results[3].error
    assert cache.stats().entries == 3


def test_a_request_within_a_making_waits_for_no_lock_of_its_own_thread(tmp_path: Path) -> None:
    """As of a finalizer or signal handler; two images that have one lock file."""
    keys: dict[str, Key] = {}
    for number in itertools.count():
        key = sealed_key({"number": str(number)})
        if (other := keys.setdefault(key.digest[:2], key)) is not key:
            break
    cache, image = ImageCache(tmp_path), Image(PTX80.target or ptx.DEFAULT_TARGET, b"an image")

    def make() -> Made:
        return Made(image, lasting=True)

    def make_and_ask() -> Made:
        assert cache._get(other, "within", make) is image
        return make()

    asking = threading.Thread(target=cache._get, args=(key, "around", make_and_ask), daemon=True)
    asking.start()
    asking.join(SECONDS)
    assert not asking.is_alive()
    assert cache.stats().entries == 2


@pytest.fixture
def noted(tmp_path: Path) -> tuple[PrivateFolder, Path]:
    """A cache folder whose note says that NVRTC is 99.1, in a file of three bytes."""
    library = tmp_path / "libnvrtc.so.99"
    library.write_bytes(b"one")
    folder = PrivateFolder(tmp_path / "cache")
    build_of("nvrtc", folder)
    notes = toolchain._notes(folder)
    (key,) = notes
    found = os.stat(library)
    stamp = [found.st_size, found.st_mtime_ns, found.st_ino]
    notes[key] = {"path": str(library), "stamp": stamp, "version": [99, 1], "archs": [990]}
    folder.write(toolchain.FILE, seal(repr(notes).encode()))
    return folder, library


def test_noted_build_is_trusted_until_the_library_changes(
    noted: tuple[PrivateFolder, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, library = noted
    monkeypatch.setattr(toolchain, "_loaded_from_elsewhere", lambda library, path: False)
    build = build_of("nvrtc", folder)
    assert (build.version, build.nbytes, build.archs) == ((99, 1), 3, (990,))
    library.write_bytes(b"another")
    assert build_of("nvrtc", folder).version == ptx.nvrtc_version()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/maps")
def test_noted_build_is_not_trusted_where_another_is_loaded(
    noted: tuple[PrivateFolder, Path],
) -> None:
    loaded = ptx.nvrtc_version()
    assert build_of("nvrtc", noted[0]).version == loaded


def test_place_where_another_library_could_appear_changes_the_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = toolchain.fingerprint()
    assert toolchain.fingerprint() == before
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    named = toolchain.fingerprint()
    assert named != before
    (tmp_path / "lib64").mkdir()
    assert toolchain.fingerprint() != named
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "nvidia" / "cuda_nvrtc" / "lib").mkdir(parents=True)
    assert toolchain.fingerprint() not in (before, named)


def test_damaged_and_foreign_counts_in_the_folder_are_passed_over(tmp_path: Path) -> None:
    tmp_path.joinpath(STATISTICS).write_text(
        '{"misses": 2}\n{"mis\n[1]\n{"misses": "many", "of_another_version": 7}\n{"misses": 3}\n'
        '{"misses": 1e999}\n{"misses": -1e999}\n'
    )
    assert ImageCache(tmp_path).stats().lifetime.misses == 5
