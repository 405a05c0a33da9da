"""`IpcMemoryHandle`: names device memory for other processes, through multiprocessing or otherwise.

CUDA Driver API, cuIpcGetMemHandle and cuMemPoolExportPointer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from ... import border
from ...driver._api import OPAQUE_BYTES, CUdeviceptr, CUpointer_attribute, opaque_bytes
from ...driver.context import BaseContext
from ...driver.context_handle import ContextHandle, known_at
from ...driver.driver_selection import failure
from ...driver.handle import ClosedHandle
from ...driver.pickling import Reduced, device_named, register_reduction, unshared
from ...driver.stream import BaseStream, require_stream
from ...errors import (
    ArgumentValueError,
    InvalidValueError,
    StreamCaptureUnsupportedError,
    WrongDeviceError,
)
from ..array import AnyDeviceArray, ArrayView, DeviceArray, StridedArray
from ..buffer import BufferView, DeviceBuffer, DeviceMemory, alloc, over
from ..order import AnyMemory, Memory
from ..resource import MemoryResource, ResourceMemory
from .shared import ForeignMemory, OpenedMemory, PoolHandle, SharedMemory, reduced_pool

_ASKED: Final = (
    CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
    CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
)
REMEDY: Final = (
    "allocate it in a `with using_memory(...)` block of MemoryPool(shareable=True) or "
    "UnpooledMemory()"
)

if TYPE_CHECKING:  # making a protocol takes a start longer than most modules

    class HasStream(Protocol):
        """What a context has; its room is above this one."""

        @property
        def default_stream(self) -> BaseStream:
            """The context's own stream."""


@dataclass(frozen=True, slots=True)
class IpcMemoryHandle:
    """Names device memory for other processes of the host; `of` makes it.

    It is plain bytes, to be sent in any way. Who opens it believes who made it, as with a pickle.

    Attributes:
        payload: what the driver gave; of no bytes, nothing.
        device: the UUID of the device.
        nbytes: the size.
        offset: where it begins in what the driver named.
        pool: the identity of the pool that it is of; nothing where it is of none.
    """

    payload: bytes
    device: bytes
    nbytes: int
    offset: int = 0
    pool: bytes = b""

    @classmethod
    def of(cls, memory: DeviceMemory) -> IpcMemoryHandle:
        """What names the memory of a buffer or an array; of a view, all that it is a part of.

        The work on it is waited for. It must live until every process that opens it has closed it:
        the driver keeps it for none of them.

        Raises:
            ExportError: no other process can have it: it is neither of a `MemoryPool` that is
                shareable nor of cuMemAlloc.
            StreamCaptureUnsupportedError: a stream that uses it is capturing.
        """
        root = border.instance("IpcMemoryHandle.of: memory", memory, DeviceMemory)._root
        box, address, device = root._memory, root._address, root.context.device
        named = device.uuid.bytes
        if root.nbytes == 0:
            return cls(b"", named, 0)
        finish(box)
        pool = _pool_of(box)
        if pool is not None:
            payload = box.payload if isinstance(box, ForeignMemory) else pool.export(box)
            start = int(box.raw)
        elif isinstance(box, OpenedMemory):
            payload, start = box.payload, int(box.raw)
        else:
            payload, start = _by_itself(root, box.context, address)
        identity = b"" if pool is None else pool.identity
        handle = cls(payload, named, root.nbytes, address - start, identity)
        if not isinstance(box, (ForeignMemory, OpenedMemory)):
            SharedMemory.of(box.driver, device.ordinal).own[handle] = root
        return handle

    def open(self, stream: BaseStream, pool: MemoryResource | None = None) -> DeviceBuffer:
        """The memory, here: no copy, each process sees what the others write.

        It is closed when the last buffer and array over it goes. In the process that made the
        handle it is the memory itself.

        Args:
            stream: in whose order it is first used. What was done to it before, the process that
                made the handle has waited for.
            pool: the pool that it is of, where that came in another way than by multiprocessing.

        Raises:
            WrongDeviceError: the stream is of another device.
            InvalidValueError: it is of a pool that this process does not have.
            CudaError: the process that made it has closed it or has ended.
        """
        require_stream("IpcMemoryHandle.open: stream", stream)
        box = None
        if pool is not None:
            box = pool_box(pool)
            if box is None:
                raise border.refused("IpcMemoryHandle.open: pool", pool, "give a MemoryPool")
        return self._open(stream, box)

    def _open(self, stream: BaseStream, pool: PoolHandle | None) -> DeviceBuffer:
        if stream.context.device.uuid.bytes != self.device:
            raise WrongDeviceError(f"opening memory of another device for {stream!r}")
        if not self.payload:
            return alloc(stream, 0)
        if len(self.payload) != OPAQUE_BYTES:
            raise ArgumentValueError(f"{len(self.payload)} bytes are no handle of memory")
        queue = stream._handle
        shared = SharedMemory.of(queue.driver, stream.context.ordinal)
        own = shared.own.get(self)
        memory = None if own is None else own._handle
        if isinstance(memory, Memory):
            return over(stream, memory, int(memory.raw), self.nbytes)
        if self.pool:
            pool = pool or shared.pools.get(self.pool)
            if pool is None or not pool.is_foreign:
                raise InvalidValueError(
                    "opening memory of a pool that this process does not have, or no longer: send "
                    "the MemoryPool as well"
                )
            memory = pool.open(self.payload, queue)
        else:
            memory = OpenedMemory.open(self.payload, queue)
        let_memory_go()
        return over(stream, memory, int(memory.raw) + self.offset, self.nbytes)


def finish(memory: AnyMemory) -> None:
    """Wait for what was done to memory, which another process cannot."""
    for stream in memory.all_users():
        if stream.is_capturing():
            raise StreamCaptureUnsupportedError(
                "sharing memory that a capture uses: what it does comes with each replay"
            )
        (code,) = stream.api.cuStreamSynchronize(stream.raw)
        if code:
            raise failure(stream.api, code, "cuStreamSynchronize", "waiting to share memory")


def pool_box(resource: object) -> PoolHandle | None:
    """The pool that a resource is, or takes its memory from."""
    while resource is not None:
        box = getattr(resource, "_handle", None)
        if isinstance(box, ClosedHandle):
            raise box.error
        if isinstance(box, PoolHandle):
            return box
        resource = getattr(resource, "_resource", None)
    return None


def _pool_of(memory: AnyMemory) -> PoolHandle | None:
    """The pool that memory is of, if that is shared."""
    if isinstance(memory, ForeignMemory):
        return memory.pool
    box = pool_box(memory.resource) if isinstance(memory, ResourceMemory) else None
    return box if box is not None and box.identity else None


def _by_itself(root: DeviceMemory, context: ContextHandle, address: int) -> tuple[bytes, int]:
    """What names an allocation of cuMemAlloc, and where that begins."""
    values = known_at(context, address, _ASKED)
    if values is None or not values[0]:
        raise unshared(f"memory of {root!r}", REMEDY)
    pointer = CUdeviceptr(address)
    code, made = context.call(context.api.cuIpcGetMemHandle, pointer)
    if code:
        raise failure(context.api, code, "cuIpcGetMemHandle", f"sharing memory of {root!r}")
    start = values[1]
    return opaque_bytes(made), int(start) if isinstance(start, (int, CUdeviceptr)) else address


def let_memory_go() -> None:
    """Let multiprocessing send arrays and buffers, of this process's and of others' memory."""
    for array in (DeviceArray, ArrayView, StridedArray):
        register_reduction(array, _reduced_array)
    for buffer in (DeviceBuffer, BufferView):
        register_reduction(buffer, _reduced_buffer)
    register_reduction(PoolHandle, reduced_pool)


class _Whole:
    """All of a memory, for the pickle of what lies in it.

    Attributes:
        memory: what has the box.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory: DeviceMemory = memory

    def __reduce__(self) -> Reduced:
        handle = IpcMemoryHandle.of(self.memory)
        return _received_whole, (type(self.memory.context), handle, _pool_of(self.memory._memory))


def _whole(memory: DeviceMemory) -> DeviceMemory | _Whole:
    root = memory._root
    root._memory  # noqa: B018  # raises once it is closed
    return root if root._is_sent_itself else _Whole(root)


def _received_whole(
    kind: type[BaseContext], handle: IpcMemoryHandle, pool: PoolHandle | None
) -> DeviceBuffer:
    """Memory that multiprocessing brought, of the primary context of its device."""
    let_memory_go()
    return handle._open(stream_for(kind, handle.device), pool)


def _reduced_buffer(buffer: DeviceBuffer) -> Reduced:
    return _part, (_whole(buffer), buffer.ptr - buffer._root._address, buffer.nbytes)


def _part(whole: DeviceBuffer, offset: int, nbytes: int) -> DeviceBuffer:
    if (offset, nbytes) == (0, whole.nbytes):
        return whole
    return BufferView(whole, whole._address + offset, nbytes)


def _reduced_array(array: AnyDeviceArray) -> Reduced:
    offset = array.ptr - array._root._address
    layout = (array.shape, array.dtype, offset, array.strides)
    return DeviceArray, (_whole(array), *layout)


def stream_for(kind: type[BaseContext], uuid: bytes) -> BaseStream:
    """The default stream of the primary context of a device, for what comes from elsewhere."""
    context = kind._primary_of(device_named(uuid, "memory"))
    return cast("HasStream", context).default_stream
