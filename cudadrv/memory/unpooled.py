"""`UnpooledMemory`: a resource that calls cuMemAlloc for each allocation."""

from __future__ import annotations

from typing import Final

from ..driver._api import CUdeviceptr, CUresult
from ..driver.driver_selection import failure
from ..errors import NotPermittedError, OutOfMemoryError
from ..ipc import register_memory_reductions
from .driver_pool import out_of_memory
from .resource import MemoryStream, given_stream

_BLOCK_BYTES: Final = 2 << 20


class UnpooledMemory:
    """Device memory of cuMemAlloc, one call per allocation, for `using_memory`.

    Allocating and freeing are slow, as they wait for the work of the stream. Other processes can
    open the memory by cuIpcGetMemHandle: arrays over it can be sent through multiprocessing, also
    on systems without file descriptors of pools. Sizes are rounded up to 2 MiB: other memory within
    a block of that size is shared together with the allocation (CUDA C++ Programming Guide,
    "Interprocess Communication").
    """

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        register_memory_reductions()

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate memory of the stream's context.

        Raises:
            OutOfMemoryError: with the request and the free and total bytes.
        """
        context = given_stream("UnpooledMemory.allocate", stream, nbytes)._handle.context
        rounded = -(-nbytes // _BLOCK_BYTES) * _BLOCK_BYTES
        pointers: list[CUdeviceptr] = []

        def take() -> CUresult:
            code, pointer = context.api.cuMemAlloc(rounded)
            if not code:
                pointers.append(pointer)
            return code

        try:
            code = context.call(take)
        except BaseException:  # such as a failure to restore the former context
            for pointer in pointers:
                context.call(context.api.cuMemFree, pointer)
            raise
        if code == OutOfMemoryError.result:
            raise out_of_memory(stream.owner.context, nbytes, "cuMemAlloc")
        if code:
            raise failure(context.api, code, "cuMemAlloc", f"allocating {nbytes} bytes")
        return int(pointers[0])

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Wait for the work of the stream, then free memory."""
        queue = given_stream("UnpooledMemory.deallocate", stream, nbytes, address)._handle
        doing = f"giving back {nbytes} bytes"
        (waited,) = queue.wait_for_work_at_once()
        if waited == NotPermittedError.result:  # no call may wait here: a finalizer tries later
            raise failure(queue.api, waited, "cuStreamSynchronize", doing)
        # Free the memory even if the stream's work failed: nothing else frees it.
        (code,) = queue.context.call(queue.api.cuMemFree, CUdeviceptr(address))
        if waited:
            raise failure(queue.api, waited, "cuStreamSynchronize", doing)
        if code:
            raise failure(queue.api, code, "cuMemFree", doing)
