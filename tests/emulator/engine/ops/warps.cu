// Kernels of warps, barriers and runtime calls as people write them, without headers.
#define FULL 0xffffffffu
typedef unsigned int u32;

extern "C" __global__ void aggregated_count(const int* x, int n, int* count, int* where) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] % 3 == 0) {
    u32 active = __activemask();
    int lane = threadIdx.x & 31, leader = __ffs(active) - 1, base;
    if (lane == leader) base = atomicAdd(count, __popc(active));
    base = __shfl_sync(active, base, leader);
    where[base + __popc(active & ((1u << lane) - 1))] = i;
  }
}

extern "C" __global__ void warp_scan(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  int v = i < n ? x[i] : 0;
  for (int d = 1; d < 32; d <<= 1) {
    int w = __shfl_up_sync(FULL, v, d);
    if (lane >= d) v += w;
  }
  if (i < n) out[i] = v;
}

extern "C" __global__ void bitonic(float* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  float v = x[i];
  for (int k = 2; k <= 32; k <<= 1)
    for (int j = k >> 1; j; j >>= 1) {
      float w = __shfl_xor_sync(FULL, v, j);
      bool up = !(lane & k) || k == 32, low = !(lane & j);
      v = (up == low) ? fminf(v, w) : fmaxf(v, w);
    }
  x[i] = v;
}

extern "C" __global__ void block_scan(const int* x, int* out, int n) {
  __shared__ int sums[32];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, lane = t & 31, warp = t >> 5;
  int v = i < n ? x[i] : 0;
  for (int d = 1; d < 32; d <<= 1) {
    int w = __shfl_up_sync(FULL, v, d);
    if (lane >= d) v += w;
  }
  if (lane == 31) sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int s = lane < (blockDim.x >> 5) ? sums[lane] : 0;
    for (int d = 1; d < 32; d <<= 1) {
      int w = __shfl_up_sync(FULL, s, d);
      if (lane >= d) s += w;
    }
    sums[lane] = s;
  }
  __syncthreads();
  if (i < n) out[i] = v + (warp ? sums[warp - 1] : 0);
}

extern "C" __global__ void segmented_sum(const double* x, double* out, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double v = x[i];
  for (int d = width / 2; d; d >>= 1) v += __shfl_down_sync(FULL, v, d, width);
  out[i] = __shfl_sync(FULL, v, 0, width);
}

#if __CUDA_ARCH__ >= 700
extern "C" __global__ void match_histogram(const int* x, int n, int* bins, u32* peers) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  u32 here = __activemask();
  u32 same = __match_any_sync(here, x[i]);
  if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(&bins[x[i]], __popc(same));
  __syncwarp(same);
  int all;
  u32 together = __match_all_sync(same, (long long)x[i] << 33, &all);
  peers[i] = all && together == same ? __popc(together) : 0;
}
#endif

extern "C" __global__ void votes(const int* x, u32* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = x[i];
  u32 r = __ballot_sync(FULL, v & 1);
  r ^= __any_sync(FULL, v > 90) ? 0x10000 : 0;
  r ^= __all_sync(FULL, v > 3) ? 0x20000 : 0;
#if __CUDA_ARCH__ >= 800
  r += __reduce_add_sync(FULL, (u32)v) + __reduce_max_sync(FULL, v) * 7 + __reduce_xor_sync(FULL, (u32)v) * 3;
#else
  u32 a = v, x2 = v; int m = v;
  for (int d = 16; d; d >>= 1) {
    a += __shfl_xor_sync(FULL, a, d); x2 ^= __shfl_xor_sync(FULL, x2, d);
    m = max(m, __shfl_xor_sync(FULL, m, d));
  }
  r += a + m * 7 + x2 * 3;
#endif
  out[i] = r;
}

extern "C" __global__ void block_votes(const int* x, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int c = __syncthreads_count(x[i] & 1), a = __syncthreads_and(x[i] < 99), o = __syncthreads_or(x[i] == 7);
  if (threadIdx.x & 32) c += 1000 * __syncthreads_count(x[i] & 2);
  else c += 1000 * __syncthreads_count(x[i] & 4);
  out[i] = c * 4 + (a ? 2 : 0) + (o ? 1 : 0);
}

// One warp produces, the others consume; a ring of two slots, a full and an empty barrier each.
extern "C" __global__ void pipeline(const int* x, int* out, int rounds) {
  __shared__ int slot[2][32];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, threads = blockDim.x;
  if (warp == 0) {
    for (int r = 0; r < rounds; r++) {
      int s = r & 1;
      if (r >= 2) asm volatile("barrier.sync %0, %1;" ::"r"(3 + s), "r"(threads) : "memory");
      slot[s][lane] = x[r * 32 + lane];
      asm volatile("barrier.arrive %0, %1;" ::"r"(1 + s), "r"(threads) : "memory");
    }
  } else {
    int sum = 0;
    for (int r = 0; r < rounds; r++) {
      int s = r & 1;
      asm volatile("barrier.sync %0, %1;" ::"r"(1 + s), "r"(threads) : "memory");
      sum += slot[s][(lane + warp) & 31] * (r + 1);
      if (r + 2 < rounds)
        asm volatile("barrier.arrive %0, %1;" ::"r"(3 + s), "r"(threads) : "memory");
    }
    out[threadIdx.x - 32] = sum;
  }
}

__device__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void recursion(int* out) { out[threadIdx.x] = ackermann(threadIdx.x & 1, threadIdx.x >> 2); }

struct Shape { __device__ virtual float area(float) const = 0; };
struct Square : Shape { __device__ float area(float s) const override { return s * s; } };
struct Circle : Shape { float k; __device__ Circle(float k) : k(k) {} __device__ float area(float s) const override { return k * s; } };
extern "C" __global__ void virtuals(const float* x, float* out, int n) {
  int i = threadIdx.x;
  Shape* p;
  if (i % 3) p = new Square; else p = new Circle(3.f);
  if (i < n) out[i] = p->area(x[i]);
  delete p;
}

__device__ int twice(int x) { return 2 * x; }
__device__ int negate(int x) { return -x; }
__device__ int (*const table[2])(int) = {twice, negate};
extern "C" __global__ void pointers(int* out) { out[threadIdx.x] = table[threadIdx.x % 2](threadIdx.x + 5); }

extern "C" __global__ void lists(int* out, int n) {
  struct Node { int v; Node* next; };
  Node* head = nullptr;
  for (int k = 0; k <= (int)threadIdx.x % n; k++) {
    Node* f = (Node*)malloc(sizeof(Node));
    f->v = k * k; f->next = head; head = f;
  }
  int s = 0;
  while (head) { Node* f = head; s += f->v; head = f->next; free(f); }
  out[threadIdx.x] = s;
}

extern "C" __global__ void ticket(u32* now, u32* next, int* order) {
  if ((threadIdx.x & 31) == 0) {
    u32 mine = atomicAdd(next, 1);
    u32 wait = 8;
    while (atomicAdd(now, 0) != mine) {
#if __CUDA_ARCH__ >= 700
      __nanosleep(wait); wait = wait < 256 ? wait * 2 : 256;
#endif
    }
    order[mine] = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    __threadfence();
    atomicAdd(now, 1);
  }
}

extern "C" __global__ void places(u32* out) {
  u32 lane, warp, eq, lt, le, gt, ge, sm, nsm;
  asm volatile("mov.u32 %0, %laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %warpid;" : "=r"(warp));
  asm volatile("mov.u32 %0, %lanemask_eq;" : "=r"(eq));
  asm volatile("mov.u32 %0, %lanemask_lt;" : "=r"(lt));
  asm volatile("mov.u32 %0, %lanemask_le;" : "=r"(le));
  asm volatile("mov.u32 %0, %lanemask_gt;" : "=r"(gt));
  asm volatile("mov.u32 %0, %lanemask_ge;" : "=r"(ge));
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %nsmid;" : "=r"(nsm));
  long long c = clock64();
  unsigned long long g;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(g));
  u32 t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  bool masks = eq == 1u << lane && lt == eq - 1 && le == (lt | eq) && gt == ~le && ge == ~lt;
  out[t] = lane + 100 * warp + (masks && sm < nsm && clock64() >= c && clock() && g ? 10000 : 0);
}
