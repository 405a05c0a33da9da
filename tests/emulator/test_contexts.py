from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cudadrv.driver._api import CUcontext, CUctxCreateParams, CUdevice, CUexecAffinityType
from cudadrv.emulator import Emulator

from .calls import OpenApi, code, load, ok
from .kernels import EMPTY, VARIABLE

NULL = CUcontext(0)


def test_without_a_context_calls_return_invalid_context(emulator: Emulator) -> None:
    assert int(ok(emulator.cuCtxGetCurrent())) == 0
    assert code(emulator.cuCtxGetDevice()) == 201
    assert code(emulator.cuCtxSynchronize()) == 201
    assert code(emulator.cuCtxPopCurrent()) == 201
    assert code(emulator.cuMemAlloc(4)) == 201
    assert code(emulator.cuMemGetInfo()) == 201
    assert code(emulator.cuStreamCreateWithPriority(0, 0)) == 201
    assert code(emulator.cuEventCreate(0)) == 201
    assert code(emulator.cuMemHostAlloc(4, 0)) == 201
    assert code(emulator.cuModuleLoadData(b".version 8.0")) == 201
    assert code(emulator.cuCtxGetStreamPriorityRange()) == 201
    assert code(emulator.cuCtxSetCurrent(NULL)) == 0
    assert code(emulator.cuCtxPushCurrent(NULL)) == 1


def test_a_primary_context_lives_from_its_first_retain_to_its_last_release(
    emulator: Emulator,
) -> None:
    device = ok(emulator.cuDeviceGet(0))
    assert code(emulator.cuDevicePrimaryCtxRelease(device)) == 201
    first = ok(emulator.cuDevicePrimaryCtxRetain(device))
    assert int(ok(emulator.cuDevicePrimaryCtxRetain(device))) == int(first)
    ok(emulator.cuDevicePrimaryCtxRelease(device))
    ok(emulator.cuDevicePrimaryCtxRelease(device))
    assert code(emulator.cuDevicePrimaryCtxRelease(device)) == 201


def test_a_retain_does_not_make_current(emulator: Emulator) -> None:
    ok(emulator.cuDevicePrimaryCtxRetain(ok(emulator.cuDeviceGet(0))))
    assert int(ok(emulator.cuCtxGetCurrent())) == 0


def test_a_released_primary_context_is_destroyed_and_comes_back_empty(emulator: Emulator) -> None:
    """As measured: the handle stays, what it held is gone."""
    device = ok(emulator.cuDeviceGet(0))
    context = ok(emulator.cuDevicePrimaryCtxRetain(device))
    ok(emulator.cuCtxSetCurrent(context))
    memory = ok(emulator.cuMemAlloc(64))
    event = ok(emulator.cuEventCreate(0))
    stream = ok(emulator.cuStreamCreateWithPriority(0, 0))
    ok(emulator.cuDevicePrimaryCtxRelease(device))
    assert int(ok(emulator.cuCtxGetCurrent())) == int(context)
    assert int(ok(emulator.cuCtxGetDevice())) == 0
    assert code(emulator.cuCtxSynchronize()) == 709
    assert code(emulator.cuMemAlloc(4)) == 709
    assert code(emulator.cuEventQuery(event)) == 709
    assert code(emulator.cuStreamQuery(stream)) == 709
    assert code(emulator.cuCtxSetCurrent(context)) == 0
    again = ok(emulator.cuDevicePrimaryCtxRetain(device))
    assert int(again) == int(context)
    assert code(emulator.cuMemFree(memory)) == 1
    assert code(emulator.cuEventQuery(event)) == 709
    assert code(emulator.cuMemAlloc(4)) == 0


def test_a_primary_context_cannot_be_destroyed(api: OpenApi, device: CUdevice) -> None:
    context = ok(api.cuDevicePrimaryCtxRetain(device))
    assert code(api.cuCtxDestroy(context)) == 201
    ok(api.cuDevicePrimaryCtxRelease(device))


def test_context_flags_are_checked(api: OpenApi, device: CUdevice) -> None:
    assert code(api.cuCtxCreate(None, 0x8000, device)) == 1
    assert code(api.cuCtxCreate(None, 3, device)) == 1


def test_nothing_of_a_destroyed_context_is_retained(emulator: Emulator, device: CUdevice) -> None:
    before = emulator.live_objects()
    for _ in range(3):
        context = ok(emulator.cuCtxCreate(None, 0, device))
        event = ok(emulator.cuEventCreate(0))
        ok(emulator.cuCtxDestroy(context))
        assert code(emulator.cuEventQuery(event)) == 709
        assert code(emulator.cuCtxSetCurrent(context)) == 709
        assert code(emulator.cuCtxDestroy(context)) == 709
    assert emulator.live_objects() == before
    assert code(emulator.cuCtxDestroy(CUcontext(int(context) + 16))) == 201


def test_context_parameters_may_ask_for_nothing(api: OpenApi, device: CUdevice) -> None:
    """As on an H200 without MPS, which supports no execution affinity."""
    context = ok(api.cuCtxCreate(CUctxCreateParams(), 0, device))
    ok(api.cuCtxDestroy(context))
    counted = CUctxCreateParams()
    counted.numExecAffinityParams = 1
    assert code(api.cuCtxCreate(counted, 0, device)) == 1


def test_other_context_parameters_are_rejected(emulator: Emulator) -> None:
    """With the codes of an H200."""
    device = ok(emulator.cuDeviceGet(0))
    for affinities, number, cig, expected in (
        ((1,), 1, (), 224),
        ((), 1, (), 1),
        ((1,), 0, (), 0),
        ((1,), -1, (), 0),
        ((), 0, (1,), 801),
        ((1,), 1, (1,), 801),
    ):
        params = cast(
            CUctxCreateParams,
            SimpleNamespace(
                execAffinityParams=affinities, numExecAffinityParams=number, cigParams=cig
            ),
        )
        assert code(emulator.cuCtxCreate(params, 0, device)) == expected, (affinities, number, cig)
    assert ok(emulator.cuDeviceGetExecAffinitySupport(CUexecAffinityType(0), device)) == 0


def test_the_flags_of_a_primary_context_are_set_before_it_is_active(emulator: Emulator) -> None:
    device = ok(emulator.cuDeviceGet(1))
    ok(emulator.cuDevicePrimaryCtxSetFlags(device, 4))
    assert emulator.cuDevicePrimaryCtxGetState(device)[1:] == (4, 0)
    ok(emulator.cuDevicePrimaryCtxRetain(device))
    assert emulator.cuDevicePrimaryCtxGetState(device)[1:] == (4, 1)
    ok(emulator.cuDevicePrimaryCtxSetFlags(device, 1))
    assert emulator.cuDevicePrimaryCtxGetState(device)[1:] == (1, 1)
    assert code(emulator.cuDevicePrimaryCtxSetFlags(device, 1 << 20)) == 1


def test_a_created_context_is_current_and_pops(api: OpenApi, device: CUdevice) -> None:
    def work() -> None:
        a = ok(api.cuCtxCreate(None, 0, device))
        b = ok(api.cuCtxCreate(None, 8, device))
        assert int(ok(api.cuCtxGetCurrent())) == int(b)
        assert int(ok(api.cuCtxPopCurrent())) == int(b)
        assert int(ok(api.cuCtxPopCurrent())) == int(a)
        assert code(api.cuCtxPopCurrent()) == 201
        ok(api.cuCtxDestroy(a))
        ok(api.cuCtxDestroy(b))

    # Other libraries leave contexts current in the main thread.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()


def test_destroying_the_current_context_pops_it(api: OpenApi, device: CUdevice) -> None:
    before = int(ok(api.cuCtxGetCurrent()))  # another library's, or none
    context = ok(api.cuCtxCreate(None, 0, device))
    ok(api.cuCtxDestroy(context))
    assert int(ok(api.cuCtxGetCurrent())) == before
    # The driver says 709 while the context is on some thread's stack, then 201.
    assert code(api.cuCtxDestroy(context)) in (201, 709)
    assert code(api.cuCtxDestroy(NULL)) == 1


def test_a_destroyed_context_below_the_top_stays_and_fails(api: OpenApi, device: CUdevice) -> None:
    a = ok(api.cuCtxCreate(None, 0, device))
    b = ok(api.cuCtxCreate(None, 0, device))
    ok(api.cuCtxDestroy(a))
    assert int(ok(api.cuCtxGetCurrent())) == int(b)
    ok(api.cuCtxDestroy(b))
    assert int(ok(api.cuCtxGetCurrent())) == int(a)
    assert code(api.cuMemAlloc(4)) == 709
    assert int(ok(api.cuCtxPopCurrent())) == int(a)


def test_what_a_destroyed_context_held_is_dead(emulator: Emulator) -> None:
    device = ok(emulator.cuDeviceGet(0))
    context = ok(emulator.cuCtxCreate(None, 0, device))
    module = load(emulator, EMPTY, VARIABLE)
    function = ok(emulator.cuModuleGetFunction(module, b"empty"))
    memory = ok(emulator.cuMemAlloc(64))
    stream = ok(emulator.cuStreamCreateWithPriority(0, 0))
    ok(emulator.cuCtxDestroy(context))
    ok(emulator.cuCtxCreate(None, 0, device))
    assert code(emulator.cuModuleGetFunction(module, b"empty")) == 400
    assert code(emulator.cuModuleUnload(module)) == 400
    assert code(emulator.cuFuncGetName(function)) == 709
    assert code(emulator.cuStreamSynchronize(stream)) == 709
    assert code(emulator.cuMemAllocAsync(4, stream)) == 709
    assert code(emulator.cuMemFree(memory)) == 1
    free, total = ok(emulator.cuMemGetInfo())
    assert free == total


def test_a_number_that_is_no_context_is_rejected(emulator: Emulator) -> None:
    stray = CUcontext(0x1234560)
    assert code(emulator.cuCtxSetCurrent(stray)) == 201
    assert code(emulator.cuCtxPushCurrent(stray)) == 201
    assert code(emulator.cuCtxDestroy(stray)) == 201


def test_each_thread_has_its_own_stack(api: OpenApi, context: CUcontext) -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(int(ok(api.cuCtxGetCurrent())))
        ok(api.cuCtxPushCurrent(context))
        seen.append(int(ok(api.cuCtxGetCurrent())))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [0, int(context)]
    assert int(ok(api.cuCtxGetCurrent())) == int(context)


def test_the_priority_range(api: OpenApi, context: CUcontext) -> None:
    assert ok(api.cuCtxGetStreamPriorityRange()) == (0, -5)


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=60,
)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), st.integers(0, 3)),
            st.tuples(st.just("set"), st.integers(-1, 3)),
            st.tuples(st.just("pop"), st.just(0)),
            st.tuples(st.just("create"), st.just(0)),
        ),
        max_size=30,
    )
)
def test_the_stack_is_that_of_the_manual(emulator: Emulator, steps: list[tuple[str, int]]) -> None:
    """Push adds; pop takes; set replaces the top, and null takes it; create pushes."""
    device = ok(emulator.cuDeviceGet(0))
    while int(ok(emulator.cuCtxGetCurrent())):
        ok(emulator.cuCtxPopCurrent())
    contexts = []
    for _ in range(4):
        contexts.append(ok(emulator.cuCtxCreate(None, 0, device)))
        ok(emulator.cuCtxPopCurrent())
    model: list[int] = []
    for action, index in steps:
        if action == "push":
            ok(emulator.cuCtxPushCurrent(contexts[index]))
            model.append(int(contexts[index]))
        elif action == "create":
            model.append(int(ok(emulator.cuCtxCreate(None, 0, device))))
        elif action == "pop":
            if model:
                assert int(ok(emulator.cuCtxPopCurrent())) == model.pop()
            else:
                assert code(emulator.cuCtxPopCurrent()) == 201
        else:
            chosen = NULL if index < 0 else contexts[index]
            ok(emulator.cuCtxSetCurrent(chosen))
            del model[-1:]
            if int(chosen):
                model.append(int(chosen))
        assert int(ok(emulator.cuCtxGetCurrent())) == (model[-1] if model else 0)
