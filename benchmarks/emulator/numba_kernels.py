"""The kernels for Numba, statement by statement those in CUDA C++.

Only for a process that Numba simulates CUDA in: importing this imports Numba.
"""

from __future__ import annotations

import importlib
from typing import Any, Final  # Numba has no types for what a kernel is given

import numpy as np

numba: Final = importlib.import_module("numba")
# The simulator looks for this module among a kernel's globals and puts another in its place.
cuda = importlib.import_module("numba.cuda")
T: Final = 16
_FULL: Final = 0xFFFFFFFF


def saxpy(a: Any, x: Any, y: Any, out: Any, n: int) -> None:
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        out[i] = a * x[i] + y[i]


def reduce(x: Any, out: Any, n: int) -> None:
    s = cuda.shared.array(0, numba.float32)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x + t
    s[t] = x[i] if i < n else 0
    cuda.syncthreads()
    k = cuda.blockDim.x // 2
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        cuda.syncthreads()
        k >>= 1
    if t == 0:
        cuda.atomic.add(out, 0, s[0])


def matmul(left: Any, right: Any, product: Any, n: int) -> None:
    a = cuda.shared.array((T, T), numba.float32)
    b = cuda.shared.array((T, T), numba.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    r, c = cuda.blockIdx.y * T + ty, cuda.blockIdx.x * T + tx
    acc = np.float32(0)
    for k in range(n // T):
        a[ty, tx] = left[r, k * T + tx]
        b[ty, tx] = right[k * T + ty, c]
        cuda.syncthreads()
        for j in range(T):
            acc += a[ty, j] * b[j, tx]
        cuda.syncthreads()
    product[r, c] = acc


def mandelbrot(out: Any, w: int, h: int, limit: int) -> None:
    x = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    y = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if x >= w or y >= h:
        return
    f32 = np.float32
    cr = f32(-2) + f32(3) * f32(x) / f32(w)
    ci = f32(-1.5) + f32(3) * f32(y) / f32(h)
    zr, zi, two, four = f32(0), f32(0), f32(2), f32(4)
    k = 0
    while k < limit and zr * zr + zi * zi < four:
        t = zr * zr - zi * zi + cr
        zi = two * zr * zi + ci
        zr = t
        k += 1
    out[y, x] = k


def histogram(d: Any, n: int, bins: Any) -> None:
    s = cuda.shared.array(256, numba.uint32)
    for i in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        s[i] = 0
    cuda.syncthreads()
    first = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    for i in range(first, n, cuda.blockDim.x * cuda.gridDim.x):
        cuda.atomic.add(s, d[i], 1)
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        cuda.atomic.add(bins, i, s[i])


def shuffle(x: Any, out: Any, n: int) -> None:
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    v = x[i] if i < n else np.float32(0)
    k = 16
    while k > 0:
        v += cuda.shfl_down_sync(_FULL, v, k)
        k >>= 1
    if cuda.threadIdx.x % 32 == 0:
        cuda.atomic.add(out, 0, v)


def empty() -> None:
    pass


KERNELS: Final = {
    function.__name__: function
    for function in (saxpy, reduce, matmul, mandelbrot, histogram, shuffle, empty)
}
