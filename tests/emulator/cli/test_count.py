"""The command that counts what a script's kernels execute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cudadrv.__main__ import main

SCRIPT = '''
import sys
import numpy as np
import cudadrv, ptx
SOURCE = """extern "C" __global__ void turned(const float* x, float* y) {
  __shared__ float s[32][32];
  int t = threadIdx.y * 32 + threadIdx.x;
  s[threadIdx.y][threadIdx.x] = x[2 * t];
  __syncthreads();
  y[t] = s[threadIdx.x][threadIdx.y];
}"""
context = cudadrv.cuda_context_for(0)
options = ptx.CompileOptions(target=context.target, lineinfo=True)
module = context.load_module(ptx.compile(SOURCE, options, name="turned.cu"))
stream = context.new_stream()
x, y = stream.zeros(2048, np.float32), stream.zeros(1024, np.float32)
for _ in range(int(sys.argv[1])):
    module.kernel("turned").launch(stream, cudadrv.LaunchConfig(1, (32, 32)), x, y)
sys.exit(int(sys.argv[2]))
'''


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {k: v for k, v in os.environ.items() if k != "CUDADRV_DRIVER"}
    return subprocess.run(
        [sys.executable, "-m", "cudadrv", "count", *arguments],
        env=environment,
        text=True,
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )


@pytest.mark.slow
def test_count_prints_every_launch_as_json(tmp_path: Path) -> None:
    done = run(tmp_path, "--json", "script.py", "2", "0")
    assert done.returncode == 0, done.stderr
    launches = json.loads(done.stdout)
    assert [each["kernel"] for each in launches] == ["turned", "turned"]
    launch = launches[0]
    assert launch["block"] == [32, 32, 1]
    assert launch["occupancy"]["share"] == 1.0
    total = launch["total"]
    assert total["global_loads"] == {"requests": 32, "sectors": 256, "least_sectors": 128}
    assert total["shared_loads"] == {"requests": 32, "wavefronts": 1024, "least_wavefronts": 32}
    assert total["classes"]["load.shared"] == {"warps": 32, "threads": 1024}
    (line,) = [each for each in launch["lines"] if each["shared_loads"]["requests"]]
    assert (line["file"], line["line"]) == (str(tmp_path / "turned.cu"), 6)


@pytest.mark.slow
def test_count_prints_tables_and_returns_the_script_status(tmp_path: Path) -> None:
    done = run(tmp_path, "script.py", "1", "3")
    assert done.returncode == 3, done.stderr
    assert "992 wavefronts by bank conflicts" in " ".join(done.stdout.split())
    assert "256 sectors loaded, least 128" in " ".join(done.stdout.split())
    assert "turned.cu:6" in done.stdout


@pytest.mark.slow
def test_count_of_a_script_without_kernels_is_empty(tmp_path: Path) -> None:
    done = run(tmp_path, "--json", "script.py", "0", "0")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("", "'': there is no such file"),
        ("absent.py", "absent.py: there is no such file"),
        ("x" * 300, "xx: there is no such file"),
        ("loop", "loop: there is no such file"),
        (".", ".: the folder has no __main__.py"),
    ],
)
def test_what_is_no_script_is_one_line_and_status_2(
    script: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if script == "loop":
        os.symlink("loop", "loop")
    assert main(["count", script]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.count("\n") == 1
    assert reason in printed.err
