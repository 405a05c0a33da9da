"""Each operation, interrupted at one point after the other."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import random
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import cudadrv
from cudadrv import emulator
from cudadrv.driver.driver_selection import current
from cudadrv.emulator.calls.call import state_of
from tests.bump_kernel import PTX

from ..report import Report
from .operations import OPERATIONS
from .place import Operation, Place
from .points import Interrupter

# A check that takes longer waits for a lock that an interrupt left behind.
_SECONDS: Final = 30.0


def open_captures() -> int:
    """How many streams capture, where that can be counted: on the emulator."""
    api = current().api
    return len(state_of(api).captures.active) if isinstance(api, emulator.Emulator) else 0


def attempt(operation: Operation, number: int, lab: Lab) -> tuple[Interrupter, str | None]:
    """Interrupt an operation at one point; gives what did not hold."""
    interrupter = Interrupter(number)
    place = lab.place()
    fault = None
    try:
        act, check = operation(place)
        try:
            hit = interrupter.run(act)
        except Exception as error:
            return interrupter, f"the call raises {type(error).__name__}: {error}"
        fault = lab.fault_of(place, check, done=not hit)
    finally:
        with contextlib.suppress(cudadrv.CudadrvError):
            place.close()
    return interrupter, fault


def usable(place: Place) -> None:
    """Later operations work, on the same streams and on a new one."""
    new = place.context.new_stream()
    for number, stream in enumerate((place.stream, place.other, new)):
        array = stream.zeros(4, "i4")
        stream.fill(array, number)
        assert stream.to_host(array).tolist() == [number] * 4
        stream.synchronize()
    new.close()


class Lab:
    """An emulator of its own, or the GPU, with what operations need, and the former counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules = [cudadrv.cuda_context_for(0).load_module(PTX)]
        self._swallowed = itertools.count()
        # Of C, so that no interrupt comes into it.
        self.hook: Callable[[object], object] = partial(next, self._swallowed)

    @property
    def swallowed(self) -> int:
        """How many errors and interrupts finalizers could not raise."""
        found = self._swallowed.__reduce__()[1]
        return int(found[0])

    def place(self) -> Place:
        """Where an attempt runs."""
        return Place(self._folder, self._modules)

    def fault_of(self, place: Place, check: Callable[[bool], None], *, done: bool) -> str | None:
        """What a check raises, or that it waits for a lock, in a thread of its own."""
        faults: list[str] = []

        def run() -> None:
            try:
                place.context.bind()
                check(done)
                usable(place)
            except BaseException as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(last.filename).name}:{last.lineno}, {last.line}"
                faults.append(f"{type(error).__name__}: {error} ({where})")

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(_SECONDS)
        if thread.is_alive():
            frames = sys._current_frames()  # of each thread: one of them holds what is waited for
            stacks = ("".join(traceback.format_stack(frame)) for frame in frames.values())
            return "a later operation hangs\n" + "\n".join(stacks)
        return faults[0] if faults else None

    def settle(self) -> int:
        """Give back what is dropped; return how many captures are open then."""
        for _ in range(2):
            gc.collect()
            for device in cudadrv.list_devices():
                cudadrv.cuda_context_for(device.ordinal).synchronize()
        cudadrv.cuda_context_for(0)
        return open_captures()


@contextlib.contextmanager
def laboratory() -> Iterator[Lab]:
    """A lab, and nothing of it afterwards."""
    emulated = cudadrv.list_devices()[0].is_emulated
    with contextlib.ExitStack() as around, tempfile.TemporaryDirectory() as folder:
        if emulated:
            around.enter_context(emulator.session(devices=2))
        former = sys.unraisablehook
        around.callback(setattr, sys, "unraisablehook", former)
        lab = Lab(Path(folder))
        sys.unraisablehook = lab.hook
        gc.collect()
        gc.freeze()
        yield lab
        lab._modules.clear()


class Progress:
    """Which points of an operation were tried.

    Attributes:
        name: of the operation.
        count: how many points it has; None before it ran once.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.count: int | None = None
        self._tried: set[int] = set()

    @property
    def is_done(self) -> bool:
        """Whether all were."""
        return self.count is not None and len(self._tried) >= self.count

    def go_on(self, outcome: Report, chosen: random.Random, until: float, most: int) -> None:
        """Try some more points in a lab of their own, which ends at the first fault."""
        operation = OPERATIONS[self.name]
        with laboratory() as lab:
            for _ in range(2):  # uninterrupted, so that what is kept is there
                interrupter, fault = attempt(operation, 1 << 60, lab)
                if fault is not None:
                    self._fail(outcome, f"{self.name}, not interrupted: {fault}")
                    return
            self.count = interrupter.points
            before = lab.settle()
            left = [number for number in range(self.count) if number not in self._tried]
            chosen.shuffle(left)
            for number in left[:most]:
                self._tried.add(number)
                outcome.count(self.name)
                interrupter, fault = attempt(operation, number, lab)
                if fault is None and lab.settle() > before:
                    fault = "a capture is left open"
                if fault is not None:
                    text = f"{self.name}, point {number} ({interrupter.place}): {fault}"
                    self._fail(outcome, text, ends="hangs" in fault)
                    return  # the lab is spoilt
                if time.monotonic() > until:
                    return

    def _fail(self, outcome: Report, text: str, *, ends: bool = True) -> None:
        outcome.failures.append(text)
        if ends:
            self.count = 0


def some_points(name: str, most: int) -> Report:
    """Interrupt one operation at each of its points, or at some of them if there are more."""
    outcome, progress = Report(), Progress(name)
    progress.go_on(outcome, random.Random(1), math.inf, most)
    return outcome


def attack_points(outcome: Report, until: float, seed: int) -> None:
    """Try the points of all operations in an order of the seed's; all of them, if there is time."""
    chosen = random.Random(seed)
    left = [Progress(name) for name in OPERATIONS]
    while left:
        chosen.shuffle(left)
        for progress in left:
            if time.monotonic() > until:
                return
            progress.go_on(outcome, chosen, until, 20)
        left = [progress for progress in left if not progress.is_done]
