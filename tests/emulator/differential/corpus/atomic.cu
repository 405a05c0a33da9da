// Atomics: what the memory holds afterwards, and old values where no order can change them.
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL extern "C" __global__ void

// Every operation in global memory, many threads on eight words.
KERNEL atomic_global_32(const unsigned* x, unsigned* at) {
  unsigned v = x[I], k = I & 7;
  atomicAdd(at + k, v); atomicSub(at + 8 + k, v); atomicMin((int*)at + 16 + k, (int)v);
  atomicMax((int*)at + 24 + k, (int)v); atomicMin(at + 32 + k, v); atomicMax(at + 40 + k, v);
  atomicAnd(at + 48 + k, v); atomicOr(at + 56 + k, v); atomicXor(at + 64 + k, v);
  atomicInc(at + 72 + k, 100); atomicDec(at + 80 + k, 50);
}
KERNEL atomic_global_64(const unsigned long long* x, unsigned long long* at) {
  unsigned long long v = x[I]; unsigned k = I & 7;
  atomicAdd(at + k, v); atomicMin((long long*)at + 8 + k, (long long)v);
  atomicMax((long long*)at + 16 + k, (long long)v); atomicMin(at + 24 + k, v); atomicMax(at + 32 + k, v);
  atomicAnd(at + 40 + k, v); atomicOr(at + 48 + k, v); atomicXor(at + 56 + k, v);
}
// With the old value, each thread on a word of its own.
#define OLD(expression) out[row++ * n + i] = (expression);
KERNEL atomic_old_32(const unsigned* x, const unsigned* y, unsigned* at, unsigned* out, int n) {
  unsigned i = I, v = x[i], w = y[i], row = 0;
  unsigned* p = at + i;
  OLD(atomicAdd(p, v)) OLD(atomicSub(p, w)) OLD((unsigned)atomicMin((int*)p, (int)v)) OLD(atomicMax(p, w))
  OLD((unsigned)atomicMax((int*)p, (int)v)) OLD(atomicMin(p, w)) OLD(atomicAnd(p, v | w)) OLD(atomicOr(p, w))
  OLD(atomicXor(p, v)) OLD(atomicInc(p, w)) OLD(atomicInc(p, v)) OLD(atomicDec(p, w)) OLD(atomicDec(p, v))
  OLD(atomicExch(p, w)) OLD(atomicCAS(p, w, v)) OLD(atomicCAS(p, w, 5u)) OLD(*p)
}
KERNEL atomic_old_64(const unsigned long long* x, const unsigned long long* y, unsigned long long* at,
                     unsigned long long* out, int n) {
  unsigned i = I, row = 0;
  unsigned long long v = x[i], w = y[i], *p = at + i;
  OLD(atomicAdd(p, v)) OLD((unsigned long long)atomicMin((long long*)p, (long long)v)) OLD(atomicMax(p, w))
  OLD((unsigned long long)atomicMax((long long*)p, (long long)v)) OLD(atomicMin(p, w)) OLD(atomicAnd(p, v | w))
  OLD(atomicOr(p, w)) OLD(atomicXor(p, v)) OLD(atomicExch(p, w)) OLD(atomicCAS(p, w, v)) OLD(atomicCAS(p, w, 5ull))
  OLD(*p)
}
KERNEL atomic_old_shared(const unsigned* x, const unsigned* y, unsigned* out, int n) {
  __shared__ unsigned s[128];
  __shared__ unsigned long long d[128];
  unsigned i = I, t = threadIdx.x, v = x[i], w = y[i], row = 0;
  s[t] = v; d[t] = (unsigned long long)w << 32 | v;
  __syncthreads();
  unsigned* p = s + (t ^ 3);
  OLD(atomicAdd(p, v)) OLD(atomicMin(p, w)) OLD((unsigned)atomicMax((int*)p, (int)v)) OLD(atomicXor(p, w))
  OLD(atomicInc(p, v)) OLD(atomicDec(p, w)) OLD(atomicExch(p, v)) OLD(atomicCAS(p, v, w))
  OLD((unsigned)(atomicAdd(d + (t ^ 5), 1ull << 31) >> 16)) OLD((unsigned)atomicMax(d + (t ^ 5), (unsigned long long)v << 20))
  OLD((unsigned)(atomicCAS(d + t, d[t], 77ull) >> 32)) OLD(*p)
}
// One addition a word: rounding, subnormals, NaNs.
KERNEL atomic_add_floats(const float* x, const double* y, float* a, double* b, float* old_a, double* old_b) {
  unsigned i = I;
  old_a[i] = atomicAdd(a + i, x[i]);
  old_b[i] = atomicAdd(b + i, y[i]);
}
KERNEL atomic_red_floats(const float* x, const double* y, float* a, double* b) {
  unsigned i = I;
  asm volatile("red.global.add.f32 [%0], %1;" : : "l"(a + i), "f"(x[i]) : "memory");
  asm volatile("red.global.add.f64 [%0], %1;" : : "l"(b + i), "d"(y[i]) : "memory");
}
KERNEL atomic_shared_floats(const float* x, const double* y, const float* a, float* out, double* out2) {
  __shared__ float s[128];
  __shared__ double d[128];
  unsigned i = I, t = threadIdx.x;
  s[t] = a[i]; d[t] = a[i] == a[i] ? a[i] : 1.5f;
  __syncthreads();
  atomicAdd(s + (t ^ 1), x[i]); atomicAdd(d + (t ^ 1), y[i]);
  __syncthreads();
  out[i] = s[t]; out2[i] = d[t];
}
KERNEL atomic_generic_floats(const float* x, float* a, float* out) {
  __shared__ float s[128];
  unsigned i = I, t = threadIdx.x;
  s[t] = x[i];
  __syncthreads();
  float* p = t % 2 ? s + t : a + i;
  out[i] = atomicAdd(p, x[(i + 1) % (gridDim.x * blockDim.x)]);
  out[gridDim.x * blockDim.x + i] = *p;
}
// Sums of small whole numbers are exact in any order.
KERNEL atomic_sums(const float* x, float* sums, double* sums2) {
  unsigned i = I;
  atomicAdd(sums + (i & 3), x[i]);
  atomicAdd(sums2 + (i & 3), (double)x[i] * 0.5);
}
KERNEL atomic_halves(const unsigned* x, unsigned* a, unsigned* b, unsigned* old, int n) {
  unsigned i = I, r;
  asm volatile("atom.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(r) : "l"(a + i), "r"(x[i]) : "memory");
  old[i] = r;
  asm volatile("atom.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(r) : "l"(b + i), "r"(x[i]) : "memory");
  old[n + i] = r;
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" : : "l"(a + i), "r"(x[n - 1 - i]) : "memory");
  asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" : : "l"(b + i), "r"(x[n - 1 - i]) : "memory");
}
KERNEL atomic_single_halves(const unsigned short* x, unsigned short* a, unsigned short* b, unsigned short* old, int n) {
  unsigned i = I; unsigned short r;
  asm volatile("atom.global.add.noftz.f16 %0, [%1], %2;" : "=h"(r) : "l"(a + i), "h"(x[i]) : "memory");
  old[i] = r;
  asm volatile("atom.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(r) : "l"(b + i), "h"(x[i]) : "memory");
  old[n + i] = r;
}
KERNEL atomic_vectors(const float* x, float* a, float* b) {
  unsigned i = I;
  asm volatile("red.global.v2.f32.add [%0], {%1, %2};" : : "l"(a + 2 * i), "f"(x[i]), "f"(x[i ^ 1]) : "memory");
  float p, q, r, s;
  asm volatile("atom.global.v4.f32.add {%0, %1, %2, %3}, [%4], {%5, %6, %5, %6};"
               : "=f"(p), "=f"(q), "=f"(r), "=f"(s) : "l"(b + 4 * i), "f"(x[i]), "f"(x[i ^ 2]) : "memory");
  a[2 * gridDim.x * blockDim.x + i] = i & 1 ? p : i & 2 ? q : i & 4 ? r : s;
}
KERNEL atomic_vector_halves(const unsigned* x, unsigned* a, unsigned* b) {
  unsigned i = I;
  asm volatile("red.global.v2.f16x2.add.noftz [%0], {%1, %2};" : : "l"(a + 2 * i), "r"(x[i]), "r"(x[i ^ 1]) : "memory");
  asm volatile("red.global.v4.bf16x2.add.noftz [%0], {%1, %2, %1, %2};" : : "l"(b + 4 * i), "r"(x[i]), "r"(x[i ^ 1]) : "memory");
}
KERNEL atomic_scopes(const unsigned* x, unsigned* a, unsigned* out) {
  unsigned i = I, r, v = x[i], t = 0;
#define ATOM(op) asm volatile("atom" op " %0, [%1], %2;" : "=r"(r) : "l"(a + i), "r"(v) : "memory"); t = t * 9 + r;
#define RED(op) asm volatile("red" op " [%0], %1;" : : "l"(a + i), "r"(v + t) : "memory");
  ATOM(".add.u32") ATOM(".relaxed.gpu.global.add.s32") ATOM(".acquire.sys.xor.b32") ATOM(".release.cta.global.or.b32")
  ATOM(".acq_rel.gpu.max.u32") ATOM(".global.exch.b32") ATOM(".relaxed.cluster.min.s32")
  RED(".add.u32") RED(".relaxed.gpu.global.xor.b32") RED(".release.sys.global.and.b32") RED(".global.max.s32")
  RED(".inc.u32") RED(".global.dec.u32")
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(r) : "l"(a + i), "r"(v), "r"(t) : "memory");
  out[i] = t + r;
}
KERNEL atomic_short_swap(const unsigned short* x, unsigned short* a, unsigned short* out, int n) {
  unsigned i = I; unsigned short old = x[i], r;
  asm volatile("atom.global.cas.b16 %0, [%1], %2, %3;" : "=h"(r) : "l"(a + i), "h"(a[i]), "h"(old) : "memory");
  out[i] = r;
  asm volatile("atom.global.cas.b16 %0, [%1], %2, %3;" : "=h"(r) : "l"(a + i), "h"((unsigned short)3), "h"((unsigned short)4) : "memory");
  out[n + i] = r;
}
KERNEL atomic_wide(const ulonglong2* x, ulonglong2* a, ulonglong2* out) {
  unsigned i = I;
  ulonglong2 v = x[i], r;
  asm volatile("{ .reg .b128 d, s; mov.b128 s, {%3, %4}; atom.global.exch.b128 d, [%2], s; mov.b128 {%0, %1}, d; }"
               : "=l"(r.x), "=l"(r.y) : "l"(a + i), "l"(v.x), "l"(v.y) : "memory");
  out[2 * i] = r;
  asm volatile("{ .reg .b128 d, c, s; mov.b128 c, {%3, %4}; mov.b128 s, {%4, %3}; atom.global.cas.b128 d, [%2], c, s;"
               " mov.b128 {%0, %1}, d; }"
               : "=l"(r.x), "=l"(r.y) : "l"(a + i), "l"(v.x), "l"(v.y + (i & 1)) : "memory");
  out[2 * i + 1] = r;
}
KERNEL atomic_histogram(const unsigned char* x, unsigned* bins, int n) {
  __shared__ unsigned s[64];
  if (threadIdx.x < 64) s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = I; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i] & 63], 1u);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
// The tickets are all different, whoever has which.
KERNEL atomic_tickets(unsigned* next, unsigned* taken) { taken[atomicAdd(next, 1u)] += 1; }
KERNEL atomic_append(const int* x, unsigned* count, unsigned* sum) {
  if (x[I] & 1) { unsigned at = atomicAdd(count, 1u); atomicAdd(sum, at * at + 1); }
}
KERNEL atomic_swap_loop(const float* x, float* out) {
  int *bits = (int*)out + (I & 3), old = *bits, seen;
  do { seen = old; old = atomicCAS(bits, seen, __float_as_int(fmaxf(x[I], __int_as_float(seen)))); } while (seen != old);
}
KERNEL atomic_swap_add(const float* x, double* out) {
  unsigned long long *bits = (unsigned long long*)out, old = *bits, seen;
  do { seen = old; old = atomicCAS(bits, seen, __double_as_longlong(x[I] + __longlong_as_double(seen))); } while (seen != old);
}
KERNEL atomic_lock(unsigned* lock, volatile unsigned* held, const unsigned* x) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0u, 1u) != 0) {}
    __threadfence();
    held[0] += x[blockIdx.x]; held[1] ^= x[blockIdx.x];
    __threadfence();
    atomicExch(lock, 0u);
  }
}
KERNEL atomic_last_block(const unsigned* x, unsigned* partial, unsigned* arrived, unsigned* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    unsigned sum = 0;
    for (int k = 0; k < blockDim.x; k++) sum = sum * 3 + x[blockIdx.x * blockDim.x + k];
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    unsigned sum = 0;
    for (int k = 0; k < gridDim.x; k++) sum = sum * 5 + ((volatile unsigned*)partial)[k];
    *out = sum;
  }
}
