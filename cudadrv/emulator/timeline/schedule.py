"""The schedules of queued operations, and which operation runs next under each.

A scheduler uses only numbers of operations and `random.Random.random`, whose results Python
guarantees. So one seed gives one run on every machine.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, TypeVar, get_args

from ptx.emulate import LaunchOrder

from ... import border
from ...errors import ArgumentValueError

if TYPE_CHECKING:
    from .queues import QueuedOperation

_T = TypeVar("_T")
OrderName = Literal["immediate", "late", "random"]
_EAGERNESS: Final = (0.0, 0.2, 0.6)
_NEW_RANK: Final = 0.1
_LAUNCH_BITS: Final = 24


@dataclass(frozen=True, slots=True)
class Schedule:
    """When queued operations run; the public option `order` selects it.

    Attributes:
        NAMES: the orders; `VARIABLE` selects one for a process.
        TRACE_VARIABLE: names the file that receives what ran.
        seed: the seed of "random".
        held: the operations of "held", which only the environment can select: everything runs as
            soon as possible, except these operations, which run late. Each is "T.N", the Nth of the
            Tth timeline.
    """

    name: OrderName | Literal["held"]
    seed: int = 0
    held: frozenset[str] = frozenset()
    NAMES: ClassVar[tuple[str, ...]] = get_args(OrderName)
    VARIABLE: ClassVar[str] = "CUDADRV_EMULATOR_ORDER"
    TRACE_VARIABLE: ClassVar[str] = "CUDADRV_EMULATOR_TRACE"

    def __str__(self) -> str:
        if self.name == "held":
            return f"held:{','.join(sorted(self.held))}"
        return f"random:{self.seed}" if self.name == "random" else self.name

    def of_launch(self, launches: Iterator[int]) -> LaunchOrder | None:
        """Return the order inside the next of these launches; None if its threads run together."""
        if self.name == "random":
            return LaunchOrder("random", self.seed << _LAUNCH_BITS | next(launches))
        return LaunchOrder("late") if self.name == "late" else None

    @property
    def repeated_by(self) -> str:
        """Return a sentence on how to run a program in this order again."""
        if self.name == "held":
            return f"repeat with {self.VARIABLE}={self}"
        if self.name == "random":
            return (
                f"repeat with {self.VARIABLE}={self}, or "
                f'emulator.session(order="random", seed={self.seed})'
            )
        return f'repeat with {self.VARIABLE}={self}, or emulator.session(order="{self.name}")'

    @staticmethod
    def read(text: str) -> Schedule:
        """Parse a text such as "late" or "random:7".

        Raises:
            ArgumentValueError: the text is no order.
        """
        name, colon, seed = text.strip().partition(":")
        number = border.integer_of_text(seed, most=None) if seed else 0
        if name == "random" and number is not None and (seed or not colon):
            return Schedule("random", number)
        if name == "held" and re.fullmatch(r"([0-9]+\.[0-9]+(,|$))*", seed):
            return Schedule("held", held=frozenset(filter(None, seed.split(","))))
        if colon or name not in Schedule.NAMES:
            raise ArgumentValueError(
                f"{text!r} is no order of operations: use immediate, late, random or random:SEED, "
                f"in {Schedule.VARIABLE} too"
            )
        return Schedule("late" if name == "late" else "immediate")

    @staticmethod
    def chosen(order: str | None, seed: int | None) -> Schedule:
        """Return the order that was requested; else the environment's, else "immediate".

        Raises:
            ArgumentValueError: there is no such order, or it takes no seed.
        """
        if seed is not None:
            seed = border.integer("Emulator: seed", seed)
        if order is None:
            if seed is not None:
                raise ArgumentValueError('a seed goes with order="random"')
            return Schedule.read(os.environ.get(Schedule.VARIABLE, "").strip() or "immediate")
        if border.instance_of("Emulator: order", order, str) not in Schedule.NAMES:
            names = ", ".join(Schedule.NAMES)
            raise ArgumentValueError(f"{order!r} is no order of operations: one of {names}")
        if seed is not None and order != "random":
            raise ArgumentValueError(f'order="{order}" takes no seed')
        schedule = Schedule.read(order)
        return schedule if seed is None else Schedule("random", seed)


class LateScheduler:
    """Runs only needed operations: the newest first, with only its recorded dependencies before it.

    A missing dependency therefore runs too late.
    """

    def __init__(self) -> None:
        self._newest: QueuedOperation | None = None
        self._leading_there: Set[QueuedOperation] = frozenset()

    def pick(
        self, ready: Sequence[QueuedOperation], needed: Set[QueuedOperation]
    ) -> QueuedOperation:
        """Return an operation that leads to the newest needed one, or if that runs, another."""
        newest = self._newest
        if newest is None or newest.is_done or newest not in needed:
            pending = [operation for operation in needed if not operation.is_done]
            newest = self._newest = max(pending, key=_number)
            self._leading_there = with_dependencies([newest])
        if any(operation.seems_to_wait for operation in ready):
            return min(
                ready,
                key=lambda operation: (
                    operation.waits * operation.seems_to_wait,
                    -operation.number,
                ),
            )
        leading = [operation for operation in ready if operation in self._leading_there]
        return max(leading or ready, key=_number)

    def pick_unneeded(self, ready: Sequence[QueuedOperation]) -> QueuedOperation | None:
        """Return the operation to run at a call that needs none: never one.

        The timeline calls it again after that operation.
        """
        return None

    def may_preempt(self, operation: QueuedOperation, others: Sequence[QueuedOperation]) -> bool:
        """Return whether an operation that had a turn competes with others for the next turn.

        Only if it may wait for one of the others.
        """
        return operation.seems_to_wait and bool(others)

    def widens(self) -> bool:
        """Return whether a call that needs some operations may run others as well: never."""
        return False

    def flips(self) -> bool:
        """Return one of two ways: always True, so memory is reused as soon as streams allow."""
        return True

    def queries(self) -> bool:
        """Return whether a query runs work before it checks: no, it first reports it pending."""
        return False


class HeldScheduler(LateScheduler):
    """Runs everything at its call, except some operations, which run late."""

    def __init__(self, numbers: frozenset[int]) -> None:
        super().__init__()
        self._held = numbers

    def pick_unneeded(self, ready: Sequence[QueuedOperation]) -> QueuedOperation | None:
        """Return the oldest operation that is not held back."""
        free = [operation for operation in ready if operation.number not in self._held]
        return min(free, key=_number, default=None)


class SeededScheduler:
    """Runs operations that a seed chooses; the seed also decides how eagerly unneeded work runs.

    Half of the seeds choose among all ready operations. The others give each stream a rank that
    seldom changes, so that one stream runs far before another. Few independent choices lead there
    by chance (Burckhardt and others, "A Randomized Scheduler with Probabilistic Guarantees of
    Finding Bugs").
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._eagerness = self._among(_EAGERNESS)
        self._ranks: dict[int, float] | None = {} if self.flips() else None

    def _among(self, values: Sequence[_T]) -> _T:
        return values[int(self._random.random() * len(values))]

    def pick(
        self, ready: Sequence[QueuedOperation], needed: Set[QueuedOperation]
    ) -> QueuedOperation:
        """Return any operation, or any of the first-ranked stream."""
        return self._any(ready)

    def _any(self, ready: Sequence[QueuedOperation]) -> QueuedOperation:
        ranks = self._ranks
        if ranks is None or len(ready) == 1 or any(operation.seems_to_wait for operation in ready):
            return self._among(ready)
        for operation in ready:
            if operation.stream.number not in ranks:
                ranks[operation.stream.number] = self._random.random()
        first = max((operation.stream.number for operation in ready), key=ranks.__getitem__)
        if self._random.random() < _NEW_RANK:
            ranks[first] = self._random.random()
        return self._among([operation for operation in ready if operation.stream.number == first])

    def pick_unneeded(self, ready: Sequence[QueuedOperation]) -> QueuedOperation | None:
        """Return an operation, seldom many in a row."""
        return self._any(ready) if self._random.random() < self._eagerness else None

    def may_preempt(self, operation: QueuedOperation, others: Sequence[QueuedOperation]) -> bool:
        """Return True for half of the choices."""
        return self.flips()

    def widens(self) -> bool:
        """Return True for half of the choices."""
        return self.flips()

    def flips(self) -> bool:
        """Return True for half of the choices."""
        return self._random.random() < 0.5

    def queries(self) -> bool:
        """Return True for half of the choices."""
        return self.flips()


def _number(operation: QueuedOperation) -> int:
    return operation.number


def with_dependencies(operations: Iterable[QueuedOperation]) -> set[QueuedOperation]:
    """Return unfinished operations, and all that they wait for; the timeline's lock is held."""
    unfinished: set[QueuedOperation] = set()
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if operation not in unfinished and not operation.is_done:
            unfinished.add(operation)
            waiting += operation.before
    return unfinished


OperationScheduler: TypeAlias = LateScheduler | SeededScheduler


def scheduler_of(schedule: Schedule, timeline: int) -> OperationScheduler:
    """Return the scheduler of a timeline, by the timeline's number in its process from 0."""
    if schedule.name == "immediate":
        return HeldScheduler(frozenset())
    if schedule.name == "random":
        return SeededScheduler(schedule.seed)
    if schedule.name == "held":
        of_it = [name.split(".") for name in schedule.held]
        return HeldScheduler(
            frozenset(int(number) for index, number in of_it if int(index) == timeline)
        )
    return LateScheduler()
