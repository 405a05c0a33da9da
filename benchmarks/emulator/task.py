"""What the simulator's process is given for each launch, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

from .cases import Argument, Case


@dataclass(frozen=True, slots=True)
class Task:
    """A launch, and its arguments as the emulator left them."""

    case: Case
    expected: list[Argument]


@dataclass(slots=True)
class Outcome:
    """Microseconds of each timed launch, or why there are none."""

    elapsed_us: list[float] = field(default_factory=list)
    error: str = ""
