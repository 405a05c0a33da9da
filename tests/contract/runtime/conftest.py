from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudadrv.driver import driver_selection
from cudadrv.driver.driver_api import DriverApi
from cudadrv.errors import DriverNotFoundError

_blanks = itertools.count(1)


class NoDriver:
    """A machine without a driver, which counts how often one is looked for."""

    def __init__(self) -> None:
        self.looked = 0
        self.error: Exception = DriverNotFoundError("no CUDA driver was found")

    def load(self) -> DriverApi:
        self.looked += 1
        raise self.error


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[NoDriver]:
    absent = NoDriver()
    monkeypatch.setattr(driver_selection, "load_cuda", absent.load)
    # A value no other test has, so that what was found without a driver is not known yet.
    monkeypatch.setenv("CUDADRV_DRIVER", "cuda" + " " * next(_blanks))
    former = driver_selection.set_current(None)
    yield absent
    driver_selection.set_current(former)


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, so that it finds nothing and leaves nothing."""
    monkeypatch.setenv("CUDADRV_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CUDADRV_CACHE_MAX_MB", raising=False)
    return tmp_path


def kept_files(folder: Path) -> list[Path]:
    """The calibrations in a cache folder."""
    return sorted((folder / "calibration").glob("*.json"))
