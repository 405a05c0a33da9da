"""Which fibres run by rows: few threads, at code that few threads come to often.

Tests choose otherwise: whatever is chosen, a kernel gives the same bits and the same faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Final

_FEW: Final = 16  # threads whose rows take about as long as NumPy's arrays of all of them
_FEW_IN_LOOP: Final = 40  # the same where they go through a loop in one function
_FEW_APART: Final = 512  # the same where fibres part and meet at every few blocks
_HOT: Final = 24  # visits of few threads to a block that are made before it gets code of its own
_SETTLED: Final = 6  # blocks that a fibre of few threads executes before it changes its form
_ANY: Final = 1024  # a block's threads; more take too long for a test


@dataclass(slots=True)
class Choice:
    """How fibres are chosen.

    Attributes:
        most: threads of a fibre that may have rows; most_in_loop: in a loop; most_apart:
            where threads go their own ways.
        heat: visits to a block before it gets code for single threads.
        settled: blocks that a fibre executes before it gets rows.
        random: where a draw decides before each block; None for no draw.
    """

    most: int = _FEW
    most_in_loop: int = _FEW_IN_LOOP
    most_apart: int = _FEW_APART
    heat: int = _HOT
    settled: int = _SETTLED
    random: Random | None = None

    def draws_other(self) -> bool:
        """Whether a fibre is to have the other form at this block, against what is usual."""
        return self.random is not None and self.random.random() < 0.5


_choice: ContextVar[Choice | None] = ContextVar("lanes", default=None)
_USUAL: Final = Choice()


def choice() -> Choice:
    """The choice for what is launched now."""
    return _choice.get() or _USUAL


@contextmanager
def chosen(choice: Choice) -> Iterator[None]:
    """Another choice, for the launches of this thread in a `with`."""
    token = _choice.set(choice)
    try:
        yield
    finally:
        _choice.reset(token)


def never() -> Choice:
    """No fibre has rows."""
    return Choice(most=0, most_in_loop=0)


def always() -> Choice:
    """Every fibre has rows, at every block."""
    return Choice(most=_ANY, most_in_loop=_ANY, heat=0, settled=0)


def drawn(seed: int) -> Choice:
    """Every fibre changes its form as draws say."""
    return Choice(most=_ANY, most_in_loop=_ANY, heat=0, settled=0, random=Random(seed))
