"""The memory of an emulator: of its devices, of the host, of pools, and mapped memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ptx.emulate.memory.mapped_memory import MappedHostMemory

from ..driver._api import CUmemoryPool
from .call_error import invalid_value
from .device_state import DeviceState, GraphAllocation
from .devices import Devices
from .host_memory import HostMemory
from .pools import (
    ANYWHERE,
    DEVICE,
    HOST,
    HOST_NUMA,
    HOST_NUMA_CURRENT,
    MANAGED,
    PINNED,
    HostPools,
    Location,
    Pool,
    PoolLocation,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .leaks import LeakWatch
    from .physical_memory import MulticastObject, PhysicalMemory


class MemoryState:
    """Memory of all kinds, by address and by handle.

    Attributes:
        devices: the devices, each with its memory.
        host: page-locked and managed memory.
        host_pools: pools of host memory.
        physical: memory of cuMemCreate, by handle.
        multicasts: multicast objects, by handle.
        mapping_lock: guards `physical` and `multicasts`, with all that they contain.
    """

    __slots__ = ("_lock", "devices", "host", "host_pools", "mapping_lock", "multicasts", "physical")

    def __init__(self, devices: Devices, numbers: Iterator[int], lock: threading.RLock) -> None:
        self._lock = lock
        self.devices: Devices = devices
        self.host: HostMemory = HostMemory()
        self.host_pools: HostPools = HostPools(numbers)
        self.physical: dict[int, PhysicalMemory] = {}
        self.multicasts: dict[int, MulticastObject] = {}
        self.mapping_lock: threading.RLock = threading.RLock()
        for device in devices.visible:
            device.model.host = partial(self._reachable_host_memory, device)
            device.model.multicast = partial(self._members_at, device)

    def watch(self, leaks: LeakWatch) -> None:
        """Record the caller of each call that allocates memory, from now on."""
        self.host.pieces = leaks.host_memory(self.host.pieces)
        for device in self.devices.visible:
            device.pieces = leaks.memory(device.pieces)

    def written_flags(self, address: int, nbytes: int) -> NDArray[np.uint8] | None:
        """Return which bytes of a device's memory are written; None if that is not known."""
        device = self.devices.holding(address)
        if device is None:
            return None
        with device.lock:
            flags = device.flags(address, nbytes)
            return None if flags is None else flags.copy()

    def _reachable_host_memory(self, device: DeviceState, address: int) -> MappedHostMemory | None:
        """Return the host memory at an address, as kernels of a device access it."""
        return self.host.reachable(address, device.ordinal)

    def _members_at(self, device: DeviceState, address: int, nbytes: int) -> list[int] | None:
        """Return where bytes of a multicast object lie, for a kernel of a device with access."""
        for multicast in list(self.multicasts.values()):
            for start, owner in list(multicast.mapped.items()):
                if not start <= address <= start + multicast.nbytes - nbytes:
                    continue
                for reservation in list(owner.reservations.values()):
                    piece = reservation.pieces.get(start)
                    if piece is not None and device.ordinal in piece.devices:
                        return multicast.members(address - start, nbytes)
        return None

    def allocation_at(self, address: int) -> tuple[int, str] | None:
        """Return the start and the description of the allocation that holds an address."""
        device = self.devices.holding(address)
        if device is not None:
            with device.lock:
                allocation = device.memory.find(address) or device.memory.find_freed(address)
            return None if allocation is None else (allocation.address, str(allocation))
        piece = self.host.find(address)
        if piece is None:
            return None
        kind = "managed" if piece.managed else "page-locked"
        return piece.address, f"{piece.nbytes} bytes of {kind} memory at {piece.address:#x}"

    def pool(self, handle: CUmemoryPool) -> tuple[DeviceState | None, Pool]:
        """Return a pool, and the device of its memory; None for the host's."""
        number = int(handle)
        for device in self.devices.visible:
            pool = device.account.pools.get(number)
            if pool is not None and pool.is_open:
                return device, pool
        pool = self.host_pools.by_handle.get(number)
        if pool is not None and pool.is_open:
            return None, pool
        raise invalid_value(f"{number:#x} is no memory pool")

    def pool_location(self, location: Location | None, typename: int) -> PoolLocation:
        """Return the pool location of a location and a type of allocation.

        The codes were measured with driver 580.

        Raises:
            CallError: there are no such pools.
        """
        if location is None:
            raise invalid_value("the location of the pool is null")
        kind, number = int(location.type), int(location.id)
        is_managed = int(typename) == MANAGED
        if not is_managed and int(typename) != PINNED:
            raise invalid_value(f"memory of type {int(typename)} has no pool")
        if kind == DEVICE:
            if not 0 <= number < len(self.devices.visible):
                raise invalid_value(f"there is no device {number} of {len(self.devices.visible)}")
            return PoolLocation(kind, number, is_managed)
        if kind == HOST_NUMA and number:
            raise invalid_value(f"the emulated host has NUMA node 0, and no node {number}")
        if kind in (HOST, HOST_NUMA) or (is_managed and kind in (ANYWHERE, HOST_NUMA_CURRENT)):
            return PoolLocation(kind, 0, is_managed)
        raise invalid_value(f"there are no pools of memory at locations of type {kind}")

    def graph_allocation(
        self, device: DeviceState, nbytes: int, location: PoolLocation
    ) -> GraphAllocation:
        """Reserve memory at a location for a graph.

        Raises:
            CallError: CUDA_ERROR_OUT_OF_MEMORY.
        """
        if location.kind == DEVICE and not location.is_managed:
            return GraphAllocation(nbytes, location, self.devices.visible[location.number])
        return GraphAllocation(nbytes, location, device, (self.host, self._lock))
