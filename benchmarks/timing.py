"""Timing statements in turns, so that whatever disturbs the machine disturbs all of them."""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Case:
    """A statement to be timed.

    Attributes:
        who: whose call it is.
        statement: Python, timed without a function call around it.
        names: what the statement's names mean.
        repeats: how often a round runs it; None takes the group's number.
        per: how many operations the statement makes; times are of one.
        most_rounds: rounds at most; None takes the group's number.
    """

    who: str
    statement: str
    names: Mapping[str, object]
    repeats: int | None = None
    per: int = 1
    most_rounds: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; times in microseconds a statement.

    Attributes:
        group: such as "launch".
        case: what was done, such as "5 parameters".
        who: by whom.
        median: over the rounds.
        best: of the rounds; ratios are made of it, since disturbance only adds.
        ratio: best over the best of the case's first row.
        nbytes: what a copy moved, so that a bandwidth can be given; 0 for what moves nothing.
        scaling: for several threads, how many times as many calls a second as one thread makes,
            of the medians; 0 otherwise.
        error: why there are no figures.
    """

    group: str
    case: str
    who: str
    median: float = 0.0
    best: float = 0.0
    ratio: float = 0.0
    nbytes: int = 0
    scaling: float = 0.0
    error: str = ""

    @classmethod
    def failed(cls, group: str, case: str, who: str, error: BaseException | str) -> Row:
        """The row of something that could not be measured."""
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        return cls(group, case, who, error=" ".join(text.split())[:200])

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return asdict(self)


@dataclass(slots=True)
class _Timed:
    case: Case
    timer: timeit.Timer
    times: list[float] = field(default_factory=list)
    error: Exception | None = None


def measure(
    group: str,
    case: str,
    cases: Sequence[Case],
    *,
    repeats: int,
    rounds: int,
    settle: Callable[[], object] = lambda: None,
    nbytes: int = 0,
    limit_s: float = 8.0,
) -> list[Row]:
    """Time cases in turns; the first is what the others are compared with.

    Args:
        group: for the rows.
        case: for the rows.
        cases: what to time.
        repeats: how often a round runs each.
        rounds: how many rounds.
        settle: called after each timing, outside of it: waits for the device.
        nbytes: for the rows.
        limit_s: no further round begins after so many seconds.
    """
    timed = [_Timed(one, timeit.Timer(one.statement, globals=dict(one.names))) for one in cases]
    end = time.perf_counter() + limit_s
    for number in range(-1, rounds):  # the first warms up
        if number > 1 and time.perf_counter() > end:
            break
        for one in timed:
            if one.error is None and not _enough(one, number):
                _time(one, repeats, settle, kept=number >= 0)
    return _rows(group, case, timed, nbytes)


def _enough(one: _Timed, number: int) -> bool:
    return one.case.most_rounds is not None and number >= one.case.most_rounds


def _time(one: _Timed, repeats: int, settle: Callable[[], object], *, kept: bool) -> None:
    count = one.case.repeats or repeats
    try:
        elapsed = one.timer.timeit(count if kept else min(count, 20)) / count
        settle()
    except Exception as error:
        # One peer's failure is a line of the table, whatever it is.
        one.error = error
    else:
        if kept:
            one.times.append(elapsed * 1e6 / one.case.per)


def _rows(group: str, case: str, timed: Sequence[_Timed], nbytes: int) -> list[Row]:
    rows, base = [], 0.0
    for one in timed:
        if one.error is not None or not one.times:
            rows.append(Row.failed(group, case, one.case.who, one.error or "was not reached"))
            continue
        best = min(one.times)
        base = base or best
        median = statistics.median(one.times)
        rows.append(Row(group, case, one.case.who, median, best, best / base, nbytes))
    return rows
