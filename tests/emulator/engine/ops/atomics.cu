// Locks, loops around atomicCAS, and queues: threads that wait for each other through memory.
#include <cuda/atomic>

__device__ float atomic_max(float* at, float value) {
  int* bits = (int*)at;
  int old = *bits, assumed;
  do {
    assumed = old;
    if (__int_as_float(assumed) >= value) break;
    old = atomicCAS(bits, assumed, __float_as_int(value));
  } while (assumed != old);
  return __int_as_float(old);
}
extern "C" __global__ void maximum(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomic_max(out, x[i]);
}

// The addition of doubles from before there was one.
extern "C" __global__ void add_by_swaps(const double* x, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long* bits = (unsigned long long*)out;
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(x[i] + __longlong_as_double(assumed)));
  } while (assumed != old);
}

// Every thread takes the lock: within the loop, so that the one that has it can go on.
extern "C" __global__ void lock_in_loop(int* lock, int* count) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int*)count = *(volatile int*)count + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
// One thread of each block takes it, by a loop that does nothing but wait.
extern "C" __global__ void lock_of_blocks(int* lock, int* count) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    *(volatile int*)count = *(volatile int*)count + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}
// Every thread, by a loop that waits before it enters: needs threads of a warp that go on alone.
extern "C" __global__ void lock_before(int* lock, int* count) {
#if __CUDA_ARCH__ >= 700
  unsigned wait = 8;
  while (atomicExch(lock, 1) != 0) { __nanosleep(wait); if (wait < 256) wait *= 2; }
  *(volatile int*)count = *(volatile int*)count + 1;
  __threadfence();
  atomicExch(lock, 0);
#endif
}
extern "C" __global__ void tickets(unsigned* next, volatile unsigned* serving, unsigned* order) {
  unsigned mine = atomicAdd(next, 1u);
  while (*serving != mine) {}
  order[mine] = blockIdx.x * blockDim.x + threadIdx.x;
  __threadfence();
  *serving = mine + 1;
}
// The last block of the grid sums what all blocks left.
extern "C" __global__ void last_block(const int* x, volatile int* partial, unsigned* arrived, int* out) {
  __shared__ int sum;
  __shared__ bool last;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int total = 0;
    for (int b = 0; b < gridDim.x; b++) total += partial[b];
    *out = total;
  }
}
// The first half of a warp waits for the second half.
extern "C" __global__ void flag_in_warp(volatile int* flag, int* out) {
  int i = threadIdx.x;
  if (i < 16) { while (*flag == 0) {} out[i] = *flag; }
  else { if (i == 20) { __threadfence(); *flag = 5; } out[i] = 1; }
}
// Each block waits for the one before it.
extern "C" __global__ void chained(cuda::atomic<int, cuda::thread_scope_device>* turn, int* out) {
  if (threadIdx.x == 0) {
    while (turn->load(cuda::memory_order_acquire) != (int)blockIdx.x) {}
    out[blockIdx.x] = turn->load();
    turn->fetch_add(1, cuda::memory_order_release);
  }
}
extern "C" __global__ void compact(const int* x, int n, int* out, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0) out[atomicAdd(count, 1)] = x[i];
}
extern "C" __global__ void push(int* head, int* next) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, old = *head;
  while (true) {
    next[i] = old;
    int seen = atomicCAS(head, old, i);
    if (seen == old) break;
    old = seen;
  }
}
#if CCCL_VERSION >= 3002000
struct alignas(16) Pair { long long sum, parity; };
extern "C" __global__ void pairs(Pair* at, const long long* x) {
  cuda::atomic_ref<Pair, cuda::thread_scope_device> ref(*at);
  Pair old = ref.load();
  while (!ref.compare_exchange_weak(old, Pair{old.sum + x[threadIdx.x], old.parity ^ x[threadIdx.x]})) {}
}
#endif
extern "C" __global__ void bytes(unsigned char* at, const unsigned char* x) {
  cuda::atomic_ref<unsigned char, cuda::thread_scope_block> ref(at[threadIdx.x & 7]);
  ref.fetch_add(x[threadIdx.x]);
}
extern "C" __global__ void wait_for(int* at, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ref(*at);
  if (threadIdx.x == 40) { ref.store(7); ref.notify_all(); } else { ref.wait(0); }
  out[threadIdx.x] = ref.load();
}
