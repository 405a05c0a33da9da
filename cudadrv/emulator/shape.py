"""The shape of a launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Dim3 = tuple[int, int, int]
NO_CLUSTER: Final = (1, 1, 1)


@dataclass(frozen=True, slots=True)
class Shape:
    """A launch without its parameters; `cluster` is `NO_CLUSTER` where it has no clusters."""

    grid: Dim3
    block: Dim3
    shared_bytes: int
    cooperative: bool = False
    cluster: Dim3 = NO_CLUSTER
