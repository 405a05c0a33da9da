"""Importing: a whole process that imports a library, or starts the emulator, and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Final

from ..setting import PEERS, Setting, installed
from ..timing import Case, Row, measure

GROUP: Final = "import"
CASE: Final = "a process that imports"
EMULATED: Final = "a process that has the emulator"
_DEPENDENCIES: Final = "numpy, cuda.bindings.driver, cuda.bindings.nvrtc"
# What a user of the peer imports, where it is not what is looked for.
_IMPORTED: Final = {"numba_cuda": "numba.cuda", "pycuda": "pycuda.driver"}


def run(setting: Setting) -> list[Row]:
    """Every case of the group."""
    cases = [
        _case(_DEPENDENCIES, _DEPENDENCIES),
        _case("cudadrv", "cudadrv"),
        _case("ptx alone", "ptx"),
        _case("numpy alone", "numpy"),
    ]
    if setting.with_peers:
        # Once each: they are slow, and no bar is set by them.
        cases += [
            _case(name, _IMPORTED.get(name, name), most_rounds=1)
            for name in PEERS.values()
            if installed(name)
        ]
    rounds = setting.rounds(12)
    return [
        *measure(GROUP, CASE, cases, repeats=1, rounds=rounds, limit_s=15.0),
        *measure(GROUP, EMULATED, _emulated(), repeats=1, rounds=rounds, limit_s=15.0),
    ]


def _emulated() -> list[Case]:
    """A process that does nothing, by itself and with the emulator; and one that has a context."""
    nothing, has_context = ["-c", "pass"], "import cudadrv; cudadrv.cuda_context_for(0)"
    return [
        _process("python", nothing),
        _process("cudadrv emulate", ["-m", "cudadrv", "emulate", sys.executable, *nothing]),
        _process("cudadrv on the emulator", ["-c", has_context], CUDADRV_DRIVER="emulator"),
    ]


def _case(who: str, modules: str, most_rounds: int | None = None) -> Case:
    return replace(_process(who, ["-c", f"import {modules}"]), most_rounds=most_rounds)


def _process(who: str, arguments: list[str], **variables: str) -> Case:
    # An installed package has its bytecode; a checkout gets it from the first run, if it may.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    names = {
        "run": subprocess.run,
        "command": [sys.executable, *arguments],
        "environment": environment | variables,
    }
    statement = "run(command, env=environment, check=True, capture_output=True)"
    return Case(who, statement, names)
