"""Ways back: what is repeated, what is known without a repetition, and how they are interrupted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from cudadrv.debugger.debuggee import MOST_COPIES, NEAR
from cudadrv.debugger.debugger import (
    DebuggedProgram,
    Debugger,
    DebuggerError,
    on_interrupt,
)
from cudadrv.debugger.inspector import thread_id
from cudadrv.debugger.terminal import Commands

from .programs import ENDLESS, LONG, MANY_LAUNCHES, THREE_LAUNCHES

ROUNDS = 3000  # of a loop; enough for a few copies of the process

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs copies of a process")


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Debugger]:
    """A kernel of which a warp runs without end, while another one waits for it."""
    file = tmp_path / "spin.py"
    file.write_text(ENDLESS)
    debugger = Debugger(DebuggedProgram(str(file)), lambda *_: None)
    commands = Commands(debugger)
    commands.run(f"break spin.cu:8 if n == {ROUNDS}")
    said = commands.run("continue")
    assert "thread (0, 0, 0)" in said
    assert "#0 spin at spin.py:" in said
    commands.run("delete")
    yield debugger
    debugger.close()


@needs_fork
@pytest.mark.slow
def test_a_step_back_of_a_thread_that_waits_long_repeats_the_run_once(endless: Debugger) -> None:
    commands = Commands(endless)
    assert endless.stop is not None
    commands.choose(2)
    commands.run("thread 40")
    said = commands.run("rnext")
    assert "thread (40, 0, 0)" in said
    assert "spin.py:13 " in said  # the barrier that it waits at
    ordered = sorted(endless.searched)
    assert len(ordered) > 2
    assert all(end <= start for (_, end), (start, _) in pairwise(ordered))


class Interrupting(list[tuple[int, int]]):
    """The parts that a search repeats; interrupts it when it begins the first one."""

    def __init__(self, interrupt: Callable[[], object]) -> None:
        super().__init__()
        self._interrupt = interrupt

    def append(self, part: tuple[int, int]) -> None:
        if not self:
            self._interrupt()
        super().append(part)


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("way", ["pause", "Ctrl-C"])
def test_a_way_back_ends_when_it_is_interrupted(endless: Debugger, way: str) -> None:
    commands = Commands(endless)
    commands.choose(2)
    commands.run("break spin.cu:8 if n == -1")
    before = endless.stop
    interrupt = endless.pause if way == "pause" else lambda: signal.raise_signal(signal.SIGINT)
    endless.searched = Interrupting(interrupt)
    with (
        on_interrupt(endless.pause),
        pytest.raises(DebuggerError, match="interrupted: the threads are where they were"),
    ):
        commands.run("rcontinue")
    assert endless.stop is before
    assert commands.run("print threadIdx.x") == "0"
    commands.run("delete")
    assert "spin.py:" in commands.run("rstepi")


@needs_fork
@pytest.mark.slow
def test_copies_are_made_at_the_same_instructions_in_each_run(tmp_path: Path) -> None:
    """However long something takes. Their number is bounded, and they are about as far apart."""
    file = tmp_path / "spin.py"
    file.write_text(ENDLESS)
    runs = []
    for stops in ("break spin.cu:8 if n % 10000 == 9999", "break spin.cu:8 if n == 39999"):
        debugger = Debugger(DebuggedProgram(str(file)), lambda *_: None)
        commands = Commands(debugger)
        try:
            commands.run(stops)
            while commands.run("continue") and commands.run("print n") != "39999":
                pass
            commands.run("delete")
            commands.run("break spin.cu:8 if n == -1")  # which is searched for everywhere
            commands.run("rcontinue")
            runs.append((debugger.copies_made, debugger.searched))
        finally:
            debugger.close()
    assert runs[0] == runs[1]
    made, searched = runs[0]
    assert made > MOST_COPIES
    assert len(searched) <= MOST_COPIES
    lengths = [end - start for start, end in searched]
    assert max(lengths) < 3 * sum(lengths) / len(lengths)


@needs_fork
@pytest.mark.slow
def test_parts_of_a_run_without_a_breakpoints_line_are_skipped(endless: Debugger) -> None:
    assert endless.copies_made > 2
    commands = Commands(endless)
    commands.run("break spin.cu:4")
    assert "spin.py:8 " in commands.run("rcontinue")
    assert len(endless.searched) == 1


@needs_fork
@pytest.mark.slow
def test_steps_back_after_the_first_one_repeat_little(endless: Debugger) -> None:
    commands = Commands(endless)
    commands.choose(thread_id(endless.stop.thread) if endless.stop is not None else None)
    commands.run("rnext")
    endless.searched.clear()
    for step in ("rnext", "rstepi", "rnext"):
        assert "spin.py:" in commands.run(step)
    assert sum(end - start for start, end in endless.searched) < 3 * 2 * NEAR


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("step", ["next", "step", "stepi"])
def test_steps_back_are_the_steps_forwards_in_reverse(tmp_path: Path, step: str) -> None:
    """Down to the thread's first line, where nothing earlier can be repeated."""
    file = tmp_path / "long.py"
    file.write_text(LONG)
    debugger = Debugger(DebuggedProgram(str(file)), lambda *_: None)
    commands = Commands(debugger)
    try:
        commands.run("break loop")
        commands.run("continue")
        commands.run("delete")
        places = [commands.run("thread 5"), *(commands.run(step) for _ in range(20))]
        back = [commands.run(f"r{step}") for _ in range(20)]
        last = back.pop()
        assert back == places[-2:0:-1]
        assert last.splitlines()[-2:] == places[0].splitlines()
    finally:
        debugger.close()


@needs_fork
@pytest.mark.slow
def test_stops_that_were_made_are_found_without_a_search(tmp_path: Path) -> None:
    """Also when a search has found them; other breakpoints are searched for."""
    file = tmp_path / "three.py"
    file.write_text(THREE_LAUNCHES)
    debugger = Debugger(DebuggedProgram(str(file)), lambda *_: None)
    commands = Commands(debugger)
    try:
        commands.run("break three.cu:13 if i % 2 == 0 && i > 7")
        stops = [commands.run("continue") for _ in range(2)]
        assert "thread (8, 0, 0)" in stops[0]
        assert commands.run("rcontinue") == stops[0]
        assert commands.run("rcontinue").startswith("entry: ")
        assert not debugger.searched
        commands.run("continue")
        commands.run("continue")
        commands.run("break three.cu:9 thread 9")
        found = commands.run("rcontinue")
        assert debugger.searched
        again = commands.run("continue"), commands.run("rcontinue")
        assert again[1] == found
    finally:
        debugger.close()


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("place", ["watch y[3]", "break count"])
def test_stops_that_cannot_be_repeated_are_not_left_out_silently(
    tmp_path: Path, place: str
) -> None:
    """Few launches of many have a copy of the process."""
    file = tmp_path / "many.py"
    file.write_text(MANY_LAUNCHES)
    debugger = Debugger(DebuggedProgram(str(file)), lambda *_: None)
    commands = Commands(debugger)
    try:
        commands.run("break last")
        commands.run("continue")
        commands.run("delete")
        commands.run(place)
        former, steps = 40, []
        while "nothing earlier can be repeated" not in (said := commands.run("rcontinue")):
            value = int(commands.run("print y[3]"))
            steps.append((former - value, "launches after this one cannot be repeated" in said))
            former = value
        assert all(has_note == (step > 1) for step, has_note in steps), steps
        assert any(has_note for _, has_note in steps)
        former, steps = 0, []
        for _ in range(40):
            said = commands.run("continue")
            if debugger.status is not None:
                break
            value = int(commands.run("print y[3]"))
            steps.append((value - former, "launches before this one cannot be repeated" in said))
            former = value
        assert all(has_note == (step > 1) for step, has_note in steps[1:]), steps
        assert any(has_note for _, has_note in steps)
    finally:
        debugger.close()
