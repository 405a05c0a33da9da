"""Calibration: the dispatch thresholds of a device, measured once a machine and stored on disk.

A measurement does the same work on the CPU and on the device, times both and compares the results.
The sizes are gam's: square products and Cholesky factorizations of order 64, 128 and 256, and XᵀWX
of (2048, 32), (4096, 64) and (8192, 96), in float64. A device's time runs from host arrays to host
results, since a caller saves or loses that time by dispatching there.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ptx.cache.folder import PrivateFolder, cache_settings

from .. import border
from ..driver.capability import GpuDeviceInfo
from ..driver.device import Device
from ..driver.locks import process_lock
from ..errors import CalibrationFailed, CudadrvError
from ..stream import Stream, cuda_context_for
from .policy import GpuDispatchPolicy, saturating_product

Matrix: TypeAlias = npt.NDArray[np.float64]

SQUARE_ORDERS: Final = (64, 128, 256)
XTWX_SHAPES: Final = ((2048, 32), (4096, 64), (8192, 96))
SMALLEST_GEMM_FLOPS: Final = 2 * SQUARE_ORDERS[0] ** 3

_FEWEST_REPEATS = 3
_MOST_REPEATS = 25
_ENOUGH_SECONDS = 2e-3
_WIN = 0.95
_CHECKSUM_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class Measurement:
    """The times of one size on the CPU and on the device.

    Attributes:
        rows: n of the design, or the order of a square matrix.
        columns: p of the design, or the order again.
        cpu_seconds: the best of a few runs after a warm-up.
        gpu_seconds: the same on the device.
        cpu_checksum: a weighted sum of the result.
        gpu_checksum: that sum of the device's result.
    """

    rows: int
    columns: int
    cpu_seconds: float
    gpu_seconds: float
    cpu_checksum: float
    gpu_checksum: float

    @property
    def gpu_wins(self) -> bool:
        """True if the device takes at most 95% of the CPU's time."""
        return self.gpu_seconds <= _WIN * self.cpu_seconds

    def check(self, operation: str) -> None:
        """Raise if the times or checksums are invalid.

        Raises:
            CalibrationFailed: a time is not a positive number, or the results differ.
        """
        shape = f"{operation} of ({self.rows}, {self.columns})"
        for side, seconds in (("CPU", self.cpu_seconds), ("GPU", self.gpu_seconds)):
            if not (math.isfinite(seconds) and seconds > 0):
                raise CalibrationFailed(f"{shape}: the {side} took {seconds} s")
        finite = math.isfinite(self.cpu_checksum) and math.isfinite(self.gpu_checksum)
        if not finite or not math.isclose(
            self.cpu_checksum, self.gpu_checksum, rel_tol=_CHECKSUM_TOLERANCE
        ):
            raise CalibrationFailed(
                f"{shape}: the checksums are {self.cpu_checksum!r} on the CPU and "
                f"{self.gpu_checksum!r} on the GPU"
            )


@dataclass(frozen=True, slots=True)
class Measurements:
    """All sizes, smallest first."""

    gemm: tuple[Measurement, ...]
    potrf: tuple[Measurement, ...]
    xtwx: tuple[Measurement, ...]

    def check(self) -> None:
        """Check each measurement.

        Raises:
            CalibrationFailed: one of them is invalid.
        """
        for operation, timed in (("gemm", self.gemm), ("potrf", self.potrf), ("xtwx", self.xtwx)):
            for measurement in timed:
                measurement.check(operation)


def measure(ordinal: int) -> Measurements:
    """Time the CPU against a device; this takes a fraction of a second.

    Raises:
        RuntimeDependencyUnavailable: the device's linear algebra is not installed.
        CudaError: a driver call failed.
    """
    with cuda_context_for(ordinal).new_stream() as stream:
        bench = _Operations(stream)
        measurements = Measurements(
            gemm=tuple(bench.gemm(n) for n in SQUARE_ORDERS),
            potrf=tuple(bench.potrf(p) for p in SQUARE_ORDERS),
            xtwx=tuple(bench.xtwx(n, p) for n, p in XTWX_SHAPES),
        )
        stream.synchronize()
    return measurements


class _Operations:
    """The three operations, on the CPU or on a device."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        # Imported when it is used, so that importing cudadrv loads no linear algebra.
        from ..blas import LinearAlgebra

        self.algebra = LinearAlgebra.for_stream(stream)

    def gemm(self, n: int) -> Measurement:
        """A product of two matrices of order n."""
        stream = self.stream
        a, b = design(n, n), design(n, n)[::-1].copy()

        def on_device() -> Matrix:
            with (
                stream.to_device(a) as da,
                stream.to_device(b) as db,
                stream.empty((n, n), np.float64) as out,
            ):
                self.algebra.gemm(da, db, out)
                return stream.to_host(out)

        return _compared(n, n, lambda: a @ b, on_device)

    def potrf(self, p: int) -> Measurement:
        """The lower Cholesky factor of a matrix of order p."""
        stream = self.stream
        h = positive_definite(p)

        def on_device() -> Matrix:
            with stream.to_device(h) as dh:
                self.algebra.potrf(dh)
                return np.tril(stream.to_host(dh))

        return _compared(p, p, lambda: np.asarray(np.linalg.cholesky(h), np.float64), on_device)

    def xtwx(self, n: int, p: int) -> Measurement:
        """XᵀWX of an (n, p) design."""
        stream = self.stream
        x, w = design(n, p), weights(n)

        def on_device() -> Matrix:
            with (
                stream.to_device(x) as dx,
                stream.to_device(w) as dw,
                stream.empty((p, p), np.float64) as out,
            ):
                self.algebra.xtwx(dx, dw, out)
                return stream.to_host(out)

        return _compared(n, p, lambda: x.T @ (w[:, None] * x), on_device)


def design(rows: int, columns: int) -> Matrix:
    """A (rows, columns) float64 matrix of fixed values in (0, 1], so that sums cancel nothing."""
    i = np.arange(rows, dtype=np.int64)[:, None]
    j = np.arange(columns, dtype=np.int64)
    values: Matrix = ((7 * i + 13 * j + i * j) % 29 + 1) / 29.0
    return values


def positive_definite(order: int) -> Matrix:
    """A symmetric positive definite (order, order) float64 matrix of fixed values."""
    root = design(order, order)
    return np.add(root @ root.T / order, np.eye(order), dtype=np.float64)


def weights(rows: int) -> Matrix:
    """Fixed (rows,) float64 weights in [0.5, 1.4]."""
    return (0.5 + np.arange(rows) % 7 * 0.15).astype(np.float64)


def checksum(result: Matrix) -> float:
    """Return a sum that weighs every element differently, so that a transposed result differs."""
    return float(result.ravel() @ np.linspace(1.0, 2.0, result.size))


def _compared(
    rows: int, columns: int, on_cpu: Callable[[], Matrix], on_device: Callable[[], Matrix]
) -> Measurement:
    cpu_seconds, cpu = _timed(on_cpu)
    gpu_seconds, gpu = _timed(on_device)
    return Measurement(rows, columns, cpu_seconds, gpu_seconds, checksum(cpu), checksum(gpu))


def _timed(function: Callable[[], Matrix]) -> tuple[float, Matrix]:
    """Return the seconds of the best of a few runs after a warm-up, and the result."""
    result = function()
    best = math.inf
    spent = 0.0
    for repeat in range(_MOST_REPEATS):
        if repeat >= _FEWEST_REPEATS and spent >= _ENOUGH_SECONDS:
            break
        start = time.perf_counter()
        result = function()
        seconds = time.perf_counter() - start
        best = min(best, seconds)
        spent += seconds
    return best, result


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
        border.instance_of("Calibration: policy", self.policy, GpuDispatchPolicy)
        border.instance_of("Calibration: origin", self.origin, PolicyOrigin)
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
    border.instance_of("calibrated_policy_for_device: device", device, GpuDeviceInfo)
    store = CalibrationStore.from_environment()
    try:
        with _measuring:
            calibration = _calibrated(device, store)
    except CudadrvError as error:
        # Without its traceback, which would keep the frames of the measurement alive.
        cause = error.with_traceback(None)
        calibration = Calibration(GpuDispatchPolicy(), PolicyOrigin.DEFAULT, cause)
        _log.debug("device %d keeps the default dispatch policy: %s", device.ordinal, error)
    else:
        origin = calibration.origin.value
        _log.debug("device %d: dispatch policy %s", device.ordinal, origin)
    return calibration


def _calibrated(device: GpuDeviceInfo, store: CalibrationStore) -> Calibration:
    live = Device.get(device.ordinal)
    key = fingerprint(device, emulated=live.is_emulated)
    if fingerprint(live.info(), emulated=live.is_emulated) != key:
        raise CalibrationFailed(
            f"device {device.ordinal} is {live.name!r}, and not the {device.name!r} described"
        )
    policy = store.load(key)
    if policy is not None:
        return Calibration(policy, PolicyOrigin.CACHED)
    policy = policy_from(measure(device.ordinal))
    store.save(key, policy)
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

        With CUDADRV_CACHE_MAX_MB=0, or without a home folder, nothing is stored.

        Raises:
            ValueError: CUDADRV_CACHE_MAX_MB is not a number.
        """
        folder, _ = cache_settings()
        return cls(None if folder is None else PrivateFolder(folder).below("calibration"))

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
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
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
