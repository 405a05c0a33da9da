"""Calibration: the thresholds of a device measured once, and kept."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .. import border
from ..driver.capability import GpuDeviceInfo
from ..driver.device import Device
from ..driver.locks import process_lock
from ..errors import CalibrationFailed, CudadrvError
from .calibration_store import CalibrationStore, fingerprint
from .crossover import policy_from
from .measurement import measure
from .policy import GpuDispatchPolicy

_log = logging.getLogger(__name__)

# Two measurements at once would time each other. Re-entrant: a finalizer may ask for one.
_measuring: Final = process_lock()


class PolicyOrigin(Enum):
    """Where thresholds come from."""

    GIVEN = "given"
    MEASURED = "measured"
    CACHED = "cached"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A policy and where it comes from.

    Attributes:
        policy: the thresholds.
        origin: given by the caller, measured now, measured before, or the default.
        error: why it is the default; None otherwise.
    """

    policy: GpuDispatchPolicy
    origin: PolicyOrigin
    error: CudadrvError | None = None

    def __post_init__(self) -> None:
        border.instance("Calibration: policy", self.policy, GpuDispatchPolicy)
        border.instance("Calibration: origin", self.origin, PolicyOrigin)
        border.optional("Calibration: error", self.error, CudadrvError)

    @classmethod
    def given(cls, policy: GpuDispatchPolicy) -> Calibration:
        """A policy of the caller's."""
        return cls(policy, PolicyOrigin.GIVEN)


def calibrated_policy_for_device(device: GpuDeviceInfo) -> GpuDispatchPolicy:
    """The dispatch thresholds of a device: from the cache, or measured now and cached.

    Where the device's linear algebra is not installed, or what it answers is invalid, this is the
    default policy; `calibrate` says why, and so does the log at debug level.
    """
    return calibrate(device).policy


def calibrate(device: GpuDeviceInfo) -> Calibration:
    """The same, with its origin; errors of the driver layer are in it, and not raised.

    Raises:
        ValueError: CUDADRV_CACHE_MAX_MB is not a number.
    """
    border.instance("calibrated_policy_for_device: device", device, GpuDeviceInfo)
    store = CalibrationStore.from_environment()
    try:
        with _measuring:
            calibration = _calibrated(device, store)
    except CudadrvError as error:
        # Without its traceback, which would keep the frames of the measurement alive.
        kept = error.with_traceback(None)
        calibration = Calibration(GpuDispatchPolicy(), PolicyOrigin.DEFAULT, kept)
        _log.debug("device %d keeps the default dispatch policy: %s", device.ordinal, error)
    else:
        origin = calibration.origin.value
        _log.debug("device %d: dispatch policy %s", device.ordinal, origin)
    return calibration


def _calibrated(device: GpuDeviceInfo, store: CalibrationStore) -> Calibration:
    live = Device.get(device.ordinal)
    wanted = fingerprint(device, emulated=live.is_emulated)
    if fingerprint(live.info(), emulated=live.is_emulated) != wanted:
        raise CalibrationFailed(
            f"device {device.ordinal} is {live.name!r}, and not the {device.name!r} described"
        )
    policy = store.load(wanted)
    if policy is not None:
        return Calibration(policy, PolicyOrigin.CACHED)
    policy = policy_from(measure(device.ordinal))
    store.save(wanted, policy)
    return Calibration(policy, PolicyOrigin.MEASURED)
