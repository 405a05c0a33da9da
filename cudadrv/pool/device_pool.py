"""`DevicePool`: one context a device, and devices taken in turn or by memory (oxicuda's pool)."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from .. import border
from ..driver.device import Device, list_devices
from ..driver.driver_selection import call_bound
from ..driver.types import ContextFlags
from ..errors import ClosedError, InvalidDeviceError, InvalidValueError, NoDeviceError
from ..stream import Context, cuda_context_for


class DevicePool:
    """Contexts of several devices, in a fixed order; every method is safe from any thread.

    Args:
        devices: the devices, in the order of iteration and of turns; None takes all there are.
        flags: None shares the primary contexts. Flags make contexts of the pool's own
            (cuCtxCreate), which `close` destroys. A device named twice has one context.

    Raises:
        NoDeviceError: there is no device.
        InvalidValueError: `devices` is empty.
    """

    __slots__ = ("__weakref__", "_closed", "_entries", "_lock", "_owned", "_turn")

    def __init__(
        self, devices: Sequence[Device] | None = None, *, flags: ContextFlags | None = None
    ) -> None:
        if devices is None:
            devices = list_devices()
            if not devices:
                raise NoDeviceError("creating a pool of all devices")
        else:
            devices = border.sequence_of("DevicePool: devices", devices, Device)
            if not devices:
                raise InvalidValueError("creating a pool of no devices")
        if flags is not None:
            flags = ContextFlags(border.int_in_range("DevicePool: flags", flags, most=2**32 - 1))
        contexts: dict[int, Context] = {}
        with ExitStack() as acquired:
            for device in devices:
                if device.ordinal in contexts:
                    continue
                if flags is None:
                    contexts[device.ordinal] = _primary(device)
                else:
                    context = acquired.enter_context(Context.create(device, flags))
                    contexts[device.ordinal] = context
            self._owned = acquired.pop_all()
        self._entries = tuple((device, contexts[device.ordinal]) for device in devices)
        self._turn = itertools.count()
        self._lock = threading.RLock()
        self._closed = False

    @classmethod
    def with_devices(
        cls, devices: Sequence[Device], *, flags: ContextFlags | None = None
    ) -> DevicePool:
        """Return a pool of these devices, in their order.

        Raises:
            InvalidValueError: `devices` is empty.
        """
        return cls(devices, flags=flags)

    def __repr__(self) -> str:
        ordinals = [device.ordinal for device, _ in self._entries]
        return f"DevicePool(device_count={len(ordinals)}, devices={ordinals})"

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[Device, Context]]:
        """(device, context) pairs in the pool's order."""
        return iter(self._open_entries())

    def __enter__(self) -> DevicePool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """True once the pool was closed."""
        return self._closed

    def device_count(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def context(self, device_ordinal: int) -> Context:
        """Return the context of a device.

        Raises:
            InvalidDeviceError: the pool has no device of this ordinal.
        """
        device_ordinal = border.integer("DevicePool.context: ordinal", device_ordinal)
        for device, context in self._open_entries():
            if device.ordinal == device_ordinal:
                return context
        raise InvalidDeviceError(f"getting the context of device {device_ordinal} of {self!r}")

    def context_at(self, index: int) -> Context:
        """Return the context at an index of the pool.

        Raises:
            InvalidValueError: the index is out of range.
        """
        return self._entry(index)[1]

    def device_at(self, index: int) -> Device:
        """Return the device at an index of the pool.

        Raises:
            InvalidValueError: the index is out of range.
        """
        return self._entry(index)[0]

    def next_device(self) -> Device:
        """Return the next device in turn; over all threads, turns are even to within one."""
        entries = self._open_entries()
        with self._lock:
            turn = next(self._turn)
        return entries[turn % len(entries)][0]

    def best_available_device(self) -> Device:
        """Return the device with the most free memory now; on ties by total memory, then order."""
        # max keeps the first of equals.
        return max(self._open_entries(), key=lambda entry: entry[1].memory_info())[0]

    def close(self) -> None:
        """Destroy the contexts that the pool made; shared ones stay. Idempotent."""
        self._closed = True
        self._owned.close()

    def _entry(self, index: int) -> tuple[Device, Context]:
        entries = self._open_entries()
        index = border.integer("DevicePool: index", index)
        if not 0 <= index < len(entries):
            raise InvalidValueError(f"getting the device at index {index} of {self!r}")
        return entries[index]

    def _open_entries(self) -> tuple[tuple[Device, Context], ...]:
        if self._closed:
            raise ClosedError("the device pool was closed")
        return self._entries


def _primary(device: Device) -> Context:
    """Return a device's primary context; the caller's current context stays current."""
    api, context = device.driver.api, device.primary_context()
    return call_bound(api, context, cuda_context_for, device.ordinal)
