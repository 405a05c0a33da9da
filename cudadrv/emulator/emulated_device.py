"""One emulated device at run time: its memory, its accounts, its state."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import GRANULE, DeviceMemory
from ptx.emulate.memory.file_pages import PAGE
from ptx.emulate.memory.reservation import Reservation
from ptx.emulate.model.errors import EmulationFault, OutOfMemory
from ptx.emulate.threads.device_model import DeviceModel

from ..driver._api import CUresult
from .attributes import device_attributes
from .device_account import DeviceAccount
from .graph_account import GraphAccount
from .interprocess.shared_file import SharedFile
from .interprocess.shared_pages import SharedPages
from .origin import caller
from .physical_memory import PhysicalMemory
from .pieces import OfGraph, Owner, Piece
from .pools import Pool
from .profiles import MAX_DEVICES, MAX_TOTAL_MEMORY, EmulatedDevice
from .refusal import Failure, Refusal, invalid_value
from .timeline.patterns import FREED, FRESH, fill

if TYPE_CHECKING:
    from .counters import Counters

_T = TypeVar("_T")
# As the driver aligns (measured); the manual promises any variable's alignment.
_ALIGNMENT = 512
# Device addresses lie above what a host gives a process (2**48) and below what a float64 holds
# exactly (2**53). Each emulator takes a part of its own, so that a pointer that outlives one is
# not mistaken for a pointer of the next.
_LOWEST_BASE = 1 << 48
_EMULATOR_SPAN = MAX_TOTAL_MEMORY * MAX_DEVICES
_EMULATOR_SPANS = ((1 << 52) - _LOWEST_BASE) // _EMULATOR_SPAN


def _nobody(fault: EmulationFault) -> None:
    """Nobody wants to know of faults."""


class DeviceState:
    """One emulated device.

    What changes memory or runs a kernel holds `lock`; with two devices, in the order of ordinals.
    A collection meanwhile may call finalizers in the same thread, which free memory; `run_alone`
    keeps those frees until the memory is in order again.

    Attributes:
        ordinal: its place among the devices that are visible; `number` that among all.
        fault: what broke the device: from then on all calls on its contexts return that code.
        account: what its memory is taken for.
        pool: its own one, which it has from the beginning.
        pool_in_use: that of cuMemAllocAsync.
        graph_account: what of its memory graphs take.
        pieces: live allocations by address; module variables are not among them.
        opened: address and count of openings, by context and handle of another process's memory.
        counters: where its launches are counted, each everywhere; none unless asked for.
        has_patterns: whether fresh and freed memory hold patterns.
        others: the emulator's other devices.
        note_fault: told of each fault of a kernel.
    """

    def __init__(self, profile: EmulatedDevice, ordinal: int, base: int, pool_handle: int) -> None:
        self.profile = profile
        self.ordinal = ordinal
        self.number: int = ordinal
        self.attributes: dict[int, int] = device_attributes(profile, ordinal)
        self.lock: threading.RLock = threading.RLock()
        self.memory: DeviceMemory = DeviceMemory(base, profile.total_memory)
        self.host_address: int = self.memory.data.ctypes.data
        self.model: DeviceModel = DeviceModel(
            memory=self.memory,
            compute_capability=profile.compute_capability,
            sm_count=profile.sm_count,
            max_shared_per_block=profile.architecture.shared_per_block_optin,
            threads_per_sm=profile.architecture.threads_per_sm,
            blocks_per_sm=profile.architecture.blocks_per_sm,
            shared_per_sm=profile.architecture.shared_per_sm,
            clock_khz=profile.clock_khz,
        )
        self.pool: Pool = Pool(pool_handle)
        self.pool_in_use: Pool = self.pool
        self.account: DeviceAccount = DeviceAccount(self.memory, profile.total_memory, self.pool)
        self.graph_account: GraphAccount = GraphAccount()
        self.reservations: dict[int, Reservation] = {}
        self.physical: dict[int, PhysicalMemory] = {}
        self.shared: SharedPages = SharedPages(self.memory)
        self.opened: dict[tuple[int, bytes], tuple[int, int]] = {}
        self.fault: Failure | None = None
        self.pieces: dict[int, Piece] = {}
        self._numbered = 0
        self._is_busy = False
        self._leaving: deque[Piece] = deque()
        self.has_patterns = False
        self.others: tuple[DeviceState, ...] = ()
        self.counters: tuple[Counters, ...] = ()
        self.note_fault: Callable[[EmulationFault], None] = _nobody

    def run_alone(self, work: Callable[[], _T]) -> _T:
        """Do `work`, then the frees that finalizers called meanwhile; the lock is held."""
        if self._is_busy:
            return work()
        try:
            self._is_busy = True
            return work()
        finally:
            self._is_busy = False
            self._settle()

    def _settle(self) -> None:
        """Give the memory back that was freed."""
        while self._leaving:
            piece = self._leaving.popleft()
            try:
                self._is_busy = True
                self._free(piece)
            finally:
                self._is_busy = False
            self.account.give(piece.nbytes, piece.held, piece.pool)

    def _free(self, piece: Piece) -> None:
        """Give memory back, which keeps its place from others for a while."""
        if piece.is_foreign:
            self.opened = {k: each for k, each in self.opened.items() if each[0] != piece.address}
            self.shared.remove(piece.address, piece.nbytes)
            return
        if self.has_patterns:
            self.fill(piece, FREED)
        if piece.pool is not None and piece.pool.file is not None:
            self.shared.hide(piece.address, piece.held)
        self.memory.free(piece.address)

    def share(self, piece: Piece) -> tuple[SharedFile, int]:
        """Let other processes open an allocation; gives the file and the place. The lock is held.

        Raises:
            OSError: the system refused.
        """
        return self.shared.share(piece.address, piece.nbytes, self.uuid)

    def open(
        self,
        file: SharedFile,
        offset: int,
        nbytes: int,
        owner: Owner,
        *,
        context: int = 0,
        pool: Pool | None = None,
    ) -> Piece:
        """Memory of another process, which takes none of this one; the lock is held.

        Raises:
            Refusal: CUDA_ERROR_OUT_OF_MEMORY: there are no addresses for it, or the system refused.
        """

        def add() -> int:
            try:
                origin = f"memory of another process, {owner.value}"
                return self.shared.add(file, offset, nbytes, origin)
            except (OutOfMemory, OSError) as error:
                raise self._out_of_memory(nbytes) from error

        address = self.run_alone(add)
        if pool is not None:
            pool.take(nbytes, 0, 0)
        self._numbered += 1
        piece = Piece(
            address, nbytes, 0, owner, context, self._numbered, pool=pool, is_foreign=True
        )
        self.pieces[address] = piece
        return piece

    def begin(self, piece: Piece) -> None:
        """Nothing has written this memory yet, whoever had it before."""
        if self.memory.written is not None:
            self.memory.written.begin(piece.address - self.memory.base, piece.nbytes)

    def flags(self, address: int, nbytes: int) -> NDArray[np.uint8] | None:
        """Which of some bytes were written, where that is checked."""
        written = self.memory.written
        return None if written is None else written.of(address - self.memory.base, nbytes)

    def fill(self, piece: Piece, pattern: int) -> None:
        """Write a pattern over memory that nothing has written yet, or that is free."""
        self.begin(piece)
        fill(self.host_address + (piece.address - self.memory.base), piece.nbytes, pattern)

    @property
    def uuid(self) -> bytes:
        """16 bytes that differ from device to device and are the same in every run."""
        seed = f"{self.profile.name}/{self.number}".encode()
        return blake2b(seed, digest_size=16).digest()

    @property
    def pci_bus_id(self) -> str:
        """Domain, bus, device and function, such as "0000:01:00.0"."""
        return f"0000:{self.number + 1:02x}:00.0"

    def holds(self, address: int) -> bool:
        """Whether an address lies in this device's memory."""
        return 0 <= address - self.memory.base < self.memory.nbytes

    def can_be_reached_by(self, other: DeviceState) -> bool:
        """Whether kernels of another device can be given access to this one's memory."""
        return self is not other and self.profile.peer_access and other.profile.peer_access

    def allocate(
        self,
        nbytes: int,
        owner: Owner,
        *,
        context: int = 0,
        graph: OfGraph | None = None,
        pool: Pool | None = None,
    ) -> Piece:
        """Take memory; the lock is held. Of a pool it comes where one is given, or by its owner.

        Raises:
            Refusal: CUDA_ERROR_OUT_OF_MEMORY, with the request and what is free.
        """
        if owner is Owner.POOL and pool is None:
            pool = self.pool
        return self.run_alone(lambda: self._allocate(nbytes, owner, context, graph, pool))

    def _allocate(
        self, nbytes: int, owner: Owner, context: int, graph: OfGraph | None, pool: Pool | None
    ) -> Piece:
        before = self.memory.used_bytes
        if nbytes > self.account.capacity:
            raise self._out_of_memory(nbytes)
        place = caller()
        origin = f"{owner.value} at {place}" if place else owner.value
        file = None if pool is None else pool.file
        unit = GRANULE if file is None else PAGE
        try:
            address = self.memory.allocate(nbytes, origin=origin, alignment=_ALIGNMENT, unit=unit)
        except OutOfMemory as error:
            raise self._out_of_memory(nbytes) from error
        held = self.memory.used_bytes - before
        if not self.account.take(nbytes, held, pool):
            self.memory.free(address)
            raise self._out_of_memory(nbytes)
        if file is not None:
            self.shared.show(address, held, file, address - self.memory.base)
        self._numbered += 1
        piece = Piece(address, nbytes, held, owner, context, self._numbered, graph, pool)
        self.pieces[address] = piece
        if self.has_patterns and owner not in (Owner.POOL, Owner.GRAPH):
            self.fill(piece, FRESH)
        return piece

    def hand_over(self, piece: Piece) -> Piece:
        """Give memory a new owner, who gets it when the former one's free is reached."""
        self._numbered += 1
        new = self.pieces[piece.address] = replace(piece, number=self._numbered)
        return new

    def _out_of_memory(self, nbytes: int) -> Refusal:
        return Refusal(
            CUresult.CUDA_ERROR_OUT_OF_MEMORY, self.account.refusal(nbytes, self.ordinal)
        )

    def free(self, piece: Piece) -> None:
        """Give memory back; the lock is held."""
        self.drop(piece)
        self.give_back(piece)

    def drop(self, piece: Piece) -> None:
        """Memory has no owner any more; the lock is held."""
        del self.pieces[piece.address]

    def give_back(self, piece: Piece) -> None:
        """Give memory back that has no owner; the lock is held."""
        self._leaving.append(piece)
        if not self._is_busy:
            self._settle()

    def why_not_free(self, address: int) -> str:
        """Why nothing can be freed at an address."""
        inside = self.memory.find(address)
        if inside is not None and inside.address == address:
            return f"{inside} does not belong to the driver's allocators"
        if inside is not None:
            return f"it lies inside the allocation of {inside}"
        freed = self.memory.find_freed(address)
        if freed is not None and freed.address == address:
            return f"the allocation of {freed} was freed before"
        return "nothing was allocated there"

    def place(self, address: int, nbytes: int, *, in_graph: bool = False) -> int:
        """Where a range of device memory lies in the host's memory.

        Memory of a graph counts only while it is allocated, or for what is recorded (`in_graph`).

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if the range does not lie in one live allocation.
        """
        found = self.memory.find(address)
        if found is None:
            freed = self.memory.find_freed(address)
            nearest = self.memory.nearest(address)
            raise invalid_value(
                f"{address:#x} is not in a live allocation of device {self.ordinal}; "
                + (f"it was in {freed}, now freed" if freed else f"the nearest is {nearest}")
            )
        if address + nbytes > found.end:
            raise invalid_value(
                f"{nbytes} bytes at {address:#x} go beyond the allocation of {found}"
            )
        piece = self.pieces.get(found.address)
        if piece is not None and piece.graph is not None and not (in_graph or piece.graph.live):
            raise invalid_value(f"the graph's memory at {address:#x} is not allocated")
        return self.host_address + (address - self.memory.base)


def device_states(
    devices: Iterable[EmulatedDevice], serial: int, handles: Iterator[int]
) -> tuple[DeviceState, ...]:
    """The devices of the emulator of a number, each with addresses and a pool of its own."""
    base = _LOWEST_BASE + serial % _EMULATOR_SPANS * _EMULATOR_SPAN
    return tuple(
        DeviceState(profile, ordinal, base + ordinal * MAX_TOTAL_MEMORY, next(handles))
        for ordinal, profile in enumerate(devices)
    )
