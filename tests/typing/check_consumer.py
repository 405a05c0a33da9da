"""Checks tests/typing/consumer.py with mypy --strict against the installed wheel, nothing else.

The check runs in a folder of its own, without this repository's configuration and stubs, as it
does for a package that depends on cudadrv.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Answer mypy's exit status."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(Path(__file__).with_name("consumer.py"), folder)
        environment = {key: value for key, value in os.environ.items() if key != "MYPYPATH"}
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "consumer.py"]
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
