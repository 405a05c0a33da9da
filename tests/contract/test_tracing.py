"""What a trace holds, on the emulator and on a GPU."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.errors import ClosedError, InvalidValueError
from cudadrv.graph import Graph, GraphExec, GraphNode, KernelNode
from cudadrv.tracing import trace

from .conftest import compile_module

SOURCE = 'extern "C" __global__ void add(int* out, int value) { atomicAdd(out, value); }'
ONE = LaunchConfig(1, 1)


@pytest.fixture(scope="module")
def add(context: cudadrv.Context) -> cudadrv.Kernel:
    return compile_module(context, SOURCE).kernel("add")


def events(path: Path) -> list[dict[str, Any]]:
    found = json.loads(path.read_text())["traceEvents"]
    assert isinstance(found, list)
    return found


def spans(path: Path, name: str, *, device: bool) -> list[dict[str, Any]]:
    """The spans of a name, of the host or of the device."""
    everything = events(path)
    names = {
        event["pid"]: event["args"]["name"]
        for event in everything
        if event["name"] == "process_name"
    }
    return [
        event
        for event in everything
        if event["ph"] == "X"
        and event["name"] == name
        and names[event["pid"]].startswith("device") is device
    ]


def test_launches_by_every_way_are_recorded_once_and_still_happen(
    stream: cudadrv.Stream, add: cudadrv.Kernel, tmp_path: Path
) -> None:
    out = stream.zeros(1, "i4")
    launcher = add.bind(stream, ONE)
    prepared = launcher.prepare(out, 10)
    launcher(out, 1)
    launcher(out, 1)
    add.launch(stream, ONE, out, 100)
    path = tmp_path / "trace.json"
    with trace(path):
        launcher(out, 1)
        prepared()
        add.launch(stream, ONE, out, 100)
        add.bind(stream, ONE)(out, 1000)
    launcher(out, 1)
    prepared()
    assert stream.to_host(out).tolist() == [2 + 100 + 1111 + 11]
    assert len(spans(path, "add", device=False)) == 4
    assert len(spans(path, "add", device=True)) == 4


def test_device_spans_begin_after_their_calls_do_and_keep_the_streams_order(
    stream: cudadrv.Stream, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    array = stream.zeros(1 << 22, "f4")
    with trace(path):
        for value in (1, 2, 3):
            stream.fill(array, value)
        stream.synchronize()
    calls = spans(path, "cuMemsetD32Async", device=False)
    runs = spans(path, "cuMemsetD32Async", device=True)
    assert len(calls) == len(runs) == 3
    slack = 100_000.0  # the two clocks are tied to each other by a wait, in microseconds
    for call, run in zip(calls, runs, strict=True):
        assert run["ts"] > call["ts"] - slack
    for earlier, later in itertools.pairwise(runs):
        assert later["ts"] >= earlier["ts"] + earlier["dur"] - 10


def test_copies_allocations_and_waits_carry_their_sizes(
    stream: cudadrv.Stream, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    with trace(path) as recorded:
        with recorded.span("my step"):
            device = stream.to_device(np.arange(100, dtype="f8"))
        stream.to_host(device)
        device.close()
        cudadrv.memory.trim_pool(stream.context.device)  # what the stream keeps for its next arrays
    by_name = {event["name"]: event for event in events(path) if event["ph"] == "X"}
    assert by_name["cuMemAllocAsync"]["args"] == {"bytes": 800}
    assert by_name["cuMemcpyHtoDAsync"]["cat"] == "copy"
    assert by_name["cuMemcpyDtoHAsync"]["cat"] == "copy"
    assert by_name["cuStreamSynchronize"]["cat"] == "wait"
    assert by_name["my step"]["dur"] > 0
    assert "cuMemFreeAsync" in by_name


def test_a_compilation_is_recorded(context: cudadrv.Context, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with trace(path):
        ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
        compile_module(context, SOURCE)
    assert [event["cat"] for event in spans(path, "ptx.compile", device=False)] == [
        "compilation"
    ] * 2
    # A cubin is loaded as it is, PTX with options for the log of its compiler.
    call = "cuModuleLoadDataEx" if context.target.kind is ptx.ImageKind.PTX else "cuModuleLoadData"
    assert len(spans(path, call, device=False)) == 1


def test_a_capture_is_not_disturbed_and_its_replay_is_one_span(
    stream: cudadrv.Stream, add: cudadrv.Kernel, tmp_path: Path
) -> None:
    out = stream.zeros(1, "i4")
    path = tmp_path / "trace.json"
    with trace(path):
        with stream.capture() as graph:
            for _ in range(3):
                add.launch(stream, ONE, out, 1)
        ready = graph.instantiate()
        ready.launch(stream)
        ready.launch(stream)
    assert graph.node_count == 3
    assert stream.to_host(out).tolist() == [6]
    assert len(spans(path, "add", device=True)) == 0
    assert len(spans(path, "cuGraphLaunch", device=True)) == 2


def test_the_replay_of_a_graph_lists_its_kernels(
    stream: cudadrv.Stream, add: cudadrv.Kernel, tmp_path: Path
) -> None:
    context, out = stream.context, stream.zeros(1, "i4")
    two = compile_module(
        context,
        """
        extern "C" __global__ void first(int* out) { *out += 1; }
        extern "C" __global__ void second(int* out) { *out += 100; }
        """,
    )
    first, second = two.kernel("first"), two.kernel("second")

    def built(*kernels: cudadrv.Kernel) -> Graph:
        graph = context.new_graph()
        before: tuple[GraphNode, ...] = ()
        for kernel in kernels:
            before = (graph.add_kernel(kernel, ONE, out, after=before),)
        return graph

    def updated() -> GraphExec:
        ready = built(first, second).instantiate()
        ready.update(built(second, second))
        return ready

    def changed(*, enabled: bool) -> GraphExec:
        graph = built(first, first, second)
        ready = graph.instantiate()
        node = next(node for node in graph.nodes if isinstance(node, KernelNode))
        node.update_in(ready, second, ONE, out)
        ready.enable(node, enabled)
        return ready

    def with_child() -> GraphExec:
        graph = built(first)
        graph.add_graph(built(second, first), after=graph.nodes)
        return graph.instantiate()

    def captured() -> GraphExec:
        with stream.capture() as graph:
            second.launch(stream, ONE, out)
            stream.fill(out, 0)
            add.launch(stream, ONE, out, 5)
        return graph.instantiate()

    before = built(first).instantiate()
    ways: dict[str, tuple[Callable[[], GraphExec], dict[str, int]]] = {
        "made before the trace": (lambda: before, {}),
        "built": (lambda: built(first, second, first).instantiate(), {"first": 2, "second": 1}),
        "cloned": (lambda: built(second).clone().instantiate(), {"second": 1}),
        "updated": (updated, {"second": 2}),
        "a node changed": (lambda: changed(enabled=True), {"first": 1, "second": 2}),
        "a node disabled": (lambda: changed(enabled=False), {"first": 1, "second": 1}),
        "with a child": (with_child, {"first": 2, "second": 1}),
        "captured": (captured, {"second": 1, "add": 1}),
    }
    path = tmp_path / "trace.json"
    with trace(path) as recorded:
        for make, _ in ways.values():
            ready = make()
            ready.launch(stream)
            stream.synchronize()
            ready.close()  # the driver may reuse its handle for the next one
    replays = [span for span in recorded.device_spans if span.name == "cuGraphLaunch"]
    found = dict(zip(ways, (dict(span.kernels) for span in replays), strict=True))
    assert found == {way: kernels for way, (_, kernels) in ways.items()}
    written = spans(path, "cuGraphLaunch", device=True)
    assert [each.get("args", {}).get("kernels", {}) for each in written] == list(found.values())


def test_threads_and_streams_are_distinguished(
    context: cudadrv.Context, add: cudadrv.Kernel, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"

    def work() -> None:
        with context.new_stream() as stream:
            add.launch(stream, ONE, stream.zeros(1, "i4"), 1)
            stream.synchronize()

    with trace(path):
        threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    calls = spans(path, "add", device=False)
    assert len(calls) == 3
    names = {
        event["tid"]: event["args"]["name"]
        for event in events(path)
        if event["name"] == "thread_name"
    }
    assert {names[call["tid"]] for call in calls} <= {"worker 0", "worker 1", "worker 2"}
    assert len(spans(path, "add", device=True)) == 3


def test_a_context_closed_within_the_trace_keeps_its_spans(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with trace(path), cudadrv.Context.create(0) as own, own.new_stream() as stream:
        stream.fill(stream.empty(100, "u1"), 1)
        stream.synchronize()
    assert len(spans(path, "cuMemsetD8Async", device=True)) == 1


def test_rejections_stay_what_they_are(
    stream: cudadrv.Stream, add: cudadrv.Kernel, tmp_path: Path
) -> None:
    out = stream.zeros(1, "i4")
    with trace(tmp_path / "trace.json"):
        with pytest.raises(cudadrv.ArgumentError, match="takes 2 arguments"):
            add.launch(stream, ONE, out)
        with pytest.raises(cudadrv.OutOfMemoryError):
            stream.alloc(1 << 60)
        out.close()
        with pytest.raises(ClosedError):
            add.launch(stream, ONE, out, 1)
    refused = spans(tmp_path / "trace.json", "cuMemAllocAsync", device=False)
    # Memory that streams keep is given back before a second try.
    assert {event["args"]["result"] for event in refused} == {2}


def test_one_trace_at_a_time(tmp_path: Path) -> None:
    with (
        trace(tmp_path / "one.json"),
        pytest.raises(InvalidValueError, match="already being recorded"),
    ):
        trace(tmp_path / "two.json").__enter__()
    assert not (tmp_path / "two.json").exists()
    with trace(tmp_path / "two.json"):
        pass
    assert events(tmp_path / "two.json")
