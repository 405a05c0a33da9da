"""Who waits for whom, where captures, interrupts, other devices and failures come in between."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from weakref import ref

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceBuffer, LaunchConfig, Stream, emulator
from cudadrv.driver import deferred_release
from cudadrv.driver._api import CUstreamCaptureMode
from cudadrv.driver.handle import InvalidatedHandle, living
from cudadrv.errors import ClosedError, CudaError, StreamCaptureIsolationError
from cudadrv.memory import order
from cudadrv.texture import Texture
from tests.bump_kernel import PTX
from tests.noted_calls import calls_of, replaced_calls, waits_of_streams
from tests.several_threads import all_at_once

_RELAXED = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session(devices=2) as machine:
        yield machine


def used(ordinal: int = 0) -> int:
    return cudadrv.memory.pool_info(cudadrv.list_devices()[ordinal]).used


def streams(count: int, ordinal: int = 0) -> list[Stream]:
    context = cudadrv.cuda_context_for(ordinal)
    return [context.new_stream() for _ in range(count)]


def test_memory_that_many_streams_of_another_device_read_comes_back(
    machine: emulator.Emulator,
) -> None:
    (far,) = streams(1, ordinal=1)
    source = far.zeros(64, "u1")
    far.close()
    for near in streams(12):
        near.copy(near.empty(64, "u1"), source)
        near.synchronize()
        near.close()
    source.close()
    assert used(1) == 0


def test_memory_is_ordered_on_no_stream_after_an_interrupt_in_a_move(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = streams(2)
    array = a.zeros(4, "u4")
    memory = array._memory
    assert order.is_ordered(memory, a._handle, writes=True)

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(order, "_only_writer", interrupted)
    epoch = order.memory_moves.count
    with pytest.raises(KeyboardInterrupt):
        b.fill(array, 1)
    assert memory.ordered_on is None
    assert memory.accesses.writer is b._handle
    assert order.memory_moves.count > epoch


def test_memory_of_an_open_capture_draws_no_other_stream_into_it(
    machine: emulator.Emulator,
) -> None:
    a, b = streams(2)
    with a.capture() as graph:
        born = a.zeros(4, "u4")
        with pytest.raises(StreamCaptureIsolationError, match="end the capture before"):
            b.to_host(born)
    graph.instantiate().launch(b)
    assert b.to_host(born).tolist() == [0] * 4


def test_a_write_without_order_in_a_capture_is_a_write_at_each_replay(
    machine: emulator.Emulator,
) -> None:
    a, b = streams(2)
    array = a.zeros(4, "u4")
    with a.capture() as graph:
        a.copy(a.empty(4, "u4"), array)
        with a.unordered():
            a.fill(array, 7)
    with graph.instantiate() as executable:
        executable.launch(b)
        with waits_of_streams() as waits:
            assert a.to_host(array).tolist() == [7] * 4
        assert waits == [(int(a.handle), int(b.handle))]


def test_a_replay_writes_and_reads_what_its_capture_wrote_and_read(
    machine: emulator.Emulator,
) -> None:
    a, b = streams(2)
    source, target = a.zeros(4, "u4"), a.zeros(4, "u4")
    with a.capture() as graph:
        a.copy(target, source)
    with graph.instantiate() as executable, waits_of_streams() as waits:
        executable.launch(b)
        waits.clear()
        b.fill(target, 1)
        a.to_host(source)
        assert waits == []
        a.fill(source, 1)
        assert waits == [(int(a.handle), int(b.handle))]


def test_memory_born_in_a_capture_is_ordered_on_its_stream_afterwards(
    machine: emulator.Emulator,
) -> None:
    (a,) = streams(1)
    with a.capture():
        born = a.zeros(4, "u4")
        assert born._memory.ordered_on is a._handle
    assert born._memory.ordered_on is a._handle


def test_memory_born_in_a_capture_and_written_by_another_device_is_ordered_on_no_stream(
    machine: emulator.Emulator,
) -> None:
    (a,), (far,) = streams(1), streams(1, ordinal=1)
    source = far.zeros(4, "u4")
    with a.capture():
        born = a.empty(4, "u4")
        with a.record() as event:
            far.wait(event)
        far.copy(born, source)
        a.wait(far)
    assert born._memory.ordered_on is None
    assert born._memory.accesses.writer is far._handle


def test_a_stream_that_a_capture_rejects_is_not_noted_in_it(machine: emulator.Emulator) -> None:
    a, b = streams(2)
    own = b._handle
    with a.capture():
        event = a.record()
        with machine.fail("cuStreamWaitEvent"), pytest.raises(CudaError):
            b.wait(event)
        assert b._handle is own
        assert own.captured_by is None
        assert not b.capturing
        with waits_of_streams() as waits:
            array = b.zeros(4, "u4")
            b.fill(array, 0)
        assert waits == []
    assert b.to_host(array).tolist() == [0] * 4


def test_a_stream_of_one_capture_is_not_noted_in_another(machine: emulator.Emulator) -> None:
    a, b = streams(2)
    outer, inner = a.capture(), b.capture()
    outer.__enter__()
    inner.__enter__()
    twin = b._handle
    with pytest.raises(CudaError):
        b.wait(a.record())
    assert b._handle is twin
    for capture in (inner, outer):
        with pytest.raises(CudaError):
            capture.__exit__(None, None, None)
    assert not a.capturing
    assert not b.capturing
    assert b.to_host(a.zeros(4, "u4")).tolist() == [0] * 4


class Elsewhere:
    """Another library that captures a stream of its own, which is used here as well."""

    def __init__(self, machine: emulator.Emulator) -> None:
        self._machine = machine
        self.theirs = cudadrv.cuda_context_for(0).new_stream()
        self.stream = self.theirs.context.external_stream(int(self.theirs.handle))

    def __enter__(self) -> Stream:
        assert not self._machine.cuStreamBeginCapture(self.theirs.handle, _RELAXED)[0]
        return self.stream

    def __exit__(self, *_: object) -> None:
        code, graph = self._machine.cuStreamEndCapture(self.theirs.handle)
        assert not code, self._machine.cuGetErrorString(code)
        self._machine.cuGraphDestroy(graph)

    def is_drawn_in(self, stream: Stream) -> bool:
        return bool(self._machine.cuStreamIsCapturing(stream.handle)[1])


def test_memory_is_freed_after_another_librarys_capture(machine: emulator.Emulator) -> None:
    (own,) = streams(1)
    elsewhere = Elsewhere(machine)
    array = own.zeros(4, "u4")
    array.buffer.record_use(elsewhere.stream)
    with elsewhere:
        array.close()
        assert not elsewhere.is_drawn_in(own)
        assert used()
    assert not used()


def test_our_streams_are_not_drawn_into_another_librarys_capture(
    machine: emulator.Emulator,
) -> None:
    (own,) = streams(1)
    elsewhere = Elsewhere(machine)
    array = elsewhere.stream.zeros(4, "u4")
    with elsewhere:
        with pytest.raises(StreamCaptureIsolationError, match="another library captures"):
            own.to_host(array)
        assert not elsewhere.is_drawn_in(own)
    assert own.to_host(array).tolist() == [0] * 4
    array.close()  # before the other library's stream goes


class Owner:
    pass


def test_borrowed_memory_used_in_another_librarys_capture_spoils_it_not(
    machine: emulator.Emulator,
) -> None:
    elsewhere = Elsewhere(machine)
    owner: list[Owner] = [Owner()]
    gone = weakref.ref(owner[0])
    memory = DeviceBuffer.borrowed(elsewhere.stream, 1 << 20, 16, owner.pop())
    with elsewhere:
        del memory
        deferred_release.run_deferred()
        assert gone() is not None
    deferred_release.run_deferred()
    assert gone() is None


def test_what_is_parked_survives_a_test_that_fails() -> None:
    dropped: list[object] = [Owner()]
    kept: list[object] = [Owner()]

    def fail() -> bool:
        raise CudaError.for_code(700)("asking", call="cuEventQuery", code=700, text="")

    def interrupt() -> bool:
        if kept_once:
            return kept_once.pop() is None
        raise KeyboardInterrupt

    kept_once: list[None] = []
    deferred_release.release_when(fail, dropped)
    deferred_release.release_when(interrupt, kept)
    with pytest.raises(KeyboardInterrupt):
        deferred_release.run_deferred()
    assert not dropped
    assert kept
    kept_once.append(None)
    deferred_release.run_deferred()
    assert not kept


@pytest.mark.parametrize("function", ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"])
def test_a_release_that_cannot_order_waits_for_the_users(
    machine: emulator.Emulator, function: str
) -> None:
    a, b = streams(2)
    array = a.zeros(4, "u4")
    b.fill(array, 1)
    waited: list[int] = []
    wait = machine.cuStreamSynchronize

    def synchronize(stream: object) -> object:
        waited.append(int(stream))  # type: ignore[call-overload]
        return wait(stream)  # type: ignore[arg-type]

    a._handle.spare.clear()
    with (
        replaced_calls(cuStreamSynchronize=synchronize),
        machine.fail(function),
        pytest.raises(CudaError),
    ):
        array.close()
    assert waited == [int(a.handle)]
    assert not used()


def test_an_array_is_exported_in_a_capture_after_what_came_before_it(
    machine: emulator.Emulator,
) -> None:
    a, b = streams(2)
    array = a.zeros(4, "u4")
    with a.capture():
        array.__dlpack__(stream=int(b.handle))
        assert not machine.cuStreamIsCapturing(b.handle)[1]
    assert b.to_host(array).tolist() == [0] * 4


def test_an_array_whose_streams_all_capture_is_still_exported_in_order(
    machine: emulator.Emulator,
) -> None:
    a, b = streams(2)
    array = a.zeros(4, "u4")
    b.to_host(array)  # no home
    with a.capture(), b.capture(), calls_of("cuStreamWaitEvent") as waits:
        array.__dlpack__()
        assert array.__cuda_array_interface__["stream"] is None
    assert len(waits) == 2


def test_two_threads_that_use_one_memory_forget_no_user(machine: emulator.Emulator) -> None:
    context = cudadrv.cuda_context_for(0)
    array = context.default_stream.zeros(64, "u4")

    def work(stream: Stream) -> None:
        for value in range(200):
            if value % 3:
                stream.fill(array, value)
            else:
                stream.to_host(array)

    many = streams(4)
    all_at_once([partial(work, stream) for stream in many])
    with waits_of_streams() as waits:
        array.close()
    assert {int(stream.handle) for stream in many} <= {stream for pair in waits for stream in pair}
    assert not used()


def test_memory_left_in_a_capture_that_fails_is_no_garbage(machine: emulator.Emulator) -> None:
    a, b = streams(2)
    array = a.zeros(4, "u4")
    for function in ("cuStreamBeginCapture", "cuStreamEndCapture"):
        with machine.fail(function), pytest.raises(CudaError), a.capture():
            a.fill(array, 1)
            born = a.zeros(4, "u4")
            del born
        assert not a.capturing
        if function == "cuStreamEndCapture":  # the fault kept the driver from ending it
            machine.cuStreamEndCapture(a.handle)
        assert b.to_host(array).tolist() == [0] * 4
    array.close()
    gc.collect()
    assert not used()


def test_an_interrupt_while_a_capture_begins_ends_it(machine: emulator.Emulator) -> None:
    (a,) = streams(1)
    begin = machine.cuStreamBeginCapture

    def interrupted(*args: object) -> object:
        begin(*args)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with (
        replaced_calls(cuStreamBeginCapture=interrupted),
        pytest.raises(KeyboardInterrupt),
        a.capture(),
    ):
        pass
    assert not a.capturing
    assert a.to_host(a.zeros(4, "u4")).tolist() == [0] * 4


def test_memory_of_a_graph_whose_launch_failed_is_not_released(
    machine: emulator.Emulator,
) -> None:
    (a,) = streams(1)
    with a.capture() as graph:
        born = a.zeros(4, "u4")
    executable = graph.instantiate()
    with machine.fail("cuGraphLaunch"), pytest.raises(CudaError):
        executable.launch(a)
    memory = born._memory
    assert not getattr(memory, "has_contents")  # noqa: B009  # a type checker remembers it
    executable.launch(a)
    assert getattr(memory, "has_contents")  # noqa: B009
    del memory, executable, graph, born
    assert not used()


def test_an_executable_of_a_graph_that_closes_meanwhile_is_usable(
    machine: emulator.Emulator,
) -> None:
    (a,) = streams(1)
    array = a.zeros(4, "u4")
    with a.capture() as graph:
        a.fill(array, 7)
    instantiate = machine.cuGraphInstantiateWithParams

    def close_first(*args: object) -> object:
        thread = threading.Thread(target=graph.close)
        thread.start()
        thread.join()
        return instantiate(*args)  # type: ignore[arg-type]

    with replaced_calls(cuGraphInstantiateWithParams=close_first):
        executable = graph.instantiate()
    assert graph.closed
    executable.launch(a)
    assert a.to_host(array).tolist() == [7] * 4


def test_memory_that_another_device_wrote_joins_on_its_only_stream(
    machine: emulator.Emulator,
) -> None:
    (near,), (far,) = streams(1), streams(1, ordinal=1)
    array = near.zeros(4, "u4")
    far.copy(array, far.to_device(np.full(4, 3, "u4")))
    memory = array._memory
    ordered_on = [memory.ordered_on]
    joined = order.join_on_one_stream(memory)
    ordered_on.append(memory.ordered_on)
    assert (joined, ordered_on) == (near._handle, [None, near._handle])
    assert near.to_host(array).tolist() == [3] * 4


def test_the_memory_of_a_first_launch_is_ordered_on_its_stream(machine: emulator.Emulator) -> None:
    a, b = streams(2)
    kernel = a.context.load_module(PTX).kernel("bump")
    array = a.zeros(1, "u4")
    kernel.launch(b, LaunchConfig(1, 1), array)
    with waits_of_streams() as waits:
        b.fill(array, 1)
        assert waits == []
        a.to_host(array)
    assert waits == [(int(a.handle), int(b.handle))]


def test_destroyed_memory_rejects_accesses(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = streams(2)
    memory = a.zeros(4, "u4")._memory
    with monkeypatch.context() as patch:
        patch.setattr(memory, "raw", InvalidatedHandle("the memory was destroyed"))
        with pytest.raises(ClosedError, match="garbage collection"):
            order.record_access(memory, a._handle)
        with pytest.raises(ClosedError, match="garbage collection"):
            order.order_access(memory, b._handle)
    assert memory.recorded is None


def test_memory_that_many_streams_of_another_device_wrote_comes_back(
    machine: emulator.Emulator,
) -> None:
    (own,) = streams(1)
    array = own.zeros(64, "u1")
    own.close()
    source = cudadrv.cuda_context_for(1).default_stream.zeros(64, "u1")
    for far in streams(12, ordinal=1):
        far.copy(array, source)
        far.synchronize()
        far.close()
    assert any(user.context is array._memory.context for user in array._memory.all_users())
    array.close()
    assert used(0) == 0


class _Library:
    """An object of another library: a stream, and an array of ours that was used on it."""

    def __init__(self, stream: Stream, array: cudadrv.DeviceArray[np.uint32]) -> None:
        self._stream = stream
        self.array = array
        self.texture: Texture | None = None

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self._stream.handle)


def test_a_collection_frees_memory_that_the_owner_of_a_foreign_stream_holds(
    machine: emulator.Emulator,
) -> None:
    a, theirs = streams(2)
    library = _Library(theirs, a.zeros(4, "u4"))
    with a.context.external_stream(library) as borrowed:
        borrowed.fill(library.array, 1)
        assert all(each is not library.array for each in living())
    alive = ref(library)
    del library, borrowed
    gc.collect()
    assert alive() is None
    assert used() == 0


def test_a_collection_frees_a_texture_that_the_owner_of_a_foreign_stream_holds(
    machine: emulator.Emulator,
) -> None:
    a, theirs = streams(2)
    library = _Library(theirs, a.zeros(4, "u4"))
    borrowed = a.context.external_stream(library)
    borrowed.fill(library.array, 1)
    library.texture = Texture(library.array)
    alive = ref(library)
    del library, borrowed
    gc.collect()
    assert alive() is None
    assert used() == 0


def test_memory_of_a_foreign_stream_is_used_on_another_one(machine: emulator.Emulator) -> None:
    a, b = streams(2)
    array = a.zeros(4, "u4")
    first, second = (a.context.external_stream(_Library(each, array)) for each in (a, b))
    with first, second:
        theirs = first.zeros(4, "u4")
        second.fill(theirs, 5)
        assert second.to_host(theirs).tolist() == [5] * 4
        theirs.close()


def test_memory_that_only_own_streams_used_stays_among_the_open_objects(
    machine: emulator.Emulator,
) -> None:
    a, b = streams(2)
    array = a.zeros(4, "u4")
    b.fill(array, 1)
    assert any(each is array for each in living())
