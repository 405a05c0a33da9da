"""Looking for devices: its three outcomes on emulators, faults planned, and without a driver."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import cudadrv
from cudadrv import GpuPolicy, GpuRuntime, emulator
from cudadrv.driver import driver_selection
from cudadrv.emulator import EmulatedDevice
from cudadrv.errors import (
    CudaError,
    DriverCallFailed,
    DriverLibraryLoadFailed,
    DriverSymbolMissing,
    DriverSymbolMissingError,
    NoDeviceError,
    RequiredDeviceUnavailable,
)
from cudadrv.runtime import AbsenceReason, GpuAbsent, GpuAvailable, GpuBroken, GpuDispatchPolicy
from tests.current_context import current_context
from tests.patience import SECONDS

from .conftest import NoDriver
from .devices import GIB, device_with, runtime_with

UNEQUAL = [
    EmulatedDevice(sm_count=10, total_memory=4 * GIB, name="small"),
    EmulatedDevice(sm_count=100, total_memory=8 * GIB, name="large"),
    EmulatedDevice(sm_count=50, total_memory=8 * GIB, name="middle"),
]


def test_devices_are_found_and_sorted_by_score() -> None:
    with emulator.session(UNEQUAL):
        runtime = GpuRuntime.current()
        assert runtime is not None
        assert [device.name for device in runtime.devices] == ["large", "middle", "small"]
        assert runtime.device_ordinals() == (1, 2, 0)
        assert runtime.device_count() == 3
        assert runtime.selected_device() is runtime.devices[0]
        assert runtime.memory_budget_bytes == 4 * GIB
        assert runtime.memory_budget_for(0) == 2 * GIB
        assert "3 devices (1: large, 2: middle, 0: small)" in repr(runtime)


def test_the_first_probe_is_cached_and_every_thread_gets_it() -> None:
    with emulator.session(UNEQUAL) as machine:
        counted = machine.fail("cuDeviceGetCount", nth=1 << 30)
        found: list[GpuRuntime | None] = []
        threads = [
            threading.Thread(target=lambda: found.append(GpuRuntime.current())) for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        once = counted.calls
        assert len(found) == 16
        assert {id(runtime) for runtime in found} == {id(GpuRuntime.current())}
        assert counted.calls == once
        assert isinstance(GpuRuntime.probe(), GpuAvailable)
        assert counted.calls > once


def test_a_session_sees_its_own_devices_and_the_former_come_back() -> None:
    with emulator.session(UNEQUAL):
        outer = GpuRuntime.current()
        with emulator.session(devices=1):
            inner = GpuRuntime.current()
            assert inner is not None
            assert inner.device_count() == 1
        assert GpuRuntime.current() is outer


def test_probing_leaves_the_current_context_as_it_was() -> None:
    with emulator.session(UNEQUAL):
        assert current_context() == 0
        GpuRuntime.current()
        assert current_context() == 0


def test_no_device_is_absence_with_its_reason(no_driver: NoDriver) -> None:
    no_driver.error = NoDeviceError("initialising the CUDA driver", call="cuInit")
    outcome = GpuRuntime.availability()
    assert isinstance(outcome, GpuAbsent)
    assert outcome.reason is AbsenceReason.NO_DEVICE
    assert "CUDA_VISIBLE_DEVICES" in outcome.detail
    assert GpuRuntime.resolve(GpuPolicy.AUTO) is None
    assert GpuRuntime.current() is None
    with pytest.raises(RequiredDeviceUnavailable, match=r"there is none \(no device\)"):
        GpuRuntime.resolve(GpuPolicy.REQUIRED)


def test_a_driver_that_counts_no_device_is_absence_too() -> None:
    with emulator.session() as machine, machine.fail("cuDeviceGetCount", with_=100):
        outcome = GpuRuntime.probe()
        assert isinstance(outcome, GpuAbsent)
        assert outcome.reason is AbsenceReason.NO_DEVICE


def test_no_driver_is_absence_and_is_looked_for_once(no_driver: NoDriver) -> None:
    outcomes = [GpuRuntime.availability() for _ in range(50)]
    assert no_driver.looked == 1
    assert outcomes == [GpuAbsent(AbsenceReason.NO_DRIVER, "no CUDA driver was found")] * 50
    assert GpuRuntime.current() is None
    with pytest.raises(RequiredDeviceUnavailable, match="no driver"):
        GpuRuntime.resolve(GpuPolicy.REQUIRED)
    with emulator.session():
        assert GpuRuntime.current() is not None
    assert GpuRuntime.current() is None


def test_a_platform_without_cuda_is_named(
    no_driver: NoDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    outcome = GpuRuntime.availability()
    assert isinstance(outcome, GpuAbsent)
    assert outcome.reason is AbsenceReason.UNSUPPORTED_PLATFORM


def test_off_and_small_work_never_touch_the_driver(no_driver: NoDriver) -> None:
    assert GpuRuntime.resolve(GpuPolicy.OFF) is None
    assert GpuRuntime.current_for_flops(524_287) is None
    assert no_driver.looked == 0
    assert GpuRuntime.current_for_flops(524_288) is None
    assert no_driver.looked == 1


def test_work_of_the_smallest_calibrated_product_gets_the_runtime() -> None:
    with emulator.session():
        assert GpuRuntime.current_for_flops(524_287) is None
        assert GpuRuntime.current_for_flops(524_288) is GpuRuntime.current()


def test_a_failing_device_is_broken_and_never_absent() -> None:
    with emulator.session(devices=2) as machine:
        with machine.fail("cuDevicePrimaryCtxRetain", nth=2, with_=46):
            outcome = GpuRuntime.availability()
        assert isinstance(outcome, GpuBroken)
        assert isinstance(outcome.error, DriverCallFailed)
        assert isinstance(outcome.error.__cause__, CudaError)
        assert outcome.error.__cause__.code == 46
        for policy in (GpuPolicy.AUTO, GpuPolicy.REQUIRED):
            with pytest.raises(DriverCallFailed, match="looking for CUDA devices failed") as caught:
                GpuRuntime.resolve(policy)
            assert caught.value is not outcome.error
            assert caught.value.__cause__ is outcome.error.__cause__
        assert GpuRuntime.resolve(GpuPolicy.OFF) is None
        assert isinstance(GpuRuntime.probe(), GpuAvailable)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError("libcuda.so.1: wrong ELF class"), DriverLibraryLoadFailed),
        (DriverSymbolMissingError("cuInit is not in the driver"), DriverSymbolMissing),
        (CudaError.for_code(803)("initialising the CUDA driver"), DriverCallFailed),
        (CudaError.for_code(34)("initialising the CUDA driver"), DriverCallFailed),
    ],
)
def test_a_driver_that_is_there_and_fails_is_broken(
    no_driver: NoDriver, error: Exception, kind: type[cudadrv.errors.GpuError]
) -> None:
    no_driver.error = error
    outcome = GpuRuntime.availability()
    assert isinstance(outcome, GpuBroken)
    assert isinstance(outcome.error, kind)
    with pytest.raises(kind, match="looking for CUDA devices failed"):
        GpuRuntime.current()


def test_a_driver_chosen_with_a_bad_value_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    former = driver_selection.set_current(None)
    try:
        monkeypatch.setenv("CUDADRV_DRIVER", "metal")
        with pytest.raises(DriverLibraryLoadFailed, match="CUDADRV_DRIVER is 'metal'"):
            GpuRuntime.current()
    finally:
        driver_selection.set_current(former)


def test_a_process_without_a_driver_raises_cleanly_from_many_threads() -> None:
    """On the machine itself, if it has no driver: nothing is put in anything's place."""
    program = """
import threading, cudadrv
try:
    cudadrv.init()
except cudadrv.DriverNotFoundError:
    pass
else:
    print("a driver"); raise SystemExit
found = []
def ask():
    for _ in range(50):
        found.append(cudadrv.GpuRuntime.current())
threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert found == [None] * 400
try:
    cudadrv.runtime.probe_cuda_backend("bms_flex")
except cudadrv.errors.DriverLibraryUnavailable as error:
    print(error.reason)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"CUDADRV_DRIVER": "cuda", "PYTHONPATH": ":".join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    if done.stdout == "a driver\n":
        pytest.skip("needs a machine without a driver")
    assert done.stdout == "bms_flex backend: no CUDA runtime available\n"


def test_device_ordinals_and_count_track_pool() -> None:
    rt = runtime_with(*(device_with(ordinal, 80, 16.0) for ordinal in (0, 3, 5)))
    assert rt.device_count() == 3
    assert rt.device_ordinals() == (0, 3, 5)


def test_memory_budget_for_caps_free_at_half_total() -> None:
    rt = runtime_with(device_with(0, 80, 8.0))
    assert rt.memory_budget_for(0) == 8 * GIB
    assert rt.memory_budget_for(99) == rt.memory_budget_bytes


def test_a_runtime_made_by_hand_keeps_what_it_is_given() -> None:
    device, other = device_with(4, 80, 8.0), device_with(2, 80, 16.0)
    policy = GpuDispatchPolicy(potrf_min_p=7)
    rt = GpuRuntime(device=device, devices=[other, device], policy=policy, memory_budget_bytes=5)
    assert rt.selected_device() is device
    assert rt.devices == (other, device)
    assert rt.policy is policy
    assert (rt.memory_budget_bytes, rt.memory_budget_for(1)) == (5, 5)
    assert GpuRuntime(devices=[other]).device is other
    assert GpuRuntime(devices=[other]).memory_budget_bytes == 16 * GIB
    with pytest.raises(ValueError, match="needs a device"):
        GpuRuntime()
