from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cudadrv import Device, emulator
from cudadrv.emulator import H100
from cudadrv.runtime import GpuDispatchPolicy, GpuMixedPrecisionPolicy, PolicyOrigin
from cudadrv.runtime.calibration import CalibrationStore, calibrate, fingerprint

from .conftest import kept_files
from .devices import device_with

KNOWN = GpuDispatchPolicy(potrf_min_p=77, mixed_precision=GpuMixedPrecisionPolicy.OFF)
PRINT = fingerprint(device_with(0, 80, 16.0), emulated=False)


def test_what_was_saved_is_loaded_under_its_fingerprint_alone(cache_folder: Path) -> None:
    store = CalibrationStore.from_environment()
    assert store.load(PRINT) is None
    store.save(PRINT, KNOWN)
    assert CalibrationStore.from_environment().load(PRINT) == KNOWN
    assert store.load(fingerprint(device_with(0, 81, 16.0), emulated=False)) is None
    store.save(PRINT, GpuDispatchPolicy())
    assert store.load(PRINT) == GpuDispatchPolicy()
    assert len(kept_files(cache_folder)) == 1


def test_a_cached_policy_is_read_and_not_measured_again() -> None:
    with emulator.session() as machine:
        info = Device.get(0).info()
        CalibrationStore.from_environment().save(fingerprint(info, emulated=True), KNOWN)
        with machine.fail("cuMemAllocAsync", times=None) as counted:
            calibration = calibrate(replace(info, free_mem_bytes=1))
        assert counted.calls == 0
    assert (calibration.policy, calibration.origin) == (KNOWN, PolicyOrigin.CACHED)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "[" * 100_000,
        lambda text: text.replace('"schema": 1', '"schema": 0'),
        lambda text: text.replace("synthetic", "another"),
        lambda text: text.replace("potrf_min_p", "potrf_max_p"),
        lambda text: text.replace("77", "-77"),
    ],
)
def test_a_file_that_is_torn_or_foreign_is_passed_over_and_replaced(
    cache_folder: Path, spoil: Callable[[str], str]
) -> None:
    store = CalibrationStore.from_environment()
    store.save(PRINT, KNOWN)
    (file,) = kept_files(cache_folder)
    file.write_text(spoil(file.read_text()))
    assert store.load(PRINT) is None
    store.save(PRINT, KNOWN)
    assert store.load(PRINT) == KNOWN
    assert kept_files(cache_folder) == [file]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user bound by rights")
def test_a_read_only_folder_keeps_nothing_and_raises_nothing(cache_folder: Path) -> None:
    cache_folder.chmod(0o500)
    store = CalibrationStore.from_environment()
    store.save(PRINT, KNOWN)
    assert store.load(PRINT) is None


def test_a_folder_that_cannot_be_made_keeps_nothing_and_raises_nothing(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache_folder / "file").write_text("")
    monkeypatch.setenv("CUDADRV_CACHE_DIR", str(cache_folder / "file"))
    store = CalibrationStore.from_environment()
    store.save(PRINT, KNOWN)
    assert store.load(PRINT) is None


def test_a_cache_turned_off_keeps_nothing(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_CACHE_MAX_MB", "0")
    store = CalibrationStore.from_environment()
    store.save(PRINT, KNOWN)
    assert store.load(PRINT) is None
    assert kept_files(cache_folder) == []


def test_a_fingerprint_is_of_the_kind_of_device() -> None:
    with emulator.session([H100, H100, replace(H100, sm_count=114)]):
        first, second, smaller = (Device.get(ordinal).info() for ordinal in range(3))
    print_of_first = fingerprint(first, emulated=False)
    assert fingerprint(replace(second, free_mem_bytes=5), emulated=False) == print_of_first
    assert fingerprint(smaller, emulated=False) != print_of_first
    assert fingerprint(first, emulated=True) != print_of_first
    assert set(json.loads(print_of_first)) == {
        "name",
        "capability",
        "sm_count",
        "max_threads_per_sm",
        "max_shared_mem_per_block",
        "l2_cache_bytes",
        "total_mem_bytes",
        "ecc_enabled",
        "integrated",
        "mig_mode",
        "emulated",
    }
