"""The kernels: each has one pattern of accesses, branches, atomics or arithmetic.

All take `x` and `y` of 65,536 floats, `idx`, a permutation of the numbers below 65,536, and `n`,
which is 16. In their bodies `t` is the thread's number in its block, `i` that in the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.emulator.cases import Case as BenchmarkCase, Sizes, cases as benchmark_cases
from benchmarks.emulator.kernels import SOURCE as BENCHMARKS

ELEMENTS: Final = 1 << 16
TRIPS: Final = 16
SHARED: Final = 2048  # floats of each block's array


@dataclass(frozen=True, slots=True)
class CountedKernel:
    """A kernel and its launch."""

    name: str
    body: str
    block: tuple[int, int] = (256, 1)
    grid: int = 8

    @property
    def text(self) -> str:
        """Its CUDA C++."""
        return (
            f'extern "C" __global__ void {self.name}'
            "(const float* x, float* y, const int* idx, int n) {\n"
            "  int t = threadIdx.y * blockDim.x + threadIdx.x;\n"
            "  int i = blockIdx.x * blockDim.x * blockDim.y + t;\n"
            f"  {self.body}\n}}\n"
        )


def _plain(prefix: str, bodies: dict[str, str]) -> Iterator[CountedKernel]:
    for name, body in bodies.items():
        yield CountedKernel(f"{prefix}_{name}", body)


_BYTES: Final = "((const unsigned char*)x)"
_SHORTS: Final = "((const unsigned short*)x)"
_DOUBLES: Final = "((const double*)x)"
_PAIRS: Final = "((const float2*)x)"
_FOURS: Final = "((const float4*)x)"
_GLOBAL: Final = {
    "coalesced": "y[i] = x[i];",
    "stride2": "y[i] = x[2 * i];",
    "stride3": "y[i] = x[3 * i];",
    "stride8": "y[i] = x[8 * i];",
    "stride32": "y[i] = x[32 * i];",
    "offset1": "y[i] = x[i + 1];",
    "offset5": "y[i] = x[i + 5];",
    "reversed": "y[i] = x[2047 - i];",
    "random": "y[i] = x[idx[i]];",
    "same_in_warp": "y[i] = x[i / 32];",
    "same_in_pairs": "y[i] = x[i / 2];",
    "bytes": f"y[i] = {_BYTES}[i];",
    "bytes_offset": f"y[i] = {_BYTES}[i + 9];",
    "shorts_stride3": f"y[i] = {_SHORTS}[3 * i];",
    "double": f"y[i] = (float){_DOUBLES}[i];",
    "double_offset": f"y[i] = (float){_DOUBLES}[i + 1];",
    "double_stride2": f"y[i] = (float){_DOUBLES}[2 * i];",
    "double_same": f"y[i] = (float){_DOUBLES}[i / 32];",
    "double_swapped": f"y[i] = (float){_DOUBLES}[i ^ 16];",
    "float2": f"float2 v = {_PAIRS}[i]; y[i] = v.x + v.y;",
    "float4": f"float4 v = {_FOURS}[i]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_offset": f"float4 v = {_FOURS}[i + 1]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_stride2": f"float4 v = {_FOURS}[2 * i]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_same": f"float4 v = {_FOURS}[i / 32]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_apart": f"float4 v = {_FOURS}[(i & 7) * 8]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_random": f"float4 v = {_FOURS}[idx[i] & 4095]; y[i] = v.x + v.y + v.z + v.w;",
    "quarter_of_lanes": "if (t % 4 == 0) y[i] = x[i];",
    "half_of_warp": "if (t % 32 < 16) y[i] = x[i];",
    "store_stride2": "y[2 * i] = x[i];",
    "store_offset1": "y[i + 1] = x[i];",
    "store_same": "y[i / 32] = x[i];",
    "store_random": "y[idx[i]] = x[i];",
    "store_bytes": "((unsigned char*)y)[i] = (unsigned char)t;",
    "store_double_stride2": "((double*)y)[2 * i] = i;",
    "store_float4": "((float4*)y)[i] = make_float4(i, t, 1.f, 2.f);",
    "store_float4_same": "((float4*)y)[i / 32] = make_float4(i, t, 1.f, 2.f);",
}


def _shared(value: str) -> str:
    """A body that fills the block's array and then does something with it."""
    fill = "for (int j = t; j < 2048; j += blockDim.x) s[j] = x[j];"
    return f"__shared__ __align__(16) float s[2048]; {fill} __syncthreads(); {value}"


_MATRICES: Final = (
    "unsigned a = 0, b = 0, c = 0, d = 0; "
    'asm volatile("{{ .reg .u64 p; cvta.to.shared.u64 p, %4; '
    'ldmatrix.sync.aligned.m8n8.{}.shared.b16 {}, [p]; }}" '
    ': "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "l"(s + {})); y[i] = a + b + c + d;'
)
_SHARED_LOADS: Final = {
    **{f"stride{k}": f"y[i] = s[{k} * t % 2048];" for k in (1, 2, 3, 4, 8, 16, 32, 33)},
    "same": "y[i] = s[blockIdx.x + n];",
    "same_in_pairs": "y[i] = s[t / 2];",
    "two_rows": "y[i] = s[t % 2 * 32 + t / 4 % 8];",
    "random": "y[i] = s[idx[i] & 2047];",
    "bytes": "y[i] = ((unsigned char*)s)[t];",
    "bytes_stride4": "y[i] = ((unsigned char*)s)[4 * t];",
    "shorts_stride64": "y[i] = ((unsigned short*)s)[64 * t % 4096];",
    "double": "y[i] = (float)((double*)s)[t];",
    "double_stride2": "y[i] = (float)((double*)s)[2 * t];",
    "double_stride32": "y[i] = (float)((double*)s)[32 * t % 1024];",
    "double_same": "y[i] = (float)((double*)s)[blockIdx.x + n];",
    "double_in_pairs": "y[i] = (float)((double*)s)[t / 2];",
    "double_in_halves": "y[i] = (float)((double*)s)[t % 16];",
    "double_random": "y[i] = (float)((double*)s)[idx[i] & 1023];",
    "double_half_of_warp": "if (t % 32 < 16) y[i] = (float)((double*)s)[t];",
    "double_even_lanes": "if (t % 2 == 0) y[i] = (float)((double*)s)[t];",
    "float4": "float4 v = ((float4*)s)[t]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_stride2": "float4 v = ((float4*)s)[2 * t % 512]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_stride8": "float4 v = ((float4*)s)[8 * t % 512]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_same": "float4 v = ((float4*)s)[blockIdx.x + n]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_in_pairs": "float4 v = ((float4*)s)[t / 2]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_in_quarters": "float4 v = ((float4*)s)[t % 8]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_random": "float4 v = ((float4*)s)[idx[i] & 511]; y[i] = v.x + v.y + v.z + v.w;",
    "double_in_fours": "y[i] = (float)((double*)s)[t / 4];",
    "double_by_two": "y[i] = (float)((double*)s)[t / 4 * 2 + t % 2];",
    "double_by_four": "y[i] = (float)((double*)s)[t / 8 * 4 + t % 4];",
    "double_even_together": "if (t % 2 == 0) y[i] = (float)((double*)s)[t / 2];",
    "double_pair_broken": "y[i] = (float)((double*)s)[t % 32 == 31 ? 16 : t % 32 / 2];",
    "double_pair_missing": "if (t % 32 != 5) y[i] = (float)((double*)s)[t % 32 / 2];",
    "double_pairs_apart": "int p = t % 32 / 2; "
    "y[i] = (float)((double*)s)[p < 8 ? p * 16 : (p - 8) * 16 + 2];",
    "double_pairs_half": "y[i] = (float)((double*)s)[t % 32 < 16 ? t % 32 / 2 : t % 32];",
    "double_two_lanes": "if (t % 16 == 3) y[i] = (float)((double*)s)[t % 32 / 16];",
    "double_four_lanes": "if (t % 16 < 2) y[i] = (float)((double*)s)[t % 32 / 16 * 4 + t % 2];",
    "float4_in_fours": "float4 v = ((float4*)s)[t / 4]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_by_two": "float4 v = ((float4*)s)[t / 4 * 2 + t % 2]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_by_four": "float4 v = ((float4*)s)[t / 8 * 4 + t % 4]; y[i] = v.x + v.y + v.z + v.w;",
    "float4_even_together": "if (t % 2 == 0) { float4 v = ((float4*)s)[t / 2]; "
    "y[i] = v.x + v.y + v.z + v.w; }",
    "float4_pairs_apart": "int p = t % 32 / 2; "
    "float4 v = ((float4*)s)[p < 4 ? p * 8 : p < 8 ? (p - 4) * 8 + 2 : 4]; "
    "y[i] = v.x + v.y + v.z + v.w;",
    "float4_pairs_half": "float4 v = ((float4*)s)[t % 32 < 16 ? t % 32 / 2 : t % 32]; "
    "y[i] = v.x + v.y + v.z + v.w;",
    "float4_pairs_quarter": "float4 v = ((float4*)s)[t % 32 < 8 ? t % 32 / 2 : t % 32]; "
    "y[i] = v.x + v.y + v.z + v.w;",
    "float4_two_lanes": "if (t % 8 == 3) { float4 v = ((float4*)s)[t % 32 / 8]; "
    "y[i] = v.x + v.y + v.z + v.w; }",
    "copies": "for (int j = 0; j < 2; j++) __pipeline_memcpy_async((float4*)s + t, "
    f"{_FOURS} + 2 * i + j, 16); __pipeline_commit(); __pipeline_wait_prior(0); "
    "__syncthreads(); y[i] = s[t];",
    "copies_of_four": "__pipeline_memcpy_async(s + t, x + 3 * i, 4); __pipeline_commit(); "
    "__pipeline_wait_prior(0); __syncthreads(); y[i] = s[t];",
    "matrices": _MATRICES.format("x4", "{%0, %1, %2, %3}", "t % 32 * 8"),
    "matrices_apart": _MATRICES.format("x4", "{%0, %1, %2, %3}", "t % 32 * 32"),
    "one_matrix": _MATRICES.format("x1", "{%0}", "t % 8 * 64"),
}
_THEN_READ: Final = "__syncthreads(); y[i] = s[t];"
_SHARED_STORES: Final = {
    **{f"stride{k}": f"s[{k} * t % 2048] = t; {_THEN_READ}" for k in (2, 8, 32, 33)},
    "same": f"s[blockIdx.x + n] = t; {_THEN_READ}",
    "random": f"s[idx[i] & 2047] = t; {_THEN_READ}",
    "double": f"((double*)s)[t] = t; {_THEN_READ}",
    "double_stride2": f"((double*)s)[2 * t] = t; {_THEN_READ}",
    "double_random": f"((double*)s)[idx[i] & 1023] = t; {_THEN_READ}",
    "double_same": f"((double*)s)[blockIdx.x + n] = t; {_THEN_READ}",
    "double_in_pairs": f"((double*)s)[t / 2] = t; {_THEN_READ}",
    "float4_same": f"((float4*)s)[blockIdx.x + n] = make_float4(t, 1, 2, 3); {_THEN_READ}",
    "float4": f"((float4*)s)[t] = make_float4(t, 1, 2, 3); {_THEN_READ}",
    "float4_stride2": f"((float4*)s)[2 * t] = make_float4(t, 1, 2, 3); {_THEN_READ}",
    "float4_random": f"((float4*)s)[idx[i] & 511] = make_float4(t, 1, 2, 3); {_THEN_READ}",
}
_TURNS: Final = "for (int k = 0; k < n; k++) v = v * x[k] + {};"
_BRANCHES: Final = {
    "none": f"float v = t; {_TURNS.format(1)} y[i] = v;",
    "even_and_odd": f"float v = t; if (t & 1) {{ {_TURNS.format(2)} }} else {{ "
    f"{_TURNS.format(3)} }} y[i] = v;",
    "by_warp": f"float v = t; if (t / 32 & 1) {{ {_TURNS.format(2)} }} else {{ "
    f"{_TURNS.format(3)} }} y[i] = v;",
    "one_lane": f"float v = t; if (t % 32 == 5) {{ {_TURNS.format(2)} }} y[i] = v;",
    "four_ways": "float v = t; switch (t & 3) {"
    + " ".join(f"case {k}: {_TURNS.format(k + 2)} break;" for k in range(4))
    + "} y[i] = v;",
    "trips_by_lane": "float v = t; for (int k = 0; k < t % 32; k++) v = v * x[k] + 1; y[i] = v;",
    "nested": "float v = t; if (t & 1) { "
    + f"if (t & 2) {{ {_TURNS.format(2)} }} else {{ {_TURNS.format(3)} }} "
    + f"}} else {{ {_TURNS.format(4)} }} y[i] = v;",
    "break": "float v = t; for (int k = 0; k < n; k++) { v = v * 1.5f + x[k]; "
    "if (v > 40.f + t % 5) break; y[4096 + i] = v; } y[i] = v;",
    "continue": "float v = t; for (int k = 0; k < n; k++) { if ((k ^ t) & 3) continue; "
    "v = v * 1.5f + x[k]; y[4096 + i] = v; } y[i] = v;",
    "function": "y[i] = early(t % 8, n, x);",
    "function_twice": "float v = early(t % 8, n, x); v += early(v + t % 3, n, x); y[i] = v;",
    "function_in_part": "float v = t; if (t & 4) { v = early(t % 8, n, x); y[4096 + i] = v; } "
    "y[i] = v;",
    "by_address": "y[i] = chosen[t % 3](x[i], n, x);",
    "recursive": "y[i] = recursive(t % 6, x);",
    "early_return": f"if (t % 32 > 20) return; float v = t; {_TURNS.format(1)} y[i] = v;",
}
_ATOMICS: Final = {
    "one_address": "atomicAdd(y, x[i]);",
    "own_address": "atomicAdd(y + i, x[i]);",
    "of_warp": "atomicAdd(y + i / 32, x[i]);",
    "random": "atomicAdd(y + (idx[i] & 63), x[i]);",
    "int_random": "atomicAdd((int*)y + (idx[i] & 63), t);",
    "result": "y[i] = atomicExch((int*)y + 4096 + (idx[i] & 63), t);",
    "double_of_pairs": "atomicAdd((double*)y + i / 2, 1.0);",
    "max": "atomicMax((int*)y + (idx[i] & 63), t);",
    "shared_own": _shared("atomicAdd((int*)s + t, i); __syncthreads(); y[i] = s[t];"),
    "shared_random": _shared(
        "atomicAdd((int*)s + (idx[i] & 255), i); __syncthreads(); y[i] = s[t];"
    ),
    "shared_long": _shared(
        "atomicAdd((unsigned long long*)s + (idx[i] & 255), 3ull); __syncthreads(); y[i] = s[t];"
    ),
    "shared_exchange": _shared(
        "atomicExch((int*)s + (idx[i] & 63), t); __syncthreads(); y[i] = s[t];"
    ),
    "double_random": "atomicAdd((double*)y + (idx[i] & 63), 1.0);",
    "vector_of_block": "y[i] = atomicAdd((int*)y + 4096 + blockIdx.x, t);",
    "shared_pairs": _shared("atomicAdd((int*)s + t / 2, i); __syncthreads(); y[i] = s[t];"),
}
_CHAIN: Final = "for (int k = 0; k < n; k++) {} y[i] = v;"
_WIDE: Final = "double a = x[i], b = x[i + 1], v = x[i + 2]; "
_NARROW: Final = "float a = x[i], b = x[i + 1], v = x[i + 2]; "
_HALVES: Final = (
    "__half2 a = __float2half2_rn(x[i]), b = __float2half2_rn(x[i + 1]), v = a; "
    "for (int k = 0; k < n; k++) {} y[i] = __low2float(v);"
)
_WHOLE: Final = "int a = idx[i], b = idx[i + 1]; int v = idx[i + 2]; "
_ARITHMETIC: Final = {
    "fadd": _NARROW + _CHAIN.format("v = __fadd_rn(v, a);"),
    "fmul": _NARROW + _CHAIN.format("v = __fmul_rn(v, a);"),
    "ffma": _NARROW + _CHAIN.format("v = __fmaf_rn(v, a, b);"),
    "fsub_and_neg": _NARROW + _CHAIN.format("v = __fadd_rn(-v, fabsf(a));"),
    "fmax": _NARROW + _CHAIN.format("v = fmaxf(v * a, b);"),
    "dadd": _WIDE + _CHAIN.format("v = __dadd_rn(v, a);"),
    "dmul": _WIDE + _CHAIN.format("v = __dmul_rn(v, a);"),
    "dfma": _WIDE + _CHAIN.format("v = __fma_rn(v, a, b);"),
    "hadd": _HALVES.format("v = __hadd2_rn(v, b);"),
    "hmul": _HALVES.format("v = __hmul2_rn(v, b);"),
    "hfma": _HALVES.format("v = __hfma2(v, a, b);"),
    "mixed": _NARROW + _CHAIN.format("v = v * a + b; a = a + 0.5f; b *= v;"),
    "iadd": _WHOLE + _CHAIN.format("v = (v ^ a) + b;"),
    "imad": _WHOLE + _CHAIN.format("v = v * a + b;"),
    "bits": _WHOLE + _CHAIN.format("v = (v & a) ^ (b | v) ^ (v << 3); a = ~v; b = __brev(a);"),
    "popc": _WHOLE + _CHAIN.format("v += __popc(v) + __clz(a ^ v);"),
    "convert": _WHOLE + _CHAIN.format("v += (int)((float)v * 0.5f);"),
    "special": _NARROW + _CHAIN.format("v = __sinf(v) + __expf(a);"),
    "division": _NARROW + _CHAIN.format("v = v / a + b;"),
    "square_root": _NARROW + _CHAIN.format("v = sqrtf(fabsf(v)) + b;"),
    "int_division": _WHOLE + _CHAIN.format("v = v / (a | 1) + b;"),
    "shuffle": _NARROW + _CHAIN.format("v += __shfl_xor_sync(~0u, v, k);"),
    "vote": _NARROW + _CHAIN.format("v += __ballot_sync(~0u, v > a) + __any_sync(~0u, v < b);"),
    "barriers": _NARROW + _CHAIN.format("v += a; __syncthreads();"),
}
_SHAPES: Final = (
    CountedKernel("shape_block33", "y[i] = x[i];", (33, 1)),
    CountedKernel("shape_block1", "y[i] = x[i];", (1, 1)),
    CountedKernel("shape_rows", "y[i] = x[threadIdx.x * 256 + threadIdx.y];", (16, 16)),
    CountedKernel(
        "shape_transpose32",
        "__shared__ float s[32][32]; s[threadIdx.y][threadIdx.x] = x[i]; __syncthreads();"
        " y[i] = s[threadIdx.x][threadIdx.y];",
        (32, 32),
    ),
    CountedKernel(
        "shape_transpose33",
        "__shared__ float s[32][33]; s[threadIdx.y][threadIdx.x] = x[i]; __syncthreads();"
        " y[i] = s[threadIdx.x][threadIdx.y];",
        (32, 32),
    ),
)
KERNELS: Final = (
    *_plain("global", _GLOBAL),
    *_plain("shared", {name: _shared(body) for name, body in _SHARED_LOADS.items()}),
    *_plain("stored", {name: _shared(body) for name, body in _SHARED_STORES.items()}),
    *_plain("branch", _BRANCHES),
    *_plain("atomic", _ATOMICS),
    *_plain("arithmetic", _ARITHMETIC),
    *_SHAPES,
)
_FUNCTIONS: Final = """
__device__ __noinline__ float early(float v, int n, const float* x) {
  if (v < 3) return v;
  for (int k = 0; k < n; k++) v = v * x[k] + 1;
  return v;
}
__device__ __noinline__ float doubled(float v, int n, const float* x) { return v * n; }
__device__ __noinline__ float added(float v, int n, const float* x) { return v + x[n]; }
__device__ float (*const chosen[])(float, int, const float*) = {early, doubled, added};
__device__ __noinline__ float recursive(int depth, const float* x) {
  return depth ? x[depth] * recursive(depth - 1, x) + 1 : 2;
}
"""
SOURCE: Final = (
    "#include <cuda_fp16.h>\n#include <cuda_pipeline.h>\n"
    + _FUNCTIONS
    + BENCHMARKS
    + "".join(each.text for each in KERNELS)
)


def benchmarks() -> list[BenchmarkCase]:
    """Launches of the emulator's benchmark kernels."""
    return benchmark_cases(
        Sizes(
            saxpy=10_240,
            reduction=10_240,
            shuffle=10_240,
            product=64,
            picture=64,
            limit=64,
            bytes=10_000,
            histogram_blocks=8,
        )
    )
