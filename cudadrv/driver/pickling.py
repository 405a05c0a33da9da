"""Sending objects to other processes by multiprocessing, and finding the devices they belong to."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from ..errors import ExportError, InvalidDeviceError, NotSupportedError
from .device import Device, list_devices

# The reduced form of pickle: a function that makes another object, and its arguments.
Reduced: TypeAlias = tuple[Callable[..., object], tuple[object, ...]]


# A reduction is called with objects of its type alone.
def register_reduction(kind: type, reduce: Callable[[Any], Reduced]) -> None:
    """Let objects of a type be sent through multiprocessing: connections, queues, arguments.

    Other uses of pickle still raise: the bytes would be meaningless there.
    """
    from multiprocessing import reduction  # 20 modules, which most programs never need

    reduction.register(kind, reduce)


def require_descriptors(name: str) -> None:
    """Raise if processes cannot send each other file descriptors.

    Raises:
        NotSupportedError: the system is not Linux.
    """
    if sys.platform != "linux":
        raise NotSupportedError(f"{name}: the driver shares pools by file descriptors, on Linux")


def device_named(uuid: bytes, name: str) -> Device:
    """Return the device of a UUID that came from another process.

    Raises:
        InvalidDeviceError: this process sees no such device.
    """
    for device in list_devices():
        if device.uuid.bytes == uuid:
            return device
    raise InvalidDeviceError(
        f"opening {name} of another process: this process has no device {uuid.hex()}",
        text="set CUDA_VISIBLE_DEVICES and CUDADRV_DRIVER to the same values in both",
        explained=True,
    )


def unshared(name: str, remedy: str) -> ExportError:
    """Return the error for an object that cannot be sent to another process."""
    return ExportError(f"{name} cannot go to another process\n  {remedy}")
