"""A long signal reduced to the least, the greatest and the mean value of each section."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cudadrv

SOURCE = """
extern "C" __global__ void summarise(const float* signal, float* low, float* high, float* mean,
                                     int section)
{
    __shared__ float least[128], most[128], total[128];
    int t = threadIdx.x;
    const float* mine = signal + (size_t)blockIdx.x * section;
    least[t] = most[t] = mine[t];
    total[t] = 0;
    for (int i = t; i < section; i += blockDim.x) {
        least[t] = fminf(least[t], mine[i]);
        most[t] = fmaxf(most[t], mine[i]);
        total[t] += mine[i];
    }
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (t < step) {
            least[t] = fminf(least[t], least[t + step]);
            most[t] = fmaxf(most[t], most[t + step]);
            total[t] += total[t + step];
        }
    }
    if (t == 0) {
        low[blockIdx.x] = least[0];
        high[blockIdx.x] = most[0];
        mean[blockIdx.x] = total[0] / section;
    }
}
"""
SECTIONS, SECTION = 120, 1024
Floats = npt.NDArray[np.float32]


def noisy_signal() -> Floats:
    """A wave with noise that grows, of SECTIONS * SECTION values."""
    time = np.linspace(0, 1, SECTIONS * SECTION, dtype=np.float32)
    noise = np.random.default_rng(1).standard_normal(time.size).astype(np.float32)
    signal: Floats = np.sin(14 * time) + 0.15 * time * noise
    return signal


def summary(signal: Floats) -> tuple[Floats, Floats, Floats]:
    """The least, the greatest and the mean value of each section: a block for each."""
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    kernel = context.compile(SOURCE).kernel("summarise")
    low, high, mean = (stream.empty(SECTIONS, np.float32) for _ in range(3))
    there = stream.to_device(signal)
    kernel.launch(stream, cudadrv.LaunchConfig(SECTIONS, 128), there, low, high, mean, SECTION)
    return stream.to_host(low), stream.to_host(high), stream.to_host(mean)


def main() -> None:
    signal = noisy_signal()
    low, high, mean = summary(signal)
    sections = signal.reshape(SECTIONS, SECTION)
    assert np.array_equal(low, sections.min(axis=1))
    assert np.array_equal(high, sections.max(axis=1))
    assert np.allclose(mean, sections.mean(axis=1), atol=1e-6)
    lowest, highest = np.min(low), np.max(high)
    print(f"{signal.size:,} values in {SECTIONS} sections, from {lowest:.2f} to {highest:.2f}")


if __name__ == "__main__":
    main()
