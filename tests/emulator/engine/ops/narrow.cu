// The intrinsics of floats of 4 and 6 bits, scales, and instructions of newer architectures.
#pragma nv_diag_suppress 177, 550, 1444
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

extern "C" __global__ void four_bits(const float2* a, unsigned* out) {
  int i = threadIdx.x;
  __nv_fp4x2_e2m1 pair(a[i]);
  __nv_fp4x4_e2m1 four(make_float4(a[i].x, a[i].y, 1, 2));
  float2 back = (float2)pair;
  __half2_raw half = __nv_cvt_fp4x2_to_halfraw2(pair.__x, __NV_E2M1);
  out[i] = pair.__x;
  out[i + 32] = four.__x;
  out[i + 64] = __float_as_uint(back.x + back.y);
  out[i + 96] = __nv_cvt_halfraw2_to_fp4x2(half, __NV_E2M1, cudaRoundNearest);
}
extern "C" __global__ void six_bits(const float2* a, unsigned* out) {
  int i = threadIdx.x;
  __nv_fp6x2_e2m3 p(a[i]);
  __nv_fp6x2_e3m2 q(a[i]);
  __nv_bfloat162 b = __float22bfloat162_rn(a[i]);
  float2 back = (float2)p;
  out[i] = p.__x;
  out[i + 32] = q.__x;
  out[i + 64] = __float_as_uint(back.x + back.y);
  out[i + 96] = __nv_fp6x2_e2m3(b).__x;
}
extern "C" __global__ void scales(const float2* a, unsigned* out) {
  int i = threadIdx.x;
  __nv_fp8_e8m0 e(a[i].x);
  __nv_fp8x2_e8m0 p(a[i]);
  __nv_bfloat162 b = (__nv_bfloat162)p;
  out[i] = e.__x;
  out[i + 32] = p.__x;
  out[i + 64] = __float_as_uint((float)e);
  out[i + 96] = *(unsigned*)&b;
}
extern "C" __global__ void mixed(const __half* a, const float* c, float* out) {
  int i = threadIdx.x;
  out[i] = (float)a[i] + c[i];
  out[i + 32] = fmaf((float)a[i], (float)a[i], c[i]);
  out[i + 64] = fmaxf(fmaxf(c[i], c[i + 1]), c[i + 2]);
  out[i + 96] = fminf(c[i], fminf(c[i + 3], c[i + 4]));
}
#if __CUDA_ARCH__ >= 800
template <typename H2> __device__ void pairs(const H2* a, H2* out) {
  int i = threadIdx.x;
  H2 r[8] = {__hmax2_nan(a[i], a[i + 1]), __hfma2_relu(a[i], a[i], a[i + 1]), h2tanh(a[i]),
             h2exp(a[i]), __hcmadd(a[i], a[i + 1], a[i + 2]), h2rcp(a[i]), h2sin(a[i]),
             __hmin2_nan(a[i], a[i + 2])};
  for (int k = 0; k < 8; k++) out[32 * k + i] = r[k];
}
extern "C" __global__ void half_pairs(const __half2* a, __half2* out) { pairs(a, out); }
extern "C" __global__ void bfloat_pairs(const __nv_bfloat162* a, __nv_bfloat162* out) {
  pairs(a, out);
}
extern "C" __global__ void inline_assembly(const float* a, unsigned* out) {
  int i = threadIdx.x;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out[i]) : "f"(a[i]));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(out[i + 32]) : "r"((int)a[i]), "r"(i), "r"(7));
}
#endif
