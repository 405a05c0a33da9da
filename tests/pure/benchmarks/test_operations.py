"""The list of measured operations: it misses no public callable, and explains slow ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import groups
from benchmarks.groups import operations
from tests.documents.reference import named, names_of_cudadrv

ROOT = Path(groups.__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def measured() -> list[str]:
    return [name for operation in operations.OPERATIONS for name in operation.covers.split()]


def measured_elsewhere() -> dict[str, str]:
    """The group of each callable."""
    lines = [line.split() for line in operations.ELSEWHERE.strip().splitlines()]
    return {name: group for group, *names in lines for name in names}


def excused() -> dict[str, str]:
    """The reason of each callable."""
    reasons: dict[str, str] = {}
    reason = ""
    for line in operations.EXCUSED.strip("\n").splitlines():
        if line.startswith(" " * 8):
            reasons |= dict.fromkeys(line.split(), reason)
        else:
            reason = line.strip()
    return reasons


def callables() -> set[str]:
    """The public methods of the classes, and the class whose objects a program makes many of."""
    names = {"Event"}
    full_names = {name.rpartition(".")[2]: name for name in names_of_cudadrv()}
    for name in operations.CLASSES:
        cls = named(full_names[name])
        names |= {
            f"{name}.{attribute}"
            for attribute in dir(cls)
            if not attribute.startswith("_") and callable(getattr(cls, attribute))
        }
    return names


def test_each_public_callable_is_measured_or_excused_with_a_reason() -> None:
    ours, others, reasons = measured(), measured_elsewhere(), excused()
    others_than_methods = {
        "DeviceArray", "Kernel.launch", "Launcher", "Launcher.prepare", "ptx.compile",
    }  # fmt: skip
    assert callables() - {*ours, *others, *reasons} == set()
    assert {*ours, *others, *reasons} - callables() == others_than_methods
    assert {*ours} & {*others} == {*ours} & {*reasons} == {*others} & {*reasons} == set()
    assert set(others.values()) <= set(groups.NAMES)
    assert min(len(reason.split()) for reason in reasons.values()) >= 4


def far_above_the_bare_calls(rows: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """The rows of a run that take more than 1.5 times what they are compared with, and 1 µs.

    Each has the names under which a reason may list it. The first row of a case is what the others
    are compared with.
    """
    plain: dict[tuple[str, str], float] = {}
    found: set[tuple[str, ...]] = set()
    for row in rows:
        group, case, who, median = row["group"], row["case"], row["who"], row["median"]
        if median:
            first = plain.setdefault((group, case), median)
            if who.startswith("cudadrv") and median > 1.5 * first + 1:
                is_operation = group == operations.GROUP
                found.add((case,) if is_operation else (f"{group}: {case}", f"{group}: {who}"))
    return found


def test_each_row_far_above_the_bare_calls_has_a_sentence_on_the_page() -> None:
    explained = [case for cases in operations.REASONS.values() for case in cases]
    page = (ROOT / "docs" / "measuring.md").read_text()
    results = [json.loads(path.read_text()) for path in RESULTS.glob("*.json")]
    far = set().union(*(far_above_the_bare_calls(result.get("rows", [])) for result in results))
    operation_names = {operation.case for operation in operations.OPERATIONS}
    existing = {name for names in far for name in names} | operation_names
    assert len(explained) == len(set(explained))
    assert set(explained) <= existing
    assert [each for each in operations.REASONS if f"- {each}\n" not in page] == []
    current = [names for names in far if len(names) > 1 or names[0] in operation_names]
    assert [names for names in current if not set(names) & set(explained)] == []
    assert any(len(names) > 1 for names in current)
