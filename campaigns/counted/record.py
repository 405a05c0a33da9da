"""What Nsight Compute measured, kept in a file for each kind of device."""

from __future__ import annotations

import json
from pathlib import Path

import ptx
from campaigns.counted.metrics import QUANTITIES
from campaigns.counted.nsight import Values


def write_record(device: str, theirs: Values) -> None:
    """Keep what was measured of the numbers that mean the same; other kernels' stay.

    The code that was measured is the compiler's: what another version's code gave is given up.
    """
    path = _path(device)
    if path.exists() and _version(path) == ptx.nvrtc_version():
        theirs = {**_values(path), **theirs}
    wanted = dict.fromkeys(m for each in QUANTITIES if each.is_same for m in each.metrics)
    metrics = [m for m in wanted if any(m in values for values in theirs.values())]
    rows = [
        f"  {json.dumps(kernel)}: {json.dumps([values.get(m) for m in metrics])}"
        for kernel, values in theirs.items()
    ]
    nvrtc = json.dumps(ptx.nvrtc_version())
    joined = ",\n".join(rows)
    path.write_text(
        f'{{"nvrtc": {nvrtc},\n"metrics": {json.dumps(metrics)},\n"kernels": {{\n{joined}\n}}}}\n'
    )


def read_records() -> Values:
    """What was measured on any device, of the code of this NVRTC."""
    found: Values = {}
    for path in sorted(_path("*").parent.glob(_path("*").name)):
        if _version(path) == ptx.nvrtc_version():
            found |= _values(path)
    return found


def _path(device: str) -> Path:
    return Path(__file__).with_name(f"measured_{device}.json")


def _version(path: Path) -> tuple[int, ...]:
    return tuple(json.loads(path.read_text())["nvrtc"])


def _values(path: Path) -> Values:
    record = json.loads(path.read_text())
    return {
        kernel: {m: v for m, v in zip(record["metrics"], row, strict=True) if v is not None}
        for kernel, row in record["kernels"].items()
    }
