"""Public callables called with values chosen by their annotations, and with wrong ones.

A value that the annotations allow may only give a result or an error of the library, and so may a
wrong one. An AttributeError, KeyError or OverflowError from inside is a fault, and so is a hang or
a crash.
"""

from __future__ import annotations

import faulthandler
import time

from ..report import Report
from .calls import attack_round
from .surface import targets


def run_campaign(seconds: float, seed: int) -> Report:
    """Fuzz the public surface; `attack_round` repeats the round that a failure names."""
    faulthandler.enable()
    outcome, known = Report(), targets()
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        attack_round(number, seed, known, outcome)
        number += 1
    return outcome
