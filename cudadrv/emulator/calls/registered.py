"""Page-locking memory that is there already, and where memory begins.

CUDA Driver API: "Memory Management", cuMemHostRegister. Devices reach host memory at its own
address (unified addressing).
"""

from __future__ import annotations

from typing import Final

from ...driver._api import CUdeviceptr, CUresult
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from .call import call
from .memory import MemoryCalls

_FLAGS: Final = 15  # CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP, _IOMEMORY, _READ_ONLY


class RegistrationCalls(MemoryCalls):
    """Page-locking memory that is there already, and where memory begins."""

    @call(1)
    def cuMemAllocHost(self, bytesize: int, /) -> tuple[CUresult, int]:
        """Pinned host memory."""
        return self.cuMemHostAlloc(bytesize, 0)

    @call()
    def cuMemHostRegister(self, p: int, bytesize: int, flags: int, /) -> tuple[CUresult]:
        """Page-lock memory of the caller's, which stays his."""
        context = self._current()
        self._refuse_unsafe()
        if flags & ~_FLAGS or not p or bytesize <= 0:
            raise invalid_value(f"cannot page-lock {bytesize} bytes at {p:#x} with flags {flags}")
        with self._lock:
            piece = self._host.register(p, bytesize, context.handle, context.device.ordinal, flags)
        if piece is None:
            raise Refusal(
                CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                f"some of the {bytesize} bytes at {p:#x} are page-locked already",
            )
        if self._accesses is not None:
            self._accesses.born(p)
        return OK

    @call()
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
                raise Refusal(
                    CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
                    f"no memory that cuMemHostRegister was given begins at {p:#x}",
                )
        return OK

    @call(1)
    def cuMemHostGetDevicePointer(self, p: int, flags: int, /) -> tuple[CUresult, CUdeviceptr]:
        """Where a device finds page-locked memory: at its own address."""
        self._current()
        if flags or self._host.find(p) is None:
            raise invalid_value(f"{p:#x} is no page-locked memory")
        return SUCCESS, CUdeviceptr(p)

    @call(1)
    def cuMemHostGetFlags(self, p: int, /) -> tuple[CUresult, int]:
        """The flags that it was allocated or registered with; all of it is mapped."""
        self._current()
        piece = self._host.find(p)
        if piece is None or piece.managed:
            raise invalid_value(f"{p:#x} is no page-locked memory")
        return SUCCESS, piece.flags | 2  # CU_MEMHOSTALLOC_DEVICEMAP

    @call(2)
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
        raise Refusal(
            CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: {address:#x} is no memory"
        )
