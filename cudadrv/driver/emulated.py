"""Putting the emulator in the place of the driver: `cudadrv.emulator.use` and `session`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Unpack

from ptx.emulate.exec.limits import DEFAULT_LIMITS, Limits

from ..emulator.emulator import NEWEST_DRIVER, Emulator
from ..emulator.profiles import DeviceProperties, EmulatedDevice, given_devices
from ..errors import ArgumentValueError, DriverSelectionError
from .in_use import Driver, in_use, install


def use(
    devices: int | Sequence[EmulatedDevice] = 1,
    *,
    driver_version: tuple[int, int] = NEWEST_DRIVER,
    limits: Limits = DEFAULT_LIMITS,
    **properties: Unpack[DeviceProperties],
) -> Emulator:
    """Run this process on the emulator.

    `devices` is how many, each with `properties` (those of `EmulatedDevice`), or the devices.

    Raises:
        DriverSelectionError: the process has used a driver already.
        ValueError: properties for devices that are given whole, or a device that cannot be.
    """
    emulator = Emulator(_devices(devices, properties), driver_version=driver_version, limits=limits)
    chosen = Driver(emulator)
    former = in_use() or install(chosen)
    if former is not None:
        if in_use() is chosen:
            install(former)
        kind = "the emulator" if former.is_emulated else "the CUDA driver"
        raise DriverSelectionError(
            f"cudadrv.emulator.use() came after the first driver call, which chose {kind}: call it "
            "first, set CUDADRV_DRIVER=emulator, or use cudadrv.emulator.session() for a while"
        )
    return emulator


@contextmanager
def session(
    devices: int | Sequence[EmulatedDevice] = 1,
    *,
    driver_version: tuple[int, int] = NEWEST_DRIVER,
    limits: Limits = DEFAULT_LIMITS,
    **properties: Unpack[DeviceProperties],
) -> Iterator[Emulator]:
    """A fresh emulator as the driver of a `with` block; afterwards the former driver again.

    It is the driver of the whole process: sessions in several threads at once do not mix.
    Objects of a session go on using its emulator after the block.

    Raises:
        ValueError: properties for devices that are given whole, or a device that cannot be.
    """
    emulator = Emulator(_devices(devices, properties), driver_version=driver_version, limits=limits)
    driver = Driver(emulator)
    former = install(driver)
    try:
        yield emulator
    finally:
        install(former)
        driver.clear_caches()


def _devices(
    devices: int | Sequence[EmulatedDevice], properties: DeviceProperties
) -> Sequence[EmulatedDevice]:
    is_count = hasattr(devices, "__index__")
    if properties and not is_count:
        raise ArgumentValueError(
            f"the devices are given whole, so {', '.join(properties)} cannot be given as well: "
            "use dataclasses.replace on a device"
        )
    return given_devices(devices, lambda: EmulatedDevice(**properties))
