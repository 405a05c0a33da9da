"""`PhysicalMemory` and `MappedBuffer`: memory without an address, and buffers it is mapped into.

CUDA Driver API, "Virtual Memory Management".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Self, TypeAlias

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import (
    OPAQUE_BYTES,
    CUdevice_attribute as _Attribute,
    CUmemAllocationHandleType as _HandleType,
    CUmemAllocationProp,
    CUmemFabricHandle,
    CUmemGenericAllocationHandle,
    CUmemLocationType,
    CUresult,
    of_opaque_bytes,
    opaque_bytes,
)
from ..driver.context_handle import ContextHandle
from ..driver.device import Device, require_feature
from ..driver.driver_selection import failure
from ..driver.handle import Closeable
from ..driver.pickling import unshared
from ..driver.stream import BaseStream, require_stream
from ..errors import (
    ArgumentValueError,
    CudadrvError,
    PeerAccessUnsupportedError,
)
from .address_range import AllocationHandle, ReservedRange, device_memory, granularity
from .buffer import DeviceBuffer

HandleType: TypeAlias = Literal["posix_fd", "fabric"]

_HANDLE_TYPES: Final = {
    None: _HandleType.CU_MEM_HANDLE_TYPE_NONE,
    "posix_fd": _HandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    "fabric": _HandleType.CU_MEM_HANDLE_TYPE_FABRIC,
}
_NEEDED: Final = {
    "posix_fd": _Attribute.CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
    "fabric": _Attribute.CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
}
# The bindings of CUDA 12 lack CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED.
_HOST_NUMA: Final = 141


def checked_handle_type(where: str, handle_type: HandleType | None, device: Device) -> _HandleType:
    """Return the driver's type of a handle for other processes.

    Raises:
        UnsupportedError: the device has none of this type.
    """
    value: object = handle_type
    if value is not None and not (isinstance(value, str) and value in _NEEDED):
        raise border.wrong_type(where, handle_type, 'give "posix_fd", "fabric" or None')
    if handle_type is not None:
        require_feature(f'{where}: "{handle_type}"', device, _NEEDED[handle_type])
    return _HANDLE_TYPES[handle_type]


def context_of(device: Device) -> ContextHandle:
    """Return a handle of a device's primary context."""
    return ContextHandle(device.driver, device.primary_context(), device.ordinal, is_primary=True)


class Mappable(Closeable):
    """Memory, or a multicast object: a range of addresses can be mapped to it.

    Attributes:
        device: the device that it was made with.
        nbytes: its size.
        handle_type: how other processes may open it: "posix_fd", "fabric" or None.
    """

    __slots__ = ("_device", "_handle_type", "_nbytes")

    _remedy = "send export_descriptor() or export_fabric() to the other process"
    _device: Device
    device: ReadOnly[Device] = ReadOnly("_device")
    _nbytes: int
    nbytes: ReadOnly[int] = ReadOnly("_nbytes")
    _handle_type: HandleType | None
    handle_type: ReadOnly[HandleType | None] = ReadOnly("_handle_type")
    _handle: AllocationHandle

    @property
    def handle(self) -> CUmemGenericAllocationHandle:
        """The CUmemGenericAllocationHandle.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    @property
    def _closed_text(self) -> str:
        name = type(self).__name__
        return f"the {name} of {self._nbytes} bytes of device {self._device.ordinal} was closed"

    def export_descriptor(self) -> int:
        """Return a new file descriptor, by which another process of the host opens it.

        You own the descriptor, and close it. The memory exists while any process has a handle, a
        descriptor or a mapping of it.

        Raises:
            ExportError: it was not made with ``handle_type="posix_fd"``.
        """
        exported = self._export("posix_fd")
        assert isinstance(exported, int)
        return exported

    def export_fabric(self) -> bytes:
        """Return 64 bytes, by which processes of the NVLink domain open it, also on other hosts.

        Raises:
            ExportError: it was not made with ``handle_type="fabric"``.
        """
        exported = self._export("fabric")
        assert isinstance(exported, CUmemFabricHandle)
        return opaque_bytes(exported)

    def _export(self, handle_type: HandleType) -> object:
        handle = self._handle
        raw = handle.raw
        if self._handle_type != handle_type:
            raise unshared(repr(self), f'make it with handle_type="{handle_type}"')
        kind = _HANDLE_TYPES[handle_type]
        code, exported = handle.api.cuMemExportToShareableHandle(raw, kind, 0)
        if code:
            raise failure(handle.api, code, "cuMemExportToShareableHandle", f"exporting {self!r}")
        return exported

    def _open_in(
        self, handle: AllocationHandle, where: str, exported: int | bytes, handle_type: HandleType
    ) -> None:
        """Open in a handle what another process has exported: a descriptor or a fabric handle."""
        self._handle_type = handle_type
        function, kind = handle.api.cuMemImportFromShareableHandle, _HANDLE_TYPES[handle_type]
        if handle_type == "fabric":
            content = border.instance_of(f"{where}: handle", exported, bytes)
            if len(content) != OPAQUE_BYTES:
                raise ArgumentValueError(
                    f"{where}: handle has {len(content)} bytes: a fabric handle has {OPAQUE_BYTES}"
                )
            fabric = of_opaque_bytes(CUmemFabricHandle, content)
            code = handle.make(function, fabric.getPtr(), kind)
        else:
            number = border.descriptor(f"{where}: descriptor", exported)
            code = handle.make(function, number, kind)
        if code:
            doing = f"opening memory of {self._nbytes} bytes by a handle of type {handle_type!r}"
            raise failure(handle.api, code, "cuMemImportFromShareableHandle", doing)


class PhysicalMemory(Mappable):
    """Memory without an address: of a device, or of a NUMA node of the host.

    `MappedBuffer` maps it to addresses, at several of them if you like. The memory exists while it
    is mapped or bound, also after `close`.

    Args:
        nbytes: the size; it is rounded up to the granularity of the device, 2 MiB so far.
        device: the device of the memory, or its ordinal.
        numa_node: the number of a NUMA node of the host; None for memory of the device.
        handle_type: how other processes may open it: "posix_fd" on the same host, "fabric" also on
            other hosts of an NVLink domain, or None.

    Attributes:
        nbytes: the size.
        device: the device.
        numa_node: the NUMA node of the host; None for memory of the device.
        handle_type: how other processes may open it.
        closed: whether it was closed.

    Raises:
        OutOfMemoryError: the device has not enough memory.
        UnsupportedError: the device or the driver has no memory, or no handles, of this kind.
    """

    __slots__ = ("_numa_node",)

    _numa_node: int | None
    numa_node: ReadOnly[int | None] = ReadOnly("_numa_node")

    def __init__(
        self,
        nbytes: int,
        device: Device | int = 0,
        *,
        numa_node: int | None = None,
        handle_type: HandleType | None = None,
    ) -> None:
        requested = border.int_in_range("PhysicalMemory: nbytes", nbytes, 1)
        self._device: Device = Device.get(device)
        self._numa_node = numa_node
        self._handle_type: HandleType | None = handle_type
        properties = allocation_properties("PhysicalMemory", self.device, numa_node, handle_type)
        handle = AllocationHandle(context_of(self.device))
        unit = granularity(handle.context, properties)
        self._nbytes: int = -(-requested // unit) * unit
        code = handle.make(handle.api.cuMemCreate, self.nbytes, properties, 0)
        if code:
            raise creation_error(self.device, code, self.nbytes)
        self._own(handle)

    @classmethod
    def from_descriptor(cls, descriptor: int, nbytes: int, device: Device | int = 0) -> Self:
        """Open memory that another process exported; you still own the descriptor.

        Args:
            descriptor: of `export_descriptor`, received from the other process.
            nbytes: the size of the memory there.
            device: the device of the memory.

        Raises:
            CudaError: the descriptor is of no such memory.
            OSError: it is not open in this process.
        """
        where = "PhysicalMemory.from_descriptor"
        return cls._received(where, nbytes, device, descriptor, "posix_fd")

    @classmethod
    def from_fabric(cls, handle: bytes, nbytes: int, device: Device | int = 0) -> Self:
        """Open memory that another process exported, of this host or of the NVLink domain.

        Args:
            handle: the bytes of `export_fabric`. They are not validated: as with pickles, open only
                those from processes you trust.
            nbytes: the size of the memory there.
            device: the device that opens it.

        Raises:
            CudaError: the handle is of no such memory.
        """
        where = "PhysicalMemory.from_fabric"
        return cls._received(where, nbytes, device, handle, "fabric")

    @classmethod
    def _received(
        cls,
        where: str,
        nbytes: int,
        device: Device | int,
        exported: int | bytes,
        handle_type: HandleType,
    ) -> Self:
        self = cls.__new__(cls)
        self._device, self._numa_node = Device.get(device), None
        self._nbytes = border.int_in_range(f"{where}: nbytes", nbytes, 1)
        handle = AllocationHandle(context_of(self.device))
        self._open_in(handle, where, exported, handle_type)
        self._own(handle)
        return self

    def __repr__(self) -> str:
        node = "" if self._numa_node is None else f"NUMA node {self._numa_node} of the host, for "
        state = " closed" if self.closed else ""
        return f"<PhysicalMemory{state} {self.nbytes} bytes of {node}device {self.device.ordinal}>"


def allocation_properties(
    where: str, device: Device, numa_node: int | None, handle_type: HandleType | None
) -> CUmemAllocationProp:
    """Return the properties of new memory.

    Raises:
        UnsupportedError: the device or the driver has none of this kind.
    """
    require_feature(
        where, device, _Attribute.CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED
    )
    kind = checked_handle_type(f"{where}: handle_type", handle_type, device)
    properties = device_memory(device.ordinal, kind)
    if numa_node is not None:
        number = border.int_in_range(f"{where}: numa_node", numa_node, most=2**31 - 1)
        require_feature(f"{where}: numa_node", device, _HOST_NUMA)
        properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA
        properties.location.id = number
    return properties


def creation_error(device: Device, code: CUresult, nbytes: int) -> CudadrvError:
    """Return the error of cuMemCreate."""
    doing = f"allocating {nbytes} bytes for {device!r}"
    return failure(device.driver.api, code, "cuMemCreate", doing)


def mapping_error(reserved: ReservedRange, code: CUresult, call: str, content: str) -> CudadrvError:
    """Return the error of a call that maps memory, or opens it to devices."""
    devices = sorted({reserved.context.ordinal, *reserved.others})
    doing = f"mapping {content} for devices {devices}"
    if code == CUresult.CUDA_ERROR_INVALID_DEVICE:
        return PeerAccessUnsupportedError(doing, call=call)
    return failure(reserved.api, code, call, doing)


class MappedBuffer(DeviceBuffer):
    """A buffer at new addresses, which memory is mapped to, one piece after the other.

    Arrays over it are made as over any buffer: ``DeviceArray(buffer, shape, dtype)``. Closing it
    unmaps the memory, once all work of every context is done.

    Kernels of the stream's device may use it, and those of devices that it is open to. They need no
    `Context.enable_peer_access`.

    Args:
        stream: the stream in whose order it is first used.
        pieces: memory, also of several devices, or one multicast object. They may be closed
            afterwards.
        open_to: other devices that may use the memory, or their ordinals.

    Attributes:
        ptr: the device address.
        nbytes: the size of all pieces together.
        closed: whether it was closed.

    Raises:
        PeerAccessUnsupportedError: the hardware does not connect two of the devices in that way.
        CudaError: the driver reported an error.
    """

    __slots__ = ()

    _remedy = "send the PhysicalMemory, and map it there"

    def __init__(
        self,
        stream: BaseStream,
        pieces: Sequence[Mappable],
        *,
        open_to: Sequence[Device | int] = (),
    ) -> None:
        require_stream("MappedBuffer: stream", stream)
        checked = border.instance_of("MappedBuffer: pieces", pieces, Sequence)
        handles = [
            border.instance_of("MappedBuffer: a piece", piece, Mappable)._handle
            for piece in checked
        ]
        for handle in handles:
            handle.raw  # noqa: B018  # raises once it is closed
        if not handles:
            raise border.wrong_type("MappedBuffer: pieces", pieces, "give one or more")
        other_devices = border.instance_of("MappedBuffer: open_to", open_to, Sequence)
        devices = [Device.get(other_device) for other_device in other_devices]
        queue = stream._handle
        nbytes = sum(piece.nbytes for piece in checked)
        reserved = ReservedRange.reserved(queue, nbytes)
        own_ordinal = queue.context.ordinal
        reserved.others = frozenset(device.ordinal for device in devices) - {own_ordinal}
        for piece, handle in zip(checked, handles, strict=True):
            reserved.destroyer.held.append(handle)
            code, call = reserved.map(handle, piece.nbytes)
            if code:
                raise mapping_error(reserved, code, call, repr(piece))
        self._hold(stream, reserved, int(reserved.raw), nbytes)

    @property
    def _range(self) -> ReservedRange:
        reserved = self._memory
        assert isinstance(reserved, ReservedRange)
        return reserved

    def __repr__(self) -> str:
        location = "closed" if self.closed else f"at {self._address:#x}"
        return f"<MappedBuffer {self.nbytes} bytes {location} on device {self.context.ordinal}>"

    def open_to(self, device: Device | int) -> None:
        """Let another device use the memory in place, in copies and kernels.

        Raises:
            PeerAccessUnsupportedError: the hardware does not connect the two devices in that way.
        """
        self._set_access(device, is_open=True)

    def close_to(self, device: Device | int) -> None:
        """Let another device use the memory no longer; its kernels have ended."""
        self._set_access(device, is_open=False)

    def _set_access(self, device: Device | int, *, is_open: bool) -> None:
        reserved = self._range
        user = Device.get(device)
        if user.ordinal == reserved.context.ordinal:
            raise ArgumentValueError(f"{self!r} is always open to its own device")
        code = reserved.set_access(user.ordinal, is_open=is_open)
        if code:
            raise mapping_error(reserved, code, "cuMemSetAccess", repr(self))

    def is_open_to(self, device: Device | int) -> bool:
        """Return whether a device may use the memory."""
        reserved = self._range
        user = Device.get(device)
        return user.ordinal in (reserved.context.ordinal, *reserved.others)
