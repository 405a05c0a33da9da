"""A short slice of each campaign; `python -m campaigns NAME --seconds N` runs a long one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from campaigns.catalogue import CAMPAIGNS

ROOT = Path(__file__).parents[2]
SECONDS = 4.0


def campaign(*arguments: str) -> tuple[int, str]:
    """Run the command in a process of its own, which a deadlock can end: status and output."""
    environment = {**os.environ, "CUDADRV_DRIVER": "emulator:2"}
    done = subprocess.run(
        [sys.executable, "-m", "campaigns", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=280,
        check=False,
    )  # the linker prints names that are no text
    return done.returncode, done.stdout[-6000:] + done.stderr[-6000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, each in CAMPAIGNS.items() if not each.needs])
def test_a_slice_of_each_campaign_holds(name: str) -> None:
    status, text = campaign(name, "--seconds", str(SECONDS))
    assert status == 0, text
    found = re.search(r"^([\d,]+) cases, 0 failures$", text, re.MULTILINE)
    assert found is not None, text
    assert int(found[1].replace(",", "")) > 0


@pytest.mark.slow
def test_the_command_runs_programs_of_its_choice() -> None:
    chosen = ("--all", "--length", "1", "--only", "x is being read on B: copy")
    status, text = campaign("order_programs", *chosen)
    assert status == 0, text
    assert re.search(r"^(9|13) cases, 0 failures$", text, re.MULTILINE), text


def test_the_list_names_every_campaign_and_an_unknown_option_is_an_error() -> None:
    assert [name for name in CAMPAIGNS if f"\n{name} " not in "\n" + campaign("--list")[1]] == []
    status, text = campaign("leaks", "--seconds", "1", "--loud")
    assert status == 2
    assert "leaks has no option --loud" in text
