"""A kernel from source to result: compile, load, launch, copy back."""

from __future__ import annotations

import numpy as np

import cudadrv
import ptx

SOURCE = """
extern "C" __global__ void saxpy(float a, const float* x, const float* y, float* out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}
"""


def main() -> None:
    context = cudadrv.cuda_context_for(0)
    image = ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
    saxpy = context.load_module(image).kernel("saxpy")

    n = 1 << 16
    stream = context.new_stream()
    x = stream.to_device(np.arange(n, dtype=np.float32))
    y = stream.to_device(np.ones(n, np.float32))
    out = stream.empty(n, np.float32)

    saxpy.launch(stream, cudadrv.LaunchConfig.for_elements(n), 2.0, x, y, out, n)
    result = stream.to_host(out)
    assert np.array_equal(result, 2 * np.arange(n, dtype=np.float32) + 1)
    print(f"{context.device.name}: {result[:4]} …")


if __name__ == "__main__":
    main()
