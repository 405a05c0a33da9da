"""The outcomes of mutants: a file to go on from, and a table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from .mutant import Mutant
from .testbed import Outcome


class Results:
    """The outcome of each mutant, and the survivors.

    Args:
        path: a file of JSON lines, read at the beginning and appended to; None for no file.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, Outcome] = {}
        self._counts: dict[str, Counter[Outcome]] = {}
        self._survivors: list[str] = []
        if path is not None and path.exists():
            for line in path.read_text("utf-8").splitlines():
                entry = json.loads(line)
                self._known[entry["key"]] = Outcome(entry["outcome"])

    def known(self, mutant: Mutant) -> Outcome | None:
        """Return the outcome of an earlier run."""
        return self._known.get(mutant.key)

    def add(self, module: str, mutant: Mutant, outcome: Outcome) -> None:
        """Count an outcome, and write it to the file if it is new."""
        self._counts.setdefault(module, Counter())[outcome] += 1
        if outcome is Outcome.SURVIVED:
            self._survivors.append(
                f"{mutant.file}:{mutant.line} {mutant.operator}\n{mutant.change}"
            )
        if self._path is not None and mutant.key not in self._known:
            entry = {
                "module": module, "outcome": outcome.value, "file": mutant.file,
                "line": mutant.line, "operator": mutant.operator, "change": mutant.change,
                "key": mutant.key,
            }  # fmt: skip
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    def totals(self) -> dict[str, int]:
        """Return how many mutants had each outcome."""
        total: Counter[Outcome] = sum(self._counts.values(), Counter())
        return {f"mutants {outcome.value}": number for outcome, number in total.items()}

    def table(self) -> list[str]:
        """Return a line for each module, and the survivors."""
        head = f"{'module':20} {'mutants':>8}" + "".join(f"{each.value:>11}" for each in Outcome)
        lines = [head]
        for module, counts in self._counts.items():
            figures = "".join(f"{counts[each]:>11}" for each in Outcome)
            lines.append(f"{module:20} {counts.total():>8}{figures}")
        return [*lines, *(f"survived: {each}" for each in self._survivors)]
