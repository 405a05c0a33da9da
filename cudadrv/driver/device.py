"""Devices: finding them, and reading their properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from ptx.read_only import Guarded

from .. import border, errors
from ._api import CUcontext, CUdevice, CUdevice_attribute, CUmemoryPool, driver as bindings
from .context_handle import ContextHandle
from .driver_api import DriverApi
from .driver_selection import Driver, call_bound, checked, current, device_count, failure
from .types import MemoryInfo

if TYPE_CHECKING:
    import uuid

    from ..nvml import NvmlDevice
    from .attributes import DeviceAttribute
    from .capability import GpuDeviceInfo


class DeviceProperties:
    """The attributes of a device, each under its name in lower case.

    Such as ``device.properties.multiprocessor_count``; `DeviceAttribute` lists the names. An
    attribute that the driver does not support raises `AttributeError`.
    """

    __slots__ = ("_device", "_query")

    def __init__(self, device: str, query: Callable[[DeviceAttribute], int]) -> None:
        self._device = device
        self._query = query

    def __repr__(self) -> str:
        return f"<DeviceProperties of {self._device}>"

    def __dir__(self) -> list[str]:
        from .attributes import DeviceAttribute

        return sorted(
            [*object.__dir__(self), *(attribute.name.lower() for attribute in DeviceAttribute)]
        )

    def __getattr__(self, name: str) -> int:
        from .attributes import DeviceAttribute

        try:
            return self._query(DeviceAttribute[name.upper()])
        except (KeyError, errors.InvalidValueError) as error:
            raise AttributeError(
                f"the driver has no property {name!r} of a device: see DeviceAttribute"
            ) from error


class Device(Guarded):
    """A CUDA device; one object per ordinal and driver, from `Device.get`."""

    def __init__(self, driver: Driver, ordinal: int, handle: CUdevice) -> None:
        self._driver = driver
        self._ordinal = ordinal
        self._raw = handle
        self._attributes: dict[int, int] = {}
        self._primary: CUcontext | None = None
        self._default_pool: CUmemoryPool | None = None

    @classmethod
    def get(cls, ordinal: int | Device) -> Device:
        """Return the device of an ordinal, counted from 0 among those of CUDA_VISIBLE_DEVICES.

        A `Device` is returned unchanged, so that callers may accept either.

        Raises:
            DriverNotFoundError: there is no CUDA driver.
            NoDeviceError: there is no device at all.
            InvalidDeviceError: there is none of this ordinal.
        """
        if isinstance(ordinal, Device):
            return ordinal
        driver = current()
        cache = driver.cache(Device)
        device = cache.get(ordinal) if type(ordinal) is int else None
        if device is None:
            ordinal = border.integer("Device.get: ordinal", ordinal)
            count = device_count(driver.api)
            if not 0 <= ordinal < count:
                if count == 0:
                    raise errors.NoDeviceError(f"getting device {ordinal}")
                raise errors.InvalidDeviceError(f"getting device {ordinal} of {count}")
            result = driver.api.cuDeviceGet(ordinal)
            handle = checked(driver.api, "cuDeviceGet", result, f"getting device {ordinal}")
            device = cache.setdefault(ordinal, cls(driver, ordinal, handle))
        return device

    @classmethod
    def by_pci(cls, bus_id: str) -> Device:
        """Return the device at a PCI address, such as "0000:3b:00.0" or "3b:00.0".

        Raises:
            InvalidDeviceError: no device of this process has the address.
        """
        address = border.text("Device.by_pci: bus_id", bus_id).lower()
        if address.count(":") == 1:
            address = f"0000:{address}"
        devices = list_devices()
        for device in devices:
            if device.pci_bus_id == address or device.pci_bus_id.split(".")[0] == address:
                return device
        addresses = ", ".join(device.pci_bus_id for device in devices) or "none"
        raise errors.InvalidDeviceError(f"getting the device at {bus_id}; there are: {addresses}")

    def __repr__(self) -> str:
        return f"<Device {self.ordinal}: {self.name}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Device.get, (self._ordinal,)

    @property
    def _api(self) -> DriverApi:
        return self._driver.api

    @property
    def ordinal(self) -> int:
        """The device's number in this process, from 0."""
        return self._ordinal

    @property
    def handle(self) -> CUdevice:
        """The CUdevice."""
        return self._raw

    @property
    def driver(self) -> Driver:
        """The driver that found the device."""
        return self._driver

    @property
    def is_emulated(self) -> bool:
        """Whether this is a device of the emulator."""
        return self._driver.is_emulated

    @cached_property
    def name(self) -> str:
        """The device's product name."""
        api, doing = self._api, f"naming device {self._ordinal}"
        return _text(checked(api, "cuDeviceGetName", api.cuDeviceGetName(256, self._raw), doing))

    @cached_property
    def uuid(self) -> uuid.UUID:
        """The device's UUID, as nvidia-smi -L prints it after "GPU-"."""
        import uuid  # like `info`, a millisecond that most starts save

        api, doing = self._api, f"device {self._ordinal}'s UUID"
        value = checked(api, "cuDeviceGetUuid", api.cuDeviceGetUuid(self._raw), doing)
        return uuid.UUID(bytes=bytes(value.bytes))

    @cached_property
    def pci_bus_id(self) -> str:
        """The PCI address, such as ``0000:3b:00.0`` (domain, bus, device and function)."""
        api, doing = self._api, f"device {self._ordinal}'s PCI address"
        text = checked(api, "cuDeviceGetPCIBusId", api.cuDeviceGetPCIBusId(32, self._raw), doing)
        return _text(text).lower()

    @cached_property
    def total_memory(self) -> int:
        """The device's memory in bytes."""
        api, doing = self._api, f"device {self._ordinal}'s memory"
        return checked(api, "cuDeviceTotalMem", api.cuDeviceTotalMem(self._raw), doing)

    @property
    def compute_capability(self) -> tuple[int, int]:
        """(major, minor), such as (9, 0)."""
        return (
            self.attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self.attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )

    def attribute(self, attribute: DeviceAttribute | int) -> int:
        """Return the value of an attribute; queried once, then cached.

        Members of the binding's own enumeration avoid importing `DeviceAttribute`.

        Raises:
            InvalidValueError: this driver, or this cuda-bindings, does not support the attribute.
        """
        try:
            value = self._attributes.get(attribute)
        except TypeError:  # values other than numbers may have no hash
            value = None
        if value is None:
            number: object = attribute
            if not isinstance(number, int):
                border.integer("Device.attribute: attribute", number)
            doing = f"attribute {border.shown(attribute)} of device {self._ordinal}"
            try:
                native = CUdevice_attribute(int(attribute))
            except ValueError as error:
                raise errors.InvalidValueError(
                    f"{doing}, which is missing in the installed cuda-bindings"
                ) from error
            api = self._driver.api
            result = api.cuDeviceGetAttribute(native, self._raw)
            value = checked(api, "cuDeviceGetAttribute", result, doing)
            self._attributes[attribute] = value
        return value

    @property
    def properties(self) -> DeviceProperties:
        """All attributes by name, such as ``properties.multiprocessor_count``."""
        return DeviceProperties(repr(self), self.attribute)

    def primary_context(self) -> CUcontext:
        """Return the raw primary context, retained once per process."""
        if self._primary is None:
            with self._driver.lock:
                if self._primary is None:
                    api = self._api
                    doing = f"retaining the primary context of device {self._ordinal}"
                    result = api.cuDevicePrimaryCtxRetain(self._raw)
                    self._primary = checked(api, "cuDevicePrimaryCtxRetain", result, doing)
        return self._primary

    def forget_primary(self) -> None:
        """Query the primary context and the pool again, as the device was reset."""
        self._primary = self._default_pool = None

    def default_pool(self) -> CUmemoryPool:
        """Return the pool of stream-ordered allocations; queried once."""
        if self._default_pool is None:
            api, doing = self._api, f"getting the memory pool of device {self._ordinal}"
            result = api.cuDeviceGetDefaultMemPool(self._raw)
            self._default_pool = checked(api, "cuDeviceGetDefaultMemPool", result, doing)
        return self._default_pool

    def memory_info(self) -> MemoryInfo:
        """Query free and total bytes; this makes the device's primary context if there is none."""
        api, doing = self._api, f"device {self._ordinal}'s free memory"
        result = call_bound(api, self.primary_context(), api.cuMemGetInfo)
        return MemoryInfo(*checked(api, "cuMemGetInfo", result, doing))

    @cached_property
    def nvml(self) -> NvmlDevice:
        """The reports of NVML, such as MIG, MPS, ECC errors, clock rates, NVLinks and processes.

        It needs nvidia-ml-py, of the extra `cli`.

        Raises:
            NvmlNotFoundError: nvidia-ml-py or NVML's library is missing; the text has the remedy.
            UnsupportedError: NVML does not list the device, as it is emulated.
        """
        from ..nvml import nvml

        pci_bus_id = None if self.is_emulated else self.pci_bus_id  # a GPU may have the same
        nvml_device = nvml().device(f"GPU-{self.uuid}", pci_bus_id)
        if nvml_device is None:
            raise errors.UnsupportedError(
                f"NVML does not list {self!r}\n"
                "  an emulated device is listed under `python -m cudadrv emulate`"
            )
        return nvml_device

    def info(self) -> GpuDeviceInfo:
        """Return the properties by which the runtime layer ranks the device, read now."""
        from .attributes import DeviceAttribute
        from .capability import GpuCapability, GpuDeviceInfo

        memory = self.memory_info()
        return GpuDeviceInfo(
            ordinal=self._ordinal,
            name=self.name,
            capability=GpuCapability.from_compute_capability(*self.compute_capability),
            sm_count=self.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT),
            max_threads_per_sm=self.attribute(DeviceAttribute.MAX_THREADS_PER_MULTIPROCESSOR),
            max_shared_mem_per_block=self.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK),
            l2_cache_bytes=self.attribute(DeviceAttribute.L2_CACHE_SIZE),
            total_mem_bytes=memory.total,
            free_mem_bytes=memory.free,
            ecc_enabled=bool(self.attribute(DeviceAttribute.ECC_ENABLED)),
            integrated=bool(self.attribute(DeviceAttribute.INTEGRATED)),
            # The driver has no attribute for it; an instance's name contains "MIG 1g.10gb".
            mig_mode=" MIG " in f" {self.name} ",
        )


def init() -> None:
    """Initialise the driver (cuInit); idempotent. Every entry point does it as well."""
    current()


def driver_version() -> tuple[int, int]:
    """Return the CUDA version that the driver supports, such as (13, 0)."""
    api, doing = current().api, "querying the driver's version"
    version = checked(api, "cuDriverGetVersion", api.cuDriverGetVersion(), doing)
    return _version_of(version)


@contextmanager
def needs_version(operation: str, since: tuple[int, int]) -> Iterator[None]:
    """Name the CUDA version that an operation needs if the driver or the bindings lack its call.

    Raises:
        UnsupportedError: a call in the block was of a function that they lack.
    """
    try:
        yield
    except errors.DriverSymbolMissingError as error:
        required, installed = (".".join(map(str, version)) for version in (since, driver_version()))
        raise errors.UnsupportedError(
            f"{operation} needs a driver and cuda-bindings of CUDA {required}: "
            f"the driver has CUDA {installed}"
            f"\n  {error}"
        ) from error


def require_version(operation: str, since: tuple[int, int]) -> None:
    """Raise if the driver or cuda-bindings is of an older version of CUDA.

    Raises:
        UnsupportedError: one is; the text names the version that the operation needs, and both.
    """
    installed, of_bindings = driver_version(), _version_of(bindings.CUDA_VERSION)
    if min(installed, of_bindings) < since:
        shown = [".".join(map(str, version)) for version in (since, installed, of_bindings)]
        raise errors.UnsupportedError(
            f"{operation} needs a driver and cuda-bindings of CUDA {shown[0]}: "
            f"the driver has CUDA {shown[1]}"
            f"\n  cuda-bindings has CUDA {shown[2]}"
        )


def _version_of(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10


def require_feature(feature: str, device: Device, attribute: int) -> None:
    """Raise if a device lacks a feature, by the number of its attribute.

    Raises:
        UnsupportedError: it does; the text names the device and the driver's version.
    """
    try:
        if device.attribute(attribute):
            return
    except errors.InvalidValueError:  # an older driver or cuda-bindings has no such attribute
        pass
    from .attributes import DeviceAttribute  # for the text alone

    major, minor = device.compute_capability
    version = ".".join(map(str, driver_version()))
    raise errors.UnsupportedError(
        f"{feature}: device {device.ordinal} has none of it, with a driver of CUDA {version}\n"
        f"  it is {device.name}, of compute capability {major}.{minor}, without the attribute "
        f"{DeviceAttribute(attribute).name}"
    )


def list_devices() -> tuple[Device, ...]:
    """Return every device, by ordinal; empty if the driver reports none."""
    return tuple(Device.get(ordinal) for ordinal in range(device_count(current().api)))


def best_device() -> Device:
    """Return the device with the most free memory.

    Total memory, then the lower ordinal, break ties.

    Raises:
        NoDeviceError: there is no device.
    """
    devices = list_devices()
    if not devices:
        raise errors.NoDeviceError("choosing the best device")
    return max(devices, key=lambda device: (*device.memory_info(), -device.ordinal))


def device_at_work() -> Device:
    """Return a device for objects that belong to none, without making a new context if possible.

    It is the device of the calling thread's current context, of any library. Without one it is the
    first that this process has a context on, or the first of all.
    """
    driver = current()
    doing, call = "querying the current device", "cuCtxGetCurrent"
    code, handle = driver.api.cuCtxGetCurrent()
    if not code and int(handle):
        call = "cuCtxGetDevice"
        code, number = driver.api.cuCtxGetDevice()
        if not code:
            return next(device for device in list_devices() if int(device.handle) == int(number))
    if code:
        raise failure(driver.api, code, call, doing)
    devices = driver.cache(Device).values()
    at_work = {device.ordinal for device in tuple(devices) if device._primary is not None}
    at_work.update(
        context.ordinal
        for context in driver.contexts.alive()
        if isinstance(context, ContextHandle) and not context.is_gone
    )
    return Device.get(min(at_work, default=0))


def can_access_peer(device: Device, peer: Device) -> bool:
    """Return whether kernels on `device` can access the memory of `peer` directly."""
    border.sequence_of("can_access_peer: devices", (device, peer), Device)
    api = device.driver.api
    doing = f"querying whether device {device.ordinal} can access device {peer.ordinal}"
    result = api.cuDeviceCanAccessPeer(device.handle, peer.handle)
    return bool(checked(api, "cuDeviceCanAccessPeer", result, doing))


def _text(raw: bytes) -> str:
    """Return the C string in a buffer that may be longer."""
    return raw.split(b"\0", 1)[0].decode(errors="replace")
