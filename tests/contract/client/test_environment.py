from __future__ import annotations

import warnings

import pytest

from cudadrv import CudaClient, emulator
from cudadrv.memory.driver_pool import release_threshold

NAMES = ["CUDADRV_POOL_RELEASE_THRESHOLD_MB", "CUDADRV_FREE_LIST_CAP_MB"]


def threshold_and_cap() -> tuple[int, int]:
    """What a new client sets, on a fresh emulator."""
    with emulator.session():
        client = CudaClient(0)
        return release_threshold(client.device), client.allocator.statistics().cap_bytes


def test_the_defaults_are_512_and_1024_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert threshold_and_cap() == (512 << 20, 1024 << 20)


def test_the_variables_are_in_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_POOL_RELEASE_THRESHOLD_MB", " 64 ")
    monkeypatch.setenv("CUDADRV_FREE_LIST_CAP_MB", "0")
    assert threshold_and_cap() == (64 << 20, 0)


@pytest.mark.parametrize("text", ["lots", "-1", "1.5", "512MB", "٣", "99999999999999999999"])
def test_what_cannot_be_read_is_the_default_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert threshold_and_cap() == (512 << 20, 1024 << 20)
    assert [warning.category for warning in caught] == [RuntimeWarning] * 2
    for name, warning in zip(NAMES, caught, strict=True):
        assert str(warning.message).startswith(f"{name} is {text!r}")


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, "")
    assert threshold_and_cap() == (512 << 20, 1024 << 20)
