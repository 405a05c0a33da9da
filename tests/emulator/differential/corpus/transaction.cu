// Barriers in shared memory, pipelines, and copies that they wait for.

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cuda/semaphore>
#include <cuda_awbarrier_primitives.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>

#pragma nv_diag_suppress static_var_with_dynamic_init  // init() comes later

namespace cg = cooperative_groups;
typedef cuda::barrier<cuda::thread_scope_block> Barrier;
typedef unsigned int u32;
typedef unsigned long long u64;

#define AT (blockIdx.x * blockDim.x + threadIdx.x)

__device__ u32 mix(u32 a, u32 b) { return a * 2654435761u + (b ^ (a >> 7)); }

// The value of another thread, in rounds; each round waits with a token or at once.
extern "C" __global__ void tokens(const u32* x, u32* out) {
  __shared__ Barrier bar;
  __shared__ u32 s[128];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  u32 v = x[AT];
  for (u32 k = 1; k < 6; k++) {
    s[threadIdx.x] = v;
    auto token = bar.arrive();
    u32 own = mix(v, k);
    bar.wait(std::move(token));
    v = own + s[(threadIdx.x + k) % blockDim.x];
    bar.arrive_and_wait();
  }
  out[AT] = v;
}

// Threads leave one after another; those who stay count on fewer.
extern "C" __global__ void drops(const u32* x, u32* out) {
  __shared__ Barrier bar;
  __shared__ u32 sum[8];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  if (threadIdx.x < 8) sum[threadIdx.x] = 0;
  __syncthreads();
  u32 last = threadIdx.x % 7, v = x[AT];
  for (u32 k = 0; k < last; k++) {
    atomicAdd(&sum[k], v + k);
    bar.arrive_and_wait();
    v = mix(v, sum[k]);
  }
  atomicAdd(&sum[last], v);
  bar.arrive_and_drop();
  out[AT] = v;
}

extern "C" __global__ void weights(const u32* x, u32* out) {
  __shared__ Barrier bar;
  __shared__ u32 s[128];
  if (threadIdx.x == 0) init(&bar, 3 * blockDim.x);
  __syncthreads();
  s[threadIdx.x] = x[AT];
  auto token = bar.arrive(threadIdx.x % 2 ? 1 : 5);
  bar.wait(std::move(token));
  out[AT] = s[threadIdx.x ^ 33];
}

// Half of the warps make values, the other half takes them, through two buffers.
extern "C" __global__ void makers(const u32* x, u32* out) {
  __shared__ Barrier bar[4];  // ready for 0 and 1, filled for 0 and 1
  __shared__ u32 buffer[2][64];
  if (threadIdx.x < 4) init(bar + threadIdx.x, blockDim.x);
  __syncthreads();
  u32 lane = threadIdx.x % 64, v = x[AT];
  bool makes = threadIdx.x < 64;
  if (!makes) {
    bar[0].arrive();
    bar[1].arrive();
  }
  for (u32 k = 0; k < 9; k++) {
    if (makes) {
      bar[k % 2].arrive_and_wait();
      v = mix(v, k);
      buffer[k % 2][lane] = v;
      bar[2 + k % 2].arrive();
    } else {
      bar[2 + k % 2].arrive_and_wait();
      v = mix(v, buffer[k % 2][(lane + k) % 64]);
      bar[k % 2].arrive();
    }
  }
  out[AT] = v;
}

extern "C" __global__ void parities(const u32* x, u32* out) {
  __shared__ Barrier bar;
  __shared__ u32 s[128];
  if (threadIdx.x == 0) init(&bar, 32);
  __syncthreads();
  u32 v = x[AT];
  for (u32 k = 0; k < 4; k++) {  // warp k writes for all
    if (threadIdx.x / 32 == k) {
      s[threadIdx.x % 32] = v;
      bar.arrive();
    }
    bar.wait_parity(k & 1);
    v = mix(v, s[(threadIdx.x + k) % 32]);
    __syncthreads();
  }
  out[AT] = v;
}

// A wait that must end in vain, and one that must not.
extern "C" __global__ void timed(const u32* x, u32* out) {
  __shared__ Barrier bar[128];
  Barrier* mine = bar + threadIdx.x;
  init(mine, 2);
  auto token = mine->arrive();
  bool early = mine->try_wait_for(Barrier::arrival_token(token), cuda::std::chrono::microseconds(3));
  mine->arrive();
  bool late = mine->try_wait_for(std::move(token), cuda::std::chrono::microseconds(3));
  bool parity = mine->try_wait_parity_for(true, cuda::std::chrono::microseconds(3));
  out[AT] = x[AT] * 8 + early + 2 * late + 4 * parity;
}

extern "C" __global__ void block_copies(const u32* x, u32* out) {
  __shared__ Barrier bar;
  __shared__ alignas(16) u32 s[3 * 128 + 8];
  auto block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  block.sync();
  const u32* mine = x + blockIdx.x * blockDim.x;
  cuda::memcpy_async(block, s, mine, cuda::aligned_size_t<16>(512), bar);
  cuda::memcpy_async(block, s + 128, mine + 1, sizeof(u32) * 120, bar);  // not aligned to 16
  cuda::memcpy_async(s + 256 + threadIdx.x, mine + threadIdx.x, sizeof(u32), bar);
  bar.arrive_and_wait();
  out[AT] = mix(s[127 - threadIdx.x], mix(s[128 + threadIdx.x % 120], s[256 + (threadIdx.x ^ 1)]));
}

template <int STAGES>
__device__ u32 staged(const u32* x, cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES>* state,
                      u32* buffer) {
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, state);
  u32 sum = 0, next = 0;
  for (u32 k = 0; k < 8; k++) {
    for (; next < 8 && next < k + STAGES; next++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, buffer + next % STAGES * 128, x + (next * 128 + 37 * next) % 128,
                         cuda::aligned_size_t<4>(512), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum = mix(sum, buffer[k % STAGES * 128 + (threadIdx.x + k) % 128]);
    pipe.consumer_release();
  }
  return sum;
}

extern "C" __global__ void stages(const u32* x, u32* out) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> two;
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 3> three;
  __shared__ alignas(16) u32 buffer[3 * 128];
  u32 a = staged<2>(x, &two, buffer);
  __syncthreads();
  out[AT] = mix(a, staged<3>(x, &three, buffer));
}

// Two warps copy, two compute.
extern "C" __global__ void specialised(const u32* x, u32* out) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) u32 buffer[2][64];
  auto block = cg::this_thread_block();
  auto role = threadIdx.x < 64 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  u32 lane = threadIdx.x % 64, sum = 0;
  for (u32 k = 0; k < 7; k++) {
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      cuda::memcpy_async(&buffer[k % 2][lane], x + (lane + 17 * k) % 256, sizeof(u32), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum = mix(sum, buffer[k % 2][63 - lane]);
      pipe.consumer_release();
    }
  }
  out[AT] = sum;
}

extern "C" __global__ void own_pipeline(const u32* x, u32* out) {
  __shared__ alignas(16) u32 buffer[4][128];
  auto pipe = cuda::make_pipeline();
  u32 sum = 0;
  for (u32 k = 0; k < 10; k++) {
    pipe.producer_acquire();
    cuda::memcpy_async(&buffer[k % 4][threadIdx.x], x + (threadIdx.x + 19 * k) % 256, sizeof(u32), pipe);
    pipe.producer_commit();
    if (k >= 2) {
      cuda::pipeline_consumer_wait_prior<2>(pipe);
      sum = mix(sum, buffer[(k - 2) % 4][threadIdx.x]);
      pipe.consumer_release();
    }
  }
  out[AT] = sum;
}

extern "C" __global__ void group_copies(const u32* x, u32* out) {
  __shared__ alignas(16) u32 s[256];
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  u32 w = threadIdx.x / 32;
  cg::memcpy_async(warp, s + 32 * w, x + 32 * w, sizeof(u32) * 32);
  cg::memcpy_async(warp, s + 128 + 32 * w, x + 64 + 32 * w, sizeof(u32) * 32);
  cg::wait_prior<1>(warp);
  u32 v = s[threadIdx.x ^ 5];
  cg::wait(warp);
  out[AT] = mix(v, s[128 + (threadIdx.x ^ 9)]);
}

extern "C" __global__ void primitives(const u32* x, u32* out) {
  __shared__ __mbarrier_t bar;
  __shared__ alignas(16) u32 s[256];
  if (threadIdx.x == 0) __mbarrier_init(&bar, blockDim.x);
  __syncthreads();
  __pipeline_memcpy_async(s + threadIdx.x, x + threadIdx.x, 4);
  __pipeline_memcpy_async(s + 128 + threadIdx.x, x + threadIdx.x + 64, 4, 4);  // all zeros
  __pipeline_arrive_on(&bar);
  __mbarrier_token_t token = __mbarrier_arrive(&bar);
  while (!__mbarrier_test_wait(&bar, token)) {}
  u32 v = mix(s[127 - threadIdx.x], s[128 + threadIdx.x]);
  __pipeline_memcpy_async(s + 128 + threadIdx.x, x + 255 - threadIdx.x, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[AT] = mix(v, s[128 + threadIdx.x]);
}

struct Turn {
  u32* count;
  __device__ void operator()() { *count = *count * 3 + 1; }
};

extern "C" __global__ void completions(const u32* x, u32* out) {
  typedef cuda::barrier<cuda::thread_scope_block, Turn> Turning;
  __shared__ alignas(Turning) char place[sizeof(Turning)];
  __shared__ u32 count;
  Turning& bar = *reinterpret_cast<Turning*>(place);
  if (threadIdx.x == 0) {
    count = 5;
    new (place) Turning(blockDim.x, Turn{&count});
  }
  __syncthreads();
  u32 v = x[AT];
  for (int k = 0; k < 4; k++) {
    bar.arrive_and_wait();
    v = mix(v, count);
    bar.arrive_and_wait();
  }
  out[AT] = v;
}

extern "C" __global__ void latches(const u32* x, u32* out) {
  typedef cuda::latch<cuda::thread_scope_block> Latch;
  typedef cuda::binary_semaphore<cuda::thread_scope_block> Lock;
  __shared__ alignas(16) char places[2][64];
  __shared__ u32 s[128], sum;
  Latch& latch = *reinterpret_cast<Latch*>(places[0]);
  Lock& lock = *reinterpret_cast<Lock*>(places[1]);
  if (threadIdx.x == 0) {
    new (places[0]) Latch(64);
    new (places[1]) Lock(1);
    sum = 0;
  }
  __syncthreads();
  s[threadIdx.x] = x[AT];
  if (threadIdx.x >= 64) latch.count_down();
  latch.wait();
  u32 v = s[64 + threadIdx.x % 64];
  // One thread of each warp: a GPU may let a lane wait for ever for a lock that another lane of its
  // warp holds, if the compiler joins the two before the release.
  if (threadIdx.x % 32 == 0) {
    lock.acquire();
    sum = sum + v;
    lock.release();
  }
  __syncthreads();
  out[AT] = sum;
}

// Warps wait for a flag that the next one sets, asleep between looks.
extern "C" __global__ void sleepers(const u32* x, u32* out) {
  __shared__ volatile u32 turn;
  __shared__ volatile u32 value;
  if (threadIdx.x == 0) {
    turn = blockDim.x / 32;
    value = blockIdx.x;
  }
  __syncthreads();
  u32 warp = threadIdx.x / 32;
  while (turn != warp + 1) __nanosleep(100 << warp);
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    value = mix(value, x[AT]);
    __threadfence_block();
    turn = warp;
  }
  __syncthreads();
  out[AT] = value;
}

#if __CUDA_ARCH__ >= 900
namespace to = cuda::ptx;

__device__ void await_parity(u64* bar, u32 parity) {
  while (!to::mbarrier_try_wait_parity(bar, parity)) {}
}

__device__ u32 pending(u64 state) {
  u32 count;
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
  return count;
}

extern "C" __global__ void counts(const u32* x, u32* out) {
  __shared__ u64 all[128];
  u64* bar = all + threadIdx.x;
  u32 n = x[AT] % 5 + 4, v = 0;
  to::mbarrier_init(bar, n);
  u64 state = to::mbarrier_arrive_no_complete(bar, 2);
  v = mix(v, pending(state));
  to::mbarrier_expect_tx(to::sem_relaxed, to::scope_cta, to::space_shared, bar, n);
  state = to::mbarrier_arrive(bar, n - 2);
  v = mix(v, pending(state));
  v = mix(v, to::mbarrier_test_wait(bar, state));
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(
      (u32)__cvta_generic_to_shared(bar)), "r"(n) : "memory");
  v = mix(v, to::mbarrier_test_wait(bar, state));
  state = to::mbarrier_arrive_expect_tx(to::sem_release, to::scope_cta, to::space_shared, bar, 0);
  v = mix(v, pending(state));
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(
      (u32)__cvta_generic_to_shared(bar)), "r"(n - 1) : "memory");
  v = mix(v, pending(state));
  v = mix(v, to::mbarrier_test_wait(bar, state));
  state = to::mbarrier_arrive(bar);
  v = mix(v, pending(state));
  v = mix(v, to::mbarrier_test_wait_parity(bar, 0) + 2 * to::mbarrier_test_wait_parity(bar, 1));
  out[AT] = v;
}

extern "C" __global__ void bulk_in(const u32* x, u32* out) {
  __shared__ Barrier bar;
  __shared__ alignas(16) u32 s[256];
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(s, x + 64, cuda::aligned_size_t<16>(256), bar);
    cuda::device::memcpy_async_tx(s + 64, x, cuda::aligned_size_t<16>(768), bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, 1024);
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  out[AT] = mix(s[255 - threadIdx.x], s[threadIdx.x]);
}

extern "C" __global__ void bulk_out(const u32* x, u32* out) {
  __shared__ alignas(16) u32 s[128];
  s[127 - threadIdx.x] = mix(x[AT], threadIdx.x);
  to::fence_proxy_async(to::space_shared);
  __syncthreads();
  if (threadIdx.x < 4) {  // four copies of a quarter each
    u32 at = 32 * threadIdx.x;
    to::cp_async_bulk(to::space_global, to::space_shared, out + blockIdx.x * 128 + at, s + 96 - at, 128);
    to::cp_async_bulk_commit_group();
    to::cp_async_bulk_wait_group_read(to::n32_t<0>());
  }
}

extern "C" __global__ void bulk_ring(const u32* x, u32* out) {
  __shared__ alignas(8) u64 full[3], empty[3];
  __shared__ alignas(16) u32 s[3][64];
  if (threadIdx.x < 3) {
    to::mbarrier_init(full + threadIdx.x, 1);
    to::mbarrier_init(empty + threadIdx.x, 96);
  }
  to::fence_mbarrier_init(to::sem_release, to::scope_cluster);
  __syncthreads();
  u32 sum = 0;
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0)
      for (u32 k = 0; k < 8; k++) {
        await_parity(empty + k % 3, k / 3 + 1 & 1);
        to::mbarrier_arrive_expect_tx(to::sem_release, to::scope_cta, to::space_shared, full + k % 3, 256);
        to::cp_async_bulk(to::space_cluster, to::space_global, s[k % 3], x + 24 * k, 256, full + k % 3);
      }
  } else {
    for (u32 k = 0; k < 8; k++) {
      await_parity(full + k % 3, k / 3 & 1);
      sum = mix(sum, s[k % 3][(threadIdx.x + k) % 64]);
      to::mbarrier_arrive(empty + k % 3);
    }
  }
  out[AT] = sum;
}

// Each block adds to the same words of global memory; only what does not depend on order.
extern "C" __global__ void bulk_sums(const u32* x, u32* sums, int* least, u64* wide) {
  __shared__ alignas(16) u32 s[128];
  __shared__ alignas(16) u64 w[128];
  s[threadIdx.x] = x[AT];
  w[threadIdx.x] = (u64)x[AT] * 0x100000001ull;
  to::fence_proxy_async(to::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    to::cp_reduce_async_bulk(to::space_global, to::space_shared, to::op_add, sums, s, 512);
    to::cp_reduce_async_bulk(to::space_global, to::space_shared, to::op_xor_op, sums + 128, s, 512);
    to::cp_reduce_async_bulk(to::space_global, to::space_shared, to::op_min, least, (int*)s, 512);
    to::cp_reduce_async_bulk(to::space_global, to::space_shared, to::op_max, (u32*)least + 128, s, 512);
    to::cp_reduce_async_bulk(to::space_global, to::space_shared, to::op_add, wide, w, 1024);
    to::cp_async_bulk_commit_group();
    to::cp_async_bulk_wait_group(to::n32_t<0>());
  }
}

extern "C" __global__ void bulk_halves(const __half* x, __half* out) {
  __shared__ alignas(16) __half s[256];
  s[threadIdx.x] = x[2 * AT];
  s[threadIdx.x + 128] = x[2 * AT + 1];
  to::fence_proxy_async(to::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%0], [%1], %2;" ::"l"(
        __cvta_generic_to_global(out + 256 * blockIdx.x)), "r"((u32)__cvta_generic_to_shared(s)), "r"(512) : "memory");
    to::cp_async_bulk_commit_group();
    to::cp_async_bulk_wait_group(to::n32_t<0>());
  }
}

extern "C" __global__ void bulk_floats(const float* x, const double* y, float* sums, double* wide) {
  __shared__ alignas(16) float s[128];
  __shared__ alignas(16) double w[128];
  s[threadIdx.x] = x[AT];
  w[threadIdx.x] = y[AT];
  to::fence_proxy_async(to::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned at = blockIdx.x * blockDim.x;
    to::cp_reduce_async_bulk(to::space_global, to::space_shared, to::op_add, sums + at, s, 512);
    to::cp_reduce_async_bulk(to::space_global, to::space_shared, to::op_add, wide + at, w, 1024);
    to::cp_async_bulk_commit_group();
    to::cp_async_bulk_wait_group(to::n32_t<0>());
  }
}

// Each block of the cluster copies into the next one, which waits for the bytes.
extern "C" __global__ void neighbours(const u32* x, u32* out) {
  __shared__ alignas(8) u64 bar;
  __shared__ alignas(16) u32 mine[128], theirs[128];
  auto cluster = cg::this_cluster();
  mine[threadIdx.x] = mix(x[AT], threadIdx.x);
  theirs[threadIdx.x] = 7;
  if (threadIdx.x == 0) {
    to::mbarrier_init(&bar, 1);
    to::mbarrier_arrive_expect_tx(to::sem_release, to::scope_cta, to::space_shared, &bar, 768);
  }
  to::fence_proxy_async(to::space_shared);
  cluster.sync();
  if (threadIdx.x == 0) {
    u32 next = (cluster.block_rank() + 1) % cluster.num_blocks();
    u64* there = cluster.map_shared_rank(&bar, next);
    to::cp_async_bulk(to::space_cluster, to::space_shared, cluster.map_shared_rank(theirs, next), mine, 384, there);
    to::cp_async_bulk(to::space_cluster, to::space_shared, cluster.map_shared_rank(theirs, next) + 96, mine + 8, 128, there);
    to::cp_reduce_async_bulk(to::space_cluster, to::space_shared, to::op_add,
                             cluster.map_shared_rank(theirs, next), mine + 64, 256, there);
  }
  await_parity(&bar, 0);
  out[AT] = threadIdx.x < 64 ? 0 : theirs[threadIdx.x];  // below, a sum may come before the copy
  cluster.sync();
}

extern "C" __global__ void multicast(const u32* x, u32* out) {
  __shared__ alignas(8) u64 bar;
  __shared__ alignas(16) u32 s[128];
  auto cluster = cg::this_cluster();
  s[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    to::mbarrier_init(&bar, 1);
    to::mbarrier_arrive_expect_tx(to::sem_release, to::scope_cta, to::space_shared, &bar, 256);
  }
  to::fence_proxy_async(to::space_shared);
  cluster.sync();
  if (threadIdx.x == 0) {  // the first block sends to both
    u32 rank = cluster.block_rank();
    if (rank == 0)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                   " [%0], [%1], %2, [%3], %4;" ::"r"((u32)__cvta_generic_to_shared(s)),
                   "l"(__cvta_generic_to_global(x + 64 * blockIdx.x)), "r"(256),
                   "r"((u32)__cvta_generic_to_shared(&bar)), "h"((unsigned short)3) : "memory");
  }
  await_parity(&bar, 0);
  out[AT] = s[threadIdx.x];
  cluster.sync();
}

extern "C" __global__ void signals(const u32* x, u32* out) {
  __shared__ alignas(8) u64 bar;
  __shared__ alignas(16) u32 box[4 * 128], sums[8];
  auto cluster = cg::this_cluster();
  if (threadIdx.x < 8) sums[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    to::mbarrier_init(&bar, 1);
    to::mbarrier_arrive_expect_tx(to::sem_release, to::scope_cta, to::space_shared, &bar, 128 * 24);
  }
  cluster.sync();
  u32 other = cluster.block_rank() ^ 1, v = x[AT];
  u64* there = cluster.map_shared_rank(&bar, other);
  u32* to_box = cluster.map_shared_rank(box, other) + 4 * threadIdx.x;
  u32 two[2] = {v, mix(v, 2)};
  to::st_async(to_box, two, there);
  to::st_async((u64*)(to_box + 2), (u64)v << 20 | threadIdx.x, there);
  to::red_async(to::op_add, cluster.map_shared_rank(sums, other) + threadIdx.x % 8, v, there);
  to::red_async(to::op_add, cluster.map_shared_rank(sums, other) + threadIdx.x % 3, 1u, there);
  await_parity(&bar, 0);
  u32 r = mix(box[4 * (127 - threadIdx.x)], box[4 * threadIdx.x + 1]);
  r = mix(r, mix(box[4 * threadIdx.x + 2], box[4 * threadIdx.x + 3]));
  out[AT] = mix(r, sums[threadIdx.x % 8]);
  cluster.sync();
}

// Threads of all blocks arrive at the first one's barrier, and it answers.
extern "C" __global__ void far_arrivals(const u32* x, u32* out) {
  __shared__ alignas(8) u64 all_here, answer;
  __shared__ u32 total;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    to::mbarrier_init(&all_here, blockDim.x * cluster.num_blocks());
    to::mbarrier_init(&answer, 1);
    total = 0;
  }
  to::fence_mbarrier_init(to::sem_release, to::scope_cluster);
  cluster.sync();
  u32* sum = cluster.map_shared_rank(&total, 0);
  for (u32 k = 0; k < 3; k++) {
    atomicAdd(sum, x[AT] + k);
    u64* there = cluster.map_shared_rank(&all_here, 0);
    to::mbarrier_arrive(to::sem_release, to::scope_cluster, to::space_cluster, there);
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
      while (!to::mbarrier_try_wait_parity(to::sem_acquire, to::scope_cluster, &all_here, k & 1)) {}
      for (u32 r = 0; r < cluster.num_blocks(); r++)
        to::mbarrier_arrive(to::sem_release, to::scope_cluster, to::space_cluster, cluster.map_shared_rank(&answer, r));
    }
    while (!to::mbarrier_try_wait_parity(to::sem_acquire, to::scope_cluster, &answer, k & 1)) {}
    cluster.sync();
  }
  out[AT] = *sum;
  cluster.sync();
}

extern "C" __global__ void dependents(const u32* x, u32* out) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  out[AT] = x[AT] + 1;
  asm volatile("griddepcontrol.launch_dependents;");
}
#endif
