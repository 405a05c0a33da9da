"""Halide makes PTX, loads the driver by its file, and calls it while the process ends."""

from __future__ import annotations

from pathlib import Path

from .emulated import emulated

PROGRAM = """
import halide as hl
import numpy as np

target = hl.Target("host-cuda-cuda_capability_80")
x, y, xi, yi = (hl.Var(name) for name in ("x", "y", "xi", "yi"))
gradient = hl.Func("gradient")
gradient[x, y] = x + 10 * y
gradient.gpu_tile(x, y, xi, yi, 8, 8)
found = gradient.realize([32, 16], target)
found.copy_to_host()
print(all(found[a, b] == a + 10 * b for a in range(32) for b in range(16)))
"""


def test_a_function_of_halide_has_right_values(tmp_path: Path) -> None:
    ended = emulated("halide", PROGRAM, tmp_path)
    assert (ended.status, ended.out) == (0, "True\n"), ended.err
