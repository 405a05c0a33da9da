"""What the programs have: a stream, kernels, and memory that nothing has written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.emulator.timeline.schedule import OrderName

N = 256
SOURCE = """
struct Padded { char tag; double value; };
struct alignas(16) Short { int one; };
struct Three { float x, y, z, w; };
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
KERNEL twice(int* o, const int* a, int n) { if (I < n) o[I] = 2 * a[I]; }
KERNEL twice_wide(longlong2* o, const longlong2* a, int n) {
  if (I < n) { longlong2 v = a[I]; v.x *= 2; v.y *= 2; o[I] = v; }
}
KERNEL copied(int* o, const int* a, int n) { if (I < n) o[I] = a[I]; }
KERNEL copied_some(int* o, const int* a, int n) { if (I < n && I % 3) o[I] = a[I]; }
KERNEL set(int* o, int n, int value) { if (I < n) o[I] = value; }
KERNEL set_bytes(char* o, int n, int step) { if (I * step < n) o[I * step] = 1; }
KERNEL add_bytes(int* o, const char* a, int n, int step) {
  if (I * step < n) atomicAdd(o, (int)a[I * step]);
}
KERNEL add_words(int* o, const int* a, int n) { if (I < n) atomicAdd(o, a[I]); }
KERNEL gather(int* o, const int* a, const int* at, int n) { if (I < n) o[I] = a[at[I]] + 1; }
KERNEL scatter(int* o, const int* at, int n) { if (I < n) o[at[I]] = I; }
KERNEL count(int* o, int n) { if (I < n) atomicAdd(&o[I % 16], 1); }
KERNEL exchanged(int* o, int n) { if (I < n) atomicExch(&o[I], 1); }
KERNEL swapped(int* o, int* old, int n) { if (I < n) old[I] = 1 + atomicExch(&o[I], 1); }
KERNEL make_padded(Padded* o, int n) { if (I < n) { o[I].tag = 1; o[I].value = I; } }
KERNEL copy_padded(Padded* o, const Padded* a, int n) { if (I < n) o[I] = a[I]; }
KERNEL make_short(Short* o, int n) { if (I < n) o[I].one = I; }
KERNEL copy_short(Short* o, const Short* a, int n) { if (I < n) o[I] = a[I]; }
KERNEL sum_padded(double* o, const Padded* a, int n) {
  if (I < n) o[I] = a[I].value + a[I].tag;
}
KERNEL make_three(float4* o, int n) { if (I < n) { o[I].x = 1; o[I].y = 2; o[I].z = 3; } }
KERNEL norm_three(float* o, const float4* a, int n) {
  if (I < n) { float4 v = a[I]; o[I] = v.x * v.x + v.y * v.y + v.z * v.z; }
}
KERNEL norm_four(float* o, const float4* a, int n) {
  if (I < n) { float4 v = a[I]; o[I] = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
}
KERNEL in_the_heap(int* o, int n, int filled) {
  if (I >= n) return;
  int* mine = (int*)malloc(16);
  for (int k = 0; k < filled; k++) mine[k] = k;
  o[I] = mine[0] + mine[3];
  free(mine);
}
__device__ int zeroed[256];
KERNEL of_the_module(int* o, int n) { if (I < n) o[I] = 1 + zeroed[I]; }
KERNEL within_one_launch(int* o, int* mine, int n, int before) {
  if (I >= n) return;
  if (before) mine[I] = I;
  __syncthreads();
  o[I] = 1 + mine[I ^ 1];
}
"""
Memory = cudadrv.DeviceArray[np.int32] | int


@functools.cache
def image() -> ptx.Image:
    """The kernels."""
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), lineinfo=True)
    return ptx.compile(SOURCE, options, name="unwritten.cu")


@dataclass(frozen=True)
class Bench:
    """A session's context, stream and kernels."""

    context: cudadrv.Context
    stream: cudadrv.Stream
    module: cudadrv.Module

    def ints(self, values: npt.ArrayLike) -> cudadrv.DeviceArray[np.int32]:
        """An array that holds these."""
        return self.stream.to_device(np.asarray(values, np.int32))

    def fresh(self, count: int = N) -> cudadrv.DeviceArray[np.int32]:
        """An array that nothing has written."""
        return self.stream.empty(count, np.int32)

    def run(
        self, kernel: str, *arguments: Memory | cudadrv.DeviceArray[np.float64], count: int = N
    ) -> None:
        """Launch as many threads."""
        config = cudadrv.LaunchConfig(-(-count // 128), 128)
        self.module.kernel(kernel).launch(self.stream, config, *arguments)


Body = Callable[[Bench, bool], None]


def findings_of(
    body: Body, ok: bool, order: OrderName = "immediate", seed: int | None = None
) -> tuple[emulator.Finding, ...]:
    """Run a program in a session that checks, and give what was found."""
    checked = emulator.session(check=("init",), order=order, seed=seed, raise_findings=False)
    with checked as machine:
        context = cudadrv.cuda_context_for(0)
        bench = Bench(context, context.new_stream(), context.load_module(image()))
        body(bench, ok)
        context.synchronize()
        return tuple(each for each in machine.findings if isinstance(each, emulator.Finding))
