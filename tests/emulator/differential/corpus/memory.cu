// Memory of every space, vectors, structs by value, module variables.
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL extern "C" __global__ void

struct Small { int a; signed char b; short c; double d; };
struct Large { float m[3][4]; unsigned char tail[5]; long long big; };
struct __align__(16) Wide { float4 u; int2 v; unsigned short w[4]; };

__constant__ int squares[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};
__constant__ double weights[5] = {0.5, -1.25, 1e300, -0.0, 3.0};
__constant__ Small record = {-7, -8, -9, 2.5};
__device__ unsigned short shorts[6] = {1, 0xffff, 0x8000, 7};
__device__ int counted[8] = {10, 20, 30};
__device__ const char text[] = "differential test \x7f\x80\xff";
__device__ int* inner = &counted[2];
__device__ const int* const tables[3] = {counted, counted + 1, squares};
__device__ float zeroed[64];
__device__ __managed__ int managed_value = 41;

KERNEL load_widths(const unsigned char* bytes, unsigned long long* out) {
  unsigned i = I;
  unsigned long long sum = 0;
  sum += bytes[i];
  sum = sum * 31 + (long long)((const signed char*)bytes)[i];
  sum = sum * 31 + ((const unsigned short*)bytes)[i];
  sum = sum * 31 + (long long)((const short*)bytes)[i];
  sum = sum * 31 + ((const unsigned*)bytes)[i];
  sum = sum * 31 + (long long)((const int*)bytes)[i];
  sum = sum * 31 + ((const unsigned long long*)bytes)[i];
  out[i] = sum;
}
KERNEL store_widths(const unsigned long long* x, unsigned char* out) {
  unsigned i = I;
  unsigned long long v = x[i];
  out[i] = v;
  ((unsigned short*)(out + 256))[i] = v >> 5;
  ((unsigned*)(out + 768))[i] = v >> 9;
  ((unsigned long long*)(out + 1792))[i] = ~v;
}
KERNEL vectors(const float4* a, const uchar4* b, const short2* c, const double2* d, float4* out) {
  unsigned i = I;
  float4 u = a[i]; uchar4 v = b[i]; short2 w = c[i]; double2 z = d[i];
  out[2 * i] = make_float4(u.w, u.z + v.x, u.y - w.y, (float)z.x);
  out[2 * i + 1] = make_float4((float)v.w, (float)w.x, (float)z.y, u.x);
}
KERNEL vector_stores(const unsigned* x, uint4* a, ushort4* b, uchar4* c, longlong2* d, uint2* e) {
  unsigned i = I, v = x[i];
  a[i] = make_uint4(v, v + 1, v * 3, ~v);
  b[i] = make_ushort4(v, v >> 8, v >> 16, v >> 3);
  c[i] = make_uchar4(v, v >> 7, v >> 13, v >> 24);
  d[i] = make_longlong2((long long)v * v, -(long long)v);
  e[i] = make_uint2(v ^ 0xff, v << 4);
}
KERNEL suffixes(const unsigned* x, unsigned* out, unsigned* scratch) {
  unsigned i = I, r = 0, v;
  const unsigned* p = x + i;
  unsigned* q = scratch + i;
#define LOAD(op) asm volatile("ld" op ".u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); r = r * 5 + v;
  LOAD("") LOAD(".global") LOAD(".global.ca") LOAD(".global.cg") LOAD(".global.cs") LOAD(".global.lu")
  LOAD(".global.cv") LOAD(".global.nc") LOAD(".volatile.global") LOAD(".relaxed.gpu.global")
  LOAD(".acquire.sys.global") LOAD(".weak.global") LOAD(".global.L1::evict_last") LOAD(".relaxed.cta")
  LOAD(".global.nc.L1::no_allocate.L2::128B")
#define STORE(op) asm volatile("st" op ".u32 [%1], %0;" : : "r"(r), "l"(q) : "memory"); r = r * 7 + *(volatile unsigned*)q;
  STORE("") STORE(".global.wb") STORE(".global.cg") STORE(".global.cs") STORE(".global.wt")
  STORE(".volatile.global") STORE(".relaxed.gpu.global") STORE(".release.sys.global")
  STORE(".global.L1::evict_first")
  asm volatile("prefetch.global.L2 [%0];" : : "l"(p));
  __threadfence(); __threadfence_block(); __threadfence_system();
  out[i] = r + __ldg(p) + __ldcs(p) + __ldcg(p) + __ldcv(p) + __ldlu(p);
}
KERNEL shared_static(const int* x, int* out) {
  __shared__ int tile[8][33];
  __shared__ unsigned char flags[128];
  int t = threadIdx.x, i = I;
  tile[t / 32 * 2][t % 32] = x[i];
  tile[t / 32 * 2 + 1][31 - t % 32] = x[i] * 3;
  flags[t ^ 5] = (unsigned char)x[i];
  __syncthreads();
  out[i] = tile[(t * 7) % 8][(t * 5) % 32] + flags[127 - t];
}
KERNEL shared_dynamic(const double* x, double* out, int n) {
  extern __shared__ __align__(16) unsigned char raw[];
  double* d = (double*)raw;
  float* f = (float*)(d + n);
  short* s = (short*)(f + n);
  int t = threadIdx.x, i = I;
  d[t] = x[i]; f[n - 1 - t] = (float)x[i]; s[t] = (short)(t * 3 - 40);
  __syncthreads();
  out[i] = d[(t + 1) % n] + f[(t * 3) % n] * s[(t + 7) % n];
}
KERNEL transpose(const float* x, float* out, int n) {
  __shared__ float tile[16][17];
  int a = blockIdx.x * 16 + threadIdx.x, b = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = x[b * n + a];
  __syncthreads();
  out[(blockIdx.x * 16 + threadIdx.y) * n + blockIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
KERNEL local_arrays(const int* x, const int* at, int* out) {
  int i = I, held[20];
  for (int k = 0; k < 20; k++) held[k] = x[i] * k + k;
  for (int k = 0; k < 20; k++) { int j = at[(i + k) & 127] % 20; held[j] ^= held[(j + k) % 20] + k; }
  int sum = 0;
  for (int k = 0; k < 20; k++) sum = sum * 3 + held[at[k] % 20];
  out[i] = sum;
}
KERNEL local_bytes(const unsigned char* x, unsigned char* out) {
  int i = I;
  unsigned char line[40];
  for (int k = 0; k < 40; k++) line[k] = x[(i + k) & 255];
  for (int k = 1; k < 40; k++) {
    unsigned char v = line[k]; int j = k;
    while (j > 0 && line[j - 1] > v) { line[j] = line[j - 1]; j--; }
    line[j] = v;
  }
  out[i] = line[x[i] % 40] + line[20];
}
KERNEL struct_small(Small s, const int* x, double* out) { out[I] = s.a + s.b * x[I] + s.c + s.d; }
KERNEL struct_large(int before, Large s, char after, const int* x, double* out) {
  int i = I, k = x[i] & 3;
  out[i] = s.m[k % 3][x[i] >> 2 & 3] + s.tail[x[i] % 5] + (double)s.big + before * after;
}
KERNEL struct_wide(Wide s, Wide* out) {
  Wide r = s;
  r.u.x += I; r.v.y -= (int)I; r.w[I & 3] = (unsigned short)I;
  out[I] = r;
}
KERNEL struct_pointer(Large* held, const int* x) {
  Large* p = held + I;
  p->m[x[I] % 3][2] = x[I];
  p->tail[x[I] % 5] += 3;
  p->big -= x[I];
}
KERNEL constants(const int* x, double* out) {
  int i = I, v = x[i];
  out[i] = squares[v & 15] + weights[v % 5 == 2 ? 0 : v % 5] + record.a * record.c + record.d - record.b;
}
KERNEL variables(const int* x, int* out) {
  int i = I, v = x[i];
  out[i] = shorts[v % 6] + counted[v & 7] * 2 + text[v % sizeof(text)] + inner[v & 3] + tables[v % 3][v & 3] +
           (int)zeroed[v & 63] + (inner == counted + 2) + (tables[2] == squares) + managed_value;
}
__device__ int state[256];
__device__ float2 pair_state = {1.5f, -2.0f};
KERNEL variable_stores(const int* x, int* out) {
  int i = threadIdx.x;
  state[i] += x[i] + 1;
  __syncthreads();
  if (i == 0) pair_state.y += state[255];
  __syncthreads();
  out[i] = state[255 - i] + (int)(pair_state.x + pair_state.y);
  __syncthreads();
  state[i] = 0;
  if (i == 0) pair_state.y = -2.0f;
}
__device__ __noinline__ int through(const int* p, int k) { return p[k] * 3 + 1; }
KERNEL generic(const int* x, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x, i = I, local[4];
  s[t] = x[i] + 1;
  for (int k = 0; k < 4; k++) local[k] = x[i] * k;
  __syncthreads();
  const int* p = t % 4 == 0 ? s : t % 4 == 1 ? x : t % 4 == 2 ? local : squares;
  out[i] = through(p, x[t] & 3);
}
KERNEL address_spaces(const int* x, int* out) {
  __shared__ int s[4];
  int local[3]; local[x[0] & 1] = 1;
  s[threadIdx.x & 3] = 0;
  const void* p[4] = {x, s, local, squares};
  int i = I, r = 0;
  for (int k = 0; k < 4; k++)
    r = r * 16 + __isGlobal(p[k]) + 2 * __isShared(p[k]) + 4 * __isLocal(p[k]) + 8 * __isConstant(p[k]);
  out[i] = r + (int)(__cvta_generic_to_shared(s + 3) - __cvta_generic_to_shared(s)) +
           (int)((const int*)__cvta_global_to_generic(__cvta_generic_to_global(x + 5)) - x);
}
KERNEL unaligned_bytes(const unsigned char* x, unsigned* out) {
  unsigned i = I, v;
  memcpy(&v, x + i * 3 + 1, 4);
  out[i] = v;
}
KERNEL block_copy(const unsigned char* x, unsigned char* out) {
  unsigned i = I;
  unsigned char held[24];
  memcpy(held, x + i * 24, 24);
  memset(held + 7, (int)i, 5);
  memcpy(out + i * 24, held, 24);
}
KERNEL strided(const float* x, float* out, int n, int stride) {
  for (int i = I; i < n; i += gridDim.x * blockDim.x) out[(i * stride) % n] = x[i] * 2.0f;
}
KERNEL gather(const float* x, const int* at, float* out, int n) {
  int i = I;
  if (i < n) out[i] = x[at[i]] + x[at[n - 1 - i]];
}
KERNEL scatter(const int* x, const int* order, int* out) { out[(order[0] * 2 + 1) * I % 256] = x[I]; }
KERNEL stencil(const float* x, float* out, int n) {
  __shared__ float s[130];
  int t = threadIdx.x, i = I;
  s[t + 1] = x[i];
  if (t == 0) s[0] = i > 0 ? x[i - 1] : 0.0f;
  if (t == blockDim.x - 1) s[t + 2] = i + 1 < n ? x[i + 1] : 0.0f;
  __syncthreads();
  out[i] = 0.25f * s[t] + 0.5f * s[t + 1] + 0.25f * s[t + 2];
}
KERNEL heap(const int* x, int* out) {
  int i = I, n = 3 + (x[i] & 7);
  int* p = (int*)malloc(n * sizeof(int));
  double* q = new double[2];
  for (int k = 0; k < n; k++) p[k] = x[i] + k * k;
  q[0] = p[n - 1]; q[1] = 0.5;
  out[i] = p[0] + p[n - 1] + (int)(q[0] * q[1]);
  free(p); delete[] q;
}
KERNEL wide_words(const ulonglong2* x, ulonglong2* out) {
  unsigned i = I;
  ulonglong2 v = x[i ^ 1];
  asm volatile("{ .reg .b128 a; .reg .b64 l, h; ld.global.b128 a, [%2]; mov.b128 {l, h}, a; add.u64 %0, l, h;"
               " xor.b64 %1, l, h; mov.b128 a, {h, l}; st.global.b128 [%3], a; }"
               : "=l"(v.x), "=l"(v.y) : "l"(x + i), "l"(out + 2 * i) : "memory");
  out[2 * i + 1] = v;
}
