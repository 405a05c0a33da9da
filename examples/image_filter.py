"""An image turned and sharpened: textures give values between pixels and outside the image."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cudadrv
from cudadrv.texture import AddressMode, CudaArray, FilterMode, Texture

SOURCE = """
__device__ float turned(cudaTextureObject_t image, float x, float y, int n, float c, float s)
{
    float u = x + 0.5f - 0.5f * n, v = y + 0.5f - 0.5f * n;
    return tex2D<float>(image, c * u - s * v + 0.5f * n, s * u + c * v + 0.5f * n);
}

extern "C" __global__ void filter(cudaTextureObject_t image, float* out, int n, float c, float s)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float middle = turned(image, x, y, n, c, s);
    float around = turned(image, x - 1, y, n, c, s) + turned(image, x + 1, y, n, c, s)
                 + turned(image, x, y - 1, n, c, s) + turned(image, x, y + 1, n, c, s);
    out[y * n + x] = __saturatef(middle + 0.8f * (4 * middle - around) / 4);
}
"""
N = 128
Image = npt.NDArray[np.float32]


def picture() -> Image:
    """Rings and a board of squares, from 0 to 1."""
    y, x = np.mgrid[:N, :N]
    rings = 0.5 + 0.5 * np.sin(np.hypot(x - 40, y - 44) / 3)
    board = 0.25 + 0.5 * ((x // 12 + y // 12) % 2)
    whole: Image = np.where(x + y < N, rings, board).astype(np.float32)
    return whole


def filtered(image: Image, angle: float) -> Image:
    """The image turned about its middle, with sharper edges."""
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    kernel = context.compile(SOURCE).kernel("filter")
    texture = Texture(
        CudaArray.from_host(stream, image),
        filter_mode=FilterMode.LINEAR,
        address_mode=AddressMode.BORDER,
    )
    out = stream.empty(image.shape, np.float32)
    config = cudadrv.LaunchConfig.for_elements((N, N), (16, 16))
    kernel.launch(stream, config, texture, out, N, np.cos(angle), np.sin(angle))
    return stream.to_host(out)


def by_numpy(image: Image) -> Image:
    """The same without a turn."""
    wide = np.pad(image, 1)
    around = wide[1:-1, :-2] + wide[1:-1, 2:] + wide[:-2, 1:-1] + wide[2:, 1:-1]
    return np.clip(image + np.float32(0.8) * (4 * image - around) / 4, 0, 1)


def main() -> None:
    image = picture()
    assert np.allclose(filtered(image, 0.0), by_numpy(image), atol=1e-5)
    turned = filtered(image, np.pi / 2)  # a right angle moves each pixel to another one
    assert np.allclose(turned, np.rot90(by_numpy(image)), atol=0.02)
    print(f"{N} x {N} pixels, mean {image.mean():.3f} before and {turned.mean():.3f} after")


if __name__ == "__main__":
    main()
