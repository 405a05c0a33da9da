"""Allocations of device memory, as the driver sees them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from .pools import Pool


class OfGraph(Protocol):
    """What a graph knows of memory that it allocates.

    Attributes:
        live: whether it is allocated.
        is_reserved: whether it is kept for the graph.
    """

    live: bool
    is_reserved: bool

    def free(self) -> None:
        """Free it now."""

    def free_later(self) -> None:
        """It is its user's no more; `freed` is called when the stream gets there."""

    def freed(self) -> None:
        """The stream has got there."""


class Owner(Enum):
    """Which of the driver's allocators a piece of device memory came from."""

    PLAIN = "cuMemAlloc"
    POOL = "cuMemAllocAsync"
    GRAPH = "cuMemAllocAsync in a graph"
    ARRAY = "cuArray3DCreate"
    MIPMAP = "cuMipmappedArrayCreate"
    OPENED = "cuIpcOpenMemHandle"


@dataclass(frozen=True, slots=True)
class Piece:
    """A live allocation as the driver sees it.

    Attributes:
        held: bytes with the allocator's rounding.
        context: handle of the context that owns it; 0 for what comes from a pool.
        number: CU_POINTER_ATTRIBUTE_BUFFER_ID, unique on the device.
        graph: of a GRAPH one.
        pool: of a POOL one.
        is_foreign: whether it is another process's, and is only mapped here.
    """

    address: int
    nbytes: int
    held: int
    owner: Owner
    context: int
    number: int
    graph: OfGraph | None = None
    pool: Pool | None = None
    is_foreign: bool = False
