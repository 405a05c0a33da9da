"""Sending objects to other processes by multiprocessing, and the devices that they name."""

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
    """Let objects of a type go through multiprocessing: connections, queues, arguments.

    Other uses of pickle still raise: the bytes would name nothing there.
    """
    from multiprocessing import reduction  # 20 modules, which most programs do without

    reduction.register(kind, reduce)


def require_descriptors(what: str) -> None:
    """Raise where processes cannot give each other file descriptors.

    Raises:
        NotSupportedError: the system is no Linux.
    """
    if sys.platform != "linux":
        raise NotSupportedError(f"{what}: the driver shares pools by file descriptors, on Linux")


def device_named(uuid: bytes, what: str) -> Device:
    """The device of a UUID that came from another process.

    Raises:
        InvalidDeviceError: this process sees no such device.
    """
    for device in list_devices():
        if device.uuid.bytes == uuid:
            return device
    raise InvalidDeviceError(
        f"opening {what} of another process: this process has no device {uuid.hex()}",
        text="set CUDA_VISIBLE_DEVICES and CUDADRV_DRIVER to the same values in both",
        explained=True,
    )


def unshared(what: str, remedy: str) -> ExportError:
    """The error for what cannot be sent to another process."""
    return ExportError(f"{what} cannot go to another process\n  {remedy}")
