"""The observers of a launch, by its limits. Each is imported by the first launch that has it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.observer import Watcher
from ptx.emulate.threads.limits import Limits


def watchers_of(limits: Limits, code: KernelFacts) -> tuple[Watcher, ...]:
    """Return what observes a launch of this code, in the order in which they see an access."""
    return (*_watchers_of(limits, code), *limits.watchers)


def _watchers_of(limits: Limits, code: KernelFacts) -> Iterator[Watcher]:
    if limits.unwritten is not None:
        from ptx.emulate.check.unwritten_reads import UnwrittenReads

        yield partial(UnwrittenReads, limits.unwritten)
    if limits.divisions is not None and (code.divides or code.calls_by_address):
        from ptx.emulate.check.zero_divisors import ZeroDivisors

        yield partial(ZeroDivisors, limits.divisions)
    if limits.findings is not None:
        from ptx.emulate.check.chunk_races import LaunchRaces

        yield partial(LaunchRaces, limits.findings, limits.accessed)
