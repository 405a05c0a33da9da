"""How fast the emulator runs: `python -m benchmarks.emulator [target]`.

Each kernel is compiled by NVRTC, launched until it is warm, then timed alone; the table gives the
best and the median of several launches beside the goal for two cores.
"""

from __future__ import annotations

import statistics
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import ptx
from ptx.emulate.device import DeviceModel
from ptx.emulate.errors import UnsupportedInstruction
from ptx.emulate.memory import DeviceMemory
from ptx.emulate.program import EmulatedKernel, Program

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a * x[i] + y[i];
}
extern "C" __global__ void reduce(const float* x, float* out, int n) {
  extern __shared__ float s[];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, s[0]);
}
#define T 16
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int n) {
  __shared__ float a[T][T], b[T][T];
  int r = blockIdx.y * T + threadIdx.y, c = blockIdx.x * T + threadIdx.x;
  float acc = 0;
  for (int k = 0; k < n / T; k++) {
    a[threadIdx.y][threadIdx.x] = A[r * n + k * T + threadIdx.x];
    b[threadIdx.y][threadIdx.x] = B[(k * T + threadIdx.y) * n + c];
    __syncthreads();
    for (int j = 0; j < T; j++) acc += a[threadIdx.y][j] * b[j][threadIdx.x];
    __syncthreads();
  }
  C[r * n + c] = acc;
}
extern "C" __global__ void mandelbrot(int* out, int w, int h, int limit) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float cr = -2.f + 3.f * x / w, ci = -1.5f + 3.f * y / h, zr = 0, zi = 0;
  int k = 0;
  while (k < limit && zr * zr + zi * zi < 4.f) {
    float t = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = t;
    k++;
  }
  out[y * w + x] = k;
}
extern "C" __global__ void histogram(const unsigned char* d, int n, unsigned* bins) {
  __shared__ unsigned s[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&s[d[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], s[i]);
}
extern "C" __global__ void shuffle(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.f;
  for (int k = 16; k > 0; k >>= 1) v += __shfl_down_sync(0xffffffffu, v, k);
  if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
extern "C" __global__ void empty() {}
"""

N = 1 << 20
Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Case:
    """One launch and the milliseconds it should take at most."""

    title: str
    kernel: str
    grid: Dim3
    block: Dim3
    params: bytes
    goal_ms: float
    shared_bytes: int = 0


class Device:
    """An emulated device and the module under test."""

    def __init__(self, target: str) -> None:
        image = ptx.compile(SOURCE, ptx.CompileOptions(target=ptx.Target.ptx(target)))
        assert image.ptx is not None
        self.memory = DeviceMemory(1 << 40, 1 << 30)
        self.program = Program(ptx.parse(image.ptx), DeviceModel(self.memory))

    def put(self, array: NDArray[np.generic]) -> int:
        """Copy an array to the device."""
        address = self.memory.allocate(array.nbytes)
        start = address - self.memory.base
        self.memory.data[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)
        return address


def cases(device: Device) -> list[Case]:
    """The launches, with their data on the device."""
    rng = np.random.default_rng(0)
    x = device.put(rng.standard_normal(N).astype(np.float32))
    y = device.put(rng.standard_normal(N).astype(np.float32))
    out = device.put(np.zeros(N, np.float32))
    square = [device.put(rng.standard_normal((256, 256)).astype(np.float32)) for _ in range(3)]
    data = device.put(rng.integers(0, 256, N).astype(np.uint8))
    bins = device.put(np.zeros(256, np.uint32))
    blocks, wide, tile = (N // 256, 1, 1), (256, 1, 1), (16, 16, 1)
    reduction = struct.pack("<QQI", x, out, N)
    count = struct.pack("<QIxxxxQ", data, N, bins)
    return [
        Case("saxpy, 1M float32", "saxpy", blocks, wide,
             struct.pack("<fxxxxQQQI", 2.5, x, y, out, N), 25),
        Case("block reduction, 1M float32", "reduce", blocks, wide, reduction, 20, 1024),
        Case("tiled product, 256^3", "matmul", tile, tile,
             struct.pack("<QQQI", *square, 256), 170),
        Case("Mandelbrot, 512^2 x 256", "mandelbrot", (32, 32, 1), tile,
             struct.pack("<QIII", out, 512, 512, 256), 350),
        Case("shared histogram, 1M bytes", "histogram", (256, 1, 1), wide, count, 16),
        Case("shared histogram, 4096 blocks", "histogram", blocks, wide, count, 16),
        Case("warp-shuffle reduction, 1M", "shuffle", blocks, wide, reduction, 25),
        Case("empty launch", "empty", (1, 1, 1), (1, 1, 1), b"", 0.1),
    ]  # fmt: skip


def timed(action: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Best and median milliseconds."""
    taken: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        taken.append((time.perf_counter() - start) * 1e3)
    return min(taken), statistics.median(taken)


def large_module(instructions: int, kernels: int) -> str:
    """PTX of several kernels, with about so many instructions in all."""
    each = instructions // kernels
    lines = [".version 8.0", ".target sm_90", ".address_size 64"]
    for number in range(kernels):
        lines += [
            f".visible .entry k{number}(.param .u64 p)",
            "{",
            f".reg .b32 %r<{each + 2}>; .reg .f32 %f<{each + 2}>; .reg .b64 %rd<4>;",
            "ld.param.u64 %rd1, [p]; ld.global.u32 %r0, [%rd1]; ld.global.f32 %f0, [%rd1];",
        ]
        for at in range((each - 6) // 2):
            lines.append(f"add.s32 %r{at + 1}, %r{at}, {at};")
            lines.append(f"fma.rn.f32 %f{at + 1}, %f{at}, %f0, %f{at};")
        last = (each - 6) // 2
        lines += [f"st.global.u32 [%rd1], %r{last};", f"st.global.f32 [%rd1+4], %f{last};"]
        lines += ["ret;", "}"]
    return "\n".join(lines)


def first_kernel(text: str) -> Callable[[], EmulatedKernel]:
    """Reading a module and taking its first kernel."""
    memory = DeviceMemory(1 << 40, 1 << 20)
    return lambda: Program(ptx.parse(text), DeviceModel(memory)).kernel("k0")


def main(target: str) -> None:
    """Print the table."""
    device = Device(target)
    print(f"{target}: {'':26}{'best':>9}{'median':>9}{'goal':>9}  ms")
    for case in cases(device):
        try:
            kernel = device.program.kernel(case.kernel)
        except UnsupportedInstruction as refused:
            print(f"{case.title:38}{refused}")
            continue

        def launch(kernel: EmulatedKernel = kernel, case: Case = case) -> None:
            kernel.launch(case.grid, case.block, case.params, shared_bytes=case.shared_bytes)

        timed(launch, 2)
        best, median = timed(launch, 200 if case.goal_ms < 1 else 9)
        print(f"{case.title:38}{best:9.2f}{median:9.2f}{case.goal_ms:9.1f}")
    for kernels in (50, 1):
        best, median = timed(first_kernel(large_module(50_000, kernels)), 2)
        title = f"50,000 instructions in {kernels}, first kernel"
        print(f"{title:38}{best:9.2f}{median:9.2f}{1500.0:9.1f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "compute_90")
