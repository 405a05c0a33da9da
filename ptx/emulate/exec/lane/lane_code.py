"""A kernel's code for single threads: made a block at a time, where few threads come again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ptx.emulate.memory.site import Site
from ptx.emulate.model.threads import Registers
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.rows import Row

VectorFunction = Callable[[Fibre, Registers], int]
GOES_ON = -3  # what a part gives that is not the last one of its block


@dataclass(frozen=True, slots=True)
class VectorPart:
    """Instructions that NumPy executes for all threads of a fibre at once.

    Attributes:
        reads, writes: registers that it reads, and written ones that are read after it.
        needs: those that it uses in a fibre without rows, as a call does; None where any will do.
        returns: whether it needs such a fibre only where calls are open.
        sites: of its accesses.
    """

    function: VectorFunction
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    needs: tuple[int, ...] | None = None
    returns: bool = False
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class LanePart:
    """Instructions that are executed thread by thread.

    A part has one store at most, and no load beside it. Threads therefore get the same results one
    after another as together, instruction by instruction.

    Attributes:
        function: of a fibre and one row, giving the next block; or of the rows of several threads,
            giving that of all or a list with that of each.
        instead: returns the same for all threads at once, for an access outside a site's window.
        sites: of its accesses.
        undo: registers that it reads and changes, where it may stop halfway.
    """

    function: Callable[[Fibre, Any], Any]  # its table: one row or several
    instead: Callable[[], tuple[Part, ...]]
    sites: tuple[Site, ...]
    undo: tuple[int, ...]


Part = VectorPart | LanePart


@dataclass(frozen=True, slots=True)
class Loop:
    """Blocks that are executed thread by thread, from one to another, until a thread leaves them.

    Attributes:
        function: of a fibre, its rows, the block that they are at, and how many blocks a thread may
            execute; fills a list with the block where each thread is then, and gives how many
            blocks are left of those for the thread that executed most.
        blocks: their numbers; last: the greatest.
        defined: bit mask of the registers that it writes.
    """

    function: Callable[[Fibre, list[Row], list[int], int, int], int]
    blocks: tuple[int, ...]
    last: int
    defined: int


@dataclass(slots=True)
class LaneCode:
    """The parts of each block, for one thread and for several; none until they were made.

    Attributes:
        write: makes the parts of a block; write_loop: the loop around it, if that can be done.
        shows_order: returns whether results may depend on which of two threads ran first.
        heat: visits of one thread, or of several, to each block without rows.
        are_apart: whether threads of a launch diverged.
        held: whether rows can hold the registers of each function.
    """

    write: Callable[[int, bool], tuple[Part, ...]]
    write_loop: Callable[[int, bool, bool], Loop | None]
    shows_order: Callable[[], bool]
    loops: dict[tuple[int, bool, bool], Loop | None] = field(default_factory=dict)
    alone: dict[int, tuple[Part, ...]] = field(default_factory=dict)
    together: dict[int, tuple[Part, ...]] = field(default_factory=dict)
    heat: dict[tuple[int, bool], int] = field(default_factory=dict)
    are_apart: bool = False
    held: dict[int, bool] = field(default_factory=dict)

    def loop(self, block: int, *, alone: bool, apart: bool) -> Loop | None:
        """The loop around a block, for one thread or for several, made on first use.

        `apart`: of all blocks that can be in one, so that threads leave it for the others.
        """
        key = (block, alone, apart)
        if key not in self.loops:
            self.loops[key] = loop = self.write_loop(block, alone, apart)
            if loop is not None:
                for block_of_loop in loop.blocks:
                    self.loops[block_of_loop, alone, apart] = loop
        return self.loops[key]

    def parts(self, block: int, *, alone: bool) -> tuple[Part, ...]:
        """The parts of a block, made on first use."""
        table = self.alone if alone else self.together
        parts = table.get(block)
        if parts is None:
            parts = table[block] = self.write(block, alone)
        return parts
