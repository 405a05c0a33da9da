from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import cast

import pytest
from cuda.bindings import driver

from cudadrv.driver._api import CUcontext, CUdevice, CUmodule, CUstream
from cudadrv.driver.loading import load_cuda
from cudadrv.emulator import EmulatedDevice, Emulator
from cudadrv.emulator.timeline.schedule import Schedule

from .calls import OpenApi, load, ok
from .kernels import EMPTY, FILL, INCREMENT, MAXNTID, REQNTID, STATIC_SHARED


def _has_gpu() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations run at their call, unless a test asks for another order itself."""
    monkeypatch.delenv(Schedule.VARIABLE, raising=False)


@pytest.fixture
def emulator() -> Emulator:
    """An initialised emulator with two devices."""
    emulator = Emulator([EmulatedDevice(), EmulatedDevice(sm_count=4)])
    ok(emulator.cuInit(0))
    return emulator


@pytest.fixture(params=["immediate", "late"])
def in_either_order(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """An emulator with two devices and a context of the first, in the order of calls and late."""
    emulator = Emulator(2, order=request.param)
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    yield emulator
    emulator.finish()


@pytest.fixture(params=["emulator", "cuda"])
def api(request: pytest.FixtureRequest, emulator: Emulator) -> OpenApi:
    """The emulator, and the CUDA driver where there is one: tests with it hold for both."""
    if request.param == "emulator":
        return emulator
    if not _has_gpu():
        pytest.skip("needs an NVIDIA GPU")
    cuda = load_cuda()
    for name in vars(OpenApi):
        if name.startswith("cu"):
            setattr(cuda, name, getattr(driver, name))
    ok(cuda.cuInit(0))
    return cast(OpenApi, cuda)  # filled by name, as `load_cuda` does


@pytest.fixture
def device(api: OpenApi) -> CUdevice:
    return ok(api.cuDeviceGet(0))


@pytest.fixture
def context(api: OpenApi, device: CUdevice) -> Iterator[CUcontext]:
    """A context of the first device, the only one on this thread's stack."""
    context = ok(api.cuCtxCreate(None, 0, device))
    yield context
    while int(ok(api.cuCtxGetCurrent())):
        ok(api.cuCtxPopCurrent())
    api.cuCtxDestroy(context)


@pytest.fixture
def stream(api: OpenApi, context: CUcontext) -> CUstream:
    return ok(api.cuStreamCreateWithPriority(1, 0))


@pytest.fixture
def module(api: OpenApi, context: CUcontext) -> CUmodule:
    return load(api, EMPTY, FILL, INCREMENT, MAXNTID, REQNTID, STATIC_SHARED)
