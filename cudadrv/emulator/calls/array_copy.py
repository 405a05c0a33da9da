"""Copies of bytes between arrays of one dimension and memory.

CUDA Driver API: "Memory Management". Offsets are bytes. Copies without a stream run in the default
stream; those with memory of the host wait.
"""

from __future__ import annotations

from ...driver._api import CUDA_MEMCPY3D, CUarray, CUdeviceptr, CUmemorytype, CUresult, CUstream
from ..call_error import OK, invalid_value
from .call import DriverCalls, call
from .memory_copy import submit_box


class ArrayCopyCalls(DriverCalls):
    """Copies from and to arrays."""

    @call
    def cuMemcpyHtoA(
        self, dst_array: CUarray, dst_offset: int, src_host: int, byte_count: int, /
    ) -> tuple[CUresult]:
        """Copy from host memory to an array."""
        copy = CUDA_MEMCPY3D()
        self._set_target(copy, dst_array, dst_offset)
        _set_host_source(copy, src_host)
        self._copy_row(copy, byte_count, waits=True)
        return OK

    @call
    def cuMemcpyHtoAAsync(
        self,
        dst_array: CUarray,
        dst_offset: int,
        src_host: int,
        byte_count: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Same in the order of a stream."""
        copy = CUDA_MEMCPY3D()
        self._set_target(copy, dst_array, dst_offset)
        _set_host_source(copy, src_host)
        self._copy_row(copy, byte_count, h_stream)
        return OK

    @call
    def cuMemcpyAtoH(
        self, dst_host: int, src_array: CUarray, src_offset: int, byte_count: int, /
    ) -> tuple[CUresult]:
        """Copy from an array to host memory."""
        copy = CUDA_MEMCPY3D()
        self._set_source(copy, src_array, src_offset)
        _set_host_target(copy, dst_host)
        self._copy_row(copy, byte_count, waits=True)
        return OK

    @call
    def cuMemcpyAtoHAsync(
        self,
        dst_host: int,
        src_array: CUarray,
        src_offset: int,
        byte_count: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Same in the order of a stream."""
        copy = CUDA_MEMCPY3D()
        self._set_source(copy, src_array, src_offset)
        _set_host_target(copy, dst_host)
        self._copy_row(copy, byte_count, h_stream)
        return OK

    @call
    def cuMemcpyDtoA(
        self, dst_array: CUarray, dst_offset: int, src_device: CUdeviceptr, byte_count: int, /
    ) -> tuple[CUresult]:
        """Copy from device memory to an array; the host does not wait."""
        copy = CUDA_MEMCPY3D()
        self._set_target(copy, dst_array, dst_offset)
        copy.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_DEVICE
        copy.srcDevice = src_device
        self._copy_row(copy, byte_count)
        return OK

    @call
    def cuMemcpyAtoD(
        self, dst_device: CUdeviceptr, src_array: CUarray, src_offset: int, byte_count: int, /
    ) -> tuple[CUresult]:
        """Copy from an array to device memory; the host does not wait."""
        copy = CUDA_MEMCPY3D()
        self._set_source(copy, src_array, src_offset)
        copy.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_DEVICE
        copy.dstDevice = dst_device
        self._copy_row(copy, byte_count)
        return OK

    @call
    def cuMemcpyAtoA(
        self,
        dst_array: CUarray,
        dst_offset: int,
        src_array: CUarray,
        src_offset: int,
        byte_count: int,
        /,
    ) -> tuple[CUresult]:
        """Copy from one array to another; the host does not wait."""
        copy = CUDA_MEMCPY3D()
        self._set_target(copy, dst_array, dst_offset)
        self._set_source(copy, src_array, src_offset)
        self._copy_row(copy, byte_count)
        return OK

    def _set_source(self, copy: CUDA_MEMCPY3D, array: CUarray, offset: int) -> None:
        self._check_line(array)
        copy.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_ARRAY
        copy.srcArray, copy.srcXInBytes = array, offset

    def _set_target(self, copy: CUDA_MEMCPY3D, array: CUarray, offset: int) -> None:
        self._check_line(array)
        copy.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_ARRAY
        copy.dstArray, copy.dstXInBytes = array, offset

    def _check_line(self, array: CUarray) -> None:
        """Reject an array of several rows: no offset in bytes has a meaning there."""
        layout = self._state.handles.array(array).layout
        if layout.height or layout.depth:
            raise invalid_value(
                f"an array of {layout.width} by {layout.height} by {layout.depth} elements: "
                "only one of one dimension is copied by bytes"
            )

    def _copy_row(
        self,
        copy: CUDA_MEMCPY3D,
        nbytes: int,
        h_stream: CUstream | None = None,
        *,
        waits: bool = False,
    ) -> None:
        stream = self._state.thread.default_stream if h_stream is None else h_stream
        copy.WidthInBytes, copy.Height, copy.Depth = nbytes, 1, 1
        if waits:
            self._state.operations.queue.reject_to_wait(self._state.handles.stream(stream))
        submit_box(self._state, copy, stream)
        if waits:
            self._state.operations.wait_for_stream(self._state.handles.stream(stream))


def _set_host_source(copy: CUDA_MEMCPY3D, address: int) -> None:
    copy.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_HOST
    copy.srcHost = address


def _set_host_target(copy: CUDA_MEMCPY3D, address: int) -> None:
    copy.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_HOST
    copy.dstHost = address
