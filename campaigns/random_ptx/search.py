"""The search itself: seeds are tried one by one until the time is over."""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field

from campaigns.random_ptx.broken import broken, provoke
from campaigns.random_ptx.comparison import difference, program_of, smaller
from campaigns.random_ptx.programs import Program
from campaigns.random_ptx.table import table_text


@dataclass
class Report:
    """What was tried, and the failures in words."""

    programs: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        tried = f"{self.programs} programs compared, {self.wrong.total()} wrong texts"
        ways = ", ".join(f"{name} {count}" for name, count in self.wrong.most_common())
        return f"{tried} ({ways}), {len(self.failures)} failures"


def verdict(program: Program, seed: int) -> str:
    """How a program fails: in words, or by the first line of what was raised; "" if it does not."""
    try:
        return difference(program, seed)
    except Exception as error:  # whatever it is, it is a finding
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def compare(seed: int, report: Report) -> None:
    """One valid program."""
    program = program_of(seed)
    report.programs += 1
    found = verdict(program, seed)
    if not found:
        return
    kind = found.partition(" ")[0]

    def fails(candidate: Program) -> bool:
        return verdict(candidate, seed).partition(" ")[0] == kind

    small = smaller(program, fails)
    report.failures.append(f"seed {seed}: {found}\nsmaller: {verdict(small, seed)}\n{small.text()}")


def refuse(seed: int, report: Report) -> None:
    """One broken text."""
    _provoke(seed, broken(random.Random(seed), program_of(seed).text()), report)


def try_any(seed: int, report: Report) -> None:
    """One text with any instruction of the emulator's table."""
    _provoke(seed, table_text(seed), report)


def _provoke(seed: int, text: str, report: Report) -> None:
    start = time.monotonic()
    try:
        report.wrong[provoke(text)] += 1
    except Exception:  # not a typed one
        report.wrong["untyped"] += 1
        report.failures.append(f"seed {seed}, wrong:\n{traceback.format_exc()}\n{text}")
    if time.monotonic() - start > 20:
        report.failures.append(f"seed {seed}, wrong: it took longer than 20 s\n{text}")


def search(seconds: float, seed: int, *, most_failures: int = 5) -> Report:
    """Try seeds from `seed` on: two wrong texts with each, a valid program with every second."""
    report = Report()
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(report.failures) < most_failures:
        refuse(seed, report)
        try_any(seed, report)
        if seed % 2:
            compare(seed, report)
        seed += 1
    return report
