"""The programs. Each gives whether its values are right; `ok` chooses the corrected twin."""

from __future__ import annotations

from typing import Final

import numpy as np

import cudadrv

from .bench import LARGE, Bench, Body, N


def pinned_read_before_its_copy(bench: Bench, ok: bool) -> bool:
    """The host reads a pinned array without waiting for the copy into it."""
    x, out = bench.ints(0), bench.pinned(0)
    bench.run(bench.a, "set", x, 7)
    bench.a.to_host(x, out=out, wait=False)
    if ok:
        bench.a.synchronize()
    return bool((out == 7).all())


def staging_array_reused(bench: Bench, ok: bool) -> bool:
    """A pinned array is filled again while the copy from it may still run."""
    staging, first, second = bench.pinned(1, LARGE), bench.ints(0, LARGE), bench.ints(0, LARGE)
    bench.a.copy(first, staging, wait=False)
    if ok:
        bench.a.synchronize()
    staging[:] = 2
    bench.a.copy(second, staging, wait=False)
    return bool((bench.host(first) == 1).all() and (bench.host(second) == 2).all())


def destination_changed_before_its_copy(bench: Bench, ok: bool) -> bool:
    """The host writes where a copy is still to arrive."""
    x, out = bench.ints(5), bench.pinned(0)
    bench.a.to_host(x, out=out, wait=False)
    if ok:
        bench.a.synchronize()
    out += 1
    bench.a.synchronize()
    return bool((out == 6).all())


def event_recorded_before_the_work(bench: Bench, ok: bool) -> bool:
    """The event that another stream waits for stands before what it should stand after."""
    x, out = bench.ints(0), bench.ints(0)
    event = cudadrv.Event(bench.context, timing=False)
    if not ok:
        event.record(bench.a)
    bench.run(bench.a, "set", x, 3)
    if ok:
        event.record(bench.a)
    bench.b.wait(event)
    bench.run(bench.b, "read", out, x)
    return bool((bench.host(out) == 3).all())


def wrong_event(bench: Bench, ok: bool) -> bool:
    """A stream waits for the event of one writer, and reads what another writes."""
    x, y, out = bench.ints(0), bench.ints(0), bench.ints(0)
    third = bench.context.new_stream()
    bench.run(bench.a, "set", x, 3)
    of_a = bench.a.record()
    bench.run(bench.b, "set", y, 4)
    of_b = bench.b.record()
    third.wait(of_b if ok else of_a)
    bench.run(third, "read", out, y)
    return bool((bench.host(out) == 4).all())


def event_waited_for_before_it_is_recorded(bench: Bench, ok: bool) -> bool:
    """A wait takes an event as it is at the call: recorded later, it counts for nothing."""
    x, out = bench.ints(0), bench.ints(0)
    event = cudadrv.Event(bench.context, timing=False)
    if not ok:
        bench.b.wait(event)
    bench.run(bench.a, "set", x, 3)
    event.record(bench.a)
    if ok:
        bench.b.wait(event)
    bench.run(bench.b, "read", out, x)
    return bool((bench.host(out) == 3).all())


def freed_while_another_stream_reads(bench: Bench, ok: bool) -> bool:
    """Memory goes by its own stream's order while a kernel that has its address is queued."""
    x, out = bench.ints(9), bench.ints(0)
    bench.run(bench.b, "read", out, x.ptr)
    if ok:
        bench.join(bench.a, bench.b)
    x.close()
    y = bench.a.empty(N, np.int32)
    bench.run(bench.a, "set", y, -1)
    return bool((bench.host(out) == 9).all())


def used_after_it_was_freed(bench: Bench, ok: bool) -> bool:
    """An address is used that has gone to another array."""
    x = bench.ints(1)
    address = x.ptr
    if not ok:
        x.close()
    y = bench.a.empty(N, np.int32)
    bench.run(bench.a, "set", y, 5)
    bench.run(bench.a, "set", address, 6)
    return bool((bench.host(y) == 5).all())


def used_before_it_was_allocated(bench: Bench, ok: bool) -> bool:
    """Another stream writes memory before the stream that it comes from has got there."""
    x = bench.a.empty(N, np.int32)
    if ok:
        bench.join(bench.b, bench.a)
    bench.run(bench.b, "set", x, 8)
    return bool((bench.host(x) == 8).all())


def never_written(bench: Bench, ok: bool) -> bool:
    """Fresh memory is taken for zeros."""
    x = bench.a.zeros(N, np.int32) if ok else bench.a.empty(N, np.int32)
    bench.run(bench.a, "add", x, 2)
    return bool((bench.host(x) == 2).all())


def two_streams_over_one_array(bench: Bench, ok: bool) -> bool:
    """Two kernels change one array, and nothing says which is first."""
    x = bench.ints(3)
    bench.run(bench.a, "add", x, 1)
    if ok:
        bench.join(bench.b, bench.a)
    bench.run(bench.b, "twice", x)
    return bool((bench.host(x) == 8).all())


def host_function_taken_for_done(bench: Bench, ok: bool) -> bool:
    """The result of a host function is used when it was only queued."""
    done: list[int] = []
    bench.run(bench.a, "set", bench.ints(0), 1)
    bench.a.call_on_host(done.append, 1)
    if ok:
        bench.a.synchronize()
    return done == [1]


def host_function_without_its_copy(bench: Bench, ok: bool) -> bool:
    """A host function in one stream reads what a copy in another brings."""
    x, out, seen = bench.ints(4), bench.pinned(0), list[int]()
    bench.a.to_host(x, out=out, wait=False)
    if ok:
        bench.join(bench.b, bench.a)
    bench.b.call_on_host(lambda: seen.append(int(out[0])))
    bench.context.synchronize()
    return seen == [4]


def double_buffering_without_a_wait(bench: Bench, ok: bool) -> bool:
    """Copies and kernels take turns on two arrays, but the copies do not wait for the kernels."""
    buffers = [bench.ints(0), bench.ints(0)]
    outs = [bench.ints(0) for _ in range(4)]
    for turn, out in enumerate(outs):
        buffer = buffers[turn % 2]
        if ok:
            bench.join(bench.a, bench.b)
        with bench.a.unordered():
            bench.a.copy(buffer, np.full(N, turn + 1, np.int32))
        bench.join(bench.b, bench.a)
        bench.run(bench.b, "read", out, buffer)
    return all((bench.host(out) == turn + 1).all() for turn, out in enumerate(outs))


def one_query_for_a_wait(bench: Bench, ok: bool) -> bool:
    """A query is taken for a wait; its answer is not looked at."""
    x, out = bench.ints(0), bench.pinned(0)
    bench.run(bench.a, "set", x, 2)
    bench.a.to_host(x, out=out, wait=False)
    done = bench.a.is_done()
    while ok and not done:
        done = bench.a.is_done()
    return bool((out == 2).all())


def closed_stream_taken_for_done(bench: Bench, ok: bool) -> bool:
    """A stream is closed, and its work taken for done."""
    x, out = bench.ints(6), bench.pinned(0)
    with bench.context.new_stream() as stream:
        stream.wait(bench.a)
        stream.to_host(x, out=out, wait=False)
        if ok:
            stream.synchronize()
    return bool((out == 6).all())


def default_stream_taken_for_a_barrier(bench: Bench, ok: bool) -> bool:
    """The default stream does not wait for streams that do not block with it."""
    x, out = bench.ints(0), bench.ints(0)
    bench.run(bench.a, "set", x, 3)
    default = bench.context.default_stream
    if ok:
        bench.join(default, bench.a)
    bench.run(default, "read", out, x)
    return bool((bench.host(out) == 3).all())


def host_array_changed_under_a_replay(bench: Bench, ok: bool) -> bool:
    """A graph copies from a host array, which is changed while a replay may still read it."""
    source, x, out = np.full(N, 1, np.int32), bench.ints(0), bench.ints(0)
    with bench.a.capture() as graph:
        bench.a.copy(x, source)
        bench.run(bench.a, "read", out, x)
    replay = graph.instantiate()
    replay.launch(bench.a)
    if ok:
        bench.a.synchronize()
    source[:] = 2
    return bool((bench.host(out) == 1).all())


def graph_branches_not_joined(bench: Bench, ok: bool) -> bool:
    """Two branches of a graph change one array, and no edge says which is first."""
    x = bench.ints(3)
    with bench.a.capture() as graph:
        fork = bench.a.record(timing=False)
        bench.run(bench.a, "add", x, 1)
        bench.b.wait(bench.a.record(timing=False) if ok else fork)
        bench.run(bench.b, "twice", x)
        bench.a.wait(bench.b.record(timing=False))
    graph.instantiate().launch(bench.a)
    return bool((bench.host(x) == 8).all())


def two_graphs_over_one_array(bench: Bench, ok: bool) -> bool:
    """Two executables are replayed on two streams, and work on one array."""
    x = bench.ints(3)
    runs = []
    for kernel, arguments in (("add", (x.ptr, 1)), ("twice", (x.ptr,))):
        with bench.a.capture() as graph:
            bench.run(bench.a, kernel, *arguments)
        runs.append(graph.instantiate())
    runs[0].launch(bench.a)
    if ok:
        bench.join(bench.b, bench.a)
    runs[1].launch(bench.b)
    return bool((bench.host(x) == 8).all())


def managed_memory_read_too_early(bench: Bench, ok: bool) -> bool:
    """The host reads managed memory while the kernel that writes it is queued."""
    x = cudadrv.managed_empty(N, np.int32)
    x[:] = 0
    bench.run(bench.a, "set", x, 5)
    if ok:
        bench.a.synchronize()
    return bool((x == 5).all())


def peer_copy_not_waited_for(bench: Bench, ok: bool) -> bool:
    """A copy between devices is in one device's stream, and its reader in the other's."""
    other = cudadrv.cuda_context_for(1)
    there = other.new_stream()
    x, y = bench.ints(4), there.zeros(N, np.int32)
    there.synchronize()
    with bench.a.unordered():
        bench.a.copy(y, x)
    if ok:
        there.wait(bench.a)
    with there.unordered():
        return bool((there.to_host(y) == 4).all())


def elapsed_time_of_an_event_not_reached(bench: Bench, ok: bool) -> bool:
    """Two events are timed before the stream has got to them."""
    start = bench.a.record()
    bench.run(bench.a, "set", bench.ints(0), 1)
    end = bench.a.record()
    if ok:
        end.synchronize()
    return end.elapsed_ms(start) >= 0


PROGRAMS: Final[tuple[Body, ...]] = (
    pinned_read_before_its_copy,
    staging_array_reused,
    destination_changed_before_its_copy,
    event_recorded_before_the_work,
    wrong_event,
    event_waited_for_before_it_is_recorded,
    freed_while_another_stream_reads,
    used_after_it_was_freed,
    used_before_it_was_allocated,
    never_written,
    two_streams_over_one_array,
    host_function_taken_for_done,
    host_function_without_its_copy,
    double_buffering_without_a_wait,
    one_query_for_a_wait,
    closed_stream_taken_for_done,
    default_stream_taken_for_a_barrier,
    host_array_changed_under_a_replay,
    graph_branches_not_joined,
    two_graphs_over_one_array,
    managed_memory_read_too_early,
    peer_copy_not_waited_for,
    elapsed_time_of_an_event_not_reached,
)
