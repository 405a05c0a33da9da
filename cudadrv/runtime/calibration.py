"""Calibration: the dispatch thresholds of a device, measured once a machine and stored on disk."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Final

from ptx.cache.folder import PrivateFolder, folder_from_environment, max_bytes_from_environment

from .. import border
from ..driver.capability import GpuDeviceInfo
from ..driver.device import Device
from ..driver.locks import process_lock
from ..errors import CalibrationFailed, CudadrvError
from .measurement import Measurement, Measurements, measure
from .policy import GpuDispatchPolicy, saturating_product

_log = logging.getLogger(__name__)
# Two measurements at once would time each other. Re-entrant: a finalizer may start one.
_measuring: Final = process_lock()
SCHEMA: Final = 1
"""Increased when the measurements or the fields change, so that older files are ignored."""
_NOT_THE_DEVICE = ("ordinal", "free_mem_bytes")


class PolicyOrigin(Enum):
    """The origin of thresholds."""

    GIVEN = "given"
    MEASURED = "measured"
    CACHED = "cached"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A policy and its origin.

    Attributes:
        policy: the thresholds.
        origin: given by the caller, measured now, measured before, or the default.
        error: the reason for the default; None otherwise.
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
        """Return the calibration of a caller's own policy."""
        return cls(policy, PolicyOrigin.GIVEN)


def calibrated_policy_for_device(device: GpuDeviceInfo) -> GpuDispatchPolicy:
    """Return the dispatch thresholds of a device: from the cache, or measured now and cached.

    If the device's linear algebra is not installed, or its results are invalid, this is the
    default policy; `calibrate` returns the reason, and the log has it at debug level.
    """
    return calibrate(device).policy


def calibrate(device: GpuDeviceInfo) -> Calibration:
    """Return the policy with its origin; errors of the driver layer are stored in it, not raised.

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


def policy_from(measurements: Measurements) -> GpuDispatchPolicy:
    """Return the default policy with the measured thresholds.

    Raises:
        CalibrationFailed: a time or a checksum is invalid.
    """
    measurements.check()
    default = GpuDispatchPolicy()

    def rows(measured: Measurement) -> int:
        return measured.rows

    gemm, potrf, xtwx = measurements.gemm, measurements.potrf, measurements.xtwx
    return replace(
        default,
        gemm_min_flops=threshold(gemm, _gemm_flops, default.gemm_min_flops),
        xtwx_flops_min=threshold(xtwx, _xtwx_flops, default.xtwx_flops_min),
        xtwx_n_min=threshold(xtwx, rows, default.xtwx_n_min),
        row_kernel_min_n=threshold(xtwx, rows, default.row_kernel_min_n),
        potrf_min_p=threshold(potrf, rows, default.potrf_min_p),
        prefer_gpu_factorization_min_p=threshold(
            potrf, rows, default.prefer_gpu_factorization_min_p
        ),
    )


def threshold(
    measured: Sequence[Measurement], amount: Callable[[Measurement], int], default: int
) -> int:
    """Return the amount of work of the first size at which the device is faster.

    If it never is, the work must be larger than anything measured: twice the largest amount,
    and at least the default.
    """
    for measurement in measured:
        if measurement.gpu_wins:
            return amount(measurement)
    return max(default, 2 * max(map(amount, measured)))


def _gemm_flops(measured: Measurement) -> int:
    return saturating_product(2, measured.rows, measured.rows, measured.rows)


def _xtwx_flops(measured: Measurement) -> int:
    return saturating_product(2, measured.rows, measured.columns, measured.columns)


def fingerprint(device: GpuDeviceInfo, *, emulated: bool) -> str:
    """Return the fields that distinguish kinds of device, as JSON.

    Ordinal and free memory do not affect speed. An emulated device may have all the fields of
    a real one, so that is a field as well.
    """
    fields = {name: value for name, value in asdict(device).items() if name not in _NOT_THE_DEVICE}
    return json.dumps({**fields, "emulated": emulated}, sort_keys=True)


class CalibrationStore:
    """The stored policies of a cache folder; a disk fault causes a measurement, never an error."""

    def __init__(self, folder: PrivateFolder | None) -> None:
        self._folder = folder

    @classmethod
    def from_environment(cls) -> CalibrationStore:
        """Return the store below `CUDADRV_CACHE_DIR` or the platform's cache folder.

        With CUDADRV_CACHE_MAX_MB=0 nothing is stored.

        Raises:
            ValueError: CUDADRV_CACHE_MAX_MB is not a number.
        """
        if max_bytes_from_environment() == 0:
            return cls(None)
        try:
            return cls(PrivateFolder(folder_from_environment()).below("calibration"))
        except OSError as error:  # there is no home folder
            _log.debug("calibrations are not stored on disk: %s", error)
            return cls(None)

    def load(self, print_of_device: str) -> GpuDispatchPolicy | None:
        """Return the policy stored under a fingerprint; None if there is no readable one."""
        if self._folder is None:
            return None
        name = _file_name(print_of_device)
        try:
            data = self._folder.read(name)
            if data is None:
                return None
            entry = json.loads(data)
            if entry["schema"] != SCHEMA or entry["fingerprint"] != print_of_device:
                return None
            return GpuDispatchPolicy.from_json(entry["policy"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.debug("the calibration in %s is ignored: %r", name, error)
            return None

    def save(self, print_of_device: str, policy: GpuDispatchPolicy) -> None:
        """Store a policy under a fingerprint."""
        if self._folder is None:
            return
        entry = {"schema": SCHEMA, "fingerprint": print_of_device, "policy": policy.to_json()}
        try:
            self._folder.write(_file_name(print_of_device), json.dumps(entry).encode())
        except OSError as error:
            _log.debug("the calibration is not stored on disk: %s", error)


def _file_name(print_of_device: str) -> str:
    digest = hashlib.sha256(f"{SCHEMA}\n{print_of_device}".encode()).hexdigest()
    return f"policy-v{SCHEMA}-{digest[:32]}.json"
