"""What nvJitLink says of PTX, from its process and from the cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptx import NvJitLinkNotFoundError
from ptx.assembler import Assembler, Assembly

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
RIGHT = HEADER + ".visible .entry k() { ret; }\n"
WRONG = HEADER + ".visible .entry k() {\nmov.u32 %r1, 2;\nret; }\n"


@pytest.fixture
def assembler(tmp_path: Path) -> Assembler:
    return Assembler(tmp_path / "cache")


@pytest.fixture
def without_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", os.devnull)
        yield


def test_what_the_assembler_rejects_is_reported_in_its_words(assembler: Assembler) -> None:
    assert assembler.assemble(RIGHT, "sm_90") == Assembly()
    found = assembler.assemble(WRONG, "sm_90")
    assert "line 5; error   : " in found.errors
    assert not found.skipped


@pytest.mark.parametrize("arch", ["sm_20", "sm_999"])
def test_an_architecture_that_it_does_not_know_is_skipped(assembler: Assembler, arch: str) -> None:
    major, minor = assembler.build.version
    found = assembler.assemble(WRONG, arch)
    assert found == Assembly(skipped=f"nvJitLink {major}.{minor} does not know {arch}")


def test_another_process_reads_results_from_the_folder(
    assembler: Assembler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [assembler.assemble(text, "sm_90") for text in (RIGHT, WRONG)]
    later = Assembler(tmp_path / "cache")
    monkeypatch.setattr(sys, "executable", os.devnull)
    assert [later.assemble(text, "sm_90") for text in (RIGHT, WRONG)] == answers
    assert later.build.version == assembler.build.version
    with pytest.raises(NvJitLinkNotFoundError):
        later.assemble(RIGHT, "sm_80")


@pytest.mark.slow
def test_damaged_results_are_queried_anew(assembler: Assembler, tmp_path: Path) -> None:
    answer = assembler.assemble(WRONG, "sm_90")
    (memo,) = (tmp_path / "cache" / "memos").iterdir()
    memo.write_bytes(memo.read_bytes()[:-1])
    assert Assembler(tmp_path / "cache").assemble(WRONG, "sm_90") == answer


@pytest.mark.slow
def test_it_works_without_a_folder() -> None:
    assembler = Assembler(None)
    assert [assembler.assemble(RIGHT, "sm_90") for _ in range(2)] == [Assembly()] * 2


@pytest.mark.usefixtures("without_processes")
def test_what_does_not_start_names_the_command_that_installs_it() -> None:
    with pytest.raises(NvJitLinkNotFoundError, match=r"(?s)pip install .*does not start") as caught:
        Assembler(None).assemble(RIGHT, "sm_90")
    assert caught.value.command.startswith("pip install")


def test_a_process_that_was_killed_is_replaced(assembler: Assembler) -> None:
    assembler.assemble(RIGHT, "sm_90")
    (process,) = assembler._idle
    os.kill(process.pid, signal.SIGKILL)
    assert assembler.assemble(WRONG, "sm_90").errors


def test_nothing_of_nvjitlink_is_loaded_here_and_nothing_stays() -> None:
    """Another library may stand in for nvJitLink later; the process goes with its parent."""
    program = f"""
from ptx.assembler import Assembler
import os
assembler = Assembler(None)
assembler.assemble({RIGHT!r}, "sm_90")
with open("/proc/self/maps") as maps:
    assert "nvJitLink" not in maps.read()
child = os.fork()
if not child:
    assembler.assemble({WRONG!r}, "sm_90")
    raise SystemExit
assert os.waitpid(child, 0)[1] == 0
assert assembler.assemble({WRONG!r}, "sm_80").errors
print(assembler._idle[0].pid)
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
