// Each kernel leaves an array where `by` is not 0, for the next one, and stays within it where it is.
// `a`, `b` and `c` have 64 elements each.
#define KERNEL(name) extern "C" __global__ void name(int* a, int* b, int* c, long by, int n)
struct Arrays { int* a; int* b; int n; };
__device__ int table[64];
__device__ int behind_table[64];
__constant__ int weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};

KERNEL(into_another_array) { a[threadIdx.x + by] = 1; }
KERNEL(by_an_index_that_was_read) { a[b[threadIdx.x] + by] = 1; }
KERNEL(in_a_loop) {
  for (int i = threadIdx.x; i < 64; i += 32) a[i + by] = i;
}
KERNEL(by_a_pointer_that_moves) {
  int sum = 0;
  for (int* p = a + by; p < a + by + n; p++) sum += *p;
  c[threadIdx.x] = sum;
}
KERNEL(by_an_atomic) { atomicAdd(a + (threadIdx.x & 7) + by, 1); }
KERNEL(by_a_vector) { c[threadIdx.x] = ((int4*)(a + by))[threadIdx.x & 15].y; }
KERNEL(in_the_end_of_a_range) {
  int* end = a + 64;
  c[threadIdx.x] = end[-1 - (int)threadIdx.x + by];
}
KERNEL(in_a_shared_array) {
  __shared__ int s[32];
  __shared__ int t[32];
  s[threadIdx.x] = 1;
  t[threadIdx.x] = 2;
  __syncthreads();
  a[threadIdx.x] = s[threadIdx.x + by] + t[threadIdx.x ^ 1];
}
KERNEL(at_a_row_of_shared_memory) {
  __shared__ float tile[8][32];
  __shared__ float other[8][32];
  for (int i = 0; i < 8; i++) { tile[i][threadIdx.x] = i; other[i][threadIdx.x] = i; }
  __syncthreads();
  a[threadIdx.x] = tile[n / 64 + 6 + by][threadIdx.x] + other[n / 64][threadIdx.x];
}
KERNEL(in_dynamic_shared_memory) {
  extern __shared__ int d[];
  __shared__ int s[32];
  s[threadIdx.x] = 1;
  d[threadIdx.x] = 2;
  __syncthreads();
  a[threadIdx.x] = s[threadIdx.x + by] + d[threadIdx.x + 32];
}
KERNEL(in_a_variable_of_the_module) {
  table[threadIdx.x + by] = 1;
  behind_table[threadIdx.x] = 2;
}
KERNEL(in_constant_memory) { a[threadIdx.x] = weights[(threadIdx.x & 7) + by]; }
KERNEL(before_the_beginning) { b[(long)threadIdx.x - by] = 1; }

KERNEL(in_local_memory) {
  int l[10];
  for (int i = 0; i < 10; i++) l[i] = i * n;
  a[threadIdx.x] = l[(threadIdx.x + (int)n) % 10 + by];
}

// Nothing here is wrong.
KERNEL(one_of_two_arrays) { (n > 3 ? a : b)[threadIdx.x] = 1; }
KERNEL(either_array_by_thread) { int* p = threadIdx.x & 1 ? a : b; p[threadIdx.x] = p[threadIdx.x + 1]; }
KERNEL(swapped_in_a_loop) {
  for (int i = 0; i < n / 16; i++) {
    b[threadIdx.x] = a[threadIdx.x] + 1;
    int* t = a; a = b; b = t;
  }
}
KERNEL(by_the_difference_of_pointers) { a[(b - a) + threadIdx.x] = 1; }
KERNEL(aligned_pointers) {
  int* p = (int*)(((unsigned long long)(a + 1) + 15) & ~15ull);
  p[threadIdx.x] = ((unsigned long long)b & 15) + b[threadIdx.x];
}
KERNEL(generic_pointers) {
  __shared__ int s[32];
  int* volatile places[2] = {a, s};
  int* p = places[threadIdx.x & 1];
  p[threadIdx.x] = 1;
}
KERNEL(two_parts_of_dynamic_memory) {
  extern __shared__ int d[];
  int* one = d; float* two = (float*)(d + 32);
  one[threadIdx.x] = 1; two[threadIdx.x] = 2;
}
KERNEL(pointers_in_memory) {
  int** q = (int**)c;
  if (threadIdx.x == 0) { q[0] = a; q[1] = b; }
  __syncthreads();
  q[threadIdx.x & 1][threadIdx.x] = 1;
}
KERNEL(a_local_array) {
  int l[16];
  for (int i = 0; i < 16; i++) l[i] = i * n;
  a[threadIdx.x] = l[threadIdx.x & 15] + l[n & 15];
}
KERNEL(nothing_at_all) { if (n < 0) *(int*)nullptr = 1; if (by) ((int*)by)[0] = 1; }
extern "C" __global__ void in_a_struct(Arrays s, long by) {
  s.a[threadIdx.x + by] = s.n;
}
extern "C" __global__ void from_begin_to_end(int* begin, int* end, Arrays s) {
  for (int i = threadIdx.x; i < end - begin; i += 32) s.a[i] = end[-1 - i] + begin[i];
}
