// Kernels that are wrong.
extern "C" __global__ void shared_hole(int* out, int n) {
  __shared__ int s[64];
  if (threadIdx.x < n) s[threadIdx.x] = 2 * threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void local_hole(int* out, int n, int at) {
  int a[16];
  for (int k = 0; k < n; k++) a[k * 3 % 16] = k;
  out[threadIdx.x] = a[(at + threadIdx.x) % 16];
}
extern "C" __global__ void atomic_hole(int* out) {
  __shared__ int s[2];
  if (threadIdx.x == 0) s[0] = 0;
  __syncthreads();
  atomicAdd(&s[threadIdx.x & 1], 1);
  __syncthreads();
  out[threadIdx.x] = s[0];
}
struct Pair { int a, b; };
__device__ __noinline__ int first(Pair p) { return p.a; }
extern "C" __global__ void clean(int* out) {
  __shared__ int s[32];
  extern __shared__ char more[];
  Pair p = {(int)threadIdx.x, 1};
  s[threadIdx.x] = first(p);
  more[threadIdx.x] = 3;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x ^ 1] + more[threadIdx.x ^ 2];
}
extern "C" __global__ void half_way(int* out) {
  if (threadIdx.x < 20) {
    __syncthreads();  // not by all
    out[threadIdx.x] = 1;
  } else {
    while (true) asm volatile("barrier.sync 3;");
  }
}
extern "C" __global__ void missing_lanes(int* out) {
  int lane = threadIdx.x & 31;
  if (lane < 8) out[lane] = __shfl_sync(0xffffffffu, lane, 0);
  else __syncthreads();
}

struct Padded { char tag; double value; };
extern "C" __global__ void padding(Padded* out, int* sum, int as_bytes) {
  __shared__ Padded s[32];
  Padded& mine = s[threadIdx.x];
  mine.tag = 1;
  mine.value = threadIdx.x;
  __syncthreads();
  if (!as_bytes) { out[threadIdx.x] = s[threadIdx.x ^ 1]; return; }
  int total = 0;
  for (int k = 0; k < 16; k++) total += ((volatile char*)&mine)[k];
  sum[threadIdx.x] = total;
}

struct Tail { int a; double b; short c[3]; };
__device__ __noinline__ Tail make(int k) { return {k, 1.0, {1, 2, 3}}; }
extern "C" __global__ void tail(Tail* out) { out[threadIdx.x] = make(threadIdx.x); }
