"""Kernels of one thread, of few, and of threads that each go their own way, in CUDA C++."""

from __future__ import annotations

from typing import Final

_SOURCE: Final = r"""
extern "C" __global__ void jacobi(double* A, int n, int sweeps) {
  for (int s = 0; s < sweeps; s++)
    for (int p = 0; p < n - 1; p++)
      for (int q = p + 1; q < n; q++) {
        double alpha = 0, beta = 0, gamma = 0;
        for (int i = 0; i < n; i++) {
          double x = A[i * n + p], y = A[i * n + q];
          alpha += x * x; beta += y * y; gamma += x * y;
        }
        if (fabs(gamma) < 1e-15 * sqrt(alpha * beta)) continue;
        double zeta = (beta - alpha) / (2 * gamma);
        double t = (zeta > 0 ? 1.0 : -1.0) / (fabs(zeta) + sqrt(1 + zeta * zeta));
        double c = 1 / sqrt(1 + t * t), d = c * t;
        for (int i = 0; i < n; i++) {
          double x = A[i * n + p], y = A[i * n + q];
          A[i * n + p] = c * x - d * y;
          A[i * n + q] = d * x + c * y;
        }
      }
}
extern "C" __global__ void sort(float* a, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j + 1 < n - i; j++) {
      float x = a[j], y = a[j + 1];
      if (x > y) { a[j] = y; a[j + 1] = x; }
    }
}
extern "C" __global__ void softmax(const float* a, float* out, int n) {
  float most = -1e30f, sum = 0;
  for (int i = 0; i < n; i++) most = fmaxf(most, a[i]);
  for (int i = 0; i < n; i++) sum += expf(a[i] - most);
  for (int i = 0; i < n; i++) out[i] = expf(a[i] - most) / sum;
}
extern "C" __global__ void samples(const float* x, const float* w, float* out, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
  float state = 0;
  for (int k = 0; k < n; k++) {
    state = 0.9f * state + w[t] * x[k];
    s[t] = state;
    __syncthreads();
    float y = s[(t + 1) % blockDim.x];
    state = 0.5f * (state + y);
    if (t == 0) out[k] = y;
    __syncthreads();
  }
}
extern "C" __global__ void branches(unsigned* out, int n, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned x = i * 2654435761u + 12345u, a = 1, b = 2;
  float f = 0.5f;
  for (int k = 0; k < steps; k++) {
    x = x * 1664525u + 1013904223u;
    unsigned turns = x >> 8 & 7;
    switch (x >> 26) {
CASES
    }
  }
  out[i] = a ^ b ^ __float_as_uint(f);
}
"""

# Each of the 64 branches has a loop of its own, so that the compiler keeps them apart.
_CASE: Final = """      case {0}:
#pragma unroll 1
        for (unsigned j = 0; j < turns; j++) {{
          a = a * {1} + (b >> j); b ^= a << {2}; f = f * 0.{3}f + 0.1f; if (a & {4}) b += {0};
        }}
        break;"""
_CASES: Final = "\n".join(
    _CASE.format(case, 2 * case + 3, case % 7 + 1, case + 10, 1 << case % 5) for case in range(64)
)
SOURCE: Final = _SOURCE.replace("CASES", _CASES)
