"""Quasi-random points on the device, from direction vectors that a client keeps there."""

from __future__ import annotations

import numpy as np

import cudadrv
from cudadrv.errors import RuntimeDependencyUnavailable

SOURCE = """
extern "C" __global__ void sobol(const unsigned* vectors, float* out, int dimension, int count)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= count) return;
    unsigned gray = n ^ (n >> 1);
    for (int d = 0; d < dimension; ++d) {
        unsigned value = 0;
        for (int bit = 0; bit < 32; ++bit)
            if (gray >> bit & 1) value ^= vectors[d * 32 + bit];
        out[n * dimension + d] = value * 2.3283064365386963e-10f;
    }
}
"""


def main() -> None:
    cudadrv.client.register_module("example_sobol", SOURCE)
    client = cudadrv.CudaClient(0)
    dimension, count = 4, 2048
    try:
        client.warmup_sobol(dimension)
    except RuntimeDependencyUnavailable as error:
        print(error)
        return
    vectors = client.sobol_dv_cache.get(dimension)
    points = client.stream.empty((count, dimension), np.float32)
    kernel = client.module("example_sobol").kernel("sobol")
    config = cudadrv.LaunchConfig.for_elements(count)
    kernel.launch(client.stream, config, vectors, points, dimension, count)

    # The integral of the product of the coordinates over the unit cube is 1 / 2**dimension.
    estimate = client.stream.to_host(points).prod(axis=1).mean()
    assert abs(estimate - 0.5**dimension) < 1e-3
    print(f"{count} points estimate {0.5**dimension} as {estimate:.5f}")


if __name__ == "__main__":
    main()
