"""How the blocks of a grid form clusters. PTX ISA, "Cluster of Cooperative Thread Arrays".

A launch numbers its blocks cluster by cluster, so that a cluster is always whole in a chunk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Dim3, coordinates


class ClusterShape:
    """How the blocks of a grid form clusters of `extent` blocks."""

    def __init__(self, grid: Dim3, extent: Dim3) -> None:
        self.grid = grid
        self.extent = extent
        self.blocks: int = extent[0] * extent[1] * extent[2]
        self.clusters: Dim3 = (
            grid[0] // extent[0], grid[1] // extent[1], grid[2] // extent[2]
        )  # fmt: skip

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
