"""What was held when its context was reset: no call meets its former handle, nor None for one."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from cuda.bindings import driver

import cudadrv
from cudadrv import Context, DeviceArray, DeviceBuffer, emulator
from cudadrv.driver import deferred_release
from cudadrv.driver.handle import InvalidatedHandle
from cudadrv.errors import ClosedError

N = 1 << 20


@pytest.mark.parametrize(
    "kind",
    [
        driver.CUcontext, driver.CUstream, driver.CUevent, driver.CUdeviceptr, driver.CUmodule,
        driver.CUarray, driver.CUmipmappedArray, driver.CUtexObject, driver.CUsurfObject,
        driver.CUgraph, driver.CUgraphExec, driver.CUgraphicsResource,
    ],
)  # fmt: skip
def test_the_bindings_take_no_handle_that_was_lost(kind: type[object]) -> None:
    lost = InvalidatedHandle("its context was reset")
    assert not lost
    with pytest.raises(ClosedError, match="its context was reset"):
        kind(lost)  # type: ignore[call-arg]  # as the functions do with what they are given
    with emulator.session() as machine, pytest.raises(ClosedError, match="its context was reset"):
        machine.cuStreamSynchronize(lost)  # type: ignore[arg-type]  # what is tested


class Owner:
    """Of memory that is borrowed."""


def parked(near: Context, far: Context) -> tuple[DeviceArray[np.uint8], DeviceArray[np.uint8]]:
    """Memory of one device, and its copy on another; a buffer over it was dropped meanwhile."""
    here, there = near.new_stream(), far.new_stream()
    source, target = here.zeros(N, np.uint8), there.zeros(N, np.uint8)
    here.fill(source, 7)
    buffer = DeviceBuffer.borrowed(here, source.ptr, N, Owner())
    there.copy(target, DeviceArray(buffer, N, np.uint8))
    return source, target


def test_a_reset_waits_for_other_devices_that_use_its_memory() -> None:
    with emulator.session(devices=2, order="late"):
        near, far = cudadrv.cuda_context_for(0), cudadrv.cuda_context_for(1)
        _, target = parked(near, far)
        near.reset()
        assert (far.new_stream().to_host(target) == 7).all()
        assert not deferred_release.waiting_count()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is not in a live allocation")
def test_what_waits_for_a_device_that_was_reset_waits_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as where another thread uses its memory in between."""
    monkeypatch.setattr("cudadrv.stream.reset.wait_for_contexts", lambda *_: None)
    with emulator.session(devices=2, order="late"):
        near, far = cudadrv.cuda_context_for(0), cudadrv.cuda_context_for(1)
        _, target = parked(near, far)
        near.reset()
        client = cudadrv.CudaClient(0)
        client.synchronize()
        assert not deferred_release.waiting_count()
        del target


@pytest.mark.slow
def test_pinned_memory_goes_while_a_green_context_of_a_reset_device_is_held() -> None:
    with emulator.session(devices=2):
        context = cudadrv.cuda_context_for(0)
        green = Context.create_green(context.sm_resource.split(8, 1)[0])
        held = green._handle
        cudadrv.cuda_context_for(1).bind()
        pinned = cudadrv.pinned_empty(4, "f4")
        context.reset()
        told: list[object] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.unraisablehook", lambda args: told.append(args.exc_value))
            del pinned
        assert not told
        with pytest.raises(ClosedError, match="device 0 was reset"):
            int(held.raw)


class Opener:
    """Makes a stream when it goes, as finalizers of users may."""

    def __init__(self, made: list[cudadrv.Stream]) -> None:
        self._made = made

    def __del__(self) -> None:
        self._made.append(cudadrv.cuda_context_for(0).new_stream())


@pytest.mark.slow
def test_what_a_finalizer_makes_while_a_context_is_reset_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[cudadrv.Stream] = []
    give_up = Context._give_up

    def with_finalizer(self: Context) -> None:
        give_up(self)
        deferred_release.defer_release([Opener(made)])

    monkeypatch.setattr(Context, "_give_up", with_finalizer)
    with emulator.session():
        cudadrv.cuda_context_for(0).reset()
        assert [stream.closed for stream in made] == [True]
        made.clear()
        gc.collect()
        with cudadrv.cuda_context_for(0).new_stream() as again:
            assert again.to_host(again.zeros(3, "u1")).tolist() == [0, 0, 0]
