"""Kernels that copy by tensor maps, in C++ with the instructions themselves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.driver.attributes import DeviceAttribute
from cudadrv.tensor_map import TensorMap

BARRIER = 8
"""Bytes of an mbarrier object."""

COMMON = r"""
// As CUtensorMap is, whose header NVRTC does not need for it.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void init(unsigned long long* bar, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(bar)), "r"(count) : "memory");
}
__device__ void expect(unsigned long long* bar, unsigned nbytes) {
  asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1;}"
               :: "r"(at(bar)), "r"(nbytes) : "memory");
}
__device__ void arrive(unsigned long long* bar) {
  asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" :: "r"(at(bar)) : "memory");
}
__device__ void wait(unsigned long long* bar, unsigned parity) {
  asm volatile("{.reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
               "@!p bra WAIT;}" :: "r"(at(bar)), "r"(parity) : "memory");
}
__device__ void load(void* to, const TensorMap* map, int x, int y, unsigned long long* bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%2, %3}], [%4];"
               :: "r"(at(to)), "l"(map), "r"(x), "r"(y), "r"(at(bar)) : "memory");
}
__device__ void store(const TensorMap* map, int x, int y, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
               :: "l"(map), "r"(x), "r"(y), "r"(at(from)) : "memory");
}
__device__ void add(const TensorMap* map, int x, int y, const void* from) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
               " [%0, {%1, %2}], [%3];"
               :: "l"(map), "r"(x), "r"(y), "r"(at(from)) : "memory");
}
__device__ void finish_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ void make_barriers_known() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void make_writes_known() { asm volatile("fence.proxy.async;" ::: "memory"); }
"""

BOXES = (
    COMMON
    + r"""
// Dynamic shared memory begins with the box, at a multiple of 1024 as there is no other, and ends
// with an mbarrier object.

// Brings the box at (x, y), and gives shared memory as it then is.
extern "C" __global__ void dump(const __grid_constant__ TensorMap map, unsigned char* out, int x,
                                int y, int nbytes, int total) {
  extern __shared__ __align__(1024) unsigned char box[];
  unsigned long long* bar = (unsigned long long*)(box + total);
  for (int k = threadIdx.x; k < total; k += blockDim.x) box[k] = 0;
  if (threadIdx.x == 0) { init(bar, 1); make_barriers_known(); }
  make_writes_known();
  __syncthreads();
  if (threadIdx.x == 0) { expect(bar, nbytes); load(box, &map, x, y, bar); }
  wait(bar, 0);
  for (int k = threadIdx.x; k < total; k += blockDim.x) out[k] = box[k];
}

// Adds 1 to every element of a box of floats.
extern "C" __global__ void increase(const __grid_constant__ TensorMap map, int nbytes) {
  extern __shared__ __align__(1024) float numbers[];
  unsigned long long* bar = (unsigned long long*)(numbers + nbytes / 4);
  if (threadIdx.x == 0) { init(bar, 1); make_barriers_known(); }
  __syncthreads();
  int y = blockIdx.x * 8;
  if (threadIdx.x == 0) { expect(bar, nbytes); load(numbers, &map, 0, y, bar); }
  wait(bar, 0);
  for (int k = threadIdx.x; k < nbytes / 4; k += blockDim.x) numbers[k] += 1;
  make_writes_known();
  __syncthreads();
  if (threadIdx.x == 0) { store(&map, 0, y, numbers); finish_stores(); }
}

// Stores the box at (0, 0) at (x, y) too, or adds it there; `total` bytes of shared memory.
extern "C" __global__ void put(const __grid_constant__ TensorMap map, int x, int y, int nbytes,
                               int total, bool sums) {
  extern __shared__ __align__(1024) unsigned char box[];
  unsigned long long* bar = (unsigned long long*)(box + total);
  if (threadIdx.x == 0) { init(bar, 1); make_barriers_known(); }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, nbytes);
    load(box, &map, 0, 0, bar);
    wait(bar, 0);
    if (sums) add(&map, x, y, box);
    else store(&map, x, y, box);
    finish_stores();
  }
}

// Writes what is given to the box at (x, y), or adds it there.
extern "C" __global__ void give(const __grid_constant__ TensorMap map, const unsigned char* in,
                                int x, int y, int nbytes, bool sums) {
  extern __shared__ __align__(1024) unsigned char box[];
  for (int k = threadIdx.x; k < nbytes; k += blockDim.x) box[k] = in[k];
  make_writes_known();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (sums) add(&map, x, y, box);
    else store(&map, x, y, box);
    finish_stores();
  }
}

// Pixels under a filter, from its first position on.
extern "C" __global__ void pixels(const __grid_constant__ TensorMap map, float4* out, int w, int h,
                                  unsigned short dw, unsigned short dh, int nbytes, int total) {
  extern __shared__ __align__(1024) float4 quads[];
  unsigned long long* bar = (unsigned long long*)(quads + total / 16);
  if (threadIdx.x == 0) { init(bar, 1); make_barriers_known(); }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, nbytes);
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
                 :: "r"(at(quads)), "l"(&map), "r"(0), "r"(w), "r"(h), "r"(0), "r"(at(bar)),
                    "h"(dw), "h"(dh) : "memory");
  }
  wait(bar, 0);
  for (int k = threadIdx.x; k < total / 16; k += blockDim.x) out[k] = quads[k];
}
"""
)

PRODUCT = (
    COMMON
    + r"""
// c (m, n) = a (m, k) * b (n, k) transposed, by tiles of 64 in each direction. The fifth warp
// brings tiles of a and b into a ring of two stages; four warps multiply them.
extern "C" __global__ void __launch_bounds__(160) product(
    const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
    const __grid_constant__ TensorMap c, int steps) {
  __shared__ __align__(1024) unsigned char tiles[2][2][8192];
  __shared__ unsigned long long full[2], empty[2];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = blockIdx.y * 64, column = blockIdx.x * 64;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) { init(full + s, 1); init(empty + s, 128); }
    make_barriers_known();
  }
  __syncthreads();
  if (warp == 4) {
    if (lane == 0)
      for (int k = 0; k < steps; ++k) {
        int s = k % 2;
        wait(empty + s, k / 2 % 2 ^ 1);  // the phase before the first one is over
        expect(full + s, 2 * 8192);
        load(tiles[s][0], &a, 64 * k, row, full + s);
        load(tiles[s][1], &b, 64 * k, column, full + s);
      }
  } else {
    float d[32];
    for (int k = 0; k < steps; ++k) {
      int s = k % 2;
      wait(full + s, k / 2 % 2);
      // Eight rows further are 1024 bytes; 1 at bit 62: swizzled by 128 bytes.
      unsigned long long fixed = 64ull << 32 | 1ull << 62;
      unsigned long long x = fixed | at(tiles[s][0]) >> 4, y = fixed | at(tiles[s][1]) >> 4;
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      for (int part = 0; part < 4; ++part)
        asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {REGISTERS},"
                     " %32, %33, p, 1, 1, 0, 0;}"
                     : RESULTS : "l"(x + 2 * part), "l"(y + 2 * part), "r"(k + part));
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      arrive(empty + s);
    }
    // All tiles are read: their place is free for the result.
    asm volatile("bar.sync 1, 128;" ::: "memory");
    float* result = (float*)tiles;
    for (int k = 0; k < 32; ++k) {
      int r = 16 * warp + lane / 4 + 8 * (k >> 1 & 1);
      result[64 * r + 8 * (k >> 2) + 2 * (lane % 4) + (k & 1)] = d[k];
    }
    make_writes_known();
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) { store(&c, column, row, result); finish_stores(); }
  }
}
""".replace("REGISTERS", ", ".join(f"%{k}" for k in range(32))).replace(
        "RESULTS", ", ".join(f'"+f"(d[{k}])' for k in range(32))
    )
)


def needs_tensor_maps(context: cudadrv.Context) -> None:
    """Skip where the device has none."""
    if not context.device.attribute(DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED):
        pytest.skip("needs a device with tensor maps (compute capability 9.0)")


def dumped(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    tensor_map: TensorMap,
    x: int,
    y: int,
    total: int,
) -> NDArray[np.uint8]:
    """Shared memory behind a copy of one box."""
    out = stream.empty(total, np.uint8)
    config = LaunchConfig(1, 64, shared_bytes=total + BARRIER)
    kernels.kernel("dump").launch(
        stream, config, tensor_map, out, x, y, tensor_map.box_nbytes, total
    )
    return stream.to_host(out)
