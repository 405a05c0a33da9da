"""`IpcMemoryHandle`: identifies device memory for other processes, for example in multiprocessing.

CUDA Driver API, cuIpcGetMemHandle and cuMemPoolExportPointer.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVarTuple, Unpack, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from . import border
from .driver._api import (
    OPAQUE_BYTES,
    CUdeviceptr,
    CUipcMemHandle,
    CUmemAllocationHandleType,
    CUmemoryPool,
    CUmemPoolProps,
    CUmemPoolPtrExportData,
    CUpointer_attribute,
    CUresult,
    of_opaque_bytes,
    opaque_bytes,
)
from .driver.context import BaseContext
from .driver.context_handle import ChildHandle, ContextHandle, known_at
from .driver.device import Device
from .driver.driver_selection import Driver, failure
from .driver.event import IpcEventHandle as IpcEventHandle
from .driver.handle import Closeable, ClosedHandle, check
from .driver.pickling import Reduced, device_named, register_reduction, unshared
from .driver.stream import BaseStream, require_stream
from .driver.stream_handle import StreamHandle
from .errors import (
    ArgumentValueError,
    InvalidValueError,
    StreamCaptureUnsupportedError,
    WrongDeviceError,
)
from .memory.array import AnyDeviceArray, ArrayView, DeviceArray, StridedArray
from .memory.buffer import (
    BufferView,
    DeviceBuffer,
    DeviceData,
    PoolMemory,
    View,
    alloc,
    over,
    owning,
)
from .memory.dtypes import AnyDType
from .memory.layout import Shape
from .memory.order import AnyMemory, Memory
from .memory.pinned import wait_for_contexts
from .memory.resource import MemoryResource, ResourceMemory
from .memory.retired_pools import RetiredPools, empty

__all__ = ["IpcEventHandle", "IpcMemoryHandle"]

BY_DESCRIPTOR: Final = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_LAZY_PEERS: Final = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only flag, which is required

_Args = TypeVarTuple("_Args")


class SharedMemory:
    """The shared memory and pools of one device. `Driver.lock` is held during changes.

    Attributes:
        own: the owners of this process's memory, by the handles of the memory.
        opened: memory of other processes by its identifier; pools register their own.
        pools: pools of this and of other processes by their identity.
        ranges: memory of growing buffers, of this and of other processes, by their identity.
    """

    def __init__(self) -> None:
        self.own: WeakValueDictionary[Hashable, Closeable] = WeakValueDictionary()
        self.opened: WeakValueDictionary[bytes, OpenedMemory] = WeakValueDictionary()
        self.ranges: WeakValueDictionary[bytes, AnyMemory] = WeakValueDictionary()
        self.pools: WeakValueDictionary[bytes, PoolHandle] = WeakValueDictionary()

    @classmethod
    def of(cls, driver: Driver, ordinal: int) -> SharedMemory:
        """Return the shared memory of a device, one object per process."""
        return driver.one_of(cls, ordinal)


class _Pool(ChildHandle[CUmemoryPool]):
    """Ends a pool of this process, for its `PoolHandle`, once all its memory is freed.

    A later pool of the kind takes it, unless other processes may have it. Of another process's pool
    it destroys this process's handle.

    Attributes:
        descriptor: as of the `PoolHandle`.
        kind: what later pools that take it have in common with it.
        is_given: whether other processes may have it.
        is_foreign: as of the `PoolHandle`.
    """

    __slots__ = ("descriptor", "is_foreign", "is_given", "kind")

    def __init__(self, context: ContextHandle) -> None:
        super().__init__(context)
        self.descriptor: int = -1
        self.kind: Hashable = None
        self.is_given: bool = False
        self.is_foreign: bool = False

    def _destroy(self) -> None:
        # Forgotten first: an interrupt lets nobody close the number twice, which others may have.
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        api, ordinal = self.api, self.context.ordinal
        if self.is_foreign:
            wait_for_contexts(self.driver)
            (code,) = api.cuMemPoolDestroy(self.raw)
            check(self, code, "cuMemPoolDestroy", f"closing a memory pool of device {ordinal}")
            return
        empty(api, self.raw)
        retired = RetiredPools.of(self.driver, ordinal)
        if self.is_given:
            retired.add_given(self.raw)
            retired.destroy_given(api)
        else:
            retired.add(self.raw, self.kind)


class PoolHandle(ChildHandle[CUmemoryPool]):
    """A pool, which ends with this.

    Attributes:
        identity: identifies it among processes; none of a pool that is not shared.
    """

    __slots__ = ("_exported", "_opened", "destroyer", "identity")

    def __init__(self, context: ContextHandle) -> None:
        self.identity: bytes = b""
        self.destroyer: _Pool = _Pool(context)
        self._exported: WeakKeyDictionary[AnyMemory, bytes] = WeakKeyDictionary()
        self._opened: WeakValueDictionary[bytes, ForeignMemory] = WeakValueDictionary()
        super().__init__(context)

    @property
    def descriptor(self) -> int:
        """The file descriptor by which other processes open it; -1 of a pool that is not shared."""
        return self.destroyer.descriptor

    @property
    def is_foreign(self) -> bool:
        """Whether it belongs to another process."""
        return self.destroyer.is_foreign

    def make(
        self,
        function: Callable[[Unpack[_Args]], tuple[CUresult, CUmemoryPool]],
        *args: *_Args,
    ) -> CUresult:
        """Let the driver make the pool; return its result."""
        code = super().make(function, *args)
        self.destroyer.raw = self.raw
        return code

    def make_own(self, properties: CUmemPoolProps) -> CUresult:
        """Take a retired pool of the device, or let the driver make one; return its result."""
        kind = int(properties.maxSize), int(properties.handleTypes)
        ordinal, driver = self.context.ordinal, self.driver
        retired = RetiredPools.of(driver, ordinal)
        retired.destroy_given(driver.api)  # it limits how many there can be
        taken = retired.take(driver, ordinal, kind)
        self.destroyer.kind = kind
        if taken is None:
            return self.make(driver.api.cuMemPoolCreate, properties)
        self.raw = self.destroyer.raw = taken
        return CUresult.CUDA_SUCCESS

    def share(self) -> CUresult:
        """Open a descriptor by which other processes may open the pool; return the result."""
        export = self.api.cuMemPoolExportToShareableHandle
        code, number = export(self.raw, BY_DESCRIPTOR, 0)
        if not code:
            self._be_known(int(number), secrets.token_bytes(16))
        return code

    def _be_known(self, descriptor: int, identity: bytes) -> None:
        """Own a descriptor from now on, and register the identity."""
        self.destroyer.descriptor, self.identity = descriptor, identity
        with self.driver.lock:
            SharedMemory.of(self.driver, self.context.ordinal).pools[identity] = self

    @classmethod
    def imported(cls, device: Device, descriptor: int, identity: bytes = b"") -> PoolHandle:
        """Open another process's pool by a descriptor, which is closed here on failure.

        A second call returns the same pool; for a pool of this process it returns that pool.
        """
        owner, handle = device.driver, None
        try:
            with owner.lock:
                imported = SharedMemory.of(owner, device.ordinal).pools.get(identity)
                if imported is not None:
                    return imported
                context = ContextHandle(
                    owner, device.primary_context(), device.ordinal, is_primary=True
                )
                handle = cls(context)
                handle.destroyer.is_foreign = True
                code = handle.make(
                    owner.api.cuMemPoolImportFromShareableHandle, descriptor, BY_DESCRIPTOR, 0
                )
                if code:
                    doing = f"taking a memory pool of another process on {device!r}"
                    raise failure(owner.api, code, "cuMemPoolImportFromShareableHandle", doing)
                handle._be_known(descriptor, identity or secrets.token_bytes(16))
                return handle
        finally:
            if handle is None or handle.descriptor != descriptor:
                os.close(descriptor)

    def export(self, memory: AnyMemory) -> bytes:
        """Return an identifier of memory for processes that have the pool; always the same."""
        exported = self._exported.get(memory)
        if exported is None:
            export = self.api.cuMemPoolExportPointer
            code, identifier = self.context.call(export, CUdeviceptr(int(memory.raw)))
            if code:
                raise failure(self.api, code, "cuMemPoolExportPointer", "sharing memory of a pool")
            exported = self._exported.setdefault(memory, opaque_bytes(identifier))
        return exported

    def open(self, payload: bytes, stream: StreamHandle) -> ForeignMemory:
        """Open memory of the pool that another process has allocated."""
        with self.driver.lock:
            opened = self._opened.get(payload)
            if opened is None:
                opened = ForeignMemory(self, payload, stream)
                code = opened.open()
                if code:
                    doing = "opening memory of another process's pool"
                    raise failure(self.api, code, "cuMemPoolImportPointer", doing)
                self._opened[payload] = opened
            return opened


class _Opening(ChildHandle[CUdeviceptr]):
    """Closes memory of another process, for entries of `SharedMemory`.

    Closing waits for the work of all contexts. The driver counts no openings: a free that is still
    queued would also end a new opening.

    Attributes:
        pool: the pool of the memory, which is destroyed later; None if it has none.
    """

    __slots__ = ("pool",)

    def __init__(self, context: ContextHandle, pool: PoolHandle | None = None) -> None:
        self.pool: PoolHandle | None = pool
        super().__init__(context)

    def _destroy(self) -> None:
        wait_for_contexts(self.driver)
        call, close = "cuMemFree", self.api.cuMemFree
        if self.pool is None:
            call, close = "cuIpcCloseMemHandle", self.api.cuIpcCloseMemHandle
        (code,) = self.context.call(close, self.raw)
        doing = f"closing memory of another process on device {self.context.ordinal}"
        check(self, code, call, doing)


class ForeignMemory(PoolMemory):
    """Memory of another process's pool: freed here, it still belongs to that pool.

    Attributes:
        payload: its identifier.
        pool: the pool.
    """

    __slots__ = ("destroyer", "payload", "pool")

    raw: CUdeviceptr

    def __init__(self, pool: PoolHandle, payload: bytes, stream: StreamHandle) -> None:
        self.pool: PoolHandle = pool
        self.payload: bytes = payload
        self.destroyer: _Opening = _Opening(stream.context, pool)
        super().__init__(stream.context, None, stream.own)

    def open(self) -> CUresult:
        """Let the driver open it; return its result."""
        identifier = of_opaque_bytes(CUmemPoolPtrExportData, self.payload)
        code = self.destroyer.make(self.api.cuMemPoolImportPointer, self.pool.raw, identifier)
        self.raw = self.destroyer.raw
        return code

    def __del__(self) -> None:
        """Do nothing: the object that closes the memory is dropped with this one."""


class OpenedMemory(Memory[CUdeviceptr]):
    """An allocation of another process, which may be used on every stream here.

    Attributes:
        payload: its identifier.
    """

    __slots__ = ("destroyer", "payload")

    raw: CUdeviceptr

    def __init__(self, stream: StreamHandle, payload: bytes) -> None:
        super().__init__(stream.context, None, stream.own)
        self.payload: bytes = payload
        self.destroyer: _Opening = _Opening(stream.context)

    @classmethod
    def open(cls, payload: bytes, stream: StreamHandle) -> OpenedMemory:
        """Open the whole allocation that a handle identifies."""
        context = stream.context
        with context.driver.lock:
            opened = SharedMemory.of(context.driver, context.ordinal).opened
            memory = opened.get(payload)
            if memory is None:
                memory = cls(stream, payload)
                handle = of_opaque_bytes(CUipcMemHandle, payload)
                code = memory.destroyer.make(context.api.cuIpcOpenMemHandle, handle, _LAZY_PEERS)
                memory.raw = memory.destroyer.raw
                if code:
                    doing = "opening memory of another process"
                    raise failure(context.api, code, "cuIpcOpenMemHandle", doing)
                opened[payload] = memory
            return memory


def reduced_pool(handle: PoolHandle) -> Reduced:
    """Return the parts of a pool for multiprocessing.

    Raises:
        ExportError: the pool is not shareable.
    """
    # As multiprocessing requires: within the start of a process, or over a connection.
    from multiprocessing.reduction import DupFd

    if handle.descriptor < 0:
        raise unshared("a memory pool", "make it with shareable=True")
    handle.destroyer.is_given = True
    uuid = Device.get(handle.context.ordinal).uuid.bytes
    return _received_pool, (uuid, handle.identity, DupFd(handle.descriptor))


# The result of `DupFd` has no public type; it has `detach`.
def _received_pool(uuid: bytes, identity: bytes, descriptor: Any) -> PoolHandle:
    number = descriptor.detach()  # first: the other process waits for it
    try:
        device = device_named(uuid, "a memory pool")
    except BaseException:
        os.close(number)
        raise
    return PoolHandle.imported(device, number, identity)


_POINTER_ATTRIBUTES: Final = (
    CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
    CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
)
REMEDY: Final = (
    "allocate it in a `with using_memory(...)` block of MemoryPool(shareable=True) or "
    "UnpooledMemory()"
)

if TYPE_CHECKING:  # making a protocol slows a start more than most modules

    class HasStream(Protocol):
        """An attribute of a context, whose layer is above this one."""

        @property
        def default_stream(self) -> BaseStream:
            """The context's own stream."""


@dataclass(frozen=True, slots=True)
class IpcMemoryHandle:
    """Identifies device memory for other processes of the host; `of` makes it.

    It is plain bytes, to be sent in any way. Handles are not validated: as with pickles, open only
    those from processes you trust.

    Attributes:
        payload: the driver's handle; empty for memory of no bytes.
        device: the UUID of the device.
        nbytes: the size.
        offset: where the memory begins in the allocation that the driver identified.
        pool: the identity of its pool; empty if it has none.
    """

    payload: bytes
    device: bytes
    nbytes: int
    offset: int = 0
    pool: bytes = b""

    @classmethod
    def of(cls, memory: DeviceData) -> IpcMemoryHandle:
        """Return a handle for the memory of a buffer or an array; of a view, for its whole base.

        This waits for the work on the memory. Keep the memory until every process that opens it has
        closed it: the driver does not keep it alive for them.

        Raises:
            ExportError: no other process can open it: it comes neither from a `MemoryPool` that is
                shareable nor from cuMemAlloc.
            StreamCaptureUnsupportedError: a stream that uses it is capturing.
        """
        root = border.instance_of("IpcMemoryHandle.of: memory", memory, DeviceData)._root
        memory_handle, address, device = root._memory, root._address, root.context.device
        uuid = device.uuid.bytes
        if root.nbytes == 0:
            return cls(b"", uuid, 0)
        finish(memory_handle)
        pool = _pool_of(memory_handle)
        if pool is not None:
            payload = (
                memory_handle.payload
                if isinstance(memory_handle, ForeignMemory)
                else pool.export(memory_handle)
            )
            start = int(memory_handle.raw)
        elif isinstance(memory_handle, OpenedMemory):
            payload, start = memory_handle.payload, int(memory_handle.raw)
        else:
            payload, start = _by_itself(root, memory_handle.context, address)
        identity = b"" if pool is None else pool.identity
        handle = cls(payload, uuid, root.nbytes, address - start, identity)
        if not isinstance(memory_handle, (ForeignMemory, OpenedMemory)):
            with memory_handle.driver.lock:
                SharedMemory.of(memory_handle.driver, device.ordinal).own[handle] = root
        return handle

    def open(self, stream: BaseStream, pool: MemoryResource | None = None) -> DeviceBuffer:
        """Open the memory in this process: no copy, each process sees what the others write.

        It is closed with the last buffer and array over it. In the process that made the handle the
        result is the memory itself.

        Args:
            stream: in whose order it is first used. The process that made the handle has waited for
                earlier work.
            pool: the pool of the memory, if it was sent in another way than by multiprocessing.

        Raises:
            WrongDeviceError: the stream is of another device.
            InvalidValueError: this process does not have its pool.
            CudaError: the process that made it has closed it or has ended.
        """
        require_stream("IpcMemoryHandle.open: stream", stream)
        pool_handle = None
        if pool is not None:
            pool_handle = pool_box(pool)
            if pool_handle is None:
                raise border.wrong_type("IpcMemoryHandle.open: pool", pool, "give a MemoryPool")
        return self._open(stream, pool_handle)

    def _open(self, stream: BaseStream, pool: PoolHandle | None) -> DeviceBuffer:
        if stream.context.device.uuid.bytes != self.device:
            raise WrongDeviceError(f"opening memory of another device for {stream!r}")
        if not self.payload:
            return alloc(stream, 0)
        if len(self.payload) != OPAQUE_BYTES:
            raise ArgumentValueError(f"{len(self.payload)} bytes are no handle of memory")
        queue = stream._handle
        shared = SharedMemory.of(queue.driver, stream.context.ordinal)
        exporter = shared.own.get(self)
        memory = None if exporter is None else exporter._handle
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
        register_memory_reductions()
        return over(stream, memory, int(memory.raw) + self.offset, self.nbytes)


def finish(memory: AnyMemory) -> None:
    """Wait for the work on memory, which another process cannot wait for."""
    for stream in memory.all_users():
        if stream.is_capturing():
            raise StreamCaptureUnsupportedError(
                "sharing memory that a capture uses: what it does comes with each replay"
            )
        (code,) = stream.wait_for_work()
        if code:
            raise failure(stream.api, code, "cuStreamSynchronize", "waiting to share memory")


def pool_box(resource: object) -> PoolHandle | None:
    """Return the pool that a resource is, or allocates its memory from."""
    while resource is not None:
        handle = getattr(resource, "_handle", None)
        if isinstance(handle, ClosedHandle):
            raise handle.error
        if isinstance(handle, PoolHandle):
            return handle
        resource = getattr(resource, "_resource", None)
    return None


def _pool_of(memory: AnyMemory) -> PoolHandle | None:
    """Return the pool of memory, if that is shared."""
    if isinstance(memory, ForeignMemory):
        return memory.pool
    handle = pool_box(memory.resource) if isinstance(memory, ResourceMemory) else None
    return handle if handle is not None and handle.identity else None


def _by_itself(root: DeviceData, context: ContextHandle, address: int) -> tuple[bytes, int]:
    """Return the identifier of an allocation of cuMemAlloc, and where that begins."""
    values = known_at(context, address, _POINTER_ATTRIBUTES)
    if values is None or not values[0]:
        raise unshared(f"memory of {root!r}", REMEDY)
    pointer = CUdeviceptr(address)
    code, handle = context.call(context.api.cuIpcGetMemHandle, pointer)
    if code:
        raise failure(context.api, code, "cuIpcGetMemHandle", f"sharing memory of {root!r}")
    start = values[1]
    return opaque_bytes(handle), int(start) if isinstance(start, (int, CUdeviceptr)) else address


def register_memory_reductions() -> None:
    """Register arrays and buffers, of this and of other processes' memory, with multiprocessing."""
    for array in (DeviceArray, ArrayView, StridedArray):
        register_reduction(array, _reduced_array)
    for buffer in (DeviceBuffer, BufferView):
        register_reduction(buffer, _reduced_buffer)
    register_reduction(PoolHandle, reduced_pool)


class _WholeAllocation:
    """All of a memory, for the pickle of its parts.

    Attributes:
        memory: the owner of the handle.
    """

    def __init__(self, memory: DeviceData) -> None:
        self.memory: DeviceData = memory

    def __reduce__(self) -> Reduced:
        handle = IpcMemoryHandle.of(self.memory)
        return _received_whole, (type(self.memory.context), handle, _pool_of(self.memory._memory))


def _sendable_root(memory: DeviceData) -> DeviceData | _WholeAllocation:
    root = memory._root
    root._memory  # noqa: B018  # raises once it is closed
    return root if root._is_sent_itself else _WholeAllocation(root)


def _received_whole(
    kind: type[BaseContext], handle: IpcMemoryHandle, pool: PoolHandle | None
) -> DeviceBuffer:
    """Return memory received by multiprocessing, in the primary context of its device."""
    register_memory_reductions()
    return handle._open(stream_for(kind, handle.device), pool)


def _reduced_buffer(buffer: DeviceBuffer) -> Reduced:
    return _part, (_sendable_root(buffer), buffer.ptr - buffer._root._address, buffer.nbytes)


def _part(allocation: DeviceBuffer, offset: int, nbytes: int) -> DeviceBuffer:
    if (offset, nbytes) == (0, allocation.nbytes):
        return allocation
    return BufferView(allocation, allocation._address + offset, nbytes)


def _reduced_array(array: AnyDeviceArray) -> Reduced:
    offset = array.ptr - array._root._address
    layout = (array.shape, array.dtype, offset, array.strides)
    is_view = isinstance(array, View) and not array._is_owning
    return (DeviceArray if is_view else _received_array), (_sendable_root(array), *layout)


def _received_array(
    buffer: DeviceBuffer, shape: Shape, dtype: AnyDType, offset: int, strides: tuple[int, ...]
) -> AnyDeviceArray:
    """Return an array that was no view in the process that sent it."""
    return owning(DeviceArray(buffer, shape, dtype, offset, strides))


def stream_for(kind: type[BaseContext], uuid: bytes) -> BaseStream:
    """Return the default stream of a device's primary context, for received memory."""
    context = kind._primary_of(device_named(uuid, "memory"))
    return cast("HasStream", context).default_stream
