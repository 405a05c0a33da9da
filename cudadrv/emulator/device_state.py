"""One emulated device at run time: its memory, its statistics, its state.

The driver's allocations in it are `Piece`s. `GraphAllocation` belongs to graphs (CUDA Driver API,
cuDeviceGetGraphMemAttribute).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate import DeviceMemory, DeviceModel, EmulationFault, OutOfMemory
from ptx.emulate.memory.device_memory import Reservation
from ptx.shown_path import shown_path

from ..driver._api import CUresult
from .call_error import CallError, Failure, invalid_value
from .call_site import user_call_site
from .host_memory import HostMemory, HostPiece
from .memory_patterns import FREED, FRESH, fill
from .pools import DeviceAccount, GraphMemory, Pool
from .profiles import MAX_DEVICES, MAX_TOTAL_MEMORY, EmulatedDevice, device_attributes
from .shared_file import PAGE, SharedFile, SharedPages

if TYPE_CHECKING:
    from .counters import Counters
# As the driver aligns (measured); the manual promises any variable's alignment.
_ALIGNMENT = 512
# The driver maps large memory in pages of this size. Programs build on that: Taichi does.
_LARGE_PAGE = 2 << 20
# Device addresses lie above a host process's addresses (2**48) and below the limit of exact float64
# integers (2**53). Each emulator uses a part of its own, so that an old emulator's pointer is not
# mistaken for one of the next.
_LOWEST_BASE = 1 << 48
_EMULATOR_SPAN = MAX_TOTAL_MEMORY * MAX_DEVICES
_EMULATOR_SPANS = ((1 << 52) - _LOWEST_BASE) // _EMULATOR_SPAN


class Owner(Enum):
    """The driver's allocator that a piece of device memory came from."""

    PLAIN = "cuMemAlloc"
    POOL = "cuMemAllocAsync"
    GRAPH = "cuMemAllocAsync in a graph"
    ARRAY = "cuArray3DCreate"
    MIPMAP = "cuMipmappedArrayCreate"
    OPENED = "cuIpcOpenMemHandle"
    EXTERNAL = "cuExternalMemoryGetMappedBuffer"


class Piece(NamedTuple):
    """An allocation in use, as the driver sees it.

    Attributes:
        rounded: bytes with the allocator's rounding.
        context: handle of the context that owns it; 0 for memory of a pool.
        number: CU_POINTER_ATTRIBUTE_BUFFER_ID, unique on the device.
        graph: the graph allocation, of a GRAPH piece.
        pool: the pool, of a POOL piece.
        is_foreign: whether it belongs to another process, and is only mapped here.
        is_synchronous: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
    """

    address: int
    nbytes: int
    rounded: int
    owner: Owner
    context: int
    number: int
    graph: GraphAllocation | None = None
    pool: Pool | None = None
    is_foreign: bool = False
    is_synchronous: bool = False


class GraphAccount:
    """Bytes that launches of graphs allocated, and no call has trimmed.

    CUDA Programming Guide, "Graph Memory Nodes": used memory is that which a graph maps, also after
    its free. The memory of each allocation is its graph's alone, so all that is reserved is used.
    Callers hold the device's lock.

    Attributes:
        used_high, reserved_high: the highest values since they were reset.
    """

    def __init__(self) -> None:
        self.used_high: int = 0
        self.reserved_high: int = 0

    @staticmethod
    def now(pieces: Iterable[Piece]) -> int:
        """Return the used bytes, all of them reserved, of all allocations of the device."""
        return sum(
            piece.nbytes for piece in pieces if piece.graph is not None and piece.graph.is_reserved
        )

    def note(self, pieces: Iterable[Piece]) -> None:
        """Record a new allocation."""
        used = self.now(pieces)
        self.used_high = max(self.used_high, used)
        self.reserved_high = max(self.reserved_high, used)

    @staticmethod
    def trim(pieces: Iterable[Piece]) -> None:
        """Free the memory that graphs do not use."""
        for piece in pieces:
            if piece.graph is not None and not piece.graph.live:
                piece.graph.is_reserved = False


@dataclass(eq=False, repr=False, slots=True)
class GraphAllocation(GraphMemory):
    """An allocation of a graph.

    The bytes are reserved when it is recorded, and freed when the graph and all its executables are
    destroyed and the memory is free.

    Attributes:
        device: the device of the memory; for memory of the host, or managed memory, one whose
            graphs use it.
        host: the memory of the host with its lock, if it is not the device's own.
        is_reserved: whether a launch has allocated it, without a trim since.
        owners: the number of graphs and executables that own it.
        lock: guards it.
    """

    device: DeviceState
    host: tuple[HostMemory, threading.RLock] | None = None
    is_reserved: bool = False
    owners: int = 1
    piece: Piece | HostPiece = field(init=False)
    lock: threading.RLock = field(init=False)

    def __post_init__(self) -> None:
        self.lock = self.device.lock if self.host is None else self.host[1]
        with self.lock:
            if self.host is None:
                self.piece = self.device.allocate(self.nbytes, Owner.GRAPH, graph=self)
            else:
                self.piece = self._of_host(self.host[0])

    def _of_host(self, host: HostMemory) -> HostPiece:
        try:
            return host.allocate(
                self.nbytes, 0, self.device.ordinal, managed=self.location.is_managed, graph=self
            )
        except (OSError, ValueError, OverflowError) as error:
            raise CallError(
                CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                f"out of memory: {self.nbytes} bytes of host memory asked for ({error})",
            ) from error

    def allocate(self) -> None:
        """Allocate, as the node does."""
        with self.lock:
            self.reject_if_live()
            self.mark_live()
            if isinstance(self.piece, Piece):
                self.device.begin(self.piece)

    def mark_live(self) -> None:
        """Mark it as allocated; this updates the device's high-water marks."""
        with self.lock:
            self.live = self.is_reserved = True
            if self.host is None:
                self.device.graph_account.note(self.device.pieces.values())

    def reject_if_live(self) -> None:
        """Reject a launch while memory of an earlier one is allocated.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, if an earlier launch's memory was not freed.
        """
        if self.live:
            raise invalid_value(
                f"the graph's allocation at {self.piece.address:#x} from an earlier launch was "
                "not freed"
            )

    def fill(self, pattern: int) -> None:
        """Write a pattern, as the nodes do with a timeline.

        Memory of the host gets none: fills that are queued after it would look overwritten.
        """
        with self.lock:
            if isinstance(self.piece, Piece):
                self.device.fill(self.piece, pattern)

    def free(self) -> None:
        """Free, as the node does, or a free outside the graph.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, if it is not allocated.
        """
        with self.lock:
            self._end()
            self._free_if_unused()

    def free_later(self) -> None:
        """Mark it as freed by its user; `freed` is called when the stream executes the free.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, if it is not allocated.
        """
        with self.lock:
            self._end()
            self.owners += 1

    def _end(self) -> None:
        """Mark it as freed by its user; the lock is held."""
        if not self.live:
            raise invalid_value(f"the graph's memory at {self.piece.address:#x} is not allocated")
        self.live: bool = False

    def freed(self) -> None:
        """Complete the free, which the stream has executed."""
        with self.lock:
            if not self.live:
                self.fill(FREED)
            self.release()

    def retain(self) -> None:
        """Add an owner."""
        with self.lock:
            self.owners += 1

    def release(self) -> None:
        """Remove an owner."""
        with self.lock:
            self.owners -= 1
            self._free_if_unused()

    def _free_if_unused(self) -> None:
        if self.owners or self.live:
            return
        if isinstance(self.piece, Piece):
            self.device.free(self.piece)
        elif self.host is not None:
            self.host[0].leave_for_good(self.piece)


def _nobody(fault: EmulationFault) -> None:
    """Ignore a fault."""


class DeviceState:
    """One emulated device.

    Operations that change memory or run a kernel hold `lock`; with two devices, in the order of
    ordinals. Frees of finalizers in the middle of such an operation come after its call. An
    interrupt may come at any line: memory that is to be freed waits in one table until its free is
    complete.

    Attributes:
        ordinal: its index among the visible devices; `number` that among all.
        fault: the error that broke the device: from then on all calls on its contexts return its
            code.
        account: the uses of its memory.
        pool: its default pool.
        pool_in_use: the pool of cuMemAllocAsync.
        graph_account: the part of its memory that graphs use.
        pieces: allocations in use by address; module variables are not among them.
        opened: address and count of openings, by context and handle of another process's memory.
        counters: objects that each count all launches; empty unless requested.
        has_patterns: whether fresh and freed memory hold patterns.
        others: the emulator's other devices.
        teams: the devices that ever bound memory to a multicast object with this one.
        note_fault: called with each fault of a kernel.
        note_kernel: called once, before the first kernel runs; None afterwards.
        keeps_faults: whether a fault makes later calls fail, as on a GPU.
        primary_flags: flags of its next primary context.
    """

    def __init__(self, profile: EmulatedDevice, ordinal: int, base: int, pool_handle: int) -> None:
        self.profile = profile
        self.ordinal = ordinal
        self.number: int = ordinal
        self.primary_flags: int = 0
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
        self.shared: SharedPages = SharedPages(self.memory)
        self.opened: dict[tuple[int, bytes], tuple[int, int]] = {}
        self.fault: Failure | None = None
        self.pieces: dict[int, Piece] = {}
        self._numbered = 0
        self._leaving: dict[int, Piece] = {}
        self.has_patterns = False
        self.others: tuple[DeviceState, ...] = ()
        self.teams: set[DeviceState] = set()
        self.counters: tuple[Counters, ...] = ()
        self.note_fault: Callable[[EmulationFault], None] = _nobody
        self.note_kernel: Callable[[], None] | None = None
        self.keeps_faults: bool = True

    def reject_if_broken(self) -> None:
        """Raise the fault that broke the device, if one did."""
        if self.fault is not None:
            raise CallError(self.fault.code, self.fault.text, self.fault.cause)

    def _free_leaving(self) -> None:
        """Free the memory that has no owner; an interrupted free is completed."""
        for piece in list(self._leaving.values()):
            self._free(piece)
            self._leaving.pop(piece.address, None)

    def _free(self, piece: Piece) -> None:
        """Free memory, as far as that is not done; its addresses are quarantined for a while."""
        if piece.is_foreign:
            self.opened = {
                k: entry for k, entry in self.opened.items() if entry[0] != piece.address
            }
            self.shared.remove(piece.address, piece.nbytes)
            self.account.give(piece.address, piece.pool)
            return
        if self.has_patterns:
            self.fill(piece, FREED)
        if piece.pool is not None and piece.pool.file is not None:
            self.shared.hide(piece.address, piece.rounded)
        self.account.give(piece.address, piece.pool)
        if self.memory.at(piece.address) is not None:
            self.memory.free(piece.address)

    def share(self, piece: Piece) -> tuple[SharedFile, int]:
        """Share an allocation with other processes; return its file and offset. The lock is held.

        Raises:
            OSError: the system reported an error.
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
        """Open memory of another process, which uses none of this device's; the lock is held.

        Raises:
            CallError: CUDA_ERROR_OUT_OF_MEMORY, if there are no addresses for it, or the system
                reported an error.
        """

        self._free_leaving()
        try:
            origin = f"memory of another process, {owner.value}"
            address = self.shared.add(file, offset, nbytes, origin)
        except (OutOfMemory, OSError) as error:
            raise self._out_of_memory(nbytes) from error
        if pool is not None:
            pool.take(address, nbytes, 0, 0)
        self._numbered += 1
        piece = Piece(
            address, nbytes, 0, owner, context, self._numbered, pool=pool, is_foreign=True
        )
        self.pieces[address] = piece
        return piece

    def begin(self, piece: Piece) -> None:
        """Mark the memory as unwritten, also after earlier uses."""
        if self.memory.written is not None:
            self.memory.written.begin(piece.address - self.memory.base, piece.nbytes)

    def flags(self, address: int, nbytes: int) -> NDArray[np.uint8] | None:
        """Return the written flags of some bytes, if that is checked."""
        written = self.memory.written
        return None if written is None else written.of(address - self.memory.base, nbytes)

    def fill(self, piece: Piece, pattern: int) -> None:
        """Write a pattern over memory that was never written, or that is free."""
        self.begin(piece)
        fill(self.host_address + (piece.address - self.memory.base), piece.nbytes, pattern)

    @property
    def uuid(self) -> bytes:
        """16 bytes that differ between devices and are the same in every run."""
        from hashlib import blake2b  # 3 ms, as it imports OpenSSL

        seed = f"{self.profile.name}/{self.number}".encode()
        return blake2b(seed, digest_size=16).digest()

    @property
    def pci_bus_id(self) -> str:
        """Domain, bus, device and function, such as "0000:01:00.0"."""
        return f"0000:{self.number + 1:02x}:00.0"

    def holds(self, address: int) -> bool:
        """Return whether an address lies in this device's memory."""
        return 0 <= address - self.memory.base < self.memory.nbytes

    def piece_at(self, address: int) -> Piece | None:
        """Return the allocation that contains an address."""
        with self.lock:
            allocation = self.memory.find(address)
            return None if allocation is None else self.pieces.get(allocation.address)

    def set_synchronous(self, piece: Piece, value: bool) -> None:
        """Set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of an allocation."""
        with self.lock:
            self.pieces[piece.address] = piece._replace(is_synchronous=value)

    def can_be_reached_by(self, other: DeviceState) -> bool:
        """Return whether kernels of another device can be given access to this one's memory."""
        return self is not other and self.profile.peer_access and other.profile.peer_access

    def allocate(
        self,
        nbytes: int,
        owner: Owner,
        *,
        context: int = 0,
        graph: GraphAllocation | None = None,
        pool: Pool | None = None,
    ) -> Piece:
        """Allocate memory, of a pool or of another owner; the lock is held.

        Raises:
            CallError: CUDA_ERROR_OUT_OF_MEMORY, with the request and the free bytes.
        """
        if owner is Owner.POOL and pool is None:
            pool = self.pool
        self._free_leaving()
        if nbytes > self.account.capacity:
            raise self._out_of_memory(nbytes)
        call_site = shown_path(user_call_site())
        origin = f"{owner.value} at {call_site}" if call_site else owner.value
        file = None if pool is None else pool.file
        unit = DeviceMemory.granule if file is None else PAGE
        try:
            address = self._place(nbytes, origin, unit)
        except OutOfMemory as error:
            raise self._out_of_memory(nbytes) from error
        rounded = self.memory.size_at(address)
        if not self.account.take(address, nbytes, rounded, pool):
            self.memory.free(address)
            raise self._out_of_memory(nbytes)
        self._numbered += 1
        piece = Piece(address, nbytes, rounded, owner, context, self._numbered, graph, pool)
        if file is not None:
            try:
                self.shared.show(address, rounded, file, address - self.memory.base)
            except BaseException as error:
                self._leaving[address] = piece  # the next allocation frees it
                if isinstance(error, OSError):
                    raise self._out_of_memory(nbytes) from error
                raise
        self.pieces[address] = piece
        if self.has_patterns and owner not in (Owner.POOL, Owner.GRAPH):
            self.fill(piece, FRESH)
        return piece

    def _place(self, nbytes: int, origin: str, unit: int) -> int:
        """Return the address of fresh memory: a page's, if it is large and there is room."""
        if nbytes >= _LARGE_PAGE:
            with suppress(OutOfMemory):
                return self.memory.allocate(nbytes, origin=origin, alignment=_LARGE_PAGE, unit=unit)
        return self.memory.allocate(nbytes, origin=origin, alignment=_ALIGNMENT, unit=unit)

    def hand_over(self, piece: Piece) -> Piece:
        """Give memory a new owner, valid when the former owner's free has executed."""
        self._numbered += 1
        new = self.pieces[piece.address] = piece._replace(number=self._numbered)
        if piece.pool is not None:
            piece.pool.count_use(piece.address, piece.nbytes)
        return new

    def _out_of_memory(self, nbytes: int) -> CallError:
        return CallError(
            CUresult.CUDA_ERROR_OUT_OF_MEMORY, self.account.out_of_memory(nbytes, self.ordinal)
        )

    def free(self, piece: Piece) -> None:
        """Free memory; the lock is held."""
        self._leaving[piece.address] = piece
        self.drop(piece)
        self._free_leaving()

    def drop(self, piece: Piece) -> None:
        """Mark memory as without an owner; the lock is held."""
        self.pieces.pop(piece.address, None)

    def free_addresses(self, piece: Piece) -> None:
        """Free memory without an owner; the lock is held."""
        self._leaving[piece.address] = piece
        self._free_leaving()

    def why_not_free(self, address: int) -> str:
        """Return the reason why nothing can be freed at an address."""
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
        """Return the host address of a range of device memory.

        Memory of a graph counts only while it is allocated, or for recorded operations
        (`in_graph`).

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, if the range does not lie in one live allocation.
        """
        allocation = self.memory.find(address)
        if allocation is None:
            freed = self.memory.find_freed(address)
            nearest = self.memory.nearest(address)
            raise invalid_value(
                f"{address:#x} is not in a live allocation of device {self.ordinal}; "
                + (f"it was in {freed}, now freed" if freed else f"the nearest is {nearest}")
            )
        if address + nbytes > allocation.end:
            raise invalid_value(
                f"{nbytes} bytes at {address:#x} go beyond the allocation of {allocation}"
            )
        piece = self.pieces.get(allocation.address)
        if piece is not None and piece.graph is not None and not (in_graph or piece.graph.live):
            raise invalid_value(f"the graph's memory at {address:#x} is not allocated")
        return self.host_address + (address - self.memory.base)


def device_states(
    devices: Iterable[EmulatedDevice], serial: int, handles: Iterator[int]
) -> tuple[DeviceState, ...]:
    """Return the devices of an emulator, each with addresses and a pool of its own."""
    base = _LOWEST_BASE + serial % _EMULATOR_SPANS * _EMULATOR_SPAN
    return tuple(
        DeviceState(profile, ordinal, base + ordinal * MAX_TOTAL_MEMORY, next(handles))
        for ordinal, profile in enumerate(devices)
    )


class LentMemory:
    """Memory in use and cached memory of some devices, as allocators report it.

    Returned memory counts as unused at once, though queued work may still use it. So this applies
    only where operations run at their call.
    """

    def __init__(self, devices: Sequence[DeviceState]) -> None:
        self._devices = devices

    def lend(self, address: int, nbytes: int) -> None:
        """Mark bytes as in use and unwritten: an allocation, or a part that is its own array."""
        for device in self._devices:
            if device.holds(address):
                memory = device.memory
                if memory.written is not None:
                    memory.written.begin(address - memory.base, nbytes)
                memory.freed_by_owner.pop(address, None)
                if memory.at(address) is None:
                    with device.lock:
                        allocation = memory.find(address)
                    if allocation is not None:
                        memory.parts[address] = allocation, nbytes

    def take_back(self, address: int) -> None:
        """Mark the memory at an address as unused, though nothing is freed.

        A finalizer may call it; it takes no lock.
        """
        for device in self._devices:
            if device.holds(address):
                allocation = device.memory.at(address)
                if allocation is not None:
                    device.memory.freed_by_owner[address] = allocation
