"""`MulticastObject`: one address for memory of each device of a team.

CUDA Driver API, "Multicast Object Management". Kernels use it by `multimem` instructions (PTX ISA,
"multimem.ld_reduce, multimem.st, multimem.red").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from .. import border
from ..driver._api import (
    CUdevice_attribute,
    CUmulticastGranularity_flags,
    CUmulticastObjectProp,
    CUresult,
)
from ..driver.device import Device, needs_version, require_feature
from ..driver.driver_selection import checked, failure
from ..driver.handle import check
from ..errors import ArgumentValueError
from .address_range import AllocationHandle
from .physical_memory import (
    HandleType,
    Mappable,
    PhysicalMemory,
    checked_handle_type,
    context_of,
)

_RECOMMENDED: Final = CUmulticastGranularity_flags.CU_MULTICAST_GRANULARITY_RECOMMENDED
_SUPPORTED: Final = CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED


class _Bound(NamedTuple):
    """Memory of a device in a multicast object, with the handle that keeps it."""

    device: Device
    offset: int
    nbytes: int
    memory: AllocationHandle


class MulticastHandle(AllocationHandle):
    """Owns a multicast object, and unbinds the memory in it first.

    Attributes:
        bound: the memory that is bound.
    """

    __slots__ = ("bound",)

    def __init__(self, device: Device) -> None:
        super().__init__(context_of(device))
        self.bound: list[_Bound] = []

    def unbind(self, bound: _Bound) -> CUresult:
        """Unbind memory; return the driver's result."""
        device, offset, nbytes, _ = bound
        function = self.api.cuMulticastUnbind
        (code,) = self.context.call(function, self.raw, device._raw, offset, nbytes)
        return code

    def _destroy(self) -> None:
        try:
            while self.bound:
                check(self, self.unbind(self.bound.pop()), "cuMulticastUnbind", "unbinding memory")
        finally:  # the driver releases it with memory that is bound, too
            super()._destroy()


class MulticastObject(Mappable):
    """One address for memory of several devices, for `multimem` instructions of kernels.

    Each device of the team binds memory. A `MappedBuffer` over the object has an address for each
    device's kernels. There `multimem.st` writes the memory of all devices, `multimem.red` combines
    a value with all, and `multimem.ld_reduce` loads the combination of all. Other instructions, and
    copies, must not use the address. Use the memory's own mapping for these.

    Needs compute capability 9.0, NVLink switches between the devices, and CUDA 12.1.

    Args:
        nbytes: the size; it is rounded up to the granularity of the object.
        devices: the devices of the team, or their ordinals.
        team_size: the number of devices, if other processes add some of them; they open the object
            by `from_descriptor` or `from_fabric`.
        handle_type: how other processes may open it, as of `PhysicalMemory`.

    Attributes:
        nbytes: the size.
        device: the first device.
        handle_type: how other processes may open it.
        closed: whether it was closed.

    Raises:
        UnsupportedError: a device or the driver has no multicast.
    """

    __slots__ = ("_devices",)

    _devices: list[Device]
    _handle: MulticastHandle

    def __init__(
        self,
        nbytes: int,
        devices: Sequence[Device | int],
        *,
        team_size: int | None = None,
        handle_type: HandleType | None = None,
    ) -> None:
        requested = border.int_in_range("MulticastObject: nbytes", nbytes, 1)
        team = _checked_team("MulticastObject: devices", devices)
        size = len(team)
        if team_size is not None:
            size = border.int_in_range(
                "MulticastObject: team_size", team_size, len(team), 2**31 - 1
            )
        self._device: Device = team[0]
        self._handle_type: HandleType | None = handle_type
        kind = checked_handle_type("MulticastObject: handle_type", handle_type, self.device)
        handle = MulticastHandle(self.device)
        properties = CUmulticastObjectProp()
        properties.numDevices, properties.handleTypes = size, int(kind)
        properties.size = requested
        with needs_version("MulticastObject", (12, 1)):
            query = handle.api.cuMulticastGetGranularity
            unit = checked(
                handle.api,
                "cuMulticastGetGranularity",
                handle.context.call(query, properties, _RECOMMENDED),
                "querying the granularity of a multicast object",
            )
            self._nbytes: int = -(-requested // unit) * unit
            properties.size = self.nbytes
            code = handle.make(handle.api.cuMulticastCreate, properties)
        if code:
            doing = f"making a multicast object of {self.nbytes} bytes for {size} devices"
            raise failure(handle.api, code, "cuMulticastCreate", doing)
        self._add_all(handle, team)

    def _add_all(self, handle: MulticastHandle, team: Sequence[Device]) -> None:
        """Own the object, with these devices in its team."""
        self._devices = list(team)
        for device in team:
            function = handle.api.cuMulticastAddDevice
            (code,) = handle.context.call(function, handle.raw, device._raw)
            if code:
                doing = f"adding {device!r} to a multicast object"
                raise failure(handle.api, code, "cuMulticastAddDevice", doing)
        self._own(handle)

    @classmethod
    def from_descriptor(
        cls, descriptor: int, nbytes: int, devices: Sequence[Device | int]
    ) -> MulticastObject:
        """Open an object that another process exported, and add devices to its team.

        Args:
            descriptor: of `export_descriptor`, received from the other process; you own it.
            nbytes: the size of the object there.
            devices: the devices that this process adds.

        Raises:
            CudaError: the descriptor is of no such object.
            OSError: it is not open in this process.
        """
        where = "MulticastObject.from_descriptor"
        return cls._received(where, nbytes, devices, "posix_fd", descriptor)

    @classmethod
    def from_fabric(
        cls, handle: bytes, nbytes: int, devices: Sequence[Device | int]
    ) -> MulticastObject:
        """Same with the bytes of `export_fabric`, which are not validated."""
        where = "MulticastObject.from_fabric"
        return cls._received(where, nbytes, devices, "fabric", handle)

    @classmethod
    def _received(
        cls,
        where: str,
        nbytes: int,
        devices: Sequence[Device | int],
        handle_type: HandleType,
        exported: int | bytes,
    ) -> MulticastObject:
        self = cls.__new__(cls)
        self._nbytes = border.int_in_range(f"{where}: nbytes", nbytes, 1)
        team = _checked_team(f"{where}: devices", devices)
        self._device = team[0]
        handle = MulticastHandle(self.device)
        self._open_in(handle, where, exported, handle_type)
        self._add_all(handle, team)
        return self

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        devices = [device.ordinal for device in self._devices]
        return f"<MulticastObject{state} {self.nbytes} bytes for devices {devices}>"

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of the team that this process added."""
        return tuple(self._devices)

    def bind(
        self,
        memory: PhysicalMemory,
        *,
        offset: int = 0,
        memory_offset: int = 0,
        nbytes: int | None = None,
    ) -> None:
        """Give a device memory in the object.

        It waits until all devices of the team were added, by other processes too. The object keeps
        the memory until it is unbound, or nothing uses the object any more.

        Args:
            memory: memory of a device of the team.
            offset: where it begins in the object, a multiple of the granularity.
            memory_offset: where the part begins in the memory.
            nbytes: the size of the part; by default all from `memory_offset` on.

        Raises:
            CudaError: the memory does not fit, or something is bound there.
        """
        where = "MulticastObject.bind"
        checked = border.instance_of(f"{where}: memory", memory, PhysicalMemory)
        start = border.int_in_range(f"{where}: offset", offset)
        of_memory = border.int_in_range(f"{where}: memory_offset", memory_offset)
        size = checked.nbytes - of_memory
        if nbytes is not None:
            size = border.int_in_range(f"{where}: nbytes", nbytes, 1)
        handle, owner = self._handle, checked._handle
        function: Callable[..., tuple[CUresult]] = handle.api.cuMulticastBindMem
        (code,) = handle.context.call(function, handle.raw, start, owner.raw, of_memory, size, 0)
        if code:
            doing = f"binding {checked!r} to {self!r} at {start}"
            raise failure(handle.api, code, "cuMulticastBindMem", doing)
        handle.bound.append(_Bound(checked.device, start, size, owner))

    def unbind(self, memory: PhysicalMemory) -> None:
        """Remove memory from the object; kernels that use it have ended.

        Raises:
            ArgumentValueError: the memory is not bound.
        """
        checked = border.instance_of("MulticastObject.unbind: memory", memory, PhysicalMemory)
        handle = self._handle
        bindings = [binding for binding in handle.bound if binding.memory is checked._handle]
        if not bindings:
            raise ArgumentValueError(f"{checked!r} is not bound to {self!r}")
        for binding in bindings:
            code = handle.unbind(binding)
            if code:
                doing = f"unbinding {checked!r} from {self!r}"
                raise failure(handle.api, code, "cuMulticastUnbind", doing)
            handle.bound.remove(binding)


def _checked_team(where: str, devices: Sequence[Device | int]) -> list[Device]:
    """Return devices that have multicast.

    Raises:
        UnsupportedError: one has none.
    """
    checked = border.instance_of(where, devices, Sequence)
    team = [Device.get(item) for item in checked]
    if not team:
        raise border.wrong_type(where, devices, "give one or more")
    for device in team:
        require_feature(where, device, _SUPPORTED)
    return team
