"""Every example runs, on the driver that the tests run on."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cudadrv import emulator
from tests.short_cases import few

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


NEEDS = {"option_pricing": "cloudpickle"}
"""What else an example must have, which comes with an extra."""


@pytest.mark.slow
@pytest.mark.parametrize("example", few(EXAMPLES, 3), ids=lambda path: path.stem)
def test_the_example_runs(example: Path) -> None:
    if example.stem in NEEDS:
        pytest.importorskip(NEEDS[example.stem])
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8


GALLERY = sorted(path.stem for path in (ROOT / "docs" / "images" / "gallery").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", few(GALLERY, 2))
def test_an_example_of_the_gallery_computes_what_numpy_does(name: str) -> None:
    example = importlib.import_module(f"examples.{name}")
    with emulator.session(devices=2):
        example.main()  # it compares
