"""The histogram of an image: atomic additions in shared memory, then in global memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cudadrv

SOURCE = """
extern "C" __global__ void histogram(const unsigned char* image, unsigned* bins, int n)
{
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[image[i]], 1);
    __syncthreads();
    if (own[threadIdx.x]) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
"""


def grey_image() -> npt.NDArray[np.uint8]:
    """A dark background, two brighter areas, and noise."""
    y, x = np.mgrid[:256, :256]
    light = 60 + 70 * ((x - 90) ** 2 + (y - 120) ** 2 < 70**2) + 60 * (x + y > 380)
    noise = np.random.default_rng(2).normal(0, 12, light.shape)
    image: npt.NDArray[np.uint8] = np.clip(light + noise, 0, 255).astype(np.uint8)
    return image


def histogram(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """How many pixels have each of the 256 values."""
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    kernel = context.compile(SOURCE).kernel("histogram")
    bins = stream.zeros(256, np.uint32)
    there = stream.to_device(image)
    kernel.launch(stream, cudadrv.LaunchConfig(16, 256), there, bins, image.size)
    return stream.to_host(bins)


def main() -> None:
    image = grey_image()
    bins = histogram(image)
    assert np.array_equal(bins, np.bincount(image.ravel(), minlength=256))
    print(f"{image.size:,} pixels; the most frequent value is {np.argmax(bins)}")


if __name__ == "__main__":
    main()
