"""Thread blocks that are executed together: their memory, and what their threads can ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.sync.mbarrier import Mbarriers
from ptx.emulate.memory.shadow import Shadow
from ptx.emulate.memory.tensor_memory import TensorMemory
from ptx.emulate.memory.undefined_values import UndefinedValues
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Dim3, Geometry, Value, coordinates
from ptx.emulate.threads.special_registers import special_value

if TYPE_CHECKING:
    from ptx.emulate.check.chunk_races import ChunkRaces
    from ptx.emulate.check.unwritten_reads import UnwrittenReads
    from ptx.emulate.count.chunk_counts import ChunkCounts
    from ptx.emulate.exec.kernel_code import KernelCode
    from ptx.emulate.exec.launch import Launch
    from ptx.emulate.threads.launch_cache import LaunchCache


class ResidentBlocks:
    """`geometry.blocks` thread blocks from number `first` of the grid on: one chunk of a launch.

    Attributes:
        shared: (blocks * shared_stride,) uint8, each block's shared memory.
        shadow: which of the shared and local memory was written, where that is checked.
        undefined: values in registers that come from what was not, where the code follows them.
        unwritten: what looks for reads of global memory that nothing wrote, where that is checked.
        races: what looks for races, where that is checked.
        counts: what counts, in a launch that does.
        cache: what they share with other chunks of their geometry.
    """

    def __init__(self, launch: Launch, geometry: Geometry, first: int) -> None:
        self.launch = launch
        self.code: KernelCode = launch.code
        self.geometry = geometry
        self.first = first
        self.shared_stride: int = launch.shared_stride
        self.local_stride: int = launch.local_stride
        self.shared: NDArray[np.uint8] = launch.shared_memory(geometry.blocks * self.shared_stride)
        self.undefined: UndefinedValues | None = (
            UndefinedValues(geometry.threads, launch.code.numbers)
            if launch.code.follows_undefined
            else None
        )
        self.shadow: Shadow | None = (
            self._new_shadow() if launch.limits.check_uninitialised else None
        )
        self.unwritten: UnwrittenReads | None = launch.unwritten
        self.races: ChunkRaces | None = launch.races_of(geometry, first, self.shared)
        self.counts: ChunkCounts | None = launch.counts_of(geometry, first)
        self.cache: LaunchCache = launch.cache_for(geometry)
        self._local: NDArray[np.uint8] | None = None
        self._mbarriers: Mbarriers | None = None
        self._tensor_memory: TensorMemory | None = None
        self._special: dict[str, Value] = {}
        self._scratch: Index | None = None

    @property
    def local(self) -> NDArray[np.uint8]:
        """(threads * local_stride,) each thread's local memory; it is made when first used."""
        if self._local is None:
            self._local = np.zeros(self.geometry.threads * self.local_stride, dtype=np.uint8)
        return self._local

    @property
    def mbarriers(self) -> Mbarriers:
        """The mbarrier objects in the shared memory, made when first used."""
        if self._mbarriers is None:
            self._mbarriers = Mbarriers(self)
        return self._mbarriers

    @property
    def tensor_memory(self) -> TensorMemory:
        """The blocks' tensor memory, made when first used."""
        if self._tensor_memory is None:
            self._tensor_memory = TensorMemory(
                self.geometry.blocks, follows=self.shadow is not None
            )
        return self._tensor_memory

    def finish(self) -> None:
        """All threads have exited.

        Raises:
            TensorMemoryFault: a block still holds tensor memory.
        """
        if self._tensor_memory is not None:
            self._tensor_memory.require_all_free()

    def scratch_index(self) -> Index:
        """(threads,) intp, free for use until the next call."""
        if self._scratch is None:
            self._scratch = np.zeros(self.geometry.threads, dtype=np.intp)
        return self._scratch

    def start_index(self, space: str, shift: int) -> Index:
        """Per lane, the element where its shared or local memory starts, in units of 2**shift."""
        known = self.cache.starts
        found = known.get((space, shift))
        if found is None:
            if space == "shared":
                found = self.geometry.index("slot") * (self.shared_stride >> shift)
            else:
                found = self.geometry.index("lane") * (self.local_stride >> shift)
            known[space, shift] = found
        return found

    def special(self, name: str) -> Value:
        """A special register's value for every lane, or a scalar."""
        found = self._special.get(name)
        if found is None:
            found, constant = special_value(self, name)
            if constant:
                self._special[name] = found
        return found

    def is_fixed(self, name: str) -> bool:
        """Whether a special register that was read stays as it is: a clock does not."""
        return name in self._special

    def block_of(self, lane: int) -> Dim3:
        """The block coordinates of a lane."""
        slot = lane // self.geometry.threads_per_block
        return self.launch.cluster.block(self.first + slot)

    def thread_of(self, lane: int) -> Dim3:
        """The thread coordinates of a lane."""
        return coordinates(lane % self.geometry.threads_per_block, self.geometry.block)

    def _new_shadow(self) -> Shadow:
        shape = self.geometry
        return Shadow(
            shape.blocks, self.shared_stride, self.launch.reserved_start, shape.threads,
            self.local_stride, self.code.uses_of, self.undefined,
        )  # fmt: skip
