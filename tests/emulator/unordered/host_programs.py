"""The programs of the host: it comes to memory that an operation uses, in an order only if `ok`."""

from __future__ import annotations

from typing import Final

import numpy as np

import cudadrv

from .bench import Bench, Body, N

LARGE: Final = 64 * N
"""Elements of an array that no call takes over."""


def source_changed(bench: Bench, ok: bool) -> None:
    """The host fills pinned memory again while a copy reads it."""
    pinned, x = bench.pinned(LARGE), bench.ints(LARGE)
    with bench.a.unordered():
        bench.a.copy(x, pinned, wait=False)
    if ok:
        bench.a.synchronize()
    pinned[:] = 7


def destination_changed(bench: Bench, ok: bool) -> None:
    """The host writes where a copy still does."""
    pinned, x = bench.pinned(), bench.ints()
    with bench.a.unordered():
        bench.a.to_host(x, out=pinned, wait=False)
    if ok:
        bench.a.synchronize()
    pinned[17] = 7


def written_beside_a_reading_kernel(bench: Bench, ok: bool) -> None:
    """A kernel reads pinned memory where the host writes."""
    pinned, out = bench.pinned(), bench.ints()
    bench.run(bench.a, "read", out, pinned.ctypes.data, N)
    if ok:
        bench.a.synchronize()
    pinned[:] = 7


def written_beside_a_writing_kernel(bench: Bench, ok: bool) -> None:
    """A kernel writes to pinned memory where the host does."""
    pinned = bench.pinned()
    bench.run(bench.a, "set", pinned.ctypes.data, N, 5)
    if ok:
        bench.a.synchronize()
    pinned[3] = 7


def managed_written_beside_a_kernel(bench: Bench, ok: bool) -> None:
    """Likewise managed memory."""
    managed, out = cudadrv.managed_empty(N, np.int32), bench.ints()
    managed[:] = 0
    bench.run(bench.a, "read", out, managed.ctypes.data, N)
    if ok:
        bench.context.synchronize()
    managed[:] = 7


def reached_by_a_pointer_in_memory(bench: Bench, ok: bool) -> None:
    """A kernel finds the address of pinned memory in memory, from the second launch on."""
    pinned, out = bench.pinned(), bench.ints()
    holder = bench.of(np.array([pinned.ctypes.data], np.uint64).view(np.int32))
    for value in (1, 2):
        bench.run(bench.a, "read_by_a_pointer", out, holder, N)
        if ok:
            bench.a.synchronize()
        pinned[:] = value
    bench.run(bench.a, "read_by_a_pointer", out, holder, N)


def other_half_written(bench: Bench, ok: bool) -> None:
    """The host fills the half that no kernel reads, or an element more."""
    pinned, out = bench.pinned(), bench.ints()
    bench.run(bench.a, "read", out, pinned.ctypes.data, N // 2)
    pinned[N // 2 if ok else N // 2 - 1 :] = 7


def known_by_an_event(bench: Bench, ok: bool) -> None:
    """The host waits for an event behind or before the copy."""
    pinned, x = bench.pinned(LARGE), bench.ints(LARGE)
    early = bench.a.record(timing=False)
    with bench.a.unordered():
        bench.a.copy(x, pinned, wait=False)
    late = bench.a.record(timing=False)
    (late if ok else early).synchronize()
    pinned[:] = 7


def known_by_a_query(bench: Bench, ok: bool) -> None:
    """The host asks for the stream of the copy, or for another."""
    pinned, x = bench.pinned(LARGE), bench.ints(LARGE)
    with bench.a.unordered():
        bench.a.copy(x, pinned, wait=False)
    while not (bench.a if ok else bench.b).is_done():
        pass
    pinned[:] = 7


def written_then_used(bench: Bench, ok: bool) -> None:
    """What was written before a launch is no fault; what is written twice behind it is."""
    pinned, out = bench.pinned(), bench.ints()
    for value in range(1, 4):
        pinned[:] = value
        bench.run(bench.a, "read", out, pinned.ctypes.data, N)
        if ok:
            bench.a.synchronize()


def replayed_while_written(bench: Bench, ok: bool) -> None:
    """A graph copies from an array each time; the host fills it for the next one too early."""
    pinned, x = bench.pinned(LARGE), bench.ints(LARGE)
    with bench.a.capture() as graph:
        bench.a.copy(x, pinned, wait=False)
    replay = graph.instantiate()
    for value in range(1, 3):
        pinned[:] = value
        replay.launch(bench.a)
        if ok:
            bench.a.synchronize()


def flag_for_a_kernel(bench: Bench, ok: bool) -> None:
    """A flag that the host sets is volatile for the kernel, or not."""
    pinned, out = bench.pinned(), bench.ints()
    bench.run(bench.a, "look" if ok else "look_plainly", out, pinned.ctypes.data)
    pinned[0] = 1


def data_behind_a_flag(bench: Bench, ok: bool) -> None:
    """The host writes data and then a flag, which the kernel looks at before it takes the data."""
    pinned, out = bench.pinned(), bench.ints()
    kernel = "take_behind_a_flag" if ok else "read"
    bench.run(bench.a, kernel, out, pinned.ctypes.data, N)
    pinned[1:] = 7
    pinned[0] = 1


def written_by_a_host_function(bench: Bench, ok: bool) -> None:
    """A host function of one stream writes what a kernel of another one reads."""
    pinned, out = bench.pinned(), bench.ints()
    bench.run(bench.a, "read", out, pinned.ctypes.data, N)
    if ok:
        bench.b.wait(bench.a)
    bench.b.call_on_host(lambda: pinned.__setitem__(slice(None), 7))
    bench.b.synchronize()


def read_by_a_copy_of_little(bench: Bench, ok: bool) -> None:
    """A small array is taken over in the call, while another copy still writes to it."""
    pinned, x, y = bench.pinned(), bench.ints(), bench.ints()
    with bench.a.unordered(), bench.b.unordered():
        bench.a.to_host(x, out=pinned, wait=False)
        if ok:
            bench.a.synchronize()
        bench.b.copy(y, pinned)


def gathered_for_a_copy(bench: Bench, ok: bool) -> None:
    """Every second element is gathered by the host; a kernel writes the others, or these."""
    pinned, y = bench.pinned(2 * LARGE), bench.ints(LARGE)
    bench.run(bench.a, "set_every_second", pinned[1 if ok else 0 :].ctypes.data, N)
    with bench.b.unordered():
        bench.b.copy(y, pinned[::2])


def freed_and_made_again(bench: Bench, ok: bool) -> None:
    """Pinned memory at the place of memory that is gone has nothing to do with its uses."""
    out = bench.ints()
    for value in range(3):
        pinned = bench.pinned()
        bench.run(bench.a, "read", out, pinned.ctypes.data, N)
        if not ok:
            pinned[0] = 1 + value
        del pinned


HOST_PROGRAMS: Final[tuple[Body, ...]] = (
    source_changed, destination_changed, written_beside_a_reading_kernel,
    written_beside_a_writing_kernel, managed_written_beside_a_kernel,
    reached_by_a_pointer_in_memory, other_half_written, known_by_an_event, known_by_a_query,
    written_then_used, replayed_while_written, flag_for_a_kernel, data_behind_a_flag,
    written_by_a_host_function, read_by_a_copy_of_little, gathered_for_a_copy,
    freed_and_made_again,
)  # fmt: skip
