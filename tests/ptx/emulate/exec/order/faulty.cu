// Kernels that are wrong only in some orders, each with its corrected twin.
// Blocks of 128 threads; x has one int for each thread, out as many, counters start at zero.

#define KERNEL extern "C" __global__ void

// Missing __syncthreads between filling a tile and reading it.
template <bool RIGHT> __device__ void tile(const int* x, int* out) {
  __shared__ int s[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t] = x[i];
  if (RIGHT) __syncthreads();
  out[i] = s[127 - t];
}
KERNEL tile_faulty(const int* x, int* out, unsigned*) { tile<false>(x, out); }
KERNEL tile_right(const int* x, int* out, unsigned*) { tile<true>(x, out); }

// One buffer in turn: the next tile is written while other warps still read the last one.
template <bool RIGHT> __device__ void buffers(const int* x, int* out) {
  __shared__ int s[2][128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t, sum = 0;
  for (int k = 0; k < 6; k++) {
    int b = RIGHT ? k % 2 : 0;
    s[b][t] = x[i] + k;
    __syncthreads();
    sum += (k + 1) * s[b][(t + 37) % 128];
  }
  out[i] = sum;
}
KERNEL buffers_faulty(const int* x, int* out, unsigned*) { buffers<false>(x, out); }
KERNEL buffers_right(const int* x, int* out, unsigned*) { buffers<true>(x, out); }

// A reduction that takes the lanes of a warp to run together.
template <bool RIGHT> __device__ void warp(const int* x, int* out) {
  __shared__ volatile int s[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  s[t] = x[i];
  for (int k = 64; k > 16; k >>= 1) {
    __syncthreads();
    if (t < k) s[t] += s[t + k];
  }
  __syncthreads();
  out[i] = 0;
  if (t < 32) {
    for (int k = 16; k > 0; k >>= 1) {
      int sum = s[t] + s[t + k];
      if (RIGHT) __syncwarp();
      s[t] = sum;
      if (RIGHT) __syncwarp();
    }
    if (t == 0) out[i] = s[0];
  }
}
KERNEL warp_faulty(const int* x, int* out, unsigned*) { warp<false>(x, out); }
KERNEL warp_right(const int* x, int* out, unsigned*) { warp<true>(x, out); }

// Blocks that take those of lower numbers to be done before them.
KERNEL order_faulty(const int* x, int* out, unsigned*) {
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  out[i] = x[i] + (blockIdx.x ? ((volatile int*)out)[i - 128] : 0);
}
KERNEL order_right(const int* x, int* out, unsigned*) {
  int t = threadIdx.x, i = blockIdx.x * 128 + t, sum = 0;
  for (int k = t; k <= i; k += 128) sum += x[k];
  out[i] = sum;
}
