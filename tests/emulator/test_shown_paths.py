"""Messages show the files of one finding in one form: relative to the working folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.emulator.call_site import shown_call_site
from ptx.shown_path import shown_path

SOURCE = """
extern "C" __global__ void shift(float* x, int n)
{
    x[threadIdx.x] = x[(threadIdx.x + 1) % n];
}
"""


def findings(name: str) -> str:
    """Return the text of a race, a fault, a leak and queued work of one kernel."""
    texts: list[str] = []
    with emulator.session(check=("race", "leak"), order="late", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream, other = context.default_stream, context.new_stream()
        shift = context.compile(SOURCE, name=name).kernel("shift")
        x = stream.to_device(np.zeros(64, np.float32))
        shift.launch(stream, cudadrv.LaunchConfig(1, 64), x, 64)
        texts += map(str, machine.queued)
        stream.synchronize()
        shift.launch(other, cudadrv.LaunchConfig(1, 32), x, 64)
        stream.fill(x, 0)
        other.synchronize()
        stream.synchronize()
        shift.launch(stream, cudadrv.LaunchConfig(1, 128), x, 1 << 20)
        with pytest.raises(cudadrv.errors.IllegalAddressError) as caught:
            stream.synchronize()
        texts.append(str(caught.value))
        texts += map(str, machine.findings)
    return "\n".join(texts)


def test_messages_have_one_form_of_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(__file__)
    monkeypatch.chdir(here.parent)
    text = findings(str(here.parent / "shift.cu"))
    assert f" {here.name}:" in text
    assert " shift.cu:" in text
    assert str(here.parent) not in text


def test_paths_outside_of_the_working_folder_are_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(f"{__file__}:3") == f"{__file__}:3"
    assert shown_path(f"{tmp_path}/a b.py:3") == "a b.py:3"
    assert shown_path("a\n\t\r\x1b\u202e\udcff.py:3") == "a\\n\\t\\r\\x1b\\u202e\\udcff.py:3"
    assert shown_call_site("") == "an unknown place"


def test_a_working_folder_that_is_gone_changes_no_path(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]);"
        "from ptx.shown_path import shown_path; print(shown_path('/a/b.py:3'))"
    )
    folder = tmp_path / "gone"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "/a/b.py:3\n", done.stderr


def test_a_name_that_is_not_utf_8_ends_an_emulator() -> None:
    machine = emulator.Emulator()
    machine.end("the test s\udcff.py ended")
    with pytest.raises(cudadrv.errors.ClosedError, match=r"s\\udcff\.py ended"):
        machine.reject_if_ended("Emulator.findings")
