"""Triton."""

from __future__ import annotations

import importlib

from ..kernels import GRID
from ..setting import Setting
from ..timing import Case

NAME = "Triton"


# Triton compiles the text, annotations too, which would have to be its own.
def _k5(a, b, c, x, n):  # type: ignore[no-untyped-def]
    pass


def launch(setting: Setting) -> list[Case]:
    """A jitted function with three tensors and two numbers."""
    # Neither library need be installed where types are checked.
    torch, triton = importlib.import_module("torch"), importlib.import_module("triton")
    names: dict[str, object] = {name: torch.zeros(256, device="cuda") for name in "abc"}
    names |= {"kernel": triton.jit(_k5), "grid": (GRID,)}
    return [Case(f"{NAME} jit", "kernel[grid](a, b, c, 1.5, 100)", names)]
