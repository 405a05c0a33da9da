"""Launching with arrays of other libraries, against the same launch with our own.

On the default stream there is nothing to wait for, as the libraries use the legacy default stream;
on another stream each launch waits for theirs. A launcher's first launch has no code yet that is
made for its arguments.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

import cudadrv
from cudadrv import interop

from ..kernels import BLOCK, GRID
from ..setting import Setting
from ..timing import Case, Row, measure
from .launch import ForeignArray

GROUP: Final = "foreign"


class _Plain:
    """An array of a library that nobody knows, with a reader of its own."""

    __slots__ = ("device", "owner", "ptr")

    def __init__(self, owner: cudadrv.DeviceArray[Any]) -> None:
        self.ptr, self.device, self.owner = owner.ptr, owner.context.ordinal, owner


def run(setting: Setting) -> list[Row]:
    """Five parameters, three of them arrays of each library, on both kinds of stream."""
    interop.register(_Plain, interop.Reader(attrgetter("ptr"), attrgetter("device")))
    rows: list[Row] = []
    for case, stream in (
        ("on the default stream", setting.context.default_stream),
        ("on another stream", setting.stream),
    ):
        a, b, c = (stream.zeros(256, "f4") for _ in "abc")
        cases = [
            setting.given(stream, "own arrays", (a, b, c)),
            setting.given(stream, "arrays of a registered type", (_Plain(a), _Plain(b), _Plain(c))),
            setting.given(
                stream,
                "arrays with no more than the interface",
                tuple(map(ForeignArray, (a, b, c))),
            ),
        ]
        peers, failed = setting.peer_cases(GROUP, case, "given_to_cudadrv", stream)
        rounds = setting.rounds(60)
        rows += measure(
            GROUP, case, [*cases, *peers], repeats=200, rounds=rounds, settle=setting.settle
        )
        rows += failed
        if stream is setting.stream:
            continue
        bound = Case("cudadrv Kernel.bind", "bind(stream, config)", _first(setting, cases[0]).names)
        first = [bound, *(_first(setting, each) for each in (*cases, *peers))]
        rows += measure(
            GROUP, "bound and run once", first, repeats=50, rounds=rounds, settle=setting.settle
        )
    return rows


def _first(setting: Setting, case: Case) -> Case:
    """Return a launch with the same arguments by a launcher that is bound for it."""
    stream, kernel = setting.context.default_stream, setting.kernels["k5"]
    config = cudadrv.LaunchConfig(GRID, BLOCK)
    names = {**case.names, "bind": kernel.bind, "stream": stream, "config": config}
    return Case(case.who, "bind(stream, config)(a, b, c, 1.5, 100)", names)
