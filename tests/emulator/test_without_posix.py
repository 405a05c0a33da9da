"""The package, the driver layer and the emulator without what Windows lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import SECONDS

PROGRAM = Path(__file__).with_name("without_posix.py")


def lines_of_a_session(folder: Path) -> dict[str, str]:
    """What the program prints, by the first word of each line."""
    ended = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "CUDADRV_CACHE_DIR": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert not ended.returncode, ended.stderr
    return dict(line.split(" ", 1) for line in ended.stdout.splitlines())


@pytest.mark.slow
def test_a_session_needs_nothing_that_windows_lacks(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    printed = lines_of_a_session(folder)
    assert printed["graph"] == "[0, 4, 8, 12] [0, 4, 8, 12]"
    assert printed["copy"] == "True"
    assert printed["doctor"] == "ready"
    assert printed["launch"] == "[0, 2, 4, 6]"
    assert printed["scatter"] == "28"
    assert printed["check"].startswith("race: kernel race, 4 bytes of global memory")
    assert list((folder / "images").iterdir())
    assert printed["pool"].startswith(
        "NotSupportedError | MemoryPool: shareable: the driver shares"
    )
    assert printed["event"].startswith("NotSupportedError | sharing an event")
    assert printed["executor"].startswith(
        "NotSupportedError | GpuExecutor.local: Windows starts no"
    )
    assert printed["stand_in"].startswith(
        "DriverSelectionError | nothing stands in for libcuda.so.1 on win32"
    )
