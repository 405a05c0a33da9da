// The kernels that the self-test runs, checked there against NumPy.

extern "C" __global__ void saxpy(float a, const float* x, const float* y, float* out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}

template <typename T>
__device__ void block_sum(const T* x, T* total, int n)
{
    extern __shared__ __align__(8) unsigned char raw[];
    T* partial = reinterpret_cast<T*>(raw);
    int thread = threadIdx.x;
    int i = blockIdx.x * blockDim.x + thread;
    partial[thread] = i < n ? x[i] : T(0);
    __syncthreads();
    for (int width = blockDim.x / 2; width > 0; width /= 2) {
        if (thread < width) partial[thread] += partial[thread + width];
        __syncthreads();
    }
    if (thread == 0) atomicAdd(total, partial[0]);
}

extern "C" __global__ void sum_float32(const float* x, float* total, int n)
{
    block_sum<float>(x, total, n);
}

extern "C" __global__ void sum_float64(const double* x, double* total, int n)
{
    block_sum<double>(x, total, n);
}

#define TILE 16

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < n / TILE; ++tile) {
        left[threadIdx.y][threadIdx.x] = a[row * n + tile * TILE + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile * TILE + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

template <typename T>
__global__ void scale(T* x, T factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

extern "C" __global__ void mandelbrot(int* out, int width, int height, int most)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    // Each step rounds by itself, as in NumPy, so that the counts are equal.
    float cr = __fadd_rn(-2.0f, __fdiv_rn(__fmul_rn(3.0f, (float)x), (float)width));
    float ci = __fadd_rn(-1.5f, __fdiv_rn(__fmul_rn(3.0f, (float)y), (float)height));
    float zr = 0, zi = 0;
    int count = 0;
    while (count < most) {
        float rr = __fmul_rn(zr, zr), ii = __fmul_rn(zi, zi);
        if (__fadd_rn(rr, ii) > 4.0f) break;
        zi = __fadd_rn(__fmul_rn(__fmul_rn(2.0f, zr), zi), ci);
        zr = __fadd_rn(__fsub_rn(rr, ii), cr);
        ++count;
    }
    out[y * width + x] = count;
}

extern "C" __global__ void histogram(const unsigned char* data, int n, unsigned int* bins)
{
    __shared__ unsigned int local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}
