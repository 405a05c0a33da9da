from __future__ import annotations

import os
from pathlib import Path

from .process import BINDINGS, run

WRITES_TWICE = """
import cudadrv
context = cudadrv.cuda_context_for(0)
module = context.compile('''
extern "C" __global__ void race(int *x) { x[0] = threadIdx.x; }
''')
with context.new_stream() as stream:
    array = stream.zeros(1, "i4")
    module.kernel("race").launch(stream, cudadrv.LaunchConfig(1, 64), array)
    stream.synchronize()
"""


def test_a_command_and_its_children_have_the_devices_that_were_asked_for() -> None:
    count = "from cuda.bindings import driver as d; d.cuInit(0); print(d.cuDeviceGetCount()[1])"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {count!r}])"
    ended = run("-m", "cudadrv", "emulate", "--devices", "3", "python", "-c", nested)
    assert (ended.status, ended.out, ended.err) == (0, "3\n", "")


def test_the_status_is_the_commands_own() -> None:
    emulate = ("-m", "cudadrv", "emulate")
    assert run(*emulate, "python", "-c", "raise SystemExit(5)").status == 5
    absent = run(*emulate, "no-such-command")
    assert (absent.status, absent.err) == (
        127, "cudadrv: no-such-command: No such file or directory\n",
    )  # fmt: skip
    assert run(*emulate).status == 2


def test_a_sitecustomize_of_the_users_runs_as_well(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    ended = run(
        "-m", "cudadrv", "emulate", "python", "-c", BINDINGS + "prepare(); print('ran')",
        names={"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    # Once for the command line itself, once for its command.
    assert ended.out == "mine\nmine\nran\n", ended.err


def test_what_checks_found_is_told_at_the_end(tmp_path: Path) -> None:
    script = tmp_path / "races.py"
    script.write_text(WRITES_TWICE)
    ended = run("-m", "cudadrv", "emulate", "--checks", "race", "python", str(script))
    assert ended.status == 0, ended.err
    assert "race" in ended.err
