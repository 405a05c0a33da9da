"""cuda.core."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import cudadrv

from ..kernels import BLOCK, GRID
from ..setting import Setting
from ..timing import Case

NAME = "cuda.core"


# Not every version of the library has type stubs.
def _device() -> tuple[Any, Any]:
    core = importlib.import_module("cuda.core")
    device = core.Device(0)
    device.set_current()
    return core, device


def launch(setting: Setting) -> list[Case]:
    """``launch(stream, config, kernel, *args)`` with buffers and NumPy scalars."""
    core, device = _device()
    stream = device.create_stream()
    names = {
        "launch": core.launch,
        "stream": stream,
        "config": core.LaunchConfig(grid=GRID, block=BLOCK),
        "kernel": core.ObjectCode.from_cubin(bytes(setting.kernels.image)).get_kernel("k5"),
        "x": np.float32(1.5),
        "n": np.int32(100),
    }
    names |= {name: device.allocate(1024, stream=stream) for name in "abc"}
    return [Case(f"{NAME} launch", "launch(stream, config, kernel, a, b, c, x, n)", names)]


def given_to_cudadrv(setting: Setting, stream: cudadrv.Stream) -> list[Case]:
    """Its buffers, given to a launcher of cudadrv."""
    _, device = _device()
    theirs = device.create_stream()
    a, b, c = (device.allocate(1024, stream=theirs) for _ in "abc")
    return [setting.given(stream, f"{NAME} buffers", (a, b, c))]


def allocation(setting: Setting) -> list[Case]:
    """A buffer of the device's memory resource, made and closed."""
    _, device = _device()
    names = {"allocate": device.allocate, "stream": device.create_stream()}
    return [Case(f"{NAME} Buffer", "allocate(1024, stream=stream).close()", names)]
