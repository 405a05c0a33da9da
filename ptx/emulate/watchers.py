"""The checks of launches, by name, and the observers of a launch.

Each is imported by the first launch that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ptx.emulate.threads.limits import Limits
from ptx.errors import PtxArgumentValueError

if TYPE_CHECKING:
    from ptx.emulate.check.findings import Findings
    from ptx.emulate.count.launch_counts import LaunchCounts
    from ptx.emulate.kernel_facts import Instrument
    from ptx.emulate.observer import ObservedLaunch, Observer, Watcher


class LaunchCheck(NamedTuple):
    """A check of launches.

    Attributes:
        check: the check that it is a part of, by the name that users give.
        watcher: returns the watcher of a launch with these limits.
    """

    check: str
    watcher: Callable[[Limits], Watcher]


def _watcher(
    begin: Callable[[ObservedLaunch], Observer | None], instrument: type[Instrument] | None = None
) -> Watcher:
    from ptx.emulate.observer import Watcher

    return Watcher(begin, instrument)


def _unwritten(limits: Limits) -> Watcher:
    from ptx.emulate.check.unwritten_reads import UnwrittenReads

    return _watcher(partial(UnwrittenReads, _findings(limits)))


def _divide(limits: Limits) -> Watcher:
    from ptx.emulate.check.zero_divisors import zero_divisors

    return _watcher(partial(zero_divisors, _findings(limits)))


def _race(limits: Limits) -> Watcher:
    from ptx.emulate.check.chunk_races import LaunchRaces
    from ptx.emulate.check.held_loads_writer import HeldLoadsWriter

    return _watcher(partial(LaunchRaces, _findings(limits), limits.accessed), HeldLoadsWriter)


def _undefined(limits: Limits) -> Watcher:
    from ptx.emulate.check.own_memory import OwnMemory
    from ptx.emulate.check.undefined_writer import UndefinedWriter

    return _watcher(partial(OwnMemory, limits.findings), UndefinedWriter)


def _bounds(limits: Limits) -> Watcher:
    from ptx.emulate.check.pointer_bounds import PointerBounds

    return _watcher(PointerBounds)


def _nan(limits: Limits) -> Watcher:
    from ptx.emulate.check.nonfinite_results import nonfinite_results
    from ptx.emulate.check.nonfinite_writer import NonfiniteWriter

    return _watcher(partial(nonfinite_results, _findings(limits)), NonfiniteWriter)


LAUNCH_CHECKS: Final = {
    "unwritten": LaunchCheck("init", _unwritten),
    "divide": LaunchCheck("divide", _divide),
    "race": LaunchCheck("race", _race),
    "undefined": LaunchCheck("init", _undefined),
    "bounds": LaunchCheck("bounds", _bounds),
    "nan": LaunchCheck("nan", _nan),
}
"""By the names in `Limits.checks`, in the order in which they see an access."""


process_watchers: Final[list[Watcher]] = []
"""Observers of each launch of this process whose limits are new, such as a debugger's."""


def watchers_of(limits: Limits, counts: LaunchCounts | None) -> tuple[Watcher, ...]:
    """Return what observes a launch, in the order in which they see an access.

    Raises:
        PtxArgumentValueError: there is no such check, or it has no findings to add to.
    """
    unknown = limits.checks - LAUNCH_CHECKS.keys()
    if unknown:
        names = ", ".join(LAUNCH_CHECKS)
        raise PtxArgumentValueError(f"Limits: {min(unknown)!r} is no check: one of {names}")
    return (*_watchers_of(limits, counts), *limits.watchers, *process_watchers)


def _watchers_of(limits: Limits, counts: LaunchCounts | None) -> Iterator[Watcher]:
    for name, check in LAUNCH_CHECKS.items():
        if name in limits.checks:
            yield check.watcher(limits)
    if counts is not None:
        from ptx.emulate.count.chunk_counts import CountedLaunch
        from ptx.emulate.count.count_writer import CountWriter

        yield _watcher(partial(CountedLaunch, counts), CountWriter)


def _findings(limits: Limits) -> Findings:
    if limits.findings is None:
        raise PtxArgumentValueError("Limits: findings is None: give Findings() for its checks")
    return limits.findings
