"""How a launch in another order is divided: blocks into chunks, threads of a chunk into parts.

What runs together can hide what is missing between its threads: they write all before any reads.
To run every warp by itself costs hundreds of times as much, so some blocks are taken apart and the
others run as they always do.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import WARP, Geometry
from ptx.emulate.model.order import Decisions

_SMALL_THREADS: Final = 8192  # of a grid of which many blocks run apart
_MOST_APART: Final = 8  # clusters that run as chunks of their own
_PIECES: Final = 6  # that the rest of a grid whose blocks speak with each other becomes
_MOST_GROUPS: Final = 4  # of warps in a block that runs apart
_FEW_GROUPS: Final = 2  # where the rest of the grid is one or a few chunks
_ALL_LANES: Final = 1 << WARP
# Lanes by the parity of their bits: of two lanes whose numbers differ by a power of two, as in a
# reduction, each is in another part. Halves, and every second lane.
_PARITY: Final = 0x96696996
_PATTERNS: Final = (_PARITY, 0xFFFF0000, 0xAAAAAAAA)


class Chunk(NamedTuple):
    """`blocks` thread blocks from number `first` on.

    `groups`: their lanes run apart, and their warps in at most so many groups; 0: they do not.
    """

    first: int
    blocks: int
    groups: int


def chunks_of(
    blocks: int, threads: int, cluster: int, most: int, speak: bool, decisions: Decisions
) -> list[Chunk]:
    """The chunks of a grid, in the order in which they begin.

    Blocks of `threads` threads and clusters of `cluster` blocks; `most`: blocks of a chunk.
    `speak`: blocks may wait for what others of the launch write.
    """
    if blocks * threads == 1:
        return [Chunk(0, 1, 0)]
    clusters = blocks // cluster
    many = speak or blocks * threads <= _SMALL_THREADS
    if speak:
        most = min(most, max(clusters // _PIECES, 1) * cluster)
    apart = {each * cluster for each in _apart(clusters, many, most // cluster, decisions)}
    edges = apart | {each + cluster for each in apart}
    cuts = sorted(edges | set(range(0, blocks, most)) | {blocks})
    groups = _MOST_GROUPS if many else _FEW_GROUPS
    found = [
        Chunk(first, end - first, groups if first in apart else 0)
        for first, end in zip([0, *cuts], cuts, strict=False)
        if end > first
    ]
    return found[::-1] if decisions.late else decisions.shuffled(found)


def _apart(clusters: int, many: bool, most: int, decisions: Decisions) -> set[int]:
    """The clusters that run apart: many, or one at an edge of a chunk of `most`."""
    if many and clusters <= _MOST_APART:
        return set(range(clusters))
    if decisions.late:
        count = _MOST_APART if many else 1
        return {clusters - 1 - each * clusters // count for each in range(count)}
    if many:
        return {decisions.below(clusters) for _ in range(_MOST_APART)}
    chunk = decisions.below(-(-clusters // most)) * most
    return {min(chunk + most, clusters) - 1 if decisions.below(2) else chunk}


def parts_of(geometry: Geometry, groups: int, decisions: Decisions) -> list[Index]:
    """The lanes of each part of a chunk, in the order in which the parts run where they may.

    Its warps form at most so many groups.
    """
    warp_slot = geometry.index("warp_slot")
    warps = geometry.warps_per_block * geometry.blocks
    groups, mask = min(warps, groups), _PARITY
    if not decisions.late:
        groups = 1 + decisions.below(groups)
        kind = decisions.below(len(_PATTERNS) + 3)
        mask = decisions.below(_ALL_LANES) if kind == len(_PATTERNS) else 0
        mask = _PATTERNS[kind] if kind < len(_PATTERNS) else mask
    group = np.array([decisions.below(groups) for _ in range(warps)], dtype=np.intp)
    lane = (warp_slot % WARP).astype(np.uint64)
    part = group[warp_slot // WARP] * 2 + (np.uint64(mask) >> lane & np.uint64(1)).astype(np.intp)
    found = [(part == each).nonzero()[0] for each in range(2 * groups)]
    found = [lanes for lanes in found if len(lanes)]
    return found[::-1] if decisions.late else decisions.shuffled(found)
