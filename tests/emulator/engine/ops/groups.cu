// Kernels that use cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

// Jacobi steps on a ring; every step needs the whole grid.
extern "C" __global__ void stencil(int* a, int* b, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  for (int s = 0; s < steps; s++) {
    for (int i = grid.thread_rank(); i < n; i += grid.size())
      b[i] = a[(i + n - 1) % n] + 2 * a[i] + a[(i + 1) % n];
    grid.sync();
    int* t = a; a = b; b = t;
  }
}

// Threads of a block reach the grid's barrier by different ways.
extern "C" __global__ void grid_phases(unsigned* count, unsigned* seen) {
  cg::grid_group grid = cg::this_grid();
  for (int phase = 0; phase < 3; phase++) {
    for (unsigned k = 0; k < grid.block_rank() * 3 + (threadIdx.x & 7); k++) atomicAdd(count, 1);
    grid.sync();
    if (threadIdx.x == 0) seen[phase * gridDim.x + blockIdx.x] = atomicAdd(count, 0);
    grid.sync();
  }
}

extern "C" __global__ void tiles(const int* x, int* out) {
  auto block = cg::this_thread_block();
  int i = block.group_index().x * block.size() + block.thread_rank();
  auto t8 = cg::tiled_partition<8>(block);
  int v = cg::reduce(t8, x[i], cg::plus<int>());
  auto t32 = cg::tiled_partition<32>(block);
  v += 1000 * cg::reduce(t32, x[i], cg::greater<int>());
  v += 100000 * (t8.shfl(x[i], 3) & 7) + (t8.any(x[i] > 90) ? 1 << 24 : 0);
  out[i] = v + (cg::exclusive_scan(t8, x[i]) << 25);
}

extern "C" __global__ void coalesced(const int* x, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
  int r = -1;
  if (v % 3) {
    auto group = cg::coalesced_threads();
    r = group.size() * 1000 + group.thread_rank() + 100000 * cg::reduce(group, v, cg::less<int>());
    if (v & 1) r += 10000000 * (cg::coalesced_threads().size() & 31);
  }
  out[i] = r;
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void wide_tiles(const int* x, int* out) {
  auto t = cg::tiled_partition<64>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = cg::reduce(t, x[i], cg::plus<int>()) + 100000 * t.shfl(x[i], 33) + (t.any(x[i] > 95) ? 1 << 24 : 0);
}
#endif

#if __CUDA_ARCH__ >= 700
extern "C" __global__ void labelled(const int* x, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto group = cg::labeled_partition(warp, v % 4);
  int r = group.size() + 100 * cg::reduce(group, v, cg::plus<int>());
  auto two = cg::binary_partition(warp, v > 50);
  out[i] = r + 1000000 * two.size();
}
#endif

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void cluster_sum(const int* x, int* out) {
  __shared__ int sum;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  cluster.sync();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned r = 0; r < cluster.num_blocks(); r++)
    atomicAdd(cluster.map_shared_rank(&sum, r), x[i] * (cluster.block_rank() + 1));
  cluster.sync();
  out[i] = sum + 0 * cluster.query_shared_rank(&sum);
}

extern "C" __global__ void cluster_ring(int* out) {
  __shared__ int box[32];
  auto cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), n = cluster.num_blocks();
  cluster.sync();
  int* right = cluster.map_shared_rank(box, (rank + 1) % n);
  right[threadIdx.x] = 100 * rank + threadIdx.x;
  auto token = cluster.barrier_arrive();
  cluster.barrier_wait(static_cast<decltype(token)&&>(token));
  int q = cluster.query_shared_rank(right) == (rank + 1) % n && cluster.query_shared_rank(box) == rank;
  out[(blockIdx.y * gridDim.x + blockIdx.x) * 32 + threadIdx.x] = box[threadIdx.x] + 10000 * q;
  cluster.sync();
}

extern "C" __global__ void __cluster_dims__(2, 2, 1) cluster_places(unsigned* out) {
  auto c = cg::this_cluster();
  unsigned v[12];
  asm("mov.u32 %0, %cluster_ctaid.x;" : "=r"(v[0])); asm("mov.u32 %0, %cluster_ctaid.y;" : "=r"(v[1]));
  asm("mov.u32 %0, %clusterid.x;" : "=r"(v[2])); asm("mov.u32 %0, %clusterid.y;" : "=r"(v[3]));
  asm("mov.u32 %0, %nclusterid.x;" : "=r"(v[4])); asm("mov.u32 %0, %nclusterid.y;" : "=r"(v[5]));
  asm("mov.u32 %0, %cluster_nctaid.x;" : "=r"(v[6])); asm("mov.u32 %0, %cluster_nctaid.y;" : "=r"(v[7]));
  v[8] = c.block_rank(); v[9] = c.num_blocks();
  asm("{.reg .pred p; mov.pred p, %is_explicit_cluster; selp.u32 %0, 1, 0, p;}" : "=r"(v[10]));
  asm("mov.u32 %0, %clusterid.z;" : "=r"(v[11]));
  for (int k = 0; k < 12; k++) out[(blockIdx.y * gridDim.x + blockIdx.x) * 12 + k] = v[k];
}
#endif
