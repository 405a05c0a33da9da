"""What a tool of compute-sanitizer says of a process, read from its output.

Its lines begin with `=========`. The last ones are summaries: `ERROR SUMMARY: 2 errors`, of
racecheck `RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)`. A process that was killed
has none, and what was said of it until then counts (Compute Sanitizer, "Command Line Options").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from campaigns.sanitized.one_program import ALL_RAN

TOOLS: Final = ("memcheck", "racecheck", "initcheck", "synccheck")
_LINE: Final = re.compile(r"^=========[ \t]?(.*)$", re.MULTILINE)
_SUMMARY: Final = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (?!.*were not printed)(.*)")
_COUNT: Final = re.compile(r"(\d+) (?:errors?|warnings?)\b")
_FINDING: Final = re.compile(
    r"Invalid |Misaligned |Out-of-range |Warp |Lane |Device |Malloc/Free|Uninitialized |"
    r"Barrier error|(?:(?:Error|Warning|Info): )?(?:\(.+?\) )?(?:Race|Potential) "
)


@dataclass(frozen=True, slots=True)
class ToolReport:
    """What a tool found in one process.

    Attributes:
        findings: how many.
        first: the first of them, in words.
        ended: whether the process ended in time.
        trouble: why nothing is known, "" where the launches ran under the tool.
        output: all that was printed.
    """

    findings: int
    first: str
    ended: bool
    trouble: str
    output: str


def read(output: str, *, ended: bool) -> ToolReport:
    """The report of a process from what it and the tool printed."""
    lines = [line.strip() for line in _LINE.findall(output)]
    said = [line for line in lines if _FINDING.match(line)]
    summaries = [found[1] for line in lines if (found := _SUMMARY.match(line))]
    totals = [sum(map(int, _COUNT.findall(each))) for each in summaries]
    total, ran = max(totals, default=0), ALL_RAN in output
    # Of a process that failed it also counts that it did, and names no finding.
    findings = max(total, len(said)) if said or ran else 0
    first = said[0] if said else next((each for each in lines[1:] if each), "")
    trouble = ""
    if not lines:
        trouble = "the tool printed nothing"
    elif ended and not findings and not totals:
        trouble = "the tool printed no summary"
    elif ended and not findings and not ran:
        trouble = "the launches did not end"
    return ToolReport(findings, first if findings else "", ended, trouble, output)
