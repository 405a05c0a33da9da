"""Every documented way to switch a check on, by how the program ends: exit status and report.

A cell is a child process. The oracle is a table: the status, and the checks whose findings stand on
standard error with their places. `tests/pure/test_switches.py` compares the ways with the pages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.patience import SECONDS

ROOT: Final = Path(__file__).parents[2]

FAULTS: Final = r"""
import ctypes

import numpy as np

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import CudaError

KERNELS = {
    "race": "__shared__ int s[64]; int t = threadIdx.x; s[t] = x[t]; x[t] = s[63 - t];",
    "init": "__shared__ int s[64]; x[threadIdx.x] = s[threadIdx.x];",
    "sync": "if (threadIdx.x < 8) __syncthreads(); x[0] = 1;",
    "bounds": "__shared__ int a[4], b[64]; int t = threadIdx.x; a[t] = b[t] = 1; x[0] = a[0];",
}
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
REJECTED = HEADER + ".visible .entry k() {\nmov.u32 %never_declared, 2;\nret; }\n"


def run(check, ordinal):
    context = cudadrv.cuda_context_for(ordinal)
    if check == "assemble":
        context.load_module(REJECTED.encode())
    elif check == "leak":
        array = context.default_stream.zeros(64, np.int32)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))  # as a faulty extension loses it
    else:
        stream = context.default_stream
        source = f'extern "C" __global__ void {check}(int* x) {{ {KERNELS[check]} }}'
        kernel = context.compile(source, name=f"{check}.cu").kernel(check)
        kernel.launch(stream, LaunchConfig(1, 64), stream.zeros(64, np.int32))
        stream.synchronize()


# One for each check, on a device of its own; the errors are handled.
def run_all(checks):
    for ordinal, check in enumerate(checks):
        try:
            run(check, ordinal)
        except CudaError:
            pass
"""
# What the report of each check has, beside its name.
PLACES: Final[Mapping[str, str]] = {
    "race": r"race\.cu:1\b",
    "init": r"init\.cu:1\b",
    "sync": r"sync\.cu:1\b",
    "bounds": r"bounds\.cu:1\b",
    "assemble": r"loaded at .*faults\.py:\d+",
    "leak": r"made at .*faults\.py:\d+",
}
FOUND_LATER: Final = ("race", "assemble", "leak")
"""The checks whose findings raise no error of a call."""
FAULTY: Final = ("init", "sync", "bounds")
"""The checks whose findings fail a launch, and break its device."""

ENDS: Final[Mapping[str, str]] = {
    "falls off its end": "",
    "raises": "raise ValueError('its own error')",
    "exits with 0": "sys.exit(0)",
    "exits with 3": "sys.exit(3)",
    "is interrupted": "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
    "is terminated": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "leaves at once": "os._exit(0)",
}
IMPORTS: Final = "import multiprocessing, os, signal, sys, threading, time\n"
DEVICES: Final = 3


@dataclass(frozen=True)
class Way:
    """A way to switch checks on.

    Attributes:
        text: the program; CHECKS, RUN and END stand for the names, the faults and the end.
        command: the words between the interpreter and the script.
        by_environment: whether CUDADRV_DRIVER and CUDADRV_CHECK are set.
    """

    text: str = "RUN\nEND"
    command: tuple[str, ...] = ()
    by_environment: bool = False

    def program(self, checks: tuple[str, ...], run: str, end: str) -> str:
        text = self.text
        for word, value in (("CHECKS", repr(checks)), ("RUN", run), ("END", end or "pass")):
            lines = text.split("\n")
            text = "\n".join(
                textwrap.indent(value, line[: len(line) - len(word)]) if line.strip() == word
                else line.replace(word, value)
                for line in lines
            )  # fmt: skip
        return IMPORTS + text

    def words(self, script: Path, checks: tuple[str, ...]) -> list[str]:
        names = ",".join(checks)
        command = [word.replace("CHECKS", names) for word in self.command]
        return [sys.executable, *command, str(script)]


_EMULATOR: Final = "import contextlib, faults\nfrom cudadrv import emulator\n"
WAYS: Final[Mapping[str, Way]] = {
    "CUDADRV_CHECK": Way("import faults\nRUN\nEND", by_environment=True),
    "emulator.use": Way(_EMULATOR + f"emulator.use({DEVICES}, check=CHECKS)\nRUN\nEND"),
    "emulate --checks": Way(
        "import faults\nRUN\nEND",
        ("-m", "cudadrv", "emulate", f"--devices={DEVICES}", "--checks=CHECKS", sys.executable),
    ),
    "stand_in": Way(_EMULATOR + f"emulator.stand_in({DEVICES}, check=CHECKS)\nRUN\nEND"),
    "a session that stays open": Way(
        _EMULATOR + "stack = contextlib.ExitStack()\n"
        f"stack.enter_context(emulator.session({DEVICES}, check=CHECKS))\nRUN\nEND"
    ),
    "a block of stand_in": Way(
        _EMULATOR + f"with emulator.stand_in({DEVICES}, check=CHECKS):\n    RUN\n    END"
    ),
    "a block of session": Way(
        _EMULATOR + f"with emulator.session({DEVICES}, check=CHECKS):\n    RUN\n    END"
    ),
    "a block, by CUDADRV_CHECK": Way(
        _EMULATOR + f"with emulator.session({DEVICES}):\n    RUN\n    END", by_environment=True
    ),
    "check --checks": Way(
        "import faults\nRUN\nEND",
        ("-m", "cudadrv", "check", f"--devices={DEVICES}", "--checks=CHECKS"),
    ),
}

Outcome = tuple[int, frozenset[str]]
ALL: Final = frozenset(FOUND_LATER)
NOW: Final = ALL - {"leak"}  # leaks are looked for at an orderly end
NONE: Final[frozenset[str]] = frozenset()

OF_A_PROCESS: Final[Mapping[str, Outcome]] = {
    "falls off its end": (66, ALL),
    "raises": (66, ALL),
    "exits with 0": (66, ALL),
    "exits with 3": (66, ALL),
    "is interrupted": (-2, ALL),
    "is terminated": (-15, NOW),
    "leaves at once": (0, NOW),
}
# The block could still raise the findings, so that they are printed only at the end.
LEFT_OPEN: Final = {
    **OF_A_PROCESS,
    "is terminated": (-15, NONE),
    "leaves at once": (0, NONE),
}
OF_A_BLOCK: Final[Mapping[str, Outcome]] = {
    "falls off its end": (1, ALL),  # CheckError
    "raises": (1, NOW),
    "exits with 0": (1, NOW),  # CheckError
    "exits with 3": (3, NOW),
    "is interrupted": (-2, NOW),
    "is terminated": (-15, NONE),
    "leaves at once": (0, NONE),
}
OF_THE_COMMAND: Final[Mapping[str, Outcome]] = {
    "falls off its end": (66, ALL),
    "raises": (1, ALL),
    "exits with 0": (66, ALL),
    "exits with 3": (3, ALL),
    "is interrupted": (130, NOW),
    "is terminated": (-15, NOW),
    "leaves at once": (66, NOW),
}
EXPECTED: Final[Mapping[str, Mapping[str, Outcome]]] = {
    "CUDADRV_CHECK": OF_A_PROCESS,
    "emulator.use": OF_A_PROCESS,
    "emulate --checks": OF_A_PROCESS,
    "stand_in": LEFT_OPEN,
    "a session that stays open": LEFT_OPEN,
    "a block of stand_in": OF_A_BLOCK,
    "a block of session": OF_A_BLOCK,
    "a block, by CUDADRV_CHECK": OF_A_BLOCK,
    "check --checks": OF_THE_COMMAND,
}
FEW: Final = (
    ("CUDADRV_CHECK", "falls off its end"),
    ("CUDADRV_CHECK", "leaves at once"),
    ("a block of session", "exits with 0"),
    ("check --checks", "falls off its end"),
    ("emulate --checks", "falls off its end"),
)
"""The cells that run with the tests that are not slow."""


def completed(
    folder: Path, way: Way, checks: tuple[str, ...], run: str, end: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    number = len(list(folder.glob("program*.py")))
    script = folder / f"program{number}_{abs(hash((way, run, end)))}.py"
    script.write_text(way.program(checks, run, end))
    (folder / "faults.py").write_text(FAULTS)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDADRV_CHECK")}
    environment["CUDADRV_DRIVER"] = f"emulator:{DEVICES}" if way.by_environment else ""
    environment |= {"CUDADRV_CHECK": ",".join(checks)} if way.by_environment else {}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(folder)])
    return subprocess.run(
        way.words(script, checks), env=environment, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip


def reported(text: str) -> frozenset[str]:
    """Return the checks whose findings a text has, with their places."""
    found = set()
    for check, place in PLACES.items():
        for block in re.split(r"\n(?=\S)", "\n" + text):
            if re.match(rf"(?:cudadrv\.errors\.CheckError: )?{check}: ", block) and re.search(
                place, block
            ):
                found.add(check)
    return frozenset(found)


def differences(folder: Path, cells: Iterable[tuple[str, str]]) -> list[str]:
    """Run cells, and return a line for each whose status or report is not the expected one."""

    def run(cell: tuple[str, str]) -> str:
        way, end = cell
        checks = FOUND_LATER
        done = completed(folder, WAYS[way], checks, f"faults.run_all({checks!r})", ENDS[end])
        expected, outcome = EXPECTED[way][end], (done.returncode, reported(done.stderr))
        if outcome == expected:
            return ""
        return f"{way}, {end}: {outcome}, expected {expected}\n{done.stdout}{done.stderr}"

    with ThreadPoolExecutor(2) as pool:
        return [line for line in pool.map(run, cells) if line]


def test_a_program_with_findings_reports_them_and_has_the_documented_status(tmp_path: Path) -> None:
    found = differences(tmp_path, FEW)
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_each_way_reports_at_each_end(tmp_path: Path) -> None:
    cells = [(way, end) for way in WAYS for end in ENDS if (way, end) not in FEW]
    found = differences(tmp_path, cells)
    assert not found, "\n".join(found)
    assert EXPECTED.keys() == WAYS.keys()
    assert all(row.keys() == ENDS.keys() for row in EXPECTED.values())
