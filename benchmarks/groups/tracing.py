"""Operations inside of `cudadrv.trace`, beside the same operations without it."""

from __future__ import annotations

from typing import Final

import numpy as np

import cudadrv

from ..kernels import BLOCK, GRID
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "tracing"
PLAIN: Final = "without a trace"
TRACED: Final = "in a trace"
_REPEATS: Final = 200


def run(setting: Setting) -> list[Row]:
    """Every case of the group; a trace begins and ends once in as many operations."""
    stream = setting.stream
    array = stream.empty(1024, "f4")
    host = np.zeros(1024, np.float32)
    names: dict[str, object] = {
        "launcher": setting.kernels["k1"].bind(stream, cudadrv.LaunchConfig(GRID, BLOCK)),
        "array": array,
        "host": host,
        "stream": stream,
        "trace": cudadrv.trace,
    }
    operations = {
        "a launch": "launcher(array)",
        "4 KiB to the device": "stream.copy(array, host)",
        "1 KiB allocated and dropped": "stream.empty(256, 'f4')",
    }
    rows: list[Row] = []
    for case, statement in operations.items():
        loop = f"for _ in range({_REPEATS}): {statement}"
        cases = [
            Case(PLAIN, f"{loop}\nstream.synchronize()", names, per=_REPEATS),
            Case(TRACED, f"with trace():\n  {loop}\n  stream.synchronize()", names, per=_REPEATS),
        ]
        rows += measure(
            GROUP, case, cases, repeats=1, rounds=setting.rounds(60), settle=setting.settle
        )
    return rows
