// The kernels that the emulator must run from NVRTC's PTX, whatever the dialect.

template <typename T> __device__ void block_reduce(const T* x, T* out, int n) {
  extern __shared__ unsigned char raw[];
  T* s = (T*)raw;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : T(0);
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, s[0]);
}
extern "C" __global__ void reduce_f32(const float* x, float* out, int n) { block_reduce(x, out, n); }
extern "C" __global__ void reduce_f64(const double* x, double* out, int n) { block_reduce(x, out, n); }

extern "C" __global__ void saxpy(float a, const float* x, const float* y, float* out, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) out[i] = a * x[i] + y[i];
}

#define T 16
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int n) {
  __shared__ float a[T][T], b[T][T];
  int r = blockIdx.y * T + threadIdx.y, c = blockIdx.x * T + threadIdx.x;
  float acc = 0;
  for (int k = 0; k < n / T; k++) {
    a[threadIdx.y][threadIdx.x] = A[r * n + k * T + threadIdx.x];
    b[threadIdx.y][threadIdx.x] = B[(k * T + threadIdx.y) * n + c];
    __syncthreads();
    for (int j = 0; j < T; j++) acc += a[threadIdx.y][j] * b[j][threadIdx.x];
    __syncthreads();
  }
  C[r * n + c] = acc;
}

template <typename V, int N> __global__ void scale(V* x, V by) {
  for (int k = 0; k < N; k++) x[threadIdx.x * N + k] *= by;
}
template __global__ void scale<float, 3>(float*, float);

extern "C" __global__ void mandelbrot(int* out, int w, int h, int limit) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float cr = -2.f + 3.f * x / w, ci = -1.5f + 3.f * y / h, zr = 0, zi = 0;
  int k = 0;
  while (k < limit && zr * zr + zi * zi < 4.f) {
    float t = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = t;
    k++;
  }
  out[y * w + x] = k;
}

extern "C" __global__ void histogram(const unsigned char* d, int n, unsigned* bins) {
  __shared__ unsigned s[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&s[d[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], s[i]);
}

struct Record { double weight; int value[3]; char tag; float4 quad; };
__constant__ float table[4] = {1.f, 2.f, 3.f};
__device__ int counter = 7;
__device__ int* where = &counter;
typedef int (*Function)(int, Record);
__device__ __noinline__ int multiply(int a, Record r) { return a * r.value[a % 3]; }
__device__ __noinline__ int add(int a, Record r) { return a + r.value[a % 3]; }
__device__ Function functions[2] = {multiply, add};
__device__ __noinline__ int recurse(int n) { return n < 2 ? 1 : n * recurse(n - 1) + n; }
__device__ __noinline__ Record make(int n) {
  Record r;
  r.weight = n; r.value[0] = n; r.value[1] = 2; r.value[2] = n; r.tag = 3;
  r.quad = make_float4(n, 1, 2, 3);
  return r;
}
extern "C" __global__ void calls(Record r, int* out, const float4* v, int n) {
  __shared__ float kept[32];
  int i = threadIdx.x;
  float4 q = v[i];
  kept[i % 32] = q.x;
  __syncthreads();
  Record m = make(i);
  out[2 * i] = functions[i % 2](i, r) + *where + (int)table[i % 4] + (int)kept[n] + recurse(i % 7);
  out[2 * i + 1] = m.value[n % 3] + (int)m.quad.x;
}

extern "C" __global__ void spin(int* lock, int* total) {
  while (atomicCAS(lock, 0, 1) != 0) { }
  __threadfence();
  *(volatile int*)total = *(volatile int*)total + threadIdx.x;
  __threadfence();
  atomicExch(lock, 0);
}

extern "C" __global__ void divergent_barrier(int* out) {
  if (threadIdx.x < 16) { asm volatile("barrier.sync 1, 64;"); out[threadIdx.x] = 1; }
  else { asm volatile("barrier.sync 2, 64;"); out[threadIdx.x] = 2; }
}

extern "C" __global__ void early_exit(int* out, int n) {
  if ((int)threadIdx.x >= n) return;
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[n - 1 - threadIdx.x];
}

extern "C" __global__ void forever(int* out) { while (true) { *(volatile int*)out = 1; } }

extern "C" __global__ void write_at(int* out, long long index) { out[index] = threadIdx.x; }

extern "C" __global__ void unknown(int* out) {
  asm volatile("tcgen05.shift.cta_group::1.down [%0];" :: "r"(0));
  out[0] = 1;
}
