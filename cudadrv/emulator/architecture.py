"""What every device of a compute capability has in common.

CUDA Programming Guide, "Compute Capabilities", table of technical specifications.
"""

from __future__ import annotations

from dataclasses import dataclass

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Architecture:
    """The limits of one compute capability; memory in bytes.

    Attributes:
        double_ratio: single-precision throughput over double-precision throughput.
        reserved_shared: shared memory of each block that the system takes.
        max_cluster: largest portable cluster, in blocks; 0 without clusters.
    """

    threads_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    shared_per_block_optin: int
    double_ratio: int
    reserved_shared: int = 1024
    max_cluster: int = 0


def _architecture(
    threads: int, blocks: int, shared: int, optin: int, ratio: int, *, cluster: int = 0
) -> Architecture:
    return Architecture(
        threads_per_sm=threads,
        blocks_per_sm=blocks,
        shared_per_sm=shared * _KIB,
        shared_per_block_optin=optin * _KIB,
        double_ratio=ratio,
        reserved_shared=0 if shared == optin else _KIB,
        max_cluster=cluster,
    )


ARCHITECTURES: dict[tuple[int, int], Architecture] = {
    (7, 0): _architecture(2048, 32, 96, 96, 2),
    (7, 2): _architecture(2048, 32, 96, 96, 2),
    (7, 5): _architecture(1024, 16, 64, 64, 32),
    (8, 0): _architecture(2048, 32, 164, 163, 2),
    (8, 6): _architecture(1536, 16, 100, 99, 32),
    (8, 7): _architecture(1536, 16, 164, 163, 32),
    (8, 9): _architecture(1536, 24, 100, 99, 64),
    (9, 0): _architecture(2048, 32, 228, 227, 2, cluster=8),
    (10, 0): _architecture(2048, 32, 228, 227, 2, cluster=8),
    (10, 3): _architecture(2048, 32, 228, 227, 64, cluster=8),
    (11, 0): _architecture(1536, 24, 228, 227, 64, cluster=8),
    (12, 0): _architecture(1536, 24, 100, 99, 64, cluster=8),
    (12, 1): _architecture(1536, 24, 100, 99, 64, cluster=8),
}
