"""Which of the operations that may run is the next: as late as allowed, or as a seed says.

A choice uses nothing but numbers of operations and `random.Random.random`, whose results Python
promises to keep. So one seed gives one run on every machine.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar, get_args

from ptx.emulate.model.order import LaunchOrder

from ... import border
from ...errors import ArgumentValueError

if TYPE_CHECKING:
    from .queues import Operation

_T = TypeVar("_T")
OrderName = Literal["immediate", "late", "random"]
ORDERS: Final[tuple[str, ...]] = get_args(OrderName)
VARIABLE: Final = "CUDADRV_EMULATOR_ORDER"
_EAGERNESS: Final = (0.0, 0.2, 0.6)
_NEW_RANK: Final = 0.1
_LAUNCH_BITS: Final = 24


@dataclass(frozen=True, slots=True)
class Order:
    """An order of operations.

    Attributes:
        seed: of "random".
        held: of "held", which only the environment can ask for: all runs as soon as it may, but for
            these operations, which run late. Each is "T.N", the Nth of the Tth timeline.
    """

    name: OrderName | Literal["held"]
    seed: int = 0
    held: frozenset[str] = frozenset()

    def __str__(self) -> str:
        if self.name == "held":
            return f"held:{','.join(sorted(self.held))}"
        return f"random:{self.seed}" if self.name == "random" else self.name

    def of_launch(self, launches: Iterator[int]) -> LaunchOrder | None:
        """The order inside the next of these launches; None where its threads run together."""
        if self.name == "random":
            return LaunchOrder("random", self.seed << _LAUNCH_BITS | next(launches))
        return LaunchOrder("late") if self.name == "late" else None

    @property
    def repeated_by(self) -> str:
        """How to run a program in this order again."""
        if self.name == "held":
            return f"repeat with {VARIABLE}={self}"
        if self.name == "random":
            return (
                f"repeat with {VARIABLE}={self}, or "
                f'emulator.session(order="random", seed={self.seed})'
            )
        return f'repeat with {VARIABLE}={self}, or emulator.session(order="{self.name}")'


def read_order(text: str) -> Order:
    """The order that a text such as "late" or "random:7" names.

    Raises:
        ArgumentValueError: it names none.
    """
    name, colon, seed = text.strip().partition(":")
    if name == "random" and (seed.isdecimal() or not colon):
        return Order("random", int(seed or 0))
    if name == "held" and re.fullmatch(r"(\d+\.\d+(,|$))*", seed):
        return Order("held", held=frozenset(filter(None, seed.split(","))))
    if colon or name not in ORDERS:
        raise ArgumentValueError(
            f"{text!r} is no order of operations: use immediate, late, random or random:SEED, in "
            f"{VARIABLE} too"
        )
    return Order("late" if name == "late" else "immediate")


def chosen_order(order: str | None, seed: int | None) -> Order:
    """The order asked for; without one, what the environment says, else "immediate".

    Raises:
        ArgumentValueError: there is no such order, or it takes no seed.
    """
    if seed is not None:
        seed = border.integer("Emulator: seed", seed)
    if order is None:
        if seed is not None:
            raise ArgumentValueError('a seed goes with order="random"')
        return read_order(os.environ.get(VARIABLE, "") or "immediate")
    if border.instance("Emulator: order", order, str) not in ORDERS:
        raise ArgumentValueError(f"{order!r} is no order of operations: one of {', '.join(ORDERS)}")
    if seed is not None and order != "random":
        raise ArgumentValueError(f'order="{order}" takes no seed')
    found = read_order(order)
    return found if seed is None else Order("random", seed)


class Choice(Protocol):
    """Chooses among the operations that may run."""

    def pick(self, ready: Sequence[Operation], needed: Set[Operation]) -> Operation:
        """The next one, of at least one, where a call needs some operations."""

    def pick_unneeded(self, ready: Sequence[Operation]) -> Operation | None:
        """What runs, of at least one, at a call that needs none; it is asked again after that."""

    def may_preempt(self, operation: Operation, others: Sequence[Operation]) -> bool:
        """Whether an operation that has had a turn, and has more, is chosen anew with others."""

    def widens(self) -> bool:
        """Whether a call that needs some operations may run others as well."""

    def flips(self) -> bool:
        """One of two ways."""

    def queries(self) -> bool:
        """Whether a query runs something before it looks."""


class Late:
    """Only what is needed; of that the newest first, with just what it waits for before it.

    So what the newest should have waited for, and does not, runs after it.
    """

    def __init__(self) -> None:
        self._newest: Operation | None = None
        self._leading_there: Set[Operation] = frozenset()

    def pick(self, ready: Sequence[Operation], needed: Set[Operation]) -> Operation:
        """What leads to the newest that is needed; another where other threads run that."""
        newest = self._newest
        if newest is None or newest.is_done or newest not in needed:
            pending = [each for each in needed if not each.is_done]
            newest = self._newest = max(pending, key=_number)
            self._leading_there = with_what_it_waits_for([newest])
        if any(each.seems_to_wait for each in ready):
            return min(ready, key=lambda each: (each.waits * each.seems_to_wait, -each.number))
        leading = [each for each in ready if each in self._leading_there]
        return max(leading or ready, key=_number)

    def pick_unneeded(self, ready: Sequence[Operation]) -> Operation | None:
        """None."""
        return None

    def may_preempt(self, operation: Operation, others: Sequence[Operation]) -> bool:
        """Only where it may wait for one of the others."""
        return operation.seems_to_wait and bool(others)

    def widens(self) -> bool:
        """Never."""
        return False

    def flips(self) -> bool:
        """Always the same way: what is freed is reused as soon as the order of streams allows."""
        return True

    def queries(self) -> bool:
        """No: a query says first that the work is pending."""
        return False


class Held(Late):
    """Everything at its call, but for some operations, which run late."""

    def __init__(self, numbers: frozenset[int]) -> None:
        super().__init__()
        self._held = numbers

    def pick_unneeded(self, ready: Sequence[Operation]) -> Operation | None:
        """The oldest that is not held back."""
        free = [each for each in ready if each.number not in self._held]
        return min(free, key=_number, default=None)


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

    def pick(self, ready: Sequence[Operation], needed: Set[Operation]) -> Operation:
        """Any, or any of the stream that is first."""
        return self._any(ready)

    def _any(self, ready: Sequence[Operation]) -> Operation:
        ranks = self._ranks
        if ranks is None or len(ready) == 1 or any(each.seems_to_wait for each in ready):
            return self._among(ready)
        for operation in ready:
            if operation.stream.number not in ranks:
                ranks[operation.stream.number] = self._random.random()
        first = max((each.stream.number for each in ready), key=ranks.__getitem__)
        if self._random.random() < _NEW_RANK:
            ranks[first] = self._random.random()
        return self._among([each for each in ready if each.stream.number == first])

    def pick_unneeded(self, ready: Sequence[Operation]) -> Operation | None:
        """Some, seldom many."""
        return self._any(ready) if self._random.random() < self._eagerness else None

    def may_preempt(self, operation: Operation, others: Sequence[Operation]) -> bool:
        """As often as not."""
        return self.flips()

    def widens(self) -> bool:
        """As often as not."""
        return self.flips()

    def flips(self) -> bool:
        """As often as not."""
        return self._random.random() < 0.5

    def queries(self) -> bool:
        """As often as not."""
        return self.flips()


def _number(operation: Operation) -> int:
    return operation.number


def with_what_it_waits_for(wanted: Iterable[Operation]) -> set[Operation]:
    """Operations that are not done, and all that they wait for; the timeline's lock is held."""
    found: set[Operation] = set()
    waiting = list(wanted)
    while waiting:
        operation = waiting.pop()
        if operation not in found and not operation.is_done:
            found.add(operation)
            waiting += operation.before
    return found


def choice_of(order: Order, timeline: int) -> Choice:
    """The choice of a timeline, which is counted from 0 in its process."""
    if order.name == "immediate":
        return Held(frozenset())
    if order.name == "random":
        return Seeded(order.seed)
    if order.name == "held":
        of_it = [each.split(".") for each in order.held]
        return Held(frozenset(int(number) for own, number in of_it if int(own) == timeline))
    return Late()
