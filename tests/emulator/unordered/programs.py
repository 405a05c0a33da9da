"""The programs: two operations meet at the same bytes, in an order only where `ok`."""

from __future__ import annotations

from typing import Final

import numpy as np

import cudadrv

from .bench import Bench, Body, N


def two_kernels(bench: Bench, ok: bool) -> None:
    """One writes what the other reads."""
    x, out = bench.ints(), bench.ints()
    bench.run(bench.a, "set", x, N, 1)
    if ok:
        bench.b.wait(bench.a)
    bench.run(bench.b, "read", out, x, N)


def reader_then_writer(bench: Bench, ok: bool) -> None:
    """One reads what the other then writes."""
    x, out = bench.ints(), bench.ints()
    bench.run(bench.a, "read", out, x, N)
    if ok:
        bench.b.wait(bench.a)
    bench.run(bench.b, "set", x, N, 1)


def two_readers_one_awaited(bench: Bench, ok: bool) -> None:
    """A writer waits for one of two readers."""
    x, one, two = bench.ints(), bench.ints(), bench.ints()
    bench.run(bench.a, "read", one, x, N)
    bench.run(bench.b, "read", two, x, N)
    bench.c.wait(bench.a)
    if ok:
        bench.c.wait(bench.b)
    bench.run(bench.c, "set", x, N, 1)


def readers_alone(bench: Bench, ok: bool) -> None:
    """Readers may meet; one that writes its input may not."""
    x = bench.ints()
    for stream in (bench.a, bench.b, bench.c):
        bench.run(stream, "read", bench.ints() if ok else x, x, N)


def fill_beside_a_kernel(bench: Bench, ok: bool) -> None:
    """An array is filled while a kernel reads it."""
    x, out = bench.ints(), bench.ints()
    bench.run(bench.a, "read", out, x, N)
    if ok:
        bench.b.wait(bench.a)
    with bench.b.unordered():
        bench.b.fill(x, 0)


def copy_beside_a_kernel(bench: Bench, ok: bool) -> None:
    """An input is copied while the kernel of the round before reads it."""
    x, out = bench.ints(), bench.ints()
    for turn in range(3):
        if ok:
            bench.b.wait(bench.a)
        with bench.b.unordered():
            bench.b.copy(x, np.full(N, turn, np.int32))
        bench.a.wait(bench.b)
        bench.run(bench.a, "read", out, x, N)


def two_copies(bench: Bench, ok: bool) -> None:
    """Copies within the device, from one array to the next."""
    x, y, z = bench.ints(), bench.ints(), bench.ints()
    with bench.a.unordered(), bench.b.unordered():
        bench.a.copy(y, x)
        if ok:
            bench.b.wait(bench.a)
        bench.b.copy(z, y)


def halves(bench: Bench, ok: bool) -> None:
    """Two streams have a half each, or one of them an element more."""
    x = bench.ints()
    bench.run(bench.a, "set", x, N // 2 if ok else N // 2 + 1, 1)
    bench.run(bench.b, "set", x[N // 2 :], N // 2, 2)


def bytes_of_words(bench: Bench, ok: bool) -> None:
    """Two streams write every second byte, or every third."""
    x = bench.ints()
    bench.run(bench.a, "bytes", x, N, 0, 2 if ok else 3)
    bench.run(bench.b, "bytes", x, N, 1, 2)


def vectors(bench: Bench, ok: bool) -> None:
    """A vector of 16 bytes reaches into the other's part."""
    x = bench.ints()
    bench.run(bench.a, "wide", x, 8)
    bench.run(bench.b, "set", x[32 if ok else 31 :], 10, 1)


def scattered(bench: Bench, ok: bool) -> None:
    """Indices of two streams are apart, or have one in common."""
    x = bench.ints(64 * N)
    shuffled = np.random.default_rng(5).permutation(64 * N).astype(np.int32)
    one, two = shuffled[:N].copy(), shuffled[N : 2 * N].copy()
    if not ok:
        two[17] = one[40]
    places = bench.of(one), bench.of(two)
    bench.run(bench.a, "scatter", x, places[0], N)
    bench.run(bench.b, "scatter", x, places[1], N)


def counted_by_both(bench: Bench, ok: bool) -> None:
    """Atomic operations may meet, ordinary ones not."""
    x = bench.ints()
    bench.run(bench.a, "count", x, N)
    bench.run(bench.b, "count" if ok else "add", x, N)


def counted_in_blocks(bench: Bench, ok: bool) -> None:
    """Atomic operations of the scope of a block do not reach another launch."""
    x = bench.ints()
    for stream in (bench.a, bench.b):
        bench.run(stream, "count" if ok else "count_in_blocks", x, 64)


def polled_flag(bench: Bench, ok: bool) -> None:
    """A flag is volatile on both sides, or on one."""
    x, out = bench.ints(), bench.ints()
    bench.run(bench.a, "raise_flag", x)
    bench.run(bench.b, "look" if ok else "look_plainly", out, x)


def event_of_another_stream(bench: Bench, ok: bool) -> None:
    """An event comes over a third stream that does not wait itself."""
    x, out = bench.ints(), bench.ints()
    bench.run(bench.a, "set", x, N, 1)
    if ok:
        bench.c.wait(bench.a)
    bench.b.wait(bench.c)
    bench.run(bench.b, "read", out, x, N)


def event_recorded_again(bench: Bench, ok: bool) -> None:
    """A wait takes the event as it is at the call."""
    x, out = bench.ints(), bench.ints()
    event = bench.a.record(timing=False)
    bench.run(bench.a, "set", x, N, 1)
    if ok:
        event.record(bench.a)
    bench.b.wait(event)
    bench.run(bench.b, "read", out, x, N)


def wait_of_the_host(bench: Bench, ok: bool) -> None:
    """The host waits for the stream, or for another one."""
    x, out = bench.ints(), bench.ints()
    bench.run(bench.a, "set", x, N, 1)
    (bench.a if ok else bench.c).synchronize()
    bench.run(bench.b, "read", out, x, N)


def wait_for_an_earlier_event(bench: Bench, ok: bool) -> None:
    """The host waits for an event before or behind the launch."""
    x, out = bench.ints(), bench.ints()
    early = bench.a.record(timing=False)
    bench.run(bench.a, "set", x, N, 1)
    late = bench.a.record(timing=False)
    (late if ok else early).synchronize()
    bench.run(bench.b, "read", out, x, N)


def blocking_copy(bench: Bench, ok: bool) -> None:
    """A copy to ordinary memory lets the host wait; one to pinned memory does not."""
    x, pinned = bench.ints(), bench.pinned()
    with bench.a.unordered():
        bench.run(bench.a, "add", x, N)
        if ok:
            bench.a.to_host(x)
        else:
            bench.a.to_host(x, out=pinned, wait=False)
    bench.run(bench.b, "set", x, N, 0)


def graph_beside_a_stream(bench: Bench, ok: bool) -> None:
    """A replay writes what a kernel of another stream reads."""
    x, out = bench.ints(), bench.ints()
    with bench.a.capture() as graph:
        bench.run(bench.a, "add", x.ptr, N)
        bench.run(bench.a, "add", x.ptr, N)
    replay = graph.instantiate()
    for _ in range(2):
        replay.launch(bench.a)
    if ok:
        bench.b.wait(bench.a)
    bench.run(bench.b, "read", out, x, N)


def two_executables(bench: Bench, ok: bool) -> None:
    """The launches of one executable follow each other; those of two do not."""
    x = bench.ints()
    with bench.a.capture() as graph:
        bench.run(bench.a, "add", x.ptr, N)
    one = graph.instantiate()
    other = one if ok else graph.instantiate()
    one.launch(bench.a)
    other.launch(bench.b)


def branches_of_a_graph(bench: Bench, ok: bool) -> None:
    """Branches write their own parts, or one array, and are joined before the sum."""
    x, total = bench.ints(), bench.ints()
    with bench.a.capture() as graph:
        fork = bench.a.record(timing=False)
        for k, stream in enumerate((bench.b, bench.c)):
            stream.wait(fork)
            part = x[k * N // 2 :] if ok else x
            bench.run(stream, "add", part.ptr, N // 2)
        for stream in (bench.b, bench.c):
            bench.a.wait(stream.record(timing=False))
        bench.run(bench.a, "sum", total.ptr, x.ptr, N)
    replay = graph.instantiate()
    for _ in range(3):
        replay.launch(bench.a)


def pinned_between_streams(bench: Bench, ok: bool) -> None:
    """A copy brings what a copy of another stream takes away."""
    n = 64 * N  # less is taken over in the call
    x, y, pinned = bench.ints(n), bench.ints(n), bench.pinned(n)
    with bench.a.unordered(), bench.b.unordered():
        bench.a.to_host(x, out=pinned, wait=False)
        if ok:
            bench.b.wait(bench.a)
        bench.b.copy(y, pinned, wait=False)


def pinned_in_kernels(bench: Bench, ok: bool) -> None:
    """Kernels of two streams reach pinned memory by its address."""
    pinned, out = bench.pinned(), bench.ints()
    address = pinned.ctypes.data
    bench.run(bench.a, "set", address, N, 1)
    if ok:
        bench.b.wait(bench.a)
    bench.run(bench.b, "read", out, address, N)


def managed_in_kernels(bench: Bench, ok: bool) -> None:
    """Likewise managed memory."""
    managed, out = cudadrv.managed_empty(N, np.int32), bench.ints()
    address = managed.ctypes.data
    bench.run(bench.a, "set", address, N, 1)
    if ok:
        bench.b.wait(bench.a)
    bench.run(bench.b, "read", out, address, N)


def many_launches(bench: Bench, ok: bool) -> None:
    """A hundred launches on each stream, each with elements of its own, but for one."""
    x = bench.ints(4 * N)
    for k in range(100):
        bench.run(bench.a, "set", x[2 * k :], 1, 1)
        bench.run(bench.b, "set", x[2 * k + 1 if ok or k < 90 else 2 :], 1, 1)


def known_up_to_a_point(bench: Bench, ok: bool) -> None:
    """A stream waits for the launches of another as they are at the tenth of twenty."""
    x, out = bench.ints(), bench.ints()
    for k in range(20):
        bench.run(bench.a, "set", x[k:], 1, 1)
        if k == 10:
            bench.b.wait(bench.a)
    bench.run(bench.b, "read", out, x, 11 if ok else 12)


def freed_too_early(bench: Bench, ok: bool) -> None:
    """Memory is given back in the order of a stream while another one reads it."""
    x, out = bench.a.zeros(N, np.int32), bench.ints()
    bench.run(bench.b, "read", out, x.ptr, N)
    if ok:
        bench.a.wait(bench.b)
    x.close()


def used_too_early(bench: Bench, ok: bool) -> None:
    """Memory is used in a stream that does not wait for its allocation."""
    x = bench.a.empty(N, np.int32)
    if ok:
        bench.b.wait(bench.a)
    bench.run(bench.b, "set", x, N, 1)


def given_out_again(bench: Bench, ok: bool) -> None:
    """What comes to another's address later has nothing to do with it."""
    for _ in range(20):
        x = bench.a.empty(1 << 20, np.int32)
        bench.run(bench.a, "set", x, N, 1)
        x.close()
        y = bench.b.empty(1 << 20, np.int32)
        bench.run(bench.b if ok else bench.a, "set", y, N, 1)
        y.close()


PROGRAMS: Final[tuple[Body, ...]] = (
    two_kernels,
    reader_then_writer,
    two_readers_one_awaited,
    readers_alone,
    fill_beside_a_kernel,
    copy_beside_a_kernel,
    two_copies,
    halves,
    bytes_of_words,
    vectors,
    scattered,
    counted_by_both,
    counted_in_blocks,
    polled_flag,
    event_of_another_stream,
    event_recorded_again,
    wait_of_the_host,
    wait_for_an_earlier_event,
    blocking_copy,
    graph_beside_a_stream,
    two_executables,
    branches_of_a_graph,
    pinned_between_streams,
    pinned_in_kernels,
    managed_in_kernels,
    many_launches,
    known_up_to_a_point,
    freed_too_early,
    used_too_early,
    given_out_again,
)
