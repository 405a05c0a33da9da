// Moves of 8 x 8 matrices, and arithmetic on the elements of fragments; products follow.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#define KERNEL extern "C" __global__ void
#define LOAD(count, option, ...) \
  asm volatile("ldmatrix.sync.aligned.m8n8." count option ".shared.b16 " __VA_ARGS__)

// Rows of 16 bytes are in another order than the lanes that bring their addresses.
__device__ unsigned fill(uint4* rows, const unsigned* in) {
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  rows[t] = make_uint4(in[4 * i], in[4 * i + 1], in[4 * i + 2], in[4 * i + 3]);
  __syncthreads();
  return __cvta_generic_to_shared(rows + ((t & 32) | (t * 11 + 5 & 31)));
}
KERNEL load_rows(const unsigned* in, unsigned* out) {
  __shared__ uint4 rows[64];
  unsigned at = fill(rows, in), x[14];
  LOAD("x1", "", "{%0}, [%1];" : "=r"(x[0]) : "r"(at));
  LOAD("x1", ".trans", "{%0}, [%1];" : "=r"(x[1]) : "r"(at));
  LOAD("x2", "", "{%0, %1}, [%2];" : "=r"(x[2]), "=r"(x[3]) : "r"(at));
  LOAD("x2", ".trans", "{%0, %1}, [%2];" : "=r"(x[4]), "=r"(x[5]) : "r"(at));
  LOAD("x4", "", "{%0, %1, %2, %3}, [%4];"
       : "=r"(x[6]), "=r"(x[7]), "=r"(x[8]), "=r"(x[9]) : "r"(at));
  LOAD("x4", ".trans", "{%0, %1, %2, %3}, [%4];"
       : "=r"(x[10]), "=r"(x[11]), "=r"(x[12]), "=r"(x[13]) : "r"(at));
  for (int k = 0; k < 14; k++) out[(blockIdx.x * blockDim.x + threadIdx.x) * 14 + k] = x[k];
}
#define STORE(number, count, option, ...)                                                    \
  rows[threadIdx.x] = make_uint4(0, 0, 0, 0);                                                \
  __syncthreads();                                                                           \
  asm volatile("stmatrix.sync.aligned.m8n8." count option ".shared.b16 " __VA_ARGS__ : "memory"); \
  __syncthreads();                                                                           \
  out[(number * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = rows[threadIdx.x];
KERNEL store_rows(const unsigned* in, uint4* out) {
  __shared__ uint4 rows[64];
  unsigned at = fill(rows, in);
  uint4 x = rows[threadIdx.x];
  STORE(0, "x1", "", "[%0], {%1};" ::"r"(at), "r"(x.x))
  STORE(1, "x1", ".trans", "[%0], {%1};" ::"r"(at), "r"(x.x))
  STORE(2, "x2", "", "[%0], {%1, %2};" ::"r"(at), "r"(x.x), "r"(x.y))
  STORE(3, "x2", ".trans", "[%0], {%1, %2};" ::"r"(at), "r"(x.x), "r"(x.y))
  STORE(4, "x4", "", "[%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w))
  STORE(5, "x4", ".trans", "[%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w))
}
KERNEL transpose_rows(const unsigned* in, unsigned* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out[i]) : "r"(in[i]));
}
// Metadata of a sparse product: each nibble is one of six.
__device__ unsigned metadata(unsigned random, unsigned choices) {
  unsigned word = 0;
  for (int k = 0; k < 32; k += 4) word |= (choices >> (random >> k & 15) % 6 * 4 & 15) << k;
  return word;
}
// A matrix is loaded as A, scaled element by element, and multiplied from shared memory.
KERNEL fragment_arithmetic(const unsigned* x, const unsigned* y, int* out) {
  using namespace nvcuda::wmma;
  __shared__ __align__(32) signed char left[2][256], right[2][256];
  int w = threadIdx.x / 32, block = blockIdx.x * 2 + w;
  for (int k = threadIdx.x % 32; k < 256; k += 32) {
    left[w][k] = (signed char)x[block * 128 + k / 2] + k;
    right[w][k] = (signed char)(y[block * 128 + k / 2] >> 8) - k;
  }
  __syncwarp();
  fragment<matrix_a, 16, 16, 16, signed char, col_major> a;
  fragment<matrix_b, 16, 16, 16, signed char, row_major> b;
  fragment<accumulator, 16, 16, 16, int> sum;
  load_matrix_sync(a, left[w], 16);
  load_matrix_sync(b, right[w], 16);
  fill_fragment(sum, 3);
  for (int k = 0; k < a.num_elements; k++) a.x[k] = a.x[k] / 2 + 1;
  mma_sync(sum, a, b, sum);
  for (int k = 0; k < sum.num_elements; k++) sum.x[k] = 5 - sum.x[k];
  mma_sync(sum, a, b, sum, true);
  store_matrix_sync(out + block * 256, sum, 16, mem_col_major);
}
