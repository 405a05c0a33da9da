"""Thread blocks that are executed together: their memory, and queries of their threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.kernel_facts import Instrument, KernelFacts
from ptx.emulate.memory.chunk_accesses import ChunkAccesses
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Geometry, Value
from ptx.emulate.model.threads import ThreadBlocks
from ptx.emulate.observer import ACCESSES, ORDER, Observer
from ptx.emulate.threads.launch_plan import LaunchCache, LaunchPlan
from ptx.emulate.threads.special_registers import special_value
from ptx.emulate.threads.tensor_memory import TensorMemory


class ResidentBlocks(ThreadBlocks):
    """`geometry.blocks` thread blocks from number `first` of the grid on: one chunk of a launch.

    Attributes:
        shared: (blocks * shared_stride,) uint8, each block's shared memory.
        observers: of the threads; they see an access in this order.
        global_observers, own_observers: those that receive accesses to global memory, and to shared
            or local memory.
        load_observers, order_observers: those that receive the values of loads, and
            synchronisation.
        followers: what the code calls that instruments wrote, in their order.
        accesses: their accesses to global memory, where chunks run in several threads, else None.
        cache: shared with other chunks of their geometry.
        mbarriers: the mbarrier objects in the shared memory, which `sync.mbarrier.of` makes.
    """

    observers: tuple[Observer, ...] = ()
    global_observers: tuple[Observer, ...] = ()
    own_observers: tuple[Observer, ...] = ()
    load_observers: tuple[Observer, ...] = ()
    order_observers: tuple[Observer, ...] = ()
    followers: tuple[object, ...] = ()

    def __init__(
        self,
        launch: LaunchPlan,
        geometry: Geometry,
        first: int,
        accesses: ChunkAccesses | None = None,
    ) -> None:
        self.launch = launch
        self.code: KernelFacts = launch.code
        self.cache: LaunchCache = launch.cache_for(geometry)
        super().__init__(
            geometry,
            first,
            launch.cluster,
            (launch.shared_stride, launch.local_stride),
            self.cache.starts,
            launch.code.kernel,
            launch.code.files,
        )
        self.shared: NDArray[np.uint8] = launch.shared_memory(geometry.blocks * self.shared_stride)
        if launch.observers:
            self._observe(launch)
        self.accesses: ChunkAccesses | None = accesses
        self.mbarriers: object = None
        self._local: NDArray[np.uint8] | None = None
        self._tensor_memory: TensorMemory | None = None
        self._special: dict[str, Value] = {}
        self._scratch: Index | None = None

    def _observe(self, launch: LaunchPlan) -> None:
        observers = tuple([observer.begin(self, self.shared) for observer in launch.observers])
        self.observers = observers
        for observer in observers:
            events = observer.events
            if not events.isdisjoint(ACCESSES):
                if "global" in observer.spaces:
                    self.global_observers += (observer,)
                if observer.spaces != ("global",):
                    self.own_observers += (observer,)
            if "loaded" in events:
                self.load_observers += (observer,)
            if not events.isdisjoint(ORDER):
                self.order_observers += (observer,)
        for instrument in launch.code.instruments:
            self.followers += (_follower(observers, instrument),)

    @property
    def local(self) -> NDArray[np.uint8]:
        """(threads * local_stride,) each thread's local memory; it is made when first used."""
        if self._local is None:
            self._local = np.zeros(self.geometry.threads * self.local_stride, dtype=np.uint8)
        return self._local

    @property
    def tensor_memory(self) -> TensorMemory:
        """The blocks' tensor memory, made when first used."""
        if self._tensor_memory is None:
            self._tensor_memory = TensorMemory(self.geometry.blocks, self.observers)
        return self._tensor_memory

    def finish(self) -> None:
        """Finish the chunk after all threads have exited.

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

    def special(self, name: str) -> Value:
        """A special register's value for every lane, or a scalar."""
        register_value = self._special.get(name)
        if register_value is None:
            register_value, constant = special_value(self, self.launch, name)
            if constant:
                self._special[name] = register_value
        return register_value

    def is_fixed(self, name: str) -> bool:
        """Return whether a special register that was read stays as it is: a clock does not."""
        return name in self._special


def _follower(observers: tuple[Observer, ...], instrument: Instrument) -> object:
    followers = [observer.follow(instrument) for observer in observers]
    return next(each for each in followers if each is not None)
