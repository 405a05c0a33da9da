"""The Mandelbrot set over all GPUs: each computes rows according to its speed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cudadrv import (
    GpuPolicy,
    GpuRuntime,
    KernelLibrary,
    LaunchConfig,
    current_tile,
    scatter_map,
)

SOURCE = """
extern "C" __global__ void mandelbrot(const double* rows, int* steps, int width, int height,
                                      int limit)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    double a = -2.2 + 3.2 * x / width, b = rows[y], u = 0, v = 0;
    int n = 0;
    for (; n < limit && u * u + v * v <= 4; ++n) {
        double next = u * u - v * v + a;
        v = 2 * u * v + b;
        u = next;
    }
    steps[y * width + x] = n;
}
"""
WIDTH, HEIGHT, LIMIT = 160, 120, 60
KERNELS = KernelLibrary({"mandelbrot.cu": SOURCE})
Picture = npt.NDArray[np.int32]


def tile_of(ordinal: int, rows: npt.NDArray[np.float64]) -> tuple[int, Picture]:
    """On a device's own thread: its rows of the picture."""
    tile = current_tile()
    kernel = KERNELS.kernel(tile.context, "mandelbrot")
    stream, height = tile.stream, len(rows)
    with stream.to_device(rows) as there, stream.empty((height, WIDTH), np.int32) as steps:
        config = LaunchConfig.for_elements((WIDTH, height), (32, 8))
        kernel.launch(stream, config, there, steps, WIDTH, height, LIMIT)
        return ordinal, stream.to_host(steps)


def tiles() -> list[tuple[int, Picture]]:
    """The device and the rows of each tile, from top to bottom."""
    runtime = GpuRuntime.resolve(GpuPolicy.REQUIRED)
    return list(scatter_map(runtime, np.linspace(-1.2, 1.2, HEIGHT), tile_of))


def by_numpy() -> Picture:
    """The same on the host."""
    a = -2.2 + 3.2 * np.arange(WIDTH) / WIDTH
    b = np.linspace(-1.2, 1.2, HEIGHT)[:, None]
    u, v, steps = np.zeros((HEIGHT, WIDTH)), np.zeros((HEIGHT, WIDTH)), np.zeros((HEIGHT, WIDTH))
    for _ in range(LIMIT):
        inside = u * u + v * v <= 4
        steps += inside
        new = np.where(inside, u * u - v * v + a, u)
        u, v = new, np.where(inside, 2 * u * v + b, v)
    return steps.astype(np.int32)


def main() -> None:
    parts = tiles()
    found = np.concatenate([steps for _, steps in parts])
    # The device fuses products and sums, so that single pixels of the edge may differ.
    assert (found != by_numpy()).mean() < 0.01
    print("rows of each device:", {ordinal: len(steps) for ordinal, steps in parts})


if __name__ == "__main__":
    main()
