from __future__ import annotations

from pathlib import Path

import pytest

from cudadrv.__main__ import main

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
    assert "it is enough that 1 of 6 operations run late:" in said
    assert f"memcpy on stream 1, queued at {script}:11" in said
    assert "to see it again: CUDADRV_EMULATOR_ORDER=held:0." in said


def test_nothing_is_found_where_the_program_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "right.py"
    script.write_text(PROGRAM.format(wait="stream.synchronize()"))
    assert main(["explore", "--seeds", "1", str(script)]) == 0
    assert capsys.readouterr().out == "0 of 2 orders give something else\n"


def test_a_program_that_fails_at_once_is_not_explored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_wrong.py"
    test.write_text("def test_it():\n    assert 1 == 2\n")
    assert main(["explore", f"{test}::test_it"]) == 2
    assert "it fails as it is" in capsys.readouterr().out
