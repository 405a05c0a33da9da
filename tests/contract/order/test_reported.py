"""The programs with which the order and lifetime of memory were found to be wrong."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import cudadrv
from cudadrv.errors import ClosedError

from .lab import POOL_SLACK, Lab, used_bytes
from .late_kernels import HostInts, LateKernels, count_from

N = 1 << 14
ROUNDS = 5
LARGE_UPLOAD = """
import numpy as np

import cudadrv
from cudadrv.driver.driver_selection import current

stream = cudadrv.cuda_context_for(1).new_stream()
array = stream.to_device(np.arange(24 << 20, dtype=np.uint8))
assert int(stream.to_host(array)[300]) == 300 % 256
if current().is_emulated:
    from cudadrv.emulator.calls.call import state_of

    code, active = 0, 0 in state_of(current().api).handles.primaries
else:
    from cuda.bindings import driver

    code, _, active = driver.cuDevicePrimaryCtxGetState(cudadrv.Device.get(0).handle)
print("active" if active else "inactive", int(code))
"""


def test_memory_of_a_closed_stream_stays_until_its_kernels_are_done(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with context.new_stream() as other:
        for _ in range(ROUNDS):
            out = other.zeros(N, np.int32)
            other.synchronize()
            stream = context.new_stream()
            x = stream.to_device(count_from(5, N))
            kernels.read(stream, out, x)
            stream.close()
            del x
            new = other.empty(N, np.int32)
            other.fill(new, -1)
            context.synchronize()
            assert np.array_equal(other.to_host(out), count_from(5, N))
            assert (other.to_host(new) == -1).all()


def test_a_fill_queued_elsewhere_does_not_reach_the_next_owner_of_the_memory(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with context.new_stream() as a, context.new_stream() as b:
        for _ in range(ROUNDS):
            x = a.zeros(N, np.int32)
            a.synchronize()
            kernels.spin(b)
            b.fill(x, 3)
            del x
            new = a.empty(N, np.int32)
            a.fill(new, 7)
            context.synchronize()
            assert (a.to_host(new) == 7).all()


def test_memory_stays_until_a_kernel_of_another_stream_is_done(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with context.new_stream() as a, context.new_stream() as b:
        for _ in range(ROUNDS):
            out, x = b.zeros(N, np.int32), a.to_device(count_from(9, N))
            context.synchronize()
            kernels.read(b, out, x)
            del x
            new = a.empty(N, np.int32)
            a.fill(new, -1)
            context.synchronize()
            assert np.array_equal(b.to_host(out), count_from(9, N))


@pytest.mark.parametrize("make", [cudadrv.pinned_empty, cudadrv.managed_empty])
@pytest.mark.parametrize("place", ["another context", "another device"])
def test_host_memory_stays_until_what_uses_it_elsewhere_is_done(
    lab: Lab, place: str, make: Callable[[int, str], HostInts]
) -> None:
    if place == "another device" and len(lab.contexts) < 2:
        pytest.skip("needs a second device")
    context = cudadrv.Context.create(0) if place == "another context" else lab.contexts[1]
    kernels = LateKernels(context, lab.kernels[0].cycles)
    with context.new_stream() as copying, context.new_stream() as reading:
        for _ in range(ROUNDS):
            x, out = copying.zeros(N, np.int32), reading.zeros(N, np.int32)
            context.synchronize()
            host = make(N, "i4")
            host[:] = count_from(5, N)
            kernels.spin(copying)
            copying.copy(x, host, wait=False)
            kernels.read(reading, out, host.ctypes.data)
            del host
            taken = make(N, "i4")
            taken[:] = -1
            assert np.array_equal(copying.to_host(x), count_from(5, N))
            assert np.array_equal(reading.to_host(out), count_from(5, N))
    if place == "another context":
        del kernels, x, out, copying, reading
        context.close()


def test_host_memory_goes_while_another_context_captures(lab: Lab) -> None:
    with cudadrv.Context.create(0) as own, own.new_stream() as stream:
        x = stream.zeros(N, np.int32)
        stream.synchronize()
        with stream.capture() as graph:
            stream.fill(x, 3)
            cudadrv.pinned_empty(N, "i4")  # goes at once
            stream.fill(x[1:], 4)
        graph.instantiate().launch(stream)
        assert stream.to_host(x)[:2].tolist() == [3, 4]
        del x, graph
    assert lab.unraisable.take() == []


@pytest.mark.slow
def test_a_large_upload_to_a_device_leaves_no_context_on_another(two_devices: Lab) -> None:
    environment = dict(os.environ)
    if two_devices.is_emulated:
        environment["CUDADRV_DRIVER"] = "emulator:2"
    done = subprocess.run(
        [sys.executable, "-c", LARGE_UPLOAD],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.split() == ["inactive", "0"], done.stderr


@pytest.mark.parametrize("is_dropped_late", [False, True], ids=("at once", "at the end"))
def test_memory_that_outlives_its_context_comes_back(lab: Lab, is_dropped_late: bool) -> None:
    arrays: list[cudadrv.DeviceArray[np.uint8]] = []
    start = used_bytes()[0]
    for _ in range(20):
        with cudadrv.Context.create(0) as own:
            stream = own.new_stream()
            array = stream.zeros(64 << 20 if not is_dropped_late else 1 << 20, np.uint8)
            stream.synchronize()
        with pytest.raises(ClosedError):
            stream.to_host(array)
        if is_dropped_late:
            arrays.append(array)
        del array, stream, own
    arrays.clear()
    gc.collect()
    lab.settle()
    assert used_bytes()[0] - start <= (0 if lab.is_emulated else POOL_SLACK)
