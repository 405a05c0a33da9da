"""Device memory, pinned and managed memory, and memory that is page-locked afterwards.

CUDA Driver API: "Memory Management". Devices reach host memory at its own address (unified
addressing).
"""

from __future__ import annotations

from typing import Final

from ...driver._api import CUdeviceptr, CUresult
from ..call_error import OK, SUCCESS, CallError, invalid_value
from ..call_rules import CallRules
from ..device_state import Owner
from .call import call
from .stream_ordered_memory import free_device_memory, free_of_host_pool

_HOST_FLAGS: Final = 7
_ATTACH: Final = (1, 2)  # globally, or to the host; CU_MEM_ATTACH_GLOBAL, _HOST
_REGISTER_FLAGS: Final = 15  # CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP, _IOMEMORY, _READ_ONLY


class MemoryCalls(CallRules):
    """Device memory, pinned and managed memory."""

    @call
    def cuMemGetInfo(self) -> tuple[CUresult, int, int]:
        """Free and total bytes; what a pool reserves is not free."""
        device = self._current().device
        with device.lock:
            return SUCCESS, device.account.free_bytes, device.profile.total_memory

    @call
    def cuMemAlloc(self, bytesize: int, /) -> tuple[CUresult, CUdeviceptr]:
        """Memory of the current context."""
        context = self._current()
        self._refuse_unsafe()
        if bytesize <= 0:
            raise invalid_value("cuMemAlloc was asked for no bytes")
        with context.device.lock:
            piece = context.device.allocate(bytesize, Owner.PLAIN, context=context.handle)
        return SUCCESS, CUdeviceptr(piece.address)

    @call
    def cuMemFree(self, dptr: CUdeviceptr, /) -> tuple[CUresult]:
        """Free what cuMemAlloc, cuMemAllocManaged or a pool gave; null is fine."""
        address = int(dptr)
        if address:
            self._free_anywhere(address)
        elif self._thread.stack:
            self._current()
        return OK

    def _free_anywhere(self, address: int) -> None:
        host = self._host.find(address)
        if host is not None and host.pool is not None:
            free_of_host_pool(self, address)
            return
        if host is not None and host.managed and host.address == address:
            self._finish_context_of(host.context)
        with self._lock:
            managed = self._host.free(address, managed=True)
        if not managed:
            free_device_memory(self, address)

    @call
    def cuMemAllocManaged(self, bytesize: int, flags: int, /) -> tuple[CUresult, CUdeviceptr]:
        """Memory of host and devices alike, at one address."""
        if flags not in _ATTACH:
            raise invalid_value(f"invalid attachment flags of managed memory {flags:#x}")
        if bytesize <= 0:
            raise invalid_value("cuMemAllocManaged was asked for no bytes")
        return SUCCESS, CUdeviceptr(self._allocate_host(bytesize, managed=True))

    @call
    def cuMemHostAlloc(self, bytesize: int, flags: int, /) -> tuple[CUresult, int]:
        """Pinned host memory, which kernels reach at its address; no bytes give null."""
        if flags & ~_HOST_FLAGS:
            raise invalid_value(f"invalid flags of host memory {flags:#x}")
        return SUCCESS, self._allocate_host(bytesize, flags=flags) if bytesize > 0 else 0

    def _allocate_host(self, nbytes: int, *, managed: bool = False, flags: int = 0) -> int:
        context = self._current()
        self._refuse_unsafe()
        try:
            with self._lock:
                piece = self._host.allocate(
                    nbytes, context.handle, context.device.ordinal, managed=managed, flags=flags
                )
            if self._accesses is not None:
                self._accesses.born(piece.address)
        except (OSError, ValueError, OverflowError) as error:
            raise CallError(
                CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                f"out of memory: {nbytes} bytes of host memory asked for ({error})",
            ) from error
        return piece.address

    @call
    def cuMemFreeHost(self, p: int, /) -> tuple[CUresult]:
        """Free pinned host memory; null is fine."""
        if not p:
            return OK
        if self._thread.stack:
            self._usable(self._top())
        self._refuse_unsafe()
        host = self._host.find(p)
        if host is not None and host.address == p and not host.managed:
            self._finish_context_of(host.context)
        with self._lock:
            if not self._host.free(p):
                raise invalid_value(f"cannot free {p:#x}: no pinned memory starts there")
        return OK

    @call
    def cuMemAllocHost(self, bytesize: int, /) -> tuple[CUresult, int]:
        """Pinned host memory."""
        return self.cuMemHostAlloc(bytesize, 0)

    @call
    def cuMemHostRegister(self, p: int, bytesize: int, flags: int, /) -> tuple[CUresult]:
        """Page-lock memory of the caller's, which stays his."""
        context = self._current()
        self._refuse_unsafe()
        if flags & ~_REGISTER_FLAGS or not p or bytesize <= 0:
            raise invalid_value(f"cannot page-lock {bytesize} bytes at {p:#x} with flags {flags}")
        with self._lock:
            piece = self._host.register(p, bytesize, context.handle, context.device.ordinal, flags)
        if piece is None:
            raise CallError(
                CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                f"some of the {bytesize} bytes at {p:#x} are page-locked already",
            )
        if self._accesses is not None:
            self._accesses.born(p)
        return OK

    @call
    def cuMemHostUnregister(self, p: int, /) -> tuple[CUresult]:
        """Undo that, when the work of its context is done."""
        self._current()
        self._refuse_unsafe()
        piece = self._host.find(p)
        if piece is not None and piece.is_registered:
            if piece.address != p:
                raise invalid_value(
                    f"{p:#x} lies within page-locked memory that begins at {piece.address:#x}"
                )
            self._finish_context_of(piece.context)
        with self._lock:
            if not self._host.free(p, registered=True):
                raise CallError(
                    CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
                    f"no memory that cuMemHostRegister was given begins at {p:#x}",
                )
        return OK

    @call
    def cuMemHostGetDevicePointer(self, p: int, flags: int, /) -> tuple[CUresult, CUdeviceptr]:
        """Where a device finds page-locked memory: at its own address."""
        self._current()
        if flags or self._host.find(p) is None:
            raise invalid_value(f"{p:#x} is no page-locked memory")
        return SUCCESS, CUdeviceptr(p)

    @call
    def cuMemHostGetFlags(self, p: int, /) -> tuple[CUresult, int]:
        """The flags that it was allocated or registered with; all of it is mapped."""
        self._current()
        piece = self._host.find(p)
        if piece is None or piece.managed:
            raise invalid_value(f"{p:#x} is no page-locked memory")
        return SUCCESS, piece.flags | 2  # CU_MEMHOSTALLOC_DEVICEMAP

    @call
    def cuMemGetAddressRange(self, dptr: CUdeviceptr, /) -> tuple[CUresult, CUdeviceptr, int]:
        """Where the allocation that holds an address begins, and its size."""
        self._current()
        address = int(dptr)
        host = self._host.find(address)
        if host is not None:
            return SUCCESS, CUdeviceptr(host.address), host.nbytes
        device = self._device_of(address)
        if device is not None:
            with device.lock:
                found = device.memory.find(address)
            if found is not None:
                return SUCCESS, CUdeviceptr(found.address), found.nbytes
        raise CallError(
            CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: {address:#x} is no memory"
        )
