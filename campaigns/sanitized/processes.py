"""Running one program in a process of its own: on the emulator, or under a tool on the GPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from campaigns.race_truth.program import Program
from campaigns.sanitized.tool_report import ToolReport, read

COMMAND: Final = "compute-sanitizer"
# Of which not every version knows all: given where the help names them.
_OPTIONS: Final[dict[str, str]] = {
    "--print-limit": "1",
    "--launch-timeout": "0",
    "--max-connections": "1000",  # a port for each of the tools that run at once
    "--target-processes": "application-only",
}
_OPTIONS_OF: Final[dict[str, dict[str, str]]] = {
    "memcheck": {"--report-api-errors": "no"},  # calls that the library makes to find out
    "racecheck": {"--racecheck-report": "all"},
}
_GRACE_S: Final = 15.0


@dataclass(slots=True)
class Judged:
    """What both sides found in a program.

    Attributes:
        own: a text for each of the emulator's checks that found something.
        theirs: what each tool reports.
        trouble: why nothing is known of the emulator's side, or "".
    """

    program: Program
    own: dict[str, str] = field(default_factory=dict)
    theirs: dict[str, ToolReport] = field(default_factory=dict)
    trouble: str = ""


def check(judged: Judged, size: str, seconds: float) -> None:
    """Note what the emulator's checks find in the program."""
    output, ended = _run(_room("--check", judged.program, size, seconds), "emulator", seconds)
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if lines:
        judged.own = json.loads(lines[-1])
    else:
        judged.trouble = f"{'failed' if ended else 'took too long'}: {output[-500:]}"


def sanitize(judged: Judged, tool: str, size: str, seconds: float) -> None:
    """Note what a tool finds while the program runs on the GPU."""
    launching = _room("--launch", judged.program, size, seconds)
    output, ended = _run([COMMAND, "--tool", tool, *_options(tool), *launching], "cuda", seconds)
    judged.theirs[tool] = read(output, ended=ended)


def _room(what: str, program: Program, size: str, seconds: float) -> list[str]:
    return [
        sys.executable, "-m", "campaigns.sanitized", what, program.name, "--size", size,
        "--timeout", str(seconds),
    ]  # fmt: skip


@cache
def _options(tool: str) -> tuple[str, ...]:
    done = subprocess.run(
        [COMMAND, "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    every = _OPTIONS | _OPTIONS_OF.get(tool, {})
    return tuple(word for key in every if key in done.stdout for word in (key, every[key]))


def _run(command: list[str], driver: str, seconds: float) -> tuple[str, bool]:
    """What a process prints, and whether it ended in time.

    It ends itself by an alarm, so that the tool can still say what it found. What it prints goes to
    a file: a process that outlives the tool would hold a pipe open.
    """
    environment = {**os.environ, "CUDADRV_DRIVER": driver}
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(seconds + _GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    return text, time.monotonic() - began < seconds
