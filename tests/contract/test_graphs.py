from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.errors import (
    ClosedError,
    CudaError,
    GraphExecUpdateFailureError,
    InvalidValueError,
)
from tests.patience import wait_until

from .conftest import compile_module


@pytest.fixture(scope="module")
def add(context: cudadrv.Context) -> cudadrv.Kernel:
    source = 'extern "C" __global__ void add(int* out, int v) { out[threadIdx.x] += v; }'
    return compile_module(context, source).kernel("add")


def test_a_graph_replays_what_was_captured(stream: cudadrv.Stream, add: cudadrv.Kernel) -> None:
    out = stream.zeros(32, "i4")
    launcher = add.bind(stream, LaunchConfig(1, 32))
    with stream.capture() as graph:
        for value in range(10):
            launcher(out, value)
    assert stream.to_host(out).sum() == 0  # captured, not run
    assert graph.node_count == 10
    with graph.instantiate() as executable:
        for _ in range(3):
            executable.launch(stream)
        assert stream.to_host(out).tolist() == [135] * 32


def test_a_graph_runs_on_other_streams_and_outlives_its_parts(
    context: cudadrv.Context, stream: cudadrv.Stream, add: cudadrv.Kernel
) -> None:
    out = stream.zeros(4, "i4")
    stream.synchronize()
    with stream.capture() as graph:
        stream.fill(out, 5)
        add.launch(stream, LaunchConfig(1, 4), out, 1)
    executable = graph.instantiate()
    graph.close()
    graph.close()
    with context.new_stream() as other:
        executable.launch(other)
        assert other.to_host(out).tolist() == [6] * 4
    executable.close()
    with pytest.raises(ClosedError, match="the graph executable was closed"):
        executable.launch(stream)
    with pytest.raises(ClosedError, match="the graph holds nothing"):
        graph.instantiate()


def test_a_capture_ends_once(stream: cudadrv.Stream) -> None:
    capture = stream.capture()
    capture.__enter__()
    capture.__exit__(None, None, None)
    with pytest.raises(InvalidValueError, match="has already ended"):
        capture.__exit__(None, None, None)
    with capture as graph:  # and may begin again
        stream.zeros(3, "u1")
    assert graph.node_count > 0


def test_an_error_in_the_block_leaves_the_stream_usable(
    stream: cudadrv.Stream, add: cudadrv.Kernel
) -> None:
    out = stream.zeros(4, "i4")
    with pytest.raises(ZeroDivisionError), stream.capture() as graph:
        add.launch(stream, LaunchConfig(1, 4), out, 1)
        raise ZeroDivisionError
    assert not stream.capturing
    with pytest.raises(ClosedError):
        graph.instantiate()
    add.launch(stream, LaunchConfig(1, 4), out, 2)
    assert stream.to_host(out).tolist() == [2] * 4


def test_waiting_for_a_capturing_stream_is_rejected_and_ends_the_capture(
    stream: cudadrv.Stream, add: cudadrv.Kernel
) -> None:
    out = stream.zeros(4, "i4")
    with pytest.raises(CudaError, match="CUDA_ERROR_STREAM_CAPTURE"), stream.capture():
        add.launch(stream, LaunchConfig(1, 4), out, 1)
        stream.synchronize()
    assert stream.to_host(out).tolist() == [0] * 4


def test_memory_dropped_in_a_capture_is_freed_after_it(
    stream: cudadrv.Stream, add: cudadrv.Kernel
) -> None:
    out, scratch = stream.zeros(4, "i4"), stream.zeros(4, "i4")
    stream.synchronize()
    with stream.capture() as graph:
        add.launch(stream, LaunchConfig(1, 4), out, 3)
        scratch.close()
    assert graph.node_count == 1
    graph.instantiate().launch(stream)
    assert np.array_equal(stream.to_host(out), [3] * 4)


def test_memory_of_a_capture_is_the_graphs_at_every_replay(
    stream: cudadrv.Stream, add: cudadrv.Kernel
) -> None:
    out = stream.zeros(4, "i4")
    stream.synchronize()
    with stream.capture() as graph:
        scratch, left = stream.zeros(4, "i4"), stream.zeros(4, "i4")
        for array, value in ((scratch, 5), (left, 7), (out, 1)):
            add.launch(stream, LaunchConfig(1, 4), array, value)
        del scratch  # given back by the graph itself
    assert graph.allocates
    with graph.instantiate() as executable:
        for replay in range(1, 4):
            executable.launch(stream)
            assert stream.to_host(left).tolist() == [7] * 4
            assert stream.to_host(out).tolist() == [replay] * 4
        left.close()
        stream.synchronize()


def test_a_graph_that_frees_what_it_allocates_is_left_with_nothing(
    stream: cudadrv.Stream, add: cudadrv.Kernel
) -> None:
    with stream.capture() as graph:
        for value in range(8):
            add.launch(stream, LaunchConfig(1, 4), stream.zeros(4, "i4"), value)
    assert not graph.allocates
    with graph.instantiate() as executable:
        for _ in range(3):
            executable.launch(stream)
        stream.synchronize()


def test_one_capture_object_records_again(stream: cudadrv.Stream, add: cudadrv.Kernel) -> None:
    out = stream.zeros(4, "i4")
    capture = stream.capture()
    for value in (1, 2):
        with capture as graph:
            add.launch(stream, LaunchConfig(1, 4), out, value)
        with graph, graph.instantiate() as executable:
            executable.launch(stream)
            stream.synchronize()
    assert stream.to_host(out).tolist() == [3] * 4


def test_an_executable_copies_the_parameters_of_a_graph_captured_alike(
    stream: cudadrv.Stream, add: cudadrv.Kernel
) -> None:
    first, second = stream.zeros(4, "i4"), stream.zeros(4, "i4")
    stream.synchronize()

    def captured(array: cudadrv.DeviceArray[np.int32], value: int) -> cudadrv.Graph:
        with stream.capture() as graph:
            add.launch(stream, LaunchConfig(1, 4), array, value)
            add.launch(stream, LaunchConfig(1, 2), array, 10 * value)
        return graph

    executable = captured(first, 1).instantiate()
    executable.launch(stream)
    with captured(second, 2) as graph:
        executable.update(graph)
    executable.launch(stream)
    executable.update(captured(first, 3))
    executable.launch(stream)
    assert stream.to_host(first).tolist() == [44, 44, 4, 4]
    assert stream.to_host(second).tolist() == [22, 22, 2, 2]


def test_an_executable_of_another_graph_is_not_updated(
    stream: cudadrv.Stream, add: cudadrv.Kernel
) -> None:
    out = stream.zeros(4, "i4")
    stream.synchronize()
    with stream.capture() as one:
        add.launch(stream, LaunchConfig(1, 4), out, 1)
    with stream.capture() as two:
        add.launch(stream, LaunchConfig(1, 4), out, 1)
        add.launch(stream, LaunchConfig(1, 4), out, 1)
    with stream.capture() as fill:
        stream.fill(out, 7)
    executable = one.instantiate()
    for other in (two, fill):
        with pytest.raises(GraphExecUpdateFailureError, match="updating <GraphExec .* by <Graph"):
            executable.update(other)
    executable.launch(stream)
    assert stream.to_host(out).tolist() == [1] * 4
    executable.close()
    with pytest.raises(ClosedError):
        executable.update(one)


def test_a_capture_may_use_memory_of_other_streams(
    context: cudadrv.Context, stream: cudadrv.Stream, add: cudadrv.Kernel
) -> None:
    with context.new_stream() as other, context.new_stream() as branch:
        outside, drawn_in = other.empty(1 << 20, "i4"), branch.zeros(4, "i4")
        for value in range(20):
            other.fill(outside, value)
        own = stream.empty(1 << 20, "i4")
        with context.new_stream() as gone:
            of_a_closed_stream = gone.to_device(np.full(1 << 20, 5, np.int32))
        with stream.capture() as graph:
            stream.copy(own, outside)
            branch.wait(stream)
            add.launch(branch, LaunchConfig(1, 4), drawn_in, 1)
            stream.fill(drawn_in, 3)  # after the branch, which it joins
            stream.copy(outside, of_a_closed_stream)
        assert graph.node_count == 4
        graph.instantiate().launch(stream)
        assert (stream.to_host(own) == 19).all()
        assert stream.to_host(drawn_in).tolist() == [3] * 4
        assert (stream.to_host(outside) == 5).all()


def test_host_arrays_of_a_capture_live_as_long_as_its_graph(stream: cudadrv.Stream) -> None:
    array = stream.zeros(1000, "f8")
    read = np.full(1000, 1.0)
    stream.synchronize()
    with stream.capture() as graph:
        made = stream.to_device(np.arange(1000.0)[::-1])
        stream.copy(array, read)
    alive = weakref.ref(read)
    read[:] = 2
    executable = graph.instantiate()
    graph.close()
    del graph, read
    gc.collect()
    assert alive() is not None
    noise = [np.full(1000, -1.0) for _ in range(50)]
    for _ in range(2):
        executable.launch(stream)
        assert np.array_equal(stream.to_host(made), np.arange(1000.0)[::-1])
        assert (stream.to_host(array) == 2).all()
    assert len(noise) == 50
    executable.close()
    del executable
    gc.collect()

    # The driver says in a thread of its own that the graph needs them no more.
    def is_gone() -> bool:
        stream.synchronize()
        return alive() is None

    wait_until(is_gone)


def test_a_captured_copy_to_the_host_writes_any_array_at_each_replay(
    stream: cudadrv.Stream,
) -> None:
    array = stream.to_device(np.arange(1000.0))
    given = np.zeros(1000)
    stream.synchronize()
    with stream.capture() as graph:
        stream.copy(given, array, wait=False)
        made = stream.to_host(array[:4], wait=False)
    executable = graph.instantiate()
    for value in (1.0, 2.0):
        stream.fill(array, value)
        executable.launch(stream)
        stream.synchronize()
        assert (given == value).all()
        assert (made == value).all()


@pytest.mark.parametrize("wait", [True, False])
def test_a_copy_to_the_host_that_no_capture_can_record_is_reported(
    stream: cudadrv.Stream, wait: bool
) -> None:
    array = stream.zeros(1000, "f8")
    into = np.zeros(2000)[::2]
    text = "wait=False only records it" if wait else "make it contiguous first"
    error = cudadrv.CudaError if wait else cudadrv.errors.CopyError
    with pytest.raises(error, match=text), stream.capture():
        stream.copy(into.copy() if wait else into, array, wait=wait)
    assert stream.to_host(array, into).sum() == 0


def test_closing_a_stream_ends_its_capture(context: cudadrv.Context) -> None:
    stream = context.new_stream()
    with pytest.raises(ClosedError, match="the stream on device 0 was closed"), stream.capture():
        stream.close()
    assert not stream.capturing
    with context.new_stream() as other, other.capture() as graph:
        pass
    assert graph.node_count == 0


def test_graphs_need_no_current_context(stream: cudadrv.Stream) -> None:
    """A thread that never made a context current does all that there is to do with a graph."""
    array = stream.zeros(100, "i4")
    seen: list[object] = []

    def work() -> None:
        with stream.capture() as graph:
            stream.fill(array, 3)
        with stream.capture() as other:
            stream.fill(array, 4)
        with graph, other, graph.instantiate() as executable:
            seen.append(graph.node_count)
            executable.launch(stream)
            seen.append(int(stream.to_host(array)[7]))
            executable.update(other)
            executable.launch(stream)
            seen.append(int(stream.to_host(array)[7]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [1, 3, 4]
