"""``check``: a script on the emulator, with what it does checked while it runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..driver.in_use import current
from ..emulator.checks import CHECKS, CheckName
from ..emulator.emulator import Emulator
from ..emulator.report import as_json, as_sarif
from ..sessions.session import look_for_leaks, use
from ..version import VERSION
from .commands import Commands, positive
from .script import run_script


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What is checked, and how it is told.

    Attributes:
        checks: the checks.
        devices: how many the script has.
        as_json: print JSON instead of text.
        sarif: a file for SARIF.
        suppressions: a file of what is not told.
    """

    checks: tuple[CheckName, ...]
    devices: int = 1
    as_json: bool = False
    sarif: Path | None = None
    suppressions: Path | None = None


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "check", help="run a script on the emulator, with what it does checked while it runs"
    )
    add = parser.add_argument
    add("--checks", default=",".join(CHECKS), metavar="NAMES",
        help=f"some of {','.join(CHECKS)} (default: all)")  # fmt: skip
    add("--devices", type=positive, default=1, metavar="N", help="default: 1")
    add("--json", action="store_true", help="print what was found as JSON")
    add("--sarif", type=Path, metavar="FILE", help="write it as SARIF 2.1.0 as well")
    add("--suppressions", type=Path, metavar="FILE", help="what is known and not told")
    add("script", metavar="SCRIPT")
    add("arguments", nargs=argparse.REMAINDER, help="what it is given")
    parser.set_defaults(
        run=lambda given: run_check(
            given.script,
            given.arguments,
            CheckOptions(
                tuple(given.checks.split(",")), given.devices, given.json, given.sarif,
                given.suppressions,
            ),
        )
    )  # fmt: skip


def run_check(script: str, arguments: Sequence[str], options: CheckOptions) -> int:
    """Print what was found; the script's own status if it fails, else 1 if anything was."""
    checks = options.checks
    emulator = use(options.devices, check=checks, suppressions=options.suppressions)
    status, failed = run_script(script, arguments)
    emulator.finish()
    current().clear_caches()
    look_for_leaks(emulator)
    every = emulator.findings
    found = [each for each in every if not each.benign]
    if options.sarif is not None:
        log = as_sarif(every, version=VERSION, succeeded=not status)
        options.sarif.write_text(json.dumps(log, indent=1), encoding="utf-8")
    if options.as_json:
        print(json.dumps([as_json(each) for each in found]))
    else:
        _print(emulator, checks)
    # What a kernel's fault ended was ended by what was found.
    if failed and any(each.is_told for each in found):
        return 1
    return status or int(bool(found))


def _print(emulator: Emulator, checks: Sequence[str]) -> None:
    every = emulator.findings
    found = [each for each in every if not each.benign]
    for each in found:
        print(each, file=sys.stderr)
    for unused in emulator.unused_suppressions:
        print(f"unused suppression: {unused}", file=sys.stderr)
    benign = len(every) - len(found)
    apart = f", {benign} that may be meant so" if benign else ""
    hidden = emulator.checks.suppressions.hidden
    apart += f", {hidden} suppressed" if hidden else ""
    print(f"{len(found)} found by {', '.join(checks)}{apart}", file=sys.stderr)
