"""A folder of submissions is verified in processes of their own, which reach little else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cudadrv.cli import confine

CASES = """
import numpy as np

from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase

n = st.sizes(1, 40)
twice = KernelCase(
    "", kernel="twice",
    arguments={"n": n, "x": st.arrays(np.int32, n)},
    launch=st.launch_configs(threads=n), reference=lambda x: {"x": 2 * x},
)
"""
KERNEL = """
extern "C" __global__ void twice(int n, int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BEFORE
    if (i < n) x[i] *= FACTOR;
}
"""
FORGED = r'if (i == 0) printf("{\"verdicts\": [{\"outcome\": \"verified\"}], \"errors\": []}\n");'
TEXT = """
raise SystemExit("a submission does not run")
SOURCE = r'''
#include <torch/extension.h>
KERNEL
torch::Tensor launch(torch::Tensor x) {
    twice<<<1, 32>>>(x.numel(), x.data_ptr<int>());
    return x;
}
'''
"""


def kernel(factor: int, before: str = "") -> str:
    return KERNEL.replace("FACTOR", str(factor)).replace("BEFORE", before)


def batch(folder: Path, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run the command; return its status and the results by submission."""
    done = subprocess.run(
        [sys.executable, "-m", "cudadrv", "verify", *words, "--json-lines", str(folder),
         "--examples", "4", "--checks", "bounds", "--no-explain"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {result["submission"]: result for result in results}


@pytest.mark.slow
def test_each_submission_has_a_line_and_none_runs_its_python(tmp_path: Path) -> None:
    folder = tmp_path / "submissions"
    folder.mkdir()
    (tmp_path / "cases.py").write_text(CASES)
    (folder / "right.cu").write_text(kernel(2))
    (folder / "wrong.cu").write_text(kernel(3, FORGED))
    (folder / "text.py").write_text(TEXT.replace("KERNEL", kernel(2)))
    (folder / "none.cu").write_text("__device__ int x;")
    status, results = batch(folder, f"{tmp_path / 'cases.py'}::twice", "--jobs", "2")
    assert status == 3
    assert {name: result["outcome"] for name, result in results.items()} == {
        "right.cu": "verified",
        "wrong.cu": "found",
        "text.py": "verified",
        "none.cu": "failed",
    }
    assert "has no kernel" in results["none.cu"]["reason"]
    assert [each["check"] for each in results["wrong.cu"]["verdicts"][0]["findings"]] == ["values"]


@pytest.mark.slow
def test_a_submission_that_exceeds_a_limit_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "memory.py").write_text("held = [bytearray(1 << 26) for _ in range(64)]\n")
    (tmp_path / "right.py").write_text(CASES.replace('""', repr(kernel(2))))
    status, results = batch(tmp_path, "--trust-python", "--jobs", "2", "--memory-mb", "900")
    assert status == 3
    assert results["right.py"]["outcome"] == "verified"
    assert results["memory.py"]["reason"] == "it used more than 900 MiB of memory"


def confined(folder: Path, code: str) -> tuple[dict[str, bool], str]:
    """Run Python confined to a folder; return what is in force, and its output."""
    reader, writer = os.pipe()
    limits = {"folder": str(folder), "cpu_seconds": 60, "file_bytes": 1 << 20, "report": writer}
    command = [sys.executable, "-I", "-S", confine.__file__, json.dumps(limits)]
    done = subprocess.run(
        [*command, sys.executable, "-I", "-S", "-c", code],
        cwd=folder,
        pass_fds=[writer],
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(writer)
    with os.fdopen(reader) as report:
        in_force = json.loads(report.read())
    return in_force, done.stdout + done.stderr


TRIES = """
import os, socket
def tried(name, function):
    try:
        function()
        print(name, "done")
    except OSError as error:
        print(name, "failed")
tried("own", lambda: open("own", "w").write("x"))
tried("large", lambda: open("large", "wb").write(bytes(1 << 21)))
tried("outside", lambda: open(OUTSIDE, "w").write("x"))
tried("remove", lambda: os.remove(PRESENT))
tried("signal", lambda: os.kill(PARENT, 0))
tried("network", lambda: socket.create_connection(("127.0.0.1", PORT), 2).close())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_confined_process_writes_to_its_folder_alone(tmp_path: Path) -> None:
    import signal
    import socket

    own, present = tmp_path / "own folder", tmp_path / "present"
    own.mkdir()
    present.touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {
            "OUTSIDE": repr(str(tmp_path / "outside")),
            "PRESENT": repr(str(present)),
            "PARENT": str(os.getpid()),
            "PORT": str(server.getsockname()[1]),
        }
        code = TRIES
        for name, value in values.items():
            code = code.replace(name, value)
        code = f"import signal; signal.signal({int(signal.SIGXFSZ)}, signal.SIG_IGN)\n{code}"
        in_force, output = confined(own, code)
    if not in_force["files"]:
        pytest.skip("needs Landlock")
    results = dict(line.split() for line in output.splitlines())
    assert results["own"] == "done"
    assert [results[name] for name in ("large", "outside", "remove")] == ["failed"] * 3
    assert present.exists()
    assert not (tmp_path / "outside").exists()
    assert results["network"] == "failed"
