"""Kernels that move elements of arrays: stencils, transposes, sorts, a sparse product.

The sort in global memory launches its kernel once per step. Its first step fills the array, so
every run sorts the same numbers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from .cases import Case

SOURCE: Final = r"""
extern "C" __global__ void stencil(const float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  int i = y * n + x;
  out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}
#define S 16
extern "C" __global__ void stencil_tile(const float* in, float* out, int n) {
  __shared__ float s[S + 2][S + 2];
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  int x = blockIdx.x * S + threadIdx.x, y = blockIdx.y * S + threadIdx.y, i = y * n + x;
  s[ty][tx] = in[i];
  if (tx == 1 && x > 0) s[ty][0] = in[i - 1];
  if (tx == S && x < n - 1) s[ty][S + 1] = in[i + 1];
  if (ty == 1 && y > 0) s[0][tx] = in[i - n];
  if (ty == S && y < n - 1) s[S + 1][tx] = in[i + n];
  __syncthreads();
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  out[i] = 0.25f * (s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx]);
}
extern "C" __global__ void transpose(const float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[x * n + y] = in[y * n + x];
}
#define T 32
extern "C" __global__ void transpose_tile(const float* in, float* out, int n) {
  __shared__ float t[T][T + 1];
  int x = blockIdx.x * T + threadIdx.x, y = blockIdx.y * T + threadIdx.y;
  for (int k = 0; k < T; k += 8) t[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
  __syncthreads();
  x = blockIdx.y * T + threadIdx.x;
  y = blockIdx.x * T + threadIdx.y;
  for (int k = 0; k < T; k += 8) out[(y + k) * n + x] = t[threadIdx.x][threadIdx.y + k];
}
extern "C" __global__ void bitonic(int* a, int j, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ j;
  if (k == 0) { a[i] = i * 2654435761u >> 2; return; }
  if (other > i) {
    int x = a[i], y = a[other];
    if ((x > y) == ((i & k) == 0)) { a[i] = y; a[other] = x; }
  }
}
#define M 512
extern "C" __global__ void bitonic_tile(const int* in, int* out) {
  __shared__ int s[2 * M];
  int t = threadIdx.x, base = blockIdx.x * 2 * M;
  s[t] = in[base + t];
  s[t + M] = in[base + t + M];
  for (int k = 2; k <= 2 * M; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      int i = 2 * t - (t & j - 1), x = s[i], y = s[i + j];
      if ((x > y) == ((i & k) == 0)) { s[i] = y; s[i + j] = x; }
    }
  __syncthreads();
  out[base + t] = s[t];
  out[base + t + M] = s[t + M];
}
extern "C" __global__ void spmv(int rows, const int* row, const int* col, const float* val,
                                const float* x, float* y) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int e = row[r]; e < row[r + 1]; e++) sum += val[e] * x[col[e]];
  y[r] = sum;
}
"""
SHARED: Final = {"stencil_tile": 18 * 18 * 4, "transpose_tile": 32 * 33 * 4, "bitonic_tile": 4096}
"""Bytes of shared memory that a kernel declares for each block."""
_SIDE: Final = 1024
_SORTED: Final = 1 << 16
_ROWS: Final = 1 << 15
_IN_ROW: Final = 8, 25  # elements of a row of the sparse matrix: at least 8, fewer than 25
_THREADS: Final = 256


def array_cases() -> list[Case]:
    """Return a case of each kernel."""
    rng = np.random.default_rng(0)
    n = _SIDE
    given = rng.standard_normal((n, n)).astype(np.float32)
    images = given, np.zeros_like(given), np.int32(n)
    tiles = (n // 16, n // 16, 1), (16, 16, 1)
    numbers = rng.integers(0, 1 << 30, _SORTED).astype(np.int32)
    return [
        Case(f"stencil, {n}^2", "stencil", *tiles, images),
        Case(f"stencil by tiles, {n}^2", "stencil_tile", *tiles, images),
        Case(f"transpose, {n}^2", "transpose", *tiles, images),
        Case(f"transpose by tiles, {n}^2", "transpose_tile", (n // 32, n // 32, 1), (32, 8, 1),
             images),
        Case(f"bitonic sort, {_SORTED:,} int", "bitonic", (_SORTED // _THREADS, 1, 1),
             (_THREADS, 1, 1), (np.zeros(_SORTED, np.int32),), steps=_sort_steps()),
        Case(f"bitonic sort by tiles, {_SORTED:,} int", "bitonic_tile", (_SORTED // 1024, 1, 1),
             (512, 1, 1), (numbers, np.zeros_like(numbers))),
        _product(rng),
    ]  # fmt: skip


def _sort_steps() -> tuple[tuple[np.int32, np.int32], ...]:
    found = [(0, 0)]
    k = 2
    while k <= _SORTED:
        j = k // 2
        while j:
            found.append((j, k))
            j //= 2
        k *= 2
    return tuple((np.int32(j), np.int32(k)) for j, k in found)


def _product(rng: np.random.Generator) -> Case:
    """Return the product of a sparse matrix (CSR) and a vector, one thread per row."""
    lengths = rng.integers(*_IN_ROW, _ROWS)
    rows = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    count = int(rows[-1])
    columns = rng.integers(0, _ROWS, count).astype(np.int32)
    values, vector = (rng.standard_normal(k).astype(np.float32) for k in (count, _ROWS))
    return Case(
        f"sparse product, {_ROWS:,} rows",
        "spmv",
        (_ROWS // _THREADS, 1, 1),
        (_THREADS, 1, 1),
        (np.int32(_ROWS), rows, columns, values, vector, np.zeros_like(vector)),
    )
