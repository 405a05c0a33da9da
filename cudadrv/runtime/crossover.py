"""Thresholds out of measurements: the size from which the device wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .measurement import Measurement, Measurements
from .policy import GpuDispatchPolicy
from .saturation import saturating_product


def policy_from(measurements: Measurements) -> GpuDispatchPolicy:
    """The default policy with the thresholds that were measured.

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
    """The amount of the first size that the device wins.

    Where it wins none, the work must be larger than anything measured: twice the largest amount,
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
