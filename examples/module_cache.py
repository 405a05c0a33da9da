"""Kernels compiled when they are first needed: one source, and a family of sources."""

from __future__ import annotations

import threading

import numpy as np

import ptx
from cudadrv import Context, LaunchConfig, PtxModuleCache, cuda_context_for
from cudadrv.runtime import KeyedPtxModuleCache

SUM = """
extern "C" __global__ void add(const double* a, const double* b, double* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}
"""

# gam compares device results with a CPU that rounds a product and a sum twice: no contraction.
ADDITION = PtxModuleCache(ptx.NO_FMA)
POWERS = KeyedPtxModuleCache()


def power_source(degree: int) -> str:
    """The degree is baked into the source, so the compiler unrolls the loop."""
    return f"""
extern "C" __global__ void power(double* x, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double base = x[i], product = 1.0;
    for (int k = 0; k < {degree}; ++k) product *= base;
    x[i] = product;
}}
"""


def raise_to(context: Context, values: list[float], degree: int) -> list[float]:
    module = POWERS.get_or_compile(context, degree, "power", power_source)
    stream, n = context.default_stream, len(values)
    with stream.to_device(np.array(values)) as x:
        module.kernel("power").launch(stream, LaunchConfig.for_elements(n), x, n)
        return [float(value) for value in stream.to_host(x)]


def main() -> None:
    context = cuda_context_for(0)
    assert ADDITION.get() is None
    module = ADDITION.get_or_compile(context, "addition", SUM)
    assert ADDITION.get_or_compile(context, "addition", SUM) is module

    print(raise_to(context, [1.0, 2.0, 3.0], 2), raise_to(context, [1.0, 2.0, 3.0], 5))
    assert raise_to(context, [2.0], 10) == [1024.0]
    print(f"{len(POWERS)} degrees compiled")

    found: set[int] = set()
    threads = [
        threading.Thread(
            target=lambda: found.add(id(POWERS.get_or_compile(context, 7, "power", power_source)))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1, "eight threads share one compilation"


if __name__ == "__main__":
    main()
