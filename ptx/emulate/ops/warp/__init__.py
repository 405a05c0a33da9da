"""What lanes, warps, blocks and clusters do together."""

from ptx.emulate.ops.warp import barrier, cluster, match, redux, shuffle, vote

__all__ = ["barrier", "cluster", "match", "redux", "shuffle", "vote"]
