"""The log of operations: their streams, their steps, and what each waited for."""

from __future__ import annotations

import pytest

from cudadrv.emulator.calls.call import state_of
from cudadrv.emulator.timeline.operation_log import LoggedOperation, OperationLog
from cudadrv.emulator.timeline.schedule import OrderName

from .calls import ok
from .machine import UNTIMED, Machine


def two_streams(order: OrderName) -> list[LoggedOperation]:
    """Stream b waits for the first kernel of a, by an event; a queues another."""
    machine = Machine(order)
    x, event = machine.memory(), ok(machine.api.cuEventCreate(UNTIMED))
    log = state_of(machine.api).operations.queue.log = OperationLog()
    machine.fill(x, 5, machine.a)
    ok(machine.api.cuEventRecord(event, machine.a))
    machine.fill(machine.memory(), 7, machine.a)
    ok(machine.api.cuStreamWaitEvent(machine.b, event, 0))
    machine.increment(x, machine.b)
    ok(machine.api.cuStreamSynchronize(machine.b))
    assert machine.read(x, machine.b) == 6
    machine.api.finish()
    return [each for each in log.operations if each.kind != "memcpy"]


@pytest.mark.parametrize("order", ["immediate", "late"])
def test_operations_have_their_streams_and_what_they_waited_for(order: OrderName) -> None:
    found = [(each.number, each.kind, each.stream) for each in two_streams(order)]
    assert found == [
        (1, "kernel", 1), (2, "event record", 1), (3, "kernel", 1), (4, "event wait", 2),
        (5, "kernel", 2),
    ]  # fmt: skip
    waits = {each.number: each.waits_for for each in two_streams(order)}
    assert waits == {1: (), 2: (), 3: (), 4: (2,), 5: ()}


def test_steps_follow_the_order_in_which_operations_ran() -> None:
    def ran(order: OrderName) -> list[int]:
        found = two_streams(order)
        assert all(each.begins is not None and each.ends is not None for each in found)
        return [each.number for each in sorted(found, key=lambda each: each.begins or 0)]

    assert ran("immediate") == [1, 2, 3, 4, 5]
    assert ran("late") == [1, 2, 4, 5, 3]
