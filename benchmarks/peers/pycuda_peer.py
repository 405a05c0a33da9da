"""PyCUDA."""

from __future__ import annotations

import importlib
from typing import Any

from ..kernels import BLOCK, GRID
from ..setting import Setting
from ..timing import Case

NAME = "PyCUDA"


# The library has no types.
def _driver() -> Any:
    driver = importlib.import_module("pycuda.driver")
    driver.init()
    driver.Device(0).retain_primary_context().push()
    return driver


def launch(setting: Setting) -> list[Case]:
    """A prepared call, of the same image."""
    driver = _driver()
    kernel = driver.module_from_buffer(setting.kernels.image).get_function("k5")
    kernel.prepare("PPPfi")
    names: dict[str, object] = {name: driver.mem_alloc(1024) for name in "abc"}
    names |= {"call": kernel.prepared_async_call, "grid": (GRID, 1), "block": (BLOCK, 1, 1)}
    statement = "call(grid, block, None, a, b, c, 1.5, 100)"
    return [Case(f"{NAME} prepared call", statement, names)]


def allocation(setting: Setting) -> list[Case]:
    """A hit in its memory pool."""
    _driver()
    pool = importlib.import_module("pycuda.tools").DeviceMemoryPool()
    return [Case(f"{NAME} pool", "allocate(1024)", {"allocate": pool.allocate})]
