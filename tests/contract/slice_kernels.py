"""Kernels that copy interleaved arrays by tensor maps, and such arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.tensor_map import TensorMap, TensorSwizzle

from .tensor_kernels import BARRIER, COMMON

AnyArray = cudadrv.DeviceArray[np.generic]
PIECE = 16
TOTAL = 2048
BRING = r"""
// Brings the box at {x, y, z, w, v}, and gives shared memory as it then is. Fewer bytes than are
// expected would never end the phase.
extern "C" __global__ void NAME(const __grid_constant__ TensorMap map, unsigned char* out, int x,
                                int y, int z, int w, int v, int dx, int dy, int dz, int nbytes,
                                int total) {
  extern __shared__ __align__(1024) unsigned char box[];
  unsigned long long* bar = (unsigned long long*)(box + total);
  unsigned short a = dx, b = dy, c = dz;
  for (int k = threadIdx.x; k < total; k += blockDim.x) box[k] = 0xEE;
  if (threadIdx.x == 0) { init(bar, 1); make_barriers_known(); }
  make_writes_known();
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, nbytes);
    asm volatile("cp.async.bulk.tensor.COPY;" :: "r"(at(box)), "l"(&map), "r"(at(bar)), "r"(x),
                 "r"(y), "r"(z), "r"(w), "r"(v), "h"(a), "h"(b), "h"(c) : "memory");
  }
  wait(bar, 0);
  for (int k = threadIdx.x; k < total; k += blockDim.x) out[k] = box[k];
}
"""
PLACE = r"""
// Writes what is given at {x, y, z, w}, or adds it there.
extern "C" __global__ void NAME(const __grid_constant__ TensorMap map, const unsigned char* in,
                                int x, int y, int z, int w, int total) {
  extern __shared__ __align__(1024) unsigned char box[];
  for (int k = threadIdx.x; k < total; k += blockDim.x) box[k] = in[k];
  make_writes_known();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.COPY;" :: "r"(at(box)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
    finish_stores();
  }
}
"""
AT = {3: "{%3, %4, %5}", 4: "{%3, %4, %5, %6}", 5: "{%3, %4, %5, %6, %7}"}
OFFSETS = {3: "{%8}", 4: "{%8, %9}", 5: "{%8, %9, %10}"}
LOADING = "d.shared::cluster.global.{}.mbarrier::complete_tx::bytes [%0], [%1, {}], [%2]"
WRITING = "global.shared::cta.{}.bulk_group [%1, {}], [%0]"
# The kernels by their names, and what each copies by.
LOADS = {f"tile_{n}": f"{n}{LOADING.format('tile', at)}" for n, at in AT.items()} | {
    f"im2col_{n}": f"{n}{LOADING.format('im2col', at)}, {OFFSETS[n]}" for n, at in AT.items()
}
WRITES = {
    "store": "async.bulk.tensor.3d." + WRITING.format("tile", "{%2, %3, %4}"),
    "add": "reduce.async.bulk.tensor.3d." + WRITING.format("add.tile", "{%2, %3, %4}"),
    "store_images": "async.bulk.tensor.4d." + WRITING.format("im2col_no_offs", "{%2, %3, %4, %5}"),
}
SOURCE = COMMON + "".join(
    source.replace("NAME", name).replace("COPY", copy)
    for source, copies in ((BRING, LOADS), (PLACE, WRITES))
    for name, copy in copies.items()
)


class Slices:
    """Slices in rows that lie 29 apart, of which the tensor has some.

    Attributes:
        nbytes: of a slice.
        whole: all of memory, with axes (N, C/8, ..., 29, 8).
        width: the slices of a row that belong to the tensor.
    """

    def __init__(self, nbytes: int, dtype: str, shape: tuple[int, ...]) -> None:
        self.nbytes, self.width = nbytes, shape[-1]
        rng = np.random.default_rng(3)
        data = rng.integers(1, 256, (*shape[:-1], 29, nbytes), dtype=np.uint8)
        self.whole: NDArray[np.generic] = data.view(dtype)

    def array(self, stream: cudadrv.Stream) -> AnyArray:
        """The tensor, on a device."""
        return stream.to_device(self.whole)[..., : self.width, :]

    def pieces(self) -> NDArray[np.uint8]:
        """Memory by 16 bytes, in its order."""
        return self.whole.view(np.uint8).reshape(-1, PIECE)


def brought(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    tensor_map: TensorMap,
    start: Sequence[int],
    offsets: Sequence[int] | None = None,
) -> NDArray[np.uint8]:
    """Shared memory by 16 bytes behind a copy of a box, and that no more than the box came.

    `offsets`: of images; None: the box is a tile.
    """
    out = stream.empty(TOTAL, np.uint8)
    nbytes = tensor_map.box_nbytes
    assert tensor_map.shared_nbytes == nbytes
    kernel = kernels.kernel(f"{'tile' if offsets is None else 'im2col'}_{len(start)}")
    given = (*_padded(start, 5), *_padded(offsets or (), 3))
    config = LaunchConfig(1, 64, shared_bytes=TOTAL + BARRIER)
    kernel.launch(stream, config, tensor_map, out, *given, nbytes, TOTAL)
    found = stream.to_host(out)
    assert (found[nbytes:] == 0xEE).all()
    return found[:nbytes].reshape(-1, PIECE)


def put(
    stream: cudadrv.Stream,
    kernel: cudadrv.Kernel,
    tensor_map: TensorMap,
    given: NDArray[np.generic],
    start: Sequence[int],
) -> None:
    """Write shared memory, which holds what is given, to a box, or add it there."""
    config = LaunchConfig(1, 64, shared_bytes=given.nbytes)
    box = stream.to_device(given.view(np.uint8))
    kernel.launch(stream, config, tensor_map, box, *_padded(start, 4), given.nbytes)


def swizzled(pieces: NDArray[np.uint8], swizzle: TensorSwizzle) -> NDArray[np.uint8]:
    """Pieces of 16 bytes as they lie in shared memory, in rows of eight."""
    found = np.zeros_like(pieces)
    place = np.arange(len(pieces))
    found[place ^ (place >> 3) % max(swizzle.nbytes // PIECE, 1)] = pieces
    return found


def _padded(values: Sequence[int], count: int) -> tuple[int, ...]:
    return (*values, *(0,) * (count - len(values)))
