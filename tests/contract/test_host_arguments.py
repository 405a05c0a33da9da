"""Host arrays as arguments of launches: `In`, `Out` and `InOut`."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import In, InOut, LaunchConfig, Out
from cudadrv.errors import (
    ArgumentError,
    CopyError,
    StreamCaptureUnsupportedError,
)

from .conftest import compile_module

SOURCE = """
extern "C" __global__ void add(const float* x, float* y, float* sums, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { y[i] += factor; sums[i] = x[i] + y[i]; x = 0; }
}
"""
CONFIG = LaunchConfig(2, 32)


@pytest.fixture(scope="module")
def kernel(context: cudadrv.Context) -> cudadrv.Kernel:
    return compile_module(context, SOURCE).kernel("add")


def test_a_launch_copies_in_and_out_and_waits(
    stream: cudadrv.Stream, kernel: cudadrv.Kernel
) -> None:
    x = np.arange(50, dtype="f4")
    y, sums = np.ones(50, "f4"), np.full(50, -1, "f4")
    for turn in range(1, 5):
        kernel.launch(stream, CONFIG, In(x), InOut(y), Out(sums), 2.0, 50)
        assert (y == 1 + 2 * turn).all()
        assert np.array_equal(sums, x + y)
    assert np.array_equal(x, np.arange(50))


def test_host_and_device_arrays_take_turns_in_one_launcher(
    stream: cudadrv.Stream, kernel: cudadrv.Kernel
) -> None:
    launcher = kernel.bind(stream, CONFIG)
    x, y, sums = (stream.zeros(50, "f4") for _ in range(3))
    for turn in range(1, 5):
        launcher(x, y, sums, 1.0, 50)
        host = np.zeros(50, "f4")
        launcher(In(np.full(50, turn, "f4")), y, Out(host), 1.0, 50)
        assert (host == turn + 2 * turn).all()
    assert (stream.to_host(y) == 8).all()


def test_arrays_of_any_strides_come_and_go(stream: cudadrv.Stream, kernel: cudadrv.Kernel) -> None:
    x = np.arange(100, dtype="f4")[::2]
    whole = np.zeros((25, 4), "f4")
    y, sums = whole[:, ::2], np.zeros((2, 25), "f4").T
    kernel.launch(stream, CONFIG, In(x), InOut(y), Out(sums), 3.0, 50)
    assert (y == 3).all()
    assert not whole[:, 1::2].any()
    assert np.array_equal(sums.ravel(), x + 3)


def test_one_argument_given_twice_is_one_array(
    stream: cudadrv.Stream, kernel: cudadrv.Kernel
) -> None:
    both = InOut(np.arange(50, dtype="f4"))
    sums = np.empty(50, "f4")
    kernel.launch(stream, CONFIG, both, both, Out(sums), 1.0, 50)
    assert np.array_equal(both.array, np.arange(50) + 1)
    assert np.array_equal(sums, 2 * both.array)


def test_nothing_of_a_launch_stays_on_the_device(
    stream: cudadrv.Stream, kernel: cudadrv.Kernel
) -> None:
    counted = cudadrv.memory.CountedMemory()
    with cudadrv.using_memory(counted):
        kernel.launch(stream, CONFIG, In(np.zeros(50, "f4")), 0, Out(np.zeros(50, "f4")), 0.0, 0)
    now = counted.statistics()
    assert (now.in_use_bytes, now.allocations) == (0, 2)


def test_what_a_launch_cannot_copy_is_rejected(
    stream: cudadrv.Stream, kernel: cudadrv.Kernel
) -> None:
    x, fixed = np.zeros(50, "f4"), np.zeros(50, "f4")
    fixed.flags.writeable = False
    with pytest.raises(CopyError, match="InOut: the host array is read-only"):
        InOut(fixed)
    kernel.launch(stream, CONFIG, In(fixed), InOut(x), Out(x.copy()), 1.0, 50)
    with pytest.raises(TypeError, match="Out: array"):
        Out([1.0, 2.0])  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ArgumentError, match="has elements of float64, but the parameter is"):
        kernel.launch(stream, CONFIG, In(np.zeros(50)), InOut(x), Out(x), 1.0, 50)
    with pytest.raises(ArgumentError, match="argument 3 .* parameter is float32"):
        kernel.launch(stream, CONFIG, In(x), InOut(x), Out(x), In(x), 50)
    with pytest.raises(TypeError, match=r"In\(host array \(50,\) float32\) cannot be prepared"):
        kernel.bind(stream, CONFIG).prepare(In(x), In(x), In(x), 1.0, 50)
    with (
        pytest.raises(StreamCaptureUnsupportedError, match="In, Out or InOut in a capture"),
        stream.capture(),
    ):
        kernel.launch(stream, CONFIG, In(x), InOut(x), Out(x), 1.0, 50)
