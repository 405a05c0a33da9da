// Loads that NVRTC moves before their condition. The pairs differ in one thing: whether a thread
// that loads what another thread writes uses the value.
__device__ int count, value, flags[64], data[64];
__device__ unsigned char small;
__device__ double wide;
__device__ float4 vectors[16];
__device__ int2 pairs[16];

#define KERNEL extern "C" __global__ void
#define WRITER 63

KERNEL dropped_by_all_but_one(int* o, int n)
{
    bool first = threadIdx.x == 0;
    if (first && count < 100) ++count;
    o[threadIdx.x] = 1;
}

KERNEL used_by_two(int* o, int n)
{
    bool first = threadIdx.x < 2;
    if (first && count < 100) count = threadIdx.x + 1;
    o[threadIdx.x] = 1;
}

KERNEL dropped_by_all_but_the_first(int* o, int n)
{
    if (threadIdx.x == 0 && blockIdx.x == 0 && flags[0] == 0) { flags[0] = 1; o[0] = 1; }
}

KERNEL used_by_the_first_two(int* o, int n)
{
    if (threadIdx.x < 2 && flags[0] == 0) { flags[0] = threadIdx.x + 1; o[threadIdx.x] = 1; }
}

// A selection: threads from n on drop the value, and the last one writes it.
#define SELECTED(NAME, TYPE, PLACE)                                                                \
    KERNEL dropped_##NAME(int* o, int n)                                                          \
    {                                                                                              \
        TYPE v = threadIdx.x == WRITER && threadIdx.x < n ? PLACE : (TYPE)7;                       \
        if (threadIdx.x == WRITER) PLACE = v + (TYPE)1;                                            \
        o[threadIdx.x] = (int)v;                                                                   \
    }                                                                                              \
    KERNEL used_##NAME(int* o, int n)                                                              \
    {                                                                                              \
        TYPE v = threadIdx.x >= 40 && threadIdx.x < n ? PLACE : (TYPE)7;                           \
        if (threadIdx.x == WRITER) PLACE = v + (TYPE)1;                                            \
        o[threadIdx.x] = (int)v;                                                                   \
    }
SELECTED(of_1, unsigned char, small)
SELECTED(of_4, int, value)
SELECTED(of_8, double, wide)
SELECTED(element, float, vectors[2].y)

KERNEL used_by_two_flags(int* o, int n)
{
    bool go = flags[3] == 0 && threadIdx.x < n;
    int v = 0;
    if (go) v = data[5];
    if (threadIdx.x == WRITER) data[5] = 9;
    o[threadIdx.x] = v;
}

KERNEL dropped_by_two_flags(int* o, int n)
{
    bool go = flags[3] == 0 && threadIdx.x >= n;
    int v = 0;
    if (go) v = data[5];
    if (threadIdx.x == WRITER) data[5] = 9;
    o[threadIdx.x] = v;
}

KERNEL dropped_shared(int* o, int n)
{
    __shared__ int s;
    if (threadIdx.x == 0) s = 5;
    __syncthreads();
    int v = threadIdx.x >= n ? s : 7;
    if (threadIdx.x == WRITER) s = 9;
    o[threadIdx.x] = v;
}

KERNEL used_shared(int* o, int n)
{
    __shared__ int s;
    if (threadIdx.x == 0) s = 5;
    __syncthreads();
    int v = threadIdx.x < n ? s : 7;
    if (threadIdx.x == WRITER) s = 9;
    o[threadIdx.x] = v;
}

KERNEL dropped_in_a_loop(int* o, int n)
{
    int v = 0;
    for (int i = 0; i < 60; ++i)
        if (threadIdx.x + n == i) v += value;
    if (threadIdx.x == 0) value = 9;
    o[threadIdx.x] = v;
}

KERNEL used_in_a_loop(int* o, int n)
{
    int v = 0;
    for (int i = 0; i < n; ++i)
        if (threadIdx.x == i) v += value;
    if (threadIdx.x == WRITER) value = 9;
    o[threadIdx.x] = v;
}

// The value decides a branch that another flag may skip.
KERNEL dropped_before_a_branch(int* o, int n)
{
    bool mine = threadIdx.x >= n;
    if (mine && value > 3) o[threadIdx.x] = 1;
    if (threadIdx.x == WRITER) value = 9;
}

KERNEL used_before_a_branch(int* o, int n)
{
    bool mine = threadIdx.x < n;
    if (mine && value > 3) o[threadIdx.x] = 1;
    if (threadIdx.x == WRITER) value = 9;
}

KERNEL used_after_a_barrier(int* o, int n)
{
    int v = threadIdx.x < n ? value : 7;
    if (threadIdx.x == WRITER) value = 9;
    __syncthreads();
    o[threadIdx.x] = v;
}

KERNEL used_as_an_index(int* o, int n)
{
    int v = threadIdx.x < n ? value : 7;
    if (threadIdx.x == WRITER) value = 0;
    o[threadIdx.x] = data[v];
}

KERNEL used_by_another_lane(int* o, int n)
{
    int v = threadIdx.x < n ? value : 7;
    v = __shfl_xor_sync(~0u, v, 1);
    if (threadIdx.x == WRITER) value = 9;
    if (threadIdx.x >= n) o[threadIdx.x] = v;
}
