"""`RegisteredArray`: existing host memory, pinned for as long as it is needed.

CUDA Driver API, cuMemHostRegister.
"""

from __future__ import annotations

import numpy as np

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import CUresult
from ..driver.context_handle import ContextHandle
from ..driver.deferred_release import retry_destroy, run_deferred
from ..driver.driver_selection import failure
from ..driver.handle import Closeable, check
from ..errors import CopyError, CudaError, InvalidValueError, OutOfMemoryError
from .dtypes import AnyArray
from .host_copy import host_address, require_plain
from .pinned import HostHandle, host_context

_PORTABLE, _READ_ONLY = 0x01, 0x08  # CU_MEMHOSTREGISTER_PORTABLE, _READ_ONLY


class _RegisteredHandle(HostHandle[int]):
    """Owns a registration, and holds the array.

    Attributes:
        array: the array whose memory is pinned.
    """

    __slots__ = ("array",)

    def __init__(self, context: ContextHandle, array: AnyArray) -> None:
        super().__init__(context, array.nbytes)
        self.array: AnyArray = array

    def register(self, flags: int) -> CUresult:
        """Let the driver pin the memory; return its result."""
        # The handle has it before the call, so that no interrupt loses it.
        address = self.raw = host_address(self.array)
        (code,) = self.context.call(self.api.cuMemHostRegister, address, self.array.nbytes, flags)
        if code:
            del self.raw
        return code

    def _destroy_and_report(self) -> None:
        """Unregister the memory; an interrupt in the middle lets `run_deferred` do it again.

        The memory is the user's: new memory at its address could not be registered.
        """
        try:
            super()._destroy_and_report()
        except CudaError:
            raise
        except BaseException:  # before or after the driver has unregistered it
            if not self.is_destroyed:
                retry_destroy(self._destroy_and_report)
            raise

    def _destroy(self) -> None:
        self._wait_elsewhere()
        (code,) = self.context.call(self.api.cuMemHostUnregister, self.raw)
        doing = f"leaving {self.array.nbytes} bytes of registered memory to the host"
        if code != CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:  # interrupted before it was
            check(self, code, "cuMemHostUnregister", doing)


def registered_in(context: ContextHandle, array: AnyArray) -> HostHandle[int]:
    """Pin the memory of a host array until the result is freed.

    Args:
        context: the context of the call; all may use the memory.
        array: C-contiguous, not empty; a read-only one is pinned for reading.

    Raises:
        CudaError: the driver cannot pin it.
    """
    handle = _RegisteredHandle(context, array)
    flags = _PORTABLE if array.flags.writeable else _PORTABLE | _READ_ONLY
    code = handle.register(flags)
    if code == CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED and run_deferred():
        code = handle.register(flags)  # an interrupt had come into its former release
    if code:
        doing = f"pinning {array.nbytes} bytes of a host array"
        if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise OutOfMemoryError._of_host(doing, "cuMemHostRegister")
        raise failure(handle.api, code, "cuMemHostRegister", doing)
    return handle


class RegisteredArray(Closeable):
    """Pin the memory of an existing host array for a block: ``with RegisteredArray(array):``.

    In the block, copies of the array use no staging and respect `wait=False`. Kernels take it as a
    pointer, as they take the result of `pinned_empty`. Pinning costs milliseconds per megabyte: use
    it for memory that another library allocates, or that is copied many times. The end of the block
    waits for the work of every context.

    Args:
        array: a C-contiguous host array; a read-only one is pinned for reading.

    Attributes:
        array: the array, kept alive.
        closed: whether its memory is no longer pinned.
    """

    __slots__ = ("_array",)

    _array: AnyArray
    array: ReadOnly[AnyArray] = ReadOnly("_array")
    _handle: HostHandle[int]

    def __init__(self, array: AnyArray) -> None:
        require_plain(border.instance_of("RegisteredArray: array", array, np.ndarray))
        if not array.flags.c_contiguous:
            raise CopyError("RegisteredArray: the host array is not C-contiguous")
        if array.nbytes == 0:
            raise InvalidValueError("RegisteredArray: the host array has no bytes")
        self._array = array
        handle = registered_in(host_context(), array)
        self._own_unrooted(handle, handle.context)

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        return f"<RegisteredArray {self._array.shape} {self._array.dtype}{state}>"

    @property
    def _closed_text(self) -> str:
        return f"the registration of a host array {self._array.shape} was closed"
