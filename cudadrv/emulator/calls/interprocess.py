"""Memory, pools and events of other processes of the host.

CUDA Driver API: cuIpcGetMemHandle and related functions; "Stream Ordered Memory Allocator",
"Interprocess communication support". Memory shared by several processes lies in one file, so each
sees the others' writes. Atomic operations are atomic among the kernels of one process. A handle is
64 bytes that identify memory or an event of an emulator for another process.
"""

from __future__ import annotations

import os
import struct
from typing import Final, NamedTuple, Self

from ...driver._api import (
    CUdeviceptr,
    CUevent,
    CUipcEventHandle,
    CUipcMemHandle,
    CUmemAllocationHandleType,
    CUmemoryPool,
    CUmemPoolPtrExportData,
    CUresult,
    of_opaque_bytes,
    opaque_bytes,
)
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value, not_supported
from ..device_state import DeviceState, Owner, Piece
from ..events import Event
from ..host_memory import HostPiece
from ..pools import HOST_NUMA, Pool, PoolLocation
from ..shared_file import CAN_SHARE, DESCRIPTORS, HOST_MEMORY, SharedFile, new_shared_file
from .call import DriverCalls, call
from .event import INTERPROCESS

_LAZY_PEERS: Final = 1
_UNTIMED: Final = 2
_MAGIC: Final = b"cudadrv1"
_OF_PROCESS: Final = struct.Struct("<8sII16s16sQQ")
_IN_POOL: Final = struct.Struct("<8s16sQQ24x")


class ProcessHandle(NamedTuple):
    """A file of a running process: CUipcMemHandle, CUipcEventHandle.

    Attributes:
        process: the process that made it.
        number: the file's descriptor there.
        token: the token of the file's name.
        device: the UUID of the device.
        nbytes: the size of the memory.
        offset: the memory's offset in the file.
    """

    process: int
    number: int
    token: bytes
    device: bytes
    nbytes: int = 0
    offset: int = 0

    @property
    def packed(self) -> bytes:
        """Return the handle's bytes."""
        values = (self.process, self.number, self.token, self.device, self.nbytes, self.offset)
        return _OF_PROCESS.pack(_MAGIC, *values)

    @classmethod
    def read(cls, packed: bytes) -> Self | None:
        """Read a handle; None if the bytes are none."""
        magic, *values = _OF_PROCESS.unpack(packed)
        return cls(*values) if magic == _MAGIC else None

    def opened(self, kind: str) -> SharedFile | None:
        """Open the file; None if that process has ended or closed it."""
        return SharedFile.of_process(self.process, self.number, kind, self.token)


class PoolPointer(NamedTuple):
    """Memory of a pool whose file another process has opened: CUmemPoolPtrExportData.

    Attributes:
        token: the token in the name of the pool's file.
        offset: its offset in the file.
        nbytes: its size.
    """

    token: bytes
    offset: int
    nbytes: int

    @property
    def packed(self) -> bytes:
        """Return the pointer's bytes."""
        return _IN_POOL.pack(_MAGIC, self.token, self.offset, self.nbytes)

    @classmethod
    def read(cls, packed: bytes) -> Self | None:
        """Read a pointer; None if the bytes are none."""
        magic, *values = _IN_POOL.unpack(packed)
        return cls(*values) if magic == _MAGIC else None


class InterprocessCalls(DriverCalls):
    """Memory, pools and events of other processes."""

    @call
    def cuIpcGetMemHandle(self, dptr: CUdeviceptr, /) -> tuple[CUresult, CUipcMemHandle]:
        """Return a handle of the allocation of cuMemAlloc that holds an address."""
        device, piece = self._piece_at(int(dptr))
        if piece.owner is not Owner.PLAIN:
            raise invalid_value(f"{int(dptr):#x} is no memory of cuMemAlloc")
        if not CAN_SHARE:
            raise not_supported("the emulator shares memory between processes on Linux alone")
        self._state.operations.finish_context_of(piece.context)
        try:
            with device.lock:
                file, offset = device.share(piece)
        except OSError as error:
            raise CallError(
                CUresult.CUDA_ERROR_OPERATING_SYSTEM, f"sharing {piece.nbytes} bytes: {error}"
            ) from error
        if device.memory.written is not None:  # from now on others write too
            device.memory.mark_written(piece.address, piece.nbytes)
        handle = ProcessHandle(
            os.getpid(), file.number, file.name.token, device.uuid, piece.nbytes, offset
        )
        return SUCCESS, of_opaque_bytes(CUipcMemHandle, handle.packed)

    @call
    def cuIpcOpenMemHandle(
        self, handle: CUipcMemHandle, flags: int, /
    ) -> tuple[CUresult, CUdeviceptr]:
        """Open the allocation of another process by its handle; again at the same address.

        Kernels of the current context reach it also if it is memory of another device.
        """
        context = self._state.handles.current()
        if flags != _LAZY_PEERS:
            raise invalid_value(f"cuIpcOpenMemHandle takes flags {_LAZY_PEERS}, not {flags}")
        self._state.captures.reject_unsafe()
        packed = opaque_bytes(handle)
        exported = self._of_other_process(packed)
        device = self._state.devices.named(exported.device)
        if device is not context.device and not device.can_be_reached_by(context.device):
            raise CallError(
                CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
                f"the memory is of device {device.ordinal}, which device "
                f"{context.device.ordinal} cannot access",
            )
        with device.lock:
            key = (context.handle, packed)
            address, count = device.opened.get(key, (0, 0))
            if not count:
                file = self._file_of(exported, "memory")
                try:
                    address = device.open(
                        file, exported.offset, exported.nbytes, Owner.OPENED, context=context.handle
                    ).address
                finally:
                    file.close()
            device.opened[key] = address, count + 1
        return SUCCESS, CUdeviceptr(address)

    @call
    def cuIpcCloseMemHandle(self, dptr: CUdeviceptr, /) -> tuple[CUresult]:
        """Close memory of another process, after as many closes as opens."""
        device, piece = self._piece_at(int(dptr))
        if piece.owner is not Owner.OPENED or piece.address != int(dptr):
            raise invalid_value(f"{int(dptr):#x} was not given by cuIpcOpenMemHandle")
        self._state.captures.reject_unsafe()
        self._state.operations.finish_context_of(piece.context)
        with device.lock:
            for key, (address, count) in device.opened.copy().items():
                if address == piece.address and count > 1:
                    device.opened[key] = address, count - 1
                elif address == piece.address:
                    device.free(piece)
        return OK

    @call
    def cuIpcGetEventHandle(self, event: CUevent, /) -> tuple[CUresult, CUipcEventHandle]:
        """Return a handle of an event that was made for several processes."""
        state = self._state.handles.event(event)
        if not state.flags & INTERPROCESS:
            raise invalid_handle("the event was not made with CU_EVENT_INTERPROCESS")
        if self._state.handles.current() is not state.context:
            # Here the driver of CUDA 13.0 ends the process.
            reason = "the event is of another context than the current one"
            raise CallError(CUresult.CUDA_ERROR_INVALID_CONTEXT, reason)
        device = state.context.device
        with self._state.lock:
            if state.file is None:
                state.file = new_shared_file("event", device.uuid, 0)
            file = state.file
        state.is_shared = True
        self._state.operations.let_others_see(state)
        handle = ProcessHandle(os.getpid(), file.number, file.name.token, device.uuid)
        return SUCCESS, of_opaque_bytes(CUipcEventHandle, handle.packed)

    @call
    def cuIpcOpenEventHandle(self, handle: CUipcEventHandle, /) -> tuple[CUresult, CUevent]:
        """Open an event of another process: work before its records is done."""
        context = self._state.handles.current()
        exported = self._of_other_process(opaque_bytes(handle))
        if exported.device != context.device.uuid:
            raise not_supported("the emulator opens events of the current context's device")
        self._file_of(exported, "event").close()
        event = Event(self._state.handles.new(), context, INTERPROCESS | _UNTIMED, is_shared=True)
        self._state.handles.events[event.handle] = event
        return SUCCESS, CUevent(event.handle)

    @call
    def cuMemPoolExportToShareableHandle(
        self, pool: CUmemoryPool, handle_type: CUmemAllocationHandleType, flags: int, /
    ) -> tuple[CUresult, int]:
        """Return a descriptor of the pool's file, which the caller owns."""
        _, state = self._state.memory.pool(pool)
        if flags or int(handle_type) != DESCRIPTORS or state.file is None or state.is_foreign:
            raise invalid_value("the pool was not made to be shared by file descriptors")
        return SUCCESS, state.file.duplicate()

    @call
    def cuMemPoolImportFromShareableHandle(
        self, handle: int, handle_type: CUmemAllocationHandleType, flags: int, /
    ) -> tuple[CUresult, CUmemoryPool]:
        """Open a pool of another process by a descriptor, which the caller still owns."""
        if flags or int(handle_type) != DESCRIPTORS:
            raise invalid_value("a pool is imported by a POSIX file descriptor")
        file = SharedFile.of_descriptor(handle, "pool")
        if file is None:
            raise invalid_value(f"descriptor {handle} is of no memory pool")
        if file.name.device == HOST_MEMORY:
            with self._state.lock:
                pool = self._state.memory.host_pools.create(
                    PoolLocation(HOST_NUMA), file=file, is_foreign=True
                )
            return SUCCESS, CUmemoryPool(pool.handle)
        device = self._state.devices.named(file.name.device)
        pool = Pool(self._state.handles.new(), file=file, is_foreign=True)
        with device.lock:
            device.account.pools[pool.handle] = pool
        return SUCCESS, CUmemoryPool(pool.handle)

    @call
    def cuMemPoolExportPointer(
        self, ptr: CUdeviceptr, /
    ) -> tuple[CUresult, CUmemPoolPtrExportData]:
        """Return data that identify memory of a pool to processes that imported the pool."""
        piece: HostPiece | Piece | None = self._state.memory.host.find(int(ptr))
        device = None
        if piece is None:
            device, piece = self._piece_at(int(ptr))
        file = None if piece.pool is None or piece.pool.is_foreign else piece.pool.file
        if file is None or piece.address != int(ptr):
            raise invalid_value(f"{int(ptr):#x} begins no memory of a pool that is shared")
        # Others write from now on.
        if isinstance(piece, HostPiece):
            if piece.written is not None:
                piece.written.mark(0, piece.nbytes)
            offset = piece.offset
        else:
            assert device is not None
            device.memory.mark_written(piece.address, piece.nbytes)
            offset = piece.address - device.memory.base
        exported = PoolPointer(file.name.token, offset, piece.nbytes)
        return SUCCESS, of_opaque_bytes(CUmemPoolPtrExportData, exported.packed)

    @call
    def cuMemPoolImportPointer(
        self, pool: CUmemoryPool, share_data: CUmemPoolPtrExportData | None, /
    ) -> tuple[CUresult, CUdeviceptr]:
        """Open memory of an imported pool; it is freed like memory of any pool."""
        device, state = self._state.memory.pool(pool)
        exported = None if share_data is None else PoolPointer.read(opaque_bytes(share_data))
        file = state.file
        if (
            exported is None
            or file is None
            or not state.is_foreign
            or exported.token != file.name.token
        ):
            raise invalid_value("that names no memory of the pool, or the pool was not imported")
        if device is None:
            return SUCCESS, CUdeviceptr(self._open_host_memory(state, file, exported))
        with device.lock:
            piece = device.open(file, exported.offset, exported.nbytes, Owner.POOL, pool=state)
        return SUCCESS, CUdeviceptr(piece.address)

    def _open_host_memory(self, pool: Pool, file: SharedFile, exported: PoolPointer) -> int:
        """Map page-locked memory of another process's pool; return its address here."""
        if exported.offset + exported.nbytes > file.nbytes:
            raise invalid_value("the pool's file has fewer bytes than that memory")
        with self._state.lock:
            try:
                piece = self._state.memory.host.open(pool, exported.offset, exported.nbytes)
            except (OSError, ValueError, OverflowError) as error:
                raise CallError(
                    CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                    f"no addresses for {exported.nbytes} bytes of another process ({error})",
                ) from error
            self._state.memory.host_pools.open(pool, piece.address, exported.nbytes)
        if self._state.operations.accesses is not None:
            self._state.operations.accesses.born(piece.address)
        return piece.address

    def _piece_at(self, address: int) -> tuple[DeviceState, Piece]:
        """Return the allocation that holds an address.

        Raises:
            CallError: none does.
        """
        device = self._state.devices.holding(address)
        if device is not None:
            with device.lock:
                allocation = device.memory.find(address)
                piece = None if allocation is None else device.pieces.get(allocation.address)
            if piece is not None:
                return device, piece
        raise invalid_value(f"{address:#x} is in no allocation")

    @staticmethod
    def _of_other_process(packed: bytes) -> ProcessHandle:
        """Read a handle of another process.

        Raises:
            CallError: it is none, or of this process.
        """
        handle = ProcessHandle.read(packed)
        if handle is None:
            raise invalid_value("that is no handle of an emulator")
        if handle.process == os.getpid():
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, "the handle is of this very process"
            )
        return handle

    @staticmethod
    def _file_of(handle: ProcessHandle, kind: str) -> SharedFile:
        """Open the file of a handle.

        Raises:
            CallError: its process has closed it, or has ended.
        """
        file = handle.opened(kind)
        if file is None:
            raise invalid_handle(f"process {handle.process} has closed it, or has ended")
        return file
