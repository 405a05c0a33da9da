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
from .fill import FillCalls

_LEGACY: Final = CUstream(LEGACY_HANDLE)


class BlockingCalls(BatchCopyCalls, FillCalls):
    """Copies and fills that return when they are done."""

    @call()
    def cuMemcpyHtoD(
        self, dst_device: CUdeviceptr, src_host: int, byte_count: int, /
    ) -> tuple[CUresult]:
        """Host to device."""
        return self._blocked(
            self.cuMemcpyHtoDAsync(dst_device, src_host, byte_count, _LEGACY), byte_count
        )

    @call()
    def cuMemcpyDtoH(
        self, dst_host: int, src_device: CUdeviceptr, byte_count: int, /
    ) -> tuple[CUresult]:
        """Device to host."""
        return self._blocked(
            self.cuMemcpyDtoHAsync(dst_host, src_device, byte_count, _LEGACY), byte_count
        )

    @call()
    def cuMemcpyDtoD(
        self, dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: int, /
    ) -> tuple[CUresult]:
        """Device to device; the host does not wait for it."""
        return self.cuMemcpyDtoDAsync(dst_device, src_device, byte_count, _LEGACY)

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
        return self.cuMemcpyPeerAsync(
            dst_device, dst_context, src_device, src_context, byte_count, _LEGACY
        )

    @call()
    def cuMemcpy3D(self, copy: CUDA_MEMCPY3D | None, /) -> tuple[CUresult]:
        """A box of bytes."""
        return self._blocked(self.cuMemcpy3DAsync(copy, _LEGACY), 1)

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
        return self._blocked(self.cuMemcpyAsync(dst, src, byte_count, _LEGACY), byte_count)

    @call()
    def cuMemsetD8(self, dst_device: CUdeviceptr, uc: int, n: int, /) -> tuple[CUresult]:
        """Set `n` bytes; the host does not wait for device memory."""
        return self.cuMemsetD8Async(dst_device, uc, n, _LEGACY)

    @call()
    def cuMemsetD16(self, dst_device: CUdeviceptr, us: int, n: int, /) -> tuple[CUresult]:
        """Set `n` 16-bit values."""
        return self.cuMemsetD16Async(dst_device, us, n, _LEGACY)

    @call()
    def cuMemsetD32(self, dst_device: CUdeviceptr, ui: int, n: int, /) -> tuple[CUresult]:
        """Set `n` 32-bit values."""
        return self.cuMemsetD32Async(dst_device, ui, n, _LEGACY)

    def _blocked(self, queued: tuple[CUresult], nbytes: int) -> tuple[CUresult]:
        """Wait for what was queued, if it was."""
        if queued[0] or nbytes <= 0:
            return queued
        self._wait_for_stream(self._stream(_LEGACY))
        return OK
