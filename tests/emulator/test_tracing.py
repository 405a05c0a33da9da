"""That a trace stands around the driver's functions only as long as it is recorded."""

from __future__ import annotations

import gc
import itertools
import json
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import cudadrv
import ptx.emulate
from cudadrv import LaunchConfig, emulator
from cudadrv.driver.driver_api import FUNCTIONS, DriverApi
from cudadrv.driver.driver_selection import current
from cudadrv.emulator.calls.call import state_of
from cudadrv.errors import OutOfMemoryError
from cudadrv.memory.staging import LEAST_STAGED_BYTES, StagingRing
from cudadrv.tracing import device_times, trace
from cudadrv.tracing.recording import SPANS
from tests.noted_calls import used_functions
from tests.patience import SECONDS

SOURCE = """
extern "C" __global__ void add(int* out, int value) { atomicAdd(out, value); }
extern "C" __global__ void astray(int* out) { out[1 << 20] = 1; }
"""
ONE = LaunchConfig(1, 1)


class Counting:
    """The functions of a driver, whose calls are counted."""

    def __init__(self, inner: DriverApi) -> None:
        self.inner = inner
        self.calls: Counter[str] = Counter()
        self.before: dict[str, Callable[[], object]] = {}

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.inner, name)
        if not name.startswith("cu"):
            return function

        def call(*args: object) -> object:
            self.calls[name] += 1
            self.before.get(name, lambda: None)()
            return function(*args)

        return call

    @property
    def left(self) -> Counter[str]:
        """How many events and streams there are."""
        return Counter(
            {
                kind: self.calls[made] - self.calls[f"cu{kind}Destroy"]
                for kind, made in (
                    ("Event", "cuEventCreate"),
                    ("Stream", "cuStreamCreateWithPriority"),
                )
            }
        )


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session() as machine:
        yield machine


@pytest.fixture
def counting(machine: emulator.Emulator) -> Iterator[Counting]:
    """Counts the calls of a new driver."""
    counting = Counting(machine)
    with used_functions(counting):
        yield counting


def written(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text())
    assert isinstance(found, dict)
    return found


def spans(path: Path, *, device: bool) -> list[str]:
    """The names of the spans of the host's threads, or of the devices."""
    return [
        event["name"]
        for event in written(path)["traceEvents"]
        if event["ph"] == "X" and (event["pid"] >= 1_000_000) is device
    ]


def module_of(context: cudadrv.Context, source: str = SOURCE) -> cudadrv.Module:
    return context.load_module(ptx.compile(source, ptx.CompileOptions(target=context.target)))


def add_kernel(context: cudadrv.Context, name: str = "add") -> cudadrv.Kernel:
    return module_of(context).kernel(name)


def test_a_trace_without_a_file_has_the_times_of_devices(machine: emulator.Emulator) -> None:
    source = "template <int N> __global__ void put(int* out) { *out = N; }"
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    out = stream.zeros(1, "i4")
    kernel = context.compile(source, name_expressions=["put<7>"]).kernel("put<7>")
    with trace() as recorded:
        kernel.launch(stream, ONE, out)
        kernel.launch(stream, ONE, out)
        assert list(recorded.device_spans) == []
    assert (recorded.path, recorded.untimed) == (None, {})
    first, second = recorded.device_spans
    for each in (first, second):
        assert (each.name, each.category, each.ordinal) == ("put<7>", "launch", 0)
        assert each.duration_ns > 0
    assert first.start_ns < second.start_ns
    assert recorded.symbols["put<7>"].startswith("_Z3putILi7E")
    assert stream.to_host(out)[0] == 7


def test_each_function_that_is_shown_is_one_of_the_driver() -> None:
    assert set(SPANS) <= set(FUNCTIONS)


def test_launchers_made_before_are_traced_and_then_call_the_inner_functions(
    counting: Counting, tmp_path: Path
) -> None:
    driver, context = current(), cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    out = stream.zeros(1, "i4")
    launcher = add_kernel(context).bind(stream, ONE)
    prepared = launcher.prepare(out, 10)
    for _ in range(3):  # code is made for the second call
        launcher(out, 1)
    path = tmp_path / "trace.json"
    with trace(path):
        launcher(out, 1)
        prepared()
    assert driver.api is cast(object, counting)
    launches = counting.calls["cuLaunchKernelEx"]
    launcher(out, 1)
    prepared()
    assert counting.calls["cuLaunchKernelEx"] == launches + 2
    assert stream.to_host(out).tolist() == [3 + 11 + 11]
    assert spans(path, device=False) == spans(path, device=True) == ["add", "add"]


def test_a_replay_is_reported_only_while_the_trace_is_recorded(
    counting: Counting, tmp_path: Path
) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    out = stream.zeros(1, "i4")
    launcher = add_kernel(cudadrv.cuda_context_for(0)).bind(stream, ONE)
    with stream.capture() as graph:
        launcher(out, 1)
    before = graph.instantiate()
    before.launch(stream)
    path = tmp_path / "trace.json"
    with trace(path):
        gone = weakref.ref(current().api)
        within = graph.instantiate()
        for _ in range(2):
            before.launch(stream)
            within.launch(stream)
    assert gone() is None
    launches = counting.calls["cuGraphLaunch"]
    before.launch(stream)
    within.launch(stream)
    assert counting.calls["cuGraphLaunch"] == launches + 2
    assert stream.to_host(out).tolist() == [7]
    assert spans(path, device=False).count("cuGraphLaunch") == 4


def test_what_was_made_in_a_trace_does_not_hold_it(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    driver, context = current(), cudadrv.cuda_context_for(0)
    with trace(tmp_path / "trace.json"), context.new_stream() as stream:
        gone = weakref.ref(driver.api)
        launcher = add_kernel(context).bind(stream, ONE)
        launcher(stream.zeros(1, "i4"), 1)
        stream.to_device(np.zeros(LEAST_STAGED_BYTES, "u1"))
    gc.collect()
    assert gone() is None
    assert StagingRing in context._kept
    assert driver.api is machine


def test_its_own_events_and_streams_go(counting: Counting, tmp_path: Path) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    array = stream.zeros(4, "u1")
    before = counting.left
    with trace(tmp_path / "trace.json"):
        stream.fill(array, 1)
        stream.fill(array, 2)
    assert counting.left == before


def test_a_call_that_is_under_way_when_the_trace_ends_leaves_nothing(
    counting: Counting, tmp_path: Path
) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    array = stream.zeros(4, "u1")
    before = counting.left
    reached, ended = threading.Event(), threading.Event()

    def pause() -> None:
        reached.set()
        assert ended.wait(SECONDS)

    counting.before["cuMemsetD8Async"] = pause
    thread = threading.Thread(target=stream.fill, args=(array, 7))
    with trace(tmp_path / "trace.json"):
        thread.start()
        assert reached.wait(SECONDS)
    ended.set()
    thread.join()
    assert stream.to_host(array).tolist() == [7] * 4
    assert counting.left == before
    assert spans(tmp_path / "trace.json", device=True) == []


def test_what_is_done_is_timed_before_the_end_when_much_is_pending(
    counting: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_times, "_MOST_PENDING", 8)
    stream = cudadrv.cuda_context_for(0).new_stream()
    array = stream.zeros(4, "u1")
    before = counting.left["Event"]
    with trace(tmp_path / "trace.json"):
        for _ in range(50):
            stream.fill(array, 1)
        assert counting.left["Event"] - before < 20
    assert spans(tmp_path / "trace.json", device=True) == ["cuMemsetD8Async"] * 50


@pytest.mark.parametrize("function", ["cuCtxPushCurrent", "cuEventCreate", "cuEventRecord"])
def test_a_driver_that_fails_costs_device_times_alone_and_the_file_reports_it(
    machine: emulator.Emulator, tmp_path: Path, function: str
) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    array = stream.zeros(4, "u1")
    path = tmp_path / "trace.json"
    with machine.fail(function, times=2) as fault, trace(path):
        assert fault.hits == 1
        stream.fill(array, 1)
        assert fault.hits == 2
        stream.fill(array, 2)
    assert current().api is machine
    assert stream.to_host(array).tolist() == [2] * 4
    assert spans(path, device=False) == ["cuMemsetD8Async"] * 2
    assert spans(path, device=True) == ["cuMemsetD8Async"]
    said = "1 calls queued work that could not be timed"
    assert written(path)["otherData"] == {"device 0": said}


def test_a_context_that_is_closed_within_the_trace_goes_then(
    counting: Counting, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    with trace(path):
        for value in range(3):
            before = counting.left
            with cudadrv.Context.create(0) as context, context.new_stream() as stream:
                array = stream.empty(4, "u1")
                stream.fill(array, value)
                array.close()
            assert counting.calls["cuCtxDestroy"] == value + 1
            assert counting.left == before
    assert spans(path, device=True) == ["cuMemsetD8Async"] * 3


def test_a_kernel_with_the_handle_of_one_that_is_gone_has_its_own_name(
    machine: emulator.Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    out = stream.zeros(1, "i4")
    with trace(tmp_path / "trace.json"):
        with module_of(context) as module:
            former = module.kernel("add")
            handle = int(former.handle)
            former.launch(stream, ONE, out, 1)
        del former, module
        gc.collect()
        with monkeypatch.context() as patch:
            # The module's handle is the one before its first kernel's.
            numbers = itertools.count(handle - 16, 16)
            patch.setattr(state_of(machine).handles, "new", numbers.__next__)
            latter = module_of(context, SOURCE.replace("add(", "sum(")).kernel("sum")
        assert int(latter.handle) == handle
        latter.launch(stream, ONE, out, 1)
    assert spans(tmp_path / "trace.json", device=True) == ["add", "sum"]


def test_errors_are_those_of_the_inner_functions(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    path = tmp_path / "trace.json"
    with trace(path):
        assert current().api.is_emulated  # type: ignore[attr-defined]  # as the emulator has it
        with machine.fail("cuMemAllocAsync", with_=2), pytest.raises(OutOfMemoryError):
            stream.empty(4, "u1")
        with pytest.raises(cudadrv.CudaError) as caught:
            add_kernel(context, "astray").launch(stream, ONE, stream.zeros(1, "i4"))
            stream.synchronize()
    assert isinstance(caught.value.fault, ptx.emulate.EmulationFault)


def test_streams_of_other_libraries_taken_within_the_trace_have_times(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    context = cudadrv.cuda_context_for(0)
    theirs = context.new_stream()
    with trace(tmp_path / "trace.json"):
        stream = context.external_stream(int(theirs.handle))
        stream.fill(stream.empty(4, "u1"), 1)
        stream.synchronize()
    assert spans(tmp_path / "trace.json", device=True) == ["cuMemsetD8Async"]


def test_threads_launch_while_traces_begin_and_end(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    context = cudadrv.cuda_context_for(0)
    kernel = add_kernel(context)
    over = threading.Event()
    counts: list[tuple[int, int]] = []

    def work() -> None:
        with context.new_stream() as stream:
            out, launches = stream.zeros(1, "i4"), 0
            launcher = kernel.bind(stream, ONE)
            prepared = launcher.prepare(out, 1)
            while not over.is_set():
                launcher(out, 1)
                prepared()
                launches += 2
            counts.append((stream.to_host(out).tolist()[0], launches))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(20):
        with trace(tmp_path / f"{number}.json"):
            pass
    over.set()
    for thread in threads:
        thread.join()
    assert len(counts) == 2
    assert all(counted == launches for counted, launches in counts)
    assert current().api is machine
