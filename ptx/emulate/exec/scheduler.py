"""A chunk: thread blocks that are executed together, and the scheduler of their fibres.

The fibre with the smallest place (the return addresses of its open calls, then its block) runs;
fibres that meet become one. A fibre that waited too long is run for a while whatever its place, so
that a spin loop lets the thread that it waits for go on.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.fibre import GONE, Fibre
from ptx.emulate.exec.merge import merge
from ptx.emulate.exec.special_registers import special_value
from ptx.emulate.exec.sync.mbarrier import Mbarriers
from ptx.emulate.exec.sync.waiting import Rendezvous
from ptx.emulate.memory.shadow import Shadow
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import Runaway, StackOverflow
from ptx.emulate.model.geometry import Dim3, Geometry, Value, coordinates

if TYPE_CHECKING:
    from ptx.emulate.exec.kernel_code import KernelCode
    from ptx.emulate.exec.launch import Launch

Key = tuple[int, ...]

_PATIENCE = 2048  # steps that a waiting fibre is passed over, at first
_LEAST_PATIENCE = 8
_ENDLESS = 1 << 62


class Chunk:
    """`geometry.blocks` thread blocks from number `first` of the grid on.

    Attributes:
        shared: (blocks * shared_stride,) uint8, each block's shared memory.
        local: (threads * local_stride,) uint8, each thread's local memory.
        shadow: which of both was written, where that is checked.
        alive: threads that have not exited.
        kept: what it shares with other chunks of its geometry.
        successor: the fibre that a block's function left to run in place of its own.
    """

    def __init__(self, launch: Launch, geometry: Geometry, first: int) -> None:
        self.launch = launch
        self.code: KernelCode = launch.code
        self.geometry = geometry
        self.first = first
        self.alive = geometry.threads
        self.shared_stride = launch.shared_stride
        self.local_stride = launch.local_stride
        self.shared = launch.shared_memory(geometry.blocks * self.shared_stride)
        self._local: NDArray[np.uint8] | None = None
        self._mbarriers: Mbarriers | None = None
        self.shadow = self._new_shadow() if launch.limits.check_uninitialised else None
        self.exited: list[Index] = []
        self.meeting = Rendezvous(self)
        self.kept = launch.kept_for(geometry)
        self.successor: Fibre | None = None
        self.steps = 0
        self._waiting: dict[Key, list[Fibre]] = {}
        self._heap: list[Key] = []
        self._special: dict[str, Value] = {}
        self._scratch: Index | None = None
        self._patience = _PATIENCE
        self._deadline = _PATIENCE
        self._turn_end = _ENDLESS
        self._place: Key = (0,)
        self.wait(Fibre(self, list(self.code.zeros[0]), None, geometry.threads), 0)

    def _new_shadow(self) -> Shadow:
        shape = self.geometry
        return Shadow(shape.blocks, self.shared_stride, shape.threads, self.local_stride)

    @property
    def local(self) -> NDArray[np.uint8]:
        """Each thread's local memory; it is made when first used."""
        if self._local is None:
            self._local = np.zeros(self.geometry.threads * self.local_stride, dtype=np.uint8)
        return self._local

    @property
    def mbarriers(self) -> Mbarriers:
        """The mbarrier objects in its shared memory, made when first used."""
        if self._mbarriers is None:
            self._mbarriers = Mbarriers(self)
        return self._mbarriers

    def scratch_index(self) -> Index:
        """An intp array of the chunk's length, free for use until the next call."""
        if self._scratch is None:
            self._scratch = np.zeros(self.geometry.threads, dtype=np.intp)
        return self._scratch

    def start_index(self, space: str, shift: int) -> Index:
        """Per lane, the element where its shared or local memory starts, in units of 2**shift."""
        known = self.kept.starts
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

    def wait(self, fibre: Fibre, block: int) -> None:
        """The fibre is to go on at `block` when its turn comes."""
        key = (*fibre.prefix, block)
        fibre.tick = self.steps
        found = self._waiting.get(key)
        if found is None:
            self._waiting[key] = [fibre]
            heappush(self._heap, key)
        else:
            found.append(fibre)

    def finished(self, fibre: Fibre) -> None:
        """The fibre's threads have exited."""
        self.alive -= fibre.count
        if self.alive:
            self.exited.append(fibre.lane_numbers())

    def block_of(self, lane: int) -> Dim3:
        """The block coordinates of a lane."""
        slot = lane // self.geometry.threads_per_block
        return self.launch.cluster.block(self.first + slot)

    def thread_of(self, lane: int) -> Dim3:
        """The thread coordinates of a lane."""
        return coordinates(lane % self.geometry.threads_per_block, self.geometry.block)

    def check_stack(self, fibre: Fibre, nbytes: int) -> None:
        """Refuse a call whose frame would leave the thread's local memory.

        Raises:
            StackOverflow: it would.
        """
        if nbytes > self.local_stride:
            raise StackOverflow(
                f"calls need more than the {self.local_stride} bytes of local memory of a thread;"
                " set Limits.stack_bytes higher if this recursion is meant",
                self.launch.where_of_block(self, fibre, self._place[-1]),
            )

    def run(self, turn: int = _ENDLESS) -> bool:
        """Execute all threads to their end, or about `turn` basic blocks; whether they ended.

        Raises:
            EmulationFault: what the kernel did wrong.
        """
        self._turn_end = self.steps + turn
        while self._heap or self.meeting.resolve():
            if self._heap:  # what was released may have come to its end at once
                fibre, block = self._next()
                self._run(fibre, block, 0)
            if self.steps >= self._turn_end:
                return False
        return True

    @property
    def has_runnable(self) -> bool:
        """Whether a fibre is ready to run."""
        return bool(self._heap)

    def run_one(self, fibre: Fibre, block: int) -> None:
        """Execute one block of a fibre that a rendezvous released; it then waits for its turn."""
        fibre.written |= self.code.defined[block]
        following = self.code.blocks[block](fibre, fibre.regs)
        if self.successor is not None:
            fibre, self.successor = self.successor, None
        if following != GONE:
            self.wait(fibre, following)

    def _next(self) -> tuple[Fibre, int]:
        """The fibre with the smallest place, merged with all that wait there."""
        key = heappop(self._heap)
        return self._merged(key, self._waiting.pop(key))

    def _merged(self, key: Key, fibres: list[Fibre]) -> tuple[Fibre, int]:
        block = key[-1]
        live = self.code.live[block]
        fibre = fibres[0] if len(fibres) == 1 else merge(fibres, live)
        if fibre.present is not None:
            fibre.compact(live)
        return fibre, block

    def _run(self, fibre: Fibre, block: int, quantum: int) -> None:
        """Execute a fibre until it ends, waits, or another one has a smaller place.

        With a quantum, other fibres are not looked at for that many steps.
        """
        code = self.code
        functions, defined, pure, live = code.blocks, code.defined, code.is_pure, code.live
        heap = self._heap
        budget = quantum
        while True:
            if fibre.present is not None and not pure[block]:
                fibre.compact(live[block])
            self.steps += 1
            self._place = (*fibre.prefix, block)
            fibre.written |= defined[block]
            following = functions[block](fibre, fibre.regs)
            if self.successor is not None:
                fibre, self.successor = self.successor, None
            if following == GONE:
                return
            block = following
            if self.steps >= self._deadline:
                self._deadline = self.steps + self._patience
                self._check_time(fibre, block)
                if self.steps >= self._turn_end:
                    self.wait(fibre, block)
                    return
                if heap or self.meeting.anyone:
                    starved = self._let_others(fibre, block)
                    if starved is None:
                        return
                    fibre, block = starved
                    budget = max(64, self._patience)
                    continue
            if budget:
                budget -= 1
                continue
            if heap and heap[0] <= (*fibre.prefix, block):
                self.wait(fibre, block)
                return

    def _let_others(self, fibre: Fibre, block: int) -> tuple[Fibre, int] | None:
        """After long patience: release what can be; gives the fibre that waited for too long."""
        self.wait(fibre, block)
        self.meeting.resolve()
        key = min(self._waiting, key=lambda each: self._waiting[each][0].tick)
        if self._waiting[key][0].tick > self.steps - self._patience:
            return None
        self._patience = max(_LEAST_PATIENCE, self._patience // 2)
        self._heap.remove(key)
        heapify(self._heap)
        return self._merged(key, self._waiting.pop(key))

    def _check_time(self, fibre: Fibre, block: int) -> None:
        limit = self.launch.limits.max_steps
        if self.steps > limit:
            raise Runaway(
                f"still running after {self.steps} basic blocks, the limit that Limits.max_steps"
                " sets",
                self.launch.where_of_block(self, fibre, block),
            )
