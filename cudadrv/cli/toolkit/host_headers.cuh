// What device code gets from the host's C headers under nvcc, and NVRTC lacks.

using int8_t = signed char;
using int16_t = signed short;
using int32_t = signed int;
using int64_t = signed long long;  // as libcu++ has it under NVRTC
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using intptr_t = int64_t;
using uintptr_t = uint64_t;
using intmax_t = int64_t;
using uintmax_t = uint64_t;

// libcu++ defines the same macros under NVRTC, in other words.
#pragma nv_diag_suppress 47
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615ul
#define INT8_MIN SCHAR_MIN
#define INT8_MAX SCHAR_MAX
#define UINT8_MAX UCHAR_MAX
#define INT16_MIN SHRT_MIN
#define INT16_MAX SHRT_MAX
#define UINT16_MAX USHRT_MAX
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LLONG_MIN
#define INT64_MAX LLONG_MAX
#define UINT64_MAX ULLONG_MAX
#define SIZE_MAX ULONG_MAX

#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_EPSILON 1.1920928955078125e-7f
#define FLT_MIN 1.175494350822287508e-38f
#define FLT_MAX 3.402823466385288598e38f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e308

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#define HUGE_VALF INFINITY
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

// Functions of integers and of mixed types compute in double, as C++ says (ISO C++, [cmath.syn]).

namespace cudadrv_host {
template <class T> struct rank { static const int value = 0; };
#define CUDADRV_RANK(type, number) template <> struct rank<type> { static const int value = number; }
CUDADRV_RANK(bool, 1);
CUDADRV_RANK(char, 1);
CUDADRV_RANK(signed char, 1);
CUDADRV_RANK(unsigned char, 1);
CUDADRV_RANK(short, 1);
CUDADRV_RANK(unsigned short, 1);
CUDADRV_RANK(int, 1);
CUDADRV_RANK(unsigned, 1);
CUDADRV_RANK(long, 1);
CUDADRV_RANK(unsigned long, 1);
CUDADRV_RANK(long long, 1);
CUDADRV_RANK(unsigned long long, 1);
CUDADRV_RANK(float, 2);
CUDADRV_RANK(double, 3);
#undef CUDADRV_RANK
template <bool condition> struct only_if {};
template <> struct only_if<true> { using type = double; };
template <class T> using of_integer = typename only_if<rank<T>::value == 1>::type;
template <class A, class B>
using of_mixed = typename only_if<rank<A>::value && rank<B>::value
                                  && !(rank<A>::value == rank<B>::value && rank<A>::value > 1)>::type;
}  // namespace cudadrv_host

#define CUDADRV_ONE(name) \
    template <class T> __host__ __device__ __forceinline__ cudadrv_host::of_integer<T> name(T x) { \
        return name(static_cast<double>(x)); \
    }
#define CUDADRV_TWO(name) \
    template <class A, class B> \
    __host__ __device__ __forceinline__ cudadrv_host::of_mixed<A, B> name(A x, B y) { \
        return name(static_cast<double>(x), static_cast<double>(y)); \
    }
CUDADRV_ONE(acos) CUDADRV_ONE(acosh) CUDADRV_ONE(asin) CUDADRV_ONE(asinh) CUDADRV_ONE(atan)
CUDADRV_ONE(atanh) CUDADRV_ONE(cbrt) CUDADRV_ONE(ceil) CUDADRV_ONE(cos) CUDADRV_ONE(cosh)
CUDADRV_ONE(erf) CUDADRV_ONE(erfc) CUDADRV_ONE(exp) CUDADRV_ONE(exp2) CUDADRV_ONE(expm1)
CUDADRV_ONE(fabs) CUDADRV_ONE(floor) CUDADRV_ONE(lgamma) CUDADRV_ONE(log) CUDADRV_ONE(log10)
CUDADRV_ONE(log1p) CUDADRV_ONE(log2) CUDADRV_ONE(logb) CUDADRV_ONE(nearbyint) CUDADRV_ONE(rint)
CUDADRV_ONE(round) CUDADRV_ONE(sin) CUDADRV_ONE(sinh) CUDADRV_ONE(sqrt) CUDADRV_ONE(tan)
CUDADRV_ONE(tanh) CUDADRV_ONE(tgamma) CUDADRV_ONE(trunc)
CUDADRV_TWO(atan2) CUDADRV_TWO(copysign) CUDADRV_TWO(fdim) CUDADRV_TWO(fmax) CUDADRV_TWO(fmin)
CUDADRV_TWO(fmod) CUDADRV_TWO(hypot) CUDADRV_TWO(nextafter) CUDADRV_TWO(pow)
CUDADRV_TWO(remainder)
#undef CUDADRV_ONE
#undef CUDADRV_TWO

namespace std {
using ::acos; using ::asin; using ::atan; using ::atan2; using ::ceil; using ::cos; using ::cosh;
using ::exp; using ::fabs; using ::floor; using ::fmod; using ::log; using ::log10; using ::pow;
using ::sin; using ::sinh; using ::sqrt; using ::tan; using ::tanh; using ::abs;
}  // namespace std
