"""An image turned by a kernel that reads it through a texture and writes through a surface."""

from __future__ import annotations

import numpy as np

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.texture import CudaArray, FilterMode, Surface, Texture

SOURCE = """
extern "C" __global__ void turn(cudaTextureObject_t image, cudaSurfaceObject_t turned, int n,
                                float cosine, float sine)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float u = x + 0.5f - 0.5f * n, v = y + 0.5f - 0.5f * n;
    float value = tex2D<float>(image, cosine * u - sine * v + 0.5f * n,
                               sine * u + cosine * v + 0.5f * n);
    surf2Dwrite(value, turned, x * 4, y);
}
"""


def main() -> None:
    context = cudadrv.cuda_context_for(0)
    image = ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
    turn = context.load_module(image).kernel("turn")

    n = 64
    stream = context.new_stream()
    pixels = np.add.outer(np.arange(n), 2 * np.arange(n)).astype(np.float32)
    source = Texture(CudaArray.from_host(stream, pixels), filter_mode=FilterMode.LINEAR)
    target = CudaArray(context, (n, n), np.float32, surface=True)

    config = LaunchConfig((n // 16, n // 16, 1), (16, 16, 1))
    turn.launch(stream, config, source, Surface(target), n, 0.0, 1.0)  # by a right angle
    turned = target.copy_to(stream)
    assert np.array_equal(turned, np.rot90(pixels)) or np.array_equal(turned, np.rot90(pixels, -1))
    print(f"{context.device.name}: {turned[0, :4]} …")


if __name__ == "__main__":
    main()
