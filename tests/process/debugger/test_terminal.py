"""The debugger in a terminal: scripts, tests and findings, with commands of a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase, VerifyOptions, saved_findings, verify

from .programs import THREE_LAUNCHES, WRONG_INDEX

pytestmark = pytest.mark.slow

TEST = '''
import numpy as np
import cudadrv

SOURCE = """
extern "C" __global__ void add(const int *x, int *y) {
    int i = threadIdx.x;
    y[i] = x[i] + 1;
}
"""


def test_add() -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.default_stream
    x, y = stream.to_device(np.arange(32, dtype=np.int32)), stream.zeros(32, np.int32)
    kernel = context.compile_kernel(SOURCE, "add")
    kernel.launch(stream, cudadrv.LaunchConfig(1, 32), x, y)
    assert stream.to_host(y)[3] == 4
'''
TWO_FINDINGS = '''
import numpy as np
import cudadrv

SOURCE = """
extern "C" __global__ void a(const float *x, float *y) {
    y[threadIdx.x] = x[threadIdx.x] > 0 ? 1 : 2;
}
extern "C" __global__ void b(const float *x, float *y) {
    y[threadIdx.x] += x[threadIdx.x] < 3 ? 1 : 2;
}
"""
context = cudadrv.cuda_context_for(0)
module = context.compile(SOURCE)
stream = context.default_stream
x, other = stream.empty(32, np.float32), stream.empty(32, np.float32)
y = stream.zeros(32, np.float32)
module.kernel("a").launch(stream, cudadrv.LaunchConfig(1, 32), x, y)
module.kernel("b").launch(stream, cudadrv.LaunchConfig(1, 32), other, y)
stream.synchronize()
'''
NEIGHBOUR = """extern "C" __global__ void shift(int* x, int* out) {
    __shared__ int tile[8];
    tile[threadIdx.x] = x[threadIdx.x];
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
"""


def debug(
    folder: Path,
    program: str,
    *commands: str,
    options: tuple[str, ...] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return what the commands say, one text for each; the last is of the end."""
    (folder / "commands").write_text("\n".join(commands))
    done = subprocess.run(
        [sys.executable, "-m", "cudadrv", "debug", *options, "--commands", "commands", program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | dict(environment),
    )
    return [part.partition("\n")[2].rstrip() for part in done.stdout.split("(cudadrv) ")[1:]]


def test_a_test_stops_at_lines_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "test_add.py").write_text(TEST)
    said = debug(
        tmp_path,
        "test_add.py::test_add",
        "break test_add.py:8 thread 3",
        "continue",
        "print y[i]",
        "next",
        "print y[i]",
        "watch y[3]",
        "rcontinue",
        "print y[i]",
        "continue",
    )
    assert said[1].split("\n")[2].startswith("#0 add at test_add.py:8 (PTX line ")
    assert (said[2], said[4], said[7]) == ("0", "4", "0")
    assert said[6].split("\n")[:2] == [
        "watchpoint: write of y[3]",
        "block (0, 0, 0), thread (3, 0, 0): stopped",
    ]
    assert "1 passed" in said[8]
    assert said[8].endswith("the program ended with status 0")


def test_a_finding_stops_at_its_race(tmp_path: Path) -> None:
    case = KernelCase(
        NEIGHBOUR,
        arguments={"x": np.arange(8, dtype=np.int32), "out": st.unwritten(np.int32, 8)},
        launch=st.launch_configs(blocks=1, block=8),
        reference=lambda x: {"out": x[[1, 0, 3, 2, 5, 4, 7, 6]]},
    ).named("shift")
    options = VerifyOptions(("race",), examples=2, database=None)
    (saved,) = saved_findings(case, verify(case, options, name="shift.py::shift"))
    (tmp_path / "finding.json").write_text(json.dumps(saved.to_json()))
    said = debug(
        tmp_path,
        "finding.json",
        "continue",
        "print tile",
        "info warp",
        "print shift_param_0[3]",
        "list",
        "continue",
    )
    assert said[0].startswith("finding: race: kernel shift, 4 bytes of shared memory")
    assert said[1] == "{0, 1, 2, 3, 4, 5, 6, 7}"
    assert said[2].startswith("lanes 0-7: stopped")
    assert said[3] == "3"
    assert "> " in said[4]
    assert said[5] == "the program ended with status 1"


def test_findings_stop_once_after_a_way_back(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO_FINDINGS)
    moves = ("continue", "continue", "rcontinue", "continue", "rnext", "continue")
    said = debug(tmp_path, "two.py", *moves, options=("--checks", "init"))
    kernels = [text.partition("kernel ")[2][:1] for text in said]
    assert kernels == ["a", "b", "a", "b", "", "b"]


def test_optimised_code_and_wrong_commands(tmp_path: Path) -> None:
    (tmp_path / "smooth.py").write_text(WRONG_INDEX)
    said = debug(
        tmp_path,
        "smooth.py",
        "print x",
        "break 1:2:3!",
        "break nothing",
        "continue",
        "info locals",
        "print %tid.x",
        "print missing",
        "thread 99",
        "info everything",
        "quit",
        options=("--optimised",),
    )
    assert said[0] == "no kernel is stopped"
    assert said[1].startswith("'1:2:3!': give FILE:LINE")
    assert said[3].startswith("exception: out-of-bounds read of 4 bytes")
    assert (said[4], said[5]) == ("none", "31")
    assert said[6] == "there is no missing here"
    assert said[7].startswith("block (1, 0, 0) is not among") or "has no" in said[7]
    assert said[8].endswith("shared, registers, warp, barriers, host or breakpoints")


def test_a_script_finds_the_variable_of_its_code_and_none_of_the_connection(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import os, ptx\n"
        "names = 'CUDADRV_DEVICE_DEBUG', 'CUDADRV_DEBUG_ADDRESS'\n"
        "found = [name for name in names if name in os.environ]\n"
        "image = ptx.compile('extern \"C\" __global__ void f() {}')\n"
        "with open('found', 'w') as file:\n"
        "    print(*found, ', debug' in image.ptx, file=file)\n"
    )
    debug(tmp_path, "script.py", "continue")
    assert (tmp_path / "found").read_text() == "CUDADRV_DEVICE_DEBUG True\n"
    debug(tmp_path, "script.py", "continue", options=("--optimised",))
    assert (tmp_path / "found").read_text() == "False\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="going back needs copies of a process")
def test_the_writers_of_an_element_are_found_over_launches(tmp_path: Path) -> None:
    """Launches may alternate by their blocks; going forwards again has the same stops."""
    (tmp_path / "three.py").write_text(THREE_LAUNCHES)
    commands = ["break second block 0 thread 3", "continue", "continue", "watch y[3]"]
    commands += ["rcontinue", "print y[3]"] * 2
    commands += ["delete", "watch y[3]", "rcontinue", "print y[3]"]
    commands += ["continue", "print y[3]"] * 2 + ["delete", "continue"]
    said = debug(tmp_path, "three.py", *commands, options=("--order", "random:3"))
    stops = [text for text in said if text.startswith("watchpoint: ")]
    assert [text.split("\n")[-1].split(" (")[0] for text in stops] == [
        "#0 second at three.py:17", "#0 second at three.py:13", "#0 first at three.py:8",
        "#0 second at three.py:13", "#0 second at three.py:17",
    ]  # fmt: skip
    assert [text for text in said if text.isdigit()] == ["103", "3", "0", "3", "103"]
    assert said[-1].endswith("the program ended with status 0")


def test_a_system_without_fork_goes_forwards(tmp_path: Path) -> None:
    (tmp_path / "smooth.py").write_text(WRONG_INDEX)
    (tmp_path / "sitecustomize.py").write_text("import os\ndel os.fork, os.killpg\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    commands = ["break smooth", "continue", "next", "rnext", "print i", "continue", "rcontinue"]
    said = debug(tmp_path, "smooth.py", *commands, environment={"PYTHONPATH": path})
    reason = "nothing before this instruction can be repeated: this system has no fork"
    assert (said[3], said[6]) == (reason, reason)
    assert said[4] == "0"
    assert said[5].startswith("exception: out-of-bounds read of 4 bytes")


def test_a_process_without_a_debugger_imports_none_of_it(tmp_path: Path) -> None:
    program = f"{THREE_LAUNCHES}\nimport sys\nprint([e for e in sys.modules if 'debug' in e])"
    (tmp_path / "three.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "three.py"],
        env=os.environ | {"CUDADRV_DRIVER": "emulator"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "debugger" not in done.stdout
    assert "emulate.debug" not in done.stdout
