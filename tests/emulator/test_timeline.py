from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import cudadrv
from cudadrv.driver._api import (
    CUdeviceptr,
    CUpointer_attribute,
    CUstreamCaptureMode,
)
from cudadrv.emulator import CheckName, EarlyRead, Emulator, HostChange, OrderWarning, session
from cudadrv.emulator.calls.call import state_of
from cudadrv.emulator.memory_patterns import FREED, FRESH
from cudadrv.emulator.timeline.queues import QUEUE_LENGTH
from cudadrv.emulator.timeline.schedule import Schedule
from cudadrv.errors import CopyError
from ptx.shown_path import shown_path
from tests.patience import SECONDS
from tests.several_threads import all_at_once

from .calls import CAPTURE_RELAXED, LEGACY, code, ok
from .machine import BLOCKING, NON_BLOCKING, UNTIMED, Machine, captured
from .replay import DIGEST, PROGRAMS, digest_of, trace_of

NOT_READY = 600


@pytest.fixture
def late() -> Machine:
    return Machine()


@pytest.fixture(params=[0, 1, 2, 3])
def seeded(request: pytest.FixtureRequest) -> Machine:
    return Machine("random", request.param)


def test_nothing_runs_until_it_is_needed(late: Machine) -> None:
    x = late.memory()
    late.fill(x, 5, late.a)
    late.increment(x, late.a)
    assert late.api.executed == ()
    assert late.read(x, late.a) == 6
    assert late.kernels() == ["1 kernel on stream 1", "2 kernel on stream 1"]


def test_a_wait_runs_what_it_needs_and_nothing_else(late: Machine) -> None:
    x, y = late.memory(), late.memory()
    late.fill(x, 5, late.a)
    late.fill(y, 6, late.b)
    ok(late.api.cuStreamSynchronize(late.b))
    assert late.kernels() == ["2 kernel on stream 2"]


def test_synchronous_fills_and_copies_of_flagged_memory_wait(late: Machine) -> None:
    x, y = late.memory(), late.memory()
    flag = CUpointer_attribute.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
    ok(late.api.cuMemsetD32(x, 5, 1))
    done = [len(late.api.executed)]
    ok(late.api.cuPointerSetAttribute(True, flag, x))
    ok(late.api.cuMemsetD32(x, 6, 1))
    done.append(len(late.api.executed))
    ok(late.api.cuMemcpyDtoD(y, x, 4))
    done.append(len(late.api.executed))
    ok(late.api.cuPointerSetAttribute(False, flag, x))
    ok(late.api.cuMemcpyDtoD(y, x, 4))
    assert [*done, len(late.api.executed)] == [0, 2, 3, 3]


def test_a_stream_runs_after_the_event_that_it_waits_for(late: Machine) -> None:
    x, event = late.memory(), ok(late.api.cuEventCreate(UNTIMED))
    late.fill(x, 5, late.a)
    ok(late.api.cuEventRecord(event, late.a))
    late.fill(x, 1, late.a)
    ok(late.api.cuStreamWaitEvent(late.b, event, 0))
    assert late.read(x, late.b) == 5


def test_a_wait_uses_the_event_as_it_is_at_the_call(late: Machine) -> None:
    x, event = late.memory(), ok(late.api.cuEventCreate(UNTIMED))
    late.fill(x, 5, late.a)
    ok(late.api.cuStreamSynchronize(late.a))
    ok(late.api.cuEventRecord(event, late.b))
    ok(late.api.cuStreamWaitEvent(late.a, event, 0))
    late.fill(x, 7, late.b)
    ok(late.api.cuEventRecord(event, late.b))
    assert late.read(x, late.a) == 5


def test_queries_say_that_work_is_pending_and_come_to_an_end(late: Machine) -> None:
    x, event = late.memory(), ok(late.api.cuEventCreate(UNTIMED))
    assert code(late.api.cuEventQuery(event)) == 0
    late.fill(x, 5, late.a)
    ok(late.api.cuEventRecord(event, late.a))
    answers = [code(late.api.cuEventQuery(event)) for _ in range(4)]
    assert answers == [NOT_READY, NOT_READY, 0, 0]
    late.fill(x, 6, late.a)
    assert [code(late.api.cuStreamQuery(late.a)) for _ in range(3)] == [NOT_READY, 0, 0]
    assert late.read(x, late.b) == 6


def test_polling_ends_in_every_random_order(seeded: Machine) -> None:
    x = seeded.memory()
    for _ in range(20):
        seeded.increment(x, seeded.a)
        seeded.increment(x, seeded.b)
    asked = 0
    while code(seeded.api.cuStreamQuery(seeded.a)):
        asked += 1
    assert asked <= 60
    assert sum("on stream 1" in each for each in seeded.api.executed) == 20


def test_times_are_there_once_both_events_were_reached(late: Machine) -> None:
    start, end = ok(late.api.cuEventCreate(0)), ok(late.api.cuEventCreate(0))
    ok(late.api.cuEventRecord(start, late.a))
    late.fill(late.memory(), 1, late.a)
    ok(late.api.cuEventRecord(end, late.a))
    assert code(late.api.cuEventElapsedTime(start, end)) == NOT_READY
    ok(late.api.cuEventSynchronize(end))
    assert ok(late.api.cuEventElapsedTime(start, end)) > 0


@pytest.mark.parametrize(("flags", "waits"), [(BLOCKING, True), (NON_BLOCKING, False)])
def test_the_legacy_stream_and_those_that_block_wait_for_each_other(
    late: Machine, flags: int, waits: bool
) -> None:
    x, own = late.memory(), late.stream(flags)
    late.fill(x, 5, own)
    late.increment(x, LEGACY)
    late.increment(x, own)
    ok(late.api.cuStreamSynchronize(own))
    assert len(late.kernels()) == (3 if waits else 2)
    ok(late.api.cuStreamSynchronize(LEGACY))
    assert len(late.kernels()) == 3


def test_a_full_queue_runs_what_is_first(late: Machine) -> None:
    x = late.memory()
    for _ in range(QUEUE_LENGTH + 3):
        ok(late.api.cuMemsetD32Async(x, 7, 1, late.a))
    assert len(late.api.executed) == 3


def test_pageable_memory_is_taken_over_in_the_call_and_pinned_memory_is_not(late: Machine) -> None:
    x, y, pinned = late.memory(), late.memory(), late.pinned()
    pageable = ctypes.c_uint32(5)
    ctypes.c_uint32.from_address(pinned).value = 5
    ok(late.api.cuMemcpyHtoDAsync(x, ctypes.addressof(pageable), 4, late.a))
    ok(late.api.cuMemcpyHtoDAsync(y, pinned, 4, late.a))
    pageable.value = ctypes.c_uint32.from_address(pinned).value = 6
    with pytest.warns(OrderWarning, match="read by a copy queued at .*test_timeline.py:"):
        assert late.read(x, late.a) == 5
    assert late.read(y, late.a) == 6
    (finding,) = late.api.findings
    assert isinstance(finding, HostChange)
    assert (finding.address, finding.nbytes, finding.is_read) == (pinned, 4, True)
    assert __file__ in finding.queued_at
    assert "machine.py:" in finding.found_at


def test_what_queued_work_writes_to_host_memory_is_no_finding(late: Machine) -> None:
    x, pinned = late.memory(), late.pinned()
    late.fill(x, 5, late.a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ok(late.api.cuMemcpyDtoHAsync(pinned, x, 4, late.a))
        ok(late.api.cuMemcpyHtoDAsync(x, pinned, 4, late.a))
        late.increment(CUdeviceptr(pinned), late.a)
        ok(late.api.cuMemcpyHtoDAsync(x, pinned, 4, late.a))
        late.host_call(lambda _: ctypes.memset(pinned, 1, 4), late.a)
        ok(late.api.cuMemcpyDtoHAsync(pinned, x, 4, late.a))
        assert late.read(x, late.a) == 6
    assert late.api.findings == ()


def test_queued_work_is_reported_with_what_a_destination_holds_until_then(late: Machine) -> None:
    x, pinned, other = late.memory(), late.pinned(), late.pinned()
    late.fill(x, 5, late.a)
    ok(late.api.cuMemcpyDtoHAsync(pinned, x, 4, late.a))
    ctypes.memset(other, 0, 4)
    ok(late.api.cuMemcpyDtoHAsync(other, x, 4, late.a))
    kernel, copy, another = late.api.queued
    assert kernel.startswith("kernel 1, queued at ")
    line = f"queued at {shown_path(__file__)}:"
    assert line in copy
    assert f"  its destination, 4 bytes of host memory at {pinned:#x}, still holds\n" in copy
    fill = "the fill of memory that nothing has written (bytes 0xcd)"
    assert f"  {fill}: -4.316021e+08 as float32, -842150451 as int32" in copy
    assert "  what was there before: 0 as float32, 0 as int32" in another
    assert late.read(x, late.a) == 5
    assert late.api.queued == ()
    assert Machine("immediate").api.queued == ()


def test_the_fill_that_checks_for_reads_of_unwritten_memory_use_is_named() -> None:
    machine = Machine(check="init")
    x, pinned = machine.memory(8), machine.pinned(16)
    ctypes.memset(pinned, 1, 4)
    ok(machine.api.cuMemcpyDtoHAsync(pinned, x, 8, machine.a))
    ok(machine.api.cuMemcpyDtoHAsync(pinned + 8, x, 8, machine.a))
    written, fresh = machine.api.queued
    assert "what was there before: " in written
    assert "nothing has written (another number each word): 1.395584e+231 as float64" in fresh


def test_a_copy_from_where_another_is_still_to_write_is_found(late: Machine) -> None:
    x, y, pinned = late.memory(), late.memory(), late.pinned()
    late.fill(x, 5, late.a)
    ok(late.api.cuMemcpyDtoHAsync(pinned, x, 4, late.a))
    with pytest.warns(OrderWarning, match="nothing orders the two"):
        ok(late.api.cuMemcpyHtoDAsync(y, pinned, 4, late.b))
    (finding,) = late.api.findings
    assert isinstance(finding, EarlyRead)
    assert (finding.address, finding.nbytes, finding.is_queued) == (pinned, 4, True)
    assert [each.what for each in finding.places] == ["queued", "read"]
    assert {each.file for each in finding.places} == {__file__}
    assert "bytes 0xcd" in finding.contents


def test_a_copy_that_waits_for_the_one_to_its_source_is_no_finding(late: Machine) -> None:
    x, y, pinned = late.memory(), late.memory(), late.pinned()
    event = ok(late.api.cuEventCreate(UNTIMED))
    late.fill(x, 5, late.a)
    ok(late.api.cuMemcpyDtoHAsync(pinned, x, 4, late.a))
    ok(late.api.cuEventRecord(event, late.a))
    ok(late.api.cuStreamWaitEvent(late.b, event, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ok(late.api.cuMemcpyHtoDAsync(y, pinned, 4, late.b))
        assert late.read(y, late.b) == 5
    assert late.api.findings == ()


@pytest.mark.parametrize("check", [(), ("init",)])
def test_an_array_that_the_library_reads_before_its_copy_ran_is_found(
    check: tuple[CheckName, ...],
) -> None:
    with session(order="late", check=check) as machine:
        context = cudadrv.cuda_context_for(0)
        first, second = context.new_stream(), context.new_stream()
        array = first.to_device(np.arange(4.0))
        here = cudadrv.pinned_empty((2, 4), "f8")
        first.to_host(array, out=here.reshape(8)[:4], wait=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            second.to_device(here[1:])  # which is no destination
        with pytest.warns(OrderWarning, match="were read before the copy ran"):
            second.to_device(here[:, :2])
        first.synchronize()
        second.to_device(here[:, :2])
        (finding,) = machine.findings
    assert isinstance(finding, EarlyRead)
    assert (finding.address, finding.nbytes) == (here.ctypes.data, 16)
    assert not finding.is_queued
    assert "the fill of memory that nothing has written" in str(finding)


def test_an_error_of_the_library_has_no_note_on_queued_work() -> None:
    with pytest.raises(CopyError) as raised, session(order="late"):
        stream = cudadrv.cuda_context_for(0).new_stream()
        stream.to_host(stream.to_device(np.arange(4.0)), out=np.zeros(3))
    assert not hasattr(raised.value, "__notes__")


def test_an_error_that_leaves_a_session_reports_what_had_not_run() -> None:
    with pytest.raises(ZeroDivisionError) as raised, session(order="late"):
        stream = cudadrv.cuda_context_for(0).new_stream()
        array = stream.to_device(np.arange(4.0))
        here = cudadrv.pinned_empty(4, "f8")
        stream.to_host(array, out=here, wait=False)
        assert 1 / 0
    (note,) = raised.value.__notes__
    assert note.startswith("When this error left the session, this work was queued and had not run")
    assert note.count(f"queued at {shown_path(__file__)}:") == 2
    assert "-6.277439e+66 as float64" in note.splitlines()[3]


def test_a_copy_to_pinned_memory_arrives_when_it_is_waited_for(late: Machine) -> None:
    x, pinned = late.memory(), late.pinned()
    ctypes.memset(pinned, 0, 4)
    late.fill(x, 5, late.a)
    ok(late.api.cuMemcpyDtoHAsync(pinned, x, 4, late.a))
    assert ctypes.c_uint32.from_address(pinned).value == 0
    ok(late.api.cuStreamSynchronize(late.a))
    assert ctypes.c_uint32.from_address(pinned).value == 5


def test_fresh_memory_holds_a_pattern_and_freed_memory_another(late: Machine) -> None:
    x = ok(late.api.cuMemAllocAsync(4, late.a))
    assert late.read(x, late.a) == int.from_bytes(bytes([FRESH] * 4))
    assert late.read(late.memory(), late.a) == int.from_bytes(bytes([FRESH] * 4))
    seen: list[int] = []
    device = state_of(late.api).devices.visible[0]
    ok(late.api.cuMemFreeAsync(x, late.a))
    place = device.host_address + int(x) - device.memory.base
    late.host_call(lambda _: seen.append(ctypes.c_uint32.from_address(place).value), late.a)
    ok(late.api.cuStreamSynchronize(late.a))
    assert seen == [int.from_bytes(bytes([FREED] * 4))]


def test_memory_freed_in_a_stream_is_reused_there_before_the_stream_is_there(
    late: Machine,
) -> None:
    x = ok(late.api.cuMemAllocAsync(4, late.a))
    ok(late.api.cuMemFreeAsync(x, late.a))
    assert int(ok(late.api.cuMemAllocAsync(4, late.b))) != int(x)
    assert int(ok(late.api.cuMemAllocAsync(4, late.a))) == int(x)


def test_memory_freed_elsewhere_is_reused_by_a_stream_that_waits_for_it(late: Machine) -> None:
    x, event = ok(late.api.cuMemAllocAsync(4, late.a)), ok(late.api.cuEventCreate(UNTIMED))
    ok(late.api.cuMemFreeAsync(x, late.a))
    ok(late.api.cuEventRecord(event, late.a))
    ok(late.api.cuStreamWaitEvent(late.b, event, 0))
    y = ok(late.api.cuMemAllocAsync(4, late.b))
    assert int(y) == int(x)
    late.fill(y, 5, late.b)
    assert late.read(y, late.b) == 5


def test_an_allocation_waits_for_frees_before_it_finds_no_memory() -> None:
    machine = Machine()
    with machine.api.limit_memory(64 << 20):
        x = ok(machine.api.cuMemAllocAsync(40 << 20, machine.a))
        ok(machine.api.cuMemFreeAsync(x, machine.a))
        y = ok(machine.api.cuMemAllocAsync(50 << 20, machine.b))
        assert code(machine.api.cuMemAllocAsync(50 << 20, machine.b)) == 2
        ok(machine.api.cuMemFreeAsync(y, machine.b))


def test_memory_that_was_freed_is_not_touched_by_late_work(late: Machine) -> None:
    x = ok(late.api.cuMemAllocAsync(4, late.a))
    late.fill(x, 5, late.b)
    ok(late.api.cuMemFreeAsync(x, late.a))
    ok(late.api.cuStreamSynchronize(late.a))
    assert code(late.api.cuStreamSynchronize(late.b)) == 700
    text = ok(late.api.cuGetErrorString(late.api.cuCtxSynchronize()[0])) or b""
    assert b"it was queued at " in text
    assert b"test_timeline.py:" in text


def test_cuda_free_of_plain_memory_waits_and_of_pool_memory_does_not(late: Machine) -> None:
    x, y = late.memory(), ok(late.api.cuMemAllocAsync(4, late.a))
    late.fill(x, 5, late.b)
    ok(late.api.cuMemFree(y))
    assert late.api.executed == ()
    ok(late.api.cuMemFree(x))
    assert late.kernels() == ["2 kernel on stream 2"]


def test_unloading_a_module_waits_for_the_device(late: Machine) -> None:
    x = late.memory()
    late.fill(x, 5, late.a)
    ok(late.api.cuModuleUnload(late.module))
    assert late.read(x, late.b) == 5


def test_work_of_a_destroyed_stream_goes_on(late: Machine) -> None:
    x, event = late.memory(), ok(late.api.cuEventCreate(UNTIMED))
    late.fill(x, 5, late.a)
    ok(late.api.cuEventRecord(event, late.a))
    ok(late.api.cuStreamDestroy(late.a))
    assert late.api.executed == ()
    ok(late.api.cuEventSynchronize(event))
    assert late.read(x, late.b) == 5


def test_a_fault_is_reported_by_the_next_call_with_the_place_of_the_launch(late: Machine) -> None:
    late.increment(CUdeviceptr(int(late.memory()) + (1 << 30)), late.a)
    late.increment(late.memory(), late.b)
    assert code(late.api.cuStreamSynchronize(late.b)) == 0
    assert code(late.api.cuStreamSynchronize(late.a)) == 700
    assert code(late.api.cuMemAlloc(4)) == 700
    text = ok(late.api.cuGetErrorString(late.api.cuCtxSynchronize()[0])) or b""
    assert b"kernel increment" in text
    assert b"it was queued at " in text
    assert b"tests/emulator/calls.py:" in text


def test_nothing_runs_on_a_broken_device_and_nothing_waits(late: Machine) -> None:
    called: list[int] = []
    late.increment(CUdeviceptr(1 << 52), late.a)
    late.host_call(lambda _: called.append(1), late.a)
    assert code(late.api.cuCtxSynchronize()) == 700
    assert called == []
    late.api.finish()


@pytest.mark.slow
def test_branches_of_a_graph_run_in_any_order() -> None:
    results = set()
    for seed in range(20):
        machine = Machine("random", seed)
        x = machine.memory()
        ok(machine.api.cuMemsetD32Async(x, 0, 1, machine.a))
        ok(machine.api.cuGraphLaunch(captured(machine, x), machine.a))
        results.add(machine.read(x, machine.a))
    assert results == {5, 6}


def test_launches_of_one_executable_follow_each_other(seeded: Machine) -> None:
    x = seeded.memory()
    ok(seeded.api.cuMemsetD32Async(x, 0, 1, seeded.a))
    ok(seeded.api.cuStreamBeginCapture(seeded.b, CUstreamCaptureMode(CAPTURE_RELAXED)))
    for _ in range(3):
        seeded.increment(x, seeded.b)
    executable = ok(seeded.api.cuGraphInstantiate(ok(seeded.api.cuStreamEndCapture(seeded.b)), 0))
    ok(seeded.api.cuStreamSynchronize(seeded.a))
    ok(seeded.api.cuGraphLaunch(executable, seeded.a))
    ok(seeded.api.cuGraphLaunch(executable, seeded.b))
    assert seeded.read(x, seeded.b) == 6


def test_a_host_function_may_wait_for_another_thread_that_queues_more(late: Machine) -> None:
    go, x = threading.Event(), late.memory()
    late.host_call(lambda _: go.wait(SECONDS), late.a)

    def queue_more() -> None:
        ok(late.api.cuCtxPushCurrent(late.context))
        late.fill(x, 5, late.b)
        ok(late.api.cuStreamSynchronize(late.b))
        go.set()

    other = threading.Thread(target=queue_more)
    other.start()
    ok(late.api.cuStreamSynchronize(late.a))
    other.join()
    assert late.read(x, late.a) == 5


def test_threads_that_wait_for_one_operation_see_it_done(seeded: Machine) -> None:
    x, seen = seeded.memory(), list[int]()
    ok(seeded.api.cuMemsetD32Async(x, 0, 1, seeded.a))
    for _ in range(50):
        seeded.increment(x, seeded.a)

    def work() -> None:
        ok(seeded.api.cuCtxPushCurrent(seeded.context))
        seen.append(seeded.read(x, seeded.a))

    all_at_once([work] * 4)
    assert seen == [50] * 4


def test_one_seed_is_one_run_and_another_seed_another() -> None:
    runs = [trace_of(program=3, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.mark.slow
def test_random_programs_leave_the_same_traces_on_every_machine() -> None:
    assert digest_of(PROGRAMS) == DIGEST


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("late", "late"),
        ("immediate", "immediate"),
        ("random", "random:0"),
        ("random:7",) * 2,
    ],
)
def test_orders_are_read_from_the_environment(
    text: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_EMULATOR_ORDER", text)
    assert Emulator().order == name
    assert str(Schedule.read(text)) == name


@pytest.mark.parametrize("text", ["early", "late:3", "random:x", "random:-1"])
def test_what_is_no_order_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is no order of operations"):
        Schedule.read(text)


def test_a_seed_goes_with_the_random_order_alone() -> None:
    with pytest.raises(ValueError, match="seed"):
        Schedule.chosen("late", 3)
    with pytest.raises(ValueError, match="seed"):
        Schedule.chosen(None, 3)


def test_a_session_has_an_order_and_runs_at_its_end_what_is_queued() -> None:
    done: list[int] = []
    with session(order="late") as emulator:
        assert emulator.order == "late"
        cudadrv.cuda_context_for(0).new_stream().call_on_host(done.append, 1)
        assert done == []
    assert done == [1]


def test_an_error_that_leaves_a_random_session_reports_how_to_see_it_again() -> None:
    with (
        pytest.raises(AssertionError) as caught,
        session(order="random", seed=11),
    ):
        raise AssertionError("wrong")
    (note,) = caught.value.__notes__
    assert "CUDADRV_EMULATOR_ORDER=random:11" in note
    assert 'emulator.session(order="random", seed=11)' in note


def test_work_that_fails_at_the_end_of_a_session_is_warned_of() -> None:
    machine = Machine()
    machine.increment(CUdeviceptr(1 << 52), machine.a)
    with pytest.warns(OrderWarning, match="failed, which no call could say: (?s:.)*increment"):
        machine.api.finish()


@pytest.mark.slow
def test_a_process_reads_its_order_from_the_environment() -> None:
    code = "import cudadrv; cudadrv.list_devices()\n"
    code += "from cudadrv.driver.driver_selection import current\n"
    for order, said in (("late", "late"), ("random:3", "random:3"), ("soon", "DriverSelection")):
        done = subprocess.run(
            [sys.executable, "-c", code + "print(current().api.order)"],
            env=os.environ | {"CUDADRV_DRIVER": "emulator", "CUDADRV_EMULATOR_ORDER": order},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert said in done.stdout + done.stderr
