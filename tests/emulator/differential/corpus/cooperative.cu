// Grids that synchronise, clusters, and the groups of cooperative_groups.h.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL extern "C" __global__ void

KERNEL grid_sync(const int* x, int* a, int* b, int rounds) {
  cg::grid_group grid = cg::this_grid();
  int i = I, n = gridDim.x * blockDim.x;
  a[i] = x[i];
  for (int k = 0; k < rounds; k++) {
    grid.sync();
    b[i] = a[(i + 1) % n] + a[(i * 7 + k) % n];
    grid.sync();
    a[i] = b[n - 1 - i] ^ k;
  }
}
KERNEL grid_sum(const float* x, float* partial, float* out, int n) {
  cg::grid_group grid = cg::this_grid();
  __shared__ float s[64];
  float sum = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
  s[threadIdx.x] = sum;
  cg::this_thread_block().sync();
  if (threadIdx.x == 0) { float t = 0; for (int k = 0; k < 64; k++) t += s[k]; partial[blockIdx.x] = t; }
  grid.sync();
  if (grid.thread_rank() == 0) { float t = 0; for (int k = 0; k < gridDim.x; k++) t += partial[k]; *out = t; }
}
KERNEL groups(const int* x, int* out, int n) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(block);
  int i = I, v = x[i];
  out[i] = cg::reduce(warp, v, cg::plus<int>());
  out[n + i] = cg::reduce(tile, v, cg::less<int>()) + tile.thread_rank() + tile.meta_group_rank();
  out[2 * n + i] = tile.shfl(v, 3) + tile.shfl_xor(v, 2) + tile.ballot(v & 1) + tile.any(v == 7);
  auto active = cg::coalesced_threads();
  out[3 * n + i] = active.size() + active.thread_rank();
  auto parts = cg::labeled_partition(warp, v & 1);
  out[4 * n + i] = parts.size() * 100 + parts.thread_rank();
  block.sync();
}
KERNEL __cluster_dims__(2, 1, 1) cluster_memory(const int* x, int* out) {
  cg::cluster_group cluster = cg::this_cluster();
  __shared__ int s[64];
  s[threadIdx.x] = x[I] + cluster.block_rank();
  cluster.sync();
  int* other = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
  int v = other[63 - threadIdx.x];
  cluster.sync();
  atomicAdd(other + (threadIdx.x & 7), v);
  cluster.sync();
  out[I] = v + s[threadIdx.x & 7] + cluster.num_blocks();
}
KERNEL cluster_assembly(const int* x, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = x[I];
  unsigned here = __cvta_generic_to_shared(s), there, rank, v, back;
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"((rank + 1) & 3));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(there + 4 * threadIdx.x) : "memory");
  asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(back) : "r"(there));
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  out[I] = v * 5 + back;
}
