"""The table of what both sides found, and what only one of them did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from campaigns.race_truth.program import RIGHT
from campaigns.sanitized.one_program import MEANT_SO
from campaigns.sanitized.processes import Judged
from campaigns.sanitized.tool_report import TOOLS

_COLUMNS: Final = ("both", "only ours", "only theirs", "neither")
# Right programs that a tool accuses, by tool and pattern.
_FALSE_ALARMS: Final = {
    ("racecheck", "flag in another block"): "it takes the flag for a race, which is written and "
    "read by a release and an acquire of cluster scope",
}


def false_alarm(judged: Judged) -> str:
    """Why a right program was accused by a tool, "" where that is not known of each that did."""
    if not judged.program.is_right:
        return ""
    tools = [tool for tool, report in judged.theirs.items() if report.findings]
    reasons = [_FALSE_ALARMS.get((tool, judged.program.pattern), "") for tool in tools]
    return "; ".join(reasons) if all(reasons) else ""


def side(judged: Judged) -> str:
    """Who found something in a program: one of the columns."""
    theirs = any(each.findings for each in judged.theirs.values())
    if judged.own and set(judged.own) != {MEANT_SO}:
        return "both" if theirs else "only ours"
    if theirs:  # what ours says may be meant so, it has found
        return "both" if judged.own else "only theirs"
    return "only ours" if judged.own and not judged.program.is_right else "neither"


def table(every: Sequence[Judged]) -> str:
    """A row for each class of fault, and how many each tool found."""
    faults = sorted({each.program.fault for each in every}, key=lambda name: (name == RIGHT, name))
    heads = (*("programs", *_COLUMNS), *TOOLS)
    lines = [f"{'fault':32}" + "".join(f"{head:>13}" for head in heads)]
    for fault in [*faults, "all that are faulty"]:
        rows = [
            each
            for each in every
            if fault in (each.program.fault, "all that are faulty")
            and (fault == each.program.fault or not each.program.is_right)
        ]
        sides = Counter(side(each) for each in rows)
        tools = [
            sum(each.theirs[tool].findings > 0 for each in rows if tool in each.theirs)
            for tool in TOOLS
        ]
        cells = [len(rows), *(sides[column] for column in _COLUMNS), *tools]
        name = "none: false alarms" if fault == RIGHT else fault
        lines.append(f"{name:32}" + "".join(f"{cell:>13}" for cell in cells))
    return "\n".join(lines)


def details(every: Sequence[Judged]) -> Iterator[str]:
    """By name, what only one side found, and what each tool says of what both did."""
    for column in ("only theirs", "neither", "both", "only ours"):
        for each in every:
            if side(each) == column and not (column == "neither" and each.program.is_right):
                yield f"{column}: {each.program.name}: ours {', '.join(each.own) or 'nothing'}"
                if reason := false_alarm(each):
                    yield f"    a false alarm: {reason}"
                for tool, report in each.theirs.items():
                    if report.findings:
                        yield f"    {tool}: {report.findings}, {report.first}"
    for each in every:
        late = [tool for tool, report in each.theirs.items() if not report.ended]
        if late:
            yield f"took too long: {each.program.name} under {', '.join(late)}"
