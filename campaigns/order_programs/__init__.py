"""Programs of a few acts (write, read, copy, capture, close, drop, collect) beside a model."""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import time
import warnings
from collections.abc import Iterator
from typing import Final

from tests.contract.order.lab import Lab

from ..report import Report
from .programs import SCENES, Program, programs, run, sampled

_BATCH: Final = 200
_PATIENCE_S: Final = 60.0


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Run programs of two and three acts that the seed chooses, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m campaigns order_programs")
    parser.add_argument("--all", action="store_true", help="every program, however long it takes")
    parser.add_argument("--length", type=int, help="only programs of so many acts")
    parser.add_argument("--only", default="", help="only programs whose text has this")
    given = parser.parse_args(options)
    warnings.simplefilter("error")
    report, end = Report(), time.monotonic() + seconds
    lengths = [given.length] if given.length else [2, 3]
    with Lab() as lab:
        chosen = _chosen(len(lab.contexts), lengths, seed, is_all=given.all)
        wanted = (program for program in chosen if given.only in str(program))
        while (given.all or time.monotonic() < end) and (
            batch := list(itertools.islice(wanted, _BATCH if given.all else _BATCH // 10))
        ):
            faulthandler.dump_traceback_later(_PATIENCE_S + _BATCH, exit=True)
            found = run(lab, batch)
            report.count("programs", found.count)
            report.failures += found.failures
    faulthandler.cancel_dump_traceback_later()
    return report


def _chosen(devices: int, lengths: list[int], seed: int, *, is_all: bool) -> Iterator[Program]:
    if is_all:
        for length, scene in itertools.product(lengths, SCENES):
            yield from programs(scene, length, devices)
        return
    for number in itertools.count(seed):
        for length, scene in itertools.product(lengths, SCENES):
            yield from sampled(scene, length, devices, _BATCH // 10, number)
