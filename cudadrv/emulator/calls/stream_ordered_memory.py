"""Memory that is allocated and freed in the order of a stream, and its pools.

CUDA Driver API: "Stream Ordered Memory Allocator".
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

from ...driver._api import (
    CUdevice,
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationHandleType,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute,
    CUresult,
    CUstream,
    cuuint64_t,
)
from ..call_error import OK, SUCCESS, CallError, invalid_value, not_supported
from ..device_state import DeviceState, GraphAllocation, Owner, Piece
from ..driver_state import DriverState
from ..host_memory import HostPiece
from ..node_kind import NodeKind
from ..pools import (
    DEVICE,
    HOST,
    HOST_NUMA,
    HOST_NUMA_CURRENT,
    MANAGED,
    PINNED,
    Location,
    Pool,
    PoolLocation,
    PoolProperties,
)
from ..shared_file import DESCRIPTORS, HOST_MEMORY, new_shared_file
from ..streams import Stream, StreamCapture
from ..timeline.freed_memory import FreedMemory
from .call import DriverCalls, call

_THRESHOLD: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
_RESERVED: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
_RESERVED_HIGH: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
_USED: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
_USED_HIGH: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH)
# Creation parameters of a pool, for which the bindings of CUDA 12 have no names.
_TYPE, _HANDLE_TYPES, _LOCATION, _LOCATION_TYPE, _MOST, _DECOMPRESSES = range(9, 15)
_NO_HANDLES: Final = int(CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE)
_NO_ACCESS: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE)
_READ_AND_WRITE: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
_THE_HOST: Final = -1  # among the ordinals that may access a pool


class StreamOrderedMemoryCalls(DriverCalls):
    """Stream-ordered memory, and memory pools."""

    @call
    def cuMemAllocAsync(self, bytesize: int, h_stream: CUstream, /) -> tuple[CUresult, CUdeviceptr]:
        """Allocate from the stream's device's current pool; 0 bytes give null (measured).

        In a capture it becomes a node, and the graph owns the memory.
        """
        stream = self._state.handles.stream(h_stream)
        device = stream.context.device
        return SUCCESS, self._allocate_of(device, device.pool_in_use, stream, bytesize)

    @call
    def cuMemAllocFromPoolAsync(
        self, bytesize: int, pool: CUmemoryPool, h_stream: CUstream, /
    ) -> tuple[CUresult, CUdeviceptr]:
        """Same for a pool."""
        stream = self._state.handles.stream(h_stream)
        device, state = self._state.memory.pool(pool)
        if state.is_foreign:
            raise invalid_value("the pool is another process's, which alone has memory of it")
        if device is None:
            return SUCCESS, self._allocate_of_host(state, stream, bytesize)
        return SUCCESS, self._allocate_of(device, state, stream, bytesize)

    def _allocate_of(
        self, device: DeviceState, pool: Pool, stream: Stream, bytesize: int
    ) -> CUdeviceptr:
        if stream.capture is not None:
            location = PoolLocation(DEVICE, device.ordinal)
            return CUdeviceptr(self._allocate_in(stream.capture, stream, bytesize, location))
        if self._state.captures.active:
            self._state.captures.reject_if_implicit(stream)
            self._state.captures.reject_unsafe()
        if bytesize <= 0:
            return CUdeviceptr(0)
        if self._state.operations.freed is not None:
            piece = self._state.operations.freed.allocate(device, stream, bytesize, pool)
        else:
            with device.lock:
                piece = device.allocate(bytesize, Owner.POOL, pool=pool)
        if self._state.operations.accesses is not None:
            self._state.operations.accesses.allocated(stream, piece.address, bytesize)
        return CUdeviceptr(piece.address)

    def _allocate_in(
        self, capture: StreamCapture, stream: Stream, nbytes: int, location: PoolLocation
    ) -> int:
        self._state.captures.reject_if_invalid(capture)
        if nbytes <= 0:
            return 0
        memory = self._state.memory.graph_allocation(stream.context.device, nbytes, location)
        try:
            with self._state.lock:
                self._state.captures.reject_if_invalid(capture)
                capture.add(stream, NodeKind.ALLOC, memory.allocate, memory)
        except CallError:
            memory.release()
            raise
        return memory.piece.address

    @call
    def cuMemFreeAsync(self, dptr: CUdeviceptr, h_stream: CUstream, /) -> tuple[CUresult]:
        """Free memory; in a capture, only memory that the same capture allocated.

        The stream is any of the device. Driver 580 also accepts another device's, and then nothing
        orders the free after the memory's uses.
        """
        address = int(dptr)
        if address and self._state.handles.lost_its_context(h_stream):
            # The end of a context waits for its work. Memory of a pool outlives the context.
            if self._state.memory.host.find(address) is not None:
                free_of_host(self._state, address)
            else:
                free_device_memory(self._state, address)
            return OK
        stream = self._state.handles.stream(h_stream)
        if stream.capture is not None:
            self._free_in(stream.capture, stream, address)
            return OK
        if self._state.captures.active:
            self._state.captures.reject_if_implicit(stream)
        if address:
            host = self._state.memory.host.find(address)
            if host is not None and (host.pool is not None or host.graph is not None):
                free_of_host(self._state, address, stream)
                return OK
            device = self._state.devices.holding(address)
            if device is not None and device is not stream.context.device:
                raise invalid_value(
                    f"{address:#x} is memory of device {device.ordinal}, the stream is of device "
                    f"{stream.context.device.ordinal}"
                )
            free_device_memory(self._state, address, stream)
        return OK

    def _free_in(self, capture: StreamCapture, stream: Stream, address: int) -> None:
        with self._state.lock:
            self._state.captures.reject_if_invalid(capture)
            freed = {id(n.memory) for n in capture.graph.nodes if n.kind is NodeKind.FREE}
            for node in capture.graph.nodes:
                memory = node.memory
                if (
                    node.kind is NodeKind.ALLOC
                    and memory is not None
                    and memory.piece.address == address
                    and id(memory) not in freed
                ):
                    capture.add(stream, NodeKind.FREE, memory.free, memory)
                    return
        if address:
            raise invalid_value(
                f"{address:#x} was not allocated in this capture, so the graph cannot free it"
            )

    @call
    def cuMemPoolCreate(
        self, pool_props: PoolProperties | None, /
    ) -> tuple[CUresult, CUmemoryPool]:
        """Create a pool, limited to `maxSize` bytes if that is not 0.

        It has a device's memory, page-locked memory of the host, or managed memory, whose location
        is the preferred one.
        """
        if pool_props is None:
            raise invalid_value("the properties of the pool are null")
        self._state.captures.reject_unsafe()
        try:
            kind, handles = int(pool_props.allocType), int(pool_props.handleTypes)
            location = self._state.memory.pool_location(pool_props.location, kind)
        except ValueError as error:
            raise invalid_value(f"the properties of the pool: {error}") from None
        max_bytes = int(pool_props.maxSize)
        if handles not in (_NO_HANDLES, DESCRIPTORS):
            raise not_supported("the emulator shares pools by POSIX file descriptors alone")
        if not self._is_of_device(location):
            return SUCCESS, CUmemoryPool(self._pool_of_host(location, handles, max_bytes).handle)
        device = self._state.devices.at(location.number)
        pool = Pool(self._state.handles.new(), max_bytes)
        if handles == DESCRIPTORS:
            pool.file = new_shared_file("pool", device.uuid, device.profile.total_memory)
        with device.lock:
            device.account.pools[pool.handle] = pool
        return SUCCESS, CUmemoryPool(pool.handle)

    def _pool_of_host(self, location: PoolLocation, handles: int, max_bytes: int) -> Pool:
        if location.is_managed and (handles or max_bytes):
            raise invalid_value("a pool of managed memory has no limit, and is not shared")
        if location.kind == HOST and handles:
            raise invalid_value("only a pool of a NUMA node of the host is shared")
        file = new_shared_file("pool", HOST_MEMORY, 0) if handles else None
        with self._state.lock:
            return self._state.memory.host_pools.create(location, max_bytes, file=file)

    @call
    def cuMemPoolDestroy(self, pool: CUmemoryPool, /) -> tuple[CUresult]:
        """Destroy a pool; its memory stays until it is freed. Default pools stay."""
        device, state = self._state.memory.pool(pool)
        self._state.captures.reject_unsafe()
        if device is None:
            with self._state.lock:
                if self._state.memory.host_pools.is_default(state):
                    raise invalid_value("a default pool cannot be destroyed")
                self._state.memory.host_pools.destroy(state)
            return OK
        if state is device.pool:
            raise invalid_value("a device's default pool cannot be destroyed")
        with device.lock:
            if device.pool_in_use is state:
                device.pool_in_use = device.pool
            device.account.destroy(state)
        return OK

    @call
    def cuMemPoolGetAccess(
        self, mem_pool: CUmemoryPool, location: Location | None, /
    ) -> tuple[CUresult, CUmemAccess_flags]:
        """Return the access that a device has to a pool, or the host to one of its memory.

        For a pool of managed memory that is the value of cuMemPoolSetAccess, though every device
        can access its memory: measured with driver 580.
        """
        owner, pool = self._state.memory.pool(mem_pool)
        if location is None:
            raise invalid_value("access to a pool is asked for of a device")
        if owner is None and int(location.type) in (HOST, HOST_NUMA):
            is_open = not _is_managed(pool) or _THE_HOST in pool.peers
        elif location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
            raise invalid_value("access to a pool is asked for of a device")
        else:
            device = self._state.devices.at(location.id)
            is_open = device is owner or device.ordinal in pool.peers
        return SUCCESS, CUmemAccess_flags(_READ_AND_WRITE if is_open else _NO_ACCESS)

    @call
    def cuMemPoolTrimTo(self, pool: CUmemoryPool, min_bytes_to_keep: int, /) -> tuple[CUresult]:
        """Release unused memory, down to `min_bytes_to_keep`."""
        device, account = self._state.memory.pool(pool)
        self._state.captures.reject_unsafe()
        with self._lock_of_pool(device):
            account.trim(min_bytes_to_keep)
        return OK

    @call
    def cuMemPoolSetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute, value: cuuint64_t, /
    ) -> tuple[CUresult]:
        """Set the threshold, a reuse policy, or 0 to reset a high-water mark."""
        device, account = self._state.memory.pool(pool)
        number, new = int(attr), int(value)
        with self._lock_of_pool(device):
            if number == _THRESHOLD:
                account.threshold = new
            elif number in account.reuse:
                account.reuse[number] = int(new != 0)
            elif number == _RESERVED_HIGH and new == 0:
                account.reserved_high = account.reserved
            elif number == _USED_HIGH and new == 0:
                account.used_high = account.used
            else:
                raise invalid_value(f"pool attribute {number} cannot be set to {new}")
        return OK

    @call
    def cuMemPoolGetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute | int, /
    ) -> tuple[CUresult, cuuint64_t]:
        """Return a policy, a byte count, or a creation parameter of the pool."""
        device, account = self._state.memory.pool(pool)
        location = self._location_of_pool(device, account)
        values = {
            **account.reuse,
            _THRESHOLD: account.threshold,
            _RESERVED: account.reserved,
            _RESERVED_HIGH: account.reserved_high,
            _USED: account.used,
            _USED_HIGH: account.used_high,
            _TYPE: MANAGED if location.is_managed else PINNED,
            _HANDLE_TYPES: DESCRIPTORS if account.file and not account.is_foreign else _NO_HANDLES,
            _LOCATION: location.number,
            _LOCATION_TYPE: location.kind,
            _MOST: account.most,
            _DECOMPRESSES: 0,
        }
        value = values.get(int(attr))
        if value is None:
            raise invalid_value(f"the emulator keeps no pool attribute {int(attr)}")
        return SUCCESS, cuuint64_t(value)

    @call
    def cuMemPoolSetAccess(
        self, pool: CUmemoryPool, map: Sequence[CUmemAccessDesc], count: int, /
    ) -> tuple[CUresult]:
        """Set the access of other devices to the pool's memory; its own device always has it.

        The codes were measured with driver 580 on two H200s, except for devices that are no peers.
        """
        owner, opened = self._state.memory.pool(pool)
        self._state.captures.reject_unsafe()
        if count > len(map):
            raise invalid_value(f"{count} descriptors of access, of which {len(map)} were given")
        grants = [self._access(owner, opened, description) for description in map[:count]]
        with self._lock_of_pool(owner):
            for ordinal, is_granted in grants:
                if is_granted:
                    opened.peers.add(ordinal)
                else:
                    opened.peers.discard(ordinal)
        return OK

    def _access(
        self, owner: DeviceState | None, pool: Pool, description: CUmemAccessDesc
    ) -> tuple[int, bool]:
        """Return the ordinal that the access is for, and whether it is granted."""
        flags, kind = int(description.flags), int(description.location.type)
        if flags not in (_NO_ACCESS, _READ_AND_WRITE):
            raise not_supported(f"access to a pool is none or to read and write, not {flags}")
        if owner is None and kind in (HOST, HOST_NUMA):
            if flags == _NO_ACCESS and not _is_managed(pool):
                raise not_supported("the host has access to its own memory")
            return _THE_HOST, bool(flags)
        if kind != DEVICE:
            raise not_supported("access to a pool of a device is given to devices")
        device = self._state.devices.at(description.location.id)
        if device is owner and flags == _NO_ACCESS:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_DEVICE, "a pool's own device has access to it"
            )
        if owner not in (None, device) and flags and not owner.can_be_reached_by(device):
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_DEVICE,
                f"device {device.ordinal} cannot access memory of device {owner.ordinal}",
            )
        return device.ordinal, bool(flags)

    def _lock_of_pool(self, device: DeviceState | None) -> AbstractContextManager[object]:
        """Return the lock for the byte counts of a device's pool, or of one of the host."""
        return self._state.lock if device is None else device.lock

    def _selectable_location(self, location: Location | None, typename: int) -> PoolLocation:
        """Same, for a location that has a pool in use: that of a thread is not one."""
        if location is not None and int(location.type) == HOST_NUMA_CURRENT:
            raise not_supported("the NUMA node of a thread has no pool in use: name the node")
        return self._state.memory.pool_location(location, typename)

    @staticmethod
    def _is_of_device(location: PoolLocation) -> bool:
        return location.kind == DEVICE and not location.is_managed

    @staticmethod
    def _location_of_pool(device: DeviceState | None, pool: Pool) -> PoolLocation:
        if device is not None:
            return PoolLocation(DEVICE, device.ordinal)
        assert pool.location is not None
        return pool.location

    @call
    def cuDeviceGetDefaultMemPool(self, dev: CUdevice, /) -> tuple[CUresult, CUmemoryPool]:
        """Return the default pool of a device."""
        return SUCCESS, CUmemoryPool(self._state.devices.of(dev).pool.handle)

    @call
    def cuDeviceGetMemPool(self, dev: CUdevice, /) -> tuple[CUresult, CUmemoryPool]:
        """Return the pool that cuMemAllocAsync allocates from."""
        return SUCCESS, CUmemoryPool(self._state.devices.of(dev).pool_in_use.handle)

    @call
    def cuDeviceSetMemPool(self, dev: CUdevice, pool: CUmemoryPool, /) -> tuple[CUresult]:
        """Let cuMemAllocAsync allocate from another pool of the device."""
        self._use_pool(PoolLocation(DEVICE, self._state.devices.of(dev).ordinal), pool)
        return OK

    @call
    def cuMemGetDefaultMemPool(
        self, location: Location | None, typename: int, /
    ) -> tuple[CUresult, CUmemoryPool]:
        """Return the default pool of a location for a kind of memory."""
        pool_location = self._selectable_location(location, typename)
        if self._is_of_device(pool_location):
            return SUCCESS, CUmemoryPool(self._state.devices.at(pool_location.number).pool.handle)
        with self._state.lock:
            return SUCCESS, CUmemoryPool(
                self._state.memory.host_pools.default(pool_location).handle
            )

    @call
    def cuMemGetMemPool(
        self, location: Location | None, typename: int, /
    ) -> tuple[CUresult, CUmemoryPool]:
        """Return the pool in use for a location and a kind of memory."""
        pool_location = self._selectable_location(location, typename)
        return SUCCESS, CUmemoryPool(self._pool_in_use(pool_location).handle)

    @call
    def cuMemSetMemPool(
        self, location: Location | None, typename: int, pool: CUmemoryPool, /
    ) -> tuple[CUresult]:
        """Choose a pool for its location and kind of memory."""
        self._use_pool(self._selectable_location(location, typename), pool)
        return OK

    def _pool_in_use(self, location: PoolLocation) -> Pool:
        if self._is_of_device(location):
            return self._state.devices.at(location.number).pool_in_use
        with self._state.lock:
            return self._state.memory.host_pools.in_use(location)

    def _use_pool(self, location: PoolLocation, handle: CUmemoryPool) -> None:
        device, pool = self._state.memory.pool(handle)
        if pool.is_foreign:
            raise invalid_value("a pool of another process gives no memory here")
        if self._location_of_pool(device, pool) != location:
            raise invalid_value("a pool is used for the location and the kind of memory it is of")
        if device is not None:
            device.pool_in_use = pool
            return
        with self._state.lock:
            self._state.memory.host_pools.use(location, pool)

    def _allocate_of_host(self, pool: Pool, stream: Stream, nbytes: int) -> CUdeviceptr:
        """Allocate at once; 0 bytes give null, as for a device's pool."""
        if stream.capture is not None:
            assert pool.location is not None  # as of each pool of the host
            return CUdeviceptr(self._allocate_in(stream.capture, stream, nbytes, pool.location))
        if self._state.captures.active:
            self._state.captures.reject_if_implicit(stream)
            self._state.captures.reject_unsafe()
        if nbytes <= 0:
            return CUdeviceptr(0)
        piece = self._host_piece(pool, nbytes)
        if self._state.operations.accesses is not None:
            self._state.operations.accesses.allocated(stream, piece.address, nbytes)
        return CUdeviceptr(piece.address)

    def _host_piece(self, pool: Pool, nbytes: int) -> HostPiece:
        location = pool.location
        assert location is not None
        ordinal = location.number if location.kind == DEVICE else 0
        with self._state.lock:
            if not self._state.memory.host_pools.holds_more(pool, nbytes):
                raise CallError(
                    CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                    f"out of memory: {nbytes} bytes asked for of a pool of {pool.most} bytes",
                )
            try:
                piece = self._state.memory.host.allocate(
                    nbytes, 0, ordinal, managed=location.is_managed, pool=pool
                )
            except (OSError, ValueError, OverflowError) as error:
                raise CallError(
                    CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                    f"out of memory: {nbytes} bytes of host memory asked for ({error})",
                ) from error
            self._state.memory.host_pools.take(pool, piece.address, nbytes)
        return piece


def free_device_memory(driver: DriverState, address: int, stream: Stream | None = None) -> None:
    """Free memory, in the order of a stream if one is given."""
    device = driver.devices.holding(address)
    if device is None:
        raise invalid_value(f"cannot free {address:#x}: it is no device address")
    device.reject_if_broken()
    driver.captures.reject_unsafe()
    if driver.operations.accesses is not None:
        with device.lock:
            freed = _freeable(device, address)
        if stream is not None:
            driver.operations.accesses.freed(stream, address, freed.nbytes)
        elif freed.owner is Owner.GRAPH:
            driver.operations.finish_device(device)
        elif freed.owner is Owner.POOL:
            driver.operations.accesses.freed(None, address, freed.nbytes)
        else:
            driver.operations.finish_context_of(freed.context)
    timeline = driver.operations.timeline
    if stream is not None and timeline is not None:
        # Under "immediate" as well: earlier work of the stream may be queued, or run by another
        # thread.
        _free_in_order(driver.operations.freed or FreedMemory(timeline), device, address, stream)
        return
    if timeline is not None:
        with device.lock:
            piece = _freeable(device, address)
        if piece.owner is Owner.GRAPH:
            driver.operations.finish_device(device)
        elif piece.owner is not Owner.POOL:  # for that cuMemFree waits for nothing: measured
            driver.operations.finish_context_of(piece.context)
    with device.lock:
        piece = _freeable(device, address)
        if piece.graph is not None:
            piece.graph.free()
        else:
            device.free(piece)


def _free_in_order(freed: FreedMemory, device: DeviceState, address: int, stream: Stream) -> None:
    """Free memory when the stream executes the free."""
    with device.lock:
        piece = _freeable(device, address)
        if piece.graph is not None:
            piece.graph.free_later()
        else:
            device.drop(piece)
            if piece.pool is not None:
                piece.pool.count_use(address, 0)
    if piece.graph is not None:
        freed.free_of_graph(piece.graph, stream)
    else:
        freed.free(device, piece, stream)


def _freeable(device: DeviceState, address: int) -> Piece:
    """Return the allocation to free; the lock is held.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, if none begins there.
    """
    piece = device.pieces.get(address)
    if piece is None:
        raise invalid_value(f"cannot free {address:#x}: {device.why_not_free(address)}")
    if piece.owner is Owner.OPENED:
        raise invalid_value(
            f"cannot free {address:#x}: it is another process's; cuIpcCloseMemHandle closes it"
        )
    return piece


def _is_managed(pool: Pool) -> bool:
    return pool.location is not None and pool.location.is_managed


def free_of_host(driver: DriverState, address: int, stream: Stream | None = None) -> None:
    """Free memory of a pool or a graph, in the order of a stream if one is given.

    Without a stream that of a pool is freed without a wait. The same holds for memory of a device's
    pool: measured.
    """
    driver.captures.reject_unsafe()
    host_piece = driver.memory.host.find(address)
    if host_piece is not None and host_piece.graph is not None and host_piece.address == address:
        assert isinstance(host_piece.graph, GraphAllocation)
        _free_of_graph(driver, host_piece.graph, stream)
        return
    with driver.lock:
        piece = driver.memory.host.of_pool(address)
        if piece is None:
            raise invalid_value(
                f"cannot free {address:#x}: it was freed before, or lies inside an allocation"
            )
        driver.memory.host.leave(piece)
        if piece.pool is not None:
            piece.pool.count_use(address, 0)
    if driver.operations.accesses is not None:
        driver.operations.accesses.freed(stream, address, piece.nbytes)
    timeline = driver.operations.timeline
    if stream is None or timeline is None:
        _leave_pool(driver, piece)
    else:
        leaving = partial(_leave_pool, driver, piece)
        timeline.submit(stream, NodeKind.FREE, leaving, always=True)


def _free_of_graph(driver: DriverState, memory: GraphAllocation, stream: Stream | None) -> None:
    """Free memory of the host that a launch of a graph allocated."""
    if stream is None and (
        driver.operations.accesses is not None or driver.operations.timeline is not None
    ):
        driver.operations.finish_device(memory.device)
    elif stream is not None and driver.operations.accesses is not None:
        driver.operations.accesses.freed(stream, memory.piece.address, memory.nbytes)
    timeline = driver.operations.timeline
    if stream is None or timeline is None:
        memory.free()
        return
    memory.free_later()
    timeline.submit(stream, NodeKind.FREE, memory.freed, always=True)


def _leave_pool(driver: DriverState, piece: HostPiece) -> None:
    with driver.lock:
        driver.memory.host.leave_for_good(piece)
        if piece.pool is not None:
            driver.memory.host_pools.give(piece.pool, piece.address)
