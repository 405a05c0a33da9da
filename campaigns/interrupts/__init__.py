"""Interrupts: at each point of each operation, and at random moments of the long ones.

Points are tried on the emulator in labs of their own; an hour tries all of them. Random moments
take the last quarter of the time. On a GPU, `CUDADRV_DRIVER=cuda`, objects of the driver are not
counted, and half of the time goes to random moments.
"""

from __future__ import annotations

import time

import cudadrv

from ..report import Outcome
from .moments import attack_moments
from .systematic import attack_points


def attack(seconds: float, seed: int) -> Outcome:
    """Interrupt operations, and look at what is left."""
    outcome, start = Outcome(), time.monotonic()
    share = 0.75 if cudadrv.list_devices()[0].is_emulated else 0.5
    attack_points(outcome, start + share * seconds, seed)
    attack_moments(outcome, start + seconds, seed)
    return outcome
