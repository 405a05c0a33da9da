"""A part of the contract tests with the emulator's work late, and as one seed says.

The whole is `CUDADRV_EMULATOR_ORDER=late python -m pytest tests/contract`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FILES = (
    "test_memory.py",
    "test_streams.py",
    "test_graphs.py",
    "test_lifetimes.py",
    "order/test_reported.py",
    "order/test_closing.py",
)


FINALIZERS = "order/test_named.py::test_finalizers_of_users_may_launch_whenever_a_collection_comes"


@pytest.mark.parametrize(
    ("order", "names"), [("late", FILES), ("random:20", FILES), ("random:43", (FINALIZERS,))]
)
def test_the_contract_holds_in_another_order(order: str, names: tuple[str, ...]) -> None:
    files = [str(ROOT / "tests" / "contract" / name) for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        env=os.environ | {"CUDADRV_DRIVER": "emulator:2", "CUDADRV_EMULATOR_ORDER": order},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
