"""Bodies that attract each other: all pairs, with positions in shared memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cudadrv

SOURCE = """
extern "C" __global__ void step(const float4* now, float4* next, float4* speed, int n, float dt)
{
    __shared__ float4 part[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = now[i];
    float ax = 0, ay = 0, az = 0;
    for (int first = 0; first < n; first += blockDim.x) {
        part[threadIdx.x] = now[first + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < blockDim.x; ++k) {
            float dx = part[k].x - me.x, dy = part[k].y - me.y, dz = part[k].z - me.z;
            float near = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = part[k].w * near * near * near;
            ax += pull * dx; ay += pull * dy; az += pull * dz;
        }
        __syncthreads();
    }
    float4 v = speed[i];
    v.x += dt * ax; v.y += dt * ay; v.z += dt * az;
    speed[i] = v;
    next[i] = make_float4(me.x + dt * v.x, me.y + dt * v.y, me.z + dt * v.z, me.w);
}
"""
BODIES, BLOCK, STEP = 128, 64, 0.02
Bodies = npt.NDArray[np.float32]


def disc() -> tuple[Bodies, Bodies]:
    """Bodies around a heavy one: (x, y, z, mass) and (x, y, z, 0) of their speeds."""
    rng = np.random.default_rng(3)
    radius, angle = rng.uniform(0.6, 2.0, BODIES), rng.uniform(0, 2 * np.pi, BODIES)
    places, speeds = np.zeros((2, BODIES, 4), np.float32)
    places[:, 0], places[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
    places[:, 3] = 0.002
    speed = np.sqrt(1 / radius)
    speeds[:, 0], speeds[:, 1] = -speed * np.sin(angle), speed * np.cos(angle)
    places[0], speeds[0] = (0, 0, 0, 1), 0
    return places, speeds


def paths(places: Bodies, speeds: Bodies, steps: int) -> Bodies:
    """The places before each step and after the last: (steps + 1, bodies, 4)."""
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    kernel = context.compile(SOURCE).kernel("step")
    now, speed = stream.to_device(places), stream.to_device(speeds)
    later = stream.empty(places.shape, np.float32)
    launch = kernel.bind(stream, cudadrv.LaunchConfig.for_elements(BODIES, BLOCK))
    found = [places]
    for _ in range(steps):
        launch(now, later, speed, BODIES, STEP)
        now, later = later, now
        found.append(stream.to_host(now))
    return np.stack(found)


def by_numpy(places: Bodies, speeds: Bodies, steps: int) -> npt.NDArray[np.float64]:
    """The last places, in double precision."""
    x, mass, v = places[:, :3].astype(float), places[:, 3], speeds[:, :3].astype(float)
    for _ in range(steps):
        away = x[None] - x[:, None]
        pull = mass / ((away**2).sum(axis=2) + 0.01) ** 1.5
        v = v + STEP * (pull[:, :, None] * away).sum(axis=1)
        x = x + STEP * v
    return x


def main() -> None:
    places, speeds = disc()
    found = paths(places, speeds, 25)
    assert np.allclose(found[-1, :, :3], by_numpy(places, speeds, 25), atol=1e-3)
    print(f"{BODIES} bodies, 25 steps; the heavy one moved {np.hypot(*found[-1, 0, :2]):.4f}")


if __name__ == "__main__":
    main()
