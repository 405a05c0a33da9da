"""What a campaign tried, and what did not hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_SHOWN: Final = 20


@dataclass
class Outcome:
    """The figures of a campaign.

    Attributes:
        tried: how often each kind of thing was tried, by its name.
        failures: a text for each that did not hold, with what repeats it.
        skipped: what could not be tried here, by name, and why.
    """

    tried: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def count(self, what: str, times: int = 1) -> None:
        """Count what was tried."""
        self.tried[what] = self.tried.get(what, 0) + times

    def __str__(self) -> str:
        lines = [f"  {times:>9,} {what}" for what, times in sorted(self.tried.items())]
        lines += [f"  skipped: {what}: {why}" for what, why in sorted(self.skipped.items())]
        lines += self.failures[:_SHOWN]
        if len(self.failures) > _SHOWN:
            lines.append(f"... and {len(self.failures) - _SHOWN} more")
        lines.append(f"{len(self.failures)} of {sum(self.tried.values()):,} did not hold")
        return "\n".join(lines)
