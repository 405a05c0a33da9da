#pragma nv_diag_suppress 177, 550, 1444
// Math functions and the intrinsics of the narrow formats: what the headers and libdevice emit.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

// A kernel out[i] = f(x, y); the last argument is the function's body.
#define UNARY(type, name, ...)                                              \
  extern "C" __global__ void name(const type* a, const type* b, type* out, int n) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                 \
    if (i >= n) return;                                                            \
    type x = a[i], y = b[i];                                                       \
    out[i] = [=]() -> type { __VA_ARGS__; }();                                      \
  }
#define BOTH(name)                      \
  UNARY(float, name##_f32, return name##f(x))  \
  UNARY(double, name##_f64, return name(x))
#define BOTH2(name)                        \
  UNARY(float, name##_f32, return name##f(x, y))  \
  UNARY(double, name##_f64, return name(x, y))

BOTH(exp) BOTH(exp2) BOTH(exp10) BOTH(expm1) BOTH(log) BOTH(log2) BOTH(log10) BOTH(log1p)
BOTH(sin) BOTH(cos) BOTH(tan) BOTH(asin) BOTH(acos) BOTH(atan) BOTH(sinh) BOTH(cosh) BOTH(tanh)
BOTH(asinh) BOTH(acosh) BOTH(atanh) BOTH(erf) BOTH(erfc) BOTH(erfinv) BOTH(erfcinv) BOTH(erfcx)
BOTH(normcdf) BOTH(normcdfinv) BOTH(lgamma) BOTH(tgamma) BOTH(cbrt) BOTH(rcbrt) BOTH(rsqrt)
BOTH(sqrt) BOTH(sinpi) BOTH(cospi) BOTH(floor) BOTH(ceil) BOTH(trunc) BOTH(rint) BOTH(round)
BOTH(nearbyint) BOTH(logb) BOTH(fabs) BOTH(j0) BOTH(j1) BOTH(y0) BOTH(y1)
BOTH(cyl_bessel_i0) BOTH(cyl_bessel_i1)
BOTH2(pow) BOTH2(atan2) BOTH2(hypot) BOTH2(rhypot) BOTH2(fmod) BOTH2(remainder) BOTH2(fdim)
BOTH2(fmin) BOTH2(fmax) BOTH2(copysign) BOTH2(nextafter)
UNARY(float, ldexp_f32, return ldexpf(x, (int)y))
UNARY(double, ldexp_f64, return ldexp(x, (int)y))
UNARY(float, jn_f32, return jnf(3, x))
UNARY(double, jn_f64, return jn(3, x))
UNARY(float, yn_f32, return ynf(3, x))
UNARY(double, yn_f64, return yn(3, x))
UNARY(float, sincos_f32, float s, c; sincosf(x, &s, &c); return s * 2 + c)
UNARY(double, sincos_f64, double s, c; sincos(x, &s, &c); return s * 2 + c)
UNARY(float, frexp_f32, int e; float m = frexpf(x, &e); return m + e)
UNARY(double, modf_f64, double whole, part = modf(x, &whole); return part + whole)
UNARY(float, remquo_f32, int q; float r = remquof(x, y, &q); return r + (q & 7))
UNARY(float, quick_f32, return __expf(x) + __logf(y) + __sinf(x) * __cosf(y) + __powf(y, x) +
                            __fdividef(x, y) + __saturatef(x) + __tanf(x) + __exp10f(x))
UNARY(float, directed_f32, return __fadd_ru(x, y) + __fmul_rd(x, y) + __fdiv_rz(x, y) + __fsqrt_ru(y) +
                               __frcp_rd(y) + __fmaf_rz(x, y, x) + __fsub_rd(x, y) + __frsqrt_rn(y))
UNARY(double, directed_f64, return __dadd_ru(x, y) + __dmul_rd(x, y) + __ddiv_rz(x, y) + __dsqrt_ru(y) +
                                __drcp_rd(y) + __fma_rz(x, y, x) + __dsub_rd(x, y))
UNARY(float, integers_f32, return (float)(long long)x + (float)(unsigned)y + __float2int_ru(x) +
                               __float2uint_rd(y) + __int2float_rz((int)y) + __float2ll_rn(x) +
                               __float_as_int(x) % 7 + (float)(short)x + (float)(unsigned char)y)
UNARY(double, integers_f64, return (double)(long long)x + (double)(unsigned long long)y +
                                __double2int_ru(x) + __double2float_rd(y) + __double2hiint(x) % 5 +
                                __hiloint2double(1, 2) + __double2ll_rn(x) + (int)isnan(x))
UNARY(float, classes_f32, return (isnan(x) + 2 * isinf(x) + 4 * isfinite(y) + 8 * signbit(x)) +
                            (x < y) + (x >= y) + (x != y) * (x == x))
UNARY(float, norms_f32, return norm3df(x, y, x) + norm4df(x, y, x, y) + rnorm3df(x, y, x) +
                            rnorm4df(x, y, y, x) + normf(1, &x))

template <typename H, typename H2> __device__ void arithmetic(const H* a, const H* b, H* out, int n) {
  int i = threadIdx.x;
  H x = a[i], y = b[i], r[24] = {
      __hadd(x, y), __hsub(x, y), __hmul(x, y), __hdiv(x, y), __hfma(x, y, x), __hneg(x),
      __habs(x), __hadd_sat(x, y), __hmul_sat(x, y), __hfma_sat(x, y, y), __hmax(x, y),
      __hmin(x, y), hsqrt(x), hrsqrt(x), hrcp(x), hexp(x), hexp2(x), hlog(x), hlog2(x), hsin(x),
      hcos(x), hfloor(x), hrint(x), __hsub_sat(x, y)};
  for (int k = 0; k < 24; k++) out[k * n + i] = r[k];
  const H2* u = (const H2*)a; const H2* v = (const H2*)b; H2* w = (H2*)(out + 24 * n);
  if (2 * i >= n) return;
  H2 p = u[i], q = v[i], s[16] = {
      __hadd2(p, q), __hsub2(p, q), __hmul2(p, q), __h2div(p, q), __hfma2(p, q, p), __hneg2(p),
      __habs2(p), __hmax2(p, q), __hmin2(p, q), h2sqrt(p), h2exp2(p), h2log(q), __hadd2_sat(p, q),
      __heq2(p, q), __hltu2(p, q), __hgtu2(p, q)};
  for (int k = 0; k < 16; k++) w[k * n / 2 + i] = s[k];
}
template <typename H> __device__ int compared(H x, H y) {
  return __heq(x, y) | __hne(x, y) << 1 | __hlt(x, y) << 2 | __hle(x, y) << 3 | __hgt(x, y) << 4 |
         __hgeu(x, y) << 5 | __hltu(x, y) << 6 | __hisnan(x) << 7 | __hequ(x, y) << 8;
}
extern "C" __global__ void half_arithmetic(const __half* a, const __half* b, __half* out, int n) {
  arithmetic<__half, __half2>(a, b, out, n);
}
extern "C" __global__ void half_compare(const __half* a, const __half* b, int* out, int n) {
  int i = threadIdx.x;
  out[i] = compared(a[i], b[i]);
  if (2 * i >= n) return;
  __half2 p = ((const __half2*)a)[i], q = ((const __half2*)b)[i];
  out[n + i] = __hbeq2(p, q) | __hblt2(p, q) << 1 | __hbgtu2(p, q) << 2 | __hbne2(p, q) << 3;
}
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void bfloat_arithmetic(const __nv_bfloat16* a, const __nv_bfloat16* b,
                                             __nv_bfloat16* out, int n) {
  arithmetic<__nv_bfloat16, __nv_bfloat162>(a, b, out, n);
}
extern "C" __global__ void bfloat_compare(const __nv_bfloat16* a, const __nv_bfloat16* b, int* out,
                                          int n) {
  int i = threadIdx.x;
  out[i] = compared(a[i], b[i]);
}
#endif
extern "C" __global__ void half_converted(const float* a, const double* b, unsigned* out, int n) {
  int i = threadIdx.x;
  float x = a[i];
  double y = b[i];
  __half h = __float2half(x);
  __nv_bfloat16 g = __float2bfloat16(x);
  __half2 h2 = __floats2half2_rn(x, (float)y);
  __nv_bfloat162 g2 = __floats2bfloat162_rn(x, (float)y);
  unsigned r[16] = {
      __half_as_ushort(__float2half_rz(x)), __half_as_ushort(__float2half_ru(x)),
      __half_as_ushort(__double2half(y)), (unsigned)__half2int_rn(h), (unsigned)__half2uint_rz(h),
      (unsigned)__half2short_rd(h), __half_as_ushort(__int2half_rn((int)x)),
      __half_as_ushort(__ull2half_rz((unsigned long long)y)), __float_as_uint(__half2float(h)),
      __bfloat16_as_ushort(__double2bfloat16(y)), (unsigned)__bfloat162int_ru(g),
      __bfloat16_as_ushort(__uint2bfloat16_rn((unsigned)x)), __float_as_uint(__bfloat162float(g)),
      *(unsigned*)&h2, *(unsigned*)&g2, __half_as_ushort(__float2half_rd(x))};
  for (int k = 0; k < 16; k++) out[k * n + i] = r[k];
}
extern "C" __global__ void eight_bits(const float* a, const float* b, unsigned* out, int n) {
  int i = threadIdx.x;
  float x = a[i], y = b[i];
  __nv_fp8_e4m3 p(x);
  __nv_fp8_e5m2 q(y);
  __nv_fp8x2_e4m3 p2(make_float2(x, y));
  __nv_fp8x4_e5m2 q4(make_float4(x, y, x * 2, y / 2));
  float4 back = (float4)q4;
  __half2 h2 = (__half2)p2;
  unsigned r[8] = {p.__x, q.__x, p2.__x, q4.__x, __float_as_uint((float)p + (float)q),
                   *(unsigned*)&h2, __float_as_uint(back.x + back.y + back.z + back.w),
                   __half_as_ushort((__half)p)};
  for (int k = 0; k < 8; k++) out[k * n + i] = r[k];
}
#if __CUDA_ARCH__ >= 1000
extern "C" __global__ void packed_pairs(const float2* a, const float2* b, float2* out, int n) {
  int i = threadIdx.x;
  out[i] = __ffma2_rn(a[i], b[i], __fadd2_rn(__fmul2_rn(a[i], b[i]), b[i]));
}
#endif
