"""`UnpooledMemory`: a resource whose memory is an allocation of cuMemAlloc each time."""

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
    """Device memory of cuMemAlloc, allocation by allocation, for `using_memory`.

    It is slow to take and to give back, as that waits for the work of its stream, and it is what
    other processes open by cuIpcGetMemHandle: arrays over it go through multiprocessing, on systems
    without file descriptors of pools as well. Sizes are rounded up to 2 MiB: what shares a block of
    that size with an allocation goes to other processes with it (CUDA C++ Programming Guide,
    "Interprocess Communication").
    """

    def __init__(self) -> None:
        let_memory_go()

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Memory of the stream's context.

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
        except BaseException:  # such as that the former context is not put back
            for pointer in given:
                context.call(context.api.cuMemFree, pointer)
            raise
        if code == OutOfMemoryError.result:
            raise out_of_memory(stream.owner.context, nbytes, "cuMemAlloc")
        if code:
            raise failure(context.api, code, "cuMemAlloc", f"allocating {nbytes} bytes")
        return int(given[0])

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Give memory back once the work of the stream is done, which is waited for."""
        box = given_stream("UnpooledMemory.deallocate", stream, nbytes, address)._handle
        doing = f"giving back {nbytes} bytes"
        (waited,) = box.api.cuStreamSynchronize(box.raw)
        if waited == NotPermittedError.result:  # here no call may wait: a finalizer tries later
            raise failure(box.api, waited, "cuStreamSynchronize", doing)
        # Whatever that told of the stream's work: nobody else gives the memory back.
        (code,) = box.context.call(box.api.cuMemFree, CUdeviceptr(address))
        if waited:
            raise failure(box.api, waited, "cuStreamSynchronize", doing)
        if code:
            raise failure(box.api, code, "cuMemFree", doing)
