"""Operations that nothing orders are found by what they access, and no others."""

from __future__ import annotations

import inspect
import re

import pytest

from campaigns.order_faults.bench import Bench as OrderBench, Body as OrderBody
from campaigns.order_faults.programs import PROGRAMS as PROGRAMS_OF_ORDER
from cudadrv import emulator
from cudadrv.emulator.calls.call import state_of
from cudadrv.emulator.node_kind import NodeKind
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import CudadrvError
from tests.rows import all_rows
from tests.short_cases import few

from .bench import Bench, Body, N, findings_of
from .order_model import complaint_about
from .programs import (
    PROGRAMS,
    copy_beside_a_kernel,
    freed_too_early,
    known_up_to_a_point,
    two_kernels,
)

FOUND_IN_PROGRAMS_OF_ORDER = (
    "event_recorded_before_the_work", "wrong_event", "event_waited_for_before_it_is_recorded",
    "freed_while_another_stream_reads", "used_before_it_was_allocated",
    "two_streams_over_one_array", "double_buffering_without_a_wait",
    "default_stream_taken_for_a_barrier", "graph_branches_not_joined",
    "two_graphs_over_one_array", "peer_copy_not_waited_for", "staging_array_reused",
    "destination_changed_before_its_copy",
)  # fmt: skip
of_each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda body: body.__name__)
in_each_order = pytest.mark.parametrize(
    ("order", "seed"), few([("immediate", None), ("late", None), ("random", 3)], 1)
)


@all_rows
@in_each_order
@of_each_program
def test_a_missing_order_is_found(program: Body, order: OrderName, seed: int | None) -> None:
    found = findings_of(program, False, order, seed)
    if program is freed_too_early and order != "immediate":
        return  # the kernel comes too late, which is a fault
    assert found
    assert {(each.check, each.space) for each in found} == {("race", "global")}


@pytest.mark.slow
@all_rows
@in_each_order
@of_each_program
def test_a_right_program_is_not_reported(program: Body, order: OrderName, seed: int | None) -> None:
    assert [str(each) for each in findings_of(program, True, order, seed)] == []


@pytest.mark.parametrize("program", PROGRAMS_OF_ORDER, ids=lambda body: body.__name__)
def test_programs_of_order_are_found_at_their_call(program: OrderBody) -> None:
    def found(ok: bool) -> list[str]:
        with emulator.session(devices=2, check=("race",), raise_findings=False) as machine:
            try:
                program(OrderBench(), ok)
            except CudadrvError:
                assert not ok
        return [str(each) for each in machine.findings]

    assert bool(found(False)) == (program.__name__ in FOUND_IN_PROGRAMS_OF_ORDER)
    assert found(True) == []


def test_a_finding_names_kernels_lines_and_calls() -> None:
    (found,) = findings_of(two_kernels, False)
    lines, first = inspect.getsourcelines(Bench.run)
    said = str(found).splitlines()
    assert re.fullmatch("race: kernel read, 1024 bytes of global memory at 0x[0-9a-f]+", said[0])
    assert re.fullmatch(r"  in \d+ bytes at 0x\w+ \(cuMemAllocAsync at .*:\d+\)", said[1])
    assert "write by kernel set, at " in said[2]
    assert "unordered.cu:4 (PTX line" in said[2]
    assert re.search(r"launched at .*bench\.py:(\d+)$", said[2])
    assert first < int(said[2].rpartition(":")[2]) < first + len(lines)
    assert "read by kernel read, at " in said[3]
    assert said[4].startswith(
        "  nothing orders the two: use one stream, let the later one's stream "
    )


def test_a_copy_is_named_by_its_call() -> None:
    found = findings_of(copy_beside_a_kernel, False)
    lines, first = inspect.getsourcelines(copy_beside_a_kernel)
    at = first + next(k for k, line in enumerate(lines) if "b.copy(" in line)
    second = found[0].second
    assert second is not None
    assert str(second).startswith("write by a memcpy, called at ")
    assert str(second).endswith(f"programs.py:{at}")


def test_the_bytes_are_those_that_nothing_orders() -> None:
    (found,) = findings_of(known_up_to_a_point, False)
    assert found.nbytes == 4
    assert "read by kernel read" in str(found)


@pytest.mark.slow
def test_what_the_host_waited_for_is_forgotten() -> None:
    with emulator.session(check=("race",)) as machine:
        bench = Bench()
        x, out = bench.ints(), bench.ints()
        accesses = state_of(machine).operations.accesses
        assert accesses is not None
        for _ in range(100):
            bench.run(bench.a, "set", x, N, 1)
            bench.b.wait(bench.a)
            bench.run(bench.b, "read", out, x, N)
            bench.a.wait(bench.b)
        assert sum(len(past) for ways in accesses._past.values() for past in ways.values()) < 100
        bench.context.synchronize()
        assert accesses._past == {}


def test_a_wait_counts_for_what_another_thread_is_still_running() -> None:
    with emulator.session(check=("race",)) as machine:
        bench = Bench()
        x, accesses = bench.ints(), state_of(machine).operations.accesses
        assert accesses is not None
        one, other = (state_of(machine).handles.stream(each.handle) for each in (bench.a, bench.b))

        def write() -> None:
            assert accesses is not None
            accesses.moved([], [(x.ptr, 4)])

        def write_after_a_wait() -> None:
            assert accesses is not None
            accesses.host_waits_for(one)  # as another thread does
            write()

        accesses.timed(one, NodeKind.COPY, write_after_a_wait)()
        accesses.timed(other, NodeKind.COPY, write)()
    assert machine.findings == ()


def test_nothing_is_compared_where_nothing_is_checked() -> None:
    assert emulator.Emulator(check=()).host_accesses is None
    assert emulator.Emulator(check=("init",)).host_accesses is None


@pytest.mark.parametrize("order", few(["late", "immediate", "random"], 1))
def test_random_programs_race_where_a_model_predicts_it(order: OrderName) -> None:
    for seed in range(100):
        assert not (complaint := complaint_about(str(seed), order)), complaint
