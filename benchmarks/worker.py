"""One group of measurements in a process of its own: ``python -m benchmarks.worker GROUP``.

A library that crashes or hangs then takes no other figures with it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

import cudadrv

from . import groups
from .setting import Setting


def main() -> None:
    """Measure a group and write its rows, with what they were measured on, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker")
    parser.add_argument("group", choices=groups.NAMES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--effort", type=float, default=1.0)
    given = parser.parse_args()
    group = importlib.import_module(f"benchmarks.groups.{groups.MODULES[given.group]}")
    setting = Setting.make(null=given.null, effort=given.effort, with_peers=not given.no_peers)
    rows = [row.to_json() for row in group.run(setting)]
    device = setting.context.device
    major, minor = cudadrv.driver_version()
    driver = f"driver for CUDA {major}.{minor}"
    # Importing a library may enable it, so this process reports it, at its end.
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        driver += ", interpreter lock off"
    result = {"device": device.name, "driver": driver, "rows": rows}
    given.out.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
