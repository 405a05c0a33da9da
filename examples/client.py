"""A device's client: preloaded kernels, and a copy that overlaps with the next computation."""

from __future__ import annotations

import numpy as np

import cudadrv

SOURCE = """
extern "C" __global__ void square(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i];
}
"""


def main() -> None:
    cudadrv.client.register_module("example_square", SOURCE)

    client = cudadrv.CudaClient(0)
    assert cudadrv.CudaClient(0) is client  # one a device, whoever asks
    client.preload_modules(["example_square"])

    n = 10_000
    square = client.module("example_square").kernel("square")
    launch = square.bind(client.stream, cudadrv.LaunchConfig.for_elements(n))
    x = client.stream.to_device(np.arange(n, dtype=np.float32))
    squares, fourths = (client.stream.empty(n, np.float32) for _ in range(2))

    launch(x, squares, n)
    event = client.record_event_on_compute()
    launch(squares, fourths, n)
    # The copy waits for the first launch alone, and runs beside the second.
    client.copy_stream_wait_event(event)
    host = client.copy_stream.to_host(squares)
    client.destroy_event(event)

    assert np.array_equal(host, np.arange(n, dtype=np.float32) ** 2)
    assert np.array_equal(client.stream.to_host(fourths), host**2)
    print(f"{client!r}: compute stream {client.compute_stream_handle:#x}")


if __name__ == "__main__":
    main()
