"""Short slices of the long runs that ``python -m campaigns.order_programs`` makes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from campaigns.model import machine_in
from tests.contract.order.lab import Lab

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def stressed(*arguments: str) -> tuple[int, str]:
    """A run in a process of its own, which a deadlock can end: its status and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "campaigns.order_programs", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout[-3000:] + done.stderr[-6000:]


def test_threads_that_share_objects_see_right_values_and_only_closed_errors() -> None:
    status, text = stressed("threads", "--seconds", "5")
    assert status == 0, text


def test_the_command_runs_programs_of_its_choice() -> None:
    status, text = stressed(
        "programs", "--all", "--length", "1", "--only", "x is being read on B: copy"
    )
    assert status == 0, text
    assert re.search(r"^0 of (9|13) programs failed$", text, re.MULTILINE), text


def test_objects_of_all_kinds_follow_the_model() -> None:
    with Lab() as lab:
        few = settings(
            max_examples=120 if lab.is_emulated else 15,
            stateful_step_count=50,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],  # the command finds the smallest example
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(machine_in(lab), settings=few)
