"""Replaying a graph of 100 launches: what the call costs the host, and what the whole replay.

And one of 1,000 that was built node by node, against the same one captured.
"""

from __future__ import annotations

from typing import Final

import cudadrv

from .. import bare
from ..kernels import BLOCK, GRID
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "graph"
_LAUNCHES: Final = 100
_NODES: Final = 1000


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
        **bare.launch_names(stream),
        **bare.memory_names(stream),
        "ready": ready,
        "e": ready.handle,
        "stream": stream,
    }
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
    return rows if setting.null else rows + _built(setting)


def _built(setting: Setting) -> list[Row]:
    """A chain of launches, captured and built, waited for."""
    stream = setting.stream
    array, config = stream.empty(256, "f4"), cudadrv.LaunchConfig(GRID, BLOCK)
    kernel = setting.kernels["k1"]
    launcher = kernel.bind(stream, config)
    with stream.capture() as graph:
        for _ in range(_NODES):
            launcher(array)
    captured = graph.instantiate()
    built = stream.context.new_graph()
    last: list[cudadrv.graph.GraphNode] = []
    for _ in range(_NODES):
        last = [built.add_kernel(kernel, config, array, after=last)]
    names = {"captured": captured, "built": built.instantiate(), "stream": stream}
    return measure(
        GROUP,
        f"graph of {_NODES} launches, waited for",
        [
            Case("captured", "captured.launch(stream); stream.synchronize()", names),
            Case("built node by node", "built.launch(stream); stream.synchronize()", names),
        ],
        repeats=2,
        rounds=setting.rounds(50),
        settle=setting.settle,
    )
