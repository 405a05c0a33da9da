"""Threads that execute together, and their thread blocks: their numbers and positions.

`threads.fibre.Fibre` adds the threads' registers, `threads.resident_blocks.ResidentBlocks` the
blocks' memory and what checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import Where
from ptx.emulate.model.geometry import ClusterShape, Dim3, Geometry, Value, coordinates
from ptx.isa.model import Instruction, source_place

Bools = NDArray[np.bool_]
Registers = list[Value]
Places = tuple[tuple[int, int], ...]  # offset and size of each `.param` variable of a frame


@dataclass(frozen=True, slots=True)
class OpenCall:
    """The caller's side of a call: its registers, the lanes they belong to, its stack.

    `function` was called; `results`: where the caller wants its results, offsets and sizes.
    """

    registers: Registers
    lanes: Index | None
    stack_pointer: int
    live: tuple[int, ...]
    function: int
    results: Places


class ThreadBlocks:
    """`geometry.blocks` thread blocks from number `first` of the grid on, executed together.

    Attributes:
        cluster: how the blocks of the grid form clusters.
        shared_stride: bytes from one block's shared memory to the next.
        local_stride: bytes from one thread's local memory to the next.
        starts: where each lane's shared or local memory starts, by space and shift.
        kernel: its name; files: its source files by number.
    """

    def __init__(
        self,
        geometry: Geometry,
        first: int,
        cluster: ClusterShape,
        strides: tuple[int, int],
        starts: dict[tuple[str, int], Index],
        kernel: str,
        files: Mapping[int, str],
    ) -> None:
        self.geometry = geometry
        self.first = first
        self.cluster = cluster
        self.shared_stride: int = strides[0]
        self.local_stride: int = strides[1]
        self.starts = starts
        self.kernel = kernel
        self.files = files

    def start_index(self, space: str, shift: int) -> Index:
        """Per lane, the element where its shared or local memory starts, in units of 2**shift."""
        starts = self.starts.get((space, shift))
        if starts is None:
            if space == "shared":
                starts = self.geometry.index("slot") * (self.shared_stride >> shift)
            else:
                starts = self.geometry.index("lane") * (self.local_stride >> shift)
            self.starts[space, shift] = starts
        return starts

    def block_of(self, lane: int) -> Dim3:
        """The block coordinates of a lane."""
        return self.cluster.block(self.first + lane // self.geometry.threads_per_block)

    def thread_of(self, lane: int) -> Dim3:
        """The thread coordinates of a lane."""
        return coordinates(lane % self.geometry.threads_per_block, self.geometry.block)

    def where(self, lane: int | None, instruction: Instruction | None) -> Where:
        """The place of an instruction that a lane executes; None: no lane in particular."""
        file, line = source_place(instruction.location if instruction else None, self.files)
        return Where(
            kernel=self.kernel,
            block=None if lane is None else self.block_of(lane),
            thread=None if lane is None else self.thread_of(lane),
            instruction=instruction.text if instruction is not None else "the branch",
            ptx_line=instruction.line if instruction is not None else 0,
            source_file=file,
            source_line=line,
        )


class Threads:
    """Threads of the same blocks that execute one instruction together.

    Attributes:
        lanes: (n,) their numbers in the chunk, ascending; None where they are all of the chunk's.
        n: the length of the arrays that have an element for each thread.
        present: (n,) which elements still belong to the set; None where all do.
        count: how many belong to it.
        calls: the calls that they are in, outermost first.
    """

    __slots__ = ("_cached", "_places", "blocks", "calls", "count", "lanes", "n", "present")

    def __init__(self, blocks: ThreadBlocks, lanes: Index | None, n: int) -> None:
        self.blocks: ThreadBlocks = blocks
        self.lanes: Index | None = lanes
        self.n: int = n
        self.count: int = n
        self.present: Bools | None = None
        self.calls: tuple[OpenCall, ...] = ()
        self._cached: dict[str, Value] = {}
        self._places: dict[str, Value] = {}

    def at(self, values: Value) -> Value:
        """These threads' elements of an array that has one value for each lane of the chunk."""
        if self.lanes is None or values.ndim == 0:
            return values
        return values.take(self.lanes, mode="clip")

    def place(self, name: str) -> Value:
        """A `Geometry` array for these threads."""
        if self.lanes is None:
            return self.blocks.geometry.array(name)
        values = self._places.get(name)
        if values is None:
            values = self._places[name] = self.at(self.blocks.geometry.array(name))
        return values

    def start_index(self, space: str, shift: int) -> Index:
        """(n,) where each thread's shared or local memory starts, in elements of 2**shift bytes."""
        if self.lanes is None:
            return self.blocks.start_index(space, shift)
        name = f"{space}{shift}"
        starts: Index | None = self._places.get(name)
        if starts is None:
            starts = self.blocks.start_index(space, shift).take(self.lanes, mode="clip")
            self._places[name] = starts
        return starts

    def lane_numbers(self) -> Index:
        """(n,) the threads' numbers in the chunk."""
        return self.blocks.geometry.index("lane") if self.lanes is None else self.lanes

    def recall(self, name: str) -> Value:
        """The value that is cached for this set of threads, None if none is."""
        return self._cached.get(name)

    def remember(self, name: str, value: Value) -> None:
        """Cache a value that depends on this set of threads only."""
        self._cached[name] = value

    def spread(self, value: Value) -> NDArray[np.generic]:
        """(n,) the value for each thread."""
        if value.ndim:
            return np.asarray(value)
        return np.full(self.n, value, dtype=value.dtype)

    def where(self, position: int, instruction: Instruction | None) -> Where:
        """The place of thread number `position`, which executes an instruction."""
        return self.blocks.where(int(self.lane_numbers()[position]), instruction)
