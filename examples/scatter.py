"""Independent work over all devices at once, each taking as much as it can do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cudadrv import (
    GpuRuntime,
    KernelLibrary,
    LaunchConfig,
    balanced_partition,
    current_tile,
    scatter_batched,
    scatter_map,
)
from cudadrv.pool import ScatterError

SOURCE = """
extern "C" __global__ void newton_sqrt(double* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a = x[i], r = 0.5 * (1.0 + a);
    for (int step = 0; step < 40; ++step) r = 0.5 * (r + a / r);
    x[i] = r;
}
"""
KERNELS = KernelLibrary({"newton.cu": SOURCE})


def square_roots(ordinal: int, part: npt.NDArray[np.float64]) -> None:
    """Runs on a thread of its own, with the device's context current and a stream at hand."""
    tile = current_tile()
    kernel = KERNELS.kernel(tile.context, "newton_sqrt")
    with tile.stream.to_device(part) as there:
        kernel.launch(tile.stream, LaunchConfig.for_elements(part.size), there, part.size)
        tile.stream.to_host(there, part)


def sum_of_squares(ordinal: int, part: npt.NDArray[np.float64]) -> float:
    """Borrows device memory from the tile's arena instead of asking the driver."""
    tile = current_tile()
    bucket, slab = tile.arena.alloc(tile.stream, part.size, "squares")
    tile.stream.copy(slab[: part.size], part * part)
    total = float(tile.stream.to_host(slab)[: part.size].sum())
    tile.arena.release(bucket, slab)
    return total


def main() -> None:
    runtime = GpuRuntime.current()
    if runtime is None:
        print("no device: this is where a package runs its CPU code")
        return
    values = np.random.default_rng(1).random(100_000)
    print("shares:", balanced_partition(runtime, len(values)))

    roots = values.copy()
    scatter_batched(runtime, roots, square_roots)
    assert np.allclose(roots, np.sqrt(values), rtol=1e-15)

    partial_sums = scatter_map(runtime, values, sum_of_squares)
    assert np.isclose(sum(partial_sums), values @ values)
    print("partial sums:", partial_sums)

    def faulty(ordinal: int, part: list[float]) -> None:
        if ordinal == runtime.selected_device().ordinal:
            raise ValueError("a bad item")

    try:
        scatter_batched(runtime, values.tolist(), faulty)
    except ScatterError as error:
        for tile in error.failures:
            print(f"items {tile.range} failed on device {tile.ordinal}: {tile.error!r}")


if __name__ == "__main__":
    main()
