"""Limits under which few threads run in one form or the other: with arrays, or one by one."""

from __future__ import annotations

from random import Random
from typing import Final

from ptx.emulate.threads.limits import FewThreads, Limits

_ANY: Final = 1024  # a block's threads; more take too long for a test

USUAL: Final = Limits()
NEVER: Final = Limits(few_threads=FewThreads(most=0, most_in_loop=0))
"""No thread has registers of its own."""
EVERY_THREAD: Final = FewThreads(most=_ANY, most_in_loop=_ANY, heat=0, settled=0)
ALWAYS: Final = Limits(few_threads=EVERY_THREAD)
"""Every thread has, at every block."""


def drawn(seed: int) -> Limits:
    """Every fibre changes its form as draws say."""
    random = Random(seed)
    return Limits(
        few_threads=FewThreads(
            most=_ANY, most_in_loop=_ANY, heat=0, settled=0, switches=lambda: random.random() < 0.5
        )
    )
