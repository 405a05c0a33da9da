from __future__ import annotations

import pytest

import cudadrv
from cudadrv import GpuPolicy, GpuRuntime, emulator
from cudadrv.emulator import EmulatedDevice
from cudadrv.errors import (
    DriverCallFailed,
    DriverLibraryUnavailable,
    GpuError,
    InvalidDeviceError,
    NoDeviceError,
)
from cudadrv.runtime import (
    CudaBackendContext,
    CudaBackendParts,
    GpuAbsent,
    probe_backend_with_compile,
    probe_cuda_backend,
)

from .conftest import NoDriver


def test_without_a_runtime_the_error_is_worded_as_gam_words_it(no_driver: NoDriver) -> None:
    with pytest.raises(DriverLibraryUnavailable) as caught:
        probe_cuda_backend("bms_flex")
    assert caught.value.reason == "bms_flex backend: no CUDA runtime available"


def test_the_cause_of_a_missing_runtime_is_the_failure_of_the_probe(no_driver: NoDriver) -> None:
    outcome = GpuRuntime.availability()
    assert isinstance(outcome, GpuAbsent)
    for call in (lambda: probe_cuda_backend("x"), lambda: GpuRuntime.resolve(GpuPolicy.REQUIRED)):
        with pytest.raises(GpuError) as caught:
            call()
        assert caught.value.__cause__ is no_driver.error
        assert str(caught.value.__cause__) == outcome.detail


def test_the_cause_of_missing_devices_is_the_failure_of_the_probe() -> None:
    with emulator.session() as machine, machine.fail("cuDeviceGetCount", with_=100, times=None):
        with pytest.raises(DriverLibraryUnavailable) as caught:
            probe_cuda_backend("bms_flex")
        assert isinstance(caught.value.__cause__, NoDeviceError)


def test_without_a_context_the_error_names_the_device() -> None:
    devices = [EmulatedDevice(sm_count=1), EmulatedDevice(sm_count=9)]
    with emulator.session(devices) as machine:
        assert GpuRuntime.current() is not None
        machine.fail("cuCtxSetCurrent", with_=101)
        with pytest.raises(DriverCallFailed) as caught:
            probe_cuda_backend("sphere")
    assert caught.value.reason == "sphere backend: failed to create CUDA context for device 1"
    assert isinstance(caught.value.__cause__, InvalidDeviceError)


def test_a_broken_driver_is_reported_under_the_label() -> None:
    with emulator.session() as machine:
        machine.fail("cuDeviceGetCount", with_=999, times=None)
        with pytest.raises(DriverCallFailed, match=r"^pirls_row backend: looking for CUDA devices"):
            probe_cuda_backend("pirls_row")


def test_the_selected_device_is_the_one_of_the_highest_score() -> None:
    devices = [EmulatedDevice(sm_count=1), EmulatedDevice(sm_count=9, compute_capability=(8, 0))]
    with emulator.session(devices):
        parts = probe_cuda_backend("cubic_cell")
        assert parts.ctx is cudadrv.cuda_context_for(1)
        assert parts.stream is parts.ctx.default_stream
        assert parts.capability.compute_capability == (8, 0)


def test_build_gets_the_parts_and_its_result_is_returned() -> None:
    with emulator.session():
        seen: list[CudaBackendParts] = []

        def build(parts: CudaBackendParts) -> str:
            seen.append(parts)
            return "built"

        assert probe_backend_with_compile("sphere", build) == "built"
        assert seen == [probe_cuda_backend("sphere")]


def test_an_error_of_build_passes_through() -> None:
    def build(parts: CudaBackendParts) -> None:
        raise KeyError(parts.ctx.ordinal)

    with emulator.session(), pytest.raises(KeyError, match="0"):
        probe_backend_with_compile("sphere", build)


def test_a_backend_starts_with_an_empty_module_cache_and_arena() -> None:
    with emulator.session():
        parts = probe_cuda_backend("sphere")
        backend = CudaBackendContext.from_parts(parts)
        assert (backend.ctx, backend.stream) == (parts.ctx, parts.stream)
        assert backend.module.get() is None
        bucket, slab = backend.arena.alloc(backend.stream, 5, "sphere")
        assert (bucket, slab.shape, slab.dtype.name) == (8, (8,), "float64")
        backend.arena.release(bucket, slab)
