"""Modules of PTX beside NVIDIA's assembler: what it accepts, and the values of initialised data.

Modules are random declarations, initialisers, directives, names, versions and targets, and forms
of instructions with changed modifiers and operands. nvJitLink is the reference, both ways. A
difference that `known` names is counted with its reason; any other is a failure.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Final

from campaigns.assembled_ptx.declarations import declared_module
from campaigns.assembled_ptx.instructions import Instructions
from campaigns.assembled_ptx.judging import Judge
from campaigns.report import Report

_FORMS_AT_ONCE: Final = 200
_TARGETS: Final = ("sm_90a", "sm_90a", "sm_90a", "sm_100a", "sm_120a", "sm_80", "sm_75")
_DECLARED_AT_ONCE: Final = 20


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Compare modules until the time is over, or as many as `--count` says."""
    parser = argparse.ArgumentParser(prog="python -m campaigns assembled_ptx")
    parser.add_argument("--count", type=int, default=0, help="so many modules, in any time")
    count: int = parser.parse_args(options).count
    report, source, end = Report(), random.Random(seed), time.monotonic() + seconds
    judge, instructions = Judge(report), Instructions(source)
    if not judge.is_available:
        report.skipped["all"] = "nvJitLink is not installed"
        return report
    while judge.modules < count if count else time.monotonic() < end:
        forms = [instructions.next() for _ in range(_FORMS_AT_ONCE)]
        judge.compare_forms(forms, source.choice(_TARGETS))
        for _ in range(_DECLARED_AT_ONCE):
            judge.compare_module(declared_module(source))
    return report
