"""The C functions of NVML, those of `libnvidia-ml.so.1`, for emulated devices.

NVML API Reference Guide. It lists all devices; CUDA_VISIBLE_DEVICES has no effect. Nothing is
measured: utilization is 0, and no process is listed.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ptx.standard_streams import write_error

from ..call_error import CallError
from ..caller_memory import view_at
from ..calls.call import state_of
from ..calls.device import pci_address
from ..device_state import DeviceState
from ..emulator import Emulator
from .caller_structures import structures_at
from .handlers import Texts, put_bytes, put_size, put_uint
from .library_files import LIBNVIDIA_ML, library_images
from .nvml_events import XID, EventSets
from .nvml_functions import ABSENT_NVML_FUNCTIONS, NVML_FUNCTIONS, NVML_NAMES
from .shared_object import SharedObject, guarded
from .signature import Argument, Signature, signature

if TYPE_CHECKING:
    from pathlib import Path

_OK, _UNINITIALIZED, _INVALID_ARGUMENT, _NOT_SUPPORTED, _NOT_FOUND = 0, 1, 2, 3, 6
_TIMEOUT: Final = 10
_INSUFFICIENT_SIZE, _DRIVER_NOT_LOADED, _VERSION_MISMATCH, _UNKNOWN = 7, 9, 25, 999
_TEXTS_OF: Final = {
    _OK: "Success",
    _UNINITIALIZED: "Uninitialized",
    _INVALID_ARGUMENT: "Invalid Argument",
    _NOT_SUPPORTED: "Not Supported",
    4: "Insufficient Permissions",
    _NOT_FOUND: "Not Found",
    _INSUFFICIENT_SIZE: "Insufficient Size",
    _DRIVER_NOT_LOADED: "Driver Not Loaded",
    _TIMEOUT: "Timeout",
    13: "Function Not Found",
    _VERSION_MISMATCH: "Argument version mismatch",
}
_DRIVER_VERSION: Final = "580.00"
"""The driver whose behaviour the emulator has."""
_MEMORY_V2: Final = 0x02000028  # the version of nvmlMemory_v2_t, whose size is 40
_SHORT_ID, _LONG_ID = 16, 36  # the fields after busIdLegacy, and busId, in nvmlPciInfo_t
_FIELD_BYTES, _FIELD_RESULT = 40, 28  # of nvmlFieldValue_t, and the offset of nvmlReturn
_ECC_FIELDS: Final = (1, 2)  # NVML_FI_DEV_ECC_CURRENT, NVML_FI_DEV_ECC_PENDING
_UNSIGNED_LONG_LONG: Final = 3  # nvmlValueType_t
_MOST_FIELDS: Final = 1 << 16
_NO_INSTANCE: Final = 0xFFFFFFFF  # of MIG
_FIRST_HANDLE: Final = 0x1000
_EARLY: Final = ("nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlErrorString")
_METHODS: Final = {
    "nvmlDeviceGetMemoryInfo_v2": "DeviceGetMemoryInfoV2",
    "nvmlDeviceGetMinorNumber": "DeviceGetIndex",
    "nvmlDeviceGetPciInfo_v2": "DeviceGetPciInfoV2",
    "nvmlDeviceGetPciInfo_v3": "DeviceGetPciInfoV3",
    "nvmlEventSetWait_v2": "EventSetWait",
}
"""Forms with methods of their own."""
_UNMEASURED: Final = frozenset({
    "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetMigMode", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV",
})  # fmt: skip
"""Functions that many GPUs lack, too: programs expect that."""
_SYSTEM: Final = 50  # NVML_TOPOLOGY_SYSTEM
_MEMORY_CLOCK: Final = 2  # nvmlClockType_t
_ErrorString: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int)
_Absent: Final = ctypes.CFUNCTYPE(ctypes.c_int)  # whatever the arguments are


class LibnvidiaMl:
    """The C functions of NVML; one object per process.

    Without an emulator they return NVML_ERROR_DRIVER_NOT_LOADED.
    """

    def __init__(self, file: Path | None) -> None:
        self.api: Emulator | None = None
        self._initialized = 0
        self._texts = Texts()
        self._events = EventSets()
        self._library = SharedObject(
            LIBNVIDIA_ML, NVML_NAMES, lambda: library_images()[LIBNVIDIA_ML], file
        )
        self._callbacks: Final = {
            form.symbol: form.c_function(self._guarded(form.symbol, self._wrapped(form)))
            for form in map(signature, NVML_FUNCTIONS)
        } | {"nvmlErrorString": _ErrorString(self._error_string)}
        for symbol in ABSENT_NVML_FUNCTIONS:
            self._callbacks[symbol] = _Absent(self._guarded(symbol, self._absent(symbol)))

    def use(self, api: Emulator) -> None:
        """Let the functions describe the devices of this emulator."""
        self.api = api
        self._library.connect(self._callbacks)

    def leave(self) -> None:
        """Let the functions report that there is no driver."""
        self._library.disconnect()
        self.api = None

    def _guarded(self, symbol: str, function: Callable[..., int]) -> Callable[..., int]:
        return guarded(function, _UNKNOWN, self._library.ending(symbol, _DRIVER_NOT_LOADED))

    def _wrapped(self, form: Signature) -> Callable[..., int]:
        name = _METHODS.get(form.symbol, form.name.removeprefix("nvml"))
        function: Callable[..., int] = getattr(self, name)
        is_early = form.symbol in _EARLY

        def wrapper(*arguments: Argument) -> int:
            if not is_early and not self._initialized:
                return _UNINITIALIZED
            if form.has_null(arguments):
                return _INVALID_ARGUMENT
            try:
                return function(*form.read(arguments))
            except CallError:
                return _INVALID_ARGUMENT

        return wrapper

    def _absent(self, symbol: str) -> Callable[..., int]:
        """Return a function that the emulator lacks; its first call reports that."""
        reports: list[str] = []

        def wrapper() -> int:
            if not self._initialized:
                return _UNINITIALIZED
            if not reports and symbol not in _UNMEASURED:
                reports.append(symbol)
                write_error(
                    f"cudadrv: the emulator lacks {symbol}: it returned NVML_ERROR_NOT_SUPPORTED\n"
                )
            return _NOT_SUPPORTED

        return wrapper

    def _error_string(self, code: int) -> int:
        return self._texts.address(_TEXTS_OF.get(code, "Unknown Error").encode())

    @property
    def _devices(self) -> tuple[DeviceState, ...]:
        return () if self.api is None else state_of(self.api).devices.all

    def _device(self, handle: int) -> DeviceState | None:
        index = handle - _FIRST_HANDLE
        return self._devices[index] if 0 <= index < len(self._devices) else None

    def ErrorString(self, code: int) -> int:
        """Return nothing: `_error_string` replaces it, as its result is an address."""
        return _UNKNOWN

    def Init(self) -> int:
        """Begin the use of NVML."""
        self._initialized += 1
        return _OK

    def InitWithFlags(self, flags: int) -> int:
        """Same."""
        return self.Init()

    def Shutdown(self) -> int:
        """End one use of NVML."""
        self._initialized -= 1
        return _OK

    def SystemGetDriverVersion(self, result: int, length: int) -> int:
        """Return the version of the driver."""
        return _put_text(result, length, _DRIVER_VERSION)

    def SystemGetNVMLVersion(self, result: int, length: int) -> int:
        """Return the version of NVML: that of CUDA, and the driver's."""
        major = 0 if self.api is None else state_of(self.api).process.driver_version[0]
        return _put_text(result, length, f"{major}.{_DRIVER_VERSION}")

    def SystemGetCudaDriverVersion(self, result: int) -> int:
        """Return the version of CUDA, as cuDriverGetVersion does."""
        major, minor = (0, 0) if self.api is None else state_of(self.api).process.driver_version
        put_uint(result, 1000 * major + 10 * minor)
        return _OK

    def DeviceGetCount(self, result: int) -> int:
        """Return how many devices there are."""
        put_uint(result, len(self._devices))
        return _OK

    def DeviceGetHandleByIndex(self, index: int, result: int) -> int:
        """Return the device of a number."""
        if index >= len(self._devices):
            return _INVALID_ARGUMENT
        put_size(result, _FIRST_HANDLE + index)
        return _OK

    def DeviceGetHandleByUUID(self, uuid: bytes, result: int) -> int:
        """Return the device of a UUID."""
        return self._find(lambda device: _uuid_of(device).encode() == uuid, result)

    def DeviceGetHandleByPciBusId(self, text: bytes, result: int) -> int:
        """Return the device at a PCI address."""
        address = pci_address(text.decode("ascii", "replace"))
        if address is None:
            return _INVALID_ARGUMENT
        return self._find(lambda device: pci_address(device.pci_bus_id) == address, result)

    def _find(self, predicate: Callable[[DeviceState], bool], result: int) -> int:
        for index, device in enumerate(self._devices):
            if predicate(device):
                put_size(result, _FIRST_HANDLE + index)
                return _OK
        return _NOT_FOUND

    def DeviceGetIndex(self, handle: int, result: int) -> int:
        """Return the number of a device."""
        if self._device(handle) is None:
            return _INVALID_ARGUMENT
        put_uint(result, handle - _FIRST_HANDLE)
        return _OK

    def DeviceGetName(self, handle: int, result: int, length: int) -> int:
        """Return the name of a device."""
        device = self._device(handle)
        if device is None:
            return _INVALID_ARGUMENT
        return _put_text(result, length, device.profile.name)

    def DeviceGetUUID(self, handle: int, result: int, length: int) -> int:
        """Return the UUID of a device."""
        device = self._device(handle)
        return _INVALID_ARGUMENT if device is None else _put_text(result, length, _uuid_of(device))

    def DeviceGetMemoryInfo(self, handle: int, result: int) -> int:
        """Return total, free and used bytes."""
        device = self._device(handle)
        if device is None:
            return _INVALID_ARGUMENT
        total, free = _memory_of(device)
        put_bytes(result, struct.pack("<3Q", total, free, total - free))
        return _OK

    def DeviceGetMemoryInfoV2(self, handle: int, result: int) -> int:
        """Return total, reserved, free and used bytes; the structure begins with its version."""
        device = self._device(handle)
        if device is None:
            return _INVALID_ARGUMENT
        if view_at(ctypes.c_uint, result).value != _MEMORY_V2:
            return _VERSION_MISMATCH
        total, free = _memory_of(device)
        put_bytes(result + 8, struct.pack("<4Q", total, 0, free, total - free))
        return _OK

    def DeviceGetCudaComputeCapability(self, handle: int, major: int, minor: int) -> int:
        """Return the compute capability of a device."""
        device = self._device(handle)
        if device is None:
            return _INVALID_ARGUMENT
        for result, number in zip((major, minor), device.profile.compute_capability, strict=True):
            put_uint(result, number)
        return _OK

    def DeviceGetUtilizationRates(self, handle: int, result: int) -> int:
        """Return zeros, for the device and its memory."""
        return self._put_zeros(handle, result, 8)

    def DeviceGetComputeMode(self, handle: int, result: int) -> int:
        """Return NVML_COMPUTEMODE_DEFAULT."""
        return self._put_zeros(handle, result, 4)

    def DeviceGetComputeRunningProcesses(self, handle: int, count: int, infos: int) -> int:
        """Return no process."""
        return self._put_zeros(handle, count, 4)

    def DeviceGetMPSComputeRunningProcesses(self, handle: int, count: int, infos: int) -> int:
        """Return no process."""
        return self._put_zeros(handle, count, 4)

    def DeviceGetClockInfo(self, handle: int, kind: int, result: int) -> int:
        """Return the clock rate of the profile, in MHz."""
        device = self._device(handle)
        if device is None:
            return _INVALID_ARGUMENT
        profile = device.profile
        khz = profile.memory_clock_khz if kind == _MEMORY_CLOCK else profile.clock_khz
        put_uint(result, khz // 1000)
        return _OK

    def DeviceGetMaxClockInfo(self, handle: int, kind: int, result: int) -> int:
        """Same."""
        return self.DeviceGetClockInfo(handle, kind, result)

    def DeviceGetEccMode(self, handle: int, current: int, pending: int) -> int:
        """Return the mode of the profile."""
        device = self._device(handle)
        if device is None:
            return _INVALID_ARGUMENT
        for result in (current, pending):
            put_uint(result, int(device.profile.ecc))
        return _OK

    def DeviceGetTotalEccErrors(self, handle: int, kind: int, counter: int, result: int) -> int:
        """Return no error; a device without ECC counts none."""
        device = self._device(handle)
        if device is not None and not device.profile.ecc:
            return _NOT_SUPPORTED
        return self._put_zeros(handle, result, 8)

    def DeviceGetFieldValues(self, handle: int, count: int, values: int) -> int:
        """Write the value of each field; all but the mode of ECC are not supported."""
        device = self._device(handle)
        if device is None or not values or not 0 < count <= _MOST_FIELDS:
            return _INVALID_ARGUMENT
        for at in structures_at(values, _FIELD_BYTES, count):
            if view_at(ctypes.c_uint, at).value in _ECC_FIELDS:
                now = time.time_ns() // 1000
                ecc = int(device.profile.ecc)
                put_bytes(at + 8, struct.pack("<2q2Iq", now, 0, _UNSIGNED_LONG_LONG, _OK, ecc))
            else:
                put_uint(at + _FIELD_RESULT, _NOT_SUPPORTED)
        return _OK

    def DeviceGetSupportedEventTypes(self, handle: int, result: int) -> int:
        """Return the bit of Xid errors."""
        if self._device(handle) is None:
            return _INVALID_ARGUMENT
        put_size(result, XID)
        return _OK

    def DeviceRegisterEvents(self, handle: int, kinds: int, events: int) -> int:
        """Register for Xid errors."""
        device = self._device(handle)
        if kinds & ~XID:
            return _NOT_SUPPORTED
        if device is None or (kinds and not self._events.register(events, device)):
            return _INVALID_ARGUMENT
        return _OK

    def EventSetCreate(self, result: int) -> int:
        """Create a set of events."""
        put_size(result, self._events.create())
        return _OK

    def EventSetFree(self, events: int) -> int:
        """Free a set of events."""
        return _OK if self._events.free(events) else _INVALID_ARGUMENT

    def EventSetWait(self, events: int, result: int, milliseconds: int) -> int:
        """Wait for the next Xid error of a set."""
        try:
            found = self._events.wait(events, milliseconds)
        except KeyError:
            return _INVALID_ARGUMENT
        if found is None:
            return _TIMEOUT
        device = _FIRST_HANDLE + self._devices.index(found.device)
        fields = (device, XID, found.number, _NO_INSTANCE, _NO_INSTANCE)
        put_bytes(result, struct.pack("<3Q2I", *fields))
        return _OK

    def DeviceGetTopologyCommonAncestor(self, handle: int, other: int, result: int) -> int:
        """Return NVML_TOPOLOGY_SYSTEM."""
        if self._device(handle) is None or self._device(other) is None:
            return _INVALID_ARGUMENT
        put_uint(result, _SYSTEM)
        return _OK

    def _put_zeros(self, handle: int, result: int, nbytes: int) -> int:
        if self._device(handle) is None:
            return _INVALID_ARGUMENT
        put_bytes(result, bytes(nbytes))
        return _OK

    def DeviceGetPciInfo(self, handle: int, result: int) -> int:
        """Return the PCI address as a text and as numbers, and the number of the device's kind."""
        return self._put_pci(handle, result, 4)

    def DeviceGetPciInfoV2(self, handle: int, result: int) -> int:
        """Same, and the number of the board's kind."""
        return self._put_pci(handle, result, 5)

    def DeviceGetPciInfoV3(self, handle: int, result: int) -> int:
        """Same, and the address as a text with a domain of eight digits."""
        code = self._put_pci(handle, result, 5)
        device = self._device(handle)
        if device is not None:
            put_bytes(result + _LONG_ID, f"0000{_pci_of(device)[0]}\0".encode())
        return code

    def _put_pci(self, handle: int, result: int, count: int) -> int:
        """Write the text and the first numbers, as many as a version has.

        As an H200 does (driver 580), it leaves reserved fields, and the bytes after texts.
        """
        device = self._device(handle)
        if device is None:
            return _INVALID_ARGUMENT
        text, domain, bus, number = _pci_of(device)
        put_bytes(result, f"{text}\0".encode())
        put_bytes(
            result + _SHORT_ID, struct.pack(f"<{count}I", *(domain, bus, number, 0, 0)[:count])
        )
        return _OK


def _put_text(result: int, length: int, text: str) -> int:
    data = text.encode() + b"\0"
    if length < len(data):
        return _INSUFFICIENT_SIZE
    put_bytes(result, data)
    return _OK


def _pci_of(device: DeviceState) -> tuple[str, int, int, int]:
    """Return the PCI address as a text with a domain of four digits, and as numbers."""
    domain, bus, number, function = pci_address(device.pci_bus_id) or (0, 0, 0, 0)
    return f"{domain:04X}:{bus:02X}:{number:02X}.{function:X}", domain, bus, number


def _uuid_of(device: DeviceState) -> str:
    return f"GPU-{UUID(bytes=device.uuid)}"


def _memory_of(device: DeviceState) -> tuple[int, int]:
    """Return total and free bytes."""
    with device.lock:
        return device.profile.total_memory, device.account.free_bytes
