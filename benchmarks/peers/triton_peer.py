"""Triton."""

from __future__ import annotations

import importlib

from ..kernels import GRID
from ..setting import Setting
from ..timing import Case

NAME = "Triton"


def _k5(a: object, b: object, c: object, x: float, n: int) -> None:
    pass


def launch(setting: Setting) -> list[Case]:
    """A jitted function with three tensors and two numbers."""
    # Neither library need be installed where types are checked.
    torch, triton = importlib.import_module("torch"), importlib.import_module("triton")
    # Annotations mean something to Triton; these are Python's.
    _k5.__annotations__.clear()
    names: dict[str, object] = {name: torch.zeros(256, device="cuda") for name in "abc"}
    names |= {"kernel": triton.jit(_k5), "grid": (GRID,)}
    return [Case(f"{NAME} jit", "kernel[grid](a, b, c, 1.5, 100)", names)]
