"""Files and folders with odd names, and sources with odd characters, through the commands.

The lines are those of NVRTC's own warning: the statement that races declares an unused variable.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from ptx.visible_text import visible

CHARACTERS: Final[Mapping[str, bytes]] = {
    "controls": "\r\f\v\x1b]2;J\x07\t\x1c\x85\u2028\u2029\u202e\u2066".encode(),
    "line end": b"\n",
    "not UTF-8": b"\xff\xc3",
}
RACE: Final = b"int unused; x[threadIdx.x] = n; x[threadIdx.x + 1] = n + 1;"
SCRIPT: Final = """
import os, sys, numpy as np, cudadrv
def test_race():
    stream = cudadrv.cuda_context_for(0).default_stream
    with open(os.fsdecode({name!r}), errors="surrogateescape", newline="") as file:
        kernel = stream.context.compile(file.read(), name=file.name).kernel("k")
    x = stream.zeros(9, np.int32)
    kernel.launch(stream, cudadrv.LaunchConfig(1, 8), x, 7)
    stream.synchronize()
if __name__ == "__main__":
    test_race()
"""
CASES: Final = """
import os, numpy as np
from pathlib import Path
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase
case = KernelCase(Path(__file__).parent / os.fsdecode({name!r}), kernel="k",
                  arguments={{"x": st.arrays(np.int32, 9), "n": 7}},
                  launch=st.launch_configs(blocks=1, block=8), reference=lambda x: {{"x": 0 * x}})
"""
# A program whose result depends on the order.
EXPLORED: Final = """
import numpy as np, cudadrv
stream = cudadrv.cuda_context_for(0).default_stream
with stream.context.new_stream() as other, other.unordered(), stream.unordered():
    x = stream.to_device(np.zeros(4, np.int32))
    stream.synchronize()
    stream.fill(x, 7)
    print(other.to_host(x))
"""


class Folder:
    """A folder of files for the commands, with odd characters in one place."""

    def __init__(self, folder: Path, character: bytes, place: str) -> None:
        middle = character if place == "file" else b""
        self.path: bytes = os.fsencode(folder)
        if place == "folder":
            self.path += b"/d" + character + b"y"
            os.mkdir(self.path)
        shown = character if place == "source" and b"\n" not in character else b""
        source = b"// " + shown + b'\nextern "C" __global__ void k(int* x, int n) {\n// ' + shown
        source += b"\n" + RACE + b" // " + shown + b"\n}\n"
        self.line: int = source[: source.index(RACE)].count(b"\n") + 1
        if place == "directive":
            name = character.replace(b"\r", b"\\r").replace(b"\n", b"\\n")
            source = b'#line 70 "l' + name + b'.cu"\n' + source
            self.line += 69
        self.cu: bytes = b"k" + middle + b".cu"
        self._write(self.cu, source)
        named = {"script": SCRIPT, "cases": CASES, "test_race": SCRIPT, "explored": EXPLORED}
        self.files: dict[str, bytes] = {}
        for each, text in named.items():
            self.files[each] = each.encode() + middle + b".py"
            self._write(self.files[each], text.format(name=self.cu).encode())

    def _write(self, name: bytes, content: bytes) -> None:
        with open(self.path + b"/" + name, "wb") as file:
            file.write(content)

    def run(self, *words: str | bytes) -> tuple[int, str]:
        """Run a command; return its status and what it prints."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.path,
            env={**os.environ, "CUDADRV_DRIVER": "emulator"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode, done.stdout.decode(errors="surrogateescape")

    def cudadrv(self, *words: str | bytes) -> tuple[int, str]:
        """Run one of the package's commands."""
        return self.run("-m", "cudadrv", *words)


def replayed(files: Folder) -> tuple[int, str]:
    """Verify the case, and run the saved finding again."""
    files.cudadrv("verify", files.files["cases"], "--examples", "4", "--no-explain", "--save", "o")
    (race,) = (each for each in os.listdir(files.path + b"/o") if b"race" in each)
    return files.cudadrv("replay", b"o/" + race, "--address", "x[1]")


# Each command with the status of a race.
COMMANDS: Final[Mapping[str, tuple[int, Callable[[Folder], tuple[int, str]]]]] = {
    "ptx": (0, lambda files: files.cudadrv("ptx", files.cu, "--source", "--arch", "sm_80")),
    "check": (66, lambda files: files.cudadrv("check", "--checks", "race", files.files["script"])),
    "emulate": (
        66,
        lambda files: files.cudadrv(
            "emulate", "--checks", "race", sys.executable, files.files["script"]
        ),
    ),
    "replay": (1, replayed),
    "pytest": (
        1,
        lambda files: files.run(
            "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cuda=emulator",
            "--cuda-check=race", files.files["test_race"],
        ),
    ),
    "explore": (1, lambda files: files.cudadrv("explore", "--seeds=1", files.files["explored"])),
}  # fmt: skip
# pytest itself and Python's warnings print the path of the user's own file as it is.
OF_OTHERS: Final = re.compile(r"(?s)^.*?CompileWarning: |^(FAILED|ERROR) .*$", re.MULTILINE)


# Text that is not UTF-8 is an error for the compiler.
CELLS: Final = [
    (characters, place)
    for characters in CHARACTERS
    for place in ("source", "file", "folder", "directive")
    if characters != "not UTF-8" or place in ("file", "folder")
]


@pytest.mark.slow
@pytest.mark.parametrize(("characters", "place"), CELLS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_the_compilers_lines_and_no_control_character(
    tmp_path: Path, command: str, characters: str, place: str
) -> None:
    files = Folder(tmp_path, CHARACTERS[characters], place)
    status, run = COMMANDS[command]
    code, output = run(files)
    assert code == status, output
    ours = output if command != "pytest" else OF_OTHERS.sub("", output)
    if command in ("check", "emulate"):
        ours = re.sub(r"(?s)^.*?CompileWarning: ", "", output, count=1)
    assert ours == visible(ours)
    if command != "explore":
        assert f".cu:{files.line}" in output
        warned = re.findall(r"\.cu\((\d+)\): warning", output)
        assert set(warned) <= {str(files.line)}
        assert warned or command in ("ptx", "replay")
    else:
        assert "queued at" in output
