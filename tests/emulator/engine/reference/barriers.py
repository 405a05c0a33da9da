"""The barriers of one block: who waits, who has arrived without waiting, and who may go on."""

from __future__ import annotations

from collections import Counter

from tests.emulator.engine.reference.state import Request


class Barriers:
    """The 16 barriers of a block."""

    def __init__(self) -> None:
        self._arrived: Counter[int] = Counter()

    def arrive(self, request: Request) -> None:
        """bar.arrive: counted, and gone on."""
        self._arrived[request.values[0]] += 1

    def answers(self, waiting: dict[int, Request], alive: int) -> dict[int, int]:
        """What each thread gets that need not wait any more."""
        found: dict[int, int] = {}
        numbers = {request.values[0] for request in waiting.values() if request.kind == "bar"}
        for number in sorted(numbers):
            here = {
                at: request
                for at, request in waiting.items()
                if request.kind == "bar" and request.values[0] == number
            }
            expected = _count(next(iter(here.values()))) or alive
            if len(here) + self._arrived[number] == expected:
                self._arrived[number] = 0
                found |= dict.fromkeys(here, _reduction(list(here.values())))
        return found


def _count(request: Request) -> int:
    """How many threads a barrier expects; 0 for all of the block."""
    values = request.values[:-1] if "red" in request.words else request.values
    return values[1] if len(values) > 1 else 0


def _reduction(requests: list[Request]) -> int:
    """bar.red's popc, and, or of the threads' predicates; 0 for bar.sync."""
    words, flags = requests[0].words, [request.values[-1] for request in requests]
    if "red" not in words:
        return 0
    if "popc" in words:
        return sum(flags)
    return int(all(flags) if "and" in words else any(flags))
