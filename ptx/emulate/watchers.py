"""The observers of a launch, by its limits. Each is imported by the first launch that has it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ptx.emulate.observer import Watcher
from ptx.emulate.threads.limits import Limits

if TYPE_CHECKING:
    from ptx.emulate.count.launch_counts import LaunchCounts


def watchers_of(limits: Limits, counts: LaunchCounts | None) -> tuple[Watcher, ...]:
    """Return what observes a launch, in the order in which they see an access."""
    return (*_watchers_of(limits, counts), *limits.watchers)


def _watchers_of(limits: Limits, counts: LaunchCounts | None) -> Iterator[Watcher]:
    if limits.unwritten is not None:
        from ptx.emulate.check.unwritten_reads import UnwrittenReads

        yield Watcher(partial(UnwrittenReads, limits.unwritten))
    if limits.divisions is not None:
        from ptx.emulate.check.zero_divisors import zero_divisors

        yield Watcher(partial(zero_divisors, limits.divisions))
    if limits.findings is not None:
        from ptx.emulate.check.chunk_races import LaunchRaces

        yield Watcher(partial(LaunchRaces, limits.findings, limits.accessed))
    if limits.check_uninitialised:
        from ptx.emulate.check.own_memory import OwnMemory
        from ptx.emulate.check.undefined_writer import UndefinedWriter

        yield Watcher(OwnMemory, UndefinedWriter)
    if limits.check_bounds:
        from ptx.emulate.check.pointer_bounds import PointerBounds

        yield Watcher(PointerBounds)
    if counts is not None:
        from ptx.emulate.count.chunk_counts import CountedLaunch
        from ptx.emulate.count.count_writer import CountWriter

        yield Watcher(partial(CountedLaunch, counts), CountWriter)
