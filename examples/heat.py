"""Heat that spreads over a plate: a stencil of five points, many steps in one graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cudadrv

SOURCE = """
extern "C" __global__ void spread(const float* now, float* next, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int i = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        next[i] = now[i];  // the edge keeps its temperature
        return;
    }
    next[i] = now[i] + 0.2f * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width]
                               - 4 * now[i]);
}
"""
WIDTH, HEIGHT, STEPS = 96, 64, 100
Plate = npt.NDArray[np.float32]


def cold_plate() -> Plate:
    """A plate with a hot edge and two hot squares."""
    plate = np.zeros((HEIGHT, WIDTH), np.float32)
    plate[0] = 1
    plate[20:32, 16:28] = 1
    plate[36:52, 60:80] = 0.7
    return plate


def snapshots(plate: Plate, count: int) -> list[Plate]:
    """The plate after each of `count` times STEPS steps."""
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    spread = context.compile(SOURCE).kernel("spread")
    now, other = stream.to_device(plate), stream.empty(plate.shape, np.float32)
    config = cudadrv.LaunchConfig.for_elements((WIDTH, HEIGHT), (32, 8))
    with stream.capture() as graph:
        for _ in range(STEPS // 2):  # two arrays in turn
            spread.launch(stream, config, now, other, WIDTH, HEIGHT)
            spread.launch(stream, config, other, now, WIDTH, HEIGHT)
    run = graph.instantiate()
    found = []
    for _ in range(count):
        run.launch(stream)
        found.append(stream.to_host(now))
    return found


def by_numpy(plate: Plate, steps: int) -> Plate:
    """The same on the host."""
    now = plate.copy()
    for _ in range(steps):
        inner = now[1:-1, 1:-1]
        around = now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1]
        now[1:-1, 1:-1] = inner + np.float32(0.2) * (around - 4 * inner)
    return now


def main() -> None:
    plate = cold_plate()
    (warm,) = snapshots(plate, 1)
    assert np.allclose(warm, by_numpy(plate, STEPS), atol=1e-5)
    print(f"after {STEPS} steps: mean {warm.mean():.3f}, in the middle {warm[32, 48]:.3f}")


if __name__ == "__main__":
    main()
