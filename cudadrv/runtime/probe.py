"""`GpuRuntime`: the devices of this process, found once, after gam's struct of that name."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, NoReturn, TypeAlias, overload

from ptx.read_only import ReadOnly

from .. import border
from ..driver import driver_selection
from ..driver.capability import GpuDeviceInfo
from ..driver.device import list_devices
from ..driver.handle import NotCopyable
from ..driver.locks import process_lock
from ..errors import (
    ArgumentValueError,
    CudadrvError,
    DriverCallFailed,
    DriverLibraryLoadFailed,
    DriverLoadError,
    DriverNotFoundError,
    DriverSelectionError,
    DriverSymbolMissing,
    DriverSymbolMissingError,
    GpuError,
    NoDeviceError,
    RequiredDeviceUnavailable,
)
from .calibration import SMALLEST_GEMM_FLOPS, Calibration, calibrate
from .policy import GpuDispatchPolicy


class GpuPolicy(Enum):
    """A caller's choice for a machine without a device."""

    AUTO = "auto"
    """Use the devices if there are any."""
    OFF = "off"
    """Use none, and do not look for any."""
    REQUIRED = "required"
    """Raise if there is no device."""


class AbsenceReason(Enum):
    """The reason why there is no device."""

    UNSUPPORTED_PLATFORM = "unsupported platform"
    NO_DRIVER = "no driver"
    NO_DEVICE = "no device"


@dataclass(frozen=True, slots=True)
class GpuAbsent:
    """There is no device, and no fault.

    Attributes:
        reason: the reason.
        detail: the facts, in words.
        error: the failure that showed it; the cause of errors about the absence.
    """

    reason: AbsenceReason
    detail: str
    error: CudadrvError | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        border.instance_of("GpuAbsent: reason", self.reason, AbsenceReason)


@dataclass(frozen=True, slots=True)
class GpuBroken:
    """The driver or a device returned an error; this is never reported as absence.

    Attributes:
        error: the failure; `raise_again` raises it.
    """

    error: GpuError

    def __post_init__(self) -> None:
        border.instance_of("GpuBroken: error", self.error, GpuError)

    def raise_again(self, prefix: str = "") -> NoReturn:
        """Raise the failure as a fresh exception, so that tracebacks do not pile up on one.

        Raises:
            GpuError: always; with the failure's class and cause, and a prefixed reason.
        """
        border.instance_of("GpuBroken.raise_again: prefix", prefix, str)
        raise type(self.error)(prefix + self.error.reason) from self.error.__cause__


class GpuRuntime(NotCopyable):
    """The usable devices, the highest score first, and how work is dispatched to them.

    `current` gives the process's own; tests and planners build others by hand.

    Args:
        device: the device that work goes to unless it names another; None takes the first.
        devices: every usable device.
        policy: the dispatch thresholds; None calibrates `device` when they are first read.
        memory_budget_bytes: the memory available for plans on `device`; None uses its own budget.

    Raises:
        ValueError: neither a device nor devices are given.
    """

    __slots__ = ("_calibration", "_device", "_devices", "_lock", "_memory_budget_bytes")

    device: ReadOnly[GpuDeviceInfo] = ReadOnly("_device")
    devices: ReadOnly[tuple[GpuDeviceInfo, ...]] = ReadOnly("_devices")
    memory_budget_bytes: ReadOnly[int] = ReadOnly("_memory_budget_bytes")

    def __init__(
        self,
        *,
        device: GpuDeviceInfo | None = None,
        devices: Sequence[GpuDeviceInfo] = (),
        policy: GpuDispatchPolicy | None = None,
        memory_budget_bytes: int | None = None,
    ) -> None:
        self._devices: tuple[GpuDeviceInfo, ...] = border.sequence_of(
            "GpuRuntime: devices", devices, GpuDeviceInfo
        )
        if device is None:
            if not self._devices:
                raise ArgumentValueError("a GpuRuntime needs a device: give one, or several")
            device = self._devices[0]
        self._device: GpuDeviceInfo = border.instance_of(
            "GpuRuntime: device", device, GpuDeviceInfo
        )
        border.optional("GpuRuntime: policy", policy, GpuDispatchPolicy)
        self._memory_budget_bytes: int = (
            device.memory_budget_bytes()
            if memory_budget_bytes is None
            else border.int_in_range(
                "GpuRuntime: memory_budget_bytes", memory_budget_bytes, most=2**64 - 1
            )
        )
        self._lock = threading.RLock()
        self._calibration = None if policy is None else Calibration.given(policy)

    def __repr__(self) -> str:
        names = ", ".join(f"{device.ordinal}: {device.name}" for device in self._devices)
        return f"<GpuRuntime of {self.device_count()} devices ({names})>"

    @classmethod
    def probe(cls) -> GpuAvailability:
        """Look for devices now: load the driver, count, describe each, sort by score.

        `availability` caches the outcome; call this again only for the present free memory.
        """
        try:
            infos = [device.info() for device in list_devices()]
        except DriverNotFoundError as error:
            supported = sys.platform in ("linux", "win32")
            reason = AbsenceReason.NO_DRIVER if supported else AbsenceReason.UNSUPPORTED_PLATFORM
            return _absent(reason, error)
        except NoDeviceError as error:
            return _absent(AbsenceReason.NO_DEVICE, error)
        except (CudadrvError, OSError) as error:
            return GpuBroken(_as_gpu_error(error))
        if not infos:
            return _absent(AbsenceReason.NO_DEVICE, NoDeviceError("counting devices"))
        infos.sort(key=lambda info: -info.score())
        return GpuAvailable(cls(devices=infos))

    @classmethod
    def availability(cls) -> GpuAvailability:
        """Return the outcome of the first probe, cached as long as the driver is in use."""
        return _cached.get()

    @classmethod
    @overload
    def resolve(cls, policy: Literal[GpuPolicy.REQUIRED]) -> GpuRuntime: ...
    @classmethod
    @overload
    def resolve(cls, policy: GpuPolicy = GpuPolicy.AUTO) -> GpuRuntime | None: ...
    @classmethod
    def resolve(cls, policy: GpuPolicy = GpuPolicy.AUTO) -> GpuRuntime | None:
        """Return the process's runtime by a policy; None with `OFF`, or without a device.

        Raises:
            RequiredDeviceUnavailable: the policy is `REQUIRED` and there is no device.
            GpuError: looking for devices failed, with any policy but `OFF`.
        """
        border.instance_of("GpuRuntime.resolve: policy", policy, GpuPolicy)
        if policy is GpuPolicy.OFF:
            return None
        outcome = cls.availability()
        if isinstance(outcome, GpuAvailable):
            return outcome.runtime
        if isinstance(outcome, GpuBroken):
            outcome.raise_again()
        elif policy is GpuPolicy.REQUIRED:
            raise RequiredDeviceUnavailable(
                f"a GPU is required, but there is none ({outcome.reason.value}): {outcome.detail}"
            ) from outcome.error
        return None

    @classmethod
    def current(cls) -> GpuRuntime | None:
        """Return the process's runtime, or None without a device (gam `GpuRuntime::global`).

        Raises:
            GpuError: looking for devices failed.
        """
        return cls.resolve(GpuPolicy.AUTO)

    @classmethod
    def current_for_flops(cls, flops: int) -> GpuRuntime | None:
        """Return the process's runtime if `flops` may be worth a device.

        For less work than the smallest product that calibration times (524,288 flops) it returns
        None without any contact with the driver.
        """
        flops = border.integer("GpuRuntime.current_for_flops: flops", flops)
        return None if flops < SMALLEST_GEMM_FLOPS else cls.current()

    @property
    def policy(self) -> GpuDispatchPolicy:
        """The dispatch thresholds; the first read measures them or loads them."""
        return self.calibration.policy

    @property
    def calibration(self) -> Calibration:
        """The thresholds with their origin, and the reason if they are the default."""
        if self._calibration is None:
            with self._lock:
                if self._calibration is None:
                    measured = calibrate(self._device)
                    if self._calibration is None:  # a finalizer may have measured in between
                        self._calibration = measured
        return self._calibration

    def selected_device(self) -> GpuDeviceInfo:
        """Return the device of work that names no other."""
        return self._device

    def device_ordinals(self) -> tuple[int, ...]:
        """Return the ordinals of all usable devices, in the order of `devices`."""
        return tuple(device.ordinal for device in self._devices)

    def device_count(self) -> int:
        """Return the number of usable devices."""
        return len(self._devices)

    def memory_budget_for(self, ordinal: int) -> int:
        """Return the memory budget of a device; that of the runtime for an unknown ordinal."""
        ordinal = border.integer("GpuRuntime.memory_budget_for: ordinal", ordinal)
        for device in self._devices:
            if device.ordinal == ordinal:
                return device.memory_budget_bytes()
        return self._memory_budget_bytes


class _CachedOutcome:
    """The cached outcome of a probe for each driver, and for no driver.

    The first is stored with the driver in use, so that an emulator session has its own. The second
    holds as long as CUDADRV_DRIVER is unchanged, and saves looking for a library at each call.
    """

    def __init__(self) -> None:
        self.lock = process_lock()
        self.without_driver: tuple[str | None, GpuAvailability] | None = None

    def get(self) -> GpuAvailability:
        outcome = self._known_outcome()
        if outcome is None:
            with self.lock:
                outcome = self._known_outcome() or self._probe()
        return outcome

    def _known_outcome(self) -> GpuAvailability | None:
        driver = driver_selection.current_or_none()
        if driver is not None:
            return driver.one_of(_ProbeEntry).outcome
        if self.without_driver is None:
            return None
        choice, outcome = self.without_driver
        return outcome if choice == os.environ.get("CUDADRV_DRIVER") else None

    def _probe(self) -> GpuAvailability:
        outcome = GpuRuntime.probe()
        driver = driver_selection.current_or_none()
        if driver is None:
            self.without_driver = os.environ.get("CUDADRV_DRIVER"), outcome
        else:
            driver.one_of(_ProbeEntry).outcome = outcome
        return outcome


class _ProbeEntry:
    """The entry in a driver's cache."""

    def __init__(self) -> None:
        self.outcome: GpuAvailability | None = None


_cached: Final = _CachedOutcome()


@dataclass(frozen=True, slots=True)
class GpuAvailable:
    """The usable devices, as a runtime."""

    runtime: GpuRuntime

    def __post_init__(self) -> None:
        border.instance_of("GpuAvailable: runtime", self.runtime, GpuRuntime)


GpuAvailability: TypeAlias = GpuAvailable | GpuAbsent | GpuBroken
"""The three outcomes of looking for devices: there are some, there are none, or it failed."""


def _absent(reason: AbsenceReason, error: CudadrvError) -> GpuAbsent:
    # Its traceback would keep the frames of the first caller alive.
    return GpuAbsent(reason, str(error), error.with_traceback(None))


def _as_gpu_error(error: CudadrvError | OSError) -> GpuError:
    """Return the runtime layer's error for an error of the driver layer, which is its cause."""
    if isinstance(error, GpuError):
        return error
    kind: type[GpuError] = DriverCallFailed
    if isinstance(error, DriverSymbolMissingError):
        kind = DriverSymbolMissing
    elif isinstance(error, OSError | DriverSelectionError | DriverLoadError):
        kind = DriverLibraryLoadFailed
    result = kind.of(error, f"looking for CUDA devices failed: {error}")
    result.__cause__ = error
    return result
