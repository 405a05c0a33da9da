"""Many processes on one folder: each source compiled once, nothing torn, no lock for ever."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ptx
from ptx import ImageCache
from ptx.cache.folder import take
from ptx.cache.key import sealed_key
from ptx.cache.store import Store, decode
from tests.patience import SECONDS
from tests.process.cache import workers

PROCESSES = 6
SOURCES = 8


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.process.cache.workers", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )


def files_below(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_processes_that_want_the_same_sources_compile_each_once(tmp_path: Path) -> None:
    begin = str(time.time() + 1.5)
    running = [start("compile_all", str(tmp_path), str(SOURCES), begin) for _ in range(PROCESSES)]
    answers = [json.loads(process.communicate(timeout=240)[0]) for process in running]
    assert sum(answer["compiled"] for answer in answers) <= SOURCES
    expected = {
        str(number): hashlib.sha256(
            ptx.compile(
                workers.source(number), workers.PTX80, name=f"k{number}.cu", cache=False
            ).data
        ).hexdigest()
        for number in range(SOURCES)
    }
    assert all(answer["digests"] == expected for answer in answers)
    assert not [name for name in files_below(tmp_path) if name.startswith(".")]
    assert ImageCache(tmp_path).verify() == ptx.Verification(SOURCES, ())


@pytest.mark.slow
@pytest.mark.parametrize("kills", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_process_killed_in_the_middle_of_a_write_tears_no_image(tmp_path: Path, kills: int) -> None:
    random.seed(7)
    seen = unfinished = 0
    for _ in range(kills):
        process = start("write_for_ever", str(tmp_path))
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        time.sleep(random.uniform(0.0, 0.03))
        process.kill()
        process.communicate()
        store = Store(tmp_path, 1 << 40)
        for number in range(8):
            digest = sealed_key({"number": str(number)}).digest
            data = store.read(digest)
            if data is None:
                continue
            seen += 1
            assert decode(data, digest) == workers.big_image(number)
        unfinished += sum(name.startswith(".new-") for name in files_below(tmp_path))
    assert seen
    if kills > 50:
        assert unfinished, "no process was killed while it wrote"


def test_what_a_killed_process_left_goes_and_what_is_being_written_stays(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir(mode=0o700)
    left, future, young = (images / f".new-{pid}-0123456789abcdef" for pid in (1, 2, 3))
    mine, written = images / ".new-thing", images / ".new-4-0123456789abcdef"
    for path in (left, future, young, mine, written):
        path.write_bytes(b"torn")
    for path in (left, mine, written):
        os.utime(path, (time.time() - 3600,) * 2)
    os.utime(future, (4e9, 4e9))
    with written.open("ab") as writer:
        assert take(writer.fileno())
        ImageCache(tmp_path).get_or_compile(workers.source(0), workers.PTX80)
        assert [path.exists() for path in (left, future)] == [False, False]
        assert [path.exists() for path in (young, mine, written)] == [True, True, True]
        Store(tmp_path, 1 << 40).clear()
        assert [path.exists() for path in (young, mine, written)] == [False, True, True]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    digest = "ab" * 32
    process = start("hold_lock_and_die", str(tmp_path), digest)
    output, _ = process.communicate(timeout=SECONDS)
    assert json.loads(output) == {"held": True}
    with Store(tmp_path, 1 << 40).lock(digest) as held:
        assert held


def test_lock_that_another_holds_is_waited_for_until_the_entry_appears(tmp_path: Path) -> None:
    holder, waiter = Store(tmp_path, 1 << 40), Store(tmp_path, 1 << 40)
    digest = "cd" * 32
    with holder.lock(digest) as held:
        assert held
        holder.write(digest, b"an entry")
        with waiter.lock(digest) as second:
            assert not second
            assert waiter.read(digest) == b"an entry"


@pytest.mark.slow
def test_hit_in_a_new_process_loads_no_nvrtc(tmp_path: Path) -> None:
    kernel = workers.source(1)
    answers = []
    for _ in range(2):
        output, _ = start("hit", str(tmp_path), kernel).communicate(timeout=SECONDS)
        answers.append(json.loads(output))
    cold, warm = answers
    assert cold["origin"] == "compiled"
    assert "cuda.bindings.nvrtc" in cold["modules"]
    assert warm == {
        "origin": "disk",
        "signatures": cold["signatures"],
        "modules": [],
        "library": False,
    }


@pytest.mark.slow
def test_hit_with_includes_loads_no_nvrtc_either(tmp_path: Path) -> None:
    kernel = "#include <cuda_fp16.h>\n__global__ void k(__half* x) { *x = __hadd(*x, *x); }"
    answers = []
    for _ in range(2):
        output, _ = start("hit", str(tmp_path), kernel).communicate(timeout=SECONDS)
        answers.append(json.loads(output))
    assert [answer["origin"] for answer in answers] == ["compiled", "disk"]
    assert answers[1]["modules"] == []
    assert not answers[1]["library"]
