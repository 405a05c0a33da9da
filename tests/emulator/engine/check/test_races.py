"""Races: kernels with one fault each, and kernels that are like them and right."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import ptx.emulate
from ptx.emulate.check import barrier_clocks
from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.rows import all_rows
from tests.short_cases import few

from ..kernel_runner import KernelRunner

RIGHT = (
    "own_elements", "tile", "tile_reused", "stencil", "histogram", "histogram_in_blocks", "bytes",
    "reduction", "reduction_by_warps", "half_warps", "named_barriers", "producers", "last_block",
    "second_of_two", "locked", "turns_by_swaps", "turns_by_wide_swaps", "chain_of_blocks",
    "released_and_acquired",
    "flag_passed_on_in_the_block", "bit_set_by_volatile", "turns_by_volatile",
    "turns_of_what_was_polled", "own_places_by_volatile", "counted_by_volatile_in_a_lock",
    "counted_by_volatile_in_phases", "reduction_by_volatile_and_syncwarp",
    "flag_of_a_warp_by_volatile", "flag_of_a_warp_tried_by_volatile", "copied",
    "copied_and_all_awaited", "copied_to_an_mbarrier",
)  # fmt: skip
FAULTY = {
    "tile_without_barrier": "__syncthreads() between them",
    "tile_reused_too_early": "__syncwarp() or __syncthreads() between them",
    "stencil_in_place": "",
    "histogram_without_atomics": "two launches",
    "histogram_read_plainly": "an atomic operation on both sides",
    "histogram_of_block_scope": "scope cta does not reach the other block",
    "bytes_shared_by_two": "one thread that writes alone",
    "reduction_without_last_barriers": "__syncwarp() or __syncthreads() between them",
    "half_warps_that_cross": "__syncwarp() or __syncthreads() between them",
    "named_barriers_that_cross": "__syncthreads() between them",
    "producers_that_run_ahead": "__syncthreads() between them",
    "producers_that_go_on": "__syncthreads() between them",
    "last_block_without_fence": "__threadfence() on both sides",
    "last_block_with_narrow_fence": "__threadfence() on both sides",
    "second_of_two_without_fences": "__threadfence() on both sides",
    "locked_without_fences": "",
    "beside_the_lock": "",
    "cleared_by_the_last_block": "two launches",
    "handed_over_by_swaps_in_vain": "__threadfence() on both sides",
    "one_of_two_swaps_in_vain": "__threadfence() on both sides",
    "chain_of_blocks_published_early": "__threadfence() on both sides",
    "relaxed_alone": "__threadfence() on both sides",
    "other_value": "",
    "one_word_without_barrier_in_some": "__syncthreads() between them",
    "copied_to_an_mbarrier_and_overwritten": "a wait for the phase of the mbarrier object",
    "copied_without_wait": "a wait for the asynchronous copy",
    "copied_without_ones_own_wait": "a wait for the asynchronous copy",
    "copied_with_one_group_under_way": "a wait for the asynchronous copy",
    "copied_and_awaited_behind_the_barrier": "__syncthreads() between them",
    "chain_of_blocks_taken_narrowly": "__threadfence() on both sides",
    "flag_of_block_scope": "scope cta does not reach the other block",
    "flag_cleared_while_polled": "__syncthreads() between them",
    "swap_loop_read_afterwards": "an atomic operation on both sides",
    "written_behind_the_fences": "__threadfence() on both sides",
    "guarded_swap_loop": "an atomic operation on both sides",
    "guarded_swap_loop_of_the_word_around": "an atomic operation on both sides",
    "swap_loop_that_may_not_begin": "an atomic operation on both sides",
    "swap_loop_of_the_next_by_a_generic_address": "an atomic operation on both sides",
    "swap_of_where_an_index_has_come_to": "an atomic operation on both sides",
    "guarded_by_an_ordinary_read": "an atomic operation on both sides",
    "heard_by_all_and_overwritten": "",
    "one_row_for_all_blocks": "one block that writes alone, two launches",
    "one_row_added_to": "two launches",
}
_LANES = "volatile, but nothing orders these lanes since compute capability 7.0"
MEANT_SO = {
    "swap_loop": "a compare-and-swap checks",
    "swap_loop_of_what_must_not_be_negative": "a compare-and-swap checks",
    "unguarded_swap_loop": "a compare-and-swap checks",
    "swap_loop_by_a_generic_address": "a compare-and-swap checks",
    "last_block_without_second_fence": "no fence comes between",
    "fenced_by_all_before_a_barrier": "each fence comes before that",
    "same_value": "both write the same value",
    "same_value_by_some": "both write the same value",
    "same_value_beside_a_flag": "both write the same value",
    "counted_by_volatile": "an update is lost",
    "counted_by_volatile_in_blocks": "an update is lost",
    "counted_by_one_of_each_block": "an update is lost",
    "raised_by_volatile": "an update is lost",
    "counted_beside_an_atomic": "an update is lost",
    "reduction_by_volatile": _LANES,
    "exchanged_by_volatile": _LANES,
    "exchanged_by_volatile_in_a_loop": _LANES,
    "given_to_the_warp_by_volatile": _LANES,
}
SIZES = [(3, 256), (40, 256)]


@functools.cache
def text() -> str:
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), lineinfo=True)
    source = Path(__file__).with_name("races.cu").read_text()
    made = ptx.compile(source, options, name="races.cu").ptx
    assert made is not None
    return made


def found_in(
    kernel: str,
    grid: int,
    block: int,
    *,
    chunk_threads: int = 65536,
    order: LaunchOrder | None = None,
) -> list[Finding]:
    """What the check finds in a launch."""
    runner = KernelRunner(text())
    findings = Findings()
    a = runner.put(np.arange(grid * block, dtype=np.int32))
    o = runner.put(np.zeros(grid * block, dtype=np.int32))
    limits = Limits(checks={"race"}, findings=findings, chunk_threads=chunk_threads, share_from=1)
    runner.launch(kernel, grid, block, a, o, grid * block, limits=limits, order=order)
    return findings.found


@all_rows
@pytest.mark.parametrize(("grid", "block"), few(SIZES, 1))
@pytest.mark.parametrize("kernel", few(RIGHT, len(RIGHT) // 3))
def test_nothing_is_found_in_a_right_kernel(kernel: str, grid: int, block: int) -> None:
    assert [str(each) for each in found_in(kernel, grid, block)] == []


@all_rows
@pytest.mark.parametrize(("grid", "block"), few(SIZES, 1))
@pytest.mark.parametrize("kernel", few(FAULTY, len(FAULTY) // 2))
def test_a_race_is_found_with_what_would_order_it(kernel: str, grid: int, block: int) -> None:
    found = [each for each in found_in(kernel, grid, block) if not each.benign]
    assert found
    assert FAULTY[kernel] in " ".join(each.missing for each in found)
    lines = Path(__file__).with_name("races.cu").read_text().splitlines()
    for each in found:
        for place in each.places:
            line = place.line
            assert line is not None
            above = [text for text in lines[:line] if text.startswith("KERNEL")]
            assert above[-1].split("(")[0].split()[-1] == kernel


@pytest.mark.parametrize("kernel", ["chain_of_blocks", "tile", "released_and_acquired"])
def test_more_meetings_than_the_check_counts_are_reported(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barrier_clocks, "MOST_EPOCHS", 1)
    with pytest.raises(ptx.emulate.Runaway, match='leave "race" out of the checks') as caught:
        found_in(kernel, 3, 256)
    assert caught.value.where.kernel == kernel


def test_what_blocks_read_before_the_last_one_is_executed_is_retained() -> None:
    found = found_in("cleared_by_the_last_block", 3, 256, chunk_threads=256)
    assert [each.first.what for each in found] == ["read"]


@all_rows
@pytest.mark.parametrize(("grid", "block"), SIZES)
@pytest.mark.parametrize("kernel", MEANT_SO)
def test_what_may_be_meant_so_is_distinguished(kernel: str, grid: int, block: int) -> None:
    found = found_in(kernel, grid, block)
    assert found
    assert all(MEANT_SO[kernel] in each.benign for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("order", [LaunchOrder("late"), LaunchOrder("random", 1)], ids=str)
def test_volatile_accesses_of_one_warp_are_noted_in_each_order(order: LaunchOrder) -> None:
    for kernel in ("reduction_by_volatile", "exchanged_by_volatile"):
        found = found_in(kernel, 3, 256, order=order)
        assert found
        assert {each.missing for each in found} == {"__syncwarp() or __syncthreads() between them"}
        assert {each.space for each in found} == {"shared"}
    for kernel in ("reduction_by_volatile_and_syncwarp", "flag_of_a_warp_by_volatile"):
        assert found_in(kernel, 3, 256, order=order) == []


@pytest.mark.parametrize("order", [LaunchOrder("late"), LaunchOrder("random", 1)], ids=str)
def test_the_values_of_late_stores_are_known_to_the_check(order: LaunchOrder) -> None:
    found = found_in("same_value_beside_a_flag", 3, 64, order=order)
    assert found
    assert [str(each) for each in found if each.benign != "both write the same value"] == []
    assert found_in("bit_set_by_volatile", 3, 64, order=order) == []


@pytest.mark.parametrize(
    "kernel",
    [
        "histogram", "last_block", "last_block_without_fence", "stencil", "stencil_in_place",
        "one_row_for_all_blocks", "one_row_added_to",
    ],
)  # fmt: skip
def test_findings_do_not_depend_on_which_blocks_run_together(kernel: str) -> None:
    places = [
        {
            tuple([place.line for place in each.places])
            for each in found_in(kernel, 6, 256, chunk_threads=threads)
        }
        for threads in (256, 512, 65536)
    ]
    assert bool(places[0]) == bool(places[1]) == bool(places[2])


def test_a_finding_names_both_accesses_and_the_memory() -> None:
    runner = KernelRunner(text())
    findings = Findings()
    a = runner.put(np.zeros(512, dtype=np.int32))
    o = runner.put(np.zeros(512, dtype=np.int32), origin="the result")
    runner.launch(
        "other_value", 2, 256, a, o, 512, limits=Limits(checks={"race"}, findings=findings)
    )
    finding = findings.found[0]
    assert (finding.check, finding.kernel, finding.space) == ("race", "other_value", "global")
    assert finding.address == o
    assert finding.nbytes == 4
    first, second = finding.places
    assert (first.what, second.what) == ("write", "write")
    assert first.where != second.where
    said = str(finding)
    assert "the result" in said
    assert said.count("races.cu:") == 2
    assert [line.split()[0] for line in said.splitlines()] == [
        "race:", "in", "write", "write", "nothing",
    ]  # fmt: skip


def test_what_an_mbarrier_counts_was_written_by_a_thread_of_the_launch() -> None:
    blocks = {(number, 0, 0) for number in range(3)}
    threads = {(number, 0, 0) for number in range(256)}
    for finding in found_in("copied_to_an_mbarrier_and_overwritten", 3, 256):
        for place in finding.places:
            assert place.where is not None
            assert place.where.block in blocks
            assert place.where.thread in threads
