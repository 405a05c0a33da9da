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


STAND_IN = f"""#!{sys.executable} -IS
# Speaks as the assembler's process does, and takes a text's words for its acts.
import struct, os, sys, time

def send(value):
    data = repr(value).encode()
    os.write(1, struct.pack("<Q", len(data)) + data)

send(((13, 5), 1))
while head := sys.stdin.buffer.read(16):
    arch, text = (sys.stdin.buffer.read(nbytes) for nbytes in struct.unpack("<QQ", head))
    if b"die" in text:
        os.abort() if b"abort" in text else os._exit(3)
    if b"hang" in text:
        while b"spin" in text:
            pass
        time.sleep(1000)
    send(("", ""))
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "stand_in"
    program.write_text(STAND_IN)
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr("ptx.assembler.SECONDS", 0.5)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("die", "nvJitLink 13.5 crashed"),
        ("die by abort", "nvJitLink 13.5 crashed"),
        ("hang", "nvJitLink 13.5 hung for 1 s"),
        pytest.param("hang and spin", "nvJitLink 13.5 hung for 1 s", marks=pytest.mark.slow),
    ],
)
def test_a_text_that_the_assembler_hangs_or_crashes_on_costs_no_other_result(
    assembler: Assembler, text: str, reason: str
) -> None:
    expected = Assembly(skipped=reason, is_of_text=True)
    found = [assembler.assemble(each, "sm_90") for each in ("right", text, "next")]
    assert found == [Assembly(), expected, Assembly()]
    processes = list(assembler._idle)
    assert assembler.assemble(text, "sm_90") == expected
    assert assembler._idle == processes  # which was not tried again


@pytest.mark.usefixtures("stand_in")
def test_a_process_that_hangs_at_its_start_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stand_in").write_text("#!/bin/sh\nexec sleep 1000\n")
    monkeypatch.setattr("ptx.assembler.SECONDS", 0.01)
    with pytest.raises(NvJitLinkNotFoundError, match="its process hung for"):
        Assembler(None).assemble(RIGHT, "sm_90")
