// Kernels that are wrong only in some orders, each with its corrected twin.
// Blocks of 128 threads; x has one int for each thread, out as many, counters start at zero.

#include <cuda_pipeline_primitives.h>

#define KERNEL extern "C" __global__ void

// Missing __syncthreads between filling a tile and reading it.
template <bool RIGHT> __device__ void tile(const int* x, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t] = x[i];
  if (RIGHT) __syncthreads();
  out[i] = s[127 - t];
}
KERNEL tile_faulty(const int* x, int* out, unsigned*) { tile<false>(x, out); }
KERNEL tile_right(const int* x, int* out, unsigned*) { tile<true>(x, out); }

// One buffer in turn: the next tile is written while other warps still read the last one.
template <bool RIGHT> __device__ void buffers(const int* x, int* out) {
  __shared__ int s[2][128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t, sum = 0;
  for (int k = 0; k < 6; k++) {
    int b = RIGHT ? k % 2 : 0;
    s[b][t] = x[i] + k;
    __syncthreads();
    sum += (k + 1) * s[b][(t + 37) % 128];
  }
  out[i] = sum;
}
KERNEL buffers_faulty(const int* x, int* out, unsigned*) { buffers<false>(x, out); }
KERNEL buffers_right(const int* x, int* out, unsigned*) { buffers<true>(x, out); }

// A reduction that takes the lanes of a warp to run together.
template <bool RIGHT> __device__ void warp(const int* x, int* out) {
  __shared__ volatile int s[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t] = x[i];
  for (int k = 64; k > 16; k >>= 1) {
    __syncthreads();
    if (t < k) s[t] += s[t + k];
  }
  __syncthreads();
  out[i] = 0;
  if (t < 32) {
    for (int k = 16; k > 0; k >>= 1) {
      int sum = s[t] + s[t + k];
      if (RIGHT) __syncwarp();
      s[t] = sum;
      if (RIGHT) __syncwarp();
    }
    if (t == 0) out[i] = s[0];
  }
}
KERNEL warp_faulty(const int* x, int* out, unsigned*) { warp<false>(x, out); }
KERNEL warp_right(const int* x, int* out, unsigned*) { warp<true>(x, out); }

// Blocks that take those of lower numbers to be done before them.
KERNEL order_faulty(const int* x, int* out, unsigned*) {
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  out[i] = x[i] + (blockIdx.x ? ((volatile int*)out)[i - 128] : 0);
}
KERNEL order_right(const int* x, int* out, unsigned*) {
  int t = threadIdx.x, i = blockIdx.x * 128 + t, sum = 0;
  for (int k = t; k <= i; k += 128) sum += x[k];
  out[i] = sum;
}

// Copies to shared memory that nobody waits for before they are read.
template <bool RIGHT> __device__ void group(const int* x, int* out) {
  __shared__ int s[2][128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  __pipeline_memcpy_async(&s[0][t], x + i, 4);
  __pipeline_commit();
  __pipeline_memcpy_async(&s[1][t], x + blockIdx.x * 128 + 127 - t, 4);
  __pipeline_commit();
  __pipeline_wait_prior(RIGHT ? 0 : 1);
  __syncthreads();
  out[i] = s[0][(t + 1) % 128] + 1000 * s[1][(t + 1) % 128];
}
KERNEL group_faulty(const int* x, int* out, unsigned*) { group<false>(x, out); }
KERNEL group_right(const int* x, int* out, unsigned*) { group<true>(x, out); }

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void wait_phase(void* bar, unsigned parity) {
  asm volatile(
      "{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra WAIT; }"
      :: "r"(shared_address(bar)), "r"(parity) : "memory");
}

// A bulk copy whose phase is mistaken: of an odd parity, every fresh barrier has passed one.
template <bool RIGHT> __device__ void phase(const int* x, int* out) {
  __shared__ alignas(16) int s[128];
  __shared__ alignas(8) unsigned long long bar;
  int t = threadIdx.x, i = blockIdx.x * 128 + t, sum = 0;
  if (t == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(shared_address(&bar)) : "memory");
  }
  __syncthreads();
  for (unsigned k = 0; k < 3; k++) {
    if (t == 0) {
      asm volatile(
          "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], 512; }"
          :: "r"(shared_address(&bar)) : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];"
          :: "r"(shared_address(s)), "l"(x + (blockIdx.x + k) % gridDim.x * 128),
             "r"(shared_address(&bar)) : "memory");
    }
    wait_phase(&bar, RIGHT ? k % 2 : (k + 1) % 2);
    sum = 3 * sum + s[127 - t];
    __syncthreads();
  }
  out[i] = sum;
}
KERNEL phase_faulty(const int* x, int* out, unsigned*) { phase<false>(x, out); }
KERNEL phase_right(const int* x, int* out, unsigned*) { phase<true>(x, out); }

// Shared memory that is written again before a bulk copy has read it.
template <bool RIGHT> __device__ void source(const int* x, int* out) {
  __shared__ alignas(16) int s[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t] = x[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;"
                 :: "l"(out + blockIdx.x * 128), "r"(shared_address(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    if (RIGHT) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  __syncthreads();
  s[t] = -1;
  __syncthreads();
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
KERNEL source_faulty(const int* x, int* out, unsigned*) { source<false>(x, out); }
KERNEL source_right(const int* x, int* out, unsigned*) { source<true>(x, out); }

// The last block to finish adds up what all have written.
template <bool RIGHT> __device__ void last(const int* x, int* out, unsigned* counters) {
  __shared__ bool is_last;
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  out[i] = 2 * x[i];
  if (RIGHT) __threadfence();
  __syncthreads();
  if (t == 0) is_last = atomicAdd(counters, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  int sum = 0;
  for (int k = 0; k < gridDim.x; k++) sum += ((volatile int*)out)[k * 128 + t];
  out[gridDim.x * 128 + t] = sum;
}
KERNEL last_faulty(const int* x, int* out, unsigned* c) { last<false>(x, out, c); }
KERNEL last_right(const int* x, int* out, unsigned* c) { last<true>(x, out, c); }

// Each block waits for a flag of the one before it, and adds to what that one has written.
template <bool RIGHT> __device__ void flag(const int* x, int* out, volatile unsigned* flags) {
  int t = threadIdx.x, b = blockIdx.x, i = b * 128 + t, before = 0;
  if (b > 0) {
    if (t == 0) while (flags[b - 1] == 0) { }
    __syncthreads();
    __threadfence();
    before = ((volatile int*)out)[i - 128];
  }
  out[i] = before + x[i];
  if (RIGHT) __threadfence();
  __syncthreads();
  if (t == 0) flags[b] = 1;
}
KERNEL flag_faulty(const int* x, int* out, unsigned* c) { flag<false>(x, out, c); }
KERNEL flag_right(const int* x, int* out, unsigned* c) { flag<true>(x, out, c); }
