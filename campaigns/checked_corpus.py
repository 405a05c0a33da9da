"""The differential corpus under all checks but "nan", with its recorded inputs.

The kernels are right but for those that `KNOWN` names; every other finding is a false alarm.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import cudadrv
from cudadrv import emulator
from cudadrv.emulator.checks import Checks
from cudadrv.errors import CudaError
from ptx.emulate.check.findings import Found
from tests.emulator.differential.case import Case, Source
from tests.emulator.differential.corpus import sources
from tests.emulator.differential.execution import run
from tests.emulator.differential.recording import Recording, path_of

from .report import Report

KNOWN: Final = {
    ("race", "barrier_in_branch"): "s[t] += s[t ^ 1] without a barrier in between",
    ("init", "timed"): "CCCL 2 first waits for a time from which it takes one that has no value",
    ("race", "neighbours"): "a sum into what an earlier copy may still write; not compared there",
}
"""What is found truly, by check and kernel, and why."""
# Some of the recorded inputs overflow.
_CHECKS: Final = tuple(name for name in Checks.NAMES if name != "nan")


@dataclass
class Checked:
    """What a run has found.

    Attributes:
        kernels: how many were launched, by source.
        seconds: how long their launches and copies took.
        found: what was found.
        failed: calls that failed, in words.
    """

    kernels: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    found: tuple[Found, ...] = ()
    failed: list[str] = field(default_factory=list)

    @property
    def false(self) -> list[Found]:
        """What should not have been found, of which nothing says that it may be meant so."""
        return [each for each in self.found if not each.benign and not _is_known(each)]


def _is_known(each: Found) -> bool:
    return (each.check, each.kernel) in KNOWN


def check(chosen: Iterable[Source], has: Callable[[Case], bool]) -> Checked:
    """Launch the cases of these sources that `has` names, all in one session."""
    report = Checked()
    with emulator.session(devices=[emulator.H100], check=_CHECKS, raise_findings=False) as driver:
        context = cudadrv.cuda_context_for(0)
        with context.new_stream() as stream:
            for source in chosen:
                cases = [case for case in source.cases if has(case)]
                if cases:
                    _launch(report, context, stream, source, cases)
        del context
    report.found = driver.findings
    return report


def _launch(
    report: Checked,
    context: cudadrv.Context,
    stream: cudadrv.Stream,
    source: Source,
    cases: list[Case],
) -> None:
    with context.load_module(Recording.load(path_of(source)).ptx) as module:
        for case in cases:
            report.kernels[source.name] += 1
            start = time.perf_counter()
            try:
                run(module, stream, case)
            except CudaError as error:
                report.failed.append(f"{source.name}, {case.name}: {error}")
                return  # the device is spoiled
            finally:
                report.seconds += time.perf_counter() - start


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Run sources in the seed's order until the time is over; all of them take a minute."""
    parser = argparse.ArgumentParser(prog="python -m campaigns checked_corpus")
    parser.add_argument("--only", default="", help="a text that the names of kernels contain")
    parser.add_argument("--source", action="append", help="these sources alone")
    given = parser.parse_args(options)
    chosen = [each for each in sources() if not given.source or each.name in given.source]
    random.Random(seed).shuffle(chosen)
    report, kinds, end = Report(), Counter[str](), time.monotonic() + seconds
    for source in chosen:
        done = check([source], lambda case: given.only in case.name)
        report.count(f"kernels of {source.name}", done.kernels.total())
        report.failures += [f"false: {each}" for each in done.false]
        report.failures += [f"failed: {words}" for words in done.failed]
        kinds.update(
            f"{each.check}, {'benign' if each.benign else 'known' if _is_known(each) else 'false'}"
            for each in done.found
        )
        if time.monotonic() > end:
            break
    report.notes += [f"{kind}: {count}" for kind, count in sorted(kinds.items())]
    return report
