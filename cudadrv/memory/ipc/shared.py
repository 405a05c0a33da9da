"""What of a device's memory this process shares with others, and the boxes of what it opened.

One memory of another process has one box here, whatever the number of arrays: so its uses are
ordered among each other, and it is closed once.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Hashable
from typing import Any, Final, ParamSpec
from weakref import WeakKeyDictionary, WeakValueDictionary

from ...driver._api import (
    CUdeviceptr,
    CUipcMemHandle,
    CUmemAllocationHandleType,
    CUmemoryPool,
    CUmemPoolPtrExportData,
    CUresult,
    of_opaque_bytes,
    opaque_bytes,
)
from ...driver.context_handle import ChildHandle, ContextHandle
from ...driver.device import Device
from ...driver.driver_selection import Driver, failure
from ...driver.handle import Closeable, check
from ...driver.pickling import Reduced, device_named, unshared
from ...driver.stream_handle import StreamHandle
from ..host.pinned import wait_for_contexts
from ..order import AnyMemory, Memory
from ..release import PoolMemory

BY_DESCRIPTOR: Final = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_LAZY_PEERS: Final = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only flag, which must be given

_P = ParamSpec("_P")


class SharedMemory:
    """What of one device is shared. Who opens something holds `Driver.lock`.

    Attributes:
        own: what owns memory of this process, by the handles of that.
        opened: memory of other processes by what names it; of pools, these know it.
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
        """What is shared of a device; there is one for the process."""
        return driver.one_of(cls, ordinal)


class _Pool(ChildHandle[CUmemoryPool]):
    """Destroys a pool, for its `PoolHandle`. The driver keeps it until what it gave is freed.

    Attributes:
        descriptor: as of the `PoolHandle`.
    """

    __slots__ = ("descriptor",)

    def __init__(self, context: ContextHandle) -> None:
        super().__init__(context)
        self.descriptor: int = -1

    def _destroy(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        (code,) = self.api.cuMemPoolDestroy(self.raw)
        doing = f"destroying a memory pool of device {self.context.ordinal}"
        check(self, code, "cuMemPoolDestroy", doing)


class PoolHandle(ChildHandle[CUmemoryPool]):
    """A pool, destroyed with this.

    Attributes:
        identity: what names it among processes; none of a pool that is not shared.
        is_foreign: whether it is another process's.
    """

    __slots__ = ("_exported", "_opened", "destroyer", "identity", "is_foreign")

    def __init__(self, context: ContextHandle) -> None:
        self.identity: bytes = b""
        self.is_foreign: bool = False
        self.destroyer: _Pool = _Pool(context)
        self._exported: WeakKeyDictionary[AnyMemory, bytes] = WeakKeyDictionary()
        self._opened: WeakValueDictionary[bytes, ForeignMemory] = WeakValueDictionary()
        super().__init__(context)

    @property
    def descriptor(self) -> int:
        """The file descriptor by which others have it; -1 of a pool that is not shared."""
        return self.destroyer.descriptor

    def make(
        self,
        function: Callable[_P, tuple[CUresult, CUmemoryPool]],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> CUresult:
        """Have the driver make the pool; gives its result."""
        code = super().make(function, *args, **kwargs)
        self.destroyer.raw = self.raw
        return code

    def share(self) -> CUresult:
        """Have a descriptor by which other processes may have the pool; gives the result."""
        export = self.api.cuMemPoolExportToShareableHandle
        code, number = export(self.raw, BY_DESCRIPTOR, 0)
        if not code:
            self._be_known(int(number), secrets.token_bytes(16))
        return code

    def _be_known(self, descriptor: int, identity: bytes) -> None:
        """Have a descriptor, which is the box's from now on."""
        self.destroyer.descriptor, self.identity = descriptor, identity
        SharedMemory.of(self.driver, self.context.ordinal).pools[identity] = self

    @classmethod
    def imported(cls, device: Device, descriptor: int, identity: bytes = b"") -> PoolHandle:
        """A pool of another process, by a descriptor, which is closed here where it fails.

        Once more it is the same; a pool of this process is itself.
        """
        owner = device.driver
        try:
            with owner.lock:
                known = SharedMemory.of(owner, device.ordinal).pools.get(identity)
                if known is not None:
                    return known
                context = ContextHandle(
                    owner, device.primary_context(), device.ordinal, is_primary=True
                )
                box = cls(context)
                box.is_foreign = True
                code = box.make(
                    owner.api.cuMemPoolImportFromShareableHandle, descriptor, BY_DESCRIPTOR, 0
                )
                if code:
                    doing = f"taking a memory pool of another process on {device!r}"
                    raise failure(owner.api, code, "cuMemPoolImportFromShareableHandle", doing)
                box._be_known(descriptor, identity or secrets.token_bytes(16))
                descriptor = -1
                return box
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def export(self, memory: AnyMemory) -> bytes:
        """What names memory of the pool to whoever has that; always the same."""
        found = self._exported.get(memory)
        if found is None:
            export = self.api.cuMemPoolExportPointer
            code, made = self.context.call(export, CUdeviceptr(int(memory.raw)))
            if code:
                raise failure(self.api, code, "cuMemPoolExportPointer", "sharing memory of a pool")
            found = self._exported.setdefault(memory, opaque_bytes(made))
        return found

    def open(self, payload: bytes, stream: StreamHandle) -> ForeignMemory:
        """Memory of the pool that another process has allocated."""
        with self.driver.lock:
            found = self._opened.get(payload)
            if found is None:
                found = ForeignMemory(self, payload, stream)
                code = found.open()
                if code:
                    doing = "opening memory of another process's pool"
                    raise failure(self.api, code, "cuMemPoolImportPointer", doing)
                self._opened[payload] = found
            return found


class _Opening(ChildHandle[CUdeviceptr]):
    """Closes memory of another process, for what is found in `SharedMemory`.

    Closing waits for the work of all contexts. The driver counts no openings: it would take a new
    opening away with a free that is still queued.

    Attributes:
        pool: the pool that the memory is of, which is destroyed later; None if it is of none.
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
    """Memory of another process's pool: given back here, it is still that one's.

    Attributes:
        payload: what names it.
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
        """Have the driver open it; gives its result."""
        made = of_opaque_bytes(CUmemPoolPtrExportData, self.payload)
        code = self.destroyer.make(self.api.cuMemPoolImportPointer, self.pool.raw, made)
        self.raw = self.destroyer.raw
        return code

    def __del__(self) -> None:
        """Nothing: what closes the memory goes with this."""


class OpenedMemory(Memory[CUdeviceptr]):
    """An allocation of another process, which may be used anywhere here.

    Attributes:
        payload: what names it.
    """

    __slots__ = ("destroyer", "payload")

    raw: CUdeviceptr

    def __init__(self, stream: StreamHandle, payload: bytes) -> None:
        super().__init__(stream.context, None, stream.own)
        self.payload: bytes = payload
        self.destroyer: _Opening = _Opening(stream.context)

    @classmethod
    def open(cls, payload: bytes, stream: StreamHandle) -> OpenedMemory:
        """The whole allocation that a handle names."""
        context = stream.context
        with context.driver.lock:
            known = SharedMemory.of(context.driver, context.ordinal).opened
            found = known.get(payload)
            if found is None:
                found = cls(stream, payload)
                made = of_opaque_bytes(CUipcMemHandle, payload)
                code = found.destroyer.make(context.api.cuIpcOpenMemHandle, made, _LAZY_PEERS)
                found.raw = found.destroyer.raw
                if code:
                    doing = "opening memory of another process"
                    raise failure(context.api, code, "cuIpcOpenMemHandle", doing)
                known[payload] = found
            return found


def reduced_pool(box: PoolHandle) -> Reduced:
    """A pool for multiprocessing.

    Raises:
        ExportError: it was not made to be shared.
    """
    # As that asks to be used: within the start of a process, or over a connection.
    from multiprocessing.reduction import DupFd

    if box.descriptor < 0:
        raise unshared("a memory pool", "make it with shareable=True")
    uuid = Device.get(box.context.ordinal).uuid.bytes
    return _received_pool, (uuid, box.identity, DupFd(box.descriptor))


# What `DupFd` gives has no public type; it has `detach`.
def _received_pool(uuid: bytes, identity: bytes, descriptor: Any) -> PoolHandle:
    number = descriptor.detach()  # first: it waits for it in the other process
    try:
        device = device_named(uuid, "a memory pool")
    except BaseException:
        os.close(number)
        raise
    return PoolHandle.imported(device, number, identity)
