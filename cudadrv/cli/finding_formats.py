"""Findings for other programs: JSON, and SARIF 2.1.0 for editors and code hosts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from ..emulator import Found, Place

Json = dict[str, object]
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
# XML 1.0, "Characters".
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_RULES: Final = {
    "race": "Two accesses to the same bytes, one of them a write, that nothing orders.",
    "init": "A read of memory that nothing has written.",
    "sync": "Synchronisation that some threads do not reach, or not as others do.",
    "bounds": "An access beyond the memory that a pointer was made from.",
    "divide": "A division of integers by zero, whose result is unspecified.",
    "nan": "A calculation that gives NaN or infinity for finite numbers.",
    "assemble": "A module that NVIDIA's assembler rejects.",
    "leak": "Something that is still there at the end.",
    "order": "Host memory changed, or read, while a queued copy was still to use it.",
}


def as_json(finding: Found) -> Json:
    """Return a finding's fields, text and places, in one form for every check."""
    fields = dataclasses.asdict(finding)
    return {
        **fields,
        "check": finding.check,
        "kernel": finding.kernel,
        "variable": finding.variable,
        "benign": finding.benign,
        "is_told": finding.is_told,
        "text": str(finding),
        "places": [dataclasses.asdict(place) for place in finding.places],
    }


def as_junit(reports: Sequence[tuple[str, str]], checks: Sequence[str]) -> str:
    """Return XML as JUnit's, with a failed test for each report, and one for each other check.

    Args:
        reports: the check and the text of each.
        checks: all checks of the run.
    """
    cases = [
        f'  <testcase classname="cudadrv.{check}" name={_attribute(_title(text))}>\n'
        f"    <failure message={_attribute(_title(text))}>{escape(_printable(text))}</failure>\n"
        "  </testcase>\n"
        for check, text in reports
    ]
    found = {check for check, _ in reports}
    cases += [
        f'  <testcase classname="cudadrv" name={_attribute(check)}/>\n'
        for check in checks
        if check not in found
    ]
    counts = f'tests="{len(cases)}" failures="{len(reports)}" errors="0" skipped="0"'
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n'
        f'<testsuite name="cudadrv" {counts}>\n{"".join(cases)}</testsuite>\n</testsuites>\n'
    )


def _title(text: str) -> str:
    return text.partition("\n")[0]


def _attribute(text: str) -> str:
    return quoteattr(_printable(text))


def _printable(text: str) -> str:
    """Return a text without characters that XML 1.0 forbids."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def as_sarif(findings: Sequence[Found], *, version: str, succeeded: bool) -> Json:
    """Return the log of one run; likely intentional findings are notes.

    Args:
        findings: the findings of the run.
        version: of this package.
        succeeded: whether the script that was checked ended well.
    """
    names = list(_RULES)
    rules = [
        {"id": name, "name": name, "shortDescription": {"text": text}}
        for name, text in _RULES.items()
    ]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "cudadrv check", "version": version, "rules": rules},
                },
                "invocations": [{"executionSuccessful": succeeded}],
                "results": [_result(finding, names.index(finding.check)) for finding in findings],
            }
        ],
    }


def _result(finding: Found, rule: int) -> Json:
    first, *further = finding.places
    related = [{"id": number, **_location(place)} for number, place in enumerate(further, 1)]
    return {
        "ruleId": finding.check,
        "ruleIndex": rule,
        "level": "note" if finding.benign else "warning" if finding.check == "leak" else "error",
        "message": {"text": str(finding)},
        "locations": [_location(first)],
        **({"relatedLocations": related} if related else {}),
    }


def _location(place: Place) -> Json:
    location: Json = {"message": {"text": place.what}}
    if place.file is not None:
        path = Path(place.file)
        uri = path.as_uri() if path.is_absolute() else path.as_posix()
        region = {"region": {"startLine": place.line}} if place.line else {}
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}, **region}
    if place.where is not None and place.where.kernel:
        location["logicalLocations"] = [{"name": place.where.kernel, "kind": "function"}]
        location["message"] = {"text": f"{place.what} by {place.where}"}
    return location
