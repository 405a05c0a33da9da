"""No test of this folder, nor a process that it starts, loads a driver or makes an emulator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cudadrv.driver import driver_selection
from cudadrv.driver.driver_selection import Driver


def _reject(self: Driver, api: object) -> None:
    raise AssertionError("tests of tests/pure load no driver: this one belongs into another folder")


@pytest.fixture(autouse=True, scope="package")
def _without_driver() -> Iterator[None]:
    # A driver that an earlier test of another folder has loaded is not in use here.
    former = driver_selection.set_current(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDADRV_DRIVER", "none: tests/pure loads no driver")  # for child processes
        patch.setattr(Driver, "__init__", _reject)
        yield
    driver_selection.set_current(former)
