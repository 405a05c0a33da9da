"""CuPy."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudadrv

from ..kernels import BLOCK, GRID
from ..setting import Setting
from ..timing import Case

NAME = "CuPy"


# The library has no types.
def _cupy() -> Any:
    return importlib.import_module("cupy")


def launch(setting: Setting) -> list[Case]:
    """A RawModule's kernel, loaded from the same image."""
    cupy = _cupy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(setting.kernels.image)
        kernel = cupy.RawModule(path=str(path)).get_function("k5")
    arrays = tuple(cupy.zeros(256, "f4") for _ in "abc")
    names = {
        "kernel": kernel,
        "grid": (GRID,),
        "block": (BLOCK,),
        "args": (*arrays, np.float32(1.5), np.int32(100)),
    }
    return [Case(f"{NAME} RawKernel", "kernel(grid, block, args)", names)]


def given_to_cudadrv(setting: Setting, stream: cudadrv.Stream) -> list[Case]:
    """Its arrays, given to a launcher of cudadrv."""
    a, b, c = (_cupy().zeros(256, "f4") for _ in "abc")
    return [setting.given(stream, f"{NAME} arrays", (a, b, c))]


def allocation(setting: Setting) -> list[Case]:
    """A hit in the default memory pool, plain and as an array."""
    cupy = _cupy()
    return [
        Case(f"{NAME} pool", "alloc(1024)", {"alloc": cupy.cuda.alloc}),
        Case(f"{NAME} empty", "empty(256, f4)", {"empty": cupy.empty, "f4": cupy.float32}),
    ]


def upload(setting: Setting, host: NDArray[np.uint8]) -> list[Case]:
    """``ndarray.set``."""
    names = {"d": _cupy().zeros(host.shape, host.dtype), "h": host, "sync": setting.settle}
    return [Case(f"{NAME} set", "d.set(h); sync()", names)]


def download(setting: Setting, host: NDArray[np.uint8]) -> list[Case]:
    """``ndarray.get`` into an array."""
    names = {"d": _cupy().zeros(host.shape, host.dtype), "h": host}
    return [Case(f"{NAME} get", "d.get(out=h)", names)]


def download_new(setting: Setting, host: NDArray[np.uint8]) -> list[Case]:
    """``ndarray.get`` of a new array."""
    return [Case(f"{NAME} get", "d.get()", {"d": _cupy().zeros(host.shape, host.dtype)})]


def exported(setting: Setting) -> Any:
    """An array of 1 KiB."""
    return _cupy().zeros(256, "f4")


def viewed(setting: Setting, what: object) -> list[Case]:
    """An array on the memory of one of another library, by DLPack."""
    return [Case(f"{NAME} from_dlpack", "f(x)", {"f": _cupy().from_dlpack, "x": what})]
