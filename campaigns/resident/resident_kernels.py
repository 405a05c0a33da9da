"""Kernels that a multiprocessor holds few or many of: by registers, shared memory and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

import cudadrv
import ptx

GRID: Final = 1056  # more blocks than some multiprocessors hold at once
_ELEMENTS: Final = 1 << 21


@dataclass(frozen=True, slots=True)
class ResidentKernel:
    """A kernel and its launch.

    Attributes:
        values: that each thread has in registers at once.
        block: its threads.
        static: bytes of its shared array.
        dynamic: bytes of shared memory that the launch adds.
    """

    values: int
    block: int
    static: int = 0
    dynamic: int = 0

    @property
    def name(self) -> str:
        """Tells it from the others."""
        return f"resident_{self.values}_{self.block}_{self.static}_{self.dynamic}"

    @property
    def text(self) -> str:
        """Its CUDA C++."""
        size = self.static // 4
        shared = f"__shared__ float s[{size}]; s[t % {size}] = x[t];" if size else ""
        also = f" + s[(t + 1) % {size}]" if size else ""
        return f"""
extern "C" __global__ void __launch_bounds__({self.block}) {self.name}(float* x, int n) {{
  const int t = threadIdx.x;
  float v[{self.values}];
  {shared}
  __syncthreads();
  #pragma unroll
  for (int k = 0; k < {self.values}; k++) v[k] = x[k * n + t];
  for (int j = 0; j < n; j++) {{
    #pragma unroll
    for (int k = 0; k < {self.values}; k++) v[k] = v[k] * v[(k + 7) % {self.values}] + x[j];
  }}
  float sum = 0;
  #pragma unroll
  for (int k = 0; k < {self.values}; k++) sum += v[k];
  x[blockIdx.x * {self.block} + t] = sum{also};
}}
"""


_KIB: Final = 1024
KERNELS: Final = (
    *(ResidentKernel(1, block) for block in (32, 33, 96, 128, 192, 384, 768, 1000, 1024)),
    *(ResidentKernel(values, 256) for values in (24, 40, 64, 100, 150, 220)),
    ResidentKernel(40, 96), ResidentKernel(64, 33), ResidentKernel(100, 160),
    ResidentKernel(64, 512), ResidentKernel(24, 1024),
    ResidentKernel(1, 64, _KIB), ResidentKernel(1, 64, 5000), ResidentKernel(1, 128, 16 * _KIB),
    ResidentKernel(1, 256, 48 * _KIB), ResidentKernel(1, 128, 100),
    ResidentKernel(1, 256, 0, 64 * _KIB), ResidentKernel(1, 256, 0, 100 * _KIB),
    ResidentKernel(1, 512, 0, 113 * _KIB), ResidentKernel(1, 1024, 0, 227 * _KIB),
    ResidentKernel(1, 64, 4 * _KIB, 9000), ResidentKernel(64, 128, 20 * _KIB, 12 * _KIB),
)  # fmt: skip
SOURCE: Final = "".join(each.text for each in KERNELS)


def loaded(context: cudadrv.Context) -> cudadrv.Module:
    """The module of all of them."""
    return context.load_module(
        ptx.compile(SOURCE, ptx.CompileOptions(target=context.target), name="resident.cu")
    )


def launches(context: cudadrv.Context) -> Iterator[tuple[str, Callable[[], None]]]:
    """Each kernel's name, and what launches it and waits for it."""
    module, stream = loaded(context), context.new_stream()
    x = stream.to_device(np.zeros(_ELEMENTS, np.float32))
    for each in KERNELS:

        def launch(each: ResidentKernel = each) -> None:
            config = cudadrv.LaunchConfig(GRID, each.block, shared_bytes=each.dynamic)
            module.kernel(each.name).launch(stream, config, x, 8)
            stream.synchronize()

        yield each.name, launch
