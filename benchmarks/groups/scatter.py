"""Scattering tiles that do nothing: what a call and each device cost."""

from __future__ import annotations

from typing import Final

import numpy as np

import cudadrv

from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "scatter"
_MOST_DEVICES: Final = 8


def run(setting: Setting) -> list[Row]:
    """Every case of the group, for 1 device, 2, 4 and 8 as far as there are."""
    from cudadrv.pool.scatter import scatter_batched, scatter_map
    from cudadrv.runtime.probe import GpuRuntime

    infos = [device.info() for device in cudadrv.list_devices()[:_MOST_DEVICES]]
    rows: list[Row] = []
    count = 1
    while count <= len(infos):
        names = {
            "scatter_batched": scatter_batched,
            "scatter_map": scatter_map,
            "runtime": GpuRuntime(devices=infos[:count]),
            "items": np.zeros(64),
            "nothing": lambda ordinal, tile: None,
        }
        cases = [
            Case(f"cudadrv {function}", f"{function}(runtime, items, nothing)", names)
            for function in ("scatter_batched", "scatter_map")
        ]
        case = f"empty tiles on {count} device{'s' * (count != 1)}"
        rounds = setting.rounds(60)
        rows += measure(GROUP, case, cases, repeats=20, rounds=rounds, settle=setting.settle)
        count *= 2
    return rows
