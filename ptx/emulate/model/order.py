"""The order within a launch, one of the orders that CUDA allows, and the draws that choose it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, get_args

OrderKind = Literal["late", "random"]
_T = TypeVar("_T")
_MASK: Final = (1 << 64) - 1
_FNV_PRIME: Final = 0x100000001B3


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """The order inside one launch; without one its threads run together and nothing is late.

    Attributes:
        kind: "late": what may be late is as late as it may be, the same in every launch;
            "random": chosen by the seed.
        seed: of this launch.

    Raises:
        ValueError: there is no such kind.
    """

    kind: OrderKind
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(OrderKind):
            raise ValueError(f"an order is one of {get_args(OrderKind)}, not {self.kind!r}")


class Decisions:
    """The draws of one launch: the same for the same order, on every machine.

    The numbers are those of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
    Generators, 2014). Python's own may change from version to version.

    Attributes:
        late: nothing is to happen before it must.
        trace: changes with every draw; two launches that decided alike have the same.
    """

    __slots__ = ("_state", "late", "trace")

    def __init__(self, order: LaunchOrder) -> None:
        self.late: bool = order.kind == "late"
        self._state = 0 if self.late else order.seed & _MASK
        self.trace: int = 0

    def below(self, count: int) -> int:
        """A number from 0 to `count` - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        bits = self._state
        bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & _MASK
        bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & _MASK
        number = ((bits ^ bits >> 31) * count) >> 64
        self.trace = ((self.trace ^ number) * _FNV_PRIME + count) & _MASK
        return number

    def early(self, one_in: int) -> bool:
        """Return whether deferrable work runs now: one time in so many, never if `late`."""
        return not self.late and self.below(one_in) == 0

    def shuffled(self, items: Iterable[_T]) -> list[_T]:
        """The items in another order."""
        shuffled = list(items)
        for last in range(len(shuffled) - 1, 0, -1):
            chosen = self.below(last + 1)
            shuffled[last], shuffled[chosen] = shuffled[chosen], shuffled[last]
        return shuffled
