"""`python -m campaigns.order_programs programs|threads|model`: long runs."""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import os
import sys
import time
import warnings
from collections.abc import Iterator

from hypothesis import HealthCheck, Verbosity, seed as with_seed, settings
from hypothesis.stateful import run_state_machine_as_test

import cudadrv
from campaigns import threads
from campaigns.model import machine_in
from campaigns.order_programs.programs import SCENES, Program, programs, run, sampled
from tests.contract.order.lab import Lab

_BATCH = 200
_PATIENCE_S = 60.0


def main() -> int:
    """Run generated programs, threads, or the state machine, and print what failed."""
    parser = argparse.ArgumentParser(
        description=main.__doc__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    of_programs = commands.add_parser("programs", help="programs of acts, compared with a model")
    of_programs.add_argument("--all", action="store_true", help="every program of 2 and 3 acts")
    of_programs.add_argument("--length", type=int, help="only programs of so many acts")
    of_programs.add_argument("--only", default="", help="only programs whose text has this")
    of_threads = commands.add_parser("threads", help="threads that share objects")
    of_threads.add_argument("--threads", type=int, default=threads.THREADS)
    of_model = commands.add_parser("model", help="a state machine, with smallest examples")
    for command in (of_programs, of_threads, of_model):
        command.add_argument("--seconds", type=float, default=60.0)
        command.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if "CUDADRV_DRIVER" not in os.environ:
        _choose_driver()
    faulthandler.enable()
    warnings.simplefilter("error")
    with Lab() as lab:
        if given.command == "programs":
            return _programs(lab, given)
        if given.command == "threads":
            return _threads(lab, given)
        return _model(lab, given)


def _choose_driver() -> None:
    try:
        found = bool(cudadrv.list_devices())
    except cudadrv.DriverNotFoundError:
        found = False
    if not found:
        os.environ["CUDADRV_DRIVER"] = "emulator:2"


def _chosen(lab: Lab, given: argparse.Namespace) -> Iterator[Program]:
    devices = len(lab.contexts)
    lengths = [given.length] if given.length else [2, 3]
    if given.all:
        for length, scene in itertools.product(lengths, SCENES):
            yield from programs(scene, length, devices)
        return
    for seed in itertools.count(given.seed):
        for length, scene in itertools.product(lengths, SCENES):
            yield from sampled(scene, length, devices, _BATCH, seed)


def _programs(lab: Lab, given: argparse.Namespace) -> int:
    end = time.monotonic() + given.seconds
    chosen = (program for program in _chosen(lab, given) if given.only in str(program))
    count = failed = 0
    while (given.all or time.monotonic() < end) and (
        batch := list(itertools.islice(chosen, _BATCH))
    ):
        faulthandler.dump_traceback_later(_PATIENCE_S + _BATCH, exit=True)
        report = run(lab, batch)
        count += report.count
        failed += len(report.failures)
        if report.failures:
            print(*report.failures, sep="\n", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{failed} of {count} programs failed")
    return 1 if failed else 0


def _threads(lab: Lab, given: argparse.Namespace) -> int:
    # A deadlock ends the process here, with what each thread is at.
    faulthandler.dump_traceback_later(given.seconds + _PATIENCE_S, exit=True)
    outcome = threads.run(lab, given.seconds, given.seed, given.threads)
    faulthandler.cancel_dump_traceback_later()
    print(outcome)
    return 1 if outcome.faults else 0


def _model(lab: Lab, given: argparse.Namespace) -> int:
    end = time.monotonic() + given.seconds
    count = 0
    for seed in itertools.count(given.seed):
        if time.monotonic() >= end:
            break
        faulthandler.dump_traceback_later(given.seconds + 10 * _PATIENCE_S, exit=True)
        kept = settings(
            max_examples=100, stateful_step_count=60, deadline=None, database=None,
            verbosity=Verbosity.normal, suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        run_state_machine_as_test(with_seed(seed)(machine_in(lab)), settings=kept)
        count += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{count} times 100 examples passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
