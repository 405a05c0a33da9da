"""A product of matrices by tensor cores: half precision in, single precision out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cudadrv

SOURCE = """
#include <mma.h>
using namespace nvcuda;

// A warp for each tile of 16 x 16 elements of c.
extern "C" __global__ void multiply(const half* a, const half* b, float* c, int n)
{
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
        wmma::load_matrix_sync(left, a + row * n + k, n);
        wmma::load_matrix_sync(right, b + k * n + column, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
"""
N = 96
Halves = npt.NDArray[np.float16]


def factors() -> tuple[Halves, Halves]:
    """Two matrices of smooth waves."""
    y, x = np.mgrid[:N, :N] / N
    left = np.sin(9 * x * (1 + y)).astype(np.float16)
    return left, np.cos(7 * (x - y)).astype(np.float16)


def product(a: Halves, b: Halves) -> npt.NDArray[np.float32]:
    """a @ b, with sums in single precision."""
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    kernel = context.compile(SOURCE).kernel("multiply")
    c = stream.empty(a.shape, np.float32)
    config = cudadrv.LaunchConfig((N // 16, N // 16), 32)
    kernel.launch(stream, config, stream.to_device(a), stream.to_device(b), c, N)
    return stream.to_host(c)


def main() -> None:
    a, b = factors()
    c = product(a, b)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert np.allclose(c, wanted, atol=1e-4)
    print(f"{N} x {N} by tensor cores, greatest error {np.max(abs(c - wanted)):.1e}")


if __name__ == "__main__":
    main()
