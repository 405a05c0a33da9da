"""What the binding raises instead of answering, as errors of this package."""

from __future__ import annotations

from typing import Never

import pytest

from cudadrv.driver.driver_api import _translated
from cudadrv.errors import DriverNotFoundError, DriverSymbolMissingError


def cuInit(flags: int) -> Never:
    """What the bindings before 13.4 say without a driver, first and then."""
    raise RuntimeError('Function "cuInit" not found' if flags else "Failed to dlopen libcuda.so.1")


def cuKernelGetName(kernel: object) -> Never:
    raise RuntimeError('Function "cuKernelGetName" not found')


@pytest.mark.parametrize("flags", [0, 1])
def test_a_driver_without_cuinit_is_no_driver(flags: int) -> None:
    with pytest.raises(DriverNotFoundError, match="no CUDA driver was found"):
        _translated(cuInit, flags)


def test_a_driver_that_lacks_a_later_function_is_too_old() -> None:
    with pytest.raises(DriverSymbolMissingError, match="cuKernelGetName is not in the installed"):
        _translated(cuKernelGetName, None)
