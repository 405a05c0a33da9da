"""Numba-CUDA."""

from __future__ import annotations

import importlib

import numpy as np
from numpy.typing import NDArray

import cudadrv

from ..kernels import BLOCK, GRID
from ..setting import Setting
from ..timing import Case

NAME = "Numba-CUDA"


def _k5(a: object, b: object, c: object, x: float, n: int) -> None:
    pass


def launch(setting: Setting) -> list[Case]:
    """A jitted kernel with three device arrays and two numbers."""
    cuda = importlib.import_module("numba.cuda")
    jitted = cuda.jit("void(float32[:], float32[:], float32[:], float32, int32)")(_k5)
    names: dict[str, object] = {name: cuda.device_array(256, np.float32) for name in "abc"}
    names["kernel"] = jitted[GRID, BLOCK]
    return [Case(f"{NAME} jit", "kernel(a, b, c, 1.5, 100)", names, repeats=40)]


def given_to_cudadrv(setting: Setting, stream: cudadrv.Stream) -> list[Case]:
    """Its arrays, given to a launcher of cudadrv."""
    cuda = importlib.import_module("numba.cuda")
    a, b, c = (cuda.device_array(256, np.float32) for _ in "abc")
    return [setting.given(stream, f"{NAME} arrays", (a, b, c))]


def upload(setting: Setting, host: NDArray[np.uint8]) -> list[Case]:
    """``copy_to_device``."""
    cuda = importlib.import_module("numba.cuda")
    names = {"d": cuda.device_array(host.shape, host.dtype), "h": host, "sync": setting.settle}
    return [Case(f"{NAME} copy_to_device", "d.copy_to_device(h); sync()", names)]


def download(setting: Setting, host: NDArray[np.uint8]) -> list[Case]:
    """``copy_to_host`` into an array."""
    cuda = importlib.import_module("numba.cuda")
    names = {"d": cuda.device_array(host.shape, host.dtype), "h": host}
    return [Case(f"{NAME} copy_to_host", "d.copy_to_host(h)", names)]
