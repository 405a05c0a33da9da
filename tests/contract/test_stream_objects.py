from __future__ import annotations

import asyncio

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.driver import CachePreference
from cudadrv.errors import CudaError

from .conftest import compile_module

SOURCE = """
extern "C" __global__ void add(int* out, int v) { out[threadIdx.x] += v; }
extern "C" __global__ void late(int* out, int v) {
    for (volatile int i = 0; i < 2000; i++) {}
    out[threadIdx.x] += v;
}
extern "C" __global__ void take(unsigned long long* out, unsigned long long nbytes) {
    void* p = malloc(nbytes);
    *out = p != nullptr;
    free(p);
}
extern "C" __global__ void fail() { asm("trap;"); }
"""
ONE = LaunchConfig(1, 4)


@pytest.fixture(scope="module")
def module(context: cudadrv.Context) -> cudadrv.Module:
    return compile_module(context, SOURCE)


def test_the_difference_of_events_is_the_time_between_them(
    stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    begin = stream.record()
    module.kernel("late").launch(stream, ONE, out, 1)
    end = stream.record()
    end.synchronize()
    assert end - begin == end.elapsed_ms(begin) >= 0
    with pytest.raises(TypeError):
        end - 1  # type: ignore[operator]  # no event


def test_streams_and_events_are_awaited(
    stream: cudadrv.Stream, context: cudadrv.Context, module: cudadrv.Module
) -> None:
    out, other_out = stream.zeros(4, np.int32), stream.zeros(4, np.int32)
    late = module.kernel("late")
    other = context.new_stream()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async def work() -> None:
        ticking = asyncio.create_task(tick())
        late.launch(stream, ONE, out, 1)
        late.launch(other, ONE, other_out, 2)
        event = other.record()
        await asyncio.gather(asyncio.ensure_future(waited(stream)), waited(event))
        assert stream.is_done()
        assert event.is_done()
        await context.legacy_stream
        ticking.cancel()

    async def waited(what: cudadrv.Stream | cudadrv.Event) -> None:
        await what

    asyncio.run(work())
    assert ticks > 0
    assert stream.to_host(out).tolist() == [1] * 4
    assert other.to_host(other_out).tolist() == [2] * 4
    other.close()


def test_a_stream_reports_whether_it_waits_for_the_legacy_stream(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    with context.new_stream(blocking=True) as blocking:
        assert blocking.blocking
        assert not stream.blocking
        assert context.default_stream.blocking


def test_the_default_streams_of_a_context_are_waited_for(
    context: cudadrv.Context, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    for default, number in ((context.legacy_stream, 1), (context.per_thread_stream, 2)):
        assert default.__cuda_stream__() == (0, number)
        default.synchronize()
        assert default.is_done()
        event = stream.record()
        default.wait(event)
        assert isinstance(default.record(), cudadrv.Event)
        stream.wait(default)
        module.kernel("add").launch(stream, ONE, out, number)
    with context.new_stream(blocking=True) as blocking:
        module.kernel("late").launch(blocking, ONE, out, 10)
        context.legacy_stream.record().synchronize()
        assert blocking.is_done()
    assert stream.to_host(out).tolist() == [13] * 4


def test_a_pool_gives_its_streams_in_turn(
    context: cudadrv.Context, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    arrays = [stream.zeros(4, np.int32) for _ in range(6)]
    with context.new_stream_pool(3) as pool:
        assert len(pool) == 3
        taken = [pool.next_stream() for _ in range(6)]
        assert [taken.index(each) for each in taken] == [0, 1, 2, 0, 1, 2]
        assert list(pool) == [pool[0], pool[1], pool[2]]
        pool.fork(stream)
        for number, array in enumerate(arrays):
            module.kernel("late").launch(pool.next_stream(), ONE, array, number)
        pool.join(stream)
        stream.synchronize()
        assert all(each.is_done() for each in pool)
        pool.synchronize()
    assert [int(stream.to_host(array)[0]) for array in arrays] == list(range(6))
    assert all(each.closed for each in pool)
    with pytest.raises(ValueError, match="give an integer"):
        context.new_stream_pool(0)


def test_limits_of_a_context_are_read_and_set(context: cudadrv.Context) -> None:
    with cudadrv.Context.create(context.device) as own:
        limits = own.limits
        for name in ("stack_bytes", "heap_bytes", "printf_bytes"):
            assert getattr(limits, name) > 0
            setattr(limits, name, 1 << 16)
            assert getattr(own.limits, name) >= 1 << 16
        assert "heap_bytes=" in repr(limits)
        with pytest.raises(ValueError, match="give an integer"):
            limits.stack_bytes = -1


def test_the_persisting_part_of_the_cache_is_set_up_to_what_the_device_has(
    context: cudadrv.Context,
) -> None:
    attribute = cudadrv.driver.DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE
    most = context.device.attribute(attribute)
    with cudadrv.Context.create(context.device) as own:
        if not most:
            with pytest.raises(cudadrv.errors.UnsupportedLimitError):
                own.limits.persisting_l2_bytes = 1 << 20
            return
        own.limits.persisting_l2_bytes = 1  # rounded up
        assert 1 <= own.limits.persisting_l2_bytes < most
        own.limits.persisting_l2_bytes = most
        assert own.limits.persisting_l2_bytes == most
        with pytest.raises(cudadrv.errors.InvalidValueError):
            own.limits.persisting_l2_bytes = most + 1


def test_the_heap_has_as_much_as_its_limit(context: cudadrv.Context) -> None:
    with cudadrv.Context.create(context.device) as own:
        own.limits.heap_bytes = 32 << 20
        stream = own.default_stream
        found = stream.zeros(1, np.uint64)
        take = own.compile(SOURCE).kernel("take")
        take.launch(stream, LaunchConfig(1, 1), found, 24 << 20)
        assert stream.to_host(found).tolist() == [1]


def test_a_cache_preference_is_stored(context: cudadrv.Context) -> None:
    with cudadrv.Context.create(context.device) as own:
        assert own.cache_preference is CachePreference.NONE
        own.cache_preference = CachePreference.L1
        # Where the sizes are fixed, the driver says NONE.
        assert own.cache_preference in (CachePreference.L1, CachePreference.NONE)


def test_a_profiled_block_runs_as_any(
    context: cudadrv.Context, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    with context.profiling():
        module.kernel("add").launch(stream, ONE, out, 3)
        stream.synchronize()
    assert stream.to_host(out).tolist() == [3] * 4


def test_a_failure_is_raised_where_it_is_awaited() -> None:
    device = cudadrv.list_devices()[0]
    if not device.is_emulated:
        pytest.skip("needs a device that may break")

    async def work(stream: cudadrv.Stream) -> None:
        stream.context.compile(SOURCE).kernel("fail").launch(stream, LaunchConfig(1, 1))
        await stream

    with cudadrv.emulator.session(order="late"):
        stream = cudadrv.cuda_context_for(0).new_stream()
        with pytest.raises(CudaError):
            asyncio.run(work(stream))
