"""Memory and semaphores of other interfaces, such as Vulkan, by file descriptors.

CUDA Driver API: "External Resource Interoperability". The emulator has no such interface. Memory
comes from cuMemExportToShareableHandle. An eventfd (eventfd(2)) stands for a semaphore. Its count
is 1 while a binary semaphore is signalled, and is the value of a timeline semaphore.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ...driver._api import (
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUdeviceptr,
    CUexternalMemory,
    CUexternalMemoryHandleType,
    CUexternalSemaphore,
    CUexternalSemaphoreHandleType,
    CUresult,
    CUstream,
)
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value, not_supported
from ..device_state import Owner
from ..node_kind import NodeKind
from ..shared_file import SharedFile
from ..streams import Stream
from .call import DriverCalls, call

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns

    from ..external_resources import ExternalSemaphore

_MEMORY: Final = int(CUexternalMemoryHandleType.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
_BINARY: Final = int(CUexternalSemaphoreHandleType.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD)
_TIMELINE: Final = int(
    CUexternalSemaphoreHandleType.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
)
_DEDICATED: Final = 1  # CUDA_EXTERNAL_MEMORY_DEDICATED
_MOST_TURNS: Final = 100_000
_EVENT_FILE: Final = "anon_inode:[eventfd]"


def _type_of(
    description: CUDA_EXTERNAL_MEMORY_HANDLE_DESC | CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
) -> int:
    """Return the type of a handle."""
    try:
        return int(description.type)
    except (TypeError, ValueError) as error:  # the binding knows no such type; older ones have None
        raise invalid_value(f"the type of the handle: {error}") from error


class ExternalResourceCalls(DriverCalls):
    """Memory and semaphores of other interfaces."""

    @call
    def cuImportExternalMemory(
        self, mem_handle_desc: CUDA_EXTERNAL_MEMORY_HANDLE_DESC | None, /
    ) -> tuple[CUresult, CUexternalMemory]:
        """Open memory by a descriptor, which the driver owns from then on."""
        self._state.handles.current()
        description = mem_handle_desc
        if description is None or int(description.flags) & ~_DEDICATED:
            raise invalid_value("the description of the memory is null, or has unknown flags")
        if _type_of(description) != _MEMORY:
            raise not_supported("the emulator imports memory by OPAQUE_FD alone")
        from ..external_resources import ExternalMemory  # few programs import memory

        number, nbytes = int(description.handle.fd), int(description.size)
        file = SharedFile.of_descriptor(number, "mapped")
        if file is None or not 0 < nbytes <= file.nbytes:
            raise invalid_value(f"descriptor {number} is of no exported memory of {nbytes} bytes")
        os.close(number)
        handle = self._state.handles.new()
        self._state.handles.external_memory[handle] = ExternalMemory(file, nbytes)
        return SUCCESS, CUexternalMemory(handle)

    @call
    def cuExternalMemoryGetMappedBuffer(
        self, ext_mem: CUexternalMemory, buffer_desc: CUDA_EXTERNAL_MEMORY_BUFFER_DESC | None, /
    ) -> tuple[CUresult, CUdeviceptr]:
        """Map a part; cuMemFree unmaps it."""
        context = self._state.handles.current()
        memory = self._state.handles.external_memory.get(int(ext_mem))
        if memory is None:
            raise invalid_handle(f"{int(ext_mem):#x} is no external memory")
        if buffer_desc is None or int(buffer_desc.flags):
            raise invalid_value("the description of the buffer is null, or has flags")
        offset, nbytes = int(buffer_desc.offset), int(buffer_desc.size)
        if not 0 < nbytes <= memory.nbytes - offset:
            raise invalid_value(f"{nbytes} bytes at {offset} of memory of {memory.nbytes}")
        device = context.device
        with device.lock:
            piece = device.open(memory.file, offset, nbytes, Owner.EXTERNAL, context=context.handle)
        return SUCCESS, CUdeviceptr(piece.address)

    @call
    def cuDestroyExternalMemory(self, ext_mem: CUexternalMemory, /) -> tuple[CUresult]:
        """Close memory; its mapped buffers stay until they are freed."""
        memory = self._state.handles.external_memory.pop(int(ext_mem), None)
        if memory is None:
            raise invalid_handle(f"{int(ext_mem):#x} is no external memory")
        memory.file.close()
        return OK

    @call
    def cuImportExternalSemaphore(
        self, sem_handle_desc: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC | None, /
    ) -> tuple[CUresult, CUexternalSemaphore]:
        """Open a semaphore by a descriptor, which the driver owns from then on."""
        self._state.handles.current()
        description = sem_handle_desc
        if description is None or int(description.flags):
            raise invalid_value("the description of the semaphore is null, or has flags")
        from ..external_resources import ExternalSemaphore  # few programs import semaphores

        kind, number = _type_of(description), int(description.handle.fd)
        if kind not in (_BINARY, _TIMELINE):
            raise not_supported("the emulator imports semaphores by file descriptors alone")
        try:
            link = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            link = ""
        if link != _EVENT_FILE:
            raise invalid_value(f"descriptor {number} is of no eventfd: one stands for a semaphore")
        handle = self._state.handles.new()
        self._state.handles.external_semaphores[handle] = ExternalSemaphore(
            number, kind == _TIMELINE
        )
        return SUCCESS, CUexternalSemaphore(handle)

    @call
    def cuDestroyExternalSemaphore(self, ext_sem: CUexternalSemaphore, /) -> tuple[CUresult]:
        """Close a semaphore, whose signals and waits have ended."""
        semaphore = self._state.handles.external_semaphores.pop(int(ext_sem), None)
        if semaphore is None:
            raise invalid_handle(f"{int(ext_sem):#x} is no external semaphore")
        semaphore.close()
        return OK

    @call
    def cuSignalExternalSemaphoresAsync(
        self,
        ext_sem_array: Sequence[CUexternalSemaphore] | None,
        params_array: Sequence[CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS] | None,
        num_ext_sems: int,
        stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Signal semaphores in the order of a stream."""
        queue, signals = self._semaphores(ext_sem_array, params_array, num_ext_sems, stream)
        for semaphore, value in signals:
            self._state.operations.submit(queue, NodeKind.WAIT, partial(semaphore.signal, value))
        return OK

    @call
    def cuWaitExternalSemaphoresAsync(
        self,
        ext_sem_array: Sequence[CUexternalSemaphore] | None,
        params_array: Sequence[CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS] | None,
        num_ext_sems: int,
        stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Let a stream wait until semaphores are signalled."""
        queue, waits = self._semaphores(ext_sem_array, params_array, num_ext_sems, stream)
        for semaphore, value in waits:
            wait = partial(self._wait_for_semaphore, semaphore, value)
            self._state.operations.submit(queue, NodeKind.WAIT, wait)
        return OK

    def _wait_for_semaphore(self, semaphore: ExternalSemaphore, value: int) -> Turns | None:
        if semaphore.take(value):
            return None
        if self._state.operations.timeline is None:
            raise _never_signalled(value)
        return _turns_until(partial(semaphore.take, value), value)

    def _semaphores(
        self,
        handles: Sequence[CUexternalSemaphore] | None,
        params: Sequence[
            CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS | CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS
        ]
        | None,
        count: int,
        handle: CUstream,
    ) -> tuple[Stream, list[tuple[ExternalSemaphore, int]]]:
        """Return the stream, and the semaphores with their values."""
        stream = self._state.handles.stream(handle)
        if stream.capture is not None:
            self._state.captures.reject_if_invalid(stream.capture)
            raise not_supported("the emulator records no semaphores into graphs")
        if not handles or not params or not 0 < count <= min(len(handles), len(params)):
            raise invalid_value(f"{count} semaphores with their parameters")
        semaphores = []
        for semaphore_handle, operation in zip(handles[:count], params, strict=False):
            semaphore = self._state.handles.external_semaphores.get(int(semaphore_handle))
            if semaphore is None:
                raise invalid_handle(f"{int(semaphore_handle):#x} is no external semaphore")
            semaphores.append((semaphore, int(operation.params.fence.value)))
        return stream, semaphores


def _turns_until(is_signalled: Callable[[], bool], value: int) -> Turns:
    """Let others run until the semaphore is signalled."""
    for _ in range(_MOST_TURNS):
        yield True
        if is_signalled():
            return
    raise _never_signalled(value)


def _never_signalled(value: int) -> CallError:
    return not_supported(
        f"a stream waits for value {value} of a semaphore that no earlier work signals; the "
        'emulator waits for later work under the orders "late" and "random" only'
    )
