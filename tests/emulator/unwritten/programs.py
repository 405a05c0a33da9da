"""The programs: each reads what nothing has written, or, where `ok`, does not."""

from __future__ import annotations

from typing import Final

import numpy as np

import cudadrv

from .bench import Bench, Body, N


def whole_array(bench: Bench, ok: bool) -> None:
    """An input was never filled."""
    a = bench.ints(range(N)) if ok else bench.fresh()
    bench.run("twice", bench.fresh(), a, N)


def one_element_too_few(bench: Bench, ok: bool) -> None:
    """A copy stops before the last element."""
    a = bench.fresh()
    bench.stream.copy(a[: N if ok else N - 1], np.zeros(N if ok else N - 1, np.int32))
    bench.run("twice", bench.fresh(), a, N)


def fill_too_short(bench: Bench, ok: bool) -> None:
    """A fill takes elements for bytes."""
    a = bench.fresh()
    bench.stream.fill(a if ok else a[: N // 4], 0)
    bench.run("add_words", bench.ints([0]), a, N)


def writer_of_fewer(bench: Bench, ok: bool) -> None:
    """A kernel writes fewer elements than the next one reads."""
    a = bench.fresh()
    bench.run("set", a, N if ok else N - 3, 7)
    bench.run("twice", bench.fresh(), a, N)


def one_byte_of_a_word(bench: Bench, ok: bool) -> None:
    """A word is read of which one byte was never written."""
    a = bench.ints(range(N))
    a = bench.fresh()
    bench.run("set_bytes", a, 4 * N if ok else 4 * N - 1, 1, count=4 * N)
    bench.run("twice", bench.fresh(), a, N)


def every_second_byte(bench: Bench, ok: bool) -> None:
    """Bytes are written by steps of two, and read by others."""
    a, total = bench.fresh(), bench.ints([0])
    bench.run("set_bytes", a, 4 * N, 2, count=4 * N)
    bench.run("add_bytes", total, a, 4 * N, 2 if ok else 1, count=4 * N)


def index_to_what_was_not_written(bench: Bench, ok: bool) -> None:
    """A gather reaches an element that the scatter before left out."""
    places = np.arange(N, dtype=np.int32)[::-1] // 2 * 2
    a = bench.fresh(N)
    bench.run("scatter", a, bench.ints(places), N)
    bench.run("gather", bench.fresh(), a, bench.ints(places if ok else places + 1), N)


def wide_elements(bench: Bench, ok: bool) -> None:
    """Elements of 16 bytes, of which the last half is missing."""
    a = bench.fresh(4 * N)
    bench.run("set", a, 4 * N if ok else 4 * N - 2, 1, count=4 * N)
    bench.run("twice_wide", bench.fresh(4 * N), a, N)


def counter_not_cleared(bench: Bench, ok: bool) -> None:
    """Atomic additions to what nothing has set."""
    a = bench.stream.zeros(16, np.int32) if ok else bench.fresh(16)
    bench.run("count", a, N)


def exchange_whose_old_value_is_used(bench: Bench, ok: bool) -> None:
    """An exchange writes; what it gives back is read."""
    a = bench.fresh()
    bench.run("exchanged", a, N)  # nothing looks at what was there
    bench.run("swapped", a if ok else bench.fresh(), bench.fresh(), N)


def reused_pool_memory(bench: Bench, ok: bool) -> None:
    """Memory of the pool is fresh again, whoever had it before."""
    for _ in range(3):
        a = bench.ints(range(N))
        bench.stream.synchronize()
        del a
    b = bench.ints(range(N)) if ok else bench.fresh()
    bench.run("twice", bench.fresh(), b, N)


def much_reused_memory(bench: Bench, ok: bool) -> None:
    """Likewise where an address comes again."""
    for _ in range(6):
        a = bench.stream.zeros(4 << 20, np.int32)
        bench.stream.synchronize()
        del a
    b = bench.stream.empty(4 << 20, np.int32)
    if ok:
        bench.stream.fill(b, 0)
    bench.run("twice", bench.fresh(), b, N)


def copied_from_fresh_memory(bench: Bench, ok: bool) -> None:
    """A copy within the device takes along what was not written."""
    a, b = bench.fresh(), bench.ints(range(N))
    bench.run("set", a, N if ok else N // 2, 1)
    bench.stream.copy(b, a)
    bench.run("twice", bench.fresh(), b, N)


def copied_in_a_batch(bench: Bench, ok: bool) -> None:
    """The kernel of a batch takes along what was not written."""
    a, b = bench.fresh(), bench.ints(range(N))
    bench.run("set", a, N if ok else N // 2, 1)
    parts = [slice(at, at + 16) for at in range(0, N, 16)]
    bench.stream.copy_batch([(b[part], a[part]) for part in parts])
    bench.run("twice", bench.fresh(), b, N)


def overwritten_by_a_whole_copy(bench: Bench, ok: bool) -> None:
    """What a kernel left open a copy fills, if it is long enough."""
    a, b = bench.fresh(), bench.ints(range(N))
    bench.run("set", a, N - 9, 1)
    part = slice(0, N) if ok else slice(0, N - 8)
    bench.stream.copy(a[part], b[part])
    bench.run("twice", bench.fresh(), a, N)


def copied_by_a_kernel(bench: Bench, ok: bool) -> None:
    """A kernel copies elements; what nothing has written is no use of it only beside what was."""
    a, b = bench.fresh(), bench.fresh()
    bench.run("set", a, N if ok else N - 1, 1)
    bench.run("copied", b, a, N)


def guard_of_a_copy(bench: Bench, ok: bool) -> None:
    """The elements that a guarded copy left out are read."""
    a, b = bench.ints(range(N)), bench.fresh()
    if ok:
        bench.stream.fill(b, 0)
    bench.run("copied_some", b, a, N)
    bench.run("twice", bench.fresh(), b, N)


def padding_summed_as_bytes(bench: Bench, ok: bool) -> None:
    """The padding of a structure is copied twice, and then used; or its fields are."""
    a, b, c = (bench.fresh(4 * N) for _ in range(3))
    bench.run("make_padded", a, N)
    bench.run("copy_padded", b, a, N)
    bench.stream.copy(c, b)
    if ok:
        bench.run("sum_padded", bench.stream.empty(N, np.float64), c, N)
    else:
        bench.run("add_bytes", bench.ints([0]), c, 16 * N, 1, count=16 * N)


def padding_behind_a_structure(bench: Bench, ok: bool) -> None:
    """Padding at the end of a structure; or a structure of which nothing was written."""
    a = bench.fresh(4 * N)
    bench.run("make_short", a, N if ok else N - 1)
    bench.run("copy_short", bench.fresh(4 * N), a, N)


def fourth_of_four(bench: Bench, ok: bool) -> None:
    """A vector whose last element was not set, nor needed."""
    a = bench.fresh(4 * N)
    bench.run("make_three", a, N)
    bench.run("norm_three" if ok else "norm_four", bench.fresh(), a, N)


def heap_of_the_device(bench: Bench, ok: bool) -> None:
    """Memory that a kernel allocates."""
    bench.run("in_the_heap", bench.fresh(), 64, 4 if ok else 3, count=64)


def within_one_launch(bench: Bench, ok: bool) -> None:
    """Threads read what others of the launch write, or do not."""
    bench.run("within_one_launch", bench.fresh(), bench.fresh(), N, int(ok))


def variable_of_the_module(bench: Bench, ok: bool) -> None:
    """Variables are zero from the beginning; memory is not."""
    if ok:
        bench.run("of_the_module", bench.fresh(), N)
    else:
        bench.run("twice", bench.fresh(), bench.fresh(), N)


def memory_of_a_graph(bench: Bench, ok: bool) -> None:
    """Memory that a graph allocates is fresh at each replay."""
    out = bench.ints([0])
    with bench.stream.capture() as graph:
        a = bench.stream.empty(N, np.int32)
        if ok:
            bench.run("set", a, N, 3)
        bench.run("add_words", out, a, N)
        if not ok:
            bench.run("set", a, N, 3)
        a.close()
    replay = graph.instantiate()
    for _ in range(2):
        replay.launch(bench.stream)


def memory_of_the_arena(bench: Bench, ok: bool) -> None:
    """A piece of a large allocation, of which another piece was written."""
    whole = bench.stream.empty(4 * N, np.int32)
    bench.run("set", whole, N, 1)
    bench.run("twice", bench.fresh(), whole[:N] if ok else whole[N - 1 : 2 * N - 1], N)


def managed_memory(bench: Bench, ok: bool) -> None:
    """Managed memory that the host writes, or all but the last elements."""
    a = cudadrv.managed_empty(N, np.int32)
    a[: N if ok else N - 4] = 0
    bench.run("twice", bench.fresh(), a.ctypes.data, N)


def pinned_memory(bench: Bench, ok: bool) -> None:
    """Likewise pinned memory, a part of which the host writes."""
    a = cudadrv.pinned_empty(2 * N, np.int32)
    a[: N if ok else N - 4] = np.arange(N if ok else N - 4)
    bench.run("twice", bench.fresh(), a.ctypes.data, N)
    a[N:] = 1
    bench.run("twice", bench.fresh(), a[N:].ctypes.data, N)


def bytes_of_the_host(bench: Bench, ok: bool) -> None:
    """Every value that a byte has is in memory that the host wrote."""
    a, total = cudadrv.pinned_empty(4 * N, np.uint8), bench.ints([0])
    if ok:
        a[:] = np.arange(4 * N) % 256
    bench.run("add_bytes", total, a.ctypes.data, 4 * N, 1, count=4 * N)


def one_word_of_the_host(bench: Bench, ok: bool) -> None:
    """A flag in pinned memory."""
    a = cudadrv.pinned_empty(1, np.int32)
    if ok:
        a[0] = 0
    bench.run("twice", bench.fresh(1), a.ctypes.data, 1)


def pinned_memory_of_a_kernel(bench: Bench, ok: bool) -> None:
    """A kernel writes pinned memory, all of it or less, that another one reads."""
    a = cudadrv.pinned_empty(N, np.int32)
    bench.run("set", a.ctypes.data, N if ok else N - 1, 1)
    bench.run("twice", bench.fresh(), a.ctypes.data, N)


def copied_to_pinned_memory(bench: Bench, ok: bool) -> None:
    """A copy brings what a kernel reads there."""
    a = cudadrv.pinned_empty(N, np.int32)
    if ok:
        bench.stream.to_host(bench.ints(np.ones(N)), out=a)
    bench.run("twice", bench.fresh(), a.ctypes.data, N)


def copied_from_pinned_memory(bench: Bench, ok: bool) -> None:
    """A copy takes along what the host has not written."""
    count = 64 * N  # less the library takes over itself
    a, x = cudadrv.pinned_empty(count, np.int32), bench.fresh(count)
    a[: count if ok else count - N] = 1
    bench.stream.copy(x, a)
    bench.run("twice", bench.fresh(), x[count - N :], N)


def pinned_memory_made_again(bench: Bench, ok: bool) -> None:
    """What comes to the place of memory that is gone is fresh."""
    for _ in range(3):
        a = cudadrv.pinned_empty(N, np.int32)
        if ok:
            a[:] = 1
        bench.run("twice", bench.fresh(), a.ctypes.data, N)
        bench.stream.synchronize()
        a[:] = 1
        del a


PROGRAMS: Final[tuple[Body, ...]] = (
    whole_array,
    one_element_too_few,
    fill_too_short,
    writer_of_fewer,
    one_byte_of_a_word,
    every_second_byte,
    index_to_what_was_not_written,
    wide_elements,
    counter_not_cleared,
    exchange_whose_old_value_is_used,
    reused_pool_memory,
    much_reused_memory,
    copied_from_fresh_memory,
    copied_in_a_batch,
    overwritten_by_a_whole_copy,
    copied_by_a_kernel,
    guard_of_a_copy,
    padding_summed_as_bytes,
    padding_behind_a_structure,
    fourth_of_four,
    heap_of_the_device,
    within_one_launch,
    variable_of_the_module,
    memory_of_a_graph,
    memory_of_the_arena,
    managed_memory,
    pinned_memory,
    bytes_of_the_host,
    one_word_of_the_host,
    pinned_memory_of_a_kernel,
    copied_to_pinned_memory,
    copied_from_pinned_memory,
    pinned_memory_made_again,
)
