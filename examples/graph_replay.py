"""A hundred launches captured once and replayed as one call."""

from __future__ import annotations

import numpy as np

import cudadrv
import ptx

SOURCE = """
extern "C" __global__ void step(float* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 0.5f * x[i] + 1.0f;
}
"""


def main() -> None:
    context = cudadrv.cuda_context_for(0)
    image = ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
    step = context.load_module(image).kernel("step")
    stream = context.new_stream()
    x = stream.zeros(1000, np.float32)
    launcher = step.bind(stream, cudadrv.LaunchConfig.for_elements(1000))
    stream.synchronize()

    with stream.capture() as graph:
        for _ in range(100):
            launcher(x, 1000)
    with graph.instantiate() as executable:
        start = stream.record()
        executable.launch(stream)
        end = stream.record()
        end.synchronize()
    assert np.allclose(stream.to_host(x), 2.0)
    print(f"{graph.node_count} launches in {end.elapsed_ms(start):.2f} ms")


if __name__ == "__main__":
    main()
