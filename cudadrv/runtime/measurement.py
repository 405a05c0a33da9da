"""The measurements of a calibration: the same work on the CPU and on the device, timed and checked.

gam's sizes: square products and Cholesky factorizations of order 64, 128 and 256, and XᵀWX of
(2048, 32), (4096, 64) and (8192, 96), in float64. A device's time runs from host arrays to the host
result, since a caller saves or loses that time by dispatching there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import CalibrationFailed
from ..stream import Stream, cuda_context_for

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

    def check(self, what: str) -> None:
        """Raise if the times or checksums are invalid.

        Raises:
            CalibrationFailed: a time is not a positive number, or the results differ.
        """
        where = f"{what} of ({self.rows}, {self.columns})"
        for side, seconds in (("CPU", self.cpu_seconds), ("GPU", self.gpu_seconds)):
            if not (math.isfinite(seconds) and seconds > 0):
                raise CalibrationFailed(f"{where}: the {side} took {seconds} s")
        finite = math.isfinite(self.cpu_checksum) and math.isfinite(self.gpu_checksum)
        if not finite or not math.isclose(
            self.cpu_checksum, self.gpu_checksum, rel_tol=_CHECKSUM_TOLERANCE
        ):
            raise CalibrationFailed(
                f"{where}: the checksums are {self.cpu_checksum!r} on the CPU and "
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
        for what, found in (("gemm", self.gemm), ("potrf", self.potrf), ("xtwx", self.xtwx)):
            for measurement in found:
                measurement.check(what)


def measure(ordinal: int) -> Measurements:
    """Time the CPU against a device; this takes a fraction of a second.

    Raises:
        RuntimeDependencyUnavailable: the device's linear algebra is not installed.
        CudaError: a driver call failed.
    """
    with cuda_context_for(ordinal).new_stream() as stream:
        bench = _Operations(stream)
        found = Measurements(
            gemm=tuple(bench.gemm(n) for n in SQUARE_ORDERS),
            potrf=tuple(bench.potrf(p) for p in SQUARE_ORDERS),
            xtwx=tuple(bench.xtwx(n, p) for n, p in XTWX_SHAPES),
        )
        stream.synchronize()
    return found


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
