"""Every block of README and docs runs as it stands, on the emulator."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents.__main__ import ROOT, agrees
from tests.documents.blocks import blocks_of

pytestmark = pytest.mark.timeout(600)  # a page has many processes

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [
    page for page in PAGES if any(b.language in {"python", "console"} for b in blocks_of(page))
]
NOT_OURS = (
    "CuPy",
    "PyCUDA",
    "cuda.core",
    "Numba",
    "PyTorch",
    "Dr.Jit",
    "it needs nvFatbin",
    "it needs PyTorch",
)
"""Whose code may stand in a page without running, or what it needs."""
NEEDS = {"several-hosts.md": "distributed"}
"""What else a page must have, which comes with an extra."""
RUNS = {"python", "console"}
KNOWN = {
    *RUNS,
    "output",
    "cuda",
    "cpp",
    "toml",
    "json",
    "lua",
    "lisp",
    "ini",
    "yaml",
    "text",
    "eval-rst",
    "toctree",
}


SHORT = {"README.md"}
"""The pages whose blocks run with the short tests; the environment docs runs all."""


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name(page), marks=() if page.name in SHORT else pytest.mark.slow)
        for page in WITH_CODE
    ],
)
def test_the_blocks_of_the_page_run(page: Path) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "CUDADRV_DRIVER": "emulator:2",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONIOENCODING": "utf-8",
        # As where cudadrv is installed; naming it once more changes nothing.
        "PYTEST_ADDOPTS": "-p cudadrv.testing",
    }
    for name in ("CUDADRV_EMULATOR_ORDER", "CUDADRV_CHECK"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.documents", str(page)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_block_that_does_not_run_reports_why() -> None:
    wrong = []
    for page in WITH_CODE:
        for block in blocks_of(page):
            known = block.language in KNOWN
            if block.language == "python":
                ast.parse(block.text)
                known = block.not_run is None or block.not_run in NOT_OURS
            if not known:
                wrong.append(f"{name(page)}:{block.line}: {block.language}, {block.not_run}")
    assert wrong == []


def test_an_error_is_at_most_ten_short_lines_with_the_users_line_first() -> None:
    errors = [
        block.text.splitlines()
        for block in blocks_of(ROOT / "docs" / "troubleshooting.md")
        if block.language == "output" and block.text.startswith("File")
    ]
    assert len(errors) >= 25
    for first, second, *text in errors:
        assert re.fullmatch(r'File "example\.py", line \d+', first)
        assert second.startswith("  ")
        assert 1 <= len(text) <= 10
        own = [re.sub(r"\S+\(\d+\): .*", "", line) for line in text]  # a compiler's are left out
        assert all(len(line) <= 145 for line in own)


def test_the_error_without_a_driver_is_that_of_the_page() -> None:
    code = "import cudadrv\ntry:\n cudadrv.list_devices()\nexcept Exception as error:\n"
    code += " print(type(error).__name__ + ': ' + str(error))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"CUDADRV_DRIVER": "cuda"},
        capture_output=True,
        text=True,
        check=True,
    )
    if not done.stdout.startswith("DriverNotFoundError"):
        pytest.skip("needs a machine without a CUDA driver")
    (shown,) = (
        block.text
        for block in blocks_of(ROOT / "docs" / "troubleshooting.md")
        if block.language == "text"
    )
    assert done.stdout.startswith(shown)


@pytest.mark.slow
def test_a_wrong_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text, found in (
        ("```python\nx = 1\n```\n```python\nprint(x)\n```\n```output\n1\n```\n", True),
        ("```python\nprint(1)\n```\n```output\n2\n```\n", False),
        ("```python\nabsent\n```\n", False),
        ("<!-- raises -->\n```python\nx = 1\n```\n", False),
        ("```console\npython -c 'raise SystemExit(1)'\n```\n", False),
        ("<!-- fails -->\n```console\npython -c 'raise SystemExit(1)'\n```\n", True),
        ("`a.py`\n```python\nprint(3)\n```\n```console\npython a.py\n```\n", True),
    ):
        page.write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "tests.documents", str(page)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) == found, text + done.stdout + done.stderr


def test_dots_stand_for_lines_that_differ() -> None:
    assert agrees("a\n...\nc\n", "a\nb\nb\nc\n")
    assert not agrees("a\n...\nc\n", "a\nb\nd\n")
