"""Counting one launch of a kernel, and the addresses of its warps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.emulator import Counters

WARP = 32
ELEMENTS = 1 << 14
Addresses = NDArray[np.int64]
INDICES = np.random.default_rng(3).integers(0, 1 << 10, ELEMENTS).astype(np.int32)


def kernel(body: str, name: str = "k", before: str = "") -> str:
    """`x` and `y` hold floats, `idx` integers; `t` is the thread's number, `i` that in the grid."""
    return (
        f'{before}\nextern "C" __global__ void {name}(float* x, float* y, int* idx, int n) {{\n'
        f"[[maybe_unused]] int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n{body}\n}}\n"
    )


def count(
    context: cudadrv.Context, source: str, grid: int = 4, block: int = 128, n: int = 8
) -> Counters:
    """What one launch executes; `x` lies at a multiple of 512 bytes."""
    options = ptx.CompileOptions(target=context.target, lineinfo=True)
    module = context.load_module(ptx.compile(source, options, name="counted.cu"))
    stream = context.new_stream()
    x, y = (stream.zeros(ELEMENTS, np.float32) for _ in range(2))
    idx = stream.to_device(INDICES)
    with emulator.counting() as counters:
        config = cudadrv.LaunchConfig(grid, block)
        module.kernel("k").launch(stream, config, x, y, idx, n)
        stream.synchronize()
    assert all(each.ptr % 512 == 0 for each in (x, y, idx))
    return counters


def warps_of(addresses: Addresses, block: int) -> list[list[int]]:
    """The addresses of each warp, of a grid of blocks."""
    blocks = addresses.reshape(-1, block).tolist()
    return [each[first : first + WARP] for each in blocks for first in range(0, block, WARP)]
