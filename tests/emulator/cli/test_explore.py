from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cudadrv.__main__ import main
from tests.patience import SECONDS

pytestmark = pytest.mark.slow
PROGRAM = """
import numpy as np
import cudadrv

stream = cudadrv.cuda_context_for(0).new_stream()
pinned, other = cudadrv.pinned_empty(4, np.int32), stream.zeros(4, np.int32)
pinned[:] = 0
array = stream.to_device(np.arange(4, dtype=np.int32))
stream.synchronize()
stream.fill(other, 1)
stream.to_host(array, out=pinned, wait=False)
{wait}
print(pinned.tolist())
"""


def test_a_missing_wait_is_found_and_the_late_operation_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(PROGRAM.format(wait=""))
    assert main(["explore", "--seeds", "1", str(script)]) == 1
    said = capsys.readouterr().out
    assert "late" in said
    assert "it breaks when only 1 of 6 operations run late:" in said
    assert f"memcpy on stream 1, queued at {script}:11" in said
    repeat = said.rpartition("to repeat it: ")[2].strip()
    assert repeat.startswith("CUDADRV_DRIVER=emulator")
    assert " CUDADRV_EMULATOR_ORDER=held:0." in repeat
    run = subprocess.run(
        repeat.replace(" python ", f" {sys.executable} ", 1),
        shell=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (run.returncode, run.stdout) == (0, "[0, 0, 0, 0]\n")


def test_a_file_that_is_not_there_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (f"{tmp_path}/absent.py", f"{tmp_path}/test_absent.py::test_one"):
        assert main(["explore", file]) == 2
        assert capsys.readouterr().err.endswith(f"explore: {file}: there is no such file\n")


LOCKED = '''
import numpy as np
import cudadrv

SOURCE = r"""
__device__ int lock = 0, sink = 0;
__device__ void look(int* data) {
  while (atomicCAS(&lock, 0, 1) != 0) {}
  __threadfence();
  sink = data[0];
  __threadfence();
  atomicExch(&lock, 0);
}
extern "C" __global__ void locked(int* data) {
  if (blockIdx.x == 0) { look(data); data[0] = 1; } else { look(data); }
}
"""
def test_locked(cuda_stream=None):
    stream = cuda_stream or cudadrv.cuda_context_for(0).new_stream()
    data = stream.zeros(1, np.int32)
    kernel = stream.context.compile(SOURCE).kernel("locked")
    kernel.launch(stream, cudadrv.LaunchConfig(4, 1), data)
    print(stream.to_host(data).tolist())
'''


@pytest.mark.parametrize("is_test", [False, True])
def test_a_race_that_the_order_of_a_lock_hides_is_found_with_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_test: bool
) -> None:
    script = tmp_path / "test_locked.py"
    if is_test:
        script.write_text(LOCKED.replace("cuda_stream=None", "cuda_stream"))
    else:
        script = tmp_path / "locked.py"
        script.write_text(LOCKED + "test_locked()")
    assert main(["explore", "--seeds", "4", "--checks", "race", str(script)]) == 1
    said = capsys.readouterr().out
    assert "of 5 orders change the result\n  random:" in said
    assert "race: kernel locked, 4 bytes of global memory" in said
    assert "nothing orders the two" in said


def test_nothing_is_found_where_the_program_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "right.py"
    script.write_text(PROGRAM.format(wait="stream.synchronize()"))
    assert main(["explore", "--seeds", "1", str(script)]) == 0
    assert capsys.readouterr().out == "0 of 2 orders change the result\n"


def test_a_program_that_fails_at_once_is_not_explored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_wrong.py"
    test.write_text("def test_it():\n    assert 1 == 2\n")
    assert main(["explore", f"{test}::test_it"]) == 2
    assert "the program fails without another order" in capsys.readouterr().out


def test_checks_of_an_ini_file_do_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_locked.py"
    test.write_text(LOCKED.replace("cuda_stream=None", "cuda_stream"))
    (tmp_path / "pytest.ini").write_text("[pytest]\ncuda_check = race\n")
    assert main(["explore", "--seeds", "4", str(test)]) == 0
    assert capsys.readouterr().out == "0 of 5 orders change the result\n"


def test_options_after_a_test_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("def test_it():\n    pass\n")
    assert main(["explore", f"{test}::test_it", "--seeds", "3"]) == 2
    assert capsys.readouterr().err.startswith("--seeds goes before the test: ")
