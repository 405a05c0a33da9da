"""Replaying a graph of 100 launches: what the call costs the host, and what the whole replay."""

from __future__ import annotations

from typing import Final

import cudadrv

from .. import bare
from ..kernels import BLOCK, GRID
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "graph"
_LAUNCHES: Final = 100


def run(setting: Setting) -> list[Row]:
    """Every case of the group."""
    stream = setting.stream
    array = stream.empty(256, "f4")
    launcher = setting.kernels["k1"].bind(stream, cudadrv.LaunchConfig(GRID, BLOCK))
    launcher(array)
    with stream.capture() as graph:
        for _ in range(_LAUNCHES):
            launcher(array)
    ready = graph.instantiate()
    names = {
        **bare.launch_names(stream), **bare.memory_names(stream), "ready": ready,
        "e": ready.handle, "stream": stream,
    }  # fmt: skip
    # Few at a time: on a GPU the replays outlast their launches, and the queue must not fill up.
    repeats = 100 if setting.null else 5
    rows = []
    for case, then in (("", ""), (", waited for", "; sync(s)")):
        cases = [
            Case(bare.NAME, f"cuGraphLaunch(e, s){then}", names),
            Case("cudadrv GraphExec.launch", f"ready.launch(stream){then}", names),
        ]
        rows += measure(
            GROUP,
            f"graph of {_LAUNCHES} launches{case}",
            cases,
            repeats=repeats,
            rounds=setting.rounds(100),
            settle=setting.settle,
        )
    return rows
