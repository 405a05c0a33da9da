"""What the host does to pinned and managed memory that operations use is found in every order."""

from __future__ import annotations

import inspect
import re
import threading

import pytest

from cudadrv import emulator
from cudadrv.emulator.calls.call import state_of
from cudadrv.emulator.node_kind import NodeKind
from cudadrv.emulator.timeline.schedule import OrderName
from tests.rows import all_rows

from .bench import Bench, Body, N, findings_of
from .host_programs import (
    HOST_PROGRAMS,
    LARGE,
    reached_by_a_pointer_in_memory,
    read_by_a_copy_of_little,
    source_changed,
    written_beside_a_reading_kernel,
)

of_each_program = pytest.mark.parametrize("program", HOST_PROGRAMS, ids=lambda body: body.__name__)
in_each_order = pytest.mark.parametrize(
    ("order", "seed"), [("immediate", None), ("late", None), ("random", 3), ("random", 4)]
)


@all_rows
@in_each_order
@of_each_program
def test_what_the_host_does_too_early_is_found(
    program: Body, order: OrderName, seed: int | None
) -> None:
    found = findings_of(program, False, order, seed)
    if program is reached_by_a_pointer_in_memory and order != "immediate":
        return  # nobody knows before a kernel runs where such pointers lead
    assert found
    assert {each.check for each in found} == {"race"}
    assert any(" by the host, " in str(each) or "host function" in str(each) for each in found)


@pytest.mark.slow
@all_rows
@in_each_order
@of_each_program
def test_what_the_host_does_in_order_is_no_fault(
    program: Body, order: OrderName, seed: int | None
) -> None:
    assert [str(each) for each in findings_of(program, True, order, seed)] == []


def _line_of(body: Body, text: str) -> str:
    lines, first = inspect.getsourcelines(body)
    at = first + next(k for k, line in enumerate(lines) if text in line)
    return f"host_programs.py:{at}"


def test_a_write_is_named_by_the_calls_around_it_and_the_copy_by_its_own() -> None:
    (found,) = findings_of(source_changed, False)
    assert found.second is not None
    assert str(found.first).startswith("read by a memcpy, called at ")
    assert str(found.first).endswith(_line_of(source_changed, "a.copy("))
    assert str(found.second).startswith("write by the host, after ")
    assert _line_of(source_changed, "a.copy(") + ", before " in str(found.second)
    assert re.search(r"before .*bench\.py:\d+$", str(found.second))
    assert "a wait of the host for the operation" in str(found)
    assert "page-locked memory" in str(found)


def test_a_kernel_is_named_by_its_line_and_its_launch() -> None:
    (found,) = findings_of(written_beside_a_reading_kernel, False)
    assert re.search(r"read by kernel read, at .*unordered\.cu:\d+ ", str(found.first))
    assert found.places[0].line is not None
    assert found.places[1].file is not None


def test_a_read_of_the_library_is_named_by_its_call() -> None:
    found = findings_of(read_by_a_copy_of_little, False)
    told = [str(each.second) for each in found if "by the host" in str(each.second)]
    assert told
    assert told[0].startswith("read by the host, called at ")
    assert told[0].endswith(_line_of(read_by_a_copy_of_little, "b.copy("))


def test_nothing_is_watched_once_the_host_has_waited() -> None:
    with emulator.session(check=("race",)) as machine:
        bench = Bench()
        pinned, out = bench.pinned(), bench.ints()
        bench.run(bench.a, "read", out, pinned.ctypes.data, N)
        accesses = state_of(machine).operations.accesses
        assert accesses is not None
        assert len(accesses._host_writes._watched) == 1
        bench.a.synchronize()
        assert accesses._host_writes._watched == []


def test_what_comes_while_another_thread_runs_an_operation_is_not_mistaken_for_late() -> None:
    with emulator.session(check=("race",)) as machine:
        bench = Bench()
        pinned, x = bench.pinned(LARGE), bench.ints(LARGE)
        begun, go_on = threading.Event(), threading.Event()

        def wait() -> None:
            begun.set()
            go_on.wait()

        accesses = state_of(machine).operations.accesses
        assert accesses is not None
        copying = accesses.timed(
            state_of(machine).handles.stream(bench.c.handle), NodeKind.COPY, wait
        )
        other = threading.Thread(target=copying)
        other.start()
        begun.wait()
        with bench.a.unordered():
            for value in range(3):
                bench.a.synchronize()
                pinned[:] = value
                bench.a.copy(x, pinned, wait=False)
        go_on.set()
        other.join()
        bench.a.synchronize()
    assert machine.findings == ()


def test_many_uses_of_one_array_are_watched_as_one() -> None:
    with emulator.session(check=("race",), raise_findings=False) as machine:
        bench = Bench()
        pinned, x = bench.pinned(LARGE), bench.ints(LARGE)
        with bench.a.unordered():
            for k in range(100):
                bench.a.to_host(x[k : k + 1], out=pinned[k : k + 1], wait=False)
        accesses = state_of(machine).operations.accesses
        assert accesses is not None
        assert len(accesses._host_writes._watched) <= 64
        pinned[99] = 7
        bench.a.synchronize()
    (found,) = machine.findings
    assert " by the host, " in str(found)
