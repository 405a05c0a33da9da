"""A graph with scratch memory of its own: write the input, launch, read the output."""

from __future__ import annotations

import numpy as np

import cudadrv

SOURCE = """
extern "C" __global__ void step(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i] + 1.0f;
}
"""


def main() -> None:
    cudadrv.client.register_module("example_step", SOURCE)
    client = cudadrv.CudaClient(0)
    stream, n = client.stream, 1024
    client.preload_modules(["example_step"])
    step = client.module("example_step").kernel("step")
    launch = step.bind(stream, cudadrv.LaunchConfig.for_elements(n))
    x, y = stream.zeros(n, np.float32), stream.zeros(n, np.float32)

    def work(client: cudadrv.CudaClient) -> None:
        # Within the capture the allocator hands out addresses of the graph's arena.
        scratch = client.allocator.allocate(x.nbytes)
        launch(x, scratch, n)
        launch(scratch, y, n)
        client.allocator.deallocate(scratch, x.nbytes)

    with client.capture_graph([x], [y], work, arena_bytes=1 << 16) as graph:
        for value in (0.0, 8.0):
            stream.copy(x, np.full(n, value, np.float32))
            graph.launch()
            assert (stream.to_host(y) == 0.25 * value + 1.5).all()
        print(f"{graph.node_count} nodes, launched {graph.launch_count} times")


if __name__ == "__main__":
    main()
