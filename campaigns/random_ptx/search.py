"""The search itself: seeds are tried one by one until the time is over."""

from __future__ import annotations

import random
import time
import traceback
import warnings
from typing import Final

from campaigns.random_ptx.broken import broken, provoke
from campaigns.random_ptx.comparison import difference, program_of, smaller
from campaigns.random_ptx.programs import Program
from campaigns.random_ptx.table import table_text
from campaigns.report import Report

_MOST_FAILURES: Final = 5


def verdict(program: Program, seed: int) -> str:
    """How a program fails: in words, or by the first line of what was raised; "" if it does not."""
    try:
        return difference(program, seed)
    except Exception as error:  # whatever it is, it is a finding
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def compare(seed: int, report: Report) -> None:
    """One valid program."""
    program = program_of(seed)
    report.count("programs compared")
    found = verdict(program, seed)
    if not found:
        return
    kind = found.partition(" ")[0]

    def fails(candidate: Program) -> bool:
        return verdict(candidate, seed).partition(" ")[0] == kind

    small = smaller(program, fails)
    report.failures.append(f"seed {seed}: {found}\nsmaller: {verdict(small, seed)}\n{small.text()}")


def reject(seed: int, report: Report) -> None:
    """One broken text."""
    _provoke(seed, broken(random.Random(seed), program_of(seed).text()), report)


def try_any(seed: int, report: Report) -> None:
    """One text with any instruction of the emulator's table."""
    _provoke(seed, table_text(seed), report)


def _provoke(seed: int, text: str, report: Report) -> None:
    start = time.monotonic()
    try:
        report.count(f"wrong texts: {provoke(text)}")
    except Exception:  # not a typed one
        report.count("wrong texts: untyped")
        report.failures.append(f"seed {seed}, wrong:\n{traceback.format_exc()}\n{text}")
    if time.monotonic() - start > 20:
        report.failures.append(f"seed {seed}, wrong: it took longer than 20 s\n{text}")


def run_campaign(seconds: float, seed: int) -> Report:
    """Try seeds from `seed` on: two wrong texts with each, a valid program with every second."""
    warnings.simplefilter("error")
    report = Report()
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(report.failures) < _MOST_FAILURES:
        reject(seed, report)
        try_any(seed, report)
        if seed % 2:
            compare(seed, report)
        seed += 1
    return report
