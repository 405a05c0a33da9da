// Asynchronous copies to shared memory: the instructions, and what C++ makes of them.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL extern "C" __global__ void
namespace cg = cooperative_groups;

__device__ unsigned shared_address(const void* p) { return __cvta_generic_to_shared(p); }
__device__ void wait_all() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}
// One instruction a row: each thread's 16 bytes hold ones first.
#define ROW(number, text, ...)                                          \
  own[threadIdx.x] = make_uint4(~0u, ~0u, ~0u, ~0u);                    \
  asm volatile(text ::"r"(to), "l"(from) __VA_ARGS__ : "memory");       \
  wait_all();                                                           \
  out[number * n + I] = own[threadIdx.x];
KERNEL copy_sizes(const uint4* in, uint4* out, int n) {
  __shared__ uint4 own[128];
  unsigned to = shared_address(own + threadIdx.x);
  const uint4* from = in + I;
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  ROW(0, "cp.async.ca.shared.global [%0], [%1], 4;")
  ROW(1, "cp.async.ca.shared.global [%0], [%1], 8;")
  ROW(2, "cp.async.ca.shared.global [%0], [%1], 16;")
  ROW(3, "cp.async.cg.shared.global [%0], [%1], 16;")
  ROW(4, "cp.async.ca.shared.global [%0+8], [%1+4], 4;")
  ROW(5, "cp.async.ca.shared::cta.global.L2::64B [%0+8], [%1], 8;")
  ROW(6, "cp.async.cg.shared.global.L2::128B [%0], [%1], 16;")
  ROW(7, "cp.async.cg.shared.global.L2::256B [%0], [%1], 16;")
  ROW(8, "cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 16, %2;", , "l"(policy))
}
KERNEL copy_parts(const uint4* in, const unsigned* sizes, uint4* out, int n) {
  __shared__ uint4 own[128];
  unsigned to = shared_address(own + threadIdx.x), size = sizes[I];
  const uint4* from = in + I;
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 0.5;" : "=l"(policy));
  ROW(0, "cp.async.ca.shared.global [%0], [%1], 4, %2;", , "r"(size % 5))
  ROW(1, "cp.async.ca.shared.global [%0], [%1], 8, %2;", , "r"(size % 9))
  ROW(2, "cp.async.ca.shared.global [%0], [%1], 16, %2;", , "r"(size % 17))
  ROW(3, "cp.async.cg.shared.global [%0], [%1], 16, %2;", , "r"(size % 17))
  ROW(4, "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;", , "r"(size % 17), "l"(policy))
  ROW(5, "cp.async.cg.shared.global [%0], [%1], 16, 5;")
}
KERNEL copy_ignored(const uint4* in, const unsigned* flags, uint4* out, int n) {
  __shared__ uint4 own[128];
  unsigned to = shared_address(own + threadIdx.x), flag = flags[I] & 1;
  const uint4* from = flag ? nullptr : in + I;
#define IGNORED(number, level, size) \
  ROW(number, "{ .reg .pred p; setp.ne.u32 p, %2, 0; cp.async." level ".shared.global [%0], [%1], " size ", p; }", , "r"(flag))
  IGNORED(0, "ca", "4")
  IGNORED(1, "ca", "8")
  IGNORED(2, "ca", "16")
  IGNORED(3, "cg", "16")
}
KERNEL copy_guarded(const uint4* in, const unsigned* flags, uint4* out, int n) {
  __shared__ uint4 own[128];
  unsigned to = shared_address(own + threadIdx.x);
  const uint4* from = in + I;
  ROW(0, "{ .reg .pred p; setp.gt.u32 p, %2, 7; @p cp.async.ca.shared.global [%0], [%1], 8; }", , "r"(flags[I]))
  ROW(1, "{ .reg .pred p; setp.gt.u32 p, %2, 7; @!p cp.async.cg.shared.global [%0], [%1], 16; }", , "r"(flags[I]))
}
// Four groups in flight; each is read once it is complete.
KERNEL copy_groups(const unsigned* in, unsigned* out) {
  __shared__ unsigned part[4][128];
  unsigned sum = 0;
  for (int k = 0; k < 4; k++) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&part[k][threadIdx.x])),
                 "l"(in + (I * 4 + k)) : "memory");
    asm volatile("cp.async.commit_group;");
  }
#define STEP(k, left)                                                  \
  asm volatile("cp.async.wait_group " left ";" ::: "memory");          \
  __syncthreads();                                                     \
  sum = sum * 31 + part[k][(threadIdx.x * 7 + k) & 127];
  STEP(0, "3") STEP(1, "2") STEP(2, "1") STEP(3, "0")
  out[I] = sum;
}
// The tile of the next step is on its way while one is used.
KERNEL two_stages(const float* in, float* out, int steps) {
  __shared__ float part[2][128];
  in += blockIdx.x * steps * 128;
  float sum = 0;
  __pipeline_memcpy_async(&part[0][threadIdx.x], in + threadIdx.x, 4);
  __pipeline_commit();
  for (int k = 0; k < steps; k++) {
    if (k + 1 < steps) __pipeline_memcpy_async(&part[k + 1 & 1][threadIdx.x], in + (k + 1) * 128 + threadIdx.x, 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    for (int j = 0; j < 8; j++) sum = sum * 0.5f + part[k & 1][(threadIdx.x + j * 5) & 127];
    __syncthreads();
  }
  out[I] = sum;
}
KERNEL filled_with_zeros(const uint4* in, uint4* out, int count) {
  __shared__ uint4 part[128];
  int left = count - (int)I * 16;
  int missing = left >= 16 ? 0 : left <= 0 ? 16 : 16 - left;
  __pipeline_memcpy_async(part + threadIdx.x, in + I, 16, missing);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[I] = part[threadIdx.x ^ 5];
}
// Any number of bytes, at any place: what is not aligned is copied in other ways.
KERNEL copied_by_a_block(const unsigned char* in, unsigned char* out) {
  __shared__ __align__(16) unsigned char part[4][512];
  cg::thread_block block = cg::this_thread_block();
  in += blockIdx.x * 2048;
  out += blockIdx.x * 2048;
  for (int k = threadIdx.x; k < 2048; k += blockDim.x) part[k / 512][k % 512] = 0;
  block.sync();
  cg::memcpy_async(block, part[0], in, cuda::aligned_size_t<16>(480));
  cg::memcpy_async(block, part[1] + 3, in + 515, 501);
  cg::memcpy_async(block, part[2] + 4, in + 1028, 300);
  cg::memcpy_async(block, part[3], in + 1537, 77);
  cg::wait(block);
  for (int k = threadIdx.x; k < 2048; k += blockDim.x) out[k] = part[k / 512][k % 512];
}
KERNEL copied_by_warps(const int4* in, int4* out) {
  __shared__ int4 part[4][2][32];
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
  int w = threadIdx.x / 32, start = (blockIdx.x * 4 + w) * 64;
  cg::memcpy_async(warp, part[w][0], in + start, cuda::aligned_size_t<16>(512));
  cg::memcpy_async(warp, part[w][1], in + start + 32, cuda::aligned_size_t<16>(512));
  cg::wait_prior<1>(warp);
  out[start + warp.thread_rank()] = part[w][0][31 - warp.thread_rank()];
  cg::wait(warp);
  out[start + 32 + warp.thread_rank()] = part[w][1][warp.thread_rank() ^ 9];
}
KERNEL thread_pipeline(const double* in, double* out) {
  __shared__ double part[2][64];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  in += blockIdx.x * 512;
  out += blockIdx.x * 512;
  for (int k = 0; k < 9; k++) {
    if (k < 8) {
      pipe.producer_acquire();
      cuda::memcpy_async(&part[k & 1][threadIdx.x], in + k * 64 + threadIdx.x, sizeof(double), pipe);
      pipe.producer_commit();
    }
    if (k > 0) {
      if (k < 8) cuda::pipeline_consumer_wait_prior<1>(pipe);
      else cuda::pipeline_consumer_wait_prior<0>(pipe);
      __syncthreads();
      out[(k - 1) * 64 + threadIdx.x] = part[k - 1 & 1][63 - threadIdx.x];
      pipe.consumer_release();
      __syncthreads();
    }
  }
}
KERNEL block_barrier(const int4* in, int4* out) {
  using barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ int4 part[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier ready;
  cg::thread_block block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&ready, block.size());
  block.sync();
  for (int k = 0; k < 3; k++) {
    const int4* from = in + (blockIdx.x * 3 + k) * 256;
    if (k == 0) cuda::memcpy_async(block, part, from, cuda::aligned_size_t<16>(4096), ready);
    else for (int j = threadIdx.x; j < 256; j += blockDim.x) cuda::memcpy_async(part + j, from + j, sizeof(int4), ready);
    ready.arrive_and_wait();
    for (int j = threadIdx.x; j < 256; j += blockDim.x) out[(blockIdx.x * 3 + k) * 256 + j] = part[j * 37 & 255];
    block.sync();
  }
}
