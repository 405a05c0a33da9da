"""`UnpooledMemory`: a resource that calls cuMemAlloc for each allocation."""

from __future__ import annotations

from typing import Final

from ..driver._api import CUdeviceptr, CUresult
from ..driver.driver_selection import failure
from ..errors import NotPermittedError, OutOfMemoryError
from .driver_pool import out_of_memory
from .ipc import let_memory_go
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

    def __init__(self) -> None:
        let_memory_go()

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate memory of the stream's context.

        Raises:
            OutOfMemoryError: with the request and the free and total bytes.
        """
        context = given_stream("UnpooledMemory.allocate", stream, nbytes)._handle.context
        whole = -(-nbytes // _BLOCK_BYTES) * _BLOCK_BYTES
        given: list[CUdeviceptr] = []

        def take() -> CUresult:
            code, pointer = context.api.cuMemAlloc(whole)
            if not code:
                given.append(pointer)
            return code

        try:
            code = context.call(take)
        except BaseException:  # such as a failure to restore the former context
            for pointer in given:
                context.call(context.api.cuMemFree, pointer)
            raise
        if code == OutOfMemoryError.result:
            raise out_of_memory(stream.owner.context, nbytes, "cuMemAlloc")
        if code:
            raise failure(context.api, code, "cuMemAlloc", f"allocating {nbytes} bytes")
        return int(given[0])

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Wait for the work of the stream, then free memory."""
        box = given_stream("UnpooledMemory.deallocate", stream, nbytes, address)._handle
        doing = f"giving back {nbytes} bytes"
        (waited,) = box.api.cuStreamSynchronize(box.raw)
        if waited == NotPermittedError.result:  # no call may wait here: a finalizer tries later
            raise failure(box.api, waited, "cuStreamSynchronize", doing)
        # Free the memory whatever the stream's work reported: nothing else frees it.
        (code,) = box.context.call(box.api.cuMemFree, CUdeviceptr(address))
        if waited:
            raise failure(box.api, waited, "cuStreamSynchronize", doing)
        if code:
            raise failure(box.api, code, "cuMemFree", doing)
