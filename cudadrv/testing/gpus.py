"""`Gpus`: the GPUs of the machine, found when a test first needs one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..driver.driver_selection import Driver, current, current_or_none, device_count
from ..driver.loading import load_cuda
from ..errors import CudadrvError
from .choices import DRIVER, Mode

if TYPE_CHECKING:
    from execnet import XSpec

_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_LINUX_LISTS: Final = Path("/proc/driver/nvidia/gpus")
_COUNT: Final = "import cudadrv; print(len(cudadrv.list_devices()))"
_COUNT_SECONDS: Final = 60


@dataclass(slots=True)
class Gpus:
    """The GPUs that this process can use.

    Attributes:
        driver: the CUDA driver, None without one.
        count: the number of devices.
        absence: the reason why there is none.
        broken_by: the test that broke a context for the rest of the process.
    """

    driver: Driver | None
    count: int
    absence: str = ""
    broken_by: str = ""


@cache  # once a process: the result never changes
def gpus() -> Gpus:
    """Return the GPUs that this process sees."""
    try:
        driver = _driver()
        count = device_count(driver.api)
    except CudadrvError as error:
        return Gpus(None, 0, str(error).partition("\n")[0])
    return Gpus(driver, count, "" if count else "the driver has no device")


def _driver() -> Driver:
    """Return the process's own driver, unless that is an emulator."""
    driver = current_or_none()
    if driver is None and not os.environ.get(DRIVER, "").strip().startswith("emulator"):
        driver = current()
    return Driver(load_cuda()) if driver is None or driver.is_emulated else driver


def spread_workers(specs: Sequence[XSpec], mode: Mode) -> None:
    """Give each worker of this machine a first device of its own, in turn.

    All devices stay visible to all of them, in another order: so code that takes device 0 is
    spread, and a test of several devices has them.
    """
    if mode == "emulator" or not _may_have_several(mode):
        return
    visible = _usable()
    if len(visible) < 2:
        return
    for number, spec in enumerate(specs):
        if spec.popen and _VISIBLE not in spec.env:
            spec.env[_VISIBLE] = ",".join(rotated(visible, number))


def rotated(visible: Sequence[str], number: int) -> list[str]:
    """Return the devices of a worker, by its number: its own first, then the others."""
    first = number % len(visible)
    return [*visible[first:], *visible[:first]]


def _may_have_several(mode: Mode) -> bool:
    """Return True if there may be several devices; this loads no driver."""
    names = os.environ.get(_VISIBLE)
    if names is not None:
        return "," in names
    return mode != "auto" or (_LINUX_LISTS.is_dir() and len(list(_LINUX_LISTS.iterdir())) > 1)


def _usable() -> list[str]:
    """Return the devices of the driver, as CUDA_VISIBLE_DEVICES names them.

    Another process queries the driver, as this one runs no test and may have none.
    """
    environment = {**os.environ, DRIVER: "cuda"}
    command = [sys.executable, "-c", _COUNT]
    try:
        process = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_COUNT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []  # there is no driver, or a broken one; the tests report it
    count = int(process.stdout)
    names = os.environ.get(_VISIBLE)
    # The driver ignores the names after an unknown one.
    return list(map(str, range(count))) if names is None else names.split(",")[:count]
