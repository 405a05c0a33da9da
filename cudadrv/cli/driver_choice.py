"""The choice between the GPU and the emulator for a command."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from ..driver import driver_selection
from ..driver.device import list_devices
from ..errors import CudadrvError, DriverNotFoundError, NoDeviceError
from .command_line import program_name
from .output import print_error

DriverKind: TypeAlias = Literal["cuda", "emulator"]


def use_emulator_without_gpu(command: str) -> None:
    """Select the emulator if there is no GPU, and report that on standard error."""
    kind, reason = choose_driver(1)
    if kind == "emulator" and not os.environ.get("CUDADRV_DRIVER", "").strip():
        print_error(f"{program_name()} {command}: on the emulator: {reason}")


def choose_driver(emulated_devices: int) -> tuple[DriverKind, str]:
    """Select the GPU if there is one, else the emulator; return the choice and its reason.

    A driver that fails is selected: its error is raised by the first call.
    """
    setting = os.environ.get("CUDADRV_DRIVER", "").strip()
    if setting:
        kind: DriverKind = "emulator" if setting.startswith("emulator") else "cuda"
        return kind, f"CUDADRV_DRIVER is {setting}"
    try:
        if list_devices():
            return "cuda", "a GPU is present"
        reason = "the driver sees no device"
    except (DriverNotFoundError, NoDeviceError) as error:
        reason = str(error).partition("\n")[0]
    except CudadrvError as error:
        return "cuda", f"a driver is present, but fails: {error}"
    from ..emulator import Emulator  # only where it is used

    emulator = Emulator(devices=emulated_devices)
    driver_selection.report_at_end(emulator, immediately=True)
    driver_selection.set_current(driver_selection.Driver(emulator))
    return "emulator", reason
