"""Waits that are part of a call: fills of host memory, and copies between devices.

Measured on two H200s with driver 580, also without peer access; CUDA Driver API, "API
synchronization behavior" and `cuMemcpyPeer`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
import ptx
from cudadrv import InOut, LaunchConfig, Out, emulator
from cudadrv.driver._api import CUcontext, CUdeviceptr, CUresult, CUstream
from cudadrv.emulator import Emulator

from .calls import code, ok

HostArray: TypeAlias = npt.NDArray[Any]  # of any element
NULL = CUstream(0)
NBYTES = 64


def two_contexts() -> tuple[Emulator, CUcontext, CUcontext]:
    """An emulator whose work runs late, and its devices' contexts; the second one is current."""
    machine = Emulator(devices=2, order="late")
    ok(machine.cuInit(0))
    devices = [ok(machine.cuDeviceGet(ordinal)) for ordinal in range(2)]
    first, second = (ok(machine.cuDevicePrimaryCtxRetain(device)) for device in devices)
    ok(machine.cuCtxSetCurrent(second))
    return machine, first, second


def filled(machine: Emulator, value: int) -> CUdeviceptr:
    """Memory of the current context with one value in each byte."""
    memory = ok(machine.cuMemAlloc(NBYTES))
    ok(machine.cuMemsetD8(memory, value, NBYTES))
    ok(machine.cuCtxSynchronize())
    return memory


def read(machine: Emulator, memory: CUdeviceptr) -> set[int]:
    host = (ctypes.c_uint8 * NBYTES)()
    ok(machine.cuMemcpyDtoH(ctypes.addressof(host), memory, NBYTES))
    return set(host)


@pytest.mark.parametrize("kind", ["pinned", "registered", "managed"])
def test_a_fill_of_host_memory_has_ended_when_the_call_returns(kind: str) -> None:
    machine, _, _ = two_contexts()
    own = (ctypes.c_uint8 * 8192)()
    if kind == "pinned":
        address = ok(machine.cuMemHostAlloc(NBYTES, 2))
    elif kind == "managed":
        address = int(ok(machine.cuMemAllocManaged(NBYTES, 1)))
    else:
        address = ctypes.addressof(own)
        ok(machine.cuMemHostRegister(address, NBYTES, 2))
    seen = (ctypes.c_uint8 * NBYTES).from_address(address)
    for value, fill in ((7, machine.cuMemsetD8), (8, machine.cuMemsetD8Async)):
        arguments = (CUdeviceptr(address), value, NBYTES)
        ok(fill(*arguments) if value == 7 else fill(*arguments, NULL))  # type: ignore[call-arg]  # two functions
        assert set(seen) == {7}  # the second one is asynchronous
    ok(machine.cuCtxSynchronize())
    assert set(seen) == {8}


@pytest.mark.parametrize("function", ["cuMemcpyDtoD", "cuMemcpyPeer", "cuMemcpyDtoDAsync"])
def test_a_copy_between_devices_comes_after_the_default_streams_of_both(function: str) -> None:
    machine, first, second = two_contexts()
    target = filled(machine, 0)
    ok(machine.cuCtxSetCurrent(first))
    source = filled(machine, 1)
    ok(machine.cuMemsetD8Async(source, 2, NBYTES, NULL))
    ok(machine.cuCtxSetCurrent(second))
    copy(machine, function, target, second, source, first)
    assert read(machine, target) == {2}


@pytest.mark.parametrize("later", ["freed", "filled"])
@pytest.mark.parametrize("function", ["cuMemcpyDtoD", "cuMemcpyPeer", "cuMemcpyDtoDAsync"])
def test_what_happens_to_the_source_comes_after_a_copy_between_devices(
    function: str, later: str
) -> None:
    machine, first, second = two_contexts()
    target = filled(machine, 0)
    ok(machine.cuCtxSetCurrent(first))
    source = filled(machine, 1)
    ok(machine.cuCtxSetCurrent(second))
    copy(machine, function, target, second, source, first)
    ok(machine.cuCtxSetCurrent(first))
    if later == "freed":
        ok(machine.cuMemFree(source))
    else:
        ok(machine.cuMemsetD8Async(source, 9, NBYTES, NULL))
        ok(machine.cuCtxSynchronize())
    ok(machine.cuCtxSetCurrent(second))
    assert read(machine, target) == {1}


def test_a_copy_in_another_stream_does_not_wait_for_the_other_device() -> None:
    machine, first, second = two_contexts()
    target = filled(machine, 0)
    stream = ok(machine.cuStreamCreate(1))
    ok(machine.cuCtxSetCurrent(first))
    source = filled(machine, 1)
    ok(machine.cuMemsetD8Async(source, 2, NBYTES, NULL))
    ok(machine.cuCtxSetCurrent(second))
    ok(machine.cuMemcpyPeerAsync(target, second, source, first, NBYTES, stream))
    ok(machine.cuStreamSynchronize(stream))
    assert read(machine, target) == {1}


def copy(
    machine: Emulator,
    function: str,
    target: CUdeviceptr,
    target_context: CUcontext,
    source: CUdeviceptr,
    source_context: CUcontext,
) -> None:
    if function == "cuMemcpyPeer":
        result = machine.cuMemcpyPeer(target, target_context, source, source_context, NBYTES)
    elif function == "cuMemcpyDtoD":
        result = machine.cuMemcpyDtoD(target, source, NBYTES)
    else:
        result = machine.cuMemcpyDtoDAsync(target, source, NBYTES, NULL)
    assert code(result) == CUresult.CUDA_SUCCESS


@pytest.mark.parametrize("make", [np.zeros, cudadrv.pinned_empty], ids=["ordinary", "pinned"])
def test_host_arrays_have_their_results_when_a_launch_returns(
    make: Callable[[int, str], HostArray],
) -> None:
    source = """extern "C" __global__ void add(float* y, float* sums)
    { y[threadIdx.x] += 2; sums[threadIdx.x] = 3 * y[threadIdx.x]; }"""
    with emulator.session(order="late"):
        context = cudadrv.cuda_context_for(0)
        module = context.load_module(ptx.compile(source, ptx.CompileOptions(target=context.target)))
        launcher = module.kernel("add").bind(context.new_stream(), LaunchConfig(1, 32))
        y, sums = make(32, "f4"), make(32, "f4")
        y[:] = range(32)
        launcher(InOut(y), Out(sums))
        assert (y.tolist(), sums.tolist()) == (
            [k + 2.0 for k in range(32)],
            [3 * k + 6.0 for k in range(32)],
        )
