"""The plugin as pytest finds it: by the entry point of an installed distribution."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import SECONDS
from tests.process.shared_libraries.process import environment

_PACKAGES = Path(__file__).parents[3]
_ENTRY_POINTS = "[pytest11]\ncudadrv.testing = cudadrv.testing\n"
_RECORD = "cudadrv/__init__.py,,\ncudadrv/testing/__init__.py,,\nptx/__init__.py,,\n"


def _install(folder: Path) -> None:
    """Write the metadata of an installed distribution, from which pytest reads what to rewrite."""
    metadata = folder / "cudadrv-99.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: cudadrv\nVersion: 99\n")
    (metadata / "entry_points.txt").write_text(_ENTRY_POINTS)
    (metadata / "RECORD").write_text(_RECORD)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), pytest.param(("-n1",), marks=pytest.mark.slow)])
def test_a_suite_whose_warnings_are_errors_runs_under_emulate(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    _install(tmp_path / "site")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n'
    )
    (tmp_path / "test_user.py").write_text(
        "import pytest\n\n@pytest.mark.gpu\ndef test_device(cuda_context): pass\n"
    )
    done = subprocess.run(
        [
            sys.executable, "-m", "cudadrv", "emulate", "python", "-m", "pytest", "-q",
            "-pno:cacheprovider", "-pno:hypothesispytest", *options,
        ],
        env=environment({"PYTHONPATH": f"{tmp_path / 'site'}:{_PACKAGES}", "PYTEST_ADDOPTS": ""}),
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
