"""Modules of PTX beside NVIDIA's assembler: what it accepts, and the values of initialised data.

Modules are random declarations, initialisers, directives, names, versions and targets, and forms
of instructions with changed modifiers and operands. nvJitLink is the reference, both ways. A
difference that `known` names is counted with its reason; any other is a failure.

`--needs` compares what each form with each of its modifiers needs instead, at each version of
twelve targets; `--names` each place of a name with each word of PTX.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Final

from campaigns.assembled_ptx.declarations import declared_module
from campaigns.assembled_ptx.instructions import Instructions
from campaigns.assembled_ptx.judging import Judge, Opening
from campaigns.assembled_ptx.names import compare_names
from campaigns.assembled_ptx.requirements import compare_needs
from campaigns.report import Report

_FORMS_AT_ONCE: Final = 200
_LATER: Final = ("8.8", "9.0", "9.1", "9.2", "9.3", "9.4")
# Targets with versions that have them.
_TARGETS: Final = (
    ("sm_90a", ("8.0", "8.1", "8.3", "8.4", "8.6", "8.7", *_LATER)),
    ("sm_100a", ("8.6", "8.7", *_LATER)),
    ("sm_120a", ("8.7", *_LATER)),
    ("sm_80", ("7.0", "7.1", "7.4", "7.8", "8.0", "8.5", *_LATER)),
    ("sm_75", ("6.3", "6.5", "7.0", "7.8", "8.0", "8.6", *_LATER)),
)
_DECLARED_AT_ONCE: Final = 20


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Compare modules until the time is over, or as many as `--count` says."""
    parser = argparse.ArgumentParser(prog="python -m campaigns assembled_ptx")
    parser.add_argument("--count", type=int, default=0, help="so many modules, in any time")
    parser.add_argument(
        "--needs", action="store_true", help="the needs of each form with each of its modifiers"
    )
    parser.add_argument("--names", action="store_true", help="places of names with all words")
    arguments = parser.parse_args(options)
    count: int = arguments.count
    report, source, end = Report(), random.Random(seed), time.monotonic() + seconds
    judge, instructions = Judge(report), Instructions(source)
    if not judge.is_available:
        report.skipped["all"] = "nvJitLink is not installed"
        return report
    if arguments.needs or arguments.names:
        compare = compare_needs if arguments.needs else compare_names
        compare(judge, source, end)
        return report
    while judge.modules < count if count else time.monotonic() < end:
        forms = [instructions.next() for _ in range(_FORMS_AT_ONCE)]
        target, versions = source.choice((_TARGETS[0], *_TARGETS))
        version = "9.0" if source.random() < 0.5 else source.choice(versions)
        judge.compare_forms(forms, Opening(target, version))
        for _ in range(_DECLARED_AT_ONCE):
            judge.compare_module(declared_module(source))
    return report
