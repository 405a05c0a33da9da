// Usual code that leaves no array. `a`, `b` and `c` have 64 elements each, n is 64, a block 32 threads.
#define KERNEL(name) extern "C" __global__ void name(float* a, float* b, float* c, long by, int n)
KERNEL(stencil) { int i = threadIdx.x + 1; if (i < n - 1) b[i] = a[i-1] + a[i] + a[i+1]; }
KERNEL(two_streams) { for (int i = threadIdx.x; i < n; i += 32) { c[i] = a[i] + b[i];
  a[i] = c[i] * 2; b[i] = a[i]; } }
KERNEL(copy_down) { for (int i = n - 1 - threadIdx.x; i >= 0; i -= 32) b[n - 1 - i] = a[i]; }
KERNEL(unrolled) {
#pragma unroll 8
  for (int i = 0; i < 64; i++) c[i] = a[i] * b[63 - i]; }
KERNEL(nested) { for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) { float v = 0;
  for (int k = 0; k < 8; k++) v += a[i*8+k] * b[k*8+j]; c[i*8+j] = v; } }
struct P { float x, y; };
KERNEL(structs) { P* p = (P*)a; P* q = (P*)b; for (int i = threadIdx.x; i < n/2; i += 32) {
  q[i].x = p[i].y; q[i].y = p[i].x; } }
KERNEL(vectors) { float4* p = (float4*)a; float2* q = (float2*)b;
  for (int i = threadIdx.x; i < n/4; i += 32) { float4 v = p[i]; q[2*i] = {v.x, v.y};
  q[2*i+1] = {v.z, v.w}; } }
__device__ __noinline__ float get(const float* p, int i) { return p[i]; }
__device__ __noinline__ float* pick(float* p, float* q, int i) { return i & 1 ? p : q; }
KERNEL(calls) { for (int i = threadIdx.x; i < n; i += 32) pick(b, c, i)[i] = get(a, i); }
KERNEL(selects) { float* p = a; if (threadIdx.x > 3) p = b; if (threadIdx.x > 9) p = c;
  if (threadIdx.x == 20) p = nullptr; if (p) p[threadIdx.x] = 1; }
KERNEL(five) { float* p = a; for (int i = 0; i < n; i++) { p = p == a ? b : p == b ? c : a;
  p[threadIdx.x] += 1; } }
KERNEL(peel) { float* p = b; int lead = (int)(((16 - ((unsigned long long)p & 15)) & 15) / 4);
  for (int i = lead + threadIdx.x; i < n; i += 32) p[i] = a[i]; }
KERNEL(shared_mix) { __shared__ float s[64]; __shared__ double d[32];
  float* g = threadIdx.x & 1 ? s : a; s[threadIdx.x] = 1; s[threadIdx.x + 32] = 1;
  d[threadIdx.x] = 2; __syncthreads();
  c[threadIdx.x] = g[threadIdx.x] + (float)d[31 - threadIdx.x] + s[63 - threadIdx.x]; }
KERNEL(union_shared) { __shared__ union { float f[64]; int i[64]; double d[32]; } u;
  u.f[threadIdx.x] = 1; __syncthreads();
  c[threadIdx.x] = u.i[63 - (threadIdx.x | 32)] + (float)u.d[threadIdx.x & 15]; }
KERNEL(shared_2d) { __shared__ float t[8][9]; int x = threadIdx.x & 7, y = threadIdx.x >> 3;
  for (int k = 0; k < 2; k++) { t[y + 4*k][x] = a[(y + 4*k)*8 + x]; } __syncthreads();
  for (int k = 0; k < 2; k++) b[(y+4*k)*8 + x] = t[x][y + 4*k]; }
KERNEL(pointer_array) { float* p[3] = {a, b, c};
  for (int i = 0; i < n; i++) p[i % 3][threadIdx.x] += 1; }
KERNEL(diff) { long d = b - a; for (int i = threadIdx.x; i < n; i += 32) { float* p = a + i;
  p[d] = *p; } }
KERNEL(warp_pointer) { unsigned long long v = (unsigned long long)(threadIdx.x ? a : b);
  v = __shfl_sync(~0u, v, 3); ((float*)v)[threadIdx.x] = 1; }
KERNEL(swizzle) { __shared__ float s[1024];
  for (int i = 0; i < 32; i++) s[i*32 + (threadIdx.x ^ i)] = i; __syncthreads(); float v = 0;
  for (int i = 0; i < 32; i++) v += s[threadIdx.x*32 + (i ^ threadIdx.x)]; c[threadIdx.x] = v; }
KERNEL(ring) { __shared__ float s[4][32]; for (int i = 0; i < 16; i++) {
  s[i & 3][threadIdx.x] = a[threadIdx.x + (i & 1)]; __syncwarp();
  c[threadIdx.x] += s[(i + 3) & 3][threadIdx.x]; __syncwarp(); } }
__constant__ float w[16]; __device__ float g[4][16];
KERNEL(tables) { for (int i = 0; i < 4; i++) for (int j = threadIdx.x; j < 16; j += 32) {
  g[i][j] = w[15 - j] + w[j]; a[i*16+j] = g[3 - i][j]; } }
KERNEL(atomics) { atomicAdd(&g[threadIdx.x & 3][threadIdx.x & 15], 1.f);
  atomicMax((int*)c + (threadIdx.x & 7), 3);
  atomicCAS((unsigned long long*)b + (threadIdx.x & 15), 0ull, 1ull); }
