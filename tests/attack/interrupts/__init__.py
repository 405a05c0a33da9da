"""Interrupts: at each point of each operation, and at random moments of the long ones."""

from __future__ import annotations

import time

from ..outcome import Outcome
from .systematic import attack_points


def attack(seconds: float, seed: int) -> Outcome:
    """Interrupt operations; an hour tries every point."""
    outcome = Outcome()
    attack_points(outcome, time.monotonic() + seconds, seed)
    return outcome
