"""Taichi checks every call of the driver, also those of C++ destructors after the interpreter."""

from __future__ import annotations

from pathlib import Path

from .emulated import emulated

PROGRAM = """
import numpy as np
import taichi as ti

ti.init(arch=ti.cuda, offline_cache=False)
x, y = ti.field(ti.f32, 1000), ti.field(ti.f32, 1000)

@ti.kernel
def saxpy(a: ti.f32):
    for at in x:
        y[at] = a * x[at] + y[at]

x.from_numpy(np.arange(1000, dtype=np.float32))
y.fill(1)
saxpy(2.0)
print(ti.cfg.arch == ti.cuda, (y.to_numpy() == 2 * np.arange(1000) + 1).all())
"""


def test_a_kernel_of_taichi_has_right_values_and_its_process_ends_well(tmp_path: Path) -> None:
    ended = emulated("taichi", PROGRAM, tmp_path, TI_LOG_LEVEL="error")
    assert (ended.status, ended.out.splitlines()[-1:]) == (0, ["True True"]), ended.err
