"""Clusters of thread blocks: where they lie in the grid, and each other's shared memory.

PTX ISA, "Cluster of Cooperative Thread Arrays", "mapa", "getctarank". A launch numbers its blocks
cluster by cluster, so that a cluster is always whole in a chunk.

An address in the shared window holds, above the 18 bits of an offset, 0 for the block's own memory
or 1 + the rank of a block in its cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.fault import memory_fault
from ptx.emulate.model.addresses import Index, Span, span
from ptx.emulate.model.geometry import Dim3, Value, coordinates

if TYPE_CHECKING:
    from ptx.emulate.exec.fibre import Fibre
    from ptx.emulate.exec.scheduler import Chunk
    from ptx.emulate.memory.access import Site

OFFSET_BITS = 18  # more than the shared memory of any block
_OFFSET_MASK = (1 << OFFSET_BITS) - 1
_RANK_MASK = 63 << OFFSET_BITS  # up to the size of the shared window


class ClusterShape:
    """How the blocks of a grid form clusters of `extent` blocks."""

    def __init__(self, grid: Dim3, extent: Dim3) -> None:
        self.grid = grid
        self.extent = extent
        self.blocks = extent[0] * extent[1] * extent[2]
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


def cluster_special(chunk: Chunk, stem: str, axis: str) -> Value | None:
    """A special register that describes clusters, None if it is none."""
    shape = chunk.launch.cluster
    numbers = chunk.first + np.arange(chunk.geometry.blocks, dtype=np.intp)
    at = "xyz".find(axis) if axis else -1
    by_block: NDArray[np.uint32]
    if stem == "nclusterid":
        return np.uint32(shape.clusters[at])
    if stem == "cluster_nctaid":
        return np.uint32(shape.extent[at])
    if stem == "cluster_nctarank":
        return np.uint32(shape.blocks)
    if stem == "is_explicit_cluster":
        return np.uint32(chunk.launch.is_cluster)
    if stem == "clusterid":
        by_block = shape.cluster_along(at, numbers)
    elif stem == "cluster_ctaid":
        by_block = shape.rank_along(at, numbers)
    elif stem == "cluster_ctarank":
        by_block = (numbers % shape.blocks).astype(np.uint32)
    else:
        return None
    if (by_block == by_block[0]).all():
        return by_block[0]
    return by_block.take(chunk.geometry.index("slot"))


def map_address(address: Value, rank: Value) -> Value:
    """`mapa`: the address in the shared memory of the block of a rank, in the same window."""
    kind: Any = address.dtype.type
    beyond = (rank.astype(kind) + kind(1)) << kind(OFFSET_BITS)
    return (address & ~kind(_RANK_MASK)) | (beyond & kind(_RANK_MASK))


def rank_of(fibre: Fibre, address: Value) -> Value:
    """`getctarank`: the rank of the block whose shared memory an address lies in."""
    part = (address.astype(np.uint64) & np.uint64(_RANK_MASK)) >> np.uint64(OFFSET_BITS)
    own = fibre.special("cluster_ctarank")
    found = np.where(part > 0, part.astype(np.uint32) - np.uint32(1), own)[()]
    return found.astype(np.uint32)


def locate_remote(
    fibre: Fibre, addresses: Span, offset: int, site: Site, memory: NDArray[np.uint8]
) -> tuple[NDArray[Any], Index]:
    """Elements of shared memory of any block of the cluster.

    Raises:
        MemoryFault: an address is outside of a block's memory, or misaligned, or its block is not
            in the cluster.
    """
    chunk = fibre.chunk
    launch = chunk.launch
    every = addresses.addresses(fibre.n) + offset
    rank = (every >> OFFSET_BITS) - 1
    within = every & _OFFSET_MASK
    within[(every < 0) | (rank >= launch.cluster.blocks)] = -site.total
    limit = launch.shared_bytes
    wrong = (within < 0) | (within + site.total > limit) | ((within & (site.total - 1)) != 0)
    if wrong.any():
        raise memory_fault(fibre, span(within), 0, site, "shared", limit)
    slot = np.asarray(fibre.place("slot"), dtype=np.int64)
    first = slot // launch.cluster.blocks * launch.cluster.blocks
    owner = np.where(rank >= 0, first + rank, slot)
    return memory.view(site.dtype), (owner * chunk.shared_stride + within) >> site.shift
