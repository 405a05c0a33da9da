"""Arrays that one library makes and another one views, by DLPack."""

from __future__ import annotations

import importlib
from typing import Any, Final

from ..setting import PEERS, PEERS_ON_NULL, Setting, installed
from ..timing import Case, Row, measure

GROUP: Final = "exchange"


def run(setting: Setting) -> list[Row]:
    """Each library's array in each library that views arrays."""
    made: list[tuple[str, Any]] = [("cudadrv", setting.stream.zeros(256, "f4"))]
    rows: list[Row] = []
    for name in PEERS_ON_NULL if setting.null else PEERS:
        if not setting.with_peers or not installed(PEERS[name]):
            continue
        try:
            peer = importlib.import_module(f"benchmarks.peers.{name}")
            if make := getattr(peer, "exported", None):
                made.append((peer.NAME, make(setting)))
        except Exception as error:
            # A peer that is broken here is a line of the table, whatever is wrong with it.
            rows.append(Row.failed(GROUP, "an array", PEERS[name], error))
    for who, array in made:
        case = f"an array of {who}, viewed"
        names = {"view": setting.stream.import_array, "x": array}
        ours = [Case("cudadrv import_array", "view(x)", names)] * (who != "cudadrv")
        theirs, failed = setting.peer_cases(GROUP, case, "viewed", array)
        rows += measure(
            GROUP,
            case,
            [*ours, *theirs],
            repeats=200,
            rounds=setting.rounds(40),
            settle=setting.settle,
            limit_s=6.0,
        )
        rows += failed
    return rows
