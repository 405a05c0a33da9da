// Matrix products with tensor cores and asynchronous copies, as users write them.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda/pipeline>
#include <mma.h>

using namespace nvcuda;
namespace cg = cooperative_groups;

// C = alpha A B + beta C, one warp for each 16 x 16 tile of C; n, m and k are multiples of 16.
template <class In, class Out>
__device__ void tile(const In* a, const In* b, Out* c, int m, int n, int k, float alpha, float beta)
{
    const int row = blockIdx.y * 16, column = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
    if (column >= n) return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, In, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, In, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, Out> sum, old;
    wmma::fill_fragment(sum, Out(0));
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(left, a + row * k + i, k);
        wmma::load_matrix_sync(right, b + column * k + i, k);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::load_matrix_sync(old, c + row * n + column, n, wmma::mem_row_major);
    for (int i = 0; i < sum.num_elements; i++)
        sum.x[i] = Out(alpha * float(sum.x[i]) + beta * float(old.x[i]));
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

extern "C" __global__ void product_half(const half* a, const half* b, float* c, int m, int n, int k,
                                        float alpha, float beta)
{
    tile<half, float>(a, b, c, m, n, k, alpha, beta);
}

extern "C" __global__ void product_half_half(const half* a, const half* b, half* c, int m, int n,
                                             int k, float alpha, float beta)
{
    tile<half, half>(a, b, c, m, n, k, alpha, beta);
}

extern "C" __global__ void product_bytes(const signed char* a, const signed char* b, int* c, int m,
                                         int n, int k, float alpha, float beta)
{
    tile<signed char, int>(a, b, c, m, n, k, alpha, beta);
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void product_bfloat(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c,
                                          int m, int n, int k, float alpha, float beta)
{
    tile<__nv_bfloat16, float>(a, b, c, m, n, k, alpha, beta);
}

extern "C" __global__ void product_tf32(const float* a, const float* b, float* c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::load_matrix_sync(left, a, 8);
    wmma::load_matrix_sync(right, b, 8);
    for (int i = 0; i < left.num_elements; i++) left.x[i] = wmma::__float_to_tf32(left.x[i]);
    for (int i = 0; i < right.num_elements; i++) right.x[i] = wmma::__float_to_tf32(right.x[i]);
    wmma::fill_fragment(sum, 0.f);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
}

extern "C" __global__ void product_double(const double* a, const double* b, double* c)
{
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
    wmma::load_matrix_sync(left, a, 4);
    wmma::load_matrix_sync(right, b, 8);
    wmma::fill_fragment(sum, 1.0);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}
#endif

extern "C" __global__ void product_nibbles(const unsigned* a, const unsigned* b, int* c)
{
    using nibble = wmma::experimental::precision::s4;
    wmma::fragment<wmma::matrix_a, 8, 8, 32, nibble, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, nibble, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 32, int> sum;
    wmma::load_matrix_sync(left, a, 32);
    wmma::load_matrix_sync(right, b, 32);
    wmma::fill_fragment(sum, 0);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

extern "C" __global__ void product_bits(const unsigned* a, const unsigned* b, int* c)
{
    using bit = wmma::experimental::precision::b1;
    wmma::fragment<wmma::matrix_a, 8, 8, 128, bit, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, bit, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> sum;
    wmma::load_matrix_sync(left, a, 128);
    wmma::load_matrix_sync(right, b, 128);
    wmma::fill_fragment(sum, 0);
    wmma::bmma_sync(sum, left, right, sum, wmma::experimental::bmmaBitOpXOR);
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

#if __CUDA_ARCH__ >= 800
// 64 x 64 tiles by four warps, copied to shared memory two steps ahead, read by ldmatrix.
constexpr int TILE = 64, DEEP = 32, PITCH = DEEP + 8;

__device__ void fetch(half (*to)[PITCH], const half* from, int k)
{
    for (int i = threadIdx.x; i < TILE * DEEP / 8; i += blockDim.x)
        __pipeline_memcpy_async(&to[i / 4][i % 4 * 8], from + i / 4 * k + i % 4 * 8, 16);
}

extern "C" __global__ void product_pipelined(const half* a, const half* b, float* c, int n, int k)
{
    __shared__ __align__(128) half left[2][TILE][PITCH], right[2][TILE][PITCH];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, steps = k / DEEP;
    a += blockIdx.y * TILE * k;
    b += blockIdx.x * TILE * k;
    float sum[8][4] = {};
    for (int s = 0; s < 2; s++) {
        fetch(left[s], a + s * DEEP, k);
        fetch(right[s], b + s * DEEP, k);
        __pipeline_commit();
    }
    for (int s = 0; s < steps; s++) {
        __pipeline_wait_prior(1);
        __syncthreads();
        for (int i = 0; i < DEEP; i += 16) {
            unsigned x[4], y[2];
            unsigned at = __cvta_generic_to_shared(
                &left[s & 1][warp * 16 + lane % 16][i + lane / 16 * 8]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
            for (int j = 0; j < 8; j++) {
                at = __cvta_generic_to_shared(
                    &right[s & 1][j * 8 + lane % 8][i + lane / 8 % 2 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                             : "=r"(y[0]), "=r"(y[1]) : "r"(at));
                asm volatile(
                    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3},"
                    " {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                    : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
                    : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
            }
        }
        __syncthreads();
        if (s + 2 < steps) {
            fetch(left[s & 1], a + (s + 2) * DEEP, k);
            fetch(right[s & 1], b + (s + 2) * DEEP, k);
        }
        __pipeline_commit();
    }
    const int row = blockIdx.y * TILE + warp * 16 + lane / 4, column = blockIdx.x * TILE;
    for (int j = 0; j < 8; j++)
        for (int i = 0; i < 4; i++)
            c[(row + i / 2 * 8) * n + column + j * 8 + lane % 4 * 2 + i % 2] = sum[j][i];
}
#endif

// Reverses each block's part of an array through shared memory.
extern "C" __global__ void reversed_by_pipeline(const int* in, int* out, int n)
{
    extern __shared__ int part[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int size = min(int(blockDim.x), n - int(blockIdx.x * blockDim.x));
    __pipeline_memcpy_async(&part[threadIdx.x], &in[min(i, n - 1)], 4, i < n ? 0 : 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (i < n) out[i] = part[size - 1 - threadIdx.x];
}

extern "C" __global__ void reversed_by_group(const int* in, int* out, int n)
{
    extern __shared__ int part[];
    cg::thread_block block = cg::this_thread_block();
    const int start = blockIdx.x * blockDim.x;
    const int size = min(int(blockDim.x), n - start);
    cg::memcpy_async(block, part, in + start, sizeof(int) * size);
    cg::wait(block);
    if (threadIdx.x < size) out[start + threadIdx.x] = part[size - 1 - threadIdx.x];
}

extern "C" __global__ void reversed_by_warps(const int4* in, int4* out)
{
    __shared__ int4 part[4][32];
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int number = threadIdx.x / 32, start = (blockIdx.x * 4 + number) * 32;
    cg::memcpy_async(warp, part[number], in + start, cuda::aligned_size_t<16>(512));
    cg::wait_prior<0>(warp);
    out[start + warp.thread_rank()] = part[number][31 - warp.thread_rank()];
}

extern "C" __global__ void reversed_by_thread_pipeline(const int* in, int* out)
{
    __shared__ int part[2][64];
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    in += blockIdx.x * 128;
    out += blockIdx.x * 128;
    for (int step = 0; step < 2; step++) {
        pipe.producer_acquire();
        cuda::memcpy_async(&part[step][threadIdx.x], in + step * 64 + threadIdx.x, 4, pipe);
        pipe.producer_commit();
    }
    for (int step = 0; step < 2; step++) {
        pipe.consumer_wait();
        __syncthreads();
        out[step * 64 + threadIdx.x] = part[step][63 - threadIdx.x];
        pipe.consumer_release();
    }
}
