"""Fibres of few threads: the same results and the same faults in every form of their registers."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

import ptx
from benchmarks.emulator.cases import Case
from benchmarks.emulator.device import Device
from benchmarks.emulator.narrow import narrow_cases
from benchmarks.emulator.narrow_kernels import SOURCE
from ptx.emulate import EmulationFault, Limits, UseAfterFree
from ptx.emulate.threads.limits import FewThreads
from tests.emulator.engine.few_threads import ALWAYS, NEVER, USUAL, drawn
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows


def _small(case: Case) -> Case:
    """The case with less to do: its last argument says how much."""
    if case.kernel in ("samples", "branches"):
        return replace(case, arguments=(*case.arguments[:-1], np.int32(12)))
    return case


CASES = [_small(case) for case in narrow_cases()]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_few_threads_compute_the_same_in_each_form(case: Case) -> None:
    device = Device("compute_90", source=SOURCE)
    results = []
    for limits in (NEVER, USUAL, USUAL, drawn(3)):
        launch, values = device.prepare(case)
        launch(limits=limits)
        results.append([np.asarray(value).tobytes() for value in values()])
    assert all(result == results[0] for result in results)


@pytest.mark.slow
def test_threads_that_go_their_own_ways_compute_the_same() -> None:
    case = CASES[-1]
    device = Device("compute_90", source=SOURCE)
    results = []
    lanes = device.program.kernel(case.kernel)._code.lanes
    assert lanes is not None
    for apart in (False, True):
        lanes.are_apart = apart
        launch, values = device.prepare(case)
        launch(limits=Limits(few_threads=FewThreads(heat=0, settled=0)) if apart else NEVER)
        results.append([np.asarray(value).tobytes() for value in values()])
    assert results[0] == results[1]
    assert any(key[2] and loop for key, loop in lanes.loops.items())


FAULTS = {
    "out of bounds in a loop": "st.global.u32 [a], k; add.u64 a, a, 4;",
    "misaligned": "add.u64 a, a, 6; ld.global.u32 k, [a];",
    "null": "setp.eq.u32 p, k, 200; @p mov.u64 a, 0; st.global.u32 [a+8], k;",
    "beyond the shared memory": "and.b32 s, k, 124; st.shared.u32 [s], k;",
    "one thread of several": "mad.wide.u32 b, t, 64, a; ld.global.u32 s, [b]; add.u64 a, a, 4;",
}


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("step", FAULTS.values(), ids=FAULTS)
def test_a_fault_reports_the_same_in_each_form(step: str, threads: int) -> None:
    body = f"""
    .reg .u64 a, b; .reg .u32 t, k, s; .reg .pred p; .shared .b32 m[4];
    mov.u32 t, %tid.x; ld.param.u64 a, [p0]; mov.u32 k, 0;
    again: {step}
    add.u32 k, k, 1; setp.lt.u32 p, k, 5000; @p bra again;
    ret;"""
    texts = []
    runner = KernelRunner(ptx_text(body, ".param .u64 p0"))
    place = runner.put(np.zeros(400, np.uint8))
    for limits in (NEVER, USUAL, ALWAYS, drawn(2)):
        with pytest.raises(EmulationFault) as caught:
            runner.launch("k", 1, threads, place, limits=limits)
        texts.append((type(caught.value), str(caught.value)))
    assert all(text == texts[0] for text in texts)


def test_what_a_store_of_one_thread_changes_the_next_load_of_another_sees() -> None:
    body = """
    .reg .u64 a, b, c; .reg .u32 t, u, v, k; .reg .pred p;
    mov.u32 t, %tid.x; ld.param.u64 a, [p0]; mov.u32 k, 0;
    mad.wide.u32 b, t, 4, a; add.u32 u, t, 1; and.b32 u, u, 7; mad.wide.u32 c, u, 4, a;
    again: ld.global.u32 u, [b]; ld.global.u32 v, [c]; mad.lo.u32 u, u, 3, v;
    st.global.u32 [b], u; ld.global.u32 v, [c]; xor.b32 u, u, v; st.global.u32 [b], u;
    add.u32 k, k, 1; setp.lt.u32 p, k, 200; @p bra again;
    ret;"""
    results = []
    for limits in (NEVER, USUAL, ALWAYS, drawn(4)):
        runner = KernelRunner(ptx_text(body, ".param .u64 p0"))
        place = runner.put(np.arange(8, dtype=np.uint32))
        runner.launch("k", 1, 8, place, limits=limits)
        results.append(runner.get(place, 8, np.uint32).tolist())
    assert all(result == results[0] for result in results)


def test_an_endless_loop_of_one_thread_meets_the_limit_in_each_form() -> None:
    body = """.reg .u32 k; .reg .pred p;
    again: add.u32 k, k, 1; setp.ne.u32 p, k, 0; @p bra again; ret;"""
    for limits in (NEVER, USUAL):
        runner = KernelRunner(ptx_text(body))
        with pytest.raises(EmulationFault, match="no end after"):
            runner.launch("k", 1, 1, limits=replace(limits, max_steps=100_000))


def test_memory_that_was_freed_is_out_of_reach_of_code_that_knew_it() -> None:
    body = """
    .reg .u64 a, b; .reg .u32 u, k; .reg .pred p;
    ld.param.u64 a, [p0]; mov.u32 k, 0;
    again: ld.global.u32 u, [a]; add.u32 k, k, 1; setp.lt.u32 p, k, 300; @p bra again;
    ret;"""
    runner = KernelRunner(ptx_text(body, ".param .u64 p0"))
    place = runner.put(np.zeros(8, np.uint32))
    runner.launch("k", 1, 1, place, limits=ALWAYS)
    runner.memory.free(place)
    with pytest.raises(UseAfterFree):
        runner.launch("k", 1, 1, place, limits=ALWAYS)


WAITS = r"""
#define ADD "atom.global.add.u32 %0, [%1], %2; "
#define STEP(wait) \
  asm volatile(ADD wait : "=r"(found) : "l"(a + threadIdx.x), "r"(k + 1) : "memory")
extern "C" __global__ void asleep(int* a, int* o, int n) {
  int sum = 0, found;
  for (int k = 0; k < n; k++) { STEP("nanosleep.u32 0;"); sum = sum * 3 + found; }
  o[threadIdx.x] = sum;
}
extern "C" __global__ void at_a_barrier(int* a, int* o, int n) {
  int sum = 0, found;
  for (int k = 0; k < n; k++) {
    if (threadIdx.x & 1) { STEP("barrier.sync 1, 64;"); }
    else { STEP("barrier.sync 1, 64;"); sum += 0 * clock(); }
    sum = sum * 3 + found;
  }
  o[threadIdx.x] = sum;
}
"""


@functools.cache
def _waits() -> str:
    made = ptx.compile(WAITS, ptx.CompileOptions(target=ptx.Target.ptx("compute_90"))).ptx
    assert made is not None
    return made


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("limits", [NEVER, USUAL, ALWAYS, drawn(1), drawn(2)])
@pytest.mark.parametrize(
    ("kernel", "threads"), [("asleep", 3), ("asleep", 40), ("at_a_barrier", 64)]
)
def test_what_was_computed_before_a_wait_is_there_after_it(
    kernel: str, threads: int, limits: Limits
) -> None:
    runner = KernelRunner(_waits())
    a, o = (runner.put(np.zeros(threads, dtype=np.int32)) for _ in range(2))
    runner.launch(kernel, 1, threads, a, o, 40, limits=limits)
    total = wanted = 0
    for k in range(40):
        wanted, total = (wanted * 3 + total) % 2**32, total + k + 1
    assert runner.get(o, threads, np.uint32).tolist() == [wanted] * threads
