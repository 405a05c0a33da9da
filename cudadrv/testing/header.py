"""The line of the report that names the devices, the compiler and the checks of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import ptx

from ..driver.device import Device
from ..errors import CudadrvError
from ..version import VERSION
from .choices import CHECK, ORDER, Choices
from .gpus import gpus
from .plan import Place, Plan, session_arguments

if TYPE_CHECKING:
    from ..emulator.profiles import EmulatedDevice


def header(choices: Choices, places: Iterable[Place]) -> str:
    """Return the line for tests at these places."""
    there = set(places)
    parts, checks = [f"cudadrv {VERSION}"], "none"
    if "gpu" in there:
        parts.append(_gpus())
    if "emulator" in there:
        arguments = session_arguments(Plan(None, 1, {}, may_leak=True), choices)
        parts.append(_emulator(arguments))
        checks = ",".join(cast("list[str]", arguments["check"])) or checks
    checks = os.environ.get(CHECK, checks) or "none"
    return ", ".join([*parts, _nvrtc(), *_settings(choices, checks)])


def header_of_workers(choices: Choices) -> str:
    """Return the line for tests of workers, where each of them finds its own devices."""
    profile = [f"profile {choices.profile}"] if choices.profile else []
    settings = _settings(choices, os.environ.get(CHECK, "default") or "none")
    return ", ".join([f"cudadrv {VERSION}", f"--cuda={choices.mode}", *profile, *settings])


def _settings(choices: Choices, checks: str) -> list[str]:
    order, _, seed = (os.environ.get(ORDER) or "immediate").partition(":")
    if choices.seeds:
        return ["order random", f"checks {checks}", f"seeds 0 to {choices.seeds - 1}"]
    return [f"order {order}", f"checks {checks}", *([f"seed {seed}"] if seed else [])]


def _gpus() -> str:
    found = gpus()
    if found.driver is None or not found.count:
        return f"no GPU ({found.absence})"
    from ..driver.device import driver_version
    from ..driver.driver_selection import set_current

    former = set_current(found.driver)
    try:
        names = dict.fromkeys(Device.get(ordinal).name for ordinal in range(found.count))
        version = ".".join(map(str, driver_version()))
    except CudadrvError as error:
        return f"GPU ({error})"
    finally:
        set_current(former)
    return f"{found.count} x {', '.join(names)}, driver {version}"


def _emulator(arguments: Mapping[str, object]) -> str:
    from ..emulator.emulator import NEWEST_DRIVER
    from ..emulator.profiles import EmulatedDevice, given_devices

    devices = arguments["devices"]
    known = given_devices(devices, EmulatedDevice)  # type: ignore[arg-type]  # it checks them
    return f"emulator of {_described(known)}, driver {'.'.join(map(str, NEWEST_DRIVER))}"


def _nvrtc() -> str:
    try:
        return f"NVRTC {'.'.join(map(str, ptx.nvrtc_version()))}"
    except ptx.PtxError as error:
        return f"no NVRTC ({str(error).partition(chr(10))[0]})"


def _described(devices: Sequence[EmulatedDevice]) -> str:
    """Return emulated devices in words."""
    kinds = dict.fromkeys(
        f"{each.name} (sm_{each.compute_capability[0]}{each.compute_capability[1]})"
        for each in devices
    )
    return f"{len(devices)} x {', '.join(kinds)}"
