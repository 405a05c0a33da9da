from __future__ import annotations

import os
import time

import pytest

import cudadrv
from cudadrv import GpuPolicy, GpuRuntime, LaunchConfig, Module
from cudadrv.errors import DriverCallFailed
from cudadrv.runtime import (
    CudaBackendContext,
    CudaBackendParts,
    GpuAvailable,
    GpuDispatchPolicy,
    PolicyOrigin,
    calibrated_policy_for_device,
    probe_backend_with_compile,
    probe_cuda_backend,
)
from tests.several_threads import all_at_once

SECONDS = float(os.environ.get("CUDADRV_STRESS_SECONDS", "0.5"))
LABELS = ("bms_flex", "survival_flex", "cubic_bspline_moments", "cubic_cell", "pirls_row", "sphere")
ROWS = """
extern "C" __global__ void scale(double* x, double by, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= by; }
"""


@pytest.fixture(scope="module")
def runtime() -> GpuRuntime:
    found = GpuRuntime.current()
    assert found is not None
    return found


def test_the_runtime_has_every_device_the_best_first(runtime: GpuRuntime) -> None:
    devices = cudadrv.list_devices()
    assert runtime.device_count() == len(devices)
    assert sorted(runtime.device_ordinals()) == [device.ordinal for device in devices]
    scores = [info.score() for info in runtime.devices]
    assert scores == sorted(scores, reverse=True)
    assert runtime.selected_device() is runtime.device is runtime.devices[0]
    for info in runtime.devices:
        device = devices[info.ordinal]
        assert (info.name, info.total_mem_bytes) == (device.name, device.memory_info().total)
        assert info.capability.compute_capability == device.compute_capability
        assert runtime.memory_budget_for(info.ordinal) == min(
            info.free_mem_bytes, info.total_mem_bytes // 2
        )
    assert runtime.memory_budget_for(99) == runtime.memory_budget_bytes > 0


def test_policies_get_the_one_runtime_or_none(runtime: GpuRuntime) -> None:
    assert GpuRuntime.resolve(GpuPolicy.AUTO) is runtime
    assert GpuRuntime.resolve(GpuPolicy.REQUIRED) is runtime
    assert GpuRuntime.resolve(GpuPolicy.OFF) is None
    assert GpuRuntime.availability() == GpuAvailable(runtime)
    assert GpuRuntime.current_for_flops(524_287) is None
    assert GpuRuntime.current_for_flops(524_288) is runtime


def test_shared_probe_matches_runtime_device_and_labels_errors(runtime: GpuRuntime) -> None:
    expected = runtime.selected_device()
    for label in LABELS:
        parts = probe_cuda_backend(label)
        assert parts.ctx.ordinal == expected.ordinal
        assert parts.capability == expected.capability
        assert parts.ctx is cudadrv.cuda_context_for(expected.ordinal)
        parts.stream.synchronize()


def test_a_backend_compiles_its_source_in_the_probe_and_runs_it_on_its_arena() -> None:
    def build(parts: CudaBackendParts) -> CudaBackendContext:
        backend = CudaBackendContext.from_parts(parts)
        backend.module.get_or_compile(backend.ctx, "rows", ROWS)
        return backend

    backend = probe_backend_with_compile("rows", build)
    module = backend.module.get()
    assert isinstance(module, Module)
    bucket, slab = backend.arena.alloc(backend.stream, 1000, "rows")
    assert bucket == 1024
    backend.stream.fill(slab, 3.0)
    config = LaunchConfig.for_elements(1000)
    module.kernel("scale").launch(backend.stream, config, slab, 2.0, 1000)
    assert backend.stream.to_host(slab).tolist() == [6.0] * 1000 + [3.0] * 24
    backend.arena.release(bucket, slab)


def test_a_source_that_does_not_compile_fails_the_probe_under_its_label() -> None:
    def build(parts: CudaBackendParts) -> Module:
        return CudaBackendContext.from_parts(parts).module.get_or_compile(
            parts.ctx, "sphere", "nonsense {"
        )

    with pytest.raises(DriverCallFailed, match=r"^sphere NVRTC compile failed: "):
        probe_backend_with_compile("sphere", build)


@pytest.mark.slow
def test_the_policy_is_calibrated_once_or_reports_why_not(runtime: GpuRuntime) -> None:
    calibration = runtime.calibration
    assert runtime.policy is calibration.policy
    assert runtime.calibration is calibration
    default = GpuDispatchPolicy()
    if calibration.origin is PolicyOrigin.DEFAULT:
        assert calibration.error is not None
        assert calibration.policy == default
    else:
        assert calibration.origin in (PolicyOrigin.MEASURED, PolicyOrigin.CACHED)
        assert calibration.error is None
        assert calibrated_policy_for_device(runtime.device) == calibration.policy
        # What was not measured keeps its default.
        assert calibration.policy.syevd_min_p == default.syevd_min_p
        assert calibration.policy.gemm_min_flops in (524_288, 4_194_304, 33_554_432, 100_000_000)
        assert calibration.policy.potrf_min_p in (64, 128, 256, 512)
        assert calibration.policy.xtwx_n_min in (2048, 4096, 8192, 50_000)


def test_threads_that_request_a_runtime_at_once_get_one(runtime: GpuRuntime) -> None:
    end = time.monotonic() + SECONDS / 5
    found: set[int] = set()

    def ask() -> None:
        rounds = 0
        while not rounds or time.monotonic() < end:
            rounds += 1
            parts = probe_cuda_backend("sphere")
            found.add(id(GpuRuntime.current()))
            found.add(id(runtime) if parts.ctx.ordinal == runtime.device.ordinal else 0)

    all_at_once([ask] * 32)
    assert found == {id(runtime)}
