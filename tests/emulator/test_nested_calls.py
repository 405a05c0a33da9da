"""Calls that a signal handler makes in the middle of another call come after it or before it.

A profile function stands for the handler: it is called at a place of the emulator's own code.
"""

from __future__ import annotations

import gc
import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from ctypes import c_uint64
from types import FrameType

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator as emulators
from cudadrv.driver._api import (
    CUdeviceptr,
    CUevent,
    CUgraphExec,
    CUmemPool_attribute,
    CUresult,
    CUstream,
)
from cudadrv.emulator import Emulator
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import NotPermittedError

from .calls import Parameters, code, functions, launch, load, ok
from .handles import RELAXED
from .kernels import TRAP

NOT_READY = int(CUresult.CUDA_ERROR_NOT_READY)
NOT_PERMITTED = int(CUresult.CUDA_ERROR_NOT_PERMITTED)
ORDERS: list[tuple[OrderName, int | None]] = [("immediate", None), ("late", None), ("random", 1)]


def changing(name: str, *change: str) -> str:
    """A kernel that reads a word, waits at a barrier, and writes the word as it is to be."""
    return f"""
.visible .entry {name}(.param .u64 p) {{
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1;
  ld.global.u32 %r1, [%rd1];
  bar.sync 0;
  {" ".join(change)}
  bar.sync 0;
  st.global.u32 [%rd1], %r1;
  ret;
}}"""


DOUBLE = changing("doubles", "add.s32 %r1, %r1, %r1;")
ADD_SEVEN = changing("adds", "add.s32 %r1, %r1, 7;")
APPEND_ONE = changing("appends", "mul.lo.u32 %r1, %r1, 10;", "add.s32 %r1, %r1, 1;")


LOOP = """
extern "C" __global__ void loop(int* x, int n) {
    int v = x[threadIdx.x];
    for (int j = 0; j < n; j++) { v += 1; __syncthreads(); }
    x[threadIdx.x] = v;
}
extern "C" __global__ void once(int* x) { x[threadIdx.x] += 1000; }
"""


class Program:
    """5, twice that, and 7 more, each by an operation of one stream."""

    def __init__(self, order: OrderName, seed: int | None = None) -> None:
        self.api = api = Emulator(1, order=order, seed=seed)
        ok(api.cuInit(0))
        ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(0))))
        self.stream: CUstream = ok(api.cuStreamCreateWithPriority(0, 0))
        self.event: CUevent = ok(api.cuEventCreate(0))
        self.word: CUdeviceptr = ok(api.cuMemAlloc(4))
        module = load(api, DOUBLE, ADD_SEVEN, APPEND_ONE, TRAP)
        self.doubles, self.adds, self.appends, self.traps = functions(
            api, module, "doubles", "adds", "appends", "traps"
        )
        self.parameters = Parameters(c_uint64(int(self.word)))
        ok(api.cuStreamBeginCapture(self.stream, RELAXED))
        self.launch(self.doubles)
        graph = ok(api.cuStreamEndCapture(self.stream))
        self.graph: CUgraphExec = ok(api.cuGraphInstantiate(graph, 0))
        self.result = np.zeros(1, np.uint32)

    def launch(self, kernel: object) -> None:
        ok(launch(self.api, kernel, self.parameters, block=(2, 1, 1), stream=self.stream))  # type: ignore[arg-type]  # a CUfunction, by its name

    def run(self) -> int:
        api = self.api
        ok(api.cuMemsetD32Async(self.word, 5, 1, self.stream))
        ok(api.cuGraphLaunch(self.graph, self.stream))
        other = ok(api.cuMemAllocAsync(64, self.stream))
        self.launch(self.adds)
        ok(api.cuMemFreeAsync(other, self.stream))
        ok(api.cuStreamSynchronize(self.stream))
        return self.value()

    def set_and_double(self) -> None:
        ok(self.api.cuMemsetD32Async(self.word, 5, 1, self.stream))
        self.launch(self.doubles)

    def value(self) -> int:
        ok(self.api.cuMemcpyDtoHAsync(self.result.ctypes.data, self.word, 4, self.stream))
        ok(self.api.cuStreamSynchronize(self.stream))
        return int(self.result[0])


# Where the word gets a 1 behind it: before all, or after each of the three, or at the end.
VALUES = {17, 51 * 2 + 7, 101 + 7, 171}


def call_at(place: int, handler: Callable[[], object], work: Callable[[], object]) -> bool:
    """Call a handler at a place of the emulator's code, by number; whether work came there."""
    places, came = itertools.count(), list[bool]()

    def profile(frame: FrameType, event: str, _: object) -> None:
        is_ours = "/emulat" in frame.f_code.co_filename
        if is_ours and event in ("call", "c_return") and next(places) == place:
            sys.setprofile(None)
            came.append(True)
            handler()

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return bool(came)


def at_each(step: int, handler: Callable[[], object], work: Callable[[], object]) -> Iterator[int]:
    """Do work again and again, with a handler that is called once, ever later in it."""
    for place in itertools.count(step=step):
        if not call_at(place, handler, work):
            return
        yield place


@pytest.mark.slow
@pytest.mark.parametrize(("order", "seed"), ORDERS)
@pytest.mark.parametrize("by_graph", [False, True])
def test_what_a_handler_queues_at_any_place_runs_before_or_after_each_operation(
    order: OrderName, seed: int | None, by_graph: bool
) -> None:
    program = Program(order, seed)
    api = program.api
    if by_graph:
        ok(api.cuStreamBeginCapture(program.stream, RELAXED))
        program.launch(program.appends)
        graph = ok(api.cuGraphInstantiate(ok(api.cuStreamEndCapture(program.stream)), 0))

    def handle() -> None:
        if by_graph:
            ok(api.cuGraphLaunch(graph, program.stream))
        else:
            program.launch(program.appends)

    program.run()
    step = 5 if order == "immediate" else 23  # there are fewer places
    found = [program.value() for _ in at_each(step, handle, program.run)]
    assert len(found) > 50
    assert len(set(found)) > 1
    assert set(found) <= VALUES


@pytest.mark.slow
@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_a_handler_waits_for_its_work_or_gets_an_error_that_this_never_ends(
    order: OrderName, seed: int | None
) -> None:
    program = Program(order, seed)
    api, stream, event = program.api, program.stream, program.event
    results = list[tuple[int, ...]]()
    in_the_middle = (NOT_READY, *[NOT_PERMITTED] * 4)
    host = np.zeros(1, np.uint32)
    pinned = CUdeviceptr(ok(api.cuMemHostAlloc(4, 2)))

    def handle() -> None:
        host[0] = 0
        program.launch(program.appends)
        ok(api.cuEventRecord(event, stream))
        results.append(
            (
                code(api.cuEventQuery(event)),
                code(api.cuEventSynchronize(event)),
                code(api.cuStreamSynchronize(stream)),
                code(api.cuMemcpyDtoH(host.ctypes.data, program.word, 4)),
                code(api.cuMemsetD8(pinned, 1, 4)),
            )
        )

    program.run()
    for _ in at_each(11, handle, program.run):
        ok(api.cuEventSynchronize(event))
        ok(api.cuEventQuery(event))
        assert program.value() in VALUES
        can_wait = results[-1][1:] == (0, 0, 0, 0)
        assert can_wait or results[-1] == in_the_middle
        # Nothing is copied later to memory that the handler may have freed.
        assert bool(host[0]) == can_wait
    assert in_the_middle in results


@pytest.mark.slow
@pytest.mark.parametrize("order", ["immediate", "late"])
def test_a_handler_may_wait_for_a_stream_of_its_own(order: OrderName) -> None:
    program = Program(order)
    api = program.api
    own = ok(api.cuStreamCreateWithPriority(1, 0))
    memory = ok(api.cuMemAlloc(4))
    seen = np.zeros(1, np.uint32)

    def handle() -> None:
        ok(api.cuMemsetD32Async(memory, 1, 1, own))
        ok(launch(api, program.adds, Parameters(c_uint64(int(memory))), stream=own))
        if not api.cuMemcpyDtoHAsync(seen.ctypes.data, memory, 4, own)[0]:
            seen_at.append(int(seen[0]))

    seen_at = list[int]()
    program.run()
    tries = len(list(at_each(29, handle, program.run)))
    assert set(seen_at) == {8}
    # Where the queues of "late" are being changed, no wait can be granted.
    assert tries * 0.5 < len(seen_at) <= tries
    assert order == "late" or len(seen_at) == tries
    assert program.run() == 17


def test_another_stream_waits_for_what_a_handler_recorded() -> None:
    program = Program("immediate")
    api, event = program.api, program.event
    other = ok(api.cuStreamCreateWithPriority(1, 0))

    def handle() -> None:
        program.launch(program.appends)
        ok(api.cuEventRecord(event, program.stream))
        ok(api.cuStreamWaitEvent(other, event, 0))
        ok(launch(api, program.adds, program.parameters, block=(2, 1, 1), stream=other))

    for _ in at_each(20, handle, program.set_and_double):
        assert program.value() in {5 * 2, (5 * 2 * 10 + 1) + 7, 2 * (5 * 10 + 1 + 7)}


def test_memory_that_a_handler_allocates_uses_and_frees_outlives_its_uses() -> None:
    program = Program("immediate")
    api = program.api
    seen, found = np.zeros(1, np.uint32), set[int]()

    def handle() -> None:
        memory = ok(api.cuMemAllocAsync(4, program.stream))
        ok(api.cuMemcpyDtoDAsync(memory, program.word, 4, program.stream))
        ok(launch(api, program.adds, Parameters(c_uint64(int(memory))), stream=program.stream))
        ok(api.cuMemcpyDtoDAsync(program.word, memory, 4, program.stream))
        ok(api.cuMemFreeAsync(memory, program.stream))

    for _ in at_each(20, handle, program.set_and_double):
        ok(api.cuMemcpyDtoHAsync(seen.ctypes.data, program.word, 4, program.stream))
        found.add(int(seen[0]))
    assert found == {5 * 2, (5 + 7) * 2, 5 * 2 + 7}
    pool = ok(api.cuDeviceGetDefaultMemPool(ok(api.cuDeviceGet(0))))
    used = CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    assert int(ok(api.cuMemPoolGetAttribute(pool, used))) == 0


def test_a_fault_of_what_a_handler_launched_is_reported_by_the_next_call() -> None:
    program = Program("immediate")
    api = program.api
    assert call_at(150, lambda: program.launch(program.traps), program.set_and_double)
    assert api.cuStreamSynchronize(program.stream)[0] == CUresult.CUDA_ERROR_LAUNCH_FAILED
    text = ok(api.cuGetErrorString(CUresult.CUDA_ERROR_LAUNCH_FAILED)) or b""
    assert b"traps" in text
    assert b"it was queued at " in text


def test_another_thread_meets_the_work_of_a_handler_in_its_order() -> None:
    program = Program("immediate")
    api = program.api
    values = list[int]()

    def follow() -> None:
        ok(api.cuCtxSetCurrent(context))
        program.launch(program.adds)
        values.append(program.value())

    def handle() -> None:
        program.launch(program.appends)
        threads.append(threading.Thread(target=follow))
        threads[-1].start()

    context, threads = ok(api.cuCtxGetCurrent()), list[threading.Thread]()
    ok(api.cuMemsetD32Async(program.word, 5, 1, program.stream))
    for _ in at_each(20, handle, lambda: program.launch(program.doubles)):
        threads[-1].join()
        ok(api.cuMemsetD32Async(program.word, 5, 1, program.stream))
    assert len(values) > 3
    # The thread looks before the doubling, or after it.
    assert set(values) <= {51 + 7, (51 + 7) * 2, 51 * 2 + 7, 101 + 7}


def test_a_signal_that_comes_during_a_launch_launches_after_it() -> None:
    with emulators.session():
        context = cudadrv.cuda_context_for(0)
        module = context.compile(LOOP)
        loop, once = module.kernel("loop"), module.kernel("once")
        stream, config = context.new_stream(), cudadrv.LaunchConfig(1, 64)
        array = stream.zeros(64, "i4")
        told = list[str]()

        def handle(number: int, frame: FrameType | None) -> None:
            once.launch(stream, config, array)
            with pytest.raises(NotPermittedError) as raised:
                stream.synchronize()
            told.append(str(raised.value))

        former = signal.signal(signal.SIGINT, handle)
        try:
            loop.launch(stream, config, array, 0)
            assert call_at(
                300,
                lambda: signal.raise_signal(signal.SIGINT),
                lambda: loop.launch(stream, config, array, 1000),
            )
        finally:
            signal.signal(signal.SIGINT, former)
        assert stream.to_host(array).tolist() == [2000] * 64
        assert len(told) == 1
        assert "a signal handler cannot wait for what its own thread is in the middle of" in told[0]


def test_memory_whose_finalizer_waits_is_freed_once_and_after_the_call() -> None:
    with emulators.session() as machine:
        context = cudadrv.cuda_context_for(0)
        stream, config = context.new_stream(), cudadrv.LaunchConfig(1, 64)
        module = context.compile(LOOP)
        array = stream.zeros(64, "i4")
        before = machine.live_objects()["device memory"]
        with cudadrv.using_memory(cudadrv.memory.UnpooledMemory()):
            buffers = [stream.alloc(64)]
        assert machine.live_objects()["device memory"] == before + 1
        loop = module.kernel("loop")
        loop.launch(stream, config, array, 0)
        assert call_at(300, buffers.clear, lambda: loop.launch(stream, config, array, 100))
        assert stream.to_host(array).tolist() == [100] * 64
        gc.collect()  # after it is done again what could not wait
        assert machine.live_objects()["device memory"] == before
