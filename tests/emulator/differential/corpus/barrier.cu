// Barriers of blocks: plain, counted, named, reducing; and what needs them.
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL extern "C" __global__ void

KERNEL barrier_reduce(const float* x, float* out) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = x[I];
  __syncthreads();
  for (int k = 64; k > 0; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
  out[I] = s[0];
}
KERNEL barrier_scan(const int* x, int* out) {
  __shared__ int s[2][128];
  int t = threadIdx.x, from = 0;
  s[0][t] = x[I];
  for (int k = 1; k < 128; k <<= 1) {
    __syncthreads();
    s[1 - from][t] = s[from][t] + (t >= k ? s[from][t - k] : 0);
    from = 1 - from;
  }
  out[I] = s[from][t];
}
KERNEL barrier_counts(const int* x, int* out, int n) {
  int i = I, v = x[i];
  out[i] = __syncthreads_count(v & 1);
  out[n + i] = __syncthreads_and(v != 7) ? 1 : 0;
  out[2 * n + i] = __syncthreads_or(v == 31) ? 1 : 0;
  int r;
  asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, 0; bar.red.and.pred q, 2, 128, !p; selp.s32 %0, 1, 0, q; }" : "=r"(r) : "r"(v));
  out[3 * n + i] = r;
  asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 0; barrier.red.popc.u32 %0, 3, 128, p; }" : "=r"(r) : "r"(v));
  out[4 * n + i] = r;
}
// Two halves of a block at barriers of their own, different numbers of times.
KERNEL barrier_named(const int* x, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x, half = t / 64, u = t % 64;
  s[t] = x[I];
  if (half == 0) {
    for (int k = 0; k < 3; k++) { asm volatile("bar.sync 1, 64;" ::: "memory"); int v = s[(u + 1) % 64]; asm volatile("bar.sync 1, 64;" ::: "memory"); s[u] = v + k; }
  } else {
    for (int k = 0; k < 5; k++) { asm volatile("barrier.sync 2, 64;" ::: "memory"); int v = s[64 + (u + 3) % 64]; asm volatile("barrier.sync 2, 64;" ::: "memory"); s[64 + u] = v * 3; }
  }
  __syncthreads();
  out[I] = s[127 - t];
}
// Producers arrive and go on; consumers wait.
KERNEL barrier_arrive(const int* x, int* out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  if (t < 64) {
    s[t] = x[I] * 2;
    __threadfence_block();
    asm volatile("bar.arrive 1, 128;" ::: "memory");
    out[I] = 1;
  } else {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[I] = s[t - 64] + s[127 - t];
  }
}
KERNEL barrier_ping_pong(const int* x, int* out) {
  __shared__ int s[32];
  int t = threadIdx.x % 32, sum = 0;
  if (threadIdx.x < 32) {
    for (int k = 0; k < 4; k++) {
      s[t] = x[blockIdx.x * 128 + k * 32 + t];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    }
  } else if (threadIdx.x < 64) {
    for (int k = 0; k < 4; k++) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum = sum * 3 + s[31 - t];
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
  out[I] = sum;
}
KERNEL barrier_by_register(const int* x, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x, name = 1 + t / 32, count = 32;
  s[t] = x[I];
  asm volatile("barrier.sync %0, %1;" : : "r"(name), "r"(count) : "memory");
  out[I] = s[t ^ 31];
}
KERNEL barrier_after_exit(const int* x, int* out) {
  __shared__ int s[96];
  int t = threadIdx.x;
  if (t >= 96) return;
  s[t] = x[I];
  __syncthreads();
  out[I] = s[95 - t];
}
KERNEL barrier_in_branch(const int* x, int* out, int which) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = x[I];
  if (which > 3) { __syncthreads(); s[t] += s[t ^ 1]; __syncthreads(); }
  else { __syncthreads(); int v = s[t ^ 2]; __syncthreads(); s[t] = v; }
  for (int k = 0; k < which; k++) { __syncthreads(); int v = s[(t + k) & 127]; __syncthreads(); s[t] = v - k; }
  out[I] = s[t];
}
KERNEL block_sort(const unsigned* x, unsigned* out) {
  __shared__ unsigned s[128];
  unsigned t = threadIdx.x;
  s[t] = x[I];
  for (unsigned k = 2; k <= 128; k <<= 1)
    for (unsigned j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      unsigned p = t ^ j;
      if (p > t && ((t & k) == 0) == (s[t] > s[p])) { unsigned v = s[t]; s[t] = s[p]; s[p] = v; }
    }
  __syncthreads();
  out[I] = s[t];
}
KERNEL matrix_product(const float* a, const float* b, float* c, int n) {
  __shared__ float u[8][8], v[8][8];
  int r = blockIdx.y * 8 + threadIdx.y, q = blockIdx.x * 8 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 8) {
    u[threadIdx.y][threadIdx.x] = a[r * n + k + threadIdx.x];
    v[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + q];
    __syncthreads();
    for (int j = 0; j < 8; j++) sum += u[threadIdx.y][j] * v[j][threadIdx.x];
    __syncthreads();
  }
  c[r * n + q] = sum;
}
// Warps wait for the one before them through memory.
KERNEL warp_chain(const int* x, int* out) {
  __shared__ volatile int turn, sum;
  if (threadIdx.x == 0) { turn = 0; sum = 0; }
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    while (turn != threadIdx.x / 32) {}
    sum = sum * 3 + x[I];
    __threadfence_block();
    turn = turn + 1;
  }
  __syncthreads();
  out[I] = sum;
}
