"""The processor time of each test: shown after a run, stored, and compared with the stored table.

A plugin of pytest (`--times FILE` stores the times of a run), and a command that is run by hand:
`python -m tests.times FILE` compares them with `tests/times.txt` and the mark slow, and `--write`
renews the table. No test fails because of its time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("times.txt")
SLOW_SECONDS = 2.0  # of a function, on the machine of the table
_SHOWN = 10
_BEGIN = pytest.StashKey[float]()


class Times:
    """The processor time in seconds of each test, by its id; those marked slow end in `SLOW`."""

    def __init__(self, file: str | None) -> None:
        self._file = file
        self._of: dict[str, tuple[float, bool]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if report.when == "teardown" and name == "cpu_seconds" and isinstance(value, float):
                self._of[report.nodeid] = value, "slow" in report.keywords

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        slowest = sorted(self._of.items(), key=lambda each: -each[1][0])[:_SHOWN]
        if len(self._of) > _SHOWN:
            total = sum(seconds for seconds, _slow in self._of.values())
            terminalreporter.section(f"the slowest of {total:.0f} s of processor time")
            for test, (seconds, _slow) in slowest:
                terminalreporter.write_line(f"{seconds:6.1f} s  {test}")

    def pytest_sessionfinish(self) -> None:
        if self._file is not None and self._of:
            Path(self._file).write_text(json.dumps(self._of, indent=0, sort_keys=True))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FILE", help="store the processor time of each test")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a worker of pytest-xdist sends its reports
        config.pluginmanager.register(Times(config.getoption("--times")))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[_BEGIN] = _cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Note the time of set-up, call and tear-down, in this process and in children that ended."""
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_seconds", _cpu_seconds() - item.stash[_BEGIN]))


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


def by_file(times: Mapping[str, tuple[float, bool]]) -> dict[str, float]:
    """Return the seconds of each file of tests."""
    sums: dict[str, float] = defaultdict(float)
    for test, (seconds, _slow) in times.items():
        sums[test.partition("::")[0]] += seconds
    return dict(sums)


def speed(seconds: Mapping[str, float], stored: Mapping[str, float]) -> float:
    """Return how much longer this machine takes than the table's: the median over larger files."""
    ratios = [seconds[file] / stored[file] for file in seconds if stored.get(file, 0) > 1]
    return statistics.median(ratios) if ratios else 1.0


def marks_to_change(times: Mapping[str, tuple[float, bool]], slower: float) -> list[str]:
    """Return a line for each function whose tests without the mark slow take long together."""
    sums: dict[str, float] = defaultdict(float)
    for test, (seconds, slow) in times.items():
        if not slow:
            sums[test.partition("[")[0]] += seconds / slower
    return [
        f"{function}: {seconds:.1f} s without the mark slow"
        for function, seconds in sorted(sums.items())
        if seconds > SLOW_SECONDS
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.times", description=__doc__)
    parser.add_argument("file", type=Path, help="what `pytest --times FILE` has stored")
    parser.add_argument("--write", action="store_true", help="renew the table")
    arguments = parser.parse_args()
    times: dict[str, tuple[float, bool]] = {
        test: (seconds, slow)
        for test, (seconds, slow) in json.loads(arguments.file.read_text()).items()
    }
    seconds = by_file(times)
    if arguments.write:
        lines = [f"{seconds[file]:8.1f} {file}\n" for file in sorted(seconds)]
        TABLE.write_text("".join(lines))
        return 0
    rows = [line.split() for line in TABLE.read_text().splitlines()]
    stored = {file: float(of) for of, file in rows}
    slower = speed(seconds, stored)
    print(f"this machine takes {slower:.2f} times as long as the table's")
    for file in sorted(seconds):
        if seconds[file] / slower > 2 * stored.get(file, 0) + 2:
            print(f"{file}: {seconds[file] / slower:.1f} s, {stored.get(file, 0):.1f} in the table")
    wrong = marks_to_change(times, slower)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
