"""What captures took from an allocator: addresses of arenas, and the driver's graph memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...errors import CudadrvError
from .bump import BumpArena

# Captures whose addresses may still be given back when their arenas are taken out.
_MOST_ARENAS: Final = 8


class FrozenAllocatorError(CudadrvError):
    """The allocator is frozen where it must not be, or its capture's addresses got loose."""


class CaptureMemory:
    """What the captures of one allocator took; the allocator's lock guards what is installed.

    Attributes:
        arena: the arena that is installed.
        addresses: what the capture under way has allocated.
    """

    __slots__ = ("_arenas", "_graph_memory", "addresses", "arena")

    def __init__(self) -> None:
        self.arena: BumpArena | None = None
        # Of this and the last captures: what is given back late lies in one of them.
        self._arenas: list[BumpArena] = []
        self.addresses: set[int] = set()
        # By size: the driver's graph memory in use.
        self._graph_memory: dict[int, int] = {}

    def install(self, arena: BumpArena) -> None:
        """Let captured allocations come from an arena.

        Raises:
            FrozenAllocatorError: an arena is installed already.
        """
        if self.arena is not None:
            raise FrozenAllocatorError(
                "a capture arena is installed already: clear_arena first; a second one would "
                "hand out addresses that the first one's graph knows nothing of"
            )
        kept = (each for each in self._arenas[1 - _MOST_ARENAS :] if not each.overlaps(arena))
        self._arenas = [*kept, arena]
        self.arena = arena

    def is_of_an_arena(self, address: int) -> bool:
        """Whether an address lies in the arena of this or of one of the last captures."""
        return any(address in arena for arena in tuple(self._arenas))

    def forget_arenas_at(self, address: int) -> None:
        """An address is the driver's again: what lay around it is no arena any more."""
        if self._arenas:
            self._arenas = [arena for arena in self._arenas if address not in arena]

    def allocated(self, address: int, nbytes: int) -> None:
        """The capture under way has allocated graph memory."""
        self.addresses.add(address)
        self._graph_memory[address] = nbytes

    def freed(self, address: int, nbytes: int) -> bool:
        """Whether it was graph memory of this size in use; it is to be freed then."""
        if self._graph_memory.get(address) != nbytes:
            return False
        del self._graph_memory[address]
        return True

    def unfreed(self) -> Iterator[int]:
        """The graph memory that the capture under way has not freed; it is to be freed then."""
        for address in self.addresses.intersection(self._graph_memory):
            del self._graph_memory[address]
            yield address

    def forget_unfreed(self) -> None:
        """The graph of the capture under way is given up."""
        for address in self.addresses:
            self._graph_memory.pop(address, None)
