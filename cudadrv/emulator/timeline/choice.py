"""Which of the operations that may run is the next: as late as allowed, or as a seed says.

A choice uses nothing but numbers of operations and `random.Random.random`, whose results Python
promises to keep. So one seed gives one run on every machine.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar, get_args

if TYPE_CHECKING:
    from .operation import Operation

_T = TypeVar("_T")
OrderName = Literal["immediate", "late", "random"]
ORDERS: Final[tuple[str, ...]] = get_args(OrderName)
VARIABLE: Final = "CUDADRV_EMULATOR_ORDER"
_EAGERNESS: Final = (0.0, 0.2, 0.6)
_NEW_RANK: Final = 0.1


@dataclass(frozen=True, slots=True)
class Order:
    """An order of operations; `seed` is of "random"."""

    name: OrderName
    seed: int = 0

    def __str__(self) -> str:
        return f"random:{self.seed}" if self.name == "random" else self.name

    @property
    def repeated_by(self) -> str:
        """What makes a program run in this order again."""
        if self.name == "random":
            return (
                f"repeat with {VARIABLE}={self}, or "
                f'emulator.session(order="random", seed={self.seed})'
            )
        return f'repeat with {VARIABLE}={self}, or emulator.session(order="{self.name}")'


def read_order(text: str) -> Order:
    """The order that a text such as "late" or "random:7" names.

    Raises:
        ValueError: it names none.
    """
    name, colon, seed = text.strip().partition(":")
    if name == "random" and (seed.isdecimal() or not colon):
        return Order("random", int(seed or 0))
    if colon or name not in ORDERS:
        raise ValueError(
            f"{text!r} is no order of operations: use immediate, late, random or random:SEED, in "
            f"{VARIABLE} too"
        )
    return Order("late" if name == "late" else "immediate")


def chosen_order(order: str | None, seed: int | None) -> Order:
    """The order asked for; without one, what the environment says, else "immediate".

    Raises:
        ValueError: there is no such order, or it takes no seed.
    """
    if order is None:
        if seed is not None:
            raise ValueError('a seed goes with order="random"')
        return read_order(os.environ.get(VARIABLE, "") or "immediate")
    if order not in ORDERS:
        raise ValueError(f"{order!r} is no order of operations: one of {', '.join(ORDERS)}")
    if seed is not None and order != "random":
        raise ValueError(f'order="{order}" takes no seed')
    found = read_order(order)
    return found if seed is None else Order("random", seed)


class Choice(Protocol):
    """Chooses among the operations that may run."""

    def pick(self, ready: Sequence[Operation]) -> Operation:
        """The next one, of at least one."""

    def steps(self) -> int:
        """How many operations run at a call that needs none."""

    def widens(self) -> bool:
        """Whether a call that needs some operations may run others as well."""

    def flips(self) -> bool:
        """One of two ways."""

    def queries(self) -> bool:
        """Whether a query runs something before it looks."""


class Late:
    """Only what is needed; where that may run in any order, the newest first.

    So what nothing orders runs in another order than it was called in.
    """

    def pick(self, ready: Sequence[Operation]) -> Operation:
        """The newest."""
        return max(ready, key=lambda operation: operation.number)

    def steps(self) -> int:
        """None."""
        return 0

    def widens(self) -> bool:
        """Never."""
        return False

    def flips(self) -> bool:
        """Always the same way: what is freed is reused as soon as the order of streams allows."""
        return True

    def queries(self) -> bool:
        """No: a query says first that the work is pending."""
        return False


class Seeded:
    """Whatever a seed says; how eager it is to run something is its as well.

    Half of the seeds choose among all that is ready. The others give each stream a rank that seldom
    changes, so that one stream runs far ahead of another: few choices in a row lead there by chance
    (Burckhardt and others, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs").
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._eagerness = self._among(_EAGERNESS)
        self._ranks: dict[int, float] | None = {} if self.flips() else None

    def _among(self, values: Sequence[_T]) -> _T:
        return values[int(self._random.random() * len(values))]

    def pick(self, ready: Sequence[Operation]) -> Operation:
        """Any, or any of the stream that is first."""
        ranks = self._ranks
        if ranks is None or len(ready) == 1:
            return self._among(ready)
        for operation in ready:
            if operation.stream.number not in ranks:
                ranks[operation.stream.number] = self._random.random()
        first = max((each.stream.number for each in ready), key=ranks.__getitem__)
        if self._random.random() < _NEW_RANK:
            ranks[first] = self._random.random()
        return self._among([each for each in ready if each.stream.number == first])

    def steps(self) -> int:
        """Some, seldom many."""
        count = 0
        while self._random.random() < self._eagerness:
            count += 1
        return count

    def widens(self) -> bool:
        """As often as not."""
        return self.flips()

    def flips(self) -> bool:
        """As often as not."""
        return self._random.random() < 0.5

    def queries(self) -> bool:
        """As often as not."""
        return self.flips()
