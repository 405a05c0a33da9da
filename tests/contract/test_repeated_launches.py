"""A launcher packs and checks nothing anew that is the same object as at the last launch."""

from __future__ import annotations

import itertools
import random
import struct
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.driver.handle import Closeable
from cudadrv.errors import ArgumentError, ClosedError
from tests.noted_calls import calls_of
from tests.several_threads import all_at_once
from tests.short_cases import few

from .conftest import compile_module

SOURCE = """
extern "C" __global__ void record(unsigned long long* out, int n, float* a, signed char c,
    double* b, double d, float f, long long l)
{
    out[0] = n; out[1] = (unsigned long long)a; out[2] = c; out[3] = (unsigned long long)b;
    out[4] = __double_as_longlong(d); out[5] = __float_as_uint(f); out[6] = l;
}
extern "C" __global__ void add(float* out, const float* a, float x, int n)
{ for (int i = 0; i < n; ++i) out[i] += a[i] + x; }
extern "C" __global__ void last(float4* out, const float* a, int n) { out[0].x = a[n - 1]; }
"""
ONE = LaunchConfig(1, 1)
Trace: TypeAlias = "Callable[[FrameType, str, Any], Trace | None]"


@pytest.fixture
def add(stream: cudadrv.Stream, kernels: cudadrv.Module) -> cudadrv.Launcher:
    return kernels.kernel("add").bind(stream, ONE)


def repeated(launcher: cudadrv.Launcher, *args: object, times: int = 5) -> None:
    """Launch until the launcher packs nothing anew."""
    for _ in range(times):
        launcher(*args)


def _bits(value: float, code: str) -> int:
    return int.from_bytes(struct.pack(code, value), "little")


def _recorded(*args: Any) -> list[int]:
    n, a, c, b, d, f, number = args
    whole = [n, a.ptr, c, b.ptr, _bits(d, "<d"), _bits(f, "<f"), number]
    return [int(value) % 2**64 for value in whole]


@pytest.mark.parametrize("seed", range(4))
def test_every_launch_gets_its_own_arguments_whichever_of_them_changed(
    stream: cudadrv.Stream, kernels: cudadrv.Module, seed: int
) -> None:
    choose = random.Random(seed)
    outs = [stream.zeros(7, "u8") for _ in range(2)]
    arrays = [stream.empty(8, "f4") for _ in range(2)]
    sevens = [stream.empty(8, "f8"), stream.empty(16, "f8")[8:]]
    values: tuple[tuple[Any, ...], ...] = (
        (1, -7, np.int32(5)),
        (*arrays, arrays[0][2:]),
        (np.int64(1), -3),
        tuple(sevens),
        (0.0, -0.0, 1, np.float64(0.1)),
        (0.0, -0.0, np.float32(0.1)),
        (2**40, -(2**40)),
    )
    launcher = kernels.kernel("record").bind(stream, ONE)
    given, out = [choose.choice(each) for each in values], outs[0]
    for _ in range(200):
        for _ in range(choose.choice((0, 0, 0, 0, 1, 2, 5))):
            place = choose.randrange(len(values))
            given[place] = choose.choice(values[place])
        if choose.random() < 0.1:
            out = choose.choice(outs)
        stream.fill(out, 0)
        launcher(out, *given)
        assert stream.to_host(out).tolist() == _recorded(*given)


def test_a_view_of_another_dtype_is_rejected_though_it_lies_where_the_array_does(
    stream: cudadrv.Stream, add: cudadrv.Launcher
) -> None:
    out, a = stream.zeros(4, "f4"), stream.zeros(4, "f4")
    repeated(add, out, a, 1.0, 4)
    for wrong in (a.view("i4"), a.view("f8"), a.view("i4").view("u4")):
        assert wrong.ptr == a.ptr
        with pytest.raises(ArgumentError, match="argument 1"):
            add(out, wrong, 1.0, 4)
    add(out, a.view("i4").view("f4"), 1.0, 4)
    assert stream.to_host(out).tolist() == [6.0] * 4


def test_an_empty_array_of_another_dtype_is_rejected(
    stream: cudadrv.Stream, add: cudadrv.Launcher
) -> None:
    out = stream.zeros(4, "f4")
    repeated(add, out, stream.empty(0, "f4"), 1.0, 0)
    with pytest.raises(ArgumentError, match="argument 1"):
        add(out, stream.empty(0, "i4"), 1.0, 0)


def test_an_array_of_no_whole_vectors_is_rejected(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    out, a = stream.zeros(8, "f4"), stream.zeros(4, "f4")
    launcher = kernels.kernel("last").bind(stream, ONE)
    repeated(launcher, out, a, 4)
    for wrong in (out[:3], out.reshape(2, 4)[:, 0]):
        with pytest.raises(ArgumentError, match="argument 0"):
            launcher(wrong, a, 4)


def test_a_number_of_another_type_is_rejected_though_it_equals_the_last_one(
    stream: cudadrv.Stream, add: cudadrv.Launcher
) -> None:
    out, a = stream.zeros(4, "f4"), stream.zeros(4, "f4")
    repeated(add, out, a, 1.0, 4)
    for wrong in (4.0, "4", out):
        with pytest.raises(ArgumentError, match="argument 3"):
            add(out, a, 1.0, wrong)
    with pytest.raises(ArgumentError, match="out of range"):
        add(out, a, 1.0, 2**40)
    add(out, a, np.float32(1), 4)
    assert stream.to_host(out).tolist() == [6.0] * 4


def test_a_closed_array_is_rejected(stream: cudadrv.Stream, add: cudadrv.Launcher) -> None:
    out, a = stream.zeros(4, "f4"), stream.zeros(4, "f4")
    part = a[:2]
    repeated(add, out, part, 1.0, 2)
    a.close()
    for closed in (a, part):
        with pytest.raises(ClosedError):
            add(out, closed, 1.0, 2)


def closing_at(point: int, array: Closeable) -> Trace:
    """A trace that closes an array at one point of a launch: its begin, a bytecode, or its end."""
    points = itertools.count()

    def trace(frame: FrameType, event: str, _: object) -> Trace:
        frame.f_trace_opcodes = True
        if frame.f_code.co_name == "launcher" and next(points) == point:
            sys.settrace(None)
            array.close()
        return trace

    return trace


# Up to the launch that packs all, the one that notes it, and the one that finds it noted.
@pytest.mark.parametrize("before", few([3, 2, 5], 1))
def test_an_array_that_is_closed_at_any_point_of_a_launch_is_held_or_rejected(
    stream: cudadrv.Stream, kernels: cudadrv.Module, before: int
) -> None:
    out, launched = stream.zeros(4, "f4"), 0
    for point in itertools.count():
        a = stream.zeros(4, "f4")
        add = kernels.kernel("add").bind(stream, ONE)
        repeated(add, out, a, 1.0, 4, times=before)
        sys.settrace(closing_at(point, a))
        try:
            add(out, a, 1.0, 4)
            launched += 1
        except ClosedError:
            pass
        finally:
            sys.settrace(None)
        assert stream.to_host(out).tolist() == [float(before) * (point + 1) + launched] * 4
        if not a.closed:  # the launch has no such point
            break
        with pytest.raises(ClosedError):
            add(out, a, 1.0, 4)
    assert 10 < launched < point - 10


def test_memory_of_a_peer_is_ordered_at_every_launch(second_context: cudadrv.Context) -> None:
    if not cudadrv.driver.can_access_peer(cudadrv.Device.get(0), cudadrv.Device.get(1)):
        pytest.skip("needs two devices that reach each other's memory")
    with cudadrv.Context.create(0) as here, cudadrv.Context.create(1) as there:
        here.enable_peer_access(there)
        stream, other = here.new_stream(), there.new_stream()
        launcher = compile_module(here, SOURCE).kernel("add").bind(stream, ONE)
        out, a = other.zeros(4, "f4"), other.zeros(4, "f4")
        repeated(launcher, out, a, 1.0, 4)
        other.fill(out, 0)
        with calls_of("cuStreamWaitEvent") as waits:
            launcher(out, a, 1.0, 4)
        assert waits
        with calls_of("cuStreamWaitEvent") as waits:
            assert other.to_host(out).tolist() == [1.0] * 4
        assert waits


@pytest.mark.parametrize("make", ["borrowed", "adopted"])
def test_memory_at_an_address_that_other_memory_has_is_ordered_as_its_own(
    context: cudadrv.Context, stream: cudadrv.Stream, add: cudadrv.Launcher, make: str
) -> None:
    out, real = stream.zeros(4, "f4"), stream.zeros(4, "f4")
    address = real.ptr

    def over(home: cudadrv.Stream) -> cudadrv.DeviceBuffer:
        if make == "borrowed":
            return cudadrv.DeviceBuffer.borrowed(home, address, 16, real)
        return cudadrv.DeviceBuffer.adopted(home, address, 16, lambda *_: None)

    here = over(stream)
    repeated(add, out, here, 1.0, 4)
    with context.new_stream() as other:
        there = over(other)
        with calls_of("cuStreamWaitEvent") as waits:
            add(out, there, 1.0, 4)
        assert waits
        with calls_of("cuStreamWaitEvent") as waits:
            add(out, there, 0.0, 4)
        assert not waits  # it is ordered on this stream now
    assert stream.to_host(out).tolist() == [6.0] * 4


def test_a_launch_that_orders_nothing_notes_its_use_of_memory_however_often(
    context: cudadrv.Context, stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    out = stream.zeros(4, "f4")
    free = kernels.kernel("add").bind(stream, ONE, ordered=False)
    with context.new_stream() as other:
        a = other.zeros(4, "f4")
        other.synchronize()
        with calls_of("cuStreamWaitEvent") as waits:
            repeated(free, out, a, 1.0, 4)
        assert not waits
        with calls_of("cuStreamWaitEvent") as waits:
            a.close()
        assert waits  # it is freed after the launches


def test_a_dropped_array_gives_its_memory_back_at_once(
    stream: cudadrv.Stream, add: cudadrv.Launcher
) -> None:
    freed: list[int] = []

    class Resource(cudadrv.memory.DriverMemory):
        def deallocate(
            self, address: int, nbytes: int, stream: cudadrv.memory.MemoryStream
        ) -> None:
            freed.append(address)
            super().deallocate(address, nbytes, stream)

    out = stream.zeros(4, "f4")
    with cudadrv.using_memory(Resource()):
        a = stream.zeros(4, "f4")
    address = a.ptr
    repeated(add, out, a, 1.0, 4)
    del a
    assert freed == [address]


def test_an_array_that_was_used_on_another_stream_is_waited_for(
    context: cudadrv.Context, stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    out, a = stream.zeros(4, "f4"), stream.zeros(4, "f4")
    here = kernels.kernel("add").bind(stream, ONE)
    with context.new_stream() as other:
        there = kernels.kernel("add").bind(other, ONE)
        for _ in range(5):
            repeated(here, out, a, 1.0, 4)
            with calls_of("cuStreamWaitEvent") as waits:
                there(a, out, 0.0, 4)
            assert waits
            with calls_of("cuStreamWaitEvent") as waits:
                here(out, a, 1.0, 4)
            assert waits
    total = taken = 0.0
    for _ in range(5):
        total += 5 * (taken + 1)
        taken += total
        total += taken + 1
    assert stream.to_host(out).tolist() == [total] * 4


def test_what_a_capture_records_and_what_is_launched_after_it_is_right(
    stream: cudadrv.Stream, add: cudadrv.Launcher
) -> None:
    out, a, b = (stream.zeros(4, "f4") for _ in range(3))
    stream.fill(b, np.float32(10))
    repeated(add, out, a, 1.0, 4)
    with stream.capture() as graph:
        add(out, b, 2.0, 4)
    add(out, a, 1.0, 4)
    graph.instantiate().launch(stream)
    assert stream.to_host(out).tolist() == [18.0] * 4


def test_threads_of_one_launcher_get_their_own_arguments(
    stream: cudadrv.Stream, add: cudadrv.Launcher
) -> None:
    outs = [stream.zeros(4, "f4") for _ in range(3)]
    a = stream.zeros(4, "f4")

    def launch(number: int) -> None:
        for _ in range(100):
            add(outs[number], a, float(number + 1), 4)

    all_at_once(partial(launch, number) for number in range(3))
    found = [stream.to_host(out).tolist() for out in outs]
    assert found == [[100.0 * (number + 1)] * 4 for number in range(3)]


def test_no_change_of_arrays_or_numbers_leads_to_the_slow_way(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    out, a, b = stream.zeros(7, "u8"), stream.empty(8, "f4"), stream.empty(8, "f8")
    launcher = kernels.kernel("record").bind(stream, ONE)
    repeated(launcher, out, 1, a, 1, b, 1.0, 1.0, 1)
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name))
    for number in range(12):
        launcher(out, number, a, 1, b if number < 6 else b[1:], 1.0, float(number), 2**40)
    sys.setprofile(None)
    assert "launcher" in called
    assert not any("slow_path" in name for name in called)
