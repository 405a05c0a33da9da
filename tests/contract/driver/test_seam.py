"""What the binding raises instead of answering, as errors of this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Never, cast

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.driver import loading
from cudadrv.driver.driver_api import DriverApi
from cudadrv.driver.driver_selection import checked
from cudadrv.driver.loading import load_cuda, translated
from cudadrv.errors import (
    DriverAnswerError,
    DriverNotFoundError,
    DriverSymbolMissingError,
    InvalidDeviceError,
)
from tests.noted_calls import replaced_calls


def cuInit(flags: int) -> Never:
    """What the bindings before 13.4 say without a driver, first and then."""
    raise RuntimeError('Function "cuInit" not found' if flags else "Failed to dlopen libcuda.so.1")


def cuKernelGetName(kernel: object) -> Never:
    raise RuntimeError('Function "cuKernelGetName" not found')


@pytest.mark.parametrize("flags", [0, 1])
def test_a_driver_without_cuinit_is_no_driver(flags: int) -> None:
    with pytest.raises(DriverNotFoundError, match="no CUDA driver was found"):
        translated(cuInit, flags)


def test_a_driver_that_lacks_a_later_function_is_too_old() -> None:
    with pytest.raises(DriverSymbolMissingError, match="cuKernelGetName is not in the installed"):
        translated(cuKernelGetName, None)


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
    monkeypatch.setattr(loading, "bindings", fake)
    api = load_cuda()
    assert api.cuInit(0) == (0,)
    # The binding's own function costs least.
    assert (api.cuCtxPushCurrent is cuCtxPushCurrent) is finds
    for _ in range(2):
        with pytest.raises(DriverSymbolMissingError, match="cuMemAllocAsync is not in the install"):
            api.cuMemAllocAsync(8, None)  # type: ignore[arg-type]  # never looked at
    with pytest.raises(DriverSymbolMissingError, match="cuMemFreeAsync is not in cuda-bindings of"):
        api.cuMemFreeAsync(None, None)  # type: ignore[arg-type]  # never looked at


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the loader of Windows does not say which it is")
@pytest.mark.parametrize(("content", "reason"), [(b"", "too short"), (b"no ELF" * 99, "invalid")])
def test_a_driver_library_that_does_not_load_is_named_with_the_reason(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    library = tmp_path / "libcuda.so.1"
    library.write_bytes(content)
    code = """
import cudadrv
try:
    cudadrv.init()
except cudadrv.errors.DriverLoadError as error:
    print(error)
print(type(cudadrv.GpuRuntime.availability().error).__name__)
from cudadrv.__main__ import main
main(["doctor"])
"""
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "CUDADRV_DRIVER": "cuda"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    first, fault, remedy, *_ = lines = done.stdout.splitlines()
    assert first == "the CUDA driver library was found, but does not load"
    assert fault.startswith(f"  {library}: ")
    assert reason in fault
    assert "install the NVIDIA driver again" in remedy
    assert "DriverLibraryLoadFailed" in lines
    assert str(library) in "".join(lines[4:]).replace(" ", "")
    assert "there is no CUDA driver" not in done.stdout


@pytest.mark.parametrize("count", [2**31 - 1, -1])
def test_an_absurd_number_of_devices_is_an_error(count: int) -> None:
    with emulator.session(), replaced_calls(cuDeviceGetCount=lambda: (0, count)):
        with pytest.raises(DriverAnswerError, match=f"cuDeviceGetCount returned {count} devices"):
            cudadrv.list_devices()
        with pytest.raises(DriverAnswerError, match="update or reinstall the NVIDIA driver"):
            cudadrv.Device.get(1)
        assert isinstance(cudadrv.GpuRuntime.probe(), cudadrv.runtime.GpuBroken)


def test_a_checked_call_returns_its_values_or_raises_the_typed_error() -> None:
    emulated = emulator.Emulator(devices=1)
    api = cast(DriverApi, emulated)
    checked(api, "cuInit", api.cuInit(0), "initialising")
    count = checked(api, "cuDeviceGetCount", api.cuDeviceGetCount(), "counting devices")
    device = checked(api, "cuDeviceGet", api.cuDeviceGet(0), "getting device 0")
    checked(api, "cuCtxCreate", api.cuCtxCreate(None, 0, device), "making a context")
    free, total = checked(api, "cuMemGetInfo", api.cuMemGetInfo(), "the free memory")
    assert count == 1
    assert 0 < free <= total
    with pytest.raises(InvalidDeviceError, match="getting device 7: cuDeviceGet retur") as caught:
        checked(api, "cuDeviceGet", api.cuDeviceGet(7), "getting device 7")
    assert (caught.value.call, caught.value.code) == ("cuDeviceGet", 101)
