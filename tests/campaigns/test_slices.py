"""A short slice of each campaign; `python -m campaigns` runs the long ones."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from campaigns.catalogue import CAMPAIGNS

pytestmark = pytest.mark.slow

SECONDS = 4.0


@pytest.mark.parametrize("campaign", sorted(CAMPAIGNS))
def test_a_slice_of_each_campaign_holds(campaign: str) -> None:
    environment = {**os.environ, "CUDADRV_DRIVER": "emulator:2"}
    command = [sys.executable, "-m", "campaigns", "--campaign", campaign]
    done = subprocess.run(
        [*command, "--seconds", str(SECONDS)],
        env=environment, capture_output=True, text=True, errors="replace", timeout=300, check=False,
    )  # fmt: skip  # the linker prints names that are no text
    assert done.returncode == 0, done.stdout + done.stderr
