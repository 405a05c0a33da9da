"""Memory that a graph allocates when it is replayed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .pieces import Owner
from .refusal import invalid_value
from .timeline.patterns import FREED

if TYPE_CHECKING:
    from .emulated_device import DeviceState
    from .pieces import Piece


@dataclass(eq=False, slots=True)
class GraphMemory:
    """An allocation recorded by a capture.

    The bytes are taken when it is captured, and given back when neither the graph nor an
    executable of it is left and the memory is free.

    Attributes:
        live: allocated by a launch and not freed since.
        is_reserved: whether a launch has allocated it, and nothing was trimmed since.
        owners: the graph and its executables, counted.
    """

    device: DeviceState
    nbytes: int
    live: bool = False
    is_reserved: bool = False
    owners: int = 1
    piece: Piece = field(init=False)

    def __post_init__(self) -> None:
        with self.device.lock:
            self.piece = self.device.allocate(self.nbytes, Owner.GRAPH, graph=self)

    def allocate(self) -> None:
        """What the allocation node does."""
        with self.device.lock:
            self.refuse_if_live()
            self.mark_live()
            self.device.begin(self.piece)

    def mark_live(self) -> None:
        """It is allocated; the device's high-water marks follow."""
        with self.device.lock:
            self.live = self.is_reserved = True
            self.device.graph_account.note(self.device.pieces.values())

    def refuse_if_live(self) -> None:
        """What a launch checks first.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if an earlier launch's memory was not freed.
        """
        if self.live:
            raise invalid_value(
                f"the graph's allocation at {self.piece.address:#x} from an earlier launch was "
                "not freed"
            )

    def fill(self, pattern: int) -> None:
        """Write a pattern, as the nodes do where there is a timeline."""
        with self.device.lock:
            self.device.fill(self.piece, pattern)

    def free(self) -> None:
        """What the free node does, and a free outside the graph.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if it is not allocated.
        """
        with self.device.lock:
            self._end()
            self._give_back()

    def free_later(self) -> None:
        """Memory is no longer its user's; `freed` is called when the stream gets there.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if it is not allocated.
        """
        with self.device.lock:
            self._end()
            self.owners += 1

    def _end(self) -> None:
        """It is no longer its user's; the lock is held."""
        if not self.live:
            raise invalid_value(f"the graph's memory at {self.piece.address:#x} is not allocated")
        self.live = False

    def freed(self) -> None:
        """The stream has got there."""
        with self.device.lock:
            if not self.live:
                self.device.fill(self.piece, FREED)
            self.release()

    def retain(self) -> None:
        """One owner more."""
        with self.device.lock:
            self.owners += 1

    def release(self) -> None:
        """One owner fewer."""
        with self.device.lock:
            self.owners -= 1
            self._give_back()

    def _give_back(self) -> None:
        if self.owners == 0 and not self.live:
            self.device.free(self.piece)
