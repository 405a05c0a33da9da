"""A product of tiles by tensor maps, a ring of mbarriers and tensor memory, in C++."""

from __future__ import annotations

import numpy as np

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.tensor_map import TensorMap, TensorSwizzle

from .tensor_kernels import COMMON

HALF, SINGLE = np.float16, np.float32

_SOURCE = (
    COMMON
    + r"""
__device__ void before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
__device__ void commit(unsigned long long* bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               :: "r"(at(bar)) : "memory");
}

// c (m, n) = a (m, k) * b (n, k) transposed, by tiles of 128 and 32. The fifth warp brings tiles of
// a and b into a ring of two stages, the sixth has them multiplied, four read the result.
extern "C" __global__ void __launch_bounds__(192) product(
    const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
    const __grid_constant__ TensorMap c, int steps) {
  __shared__ __align__(1024) unsigned char tiles[2][20480];
  __shared__ unsigned long long full[2], empty[2], done;
  __shared__ unsigned columns;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int row = blockIdx.y * 128, column = blockIdx.x * 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) { init(full + s, 1); init(empty + s, 1); }
    init(&done, 1);
    make_barriers_known();
  }
  if (warp == 5) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;"
                 :: "r"(at(&columns)) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  before_sync();
  __syncthreads();
  after_sync();
  unsigned d = columns;
  if (warp == 4 && lane == 0) {
    for (int k = 0; k < steps; ++k) {
      int s = k % 2;
      wait(empty + s, k / 2 % 2 ^ 1);  // the phase before the first one is over
      expect(full + s, 20480);
      load(tiles[s], &a, 64 * k, row, full + s);
      load(tiles[s] + 16384, &b, 64 * k, column, full + s);
    }
  } else if (warp == 5 && lane == 0) {
    // Half floats to floats, 32 columns, 128 rows.
    unsigned form = 1 << 4 | 32 / 8 << 17 | 128 / 16 << 24;
    // Eight rows further are 1024 bytes; 2 at bit 61: swizzled by 128 bytes.
    unsigned long long fixed = 64ull << 32 | 1ull << 46 | 2ull << 61;
    for (int k = 0; k < steps; ++k) {
      int s = k % 2;
      wait(full + s, k / 2 % 2);
      after_sync();
      unsigned long long x = fixed | at(tiles[s]) >> 4, y = fixed | at(tiles[s] + 16384) >> 4;
      for (int part = 0; part < 4; ++part)
        asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0;"
                     "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}"
                     :: "r"(d), "l"(x + 2 * part), "l"(y + 2 * part), "r"(form), "r"(k + part)
                     : "memory");
      commit(empty + s);
    }
    commit(&done);
  } else if (warp < 4) {
    wait(&done, 0);
    after_sync();
    unsigned r[32];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {REGISTERS}, [%32];"
                 : RESULTS : "r"(d + (warp << 21)));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    // All tiles are read: their place is free for the result.
    unsigned* result = (unsigned*)tiles + 32 * threadIdx.x;
    for (int k = 0; k < 32; ++k) result[k] = r[k];
    make_writes_known();
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 0) { store(&c, column, row, tiles); finish_stores(); }
    before_sync();
  }
  __syncthreads();
  if (warp == 5)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(d));
}
""".replace("REGISTERS", ", ".join(f"%{k}" for k in range(32))).replace(
        "RESULTS", ", ".join(f'"=r"(r[{k}])' for k in range(32))
    )
)


WAIT_FOR_ALL = "wait(&done, 0);"


def require_exact_product(
    context: cudadrv.Context,
    stream: cudadrv.Stream,
    target: str,
    *,
    without: str = "",
    launches: int = 3,
) -> None:
    """Whether a product has the bits of exact arithmetic; `without` is left away of its source."""
    assert without in _SOURCE
    rng = np.random.default_rng(5)
    # Neither side is a whole number of tiles; sums of such products are exact in float32.
    a, b = rng.integers(-9, 10, (200, 280)).astype(HALF), rng.integers(-9, 10, (56, 280))
    left, right = stream.to_device(a), stream.to_device(b.astype(HALF))
    out = stream.zeros((200, 56), SINGLE)
    swizzle = TensorSwizzle.BYTES_128
    maps = (
        TensorMap(left, (128, 64), swizzle=swizzle),
        TensorMap(right, (32, 64), swizzle=swizzle),
        TensorMap(out, (128, 32)),
    )
    options = ptx.CompileOptions(target=ptx.Target.ptx(target))
    with context.load_module(ptx.compile(_SOURCE.replace(without, ""), options)) as module:
        kernel = module.kernel("product")
        for _ in range(launches):  # code is generated for the kinds that come again
            kernel.launch(stream, LaunchConfig((2, 2), 192), *maps, 5)
        found = stream.to_host(out)
    assert np.array_equal(found, a.astype(SINGLE) @ b.T.astype(SINGLE))
