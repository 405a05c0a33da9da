"""Products by four warps, which only GPUs of compute capability 9.0 have."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
import ptx

from .conftest import ptx_for_driver

_SOURCE = r"""
// out (64, 64) = a (64, 64) * b (64, 64), b by columns; rows of 128 bytes, swizzled.
extern "C" __global__ void product(const uint4* a, const uint4* b, float* out) {
  __shared__ __align__(1024) uint4 left[512], right[512];
  for (int k = threadIdx.x; k < 512; k += 128) {
    int at = k ^ (k >> 3 & 7);
    left[at] = a[k];
    right[at] = b[k];
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  // Eight rows further are 1024 bytes; 1 at bit 62: swizzled by 128 bytes.
  unsigned long long fixed = 64ull << 32 | 1ull << 62;
  unsigned long long x = fixed | (unsigned)__cvta_generic_to_shared(left) >> 4;
  unsigned long long y = fixed | (unsigned)__cvta_generic_to_shared(right) >> 4;
  float d[32];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int k = 0; k < 4; ++k)
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0;"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {REGISTERS},"
                 " %32, %33, p, 1, 1, 0, 0;}" : RESULTS : "l"(x + 2 * k), "l"(y + 2 * k), "r"(k));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int k = 0; k < 32; ++k) {
    int row = 16 * warp + lane / 4 + 8 * (k >> 1 & 1);
    int column = 8 * (k >> 2) + 2 * (lane % 4) + (k & 1);
    out[64 * row + column] = d[k];
  }
}
""".replace("REGISTERS", ", ".join(f"%{k}" for k in range(32))).replace(
    "RESULTS", ", ".join(f'"+f"(d[{k}])' for k in range(32))
)


@pytest.mark.slow
def test_a_product_of_swizzled_matrices(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    if context.device.compute_capability != (9, 0):
        pytest.skip("needs a device of compute capability 9.0 and no other")
    image = ptx.Image.from_ptx(ptx_for_driver(context, _SOURCE, "a"))
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 10, (2, 64, 64)).astype(np.float16)
    out = stream.empty((64, 64), "f4")
    with context.load_module(image) as module:
        module.kernel("product").launch(
            stream,
            cudadrv.LaunchConfig(1, 128),
            stream.to_device(a),
            stream.to_device(np.ascontiguousarray(b.T)),
            out,
        )
        found = stream.to_host(out)
    assert np.array_equal(found, a.astype(np.float32) @ b.astype(np.float32))
