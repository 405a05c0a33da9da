"""Warp."""

from __future__ import annotations

import importlib

import cudadrv

from ..setting import Setting
from ..timing import Case

NAME = "Warp"


def given_to_cudadrv(setting: Setting, stream: cudadrv.Stream) -> list[Case]:
    """Its arrays, given to a launcher of cudadrv."""
    warp = importlib.import_module("warp")
    a, b, c = (warp.zeros(256, dtype=float, device="cuda:0") for _ in "abc")
    return [setting.given(stream, f"{NAME} arrays", (a, b, c))]
