// Control: loops, tables of jumps, calls, recursion, functions by address.
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL extern "C" __global__ void

KERNEL branches(const int* x, int* out) {
  int i = I, v = x[i], r = 0;
  if (v > 100) { if (v & 1) r = v / 3; else r = v * 3; if (v & 2) r ^= 0x55; }
  else if (v < -100) { r = v & 0x3fff; do { r -= 1000; if (r & 4) r ^= 3; } while (r > 2000); }
  else for (int k = 0; k < v; k++) { if (k % 3 == 0) continue; if (k > 50) break; r += k; }
  out[i] = r;
}
KERNEL jump_table(const unsigned* x, unsigned* out) {
  unsigned i = I, r = 0;
  for (unsigned k = 0; k < 8; k++) {
    unsigned v = (x[i] >> (4 * k)) & 15;
    switch (v) {
      case 0: r += 17; break;
      case 1: r ^= 0x1234;
      case 2: r = r * 5 + 1; break;
      case 3: r = __brev(r); break;
      case 4: if (r & 1) { r -= 9; break; } r += 3;
      case 5: r = (r << 3) | (r >> 29); break;
      case 6: r = ~r; break;
      case 7: r /= 3; break;
      case 9: r += r >> 7; break;
      case 10: r -= x[(i + k) & 127]; break;
      case 11: continue;
      case 12: r *= r; break;
      default: r += v; break;
    }
    r += k;
  }
  out[i] = r;
}
KERNEL jump_sparse(const int* x, int* out) {
  int i = I;
  switch (x[i]) {
    case -1: out[i] = 1; break;
    case 0x7fffffff: out[i] = 2; break;
    case 1000: case 2000: case 3000: out[i] = 3; break;
    case 31: case 32: case 33: out[i] = x[i] * 2; break;
    default: out[i] = x[i] > 0 ? 4 : 5;
  }
}
KERNEL jump_index(const unsigned* x, unsigned* out) {
  unsigned i = I, r;
  asm volatile("{ TABLE: .branchtargets A, B, C, D; .reg .u32 k; and.b32 k, %1, 3; brx.idx k, TABLE;\n"
               "A: mov.u32 %0, 11; bra E;\nB: add.u32 %0, %1, 1; bra E;\nC: mul.lo.u32 %0, %1, 3; bra E;\n"
               "D: not.b32 %0, %1;\nE: }" : "=r"(r) : "r"(x[i]));
  out[i] = r;
}
KERNEL nested_loops(const unsigned* x, unsigned* out) {
  unsigned i = I, v = x[i], r = 1;
  for (unsigned a = 0; a < (v & 7); a++)
    for (unsigned b = a; b < ((v >> 3) & 7); b++) {
      if ((a + b) % 5 == 4) goto next;
      unsigned c = b;
      while (c-- > 1) { r = r * 1664525u + 1013904223u; if ((r >> 28) == 0) break; }
    }
next:
  for (unsigned k = v & 31; k; k &= k - 1) r ^= k << (v & 3);
  out[i] = r;
}
KERNEL collatz(const unsigned* x, unsigned* out) {
  unsigned long long v = (x[I] & 0xfff) + 1; unsigned steps = 0;
  while (v != 1) { v = v & 1 ? 3 * v + 1 : v >> 1; steps++; }
  out[I] = steps;
}
KERNEL greatest_divisor(const unsigned* x, const unsigned* y, unsigned* out) {
  unsigned a = x[I], b = y[I];
  while (b) { unsigned r = a % b; a = b; b = r; }
  out[I] = a;
}
KERNEL short_circuit(const int* x, const int* y, int* out) {
  int i = I, a = x[i], b = y[i];
  bool p = (a > 0 && b / (a | 1) > 2) || (b < 0 && a % (b | 1) != 0) || !(a ^ b);
  out[i] = p ? (a < b ? a : b) : (a && b) + 2 * (a || b);
}
KERNEL predicated(const unsigned* x, unsigned* out) {
  unsigned i = I, r, v = x[i];
  asm volatile("{ .reg .pred p, q, s; .reg .u32 a; mov.u32 %0, 0; and.b32 a, %1, 1; setp.ne.u32 p, a, 0;"
               " @p add.u32 %0, %1, 5; @!p sub.u32 %0, %1, 9; setp.gt.u32 q, %0, 1000; and.pred s, p, q;"
               " @s bra SKIP; @q mul.lo.u32 %0, %0, 7; @!q xor.b32 %0, %0, 255; SKIP: @!s shr.u32 %0, %0, 1; }"
               : "=r"(r) : "r"(v));
  out[i] = r;
}
KERNEL early_return(const int* x, int* out) {
  int i = I;
  if (x[i] < 0) { out[i] = -1; return; }
  if (x[i] & 1) return;
  for (int k = 0; ; k++) if ((x[i] >> k) <= 1) { out[i] = k; return; }
}
KERNEL exits(const int* x, int* out) {
  int i = I;
  out[i] = 1;
  asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, 0; @p exit; }" : : "r"(x[i]));
  out[i] = 2;
  __nanosleep(20);
}
struct Pair { int a; double b; short c[3]; };
__device__ __noinline__ int plain(int a, int b) { return a * 3 - b; }
__device__ __noinline__ Pair make(int a, float b) { Pair p; p.a = a; p.b = b * 2.0; p.c[0] = a; p.c[1] = a >> 3; p.c[2] = 7; return p; }
__device__ __noinline__ double use(Pair p, long long k, char d) { return p.a + p.b + p.c[k % 3] * d; }
__device__ __noinline__ void change(Pair* p, const int& k) { p->c[k & 1] += k; p->a ^= k; }
__device__ __noinline__ unsigned char narrow(short a, unsigned char b, bool c) { return c ? a + b : a - b; }
__device__ __noinline__ float4 vector(float4 v, float s) { return make_float4(v.w * s, v.z + s, v.y - s, v.x); }
KERNEL calls(const int* x, double* out) {
  int i = I, v = x[i];
  Pair p = make(plain(v, i), (float)(v & 255));
  change(&p, v);
  float4 q = vector(make_float4(v & 7, 2, 3, i), 0.5f);
  out[i] = use(p, v & 1023, 3) + narrow(v, i, v & 1) + q.x + q.y * q.z - q.w;
}
__device__ __noinline__ unsigned factorial(unsigned n) { return n < 2 ? 1 : n * factorial(n - 1) + n; }
__device__ __noinline__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__device__ __noinline__ bool odd(unsigned n);
__device__ __noinline__ bool even(unsigned n) { return n == 0 ? true : odd(n - 1); }
__device__ __noinline__ bool odd(unsigned n) { return n == 0 ? false : even(n - 1); }
__device__ __noinline__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL recursion(const unsigned* x, unsigned* out, int n) {
  unsigned i = I;
  out[i] = factorial(x[i] & 15);
  out[n + i] = ackermann(x[i] & 1, x[i] & 3);
  out[2 * n + i] = even(x[i] & 31) + 2 * odd(x[i] & 7);
  out[3 * n + i] = fibonacci(x[i] % 9);
}
__device__ __noinline__ int sorted_sum(int* held, int low, int high) {
  if (low >= high) return low == high ? held[low] * (low + 1) : 0;
  int pivot = held[high], at = low;
  for (int k = low; k < high; k++) if (held[k] < pivot) { int t = held[k]; held[k] = held[at]; held[at++] = t; }
  held[high] = held[at]; held[at] = pivot;
  return sorted_sum(held, low, at - 1) + pivot * (at + 1) + sorted_sum(held, at + 1, high);
}
KERNEL recursion_local(const int* x, int* out) {
  int held[12];
  for (int k = 0; k < 12; k++) held[k] = x[(I + k * 5) & 127] % 1000;
  out[I] = sorted_sum(held, 0, 11);
}
typedef int (*Function)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ __noinline__ int subtract(int a, int b) { return b == 0 ? plain(a, 1) : a - b; }
__device__ Function functions[3] = {add, multiply, subtract};
KERNEL pointers(const int* x, int* out) {
  int i = I, r = i;
  for (int k = 0; k < 4; k++) r = functions[(unsigned)(x[i] >> k) % 3](r, x[(i + k) & 127]);
  out[i] = r;
}
KERNEL pointer_chosen(const int* x, int* out) {
  Function f = x[I] & 1 ? add : multiply;
  if (x[I] < 0) f = subtract;
  out[I] = f(x[I], I);
}
struct Shape { float w; __device__ Shape(float w) : w(w) {} virtual __device__ float area() const { return w; } virtual __device__ float twice() const { return 2 * area(); } };
struct Square : Shape { __device__ Square(float w) : Shape(w) {} __device__ float area() const override { return w * w; } };
struct Disc : Shape { __device__ Disc(float w) : Shape(w) {} __device__ float area() const override { return 3.0f * w * w; } __device__ float twice() const override { return -1.0f; } };
KERNEL virtual_calls(const int* x, float* out) {
  float w = (float)(x[I] & 63);
  Square s(w); Disc d(w); Shape b(w);
  const Shape* p = x[I] & 1 ? (const Shape*)&s : x[I] & 2 ? (const Shape*)&d : &b;
  out[I] = p->area() + p->twice();
}
template <int N> struct Sum { template <typename T> static __device__ T of(const T* x) { return x[N - 1] + Sum<N - 1>::of(x); } };
template <> struct Sum<0> { template <typename T> static __device__ T of(const T*) { return T(0); } };
template <typename F> __device__ float integrate(F f, int n) { float s = 0; for (int k = 0; k < n; k++) s += f(k * 0.25f); return s; }
KERNEL templates(const float* x, float* out) {
  float a = x[I];
  out[I] = Sum<5>::of(x + (I & 63)) + integrate([a](float t) { return a * t - t * t; }, 9);
}
KERNEL mandelbrot(int* out, int w, int h) {
  int a = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y * blockDim.y + threadIdx.y, k = 0;
  float cr = -2.f + 3.f * a / w, ci = -1.5f + 3.f * b / h, zr = 0, zi = 0;
  while (k < 60 && zr * zr + zi * zi < 4.f) { float t = zr * zr - zi * zi + cr; zi = 2 * zr * zi + ci; zr = t; k++; }
  out[b * w + a] = k;
}
KERNEL generator(const unsigned* x, unsigned* out) {
  unsigned s[4] = {x[I], x[I] ^ 0x9e3779b9u, ~x[I], 1u};
  for (int k = 0; k < 20; k++) {
    unsigned t = s[1] << 9, r = (s[0] + s[3]);
    r = ((r << 7) | (r >> 25)) + s[0];
    s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t; s[3] = (s[3] << 11) | (s[3] >> 21);
    out[I] ^= r;
  }
}
KERNEL binary_search(const int* x, int* out, int n) {
  __shared__ int table[128];
  table[threadIdx.x] = threadIdx.x * threadIdx.x - 50;
  __syncthreads();
  int low = 0, high = 128;
  while (low < high) { int mid = (low + high) / 2; if (table[mid] < (x[I] & 16383)) low = mid + 1; else high = mid; }
  out[I] = low;
}
KERNEL newton_root(const double* x, double* out) {
  double v = fabs(x[I]) + 0.5, r = v; int k = 0;
  while (fabs(r * r - v) > 1e-12 * v && k < 80) { r = 0.5 * (r + v / r); k++; }
  out[I] = r + k;
}
KERNEL checked(const int* x, int* out) {
  int i = I;
  if (x[i] == 123456789) { asm volatile("trap;"); }
  if (!(x[i] != 123456789)) asm volatile("brkpt;");
  out[i] = x[i] + 1;
}
