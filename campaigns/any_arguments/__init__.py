"""Calls of each function of the stand-in libraries from C, with live handles and any arguments.

The process makes handles of every kind, and structures with them. Then it calls each function of
the driver, NVML and nvJitLink, in every way that a client may: from a thread of C, with the
interpreter lock held, at the end of the process, in a forked child. The process goes on: no
function crashes it, hangs, or raises.
"""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Final

from campaigns.report import Report

from .plan import write_plan
from .preparation import Planned

HERE: Final = Path(__file__).parent
WAYS: Final = ("plain", "thread", "locked", "hosted", "exit", "finalizer", "fork")
"""In the main thread; in a native one, also with the interpreter lock held elsewhere; in a host
function of a stream; by a handler and a destructor of C; by an object's finalizer at Python's end;
in a forked child."""
NATIVE_WAYS: Final = ("plain", "thread", "hosted", "exit", "fork")
"""Those of a program without Python."""
SECONDS: Final = 300.0
"""A process hangs that has not ended after this time."""


def compiler() -> str | None:
    """Return the path of a compiler of C."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def runs_native_programs() -> bool:
    """Report whether programs without Python can run on the emulator."""
    return platform.machine() == "x86_64" and bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))


def build(folder: Path, *, native: bool) -> Path:
    """Compile the library of a program of Python, or the program without Python."""
    target = folder / ("program" if native else "calls.so")
    source = HERE / ("program.c" if native else "calls.c")
    options = [] if native else ["-shared", "-fPIC"]
    command = [str(compiler()), *options, str(source), "-o", str(target), "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return target


class Trial:
    """The calls of one seed in one way.

    Attributes:
        wrong: what is wrong; empty if all calls have returned.
        called: the symbols of all functions.
        worked: those of which a call returned success.
        calls: how many calls returned.
    """

    def __init__(self, folder: Path, built: Path, way: str, seed: int, *, native: bool) -> None:
        folder.mkdir()
        texts = way not in (("exit", "fork") if native else ("exit", "finalizer"))
        planned = write_plan(folder, seed, texts=texts)
        program = [str(built), str(folder), way]
        command = ["--native"] if native else ["python", str(HERE / "host.py")]
        status, errors = _end_of([*command, *program])
        here = struct.unpack("2q", (folder / "place").read_bytes()[:16])
        wanted = (len(planned), len(planned) if way == "exit" else 0)
        results = struct.unpack(f"{len(planned)}i", (folder / "results").read_bytes())
        self.called = {symbol for _, symbol, _ in planned}
        self.worked = {
            symbol for (_, symbol, _), code in zip(planned, results, strict=True) if not code
        }
        self.calls = sum(here)
        self.wrong = ""
        if (status, here) != ("0", wanted) or "Traceback" in errors:  # of an ignored exception
            running = _running(planned, here[way == "exit" and here[1] > 0])
            kind = "native " if native else ""
            last = "\n".join(errors.splitlines()[-5:])
            self.wrong = f"{kind}{way}, seed {seed}: {status} at {running}\n{last}"


def _end_of(command: list[str]) -> tuple[str, str]:
    """Run a command on the emulator; return its status and its errors."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("CUDADRV_EMULATOR")}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cudadrv", "emulate", *command],
            env={**own, "CUDADRV_DRIVER": "cuda"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "hang", ""
    return str(done.returncode), done.stderr


def _running(planned: list[Planned], place: int) -> str:
    if place >= len(planned):
        return "none"
    _, symbol, arguments = planned[place]
    return f"{symbol} {[hex(each) for each in arguments]}"


def run_campaign(seconds: float, seed: int) -> Report:
    """Make the calls in one way after the other, for about so long."""
    outcome = Report()
    if compiler() is None:
        outcome.skipped["calls"] = "needs a compiler of C"
        return outcome
    ways = [(way, False) for way in WAYS]
    if runs_native_programs():
        ways += [(way, True) for way in NATIVE_WAYS]
    worked: set[str] = set()
    called: set[str] = set()
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = {native: build(folder, native=native) for native in {native for _, native in ways}}
        for number in count():
            way, native = ways[number % len(ways)]
            trial = Trial(folder / str(number), built[native], way, seed + number, native=native)
            outcome.count("calls of programs without Python" if native else "calls", trial.calls)
            if trial.wrong:
                outcome.failures.append(trial.wrong)
            worked |= trial.worked
            called |= trial.called
            shutil.rmtree(folder / str(number))
            if time.monotonic() > deadline:
                break
    outcome.notes.append(f"  {len(called)} functions, of which {len(worked)} succeeded")
    return outcome
