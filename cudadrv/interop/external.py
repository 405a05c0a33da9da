"""`ExternalMemory` and `ExternalSemaphore`: of other interfaces, such as Vulkan.

CUDA Driver API, "External Resource Interoperability".
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import (
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUdeviceptr,
    CUexternalMemory,
    CUexternalMemoryHandleType,
    CUexternalSemaphore,
    CUexternalSemaphoreHandleType as _SemaphoreType,
)
from ..driver.context import BaseContext, require_context
from ..driver.context_handle import ChildHandle
from ..driver.driver_selection import failure
from ..driver.handle import Closeable, check
from ..driver.stream import BaseStream, require_stream
from ..driver.stream_handle import StreamHandle
from ..errors import ArgumentValueError, StreamCaptureUnsupportedError, WrongDeviceError
from ..memory.buffer import DeviceBuffer, first_stream, over
from ..memory.order import Memory
from ..memory.pinned import wait_for_contexts

_OPAQUE: Final = CUexternalMemoryHandleType.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
_BINARY: Final = _SemaphoreType.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD
_TIMELINE: Final = _SemaphoreType.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
_DEDICATED: Final = 1  # CUDA_EXTERNAL_MEMORY_DEDICATED


def _close_after_failure(copy: int, descriptor: int) -> None:
    """Close a copy of the given descriptor after the driver has rejected it.

    The driver owns a copy that it accepts. The driver for CUDA 13.0 has also closed some that it
    rejected, and another thread may have a new file of the same number then.
    """
    with suppress(OSError):
        if os.path.sameopenfile(copy, descriptor):
            os.close(copy)


class _MemoryHandle(ChildHandle[CUexternalMemory]):
    """Owns external memory, after the buffers that are mapped from it."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.context.call(self.api.cuDestroyExternalMemory, self.raw)
        check(self, code, "cuDestroyExternalMemory", "closing external memory")


class _MappedMemory(Memory[CUdeviceptr]):
    """Owns a mapped part of external memory.

    Attributes:
        parent: the external memory.
    """

    __slots__ = ("parent",)

    def __init__(self, parent: _MemoryHandle, stream: StreamHandle) -> None:
        self.parent: _MemoryHandle = parent
        super().__init__(parent.context, None, first_stream(stream))

    def _destroy(self) -> None:
        wait_for_contexts(self.driver)
        (code,) = self.context.call(self.api.cuMemFree, self.raw)
        check(self, code, "cuMemFree", "unmapping external memory")


class ExternalMemory(Closeable):
    """Device memory that another interface allocated, such as Vulkan, by a file descriptor.

    Args:
        context: the context of the buffers.
        descriptor: of the memory, such as of ``vkGetMemoryFdKHR``; you still own it.
        nbytes: the size of the allocation there.
        dedicated: whether it is a dedicated allocation there.

    Attributes:
        context: the context.
        nbytes: the size.
        closed: whether it was closed.

    Raises:
        CudaError: the descriptor is of no such memory, or the system has none.
        OSError: the descriptor is not open in this process.
    """

    __slots__ = ("_context", "_nbytes")

    context: ReadOnly[BaseContext] = ReadOnly("_context")
    nbytes: ReadOnly[int] = ReadOnly("_nbytes")

    _handle: _MemoryHandle
    _remedy = "send the descriptor"

    def __init__(
        self, context: BaseContext, descriptor: int, nbytes: int, *, dedicated: bool = False
    ) -> None:
        require_context("ExternalMemory: context", context)
        number = border.descriptor("ExternalMemory: descriptor", descriptor)
        self._context: BaseContext = context
        self._nbytes: int = border.int_in_range("ExternalMemory: nbytes", nbytes, 1)
        handle = _MemoryHandle(context._handle)
        description = CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
        description.type, description.size = _OPAQUE, self._nbytes
        description.flags = _DEDICATED if dedicated else 0
        description.handle.fd = own = os.dup(number)  # for the driver
        code = handle.make(handle.api.cuImportExternalMemory, description)
        if code:
            _close_after_failure(own, number)
            doing = f"opening external memory of {nbytes} bytes by descriptor {number}"
            raise failure(handle.api, code, "cuImportExternalMemory", doing)
        self._own(handle)
        context._adopt(self)

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        return f"<ExternalMemory{state} {self._nbytes} bytes on device {self._context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return f"the external memory of {self._nbytes} bytes was closed"

    @property
    def handle(self) -> CUexternalMemory:
        """The CUexternalMemory.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    def buffer(
        self, stream: BaseStream, *, offset: int = 0, nbytes: int | None = None
    ) -> DeviceBuffer:
        """Map a part as a buffer, over which `DeviceArray` makes arrays.

        The library does not see the work of the other interface: order it by an
        `ExternalSemaphore`. The buffer may outlive this object.

        Args:
            stream: the stream in whose order it is first used.
            offset: where the part begins.
            nbytes: its size; by default all from `offset` on.

        Raises:
            WrongDeviceError: the stream is of another context.
            ArgumentValueError: the part goes past the end.
        """
        require_stream("ExternalMemory.buffer: stream", stream)
        handle = self._handle
        handle.raw  # noqa: B018  # raises once it is closed
        if stream.context is not self._context:
            raise WrongDeviceError(f"mapping {self!r} for {stream!r} of another context")
        start = border.int_in_range("ExternalMemory.buffer: offset", offset)
        size = self._nbytes - start
        if nbytes is not None:
            size = border.int_in_range("ExternalMemory.buffer: nbytes", nbytes, 1)
        if not 0 < size <= self._nbytes - start:
            raise ArgumentValueError(f"{size} bytes at {start} go past the end of {self!r}")
        memory = _MappedMemory(handle, stream._handle)
        description = CUDA_EXTERNAL_MEMORY_BUFFER_DESC()
        description.offset, description.size = start, size
        function = handle.api.cuExternalMemoryGetMappedBuffer
        code = memory.make(function, handle.raw, description)
        if code:
            doing = f"mapping {size} bytes at {start} of {self!r}"
            raise failure(handle.api, code, "cuExternalMemoryGetMappedBuffer", doing)
        return over(stream, memory, int(memory.raw), size)


class _SemaphoreHandle(ChildHandle[CUexternalSemaphore]):
    """Owns an external semaphore. Its signals and waits have ended when it is destroyed."""

    __slots__ = ()

    def _destroy(self) -> None:
        wait_for_contexts(self.driver)
        (code,) = self.context.call(self.api.cuDestroyExternalSemaphore, self.raw)
        check(self, code, "cuDestroyExternalSemaphore", "closing an external semaphore")


class ExternalSemaphore(Closeable):
    """A semaphore of another interface, such as Vulkan, which streams signal and wait for.

    Args:
        context: the context of the streams.
        descriptor: of the semaphore, such as of ``vkGetSemaphoreFdKHR``; you still own it.
        timeline: whether it is a timeline semaphore, which has a value; else it is binary.

    Attributes:
        context: the context.
        timeline: whether it has a value.
        closed: whether it was closed.

    Raises:
        CudaError: the descriptor is of no such semaphore, or the system has none.
        OSError: the descriptor is not open in this process.
    """

    __slots__ = ("_context", "_timeline")

    context: ReadOnly[BaseContext] = ReadOnly("_context")
    timeline: ReadOnly[bool] = ReadOnly("_timeline")

    _handle: _SemaphoreHandle
    _remedy = "send the descriptor"

    def __init__(self, context: BaseContext, descriptor: int, *, timeline: bool = False) -> None:
        require_context("ExternalSemaphore: context", context)
        number = border.descriptor("ExternalSemaphore: descriptor", descriptor)
        self._context: BaseContext = context
        self._timeline: bool = border.instance_of("ExternalSemaphore: timeline", timeline, bool)
        handle = _SemaphoreHandle(context._handle)
        description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
        description.type = _TIMELINE if timeline else _BINARY
        description.handle.fd = own = os.dup(number)  # for the driver
        code = handle.make(handle.api.cuImportExternalSemaphore, description)
        if code:
            _close_after_failure(own, number)
            doing = f"opening an external semaphore by descriptor {number}"
            raise failure(handle.api, code, "cuImportExternalSemaphore", doing)
        self._own(handle)
        context._adopt(self)

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        kind = "timeline" if self._timeline else "binary"
        return f"<ExternalSemaphore{state} {kind} on device {self._context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return "the external semaphore was closed"

    @property
    def handle(self) -> CUexternalSemaphore:
        """The CUexternalSemaphore.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    def signal(self, stream: BaseStream, value: int = 0) -> None:
        """Signal it once the earlier work of a stream is done.

        Args:
            stream: the stream.
            value: the new value of a timeline semaphore, above the current one.

        Raises:
            StreamCaptureUnsupportedError: the stream is capturing.
        """
        raw, number = self._checked("ExternalSemaphore.signal", stream, value)
        params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS()
        params.params.fence.value = number
        handle, queue = self._handle, stream._handle
        function = handle.api.cuSignalExternalSemaphoresAsync
        (code,) = queue.submit(handle.context.call, function, [raw], [params], 1, queue.raw)
        if code:
            doing = f"signalling {self!r} on {stream!r}"
            raise failure(handle.api, code, "cuSignalExternalSemaphoresAsync", doing)

    def wait(self, stream: BaseStream, value: int = 0) -> None:
        """Let later work of a stream wait until it is signalled.

        A binary semaphore is not signalled any more afterwards.

        Args:
            stream: the stream.
            value: the least value of a timeline semaphore.

        Raises:
            StreamCaptureUnsupportedError: the stream is capturing.
        """
        raw, number = self._checked("ExternalSemaphore.wait", stream, value)
        params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS()
        params.params.fence.value = number
        handle, queue = self._handle, stream._handle
        function = handle.api.cuWaitExternalSemaphoresAsync
        (code,) = queue.submit(handle.context.call, function, [raw], [params], 1, queue.raw)
        if code:
            doing = f"waiting for {self!r} on {stream!r}"
            raise failure(handle.api, code, "cuWaitExternalSemaphoresAsync", doing)

    def _checked(
        self, where: str, stream: BaseStream, value: int
    ) -> tuple[CUexternalSemaphore, int]:
        """Return the raw semaphore and the value, for an operation on a stream."""
        require_stream(f"{where}: stream", stream)
        number = border.int_in_range(f"{where}: value", value, most=2**64 - 1)
        raw = self._handle.raw
        if number and not self._timeline:
            raise ArgumentValueError(f"{where}: value is {value}: a binary semaphore has none")
        if stream._handle.capture is not None:
            raise StreamCaptureUnsupportedError(
                f"{where}: a graph records no external semaphores\n"
                "  signal and wait before and after its launches",
                explained=True,
            )
        return raw, number
