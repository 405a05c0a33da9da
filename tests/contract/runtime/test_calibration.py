from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cudadrv import Device, GpuRuntime, emulator
from cudadrv.emulator import Emulator
from cudadrv.errors import CalibrationFailed, OutOfMemoryError
from cudadrv.runtime import GpuDispatchPolicy, PolicyOrigin, calibrated_policy_for_device
from cudadrv.runtime.calibration import (
    SMALLEST_GEMM_FLOPS,
    Measurement,
    Measurements,
    calibrate,
    checksum,
    design,
    measure,
    policy_from,
    positive_definite,
)
from tests.several_threads import all_at_once

from .conftest import kept_files
from .devices import device_with

SQUARES = (64, 128, 256)
DESIGNS = ((2048, 32), (4096, 64), (8192, 96))
NEVER = (1.0, 1.0, 1.0)


def measured(rows: int, columns: int, ratio: float) -> Measurement:
    """A size where the device takes `ratio` of the CPU's time."""
    return Measurement(rows, columns, 2.0, 2.0 * ratio, 7.0, 7.0)


def measurements(
    gemm: tuple[float, ...] = NEVER,
    potrf: tuple[float, ...] = NEVER,
    xtwx: tuple[float, ...] = NEVER,
) -> Measurements:
    return Measurements(
        tuple(measured(n, n, ratio) for n, ratio in zip(SQUARES, gemm, strict=True)),
        tuple(measured(p, p, ratio) for p, ratio in zip(SQUARES, potrf, strict=True)),
        tuple(measured(n, p, ratio) for (n, p), ratio in zip(DESIGNS, xtwx, strict=True)),
    )


@pytest.fixture
def machine() -> Iterator[Emulator]:
    with emulator.session() as machine:
        yield machine


def test_where_the_device_wins_nothing_thresholds_pass_what_was_measured() -> None:
    # Twice the largest: 2·2·256³ = 67,108,864 flops and 2·2·8192·96² = 301,989,888.
    assert policy_from(measurements()) == replace(
        GpuDispatchPolicy(), gemm_min_flops=100_000_000, xtwx_flops_min=301_989_888
    )


def test_the_first_size_won_sets_the_thresholds() -> None:
    found = policy_from(
        measurements(gemm=(1.0, 0.9, 0.1), potrf=(2.0, 1.5, 0.95), xtwx=(0.5, 0.5, 0.5))
    )
    assert found == replace(
        GpuDispatchPolicy(),
        gemm_min_flops=2 * 128**3,
        potrf_min_p=256,
        prefer_gpu_factorization_min_p=256,
        xtwx_flops_min=2 * 2048 * 32**2,
        xtwx_n_min=2048,
        row_kernel_min_n=2048,
    )


@pytest.mark.parametrize(("ratio", "wins"), [(0.95, True), (0.9501, False), (0.5, True)])
def test_the_device_wins_at_95_percent_of_the_cpus_time(ratio: float, wins: bool) -> None:
    assert measured(64, 64, ratio).gpu_wins is wins


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cpu_seconds": 0.0}, r"xtwx of \(8192, 96\): the CPU took 0.0 s"),
        ({"gpu_seconds": -1.0}, "the GPU took -1.0 s"),
        ({"gpu_seconds": float("nan")}, "the GPU took nan s"),
        ({"cpu_seconds": float("inf")}, "the CPU took inf s"),
        ({"gpu_checksum": 7.001}, "checksums are 7.0 on the CPU and 7.001 on the GPU"),
        ({"gpu_checksum": float("nan")}, "checksums are 7.0 on the CPU and nan"),
        ({"cpu_checksum": float("inf"), "gpu_checksum": float("inf")}, "checksums are inf"),
    ],
)
def test_invalid_numbers_fail_the_calibration(change: dict[str, float], message: str) -> None:
    valid = measurements()
    values = {name: getattr(valid.xtwx[2], name) for name in Measurement.__slots__}
    spoiled = replace(valid, xtwx=(*valid.xtwx[:2], Measurement(**{**values, **change})))
    with pytest.raises(CalibrationFailed, match=message):
        policy_from(spoiled)


@pytest.fixture(scope="module")
def found() -> Measurements:
    with emulator.session():
        return measure(0)


@pytest.mark.slow
def test_measured_sizes_are_gams(found: Measurements) -> None:
    assert [(each.rows, each.columns) for each in found.gemm] == [(n, n) for n in SQUARES]
    assert [(each.rows, each.columns) for each in found.potrf] == [(n, n) for n in SQUARES]
    assert [(each.rows, each.columns) for each in found.xtwx] == list(DESIGNS)
    found.check()
    assert SMALLEST_GEMM_FLOPS == 524_288


@pytest.mark.slow
def test_the_checksums_are_those_of_the_exact_results(found: Measurements) -> None:
    a, b = design(64, 64), design(64, 64)[::-1]
    product = np.einsum("ij,jk->ik", a, b)
    factor = np.asarray(np.linalg.cholesky(positive_definite(64)), np.float64)
    assert found.gemm[0].gpu_checksum == pytest.approx(checksum(product), rel=1e-12)
    assert found.potrf[0].gpu_checksum == pytest.approx(checksum(factor), rel=1e-12)


@pytest.mark.slow
def test_matrices_are_the_same_each_time_and_positive_definite() -> None:
    assert np.array_equal(design(50, 7), design(50, 7))
    assert ((design(300, 200) > 0) & (design(300, 200) <= 1)).all()
    for order in SQUARES:
        h = positive_definite(order)
        assert np.array_equal(h, h.T)
        assert (np.linalg.eigvalsh(h) > 0.5).all()


def test_a_checksum_distinguishes_a_matrix_from_its_transpose() -> None:
    matrix = design(64, 64) + np.arange(64)
    assert checksum(matrix) != pytest.approx(checksum(matrix.T), rel=1e-6)


@pytest.mark.slow
def test_the_policy_is_measured_when_first_read_and_cached(
    machine: Emulator, cache_folder: Path
) -> None:
    runtime = GpuRuntime.current()
    assert runtime is not None
    assert kept_files(cache_folder) == []  # a probe is cheap
    policy = runtime.policy
    assert runtime.calibration.origin is PolicyOrigin.MEASURED
    (file,) = kept_files(cache_folder)
    entry = json.loads(file.read_text())
    assert entry["schema"] == 1
    assert json.loads(entry["policy"]) == json.loads(policy.to_json())
    assert json.loads(entry["fingerprint"])["name"] == runtime.device.name
    again = calibrate(runtime.device)
    assert (again.policy, again.origin) == (policy, PolicyOrigin.CACHED)
    assert calibrated_policy_for_device(runtime.device) == policy


@pytest.mark.slow
def test_threads_that_read_the_policy_at_once_measure_once(machine: Emulator) -> None:
    runtime = GpuRuntime.current()
    assert runtime is not None
    found: list[object] = []
    all_at_once([lambda: found.append(runtime.calibration)] * 8)
    assert {id(each) for each in found} == {id(runtime.calibration)}
    assert len(found) == 8


def test_a_failing_device_keeps_the_default_and_reports_why(
    machine: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    info = Device.get(0).info()
    machine.fail("cuMemAllocAsync", with_=2, times=None)
    with caplog.at_level(logging.DEBUG, "cudadrv"):
        calibration = calibrate(info)
    assert calibration.policy == GpuDispatchPolicy()
    assert calibration.origin is PolicyOrigin.DEFAULT
    assert isinstance(calibration.error, OutOfMemoryError)
    (record,) = [record for record in caplog.records if "default" in record.message]
    assert record.levelno == logging.DEBUG
    assert record.message.startswith("device 0 keeps the default dispatch policy: ")


def test_a_device_that_is_not_the_one_described_is_not_measured(machine: Emulator) -> None:
    calibration = calibrate(device_with(0, 80, 16.0))
    assert isinstance(calibration.error, CalibrationFailed)
    assert "and not the 'synthetic-0' described" in str(calibration.error)
    assert calibrated_policy_for_device(device_with(9, 80, 16.0)) == GpuDispatchPolicy()


def test_a_runtime_with_a_policy_is_never_calibrated(cache_folder: Path) -> None:
    policy = GpuDispatchPolicy(syevd_min_p=3)
    runtime = GpuRuntime(devices=[device_with(0, 80, 16.0)], policy=policy)
    assert runtime.policy is policy
    assert runtime.calibration.origin is PolicyOrigin.GIVEN
    assert kept_files(cache_folder) == []
