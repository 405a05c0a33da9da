"""The emulator goes on after an exception at any line of a call.

The call may lose what it was making, until its context is destroyed. Earlier work keeps its order,
later calls work, and nothing waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import numpy as np
import pytest

from cudadrv.driver._api import CUgraphExec, CUstreamCaptureMode
from cudadrv.emulator.timeline.schedule import OrderName
from tests.at_each_line import Event, Line, raising

from .calls import CAPTURE_RELAXED, ok
from .handles import KINDS
from .machine import UNTIMED, Machine, captured

FILES: Final = ("cudadrv/emulator/", "emulate/memory/", "emulate/exec/collection.py")
"""The state of the emulator; the code of kernels has no other."""
RUNS: Final = "emulator/calls/execution.py"
"""The file of the functions that run kernels. A kernel that is ended in the middle stays so."""
BEGINS: Final = (" _run", " _runs_to_end")
MOST_LOST: Final = 36 << 20
"""Bytes of what a call was making: a pool takes 32 MiB at once."""


class Lab:
    """An emulator with work in two streams, whose results are known."""

    def __init__(self, order: OrderName) -> None:
        self.machine = machine = Machine(order)
        self.api = machine.api
        self.x, self.y, self.z = (machine.memory(64) for _ in range(3))
        self.host = np.zeros(4, np.uint32)
        self.event = ok(self.api.cuEventCreate(UNTIMED))
        self.graph: CUgraphExec = captured(machine, self.y)
        self.graph_may_have_run = False
        self.pooled = ok(self.api.cuMemAllocAsync(64, machine.a))
        ok(self.api.cuStreamSynchronize(machine.a))
        self.free_bytes = ok(self.api.cuMemGetInfo())[0]
        machine.fill(self.x, 5, machine.a)
        ok(self.api.cuMemcpyDtoDAsync(self.y, self.x, 4, machine.a))
        ok(self.api.cuEventRecord(self.event, machine.a))
        ok(self.api.cuStreamWaitEvent(machine.b, self.event, 0))
        machine.increment(self.y, machine.b)

    def check(self, *, kernel_was_ended: bool) -> None:
        """The work before is done in its order, and as much works afterwards."""
        machine, api = self.machine, self.api
        status = api.cuStreamIsCapturing(machine.a)[1]
        if int(status):
            api.cuStreamEndCapture(machine.a)
        machine.increment(self.x, machine.a)
        found = machine.read(self.x, machine.a)
        assert found in (6, 10) or kernel_was_ended, f"x is {found}"
        machine.increment(self.y, machine.b)
        found = machine.read(self.y, machine.b)
        assert found in (7, 61) or self.graph_may_have_run or kernel_was_ended, f"y is {found}"
        ok(api.cuCtxSynchronize())
        machine.fill(self.x, 20, machine.a)
        ok(api.cuEventRecord(self.event, machine.a))
        ok(api.cuStreamWaitEvent(machine.b, self.event, 0))
        ok(api.cuMemcpyDtoDAsync(self.z, self.x, 4, machine.b))
        machine.increment(self.z, machine.b)
        ok(api.cuStreamSynchronize(machine.b))
        assert machine.read(self.z, machine.b) == 21
        memory = ok(api.cuMemAllocAsync(64, machine.a))
        ok(api.cuMemFreeAsync(memory, machine.a))
        ok(api.cuGraphLaunch(self.graph, machine.a))
        assert machine.read(self.y, machine.a) in (5, 6)
        ok(api.cuCtxSynchronize())
        ok(api.cuMemPoolTrimTo(ok(api.cuDeviceGetDefaultMemPool(ok(api.cuDeviceGet(0)))), 0))
        lost = self.free_bytes - ok(api.cuMemGetInfo())[0]
        assert lost <= MOST_LOST, f"{lost} bytes are lost"


def fill(lab: Lab) -> None:
    lab.machine.fill(lab.x, 9, lab.machine.a)


def copy_up(lab: Lab) -> None:
    lab.host[:] = 60
    ok(lab.api.cuMemcpyHtoDAsync(lab.y, lab.host.ctypes.data, 4, lab.machine.b))


def copy_down(lab: Lab) -> None:
    ok(lab.api.cuMemcpyDtoHAsync(lab.host.ctypes.data, lab.y, 4, lab.machine.b))


def copy_across(lab: Lab) -> None:
    ok(lab.api.cuMemcpyDtoDAsync(lab.z, lab.y, 4, lab.machine.a))


def set_memory(lab: Lab) -> None:
    ok(lab.api.cuMemsetD8Async(lab.z, 1, 4, lab.machine.a))


def allocate(lab: Lab) -> None:
    ok(lab.api.cuMemAllocAsync(64, lab.machine.a))


def free(lab: Lab) -> None:
    ok(lab.api.cuMemFreeAsync(lab.pooled, lab.machine.a))


def host_function(lab: Lab) -> None:
    lab.machine.host_call(lambda _: None, lab.machine.a)


def record(lab: Lab) -> None:
    ok(lab.api.cuEventRecord(lab.event, lab.machine.b))


def wait(lab: Lab) -> None:
    ok(lab.api.cuStreamWaitEvent(lab.machine.a, lab.event, 0))


def synchronize_stream(lab: Lab) -> None:
    ok(lab.api.cuStreamSynchronize(lab.machine.b))


def synchronize(lab: Lab) -> None:
    ok(lab.api.cuCtxSynchronize())


def query(lab: Lab) -> None:
    lab.api.cuStreamQuery(lab.machine.b)


def launch_graph(lab: Lab) -> None:
    lab.graph_may_have_run = True
    ok(lab.api.cuGraphLaunch(lab.graph, lab.machine.a))


def capture(lab: Lab) -> None:
    api, stream = lab.api, lab.machine.a
    ok(api.cuStreamBeginCapture(stream, CUstreamCaptureMode(CAPTURE_RELAXED)))
    lab.machine.fill(lab.z, 1, stream)
    memory = ok(api.cuMemAllocAsync(64, stream))
    ok(api.cuMemFreeAsync(memory, stream))
    graph = ok(api.cuStreamEndCapture(stream))
    executable = ok(api.cuGraphInstantiate(graph, 0))
    ok(api.cuGraphDestroy(graph))
    ok(api.cuGraphExecDestroy(executable))


QUEUED: Final[list[Callable[[Lab], None]]] = [
    fill, copy_up, copy_down, copy_across, set_memory, allocate, free, host_function, record, wait,
    synchronize_stream, synchronize, query, launch_graph, capture,
]  # fmt: skip


def making(name: str) -> Callable[[Lab], None]:
    def act(lab: Lab) -> None:
        kind = KINDS[name]
        kind.destroy(lab.api, kind.make(lab.api))

    act.__name__ = name
    return act


MADE: Final = [
    making(name)
    for name in KINDS
    # Their makers capture in a stream that an exception leaves capturing, or unload all modules.
    if "node" not in name and "executable" not in name and name not in ("graph", "function")
]


def outcome(order: OrderName, act: Callable[[Lab], None], number: int, error: Event) -> str:
    """Return what is wrong after an event at a line of an act; else ""."""
    lab, line = Lab(order), Line(number, FILES, error)
    with suppress(KeyboardInterrupt, MemoryError):
        line.run(partial(act, lab))
    is_begun = any(file.endswith(RUNS) for file in line.within)
    try:
        lab.check(kernel_was_ended=is_begun or line.place.endswith(BEGINS))
    except (Exception, pytest.fail.Exception) as wrong:
        return f"{act.__name__}, {line.place}: {type(wrong).__name__} {wrong}".splitlines()[0]
    return ""


def lines_of(order: OrderName, act: Callable[[Lab], None], known: set[str]) -> list[int]:
    """Return the numbers of an act's lines, of each line the first that is not known."""
    lab, line = Lab(order), Line(-1, FILES, lambda: None)
    line.run(partial(act, lab))
    numbers = []
    for number, place in enumerate(line.before):
        if place not in known:
            known.add(place)
            numbers.append(number)
    return numbers


def wrong_cases(order: OrderName, error: type[BaseException]) -> tuple[int, list[str]]:
    """Return the number of lines, and what was wrong after an exception at one."""
    known: set[str] = set()
    found = [
        outcome(order, act, number, raising(error))
        for act in (QUEUED if order == "late" else [*QUEUED, *MADE])
        for number in lines_of(order, act, known)
    ]
    return len(found), [case for case in found if case]


@pytest.mark.slow
# The exception may come in a finalizer.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("order", "error"),
    [("immediate", KeyboardInterrupt), ("late", KeyboardInterrupt), ("late", MemoryError)],
)
def test_an_exception_at_any_line_of_a_call_spoils_no_other_work(
    order: OrderName, error: type[BaseException]
) -> None:
    count, wrong = wrong_cases(order, error)
    assert count > 600
    assert wrong == []
