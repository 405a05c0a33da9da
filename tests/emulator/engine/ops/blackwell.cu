// What NVRTC makes of CUDA's narrow formats, packed floats and wide accesses for 10.0 and 12.0.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

extern "C" __global__ void narrow(const float2* a, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float2 x = a[i];
  __nv_bfloat162_raw b = __nv_bfloat162_raw(__float22bfloat162_rn(x));
  __half2_raw h = __half2_raw(__float22half2_rn(x));
  out[0 * n + i] = __nv_cvt_float2_to_fp4x2(x, __NV_E2M1, cudaRoundNearest);
  out[1 * n + i] = __nv_cvt_float2_to_fp6x2(x, __NV_E2M3, cudaRoundNearest);
  out[2 * n + i] = __nv_cvt_float2_to_fp6x2(x, __NV_E3M2, cudaRoundNearest);
  out[3 * n + i] = __nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, __NV_E4M3);
  out[4 * n + i] = __nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, __NV_E5M2);
  out[5 * n + i] = __nv_cvt_bfloat16raw2_to_fp4x2(b, __NV_E2M1, cudaRoundNearest);
  out[6 * n + i] = __nv_cvt_bfloat16raw2_to_fp6x2(b, __NV_E3M2, cudaRoundNearest);
  out[7 * n + i] = __nv_cvt_halfraw2_to_fp6x2(h, __NV_E2M3, cudaRoundNearest);
  out[8 * n + i] = __nv_cvt_bfloat16raw2_to_fp8x2(b, __NV_SATFINITE, __NV_E4M3);
  out[9 * n + i] = __nv_cvt_float2_to_e8m0x2(x, __NV_SATFINITE, cudaRoundPosInf);
  out[10 * n + i] = __nv_cvt_float2_to_e8m0x2(x, __NV_SATFINITE, cudaRoundZero);
}

__device__ unsigned word(__half2_raw h) { return h.x | (unsigned)h.y << 16; }

extern "C" __global__ void wide(unsigned* out) {
  unsigned i = threadIdx.x;
  out[i] = word(__nv_cvt_fp4x2_to_halfraw2(i, __NV_E2M1));
  out[256 + i] = word(__nv_cvt_fp6x2_to_halfraw2((i & 63) << 8 | (i & 63), __NV_E2M3));
  out[512 + i] = word(__nv_cvt_fp6x2_to_halfraw2((i & 63) << 8 | (i & 63), __NV_E3M2));
  __nv_bfloat162_raw scale = __nv_cvt_e8m0x2_to_bf162raw(i << 8 | (255 - i));
  out[768 + i] = scale.x | (unsigned)scale.y << 16;
}

extern "C" __global__ void pairs(const float2* a, float2* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float2 x = a[i], y = a[n + i], z = a[2 * n + i];
  out[i] = __fadd2_rn(x, y);
  out[n + i] = __fmul2_rn(x, y);
  out[2 * n + i] = __ffma2_rn(x, y, z);
}

extern "C" __global__ void copied(const double4_32a* a, double4_32a* out) {
  out[threadIdx.x] = a[threadIdx.x];
}
