"""Running a user's script within this process."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path


def run_script(script: str, arguments: Sequence[str]) -> tuple[int, bool]:
    """Run a script as `python SCRIPT` does; its status, and whether an error ended it."""
    former, sys.argv = sys.argv, [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0, False
        print(left.code, file=sys.stderr)
        return 2, False
    except Exception:
        traceback.print_exc()
        return 2, True
    finally:
        sys.argv = former
    return 0, False
