"""What the binding raises instead of answering, as errors of this package."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Never

import pytest

from cudadrv.driver import driver_api
from cudadrv.driver.driver_api import _translated, load_cuda
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


def cuMemAllocAsync(nbytes: int, stream: object) -> Never:
    raise RuntimeError('Function "cuMemAllocAsync" not found')


@pytest.mark.parametrize("finds", [True, False], ids=["finds", "finds nothing"])
def test_a_driver_that_lacks_a_function_of_a_quick_path_is_too_old(
    monkeypatch: pytest.MonkeyPatch, finds: bool
) -> None:
    def cuGetProcAddress(name: bytes, version: int, flags: int) -> tuple[int, int, int]:
        assert version == 12000
        found = finds and name != b"cuMemAllocAsync"
        return (0, 1, 0) if found else (500, 0, 1)

    def cuCtxPushCurrent(context: object) -> tuple[int]:
        return (0,)

    functions = (cuMemAllocAsync, cuGetProcAddress, cuCtxPushCurrent)
    named = {function.__name__: function for function in functions}
    fake = SimpleNamespace(CUDA_VERSION=13000, cuInit=lambda flags: (0,), **named)
    monkeypatch.setattr(driver_api, "bindings", fake)
    api = load_cuda()
    assert api.cuInit(0) == (0,)
    # The binding's own function costs least.
    assert (api.cuCtxPushCurrent is cuCtxPushCurrent) is finds
    for _ in range(2):
        with pytest.raises(DriverSymbolMissingError, match="cuMemAllocAsync is not in the install"):
            api.cuMemAllocAsync(8, None)  # type: ignore[arg-type]  # never looked at
    with pytest.raises(DriverSymbolMissingError, match="cuMemFreeAsync is not in cuda-bindings of"):
        api.cuMemFreeAsync(None, None)  # type: ignore[arg-type]  # never looked at
