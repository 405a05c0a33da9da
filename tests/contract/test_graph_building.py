from __future__ import annotations

import contextlib
import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, DeviceBuffer, LaunchConfig
from cudadrv.errors import (
    ArgumentError,
    ClosedError,
    CopyError,
    CudaError,
    InvalidValueError,
    WrongDeviceError,
)
from cudadrv.graph.node import NodeKind
from tests.patience import wait_until

from .conftest import compile_module

ONE = LaunchConfig(1, 4)
SOURCE = """
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

extern "C" __global__ void add(int* out, int v) { out[threadIdx.x] += v; }
extern "C" __global__ void twice(int* out, const int* in) {
    out[threadIdx.x] = 2 * in[threadIdx.x];
}
extern "C" __global__ void choose(unsigned long long handle, const int* value) {
    cudaGraphSetConditional(handle, *value);
}
extern "C" __global__ void next(unsigned long long handle, int* left) {
    *left -= 1;
    cudaGraphSetConditional(handle, *left > 0);
}
// One step of Jacobi's method for A x = b, a thread a row.
extern "C" __global__ void jacobi(const double* a, const double* b, const double* x, double* y,
                                  int n) {
    int row = threadIdx.x;
    double sum = b[row];
    for (int column = 0; column < n; column++)
        if (column != row) sum -= a[row * n + column] * x[column];
    y[row] = sum / a[row * n + row];
}
extern "C" __global__ void converged(unsigned long long handle, const double* x, const double* y,
                                     int n, double most, int* steps) {
    double change = 0;
    for (int row = 0; row < n; row++) change = fmax(change, fabs(x[row] - y[row]));
    *steps += 1;
    cudaGraphSetConditional(handle, change > most);
}
"""


@pytest.fixture(scope="module")
def module(context: cudadrv.Context) -> cudadrv.Module:
    return compile_module(context, SOURCE)


@pytest.fixture
def graph(context: cudadrv.Context) -> Iterator[cudadrv.Graph]:
    with context.new_graph() as graph:
        yield graph


def run(graph: cudadrv.Graph, stream: cudadrv.Stream, times: int = 1) -> None:
    with graph.instantiate() as executable:
        for _ in range(times):
            executable.launch(stream)
    stream.synchronize()


def test_a_graph_of_kernels_copies_and_fills_gives_what_a_stream_gives(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    given, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    one, two = stream.empty(4, np.int32), stream.empty(4, np.int32)
    stream.synchronize()
    up = graph.add_copy(one, given)
    fill = graph.add_fill(two, 7)
    double = graph.add_kernel(module.kernel("twice"), ONE, two, one, after=[up, fill])
    add = graph.add_kernel(module.kernel("add"), ONE, two, 5, after=double)
    graph.add_copy(out, two, after=add)
    assert graph.node_count == 5
    run(graph, stream)
    assert out.tolist() == [5, 7, 9, 11]
    given[:] = 1  # read anew at each replay
    run(graph, stream)
    assert out.tolist() == [7] * 4


def test_branches_run_and_join(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    arrays = [stream.zeros(4, np.int32) for _ in range(3)]
    stream.synchronize()
    add = module.kernel("add")
    branches = [graph.add_kernel(add, ONE, array, n) for n, array in enumerate(arrays, 1)]
    join = graph.add_empty(after=branches)
    graph.add_kernel(module.kernel("twice"), ONE, arrays[0], arrays[2], after=join)
    run(graph, stream)
    assert stream.to_host(arrays[0]).tolist() == [6] * 4
    assert [node.kind for node in graph.nodes].count(NodeKind.KERNEL) == 4
    assert sorted((a.kind.value, b.kind.value) for a, b in graph.edges) == [
        ("empty", "kernel"),
        *[("kernel", "empty")] * 3,
    ]


def test_an_executable_rejects_a_graph_whose_nodes_wait_for_each_other(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    fill, add = graph.add_fill(out, 3), graph.add_kernel(module.kernel("add"), ONE, out, 4)
    graph.add_edge(fill, add)
    ready = graph.instantiate()
    with contextlib.suppress(CudaError):  # a driver may refuse it here already
        graph.add_edge(add, fill)
        with pytest.raises(CudaError):
            ready.update(graph)
    ready.launch(stream)
    assert stream.to_host(out).tolist() == [7] * 4


def test_edges_and_nodes_are_added_and_removed(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    kernel = module.kernel("add")
    fill, add = graph.add_fill(out, 3), graph.add_kernel(kernel, ONE, out, 4)
    assert graph.edges == []
    graph.add_edge(fill, add)
    assert graph.edges == [(fill, add)]
    with pytest.raises(CudaError):
        graph.add_edge(fill, add)
    with pytest.raises(CudaError):
        graph.add_edge(add, fill)  # a circle, which the driver may find in the graph alone
        graph.instantiate()
    with contextlib.suppress(CudaError):
        graph.remove_edge(add, fill)
    run(graph, stream)
    assert stream.to_host(out).tolist() == [7] * 4
    graph.remove_edge(fill, add)
    with pytest.raises(CudaError):
        graph.remove_edge(fill, add)
    fill.remove()
    with pytest.raises(ClosedError):
        fill.handle  # noqa: B018
    assert graph.nodes == [add]
    run(graph, stream)
    assert stream.to_host(out).tolist() == [11] * 4


def test_a_node_is_changed_in_the_graph_and_in_one_executable(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    first, second = stream.zeros(4, np.int32), stream.zeros(4, np.int32)
    stream.synchronize()
    kernel = module.kernel("add")
    node = graph.add_kernel(kernel, ONE, first, 1)
    old, changed = graph.instantiate(), graph.instantiate()
    node.update(kernel, ONE, second, 10)
    new = graph.instantiate()
    node.update_in(changed, kernel, LaunchConfig(1, 2), second, 100)
    for executable in (old, changed, new):
        executable.launch(stream)
    assert stream.to_host(first).tolist() == [1] * 4
    assert stream.to_host(second).tolist() == [110, 110, 10, 10]


def test_copies_fills_and_host_functions_are_changed_in_an_executable(
    graph: cudadrv.Graph, stream: cudadrv.Stream
) -> None:
    array, out, other = stream.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(4, np.int32)
    stream.synchronize()
    called: list[object] = []
    fill = graph.add_fill(array, 1)
    copy = graph.add_copy(out, array, after=fill)
    host = graph.add_host(called.append, "first", after=copy)
    with graph.instantiate() as executable:
        executable.launch(stream)
        fill.update_in(executable, array, 2)
        copy.update_in(executable, other, array)
        host.update_in(executable, called.append, "second")
        executable.launch(stream)
        stream.synchronize()
    assert out.tolist() == [1] * 4
    assert other.tolist() == [2] * 4
    assert called == ["first", "second"]


def test_nodes_of_an_executable_are_switched_off_and_on(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    kernel = module.kernel("add")
    one = graph.add_kernel(kernel, ONE, out, 1)
    ten = graph.add_kernel(kernel, ONE, out, 10, after=one)
    with graph.instantiate() as executable:
        assert executable.is_enabled(one)
        executable.enable(one, False)
        assert not executable.is_enabled(one)
        executable.launch(stream)
        executable.enable(one)
        executable.enable(ten, False)
        executable.launch(stream)
    assert stream.to_host(out).tolist() == [11] * 4


def test_a_host_function_is_called_at_each_replay(
    graph: cudadrv.Graph, stream: cudadrv.Stream
) -> None:
    seen: list[tuple[int, bool]] = []

    def note(number: int) -> None:
        seen.append((number, threading.current_thread() is threading.main_thread()))

    first = graph.add_host(note, 1)
    graph.add_host(note, 2, after=first)
    run(graph, stream, 3)
    assert seen == [(1, False), (2, False)] * 3


def test_a_host_function_in_a_capture_is_called_at_each_replay(
    stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out, seen = cudadrv.pinned_empty(4, np.int32), list[int]()
    array = stream.zeros(4, np.int32)
    stream.synchronize()
    with stream.capture() as graph:
        module.kernel("add").launch(stream, ONE, array, 3)
        stream.copy(out, array, wait=False)
        stream.call_on_host(lambda: seen.append(int(out[0])))
        module.kernel("add").launch(stream, ONE, array, 1)
    assert graph.node_count == 4
    assert seen == []
    run(graph, stream, 2)
    assert seen == [3, 7]
    assert stream.to_host(array).tolist() == [8] * 4


def test_a_child_graph_runs_as_it_was_when_it_was_added(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module, context: cudadrv.Context
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    kernel = module.kernel("add")
    with context.new_graph() as child:
        child.add_kernel(kernel, ONE, out, 2)
        before = graph.add_fill(out, 1)
        middle = graph.add_graph(child, after=before)
        child.add_kernel(kernel, ONE, out, 1000)
    graph.add_kernel(module.kernel("twice"), ONE, out, out, after=middle)
    assert middle.kind is NodeKind.GRAPH
    run(graph, stream)
    assert stream.to_host(out).tolist() == [6] * 4


def test_a_captured_graph_is_a_child_and_is_added_to(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    kernel = module.kernel("add")
    with stream.capture() as captured:
        kernel.launch(stream, ONE, out, 1)
    (node,) = captured.nodes
    captured.add_kernel(kernel, ONE, out, 10, after=node)
    once = graph.add_graph(captured)
    graph.add_graph(captured, after=once)
    run(graph, stream)
    assert stream.to_host(out).tolist() == [22] * 4


def test_a_capture_goes_into_a_graph_after_its_nodes(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    fill = graph.add_fill(out, 5)
    with stream.capture(into=graph, after=fill) as same:
        module.kernel("add").launch(stream, ONE, out, 1)
        module.kernel("twice").launch(stream, ONE, out, out)
    assert same is graph
    assert graph.node_count == 3
    assert len(graph.edges) == 2
    run(graph, stream)
    assert stream.to_host(out).tolist() == [12] * 4


def test_events_are_recorded_and_waited_for(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module, context: cudadrv.Context
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    begin, end = cudadrv.Event(context), cudadrv.Event(context)
    kernel = module.kernel("add")
    first = graph.add_record(begin)
    work = graph.add_kernel(kernel, ONE, out, 1, after=first)
    graph.add_record(end, after=work)
    run(graph, stream)
    end.synchronize()
    assert end.elapsed_ms(begin) >= 0
    with context.new_graph() as waiting, context.new_stream() as other:
        wait = waiting.add_wait(end)
        waiting.add_kernel(module.kernel("twice"), ONE, out, out, after=wait)
        assert [node.kind for node in waiting.nodes] == [NodeKind.WAIT, NodeKind.KERNEL]
        run(waiting, other)
    assert stream.to_host(out).tolist() == [2] * 4


def test_a_graph_allocates_and_frees_memory_at_each_replay(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    alloc = graph.add_alloc(4, np.int32)
    scratch = alloc.array
    assert scratch.shape == (4,)
    assert scratch.dtype == np.int32
    fill = graph.add_fill(scratch, 4, after=alloc)
    use = graph.add_kernel(module.kernel("twice"), ONE, out, scratch, after=fill)
    left = [graph.allocates]
    graph.add_free(scratch, after=use)
    assert [*left, graph.allocates] == [True, False]
    run(graph, stream, 3)
    assert stream.to_host(out).tolist() == [8] * 4


def test_memory_that_a_graph_leaves_is_there_until_the_next_replay(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    alloc = graph.add_alloc((2, 2), np.int32)
    fill = graph.add_fill(alloc.array, 9, after=alloc)
    graph.add_kernel(module.kernel("add"), ONE, alloc.array, 1, after=fill)
    with graph.instantiate() as executable:
        for _ in range(3):
            executable.launch(stream)
            assert stream.to_host(alloc.array).tolist() == [[10, 10], [10, 10]]
        alloc.array.close()
        stream.synchronize()


@pytest.mark.parametrize("value", [0, 1, 3])
def test_an_if_runs_one_of_its_bodies(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module, value: int
) -> None:
    which, out = stream.to_device(np.array([value], np.int32)), stream.zeros(4, np.int32)
    stream.synchronize()
    condition = graph.new_condition()
    choose = graph.add_kernel(module.kernel("choose"), LaunchConfig(1, 1), condition, which)
    node = graph.add_if(condition, otherwise=True, after=choose)
    add = module.kernel("add")
    node.bodies[0].add_kernel(add, ONE, out, 10)
    node.bodies[1].add_kernel(add, ONE, out, 20)
    graph.add_kernel(add, ONE, out, 1, after=node)
    run(graph, stream, 2)
    assert stream.to_host(out).tolist() == [22 if value else 42] * 4


@pytest.mark.parametrize("value", [0, 1, 2, 3])
def test_a_switch_runs_the_body_of_its_number(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module, value: int
) -> None:
    which, out = stream.to_device(np.array([value], np.int32)), stream.zeros(4, np.int32)
    stream.synchronize()
    condition = graph.new_condition(default=0)
    choose = graph.add_kernel(module.kernel("choose"), LaunchConfig(1, 1), condition, which)
    node = graph.add_switch(condition, 3, after=choose)
    for number, body in enumerate(node.bodies, 1):
        body.add_fill(out, number)
    run(graph, stream)
    assert stream.to_host(out).tolist() == [(value + 1) if value < 3 else 0] * 4


def test_a_switch_of_more_bodies_than_there_can_be_is_rejected(graph: cudadrv.Graph) -> None:
    condition = graph.new_condition()
    for count in (0, 65_537, 2**31 - 1, 2**70):
        with pytest.raises(ArgumentError, match=r"add_switch: count is .* of 1 to 65536"):
            graph.add_switch(condition, count)
    assert graph.nodes == []


def test_the_default_of_a_condition_holds_at_each_replay(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    left, out = stream.to_device(np.array([3], np.int32)), stream.zeros(4, np.int32)
    stream.synchronize()
    condition = graph.new_condition(default=1)
    loop = graph.add_while(condition)
    add = loop.body.add_kernel(module.kernel("add"), ONE, out, 1)
    loop.body.add_kernel(module.kernel("next"), LaunchConfig(1, 1), condition, left, after=add)
    run(graph, stream)
    assert stream.to_host(out).tolist() == [3] * 4
    run(graph, stream)  # the body runs once before the kernel says 0 again
    assert stream.to_host(out).tolist() == [4] * 4


def test_conditional_nodes_stand_in_bodies(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    left, out = stream.to_device(np.array([4], np.int32)), stream.zeros(4, np.int32)
    stream.synchronize()
    outer = graph.new_condition(default=1)
    loop = graph.add_while(outer)
    step = loop.body.add_kernel(module.kernel("next"), LaunchConfig(1, 1), outer, left)
    inner = loop.body.new_condition()
    choose = loop.body.add_kernel(
        module.kernel("choose"), LaunchConfig(1, 1), inner, left, after=step
    )
    branch = loop.body.add_if(inner, after=choose)
    branch.body.add_kernel(module.kernel("add"), ONE, out, 1)
    run(graph, stream)
    assert stream.to_host(out).tolist() == [3] * 4


def test_a_while_node_runs_a_solver_without_the_host(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    n, most = 16, 1e-12
    random = np.random.default_rng(3)
    matrix = random.random((n, n)) + n * np.eye(n)
    right = random.random(n)
    a, b = stream.to_device(matrix), stream.to_device(right)
    x, y, steps = stream.zeros(n, float), stream.zeros(n, float), stream.zeros(1, np.int32)
    stream.synchronize()
    condition = graph.new_condition(default=1)
    loop = graph.add_while(condition)
    with stream.capture(into=loop.body):
        module.kernel("jacobi").launch(stream, LaunchConfig(1, n), a, b, x, y, n)
        check = module.kernel("converged")
        check.launch(stream, LaunchConfig(1, 1), condition, x, y, n, most, steps)
        stream.copy(x, y)
    run(graph, stream)
    expected, count = np.zeros(n), 0
    while True:
        following = (right - (matrix - np.diag(np.diag(matrix))) @ expected) / np.diag(matrix)
        change, expected, count = np.abs(following - expected).max(), following, count + 1
        if change <= most:
            break
    assert int(stream.to_host(steps)[0]) in (count - 1, count, count + 1)
    np.testing.assert_allclose(stream.to_host(x), np.linalg.solve(matrix, right), atol=1e-11)


def test_a_graph_with_conditions_or_memory_is_not_copied(
    graph: cudadrv.Graph, context: cudadrv.Context
) -> None:
    graph.add_if(graph.new_condition(default=0)).body.add_empty()
    with pytest.raises(CudaError):
        graph.clone()
    with context.new_graph() as other:
        with pytest.raises(CudaError):
            other.add_graph(graph)
        other.add_alloc(4, np.int32)
        with pytest.raises(InvalidValueError, match="allocates memory"):
            graph.add_graph(other)


def test_a_copy_of_a_graph_is_changed_apart(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    graph.add_kernel(module.kernel("add"), ONE, out, 1)
    with graph.clone() as copy:
        copy.add_kernel(module.kernel("add"), ONE, out, 10, after=copy.nodes)
        assert (graph.node_count, copy.node_count) == (1, 2)
        run(copy, stream)
    run(graph, stream)
    assert stream.to_host(out).tolist() == [12] * 4


def test_an_executable_is_uploaded_before_its_first_launch(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    graph.add_kernel(module.kernel("add"), ONE, out, 1)
    with graph.instantiate() as executable:
        executable.upload(stream)
        executable.launch(stream)
        assert stream.to_host(out).tolist() == [1] * 4


@pytest.mark.parametrize("verbose", [False, True])
def test_a_graph_is_written_for_graphviz(
    graph: cudadrv.Graph,
    stream: cudadrv.Stream,
    module: cudadrv.Module,
    tmp_path: Path,
    verbose: bool,
) -> None:
    out = stream.zeros(4, np.int32)
    first = graph.add_kernel(module.kernel("add"), ONE, out, 1)
    graph.add_empty(after=first)
    path = tmp_path / "graph.dot"
    graph.write_dot(path, verbose=verbose)
    text = path.read_text()
    assert text.lstrip().startswith("digraph")
    assert text.count("->") >= 1


def test_a_graph_keeps_what_its_nodes_use(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    module = compile_module(context, SOURCE)
    given, out = np.full(4, 5, np.int32), stream.zeros(4, np.int32)
    scratch = stream.zeros(4, np.int32)
    stream.synchronize()
    seen: list[int] = []
    graph = context.new_graph()
    up = graph.add_copy(scratch, given)
    twice = graph.add_kernel(module.kernel("twice"), ONE, out, scratch, after=up)
    graph.add_host(lambda: seen.append(1), after=twice)
    executable = graph.instantiate()
    module.close()
    graph.close()
    del given, scratch, module, graph
    gc.collect()
    filler = [stream.to_device(np.full(4, -1, np.int32)) for _ in range(8)]
    executable.launch(stream)
    executable.close()
    assert stream.to_host(out).tolist() == [10] * 4
    assert seen == [1]
    assert len(filler) == 8


def test_a_removed_node_s_memory_is_released(graph: cudadrv.Graph, stream: cudadrv.Stream) -> None:
    base = stream.zeros(4, np.int32)
    owner = set("an owner")
    memory = weakref.ref(owner)
    array = DeviceArray(DeviceBuffer.borrowed(stream, base.ptr, base.nbytes, owner), 4, np.int32)
    stream.synchronize()
    node = graph.add_fill(array, 1)
    kept = graph.add_fill(array, 2)
    del array, owner
    graph.instantiate().close()
    node.remove()
    graph.instantiate().close()
    stream.synchronize()
    assert memory() is not None  # the other node has it
    kept.remove()
    graph.instantiate().close()

    def is_gone() -> bool:
        stream.synchronize()
        return memory() is None

    wait_until(is_gone)  # a thread of the driver reports that it needs it no more


def test_what_a_changed_executable_needs_outlives_its_close(
    graph: cudadrv.Graph, stream: cudadrv.Stream
) -> None:
    seen: list[int] = []
    node = graph.add_host(seen.append, 0)
    executable = graph.instantiate()
    for number in range(1, 4):
        node.update_in(executable, seen.append, number)
        executable.launch(stream)
    executable.close()
    gc.collect()
    stream.synchronize()
    assert seen == [1, 2, 3]


def test_what_does_not_belong_to_a_graph_is_rejected(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module, context: cudadrv.Context
) -> None:
    array = stream.zeros(4, np.int32)
    with pytest.raises(ArgumentError, match="takes 2 arguments"):
        graph.add_kernel(module.kernel("add"), ONE, array)
    with pytest.raises(CopyError, match="shape"):
        graph.add_copy(array, np.zeros(5, np.int32))
    with pytest.raises(CopyError, match="C-contiguous"):
        graph.add_copy(array, np.zeros(8, np.int32)[::2])
    with pytest.raises(InvalidValueError, match="into=graph"):
        graph.add_fill(stream.zeros(4, np.float64), 0.1)
    with context.new_graph() as other:
        node = other.add_empty()
        with pytest.raises(TypeError, match="another graph"):
            graph.add_empty(after=node)
    with pytest.raises(ClosedError):
        other.add_empty()
    assert graph.node_count == 0


def test_the_report_of_a_rejected_node_shows_its_arguments(
    module: cudadrv.Module, graph: cudadrv.Graph, context: cudadrv.Context
) -> None:
    """The driver's parameters are no value to show: their repr reads pointers of each kind."""
    out = context.new_stream().zeros(4, np.int32)
    with context.new_graph() as other:
        foreign = other.add_empty()
        for add in (
            lambda: graph.add_kernel(module.kernel("add"), ONE, out, 1, after=foreign),
            lambda: graph.add_fill(out, 1, after=foreign),
            lambda: graph.add_host(print, after=foreign),
        ):
            with pytest.raises(TypeError, match="after") as caught:
                add()
            assert "after = " in str(caught.getrepr(style="long", funcargs=True))


def test_a_kernel_of_another_context_is_rejected(
    module: cudadrv.Module, context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    with cudadrv.Context.create(context.device) as own, own.new_graph() as graph:
        with pytest.raises(WrongDeviceError):
            graph.add_kernel(module.kernel("add"), ONE, stream.zeros(4, np.int32), 1)
        assert graph.node_count == 0


@pytest.mark.parametrize("mode", ["relaxed", "thread_local", "global"])
def test_each_mode_of_capture_records(
    stream: cudadrv.Stream, module: cudadrv.Module, mode: str
) -> None:
    out = stream.zeros(4, np.int32)
    add = module.kernel("add").bind(stream, ONE)
    add(out, 0)
    stream.synchronize()
    # The type checker knows the three words alone.
    with stream.capture(mode=mode) as graph:  # type: ignore[arg-type]
        add(out, 1)
    run(graph, stream)
    assert stream.to_host(out).tolist() == [1] * 4


def test_a_strict_capture_is_broken_by_an_unsafe_call(stream: cudadrv.Stream) -> None:
    with pytest.raises(CudaError, match="STREAM_CAPTURE"), stream.capture(mode="global"):
        cudadrv.pinned_empty(1 << 20, np.uint8)
    with pytest.raises(InvalidValueError, match="one of 'relaxed'"):
        stream.capture(mode="strict")  # type: ignore[arg-type]  # it is none


@pytest.mark.slow
def test_a_thousand_nodes_run_in_their_order(
    graph: cudadrv.Graph, stream: cudadrv.Stream, module: cudadrv.Module
) -> None:
    out = stream.zeros(4, np.int32)
    stream.synchronize()
    kernel, last = module.kernel("add"), list[cudadrv.graph.GraphNode]()
    for number in range(1000):
        last = [graph.add_kernel(kernel, ONE, out, number, after=last)]
    run(graph, stream)
    assert stream.to_host(out).tolist() == [999 * 500] * 4
