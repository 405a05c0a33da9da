"""Findings that `verify` saves, in both fronts of `debug`: one place in all of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from cudadrv import LaunchConfig
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase, VerifyOptions, saved_findings, verify

from .client import Client

pytestmark = pytest.mark.slow

BODIES: Final[Mapping[str, str]] = {
    "bounds": "if (i < 64)\n x[i + 1] = 1;",
    "shared bounds": "__shared__ int s[8];\n s[i] = 3;\n x[i] = s[0];",
    "race of a block": "__shared__ int s[64];\n s[i] = i;\n x[i] = s[i ^ 1];",
    "race of two blocks": "if (i == 7 || i == 40)\n *x += 1;",
    "lost sum": "*x += 1;",
    "unwritten": "int v = y[i];\n if (v > 5)\n x[i] = 1;",
    "mask": "int v = __shfl_down_sync(0x55555555, x[0], 1);\n if (v == 12345) x[0] = 1;",
    "division": "int v = x[i];\n x[i] = 7 / v;",
    "trap": "if (i == 33)\n __trap();",
    "misaligned": "*(int*)((char*)x + 1) = n;",
}
# Block and thread, and the line of PTX, of an access and of a fault.
PLACES: Final = (
    re.compile(r"by block (\(.*?\)), thread (\(.*?\)), at .*\(PTX line (\d+)\)"),
    re.compile(r"in kernel .*, block (\(.*?\)), thread (\(.*?\)), \S+ at PTX line (\d+)"),
)


def saved(folder: Path, body: str) -> list[tuple[Path, str]]:
    """Verify a kernel; return the file and the text of each finding with a place."""
    case = KernelCase(
        "template <typename T> __global__ void k(T* x, T* y, int n) {\n"
        f" int i = blockIdx.x * blockDim.x + threadIdx.x; (void)i;\n {body}\n}}\n",
        arguments={"x": np.zeros(64, np.int32), "y": st.unwritten(np.int32, 64), "n": 64},
        launch=LaunchConfig(2, 32),
        reference=lambda: {"x": None, "y": None},
        kernel="k<int>",
    ).named("case")
    options = VerifyOptions(
        ("race", "init", "sync", "bounds", "divide"), examples=2, database=None, explain=False
    )
    files = []
    for number, each in enumerate(saved_findings(case, verify(case, options, name="case"))):
        if each.finding.check != "values":
            files.append((folder / f"{number}.json", each.finding.text))
            files[-1][0].write_text(json.dumps(each.to_json()))
    return files


def places(text: str) -> list[tuple[str, ...]]:
    """Return the places that a finding names."""
    return [found.groups() for pattern in PLACES for found in pattern.finditer(text)]


def is_at(place: tuple[str, ...], text: str) -> bool:
    """Whether a finding names a place; a read that is found at its use, also one up to there."""
    use = re.search(r"needed by .* at PTX line (\d+)", text)
    named = places(text)
    if use is None:
        return place in named
    ((block, thread, line),) = named
    return place[:2] == (block, thread) and int(line) <= int(place[2]) <= int(use[1])


def in_terminal(folder: Path, file: Path) -> str:
    """Return what the debugger says when it has stopped."""
    (folder / "commands").write_text("continue\nwhere\n")
    done = subprocess.run(
        [sys.executable, "-m", "cudadrv", "debug", "--commands", "commands", file.name],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout.split("(cudadrv) ")[2].partition("\n")[2]


def in_an_editor(_: Path, file: Path) -> str:
    """Return the same of the adapter of editors."""
    with Client() as client:
        client.launch(file)
        stop: Any = client.stopped("configurationDone")
        where = client.console("where")
        top = client.top(stop)
        assert f"PTX line {top['line']}" in where or "case.cu" in top["source"]["name"]
        client.request("continue", threadId=stop["threadId"])
        client.event("terminated")
        return where


FRONTS: Final[Mapping[str, Callable[[Path, Path], str]]] = {
    "terminal": in_terminal,
    "editor": in_an_editor,
}


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("name", BODIES)
def test_the_debugger_stops_where_a_saved_finding_is(tmp_path: Path, name: str, front: str) -> None:
    files = saved(tmp_path, BODIES[name])
    assert files
    for file, text in files:
        said = FRONTS[front](tmp_path, file)
        found = re.match(r"block (\(.*?\)), thread (\(.*?\)): .*\n#0 .*PTX line (\d+)", said)
        assert found is not None, said
        assert is_at(found.groups(), text), text
