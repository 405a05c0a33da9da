"""Foreign text in the output of commands: names, PTX, findings and files of other people."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

import cudadrv.cli
from cudadrv.cli.command_line import COMMANDS
from cudadrv.cli.output import print_table, print_text
from ptx.disassembler import find_nvdisasm
from ptx.errors import NvdisasmNotFoundError
from ptx.standard_streams import write_error
from ptx.visible_text import visible

from .in_process import Command, Done, command

FOLDER: Final = Path(cudadrv.cli.__file__).parent
HOSTILE: Final = "\x1b]0;title\x07\x1b[2J\u202e\x9b2J\u2066"
SHOWN: Final = "\\x1b]0;title\\x07\\x1b[2J\\u202e\\x9b2J\\u2066"
KERNEL: Final = f"""// {HOSTILE}
extern "C" __global__ void k(int* x, int n) {{
    int i = threadIdx.x;
    if (i <= n) x[i] = 1; // {HOSTILE}
}}
"""
SCRIPT: Final = f"""
import numpy as np, cudadrv
stream = cudadrv.cuda_context_for(0).default_stream
SOURCE = {KERNEL!r}
kernel = stream.context.compile(SOURCE, name={f"k{HOSTILE}.cu"!r}).kernel("k")
x = stream.zeros(8, np.int32)
kernel.launch(stream, cudadrv.LaunchConfig(1, 8), x, 7)
raise RuntimeError({HOSTILE!r})
"""
CASES: Final = f"""
import numpy as np
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase
n = st.sizes(1, 8)
case = KernelCase({KERNEL!r}, arguments={{"x": st.arrays(np.int32, n), "n": n}},
                  launch=st.launch_configs(threads=n),
                  reference=lambda x: {{"x": np.ones_like(x)}})
"""


# What prints elsewhere than in output.py, and why.
OTHERS: Final[Mapping[str, str]] = {
    "output.py": "it is the place",
    "startup/sitecustomize.py": "no file of the package can be imported there",
    "toolkit/nvcc_command.py": "in the place of NVIDIA's, it escapes by itself; -E copies its file",
    "toolkit/ptxas_command.py": "in the place of NVIDIA's, it imports the standard library alone",
    "toolkit/nvidia_smi_command.py": "in the place of NVIDIA's; it has names of the emulator alone",
}
PRINTING: Final = ("print", "print_exception", "print_exc", "print_stack", "writelines", "Console")


def prints(tree: ast.AST) -> bool:
    """Whether code can write to a stream of the process."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            of_stream = isinstance(called, ast.Attribute) and "sys.std" in ast.unparse(called.value)
            if name in PRINTING or (of_stream and name == "write"):
                return True
    return False


def test_one_file_of_the_commands_prints() -> None:
    files = [*FOLDER.rglob("*.py"), FOLDER.parent / "__main__.py"]
    found = {os.path.relpath(f, FOLDER) for f in files if prints(ast.parse(f.read_text()))}
    assert found == set(OTHERS)


@pytest.mark.slow
def test_the_packages_print_by_functions_that_escape() -> None:
    """Other code runs under `emulate`, in workers and at the end of a process."""
    root = FOLDER.parents[1]
    files = [*root.glob("cudadrv/**/*.py"), *root.glob("ptx/**/*.py")]
    found = {
        str(file.relative_to(root))
        for file in files
        if FOLDER not in file.parents and prints(ast.parse(file.read_text()))
    }
    assert found == set()
    # The output of a kernel's printf is that of its program; all other text goes to `write_error`.
    users = {str(file.relative_to(root)) for file in files if "write_output(" in file.read_text()}
    assert users == {"ptx/emulate/threads/launch_plan.py", "ptx/standard_streams.py"}


def test_a_report_on_standard_error_is_escaped_and_never_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_error(f"{HOSTILE}\n")
    assert capsys.readouterr().err == f"{SHOWN}\n"
    content = io.BytesIO()
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(content, encoding="ascii"))
    write_error("3 µs\n")
    assert content.getvalue() == b"3 \\xb5s\n"
    monkeypatch.setattr("sys.stderr", None)
    write_error("nobody reads it\n")


def test_control_format_and_separator_characters_are_escaped_and_no_others() -> None:
    hidden = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"}
    wrong = []
    for number in [*range(0x3100), *range(0xD7F0, 0xE010), *range(0xFE00, 0x10000), 0xE0001]:
        character = chr(number)
        is_escaped = unicodedata.category(character) in hidden or character in "\xa0\u3000"
        is_escaped |= unicodedata.category(character) == "Zs" and character != " "
        is_escaped &= character not in "\n\t"
        expected = character.encode("unicode_escape").decode() if is_escaped else character
        if visible(character) != expected:
            wrong.append(number)
    assert wrong == []
    assert visible(HOSTILE) == SHOWN
    assert visible("a\tµ – 漢\n") == "a\tµ – 漢\n"


def test_a_character_that_the_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    stream = io.TextIOWrapper(content, encoding="ascii", write_through=True)
    monkeypatch.setattr("sys.stdout", stream)
    print_text("3 µs")
    assert content.getvalue() == b"3 \\xb5s\n"


def test_a_table_has_columns_of_the_escaped_width(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HOSTILE, ("name", "n"), [(HOSTILE, "1"), ("k", "2")])
    title, *rows = capsys.readouterr().out.split("\n")[:-1]
    assert title == SHOWN
    assert [row.rstrip()[-1] for row in rows] == ["n", "1", "2"]
    assert len({len(row) for row in rows}) == 1


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("CUDADRV_DRIVER", "emulator")
    return command(capsys)


def files_of(folder: Path) -> dict[str, Path]:
    """Hostile files, with hostile names."""
    texts = {
        f"{HOSTILE}.cu": KERNEL,
        f"wrong{HOSTILE}.cu": KERNEL.replace("int i", f"in{HOSTILE} i"),
        f"s{HOSTILE}.py": SCRIPT,
        f"c{HOSTILE}.py": CASES,
        "list.txt": f"'{HOSTILE}' --arch x\n",
        f"h{HOSTILE}.ptx": f".version 7.0\n.target sm_80\n.address_size 64\n"
        f'.file 1 "{HOSTILE}.cu"\n.visible .entry k() {{ // {HOSTILE}\n.loc 1 1 0\n'
        f"mov.u32 %r1, %r2; /* {HOSTILE} */ ret; }}\n",
        f"json{HOSTILE}.json": json.dumps({"format": HOSTILE}),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    cu, wrong, script, cases, listed, ptx, finding = (folder / name for name in texts)
    return {"cu": cu, "wrong": wrong, "script": script, "cases": cases, "list": listed, "ptx": ptx,
            "finding": finding}  # fmt: skip


# The words of each command that prints foreign text, or why it prints none.
Words = Callable[[Mapping[str, Path]], list[list[str]]]
COMMAND_LINES: Final[Mapping[str, Words | str]] = {
    "selftest": "has its own kernels alone",
    "info": "has names of the driver and its devices alone",
    "doctor": "its cells are cells of print_table, which is tested above",
    "toolkit": "prints the path of its folder alone",
    "top": "its cells are cells of print_table, which is tested above",
    "cluster": lambda files: [["cluster", "--address", HOSTILE], ["cluster", "--scheduler-file",
                                                                  HOSTILE]],
    "compile": lambda files: [
        ["compile", str(files["cu"]), "--ptx", "--arch", "sm_80"],
        ["compile", str(files["wrong"]), "--arch", "sm_80"], ["compile", HOSTILE],
        ["compile", str(files["cu"]), "--arch", HOSTILE],
    ],
    "ptx": lambda files: [
        ["ptx", str(files["ptx"]), "--source"], ["ptx", str(files["ptx"])],
        ["ptx", str(files["cu"]), "--source", "--arch", "sm_80"],
        ["ptx", str(files["ptx"]), "--kernel", HOSTILE],
    ],
    "sass": lambda files: [["sass", str(files["cu"]), "--arch", "sm_80"]],
    "run": lambda files: [["run", str(files["wrong"])], ["run", str(files["cu"]), HOSTILE]],
    "check": lambda files: [
        ["check", "--checks", "bounds", str(files["script"])], ["check", HOSTILE],
        ["check", "--checks", HOSTILE, str(files["script"])],
    ],
    "verify": lambda files: [
        ["verify", str(files["cases"]), "--examples", "9", "--no-explain", "--checks", "bounds"],
        ["verify", HOSTILE],
    ],
    "replay": lambda files: [["replay", str(files["finding"])], ["replay", HOSTILE]],
    "debug": lambda files: [["debug", HOSTILE]],
    "count": lambda files: [["count", str(files["script"])]],
    "profile": lambda files: [["profile", str(files["script"])], ["profile", HOSTILE]],
    "emulate": lambda files: [["emulate", HOSTILE]],
    "explore": lambda files: [["explore", str(files["script"]), "--seeds=1"]],
    "cache": lambda files: [["cache", "prewarm", str(files["list"])]],
}  # fmt: skip


def is_harmless(done: Done) -> bool:
    return done.stdout + done.stderr == visible(done.stdout + done.stderr)


def of_process(words: list[str]) -> Done:
    """Run a command that must be the first to choose the driver."""
    done = subprocess.run(
        [sys.executable, "-m", "cudadrv", *words], capture_output=True, text=True, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_every_command_escapes_foreign_text(run: Command, tmp_path: Path) -> None:
    assert set(COMMAND_LINES) == set(COMMANDS)
    files, failures, shown = files_of(tmp_path), [], set()
    for name, words in COMMAND_LINES.items():
        if isinstance(words, str) or (name == "sass" and not has_nvdisasm()):
            continue
        for line in words(files):
            done = of_process(line) if name == "count" else run(*line)
            if not is_harmless(done):
                failures.append((line[:2], done))
            if "\\x1b[2J\\u202e" in done.stdout + done.stderr:
                shown.add(name)
    assert failures == []
    # Else the test would not see an escape that is missing.
    printing = {name for name, words in COMMAND_LINES.items() if not isinstance(words, str)}
    assert printing - shown <= {"sass"}


def has_nvdisasm() -> bool:
    try:
        find_nvdisasm()
    except NvdisasmNotFoundError:
        return False
    return True


def test_an_unknown_option_is_printed_escaped(run: Command) -> None:
    done = run("check", f"--{HOSTILE}")
    assert done.returncode == 2
    assert SHOWN in done.stderr
