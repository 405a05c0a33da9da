"""Numba compiles by its own compiler, and launches through cuda.bindings."""

from __future__ import annotations

from pathlib import Path

from .emulated import emulated

PROGRAM = """
import numpy as np
from numba import cuda

@cuda.jit
def add(x, y, out):
    at = cuda.grid(1)
    if at < out.size:
        out[at] = x[at] + y[at]

@cuda.jit
def total(x, out):
    shared = cuda.shared.array(64, np.float32)
    at = cuda.threadIdx.x
    shared[at] = x[at]
    cuda.syncthreads()
    if at == 0:
        for each in shared:
            cuda.atomic.add(out, 0, each)

x = np.arange(1000, dtype=np.float32)
out = cuda.device_array(1000, np.float32)
add[8, 128](cuda.to_device(x), cuda.to_device(2 * x), out)
print((out.copy_to_host() == 3 * x).all())
one = cuda.to_device(np.zeros(1, np.float32))
total[1, 64](cuda.to_device(x), one)
print(one.copy_to_host())
"""


def test_kernels_of_numba_have_right_values(tmp_path: Path) -> None:
    ended = emulated("numba_cuda", PROGRAM, tmp_path, NUMBA_CUDA_USE_NVIDIA_BINDING="1")
    assert (ended.status, ended.out) == (0, "True\n[2016.]\n"), ended.err
