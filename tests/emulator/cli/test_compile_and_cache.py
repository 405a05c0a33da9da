from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import SECONDS

from .in_process import Command, command

SOURCE = """
#ifdef TWICE
template <typename T> __global__ void scale(T* x) { x[threadIdx.x] *= 2; }
#else
extern "C" __global__ void plain(int* x) { x[threadIdx.x] = 1; }
#endif
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "unit.cu"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def run(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Commands, with a cache of their own beside the source."""
    monkeypatch.setenv("CUDADRV_CACHE_DIR", str(source.parent / "cache"))
    return command(capsys)


def in_a_process(source: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cudadrv", *words],
        env={**os.environ, "CUDADRV_CACHE_DIR": str(source.parent / "cache")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.slow
def test_a_file_is_compiled_for_each_target(source: Path) -> None:
    done = in_a_process(
        source, "compile", str(source), "--target", "sm_90", "--target", "compute_80"
    )
    assert done.returncode == 0, done.stderr
    assert source.with_name("unit.sm_90.cubin").read_bytes().startswith(b"\x7fELF")
    assert ".target sm_80" in source.with_name("unit.compute_80.ptx").read_text()
    assert "plain" in done.stdout
    again = in_a_process(source, "compile", str(source), "--target", "sm_90")
    assert "bytes, disk" in again.stdout


def test_options_reach_the_compiler(source: Path, run: Command) -> None:
    out = source.with_name("own name.ptx")
    done = run(
        "compile",
        str(source),
        "--ptx",
        "--target",
        "sm_80",
        "-D",
        "TWICE=1",
        "--name",
        "scale<double>",
        "--lineinfo",
        "--out",
        str(out),
    )
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    assert "_Z5scaleIdEvPT_" in text
    assert ".loc" in text
    assert "scale<double>" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent.cu"], "No such file"),
        (["unit.cu", "--target", "sm90"], "is not an architecture"),
        (["unit.cu", "--target", "sm_80", "--target", "sm_90", "--out", "x"], "several targets"),
        (
            ["unit.cu", "--target", "sm_80", "-D", "TWICE", "--name", "scale<Unknown>"],
            "Unknown",
        ),
        (["unit.cu", "--target", "sm_80", "--std", "c++98"], "c++98"),
    ],
)
def test_what_cannot_be_compiled_is_reported_with_status_1(
    source: Path, run: Command, words: list[str], message: str
) -> None:
    done = run("compile", str(source.parent / words[0]), *words[1:])
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_cache_is_filled_counted_checked_and_cleared(source: Path, run: Command) -> None:
    listing = source.with_name("list.txt")
    listing.write_text(
        "# two images of one file\n\nunit.cu --target sm_80\n"
        "unit.cu --target sm_90 -D TWICE --name 'scale<float>'\n"
    )
    for origin in ("compiled", "disk"):
        done = run("cache", "prewarm", str(listing), "--jobs", "2")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(f": {origin} in") == 2
        assert "2 of 2 images ready" in done.stdout
    info = json.loads(run("cache", "info", "--json").stdout)
    assert info["entries"] == 2
    assert info["lifetime"]["compiled"] == 2
    assert info["lifetime"]["disk_hits"] == 2
    assert "image cache" in run("cache", "info").stdout
    assert "2 entries read, 0 damaged" in run("cache", "verify").stdout
    assert "2 entries removed" in run("cache", "clear").stdout
    assert json.loads(run("cache", "info", "--json").stdout)["entries"] == 0


def test_a_bad_line_of_a_list_is_named(source: Path, run: Command) -> None:
    listing = source.with_name("list.txt")
    for line, message in (("absent.cu", "No such file"), ("unit.cu --frob", "--frob")):
        listing.write_text(f"unit.cu --target sm_80\n{line}\n")
        done = run("cache", "prewarm", str(listing))
        assert done.returncode == 1
        assert "line 2" in done.stderr
        assert message in done.stderr


def test_a_source_that_fails_stops_no_other(source: Path, run: Command) -> None:
    source.with_name("bad.cu").write_text("void f( {")
    listing = source.with_name("list.txt")
    listing.write_text("bad.cu --target sm_80\nunit.cu --target sm_80\n")
    done = run("cache", "prewarm", str(listing))
    assert done.returncode == 1
    assert "1 of 2 images ready" in done.stdout
    assert "bad.cu" in done.stderr
