"""Interrupts: at each point of each operation, and at random moments of the long ones.

Points are tried on the emulator in labs of their own; an hour tries all of them. Random moments
take the last quarter of the time. On a GPU objects of the driver are not counted, and half of the
time goes to random moments:

    CUDADRV_DRIVER=cuda python -m campaigns interrupts --moments --only load capture
"""

from __future__ import annotations

import argparse
import time

import cudadrv

from ..report import Report
from .moments import attack_moments
from .operations import LONG
from .systematic import attack_points


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Interrupt operations, and look at what is left."""
    parser = argparse.ArgumentParser(prog="python -m campaigns interrupts")
    parser.add_argument("--moments", action="store_true", help="random moments alone")
    parser.add_argument("--most", type=int, help="stop after so many at random moments")
    parser.add_argument("--only", nargs="*", default=[""], help="names of long operations")
    given = parser.parse_args(options)
    report, start = Report(), time.monotonic()
    if not given.moments:
        share = 0.75 if cudadrv.list_devices()[0].is_emulated else 0.5
        attack_points(report, start + share * seconds, seed)
    names = [name for name in LONG if any(part in name for part in given.only)]
    attack_moments(report, start + seconds, seed, names=names, most=given.most)
    return report
