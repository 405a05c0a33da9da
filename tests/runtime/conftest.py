from __future__ import annotations

from collections.abc import Iterator

import pytest

from cudadrv import _driver
from cudadrv._api import DriverApi
from cudadrv.errors import DriverNotFoundError


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
    monkeypatch.setattr(_driver, "load_cuda", absent.load)
    # A value no other test has, so that what was found without a driver is not known yet.
    monkeypatch.setenv("CUDADRV_DRIVER", f"cuda{' ' * (id(absent) % 97 + 1)}")
    former = _driver.install(None)
    yield absent
    _driver.install(former)
