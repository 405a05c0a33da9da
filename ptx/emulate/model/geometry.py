"""Positions of threads in blocks, warps and chunks, and of blocks in clusters.

PTX ISA, "Cluster of Cooperative Thread Arrays".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index

Dim3 = tuple[int, int, int]
# A NumPy array or scalar: which, and of what type, is known only when the kernel runs.
Value: TypeAlias = Any
WARP = 32


class GridCall(NamedTuple):
    """A launch of a kernel.

    Attributes:
        grid: its blocks, or its clusters with `.blocksareclusters`.
        params: laid out by the offsets of the signature.
        shared_bytes: dynamic shared memory of a block.
        cooperative: whether all blocks run at once, so that they may wait for each other.
        cluster: None if the launch requests none.
    """

    grid: Dim3
    block: Dim3
    params: bytes = b""
    shared_bytes: int = 0
    cooperative: bool = False
    cluster: Dim3 | None = None


class Geometry:
    """`blocks` thread blocks of shape `block`, one thread after another: x fastest, then y, z.

    A lane is a thread's number in the chunk. A warp slot is its number if every block were padded
    to full warps. It equals the lane if the block is a multiple of 32 threads.
    """

    def __init__(self, block: Dim3, blocks: int) -> None:
        self.block = block
        self.blocks = blocks
        self.threads_per_block: int = block[0] * block[1] * block[2]
        self.threads: int = self.threads_per_block * blocks
        self.warps_per_block: int = -(-self.threads_per_block // WARP)
        self._arrays: dict[str, Value] = {}
        self._remembered: dict[str, NDArray[np.int64]] = {}

    def array(self, name: str) -> Value:
        """One value a thread, or a scalar where all threads agree.

        Names: intp "lane", "slot" (block within the chunk), "thread" (linear, within the block)
        and "warp_slot"; uint32 "slot32", "tid.x", "tid.y", "tid.z", "laneid" and "warpid".
        """
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = self._make(name)
        return array

    def index(self, name: str) -> Index:
        """Return the values of `array`, always as an intp array."""
        return np.broadcast_to(np.asarray(self.array(name), dtype=np.intp), (self.threads,))

    def remembered(self, name: str, make: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return an array (threads,) that all chunks of this shape share; made on first use."""
        array = self._remembered.get(name)
        if array is None:
            array = self._remembered[name] = make()
        return array

    def _make(self, name: str) -> Value:
        x, y, z = self.block
        if name == "lane":
            return np.arange(self.threads, dtype=np.intp)
        if name == "slot":
            return self.index("lane") // self.threads_per_block
        if name == "slot32":
            return self.index("slot").astype(np.uint32)
        if name == "thread":
            return self.index("lane") - self.index("slot") * self.threads_per_block
        if name == "warp_slot":
            if self.threads_per_block % WARP == 0:
                return self.index("lane")
            padded = self.warps_per_block * WARP
            return self.index("slot") * padded + self.index("thread")
        thread = self.index("thread")
        extents = {"tid.x": (x, 1), "tid.y": (y, x), "tid.z": (z, x * y)}
        if name in extents:
            extent, stride = extents[name]
            if extent == 1:
                return np.uint32(0)
            return (thread // stride % extent).astype(np.uint32)
        if name == "laneid":
            return (thread % WARP).astype(np.uint32)
        if name == "warpid":
            return (thread // WARP).astype(np.uint32)
        raise KeyError(name)


@lru_cache(maxsize=64)
def geometry(block: Dim3, blocks: int) -> Geometry:
    """The geometry of a chunk; bounded cache, as launches repeat their shapes."""
    return Geometry(block, blocks)


def coordinates(linear: int, extent: Dim3) -> Dim3:
    """The x, y, z of a linear number."""
    x, y, _ = extent
    return linear % x, linear // x % y, linear // (x * y)


class ClusterShape:
    """The division of a grid's blocks into clusters of `extent` blocks."""

    def __init__(self, grid: Dim3, extent: Dim3) -> None:
        self.grid = grid
        self.extent = extent
        self.blocks: int = extent[0] * extent[1] * extent[2]
        self.clusters: Dim3 = (grid[0] // extent[0], grid[1] // extent[1], grid[2] // extent[2])

    def block(self, number: int) -> Dim3:
        """The coordinates of the launch's block number `number`."""
        if self.blocks == 1:
            return coordinates(number, self.grid)
        cluster = coordinates(number // self.blocks, self.clusters)
        rank = coordinates(number % self.blocks, self.extent)
        x, y, z = (c * e + r for c, e, r in zip(cluster, self.extent, rank, strict=True))
        return x, y, z

    def along(self, axis: int, numbers: Index) -> NDArray[np.uint32]:
        """One coordinate of the blocks with these numbers."""
        inside = self.rank_along(axis, numbers)
        return self.cluster_along(axis, numbers) * np.uint32(self.extent[axis]) + inside

    def cluster_along(self, axis: int, numbers: Index) -> NDArray[np.uint32]:
        """One coordinate of their clusters."""
        return _along(self.clusters, axis, numbers // self.blocks)

    def rank_along(self, axis: int, numbers: Index) -> NDArray[np.uint32]:
        """One coordinate of their places within their clusters."""
        return _along(self.extent, axis, numbers % self.blocks)


def _along(extent: Dim3, axis: int, numbers: Index) -> NDArray[np.uint32]:
    stride = (1, extent[0], extent[0] * extent[1])[axis]
    return (numbers // stride % extent[axis]).astype(np.uint32)
