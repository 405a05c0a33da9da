"""The result of a campaign: how many cases, and what failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_SHOWN: Final = 20


@dataclass
class Report:
    """The figures of a campaign.

    Attributes:
        cases: how many cases of each kind were run, by the name of the kind.
        failures: a text for each case that failed, with what repeats it.
        skipped: what could not be tried here, by name, and why.
        notes: lines that are printed before the figures, such as a table.
    """

    cases: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def count(self, kind: str, times: int = 1) -> None:
        """Count cases."""
        self.cases[kind] = self.cases.get(kind, 0) + times

    def __str__(self) -> str:
        lines = list(self.notes)
        lines += [f"  {times:>9,} {kind}" for kind, times in sorted(self.cases.items())]
        lines += [f"  skipped: {what}: {why}" for what, why in sorted(self.skipped.items())]
        lines += [f"failure: {text}" for text in self.failures[:_SHOWN]]
        if len(self.failures) > _SHOWN:
            lines.append(f"... and {len(self.failures) - _SHOWN} failures more")
        lines.append(f"{sum(self.cases.values()):,} cases, {len(self.failures)} failures")
        return "\n".join(lines)
