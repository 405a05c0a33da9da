"""``check``: a script on the emulator, with its kernels checked while they run."""

from __future__ import annotations

import argparse
import dataclasses
import json
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from ..driver.emulated import use
from ..emulator.checks import CheckName
from ..emulator.timeline.host_watch import HostChange
from .commands import Commands, positive


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "check", help="run a script on the emulator, with its kernels checked while they run"
    )
    parser.add_argument("--checks", default="race,init", help="some of race,init (default: both)")
    parser.add_argument("--devices", type=positive, default=1, metavar="N", help="default: 1")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what it is given")
    parser.set_defaults(
        run=lambda given: run_check(
            given.script, given.arguments, given.checks.split(","), given.devices, given.json
        )
    )


def run_check(
    script: str, arguments: Sequence[str], checks: Sequence[CheckName], devices: int, as_json: bool
) -> int:
    """Print what was found; the script's own status if it fails, else 1 if anything was."""
    emulator = use(devices, check=checks)
    status = _status_of(script, arguments)
    emulator.finish()
    found = [each for each in emulator.findings if isinstance(each, HostChange) or not each.benign]
    benign = len(emulator.findings) - len(found)
    if as_json:
        print(json.dumps([{"text": str(each), **dataclasses.asdict(each)} for each in found]))
    else:
        for each in found:
            print(each, file=sys.stderr)
        apart = f", {benign} that may be meant so" if benign else ""
        print(f"{len(found)} found by {', '.join(checks)}{apart}", file=sys.stderr)
    return status or int(bool(found))


def _status_of(script: str, arguments: Sequence[str]) -> int:
    """Run a script as `python SCRIPT` does."""
    former, sys.argv = sys.argv, [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        print(left.code, file=sys.stderr)
        return 2
    except Exception:
        traceback.print_exc()
        return 2
    finally:
        sys.argv = former
    return 0
