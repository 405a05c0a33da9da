"""What the rooms below `exec` know of the threads that execute an instruction together."""

from __future__ import annotations

from typing import Protocol, Self

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import Where
from ptx.isa.model import Instruction


class Threads(Protocol):
    """Threads that execute one instruction together; `exec.fibre.Fibre` is such a set."""

    @property
    def n(self) -> int:
        """How many they are."""

    def where(self, position: int, instruction: Instruction | None) -> Where:
        """The place of thread number `position`, which executes an instruction."""

    def subset(self, positions: Index, live: tuple[int, ...]) -> Self:
        """Some of these threads, with the registers that are `live`."""
