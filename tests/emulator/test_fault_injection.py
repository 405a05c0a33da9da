from __future__ import annotations

import pytest

import cudadrv
from cudadrv.driver._api import CUresult
from cudadrv.emulator import Emulator, ScheduledAction, session
from cudadrv.errors import ArgumentTypeError, CudaError

from .calls import LEGACY, code, ok

OUT_OF_MEMORY = CUresult.CUDA_ERROR_OUT_OF_MEMORY
MIB = 1 << 20


@pytest.fixture
def ready(emulator: Emulator) -> Emulator:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    return emulator


def codes(emulator: Emulator, calls: int) -> list[int]:
    return [code(emulator.cuMemAllocAsync(64, LEGACY)) for _ in range(calls)]


def test_the_nth_call_fails_once(ready: Emulator) -> None:
    fault = ready.fail("cuMemAllocAsync", nth=3, with_=OUT_OF_MEMORY)
    assert codes(ready, 5) == [0, 0, 2, 0, 0]
    assert (fault.calls, fault.hits) == (5, 1)


def test_it_fails_as_often_as_planned(ready: Emulator) -> None:
    ready.fail("cuMemAllocAsync", nth=2, times=2, with_=999)
    assert codes(ready, 5) == [0, 999, 999, 0, 0]


def test_it_fails_until_removed(ready: Emulator) -> None:
    with ready.fail("cuMemAllocAsync", times=None, with_=OUT_OF_MEMORY) as fault:
        assert codes(ready, 3) == [2, 2, 2]
        assert fault.hits == 3
    assert codes(ready, 2) == [0, 0]
    fault.remove()


def test_other_functions_are_not_touched(ready: Emulator) -> None:
    ready.fail("cuMemAllocAsync", times=None)
    assert code(ready.cuMemAlloc(64)) == 0


def test_a_failing_call_does_nothing(ready: Emulator) -> None:
    memory = ok(ready.cuMemAlloc(64))
    before = ok(ready.cuMemGetInfo())
    with ready.fail("cuMemFree"):
        assert code(ready.cuMemFree(memory)) == 999
    assert ok(ready.cuMemGetInfo()) == before
    assert code(ready.cuMemFree(memory)) == 0


def test_a_planned_text_is_reported(ready: Emulator) -> None:
    ready.fail("cuEventCreate", with_=OUT_OF_MEMORY, text="no more events today")
    result, _ = ready.cuEventCreate(0)
    assert ok(ready.cuGetErrorString(result)) == b"no more events today"


def test_an_action_runs_in_the_calls_that_were_chosen(ready: Emulator) -> None:
    done: list[int] = []
    planned = ready.on_call("cuMemAllocAsync", lambda: done.append(planned.calls), nth=2, times=2)
    assert codes(ready, 5) == [0] * 5
    assert (done, planned.calls, planned.hits) == ([2, 3], 5, 2)
    with ready.on_call("cuMemAllocAsync", lambda: done.append(0), times=None):
        codes(ready, 3)
    codes(ready, 2)
    assert done == [2, 3, 0, 0, 0]


def test_an_action_may_make_calls_and_its_error_leaves_the_call(ready: Emulator) -> None:
    made: list[int] = []
    ready.on_call("cuEventCreate", lambda: made.append(int(ok(ready.cuEventCreate(0)))))
    last = int(ok(ready.cuEventCreate(0)))
    assert len({*made, last}) == 2

    def interrupt() -> None:
        raise KeyboardInterrupt

    with ready.on_call("cuEventCreate", interrupt), pytest.raises(KeyboardInterrupt):
        ready.cuEventCreate(0)
    assert ready.live_objects()["event"] == 2
    assert code(ready.cuEventCreate(0)) == 0


def test_actions_run_before_a_fault_of_the_same_call(ready: Emulator) -> None:
    done: list[int] = []
    ready.on_call("cuMemAllocAsync", lambda: done.append(1))
    ready.fail("cuMemAllocAsync", with_=2)
    assert codes(ready, 2) == [2, 0]
    assert done == [1]


def test_live_objects_counts_each_kind(ready: Emulator) -> None:
    before = ready.live_objects()
    stream, event = ok(ready.cuStreamCreate(0)), ok(ready.cuEventCreate(0))
    memory, graph = ok(ready.cuMemAlloc(64)), ok(ready.cuGraphCreate(0))
    more = {"stream": 1, "event": 1, "device memory": 1, "graph": 1}
    assert ready.live_objects() == {kind: n + more.get(kind, 0) for kind, n in before.items()}
    for done in (
        ready.cuStreamDestroy(stream),
        ready.cuEventDestroy(event),
        ready.cuMemFree(memory),
        ready.cuGraphDestroy(graph),
    ):
        ok(done)
    assert ready.live_objects() == before


def test_faults_of_one_function_add_up(ready: Emulator) -> None:
    ready.fail("cuMemAllocAsync", nth=1, with_=2)
    ready.fail("cuMemAllocAsync", nth=2, with_=700)
    assert codes(ready, 3) == [2, 700, 0]


def test_a_launch_that_is_to_fail_fails_by_whichever_call() -> None:
    with session() as fresh:
        context = cudadrv.cuda_context_for(0)
        kernel = context.compile('extern "C" __global__ void k() {}').kernel("k")
        launch = kernel.bind(context.new_stream(), cudadrv.LaunchConfig(1, 1))
        with fresh.fail("cuLaunchKernel", nth=2, with_=CUresult.CUDA_ERROR_LAUNCH_FAILED) as fault:
            launch()
            with pytest.raises(CudaError, match="launching kernel 'k'"):
                launch()
            launch()
        launch()
        assert (fault.calls, fault.hits) == (3, 1)


@pytest.mark.parametrize(
    ("planned", "called", "arguments"),
    [
        ("cuDevicePrimaryCtxRetain", "cuGreenCtxCreate", 3),
        ("cuFuncGetAttribute", "cuKernelGetAttribute", 3),
        ("cuFuncGetParamInfo", "cuKernelGetParamInfo", 2),
        ("cuFuncSetAttribute", "cuKernelSetAttribute", 4),
        ("cuMemHostAlloc", "cuMemAllocHost", 1),
        ("cuModuleGetGlobal", "cuLibraryGetGlobal", 2),
        ("cuStreamCreateWithPriority", "cuStreamCreate", 1),
    ],
)
def test_a_fault_strikes_the_calls_that_do_the_same_and_more(
    ready: Emulator, planned: str, called: str, arguments: int
) -> None:
    with ready.fail(planned, with_=OUT_OF_MEMORY) as fault:
        assert code(getattr(ready, called)(*[0] * arguments)) == OUT_OF_MEMORY
        assert fault.hits == 1


def test_initialisation_can_fail(emulator: Emulator) -> None:
    fresh = Emulator()
    with fresh.fail("cuInit", with_=CUresult.CUDA_ERROR_SYSTEM_NOT_READY):
        assert code(fresh.cuInit(0)) == 802
    assert code(fresh.cuInit(0)) == 0


@pytest.mark.parametrize(
    ("function", "nth", "times", "with_"),
    [
        ("cuNoSuchCall", 1, 1, 2),
        ("cuMemAlloc", 0, 1, 2),
        ("cuMemAlloc", 1, 0, 2),
        ("cuMemAlloc", 1, 1, 0),
        ("cuMemAlloc", 1, 1, 123456),
    ],
)
def test_a_plan_that_cannot_be_is_rejected(
    emulator: Emulator, function: str, nth: int, times: int, with_: int
) -> None:
    with pytest.raises(ValueError, match=r"."):
        emulator.fail(function, nth=nth, times=times, with_=with_)


def test_memory_is_limited_and_released(ready: Emulator) -> None:
    _, total = ok(ready.cuMemGetInfo())
    with ready.limit_memory(2 * MIB):
        assert ok(ready.cuMemGetInfo()) == (2 * MIB, total)
        memory = ok(ready.cuMemAlloc(MIB))
        result, _ = ready.cuMemAlloc(MIB)
        assert result == OUT_OF_MEMORY
        said = ok(ready.cuGetErrorString(result))
        assert said is not None
        assert b"within the limit of 2097152" in said
        assert code(ready.cuMemAllocAsync(2 * MIB, LEGACY)) == 2
        ok(ready.cuMemFree(memory))
        ok(ready.cuMemFree(ok(ready.cuMemAlloc(MIB + MIB // 2))))
    assert code(ready.cuMemAlloc(64 * MIB)) == 0


def test_a_limit_below_what_is_used_leaves_that(ready: Emulator) -> None:
    memory = ok(ready.cuMemAlloc(4 * MIB))
    with ready.limit_memory(MIB):
        assert ok(ready.cuMemGetInfo())[0] == 0
        assert code(ready.cuMemAlloc(1)) == 2
        assert code(ready.cuMemFree(memory)) == 0


def test_limits_nest_and_are_of_one_device(ready: Emulator) -> None:
    free, _ = ok(ready.cuMemGetInfo())
    with ready.limit_memory(8 * MIB):
        with ready.limit_memory(MIB):
            assert ok(ready.cuMemGetInfo())[0] == MIB
        assert ok(ready.cuMemGetInfo())[0] == 8 * MIB
    with ready.limit_memory(MIB, ordinal=1):
        assert ok(ready.cuMemGetInfo())[0] == free


def test_a_device_can_be_broken_and_healed(ready: Emulator) -> None:
    with ready.break_device(with_=CUresult.CUDA_ERROR_ECC_UNCORRECTABLE):
        assert code(ready.cuMemAlloc(4)) == 214
        assert code(ready.cuCtxSynchronize()) == 214
        assert code(ready.cuCtxCreate(None, 0, ok(ready.cuDeviceGet(0)))) == 214
        other = ok(ready.cuCtxCreate(None, 0, ok(ready.cuDeviceGet(1))))
        assert code(ready.cuMemAlloc(4)) == 0
        ok(ready.cuCtxDestroy(other))
    assert code(ready.cuMemAlloc(4)) == 0


def test_only_devices_that_exist_are_broken(emulator: Emulator) -> None:
    with pytest.raises(ValueError, match="no device 7"):
        emulator.break_device(7)
    with pytest.raises(ValueError, match="no device -1"):
        emulator.limit_memory(MIB, ordinal=-1)


def test_a_plan_whose_removal_is_no_function_is_rejected() -> None:
    with pytest.raises(ArgumentTypeError, match="Planned: remove is 7, of type int"):
        ScheduledAction(7, "cuInit", 1, None, print)  # type: ignore[arg-type]  # the mistake
