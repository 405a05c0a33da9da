from __future__ import annotations

from dataclasses import replace

import pytest

from cudadrv.driver import GpuCapability

from .devices import GIB, device_with


@pytest.mark.parametrize(
    ("version", "tensor", "fp64_tensor", "async_copy", "cluster", "tma"),
    [
        ((6, 0), False, False, False, False, False),
        ((7, 0), True, False, False, False, False),
        ((7, 5), True, False, False, False, False),
        ((8, 0), True, True, True, False, False),
        ((8, 9), True, True, True, False, False),
        ((9, 0), True, True, True, True, True),
        ((12, 0), True, True, True, True, True),
    ],
)
def test_a_capability_offers_what_its_major_brings(
    version: tuple[int, int],
    tensor: bool,
    fp64_tensor: bool,
    async_copy: bool,
    cluster: bool,
    tma: bool,
) -> None:
    found = GpuCapability.from_compute_capability(*version)
    assert found == GpuCapability(*version, tensor, fp64_tensor, async_copy, cluster, tma, 32)
    assert found.compute_capability == version


@pytest.mark.parametrize(
    ("version", "arch"),
    [
        ((9, 0), "compute_90"),
        ((8, 9), "compute_89"),
        ((8, 6), "compute_86"),
        ((8, 0), "compute_80"),
        ((7, 5), "compute_75"),
    ],
)
def test_nvrtc_compiles_for_the_capability(version: tuple[int, int], arch: str) -> None:
    assert GpuCapability.from_compute_capability(*version).nvrtc_arch() == arch


def test_a_capability_newer_than_nvrtc_rounds_down() -> None:
    arch = GpuCapability.from_compute_capability(99, 0).nvrtc_arch()
    assert 90 <= int(arch.removeprefix("compute_")) < 990


def test_score_weighs_multiprocessors_memory_and_features() -> None:
    device = device_with(0, 80, 16.0)
    assert device.score() == 80 + 4 * 16
    ampere = replace(device, capability=GpuCapability.from_compute_capability(8, 0))
    assert ampere.score() == 80 + 4 * 16 + 100 + 50
    assert replace(device, free_mem_bytes=GIB // 2).score() == 82


def test_the_budget_is_what_is_free_up_to_half_of_all() -> None:
    device = replace(device_with(0, 80, 8.0), total_mem_bytes=16 * GIB)
    assert device.memory_budget_bytes() == 8 * GIB
    assert replace(device, free_mem_bytes=3 * GIB).memory_budget_bytes() == 3 * GIB
    assert replace(device, free_mem_bytes=15 * GIB).memory_budget_bytes() == 8 * GIB
