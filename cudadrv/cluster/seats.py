"""Which device each process of this host is to have."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, cast

from .. import border
from ..driver.device import list_devices
from ..driver.in_use import current
from ..errors import ArgumentValueError, DriverNotFoundError, InvalidDeviceError, NoDeviceError

if TYPE_CHECKING:  # a worker on a GPU takes its seat without
    from ..emulator.emulator import Emulator
    from ..emulator.profiles import DeviceProperties, EmulatedDevice

_MOST: Final = 1024
"""Processes of one host; more is taken for a mistake."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What the processes of one worker have in common, whichever is in its place.

    Attributes:
        ordinal: the device, by its index among those that are visible.
        profile: the fields of the emulated device that it has, instead.
        environment: variables that differ from this process's. What is visible does not.
    """

    ordinal: int
    profile: DeviceProperties | None
    environment: Mapping[str, str]


def seats_for(devices: int | Sequence[int | EmulatedDevice] | None) -> list[Seat]:
    """A seat for each device; None takes all.

    Raises:
        InvalidDeviceError: a device is not visible.
        ValueError: there are to be none.
        CudaError: the driver is there and fails.
    """
    from ..emulator.profiles import EmulatedDevice

    visible = _visible()
    if devices is None:
        chosen: Sequence[int | EmulatedDevice] = range(len(visible))
    elif hasattr(devices, "__index__"):
        chosen = _first(
            border.whole("GpuExecutor.local: devices", devices, least=1, most=_MOST), visible
        )
    else:
        chosen = border.several("GpuExecutor.local: devices", devices, (int, EmulatedDevice))
    if not chosen:
        raise ArgumentValueError("GpuExecutor.local: no devices are given: name one, or more")
    return [_seat(each, visible) for each in chosen]


def _visible() -> Sequence[EmulatedDevice | None]:
    """The devices that this process sees, the emulated ones with their profiles."""
    try:
        found = list_devices()
        if found:
            driver = current()
            if not driver.is_emulated:
                return [None] * len(found)
            # What is emulated is an Emulator, or a trace around it, which has its attributes.
            return cast("Emulator", driver.api).devices
        reason = "the driver has no device"
    except (DriverNotFoundError, NoDeviceError) as error:
        reason = str(error).partition("\n")[0]
    warnings.warn(
        f"the workers run on the emulator: {reason}\n"
        "  CUDADRV_DRIVER=emulator says that this is meant",
        RuntimeWarning,
        stacklevel=5,
    )
    from ..emulator.profiles import EmulatedDevice

    return [EmulatedDevice()]


def _first(count: int, visible: Sequence[EmulatedDevice | None]) -> Sequence[int | EmulatedDevice]:
    """So many: emulated devices are made as they are needed, GPUs are not."""
    profiles = [each for each in visible if each is not None]
    return [profiles[n % len(profiles)] for n in range(count)] if profiles else range(count)


def _seat(device: int | EmulatedDevice, visible: Sequence[EmulatedDevice | None]) -> Seat:
    if isinstance(device, int):
        if not 0 <= device < len(visible):
            raise InvalidDeviceError(f"giving a worker device {device} of {len(visible)}")
        profile = visible[device]
        if profile is None:
            return Seat(device, None, {"CUDADRV_DRIVER": "cuda"})
        device = profile
    values = {each.name: getattr(device, each.name) for each in fields(device)}
    values["attributes"] = dict(device.attributes)  # a view of a dict cannot be pickled
    # A TypedDict of the fields of this very class.
    return Seat(0, cast("DeviceProperties", values), {"CUDADRV_DRIVER": "emulator:1"})
