"""Copies and fills that return when they are done, and those that find out what they copy.

CUDA Driver API: "Memory Management", "API synchronization behavior". They run in the legacy stream.
"""

from __future__ import annotations

from typing import Final

from ...driver._api import CUDA_MEMCPY3D, CUcontext, CUdeviceptr, CUresult, CUstream
from ..refusal import OK
from ..streams import LEGACY_HANDLE
from .batch_copy import BatchCopyCalls
from .call import call
from .fill import FillCalls, Rows

_LEGACY: Final = CUstream(LEGACY_HANDLE)


class BlockingCalls(BatchCopyCalls, FillCalls):
    """Copies and fills that return when they are done."""

    @call()
    def cuMemcpyHtoD(
        self, dst_device: CUdeviceptr, src_host: int, byte_count: int, /
    ) -> tuple[CUresult]:
        """Host to device."""
        self._refuse_by_context(byte_count, int(dst_device))
        self._copy_and_wait(int(dst_device), src_host, byte_count, from_host=True)
        return OK

    @call()
    def cuMemcpyDtoH(
        self, dst_host: int, src_device: CUdeviceptr, byte_count: int, /
    ) -> tuple[CUresult]:
        """Device to host."""
        self._refuse_by_context(byte_count, int(src_device))
        self._copy_and_wait(dst_host, int(src_device), byte_count, to_host=True)
        return OK

    @call()
    def cuMemcpyDtoD(
        self, dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: int, /
    ) -> tuple[CUresult]:
        """Device to device; the host does not wait for it."""
        self._refuse_by_context(byte_count, int(dst_device), int(src_device))
        self._copy(int(dst_device), int(src_device), byte_count, _LEGACY)
        return OK

    @call()
    def cuMemcpyPeer(
        self,
        dst_device: CUdeviceptr,
        dst_context: CUcontext,
        src_device: CUdeviceptr,
        src_context: CUcontext,
        byte_count: int,
        /,
    ) -> tuple[CUresult]:
        """Between contexts; the host does not wait for it."""
        self._refuse_dead(dst_context, src_context)
        self._copy(int(dst_device), int(src_device), byte_count, _LEGACY)
        return OK

    @call()
    def cuMemcpy3D(self, copy: CUDA_MEMCPY3D | None, /) -> tuple[CUresult]:
        """A box of bytes."""
        self._queued.refuse_to_wait(self._stream(_LEGACY))
        self._submit_box(copy, _LEGACY)
        self._wait_for_stream(self._stream(_LEGACY))
        return OK

    @call()
    def cuMemcpyAsync(
        self, dst: CUdeviceptr, src: CUdeviceptr, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """From wherever the one address lies to wherever the other does."""
        self._copy(int(dst), int(src), byte_count, h_stream, to_host=True, from_host=True)
        return OK

    @call()
    def cuMemcpy(self, dst: CUdeviceptr, src: CUdeviceptr, byte_count: int, /) -> tuple[CUresult]:
        """The same, and the host waits for it."""
        self._copy_and_wait(int(dst), int(src), byte_count, to_host=True, from_host=True)
        return OK

    @call()
    def cuMemsetD8(self, dst_device: CUdeviceptr, uc: int, n: int, /) -> tuple[CUresult]:
        """Set `n` bytes; the host does not wait for device memory."""
        self._fill(int(dst_device), uc, 1, Rows(n), self._stream(_LEGACY))
        return OK

    @call()
    def cuMemsetD16(self, dst_device: CUdeviceptr, us: int, n: int, /) -> tuple[CUresult]:
        """Set `n` 16-bit values."""
        self._fill(int(dst_device), us, 2, Rows(n), self._stream(_LEGACY))
        return OK

    @call()
    def cuMemsetD32(self, dst_device: CUdeviceptr, ui: int, n: int, /) -> tuple[CUresult]:
        """Set `n` 32-bit values."""
        self._fill(int(dst_device), ui, 4, Rows(n), self._stream(_LEGACY))
        return OK

    def _copy_and_wait(
        self, dst: int, src: int, nbytes: int, *, to_host: bool = False, from_host: bool = False
    ) -> None:
        """Copy in the legacy stream, and wait for that."""
        if nbytes > 0:
            self._queued.refuse_to_wait(self._stream(_LEGACY))
        self._copy(dst, src, nbytes, _LEGACY, to_host=to_host, from_host=from_host)
        if nbytes > 0:
            self._wait_for_stream(self._stream(_LEGACY))
