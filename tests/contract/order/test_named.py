"""Order and lifetime where they are easily lost: updates, captures, collections and threads."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import cudadrv
from cudadrv import Event
from cudadrv.errors import ClosedError
from cudadrv.memory import CudaAllocator
from cudadrv.texture import CudaArray
from tests.patience import SECONDS

from .lab import Lab
from .late_kernels import WIDTH, HostInts, Ints, LateKernels, count_from, over

N = 1 << 14
ROOT = Path(__file__).parents[3]
EVIL = """
import faulthandler
import gc

import numpy as np

import cudadrv
from tests.contract.order.late_kernels import LateKernels, over

faulthandler.dump_traceback_later(120, exit=True)
context = cudadrv.cuda_context_for(0)
kernels = LateKernels(context, 0)
bump = kernels.kernel("bump")
stream = context.new_stream()
x, y = stream.zeros(64, np.int32), stream.zeros(64, np.int32)
runs = 0


class Busy:
    def __init__(self):
        self.circle = self

    def __del__(self):
        global runs
        runs += 1
        with context.new_stream() as other:
            launcher = bump.bind(other, over(64 + runs % 7))
            launcher(y, 64, 0, 0)
            launcher(y, 64, np.int32(0), 0)
            launcher.prepare(y, 64, 0, 0)()
            bump.launch(other, over(64), y, 64, 0, 0)
            other.synchronize()


def work():
    launcher = bump.bind(stream, over(64))
    launcher(x, 64, 1, 0)
    launcher(x, 64, np.int32(1), 0)
    launcher.prepare(x, 64, 1, 0)()
    bump.launch(stream, over(64), x, 64, 1, 0)
    with context.new_stream() as other:
        bump.launch(other, over(64), y, 64, 0, 0)
        other.synchronize()


gc.disable()
rounds = 0
for threshold in range(1, 120):
    Busy(), Busy(), Busy()
    gc.set_threshold(threshold, 1, 1)
    gc.enable()
    work()
    gc.disable()
    rounds += 1
gc.collect()
stream.synchronize()
assert (stream.to_host(x) == 4 * rounds).all()
assert runs == 3 * rounds
print("done")
"""


@contextlib.contextmanager
def everything_given_back(lab: Lab) -> Iterator[None]:
    """At the end of the block nothing is left, and nothing was raised where nobody hears it."""
    lab.settle()
    lab.forgive()
    yield
    lab.settle()
    assert lab.unraisable.take() == []
    if lab.is_emulated:
        assert not any(lab.leftovers())


@contextlib.contextmanager
def collections_after(allocations: int) -> Iterator[None]:
    """A garbage collection runs after so many new objects."""
    former = gc.get_threshold()
    gc.set_threshold(allocations, 1, 1)
    gc.enable()
    try:
        yield
    finally:
        gc.set_threshold(*former)


def garbage(stream: cudadrv.Stream, count: int = 1) -> None:
    """Arrays that only a collection finds."""
    for _ in range(count):
        circle: list[object] = [stream.zeros(64, np.int32)]
        circle.append(circle)


def test_an_updated_graph_keeps_the_host_arrays_of_runs_that_are_queued(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with everything_given_back(lab), context.new_stream() as stream:
        x: Ints = stream.zeros(N, np.int32)
        outs = [stream.zeros(N, np.int32) for _ in range(4)]
        stream.synchronize()

        def captured(value: int, x: Ints = x) -> cudadrv.Graph:
            with stream.capture() as graph:
                stream.copy(x, count_from(value, N))
            return graph

        executable = captured(0).instantiate()
        for _ in range(3):
            kernels.spin(stream)
        for number, out in enumerate(outs):
            if number:
                with captured(1000 * number) as graph:
                    executable.update(graph)
            executable.launch(stream)
            stream.copy(out, x)
        gc.collect()
        noise = [np.full(N, -1, np.int32) for _ in range(50)]
        for number, out in enumerate(outs):
            assert np.array_equal(stream.to_host(out), count_from(1000 * number, N))
        executable.launch(stream)
        executable.close()
        gc.collect()
        noise += [np.full(N, -1, np.int32) for _ in range(50)]
        assert np.array_equal(stream.to_host(x), count_from(3000, N))
        assert len(noise) == 100
        del x, outs, out, graph, captured


def test_a_rejected_update_keeps_the_host_arrays_of_the_graph(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with everything_given_back(lab), context.new_stream() as stream:
        x = stream.zeros(N, np.int32)
        stream.synchronize()
        with stream.capture() as graph:
            stream.copy(x, count_from(5, N))
        with stream.capture() as other:
            kernels.spin(stream)
        executable = graph.instantiate()
        graph.close()
        for _ in range(3):
            with pytest.raises(cudadrv.CudaError):
                executable.update(other)
        gc.collect()
        noise = [np.full(N, -1, np.int32) for _ in range(50)]
        executable.launch(stream)
        assert np.array_equal(stream.to_host(x), count_from(5, N))
        assert noise
        executable.close()
        del x


def test_a_collection_anywhere_in_a_capture_frees_nothing_into_it(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    gc.disable()
    try:
        with everything_given_back(lab), context.new_stream() as stream:
            x = stream.zeros(N, np.int32)
            stream.synchronize()
            for allocations in range(1, 80):
                garbage(stream, 3)
                with collections_after(allocations), stream.capture() as graph:
                    kernels.bump(stream, x, 1)
                gc.disable()
                assert graph.node_count == 1, f"with a collection after {allocations} objects"
                executable = graph.instantiate()
                executable.launch(stream)
                executable.launch(stream)
            assert (stream.to_host(x) == 2 * 79).all()
            del x, graph, executable
    finally:
        gc.enable()


def test_arrays_dropped_in_and_around_captures_are_released_once(lab: Lab) -> None:
    context, kernels = lab.contexts[0], lab.kernels[0]
    with everything_given_back(lab), context.new_stream() as stream, context.new_stream() as other:
        x, out = stream.to_device(count_from(0, N)), stream.zeros(N, np.int32)
        stream.synchronize()
        for turn in range(1, 6):
            outside, elsewhere = stream.zeros(N, np.int32), other.zeros(N, np.int32)
            context.synchronize()
            garbage(stream)
            with stream.capture() as graph:
                garbage(stream, 2)
                inside = stream.empty(N, np.int32)
                stream.copy(inside, x)
                kernels.bump(stream, inside, 1)
                del outside, elsewhere
                gc.collect()
                kernels.read(stream, x, inside)
                stream.copy(out, inside)
                del inside
                gc.collect()
            garbage(other)
            executable = graph.instantiate()
            for _ in range(3):
                executable.launch(other)
            del graph
            gc.collect()
            new = other.empty(N, np.int32)
            other.fill(new, -1)
            assert np.array_equal(other.to_host(out), count_from(3 * turn, N))
            assert (other.to_host(new) == -1).all()
        del x, out, new, executable


def test_a_stream_closed_in_its_capture_releases_what_was_dropped_there(lab: Lab) -> None:
    context = lab.contexts[0]
    with everything_given_back(lab):
        for drops_first in (True, False):
            stream = context.new_stream()
            x, y = stream.zeros(N, np.int32), stream.zeros(N, np.int32)
            inside: list[Ints] = []
            stream.synchronize()
            with pytest.raises(ClosedError), stream.capture():
                inside.append(stream.empty(N, np.int32))
                if drops_first:
                    x.close()
                    del y
                stream.close()
                x.close()
            assert not stream.capturing
            with contextlib.suppress(NameError):
                del y
            del x, stream
            inside.clear()
        with context.new_stream() as other:
            assert (other.to_host(other.zeros(N, np.int32)) == 0).all()


@pytest.mark.parametrize("closes_first", [True, False], ids=("closed", "dropped"))
def test_an_allocator_gives_its_cache_back_after_its_stream(lab: Lab, closes_first: bool) -> None:
    with everything_given_back(lab):
        for _ in range(3):
            stream = lab.contexts[0].new_stream()
            allocator = CudaAllocator(stream)
            addresses = [allocator.allocate(4 * N) for _ in range(4)]
            lab.kernels[0].write_at(stream, addresses[0], N, 1)
            for address in addresses:
                allocator.deallocate(address, 4 * N)
            if closes_first:
                stream.close()
            del stream, allocator


def test_an_allocator_of_a_closed_context_gives_its_cache_back(lab: Lab) -> None:
    with everything_given_back(lab), cudadrv.Context.create(0) as own:
        allocator = CudaAllocator(own.new_stream())
        allocator.deallocate(allocator.allocate(4 * N), 4 * N)
        own.close()
        del allocator, own


def in_threads(*works: Callable[[], None]) -> list[BaseException]:
    """Run them at once; what they raised."""
    faults: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        start.wait(SECONDS)
        try:
            work()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive(), "a thread does not end"
    return faults


@pytest.mark.parametrize("ends", ["close", "drop"])
def test_a_context_and_its_children_end_in_two_threads_at_once(lab: Lab, ends: str) -> None:
    with everything_given_back(lab):
        for _ in range(20 if lab.is_emulated else 6):
            own = cudadrv.Context.create(0)
            streams = [own.new_stream() for _ in range(4)]
            kernels = LateKernels(own, 0)
            arrays = [stream.zeros(N, np.int32) for stream in streams for _ in range(5)]
            children: list[cudadrv.Stream | Ints | Event | CudaArray[np.int32] | cudadrv.GraphExec]
            children = [*arrays, *(stream.record() for stream in streams)]
            children += [CudaArray(own, (8, WIDTH), np.int32) for _ in range(5)]
            for stream, array in zip(streams, arrays[::5], strict=True):
                with stream.capture() as graph:
                    kernels.bump(stream, array, 1)
                children.append(graph.instantiate())
                del graph
            children += streams
            del kernels, arrays, stream, array

            def end_children(
                children: list[
                    cudadrv.Stream | Ints | Event | CudaArray[np.int32] | cudadrv.GraphExec
                ] = children,
                streams: list[cudadrv.Stream] = streams,
            ) -> None:
                streams.clear()
                while children:
                    child = children.pop()
                    if ends == "close":
                        child.close()
                    del child

            faults = in_threads(end_children, own.close)
            assert faults == []
            del own, end_children, children, streams, faults


def test_host_functions_of_two_devices_keep_their_own_arguments(two_devices: Lab) -> None:
    lab, count = two_devices, 200
    seen: list[list[tuple[int, int]]] = [[], []]

    def note(device: int, number: int, values: HostInts) -> None:
        seen[device].append((number, int(values.sum())))

    with everything_given_back(lab):
        streams = [context.new_stream() for context in lab.contexts]
        for stream, kernels in zip(streams, lab.kernels, strict=True):
            kernels.spin(stream)
        for number in range(count):
            for device, stream in enumerate(streams):
                values = np.full(100, 2 * number + device, np.int32)
                stream.call_on_host(note, device, number, values)
        del values
        gc.collect()
        for stream in streams:
            stream.close()
        del stream, streams
        for context in lab.contexts:
            context.synchronize()
    for device in range(2):
        assert seen[device] == [(n, 100 * (2 * n + device)) for n in range(count)]


def racing(
    how: str,
    kernels: LateKernels,
    stream: cudadrv.Stream,
    x: Ints,
    y: Ints,
    launcher: cudadrv.Launcher,
    executable: cudadrv.GraphExec,
) -> Callable[[], None]:
    """One way to give a stream work: what adds 1 to x or, by the graph, to y; or sets x."""
    works: dict[str, Callable[[], None]] = {
        "launch": lambda: kernels.bump(stream, x, 1),
        "launcher": lambda: launcher(x, N, 1, 0),
        "prepared": launcher.prepare(x, N, 1, 0),
        "fill": lambda: stream.fill(x, 1),
        "copy": lambda: stream.copy(x, y),
        "graph": lambda: executable.launch(stream),
    }
    return works[how]


@pytest.mark.parametrize("how", ["launch", "launcher", "prepared", "fill", "copy", "graph"])
def test_work_that_races_with_the_close_of_its_stream_is_done_or_rejected(
    lab: Lab, how: str
) -> None:
    context = lab.contexts[0]
    with everything_given_back(lab), context.new_stream() as other:
        kernels = LateKernels(context, 0)
        for _ in range(15):
            stream = context.new_stream()
            x, y = other.zeros(N, np.int32), stream.zeros(N, np.int32)
            launcher = kernels.kernel("bump").bind(stream, over(N))
            with other.capture() as graph:
                kernels.bump(other, y, 1)
            executable = graph.instantiate()
            run = racing(how, kernels, stream, x, y, launcher, executable)
            done, started = [0], threading.Event()

            def work(
                run: Callable[[], None] = run,
                done: list[int] = done,
                started: threading.Event = started,
            ) -> None:
                with contextlib.suppress(ClosedError):
                    for _ in range(100_000):
                        run()
                        done[0] += 1
                        started.set()

            def close(stream: cudadrv.Stream = stream, started: threading.Event = started) -> None:
                assert started.wait(SECONDS)
                stream.close()

            assert in_threads(work, close) == []
            context.synchronize()
            if how in ("launch", "launcher", "prepared"):
                assert (other.to_host(x) == done[0]).all()
            elif how == "graph":
                assert (other.to_host(y) == done[0]).all()
            del stream, x, y, launcher, executable, graph, run, work, close


@pytest.mark.slow
def test_finalizers_of_users_may_launch_whenever_a_collection_comes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVIL],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    assert done.stdout.split() == ["done"], done.stderr[-3000:]
    assert not done.stderr
