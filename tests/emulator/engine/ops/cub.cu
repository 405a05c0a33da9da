#include <cub/block/block_scan.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
extern "C" __global__ void cub_scan(const int* x, int* out) {
  typedef cub::BlockScan<int, 128> S; __shared__ S::TempStorage t;
  int i = blockIdx.x * 128 + threadIdx.x, v; S(t).ExclusiveSum(x[i], v); out[i] = v;
}
extern "C" __global__ void cub_reduce(const float* x, float* out) {
  typedef cub::BlockReduce<float, 128> S; __shared__ S::TempStorage t;
  float v = S(t).Sum(x[blockIdx.x * 128 + threadIdx.x]); if (threadIdx.x == 0) out[blockIdx.x] = v;
}
extern "C" __global__ void cub_warp(const int* x, int* out) {
  typedef cub::WarpReduce<int> W; __shared__ W::TempStorage t[4];
  int i = blockIdx.x * 128 + threadIdx.x; int v = W(t[threadIdx.x / 32]).Sum(x[i]);
  typedef cub::WarpScan<int> V; __shared__ V::TempStorage u[4]; int w; V(u[threadIdx.x / 32]).InclusiveSum(x[i], w);
  out[i] = threadIdx.x % 32 == 0 ? v : w;
}
extern "C" __global__ void cub_sort(int* x) {
  typedef cub::BlockRadixSort<int, 128, 4> S; __shared__ S::TempStorage t;
  int k[4]; for (int j = 0; j < 4; j++) k[j] = x[(blockIdx.x * 128 + threadIdx.x) * 4 + j];
  S(t).Sort(k);
  for (int j = 0; j < 4; j++) x[(blockIdx.x * 128 + threadIdx.x) * 4 + j] = k[j];
}
