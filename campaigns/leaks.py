"""Every public operation many times over: nothing may grow."""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

import cudadrv
from cudadrv import CudaError, emulator
from cudadrv.emulator.calls.call import state_of
from cudadrv.pool.workers import IDLE_SECONDS
from cudadrv.texture import CudaArray, Texture

from .faults.scenarios import ONE, PTX, SCENARIOS
from .faults.world import World, leftovers
from .report import Report

MOST_CYCLES: Final = 100_000
_WARM: Final = 12  # until caches are full: code is generated at the second launch
_ENOUGH: Final = 100  # to tell what grows from what is replaced
_TRIES: Final = 3
_SPARE: Final = 400  # blocks of memory by which the interpreter's own caches may differ


def allocate(world: World) -> None:
    world.a.empty(64, "u1")


def copy(world: World) -> None:
    world.a.to_host(world.a.to_device(np.zeros(4)))


def make_a_stream(world: World) -> None:
    world.near.new_stream().close()


def record(world: World) -> None:
    world.b.wait(world.a.record())


def make_a_context(world: World) -> None:
    cudadrv.Context.create(0).close()


def leave_circles(world: World) -> None:
    array = CudaArray(world.near, 9, "f4")
    circle: list[object] = [array, Texture(array), world.a.zeros(4, "u1"), world.near.new_stream()]
    circle.append(circle)


def launch_anew(world: World) -> None:
    kernel = world.near.load_module(PTX).kernel("bump")
    for _ in range(3):
        kernel.launch(world.a, ONE, world.a.zeros(1, "u4"))


def export(world: World) -> None:
    array = world.a.zeros(4, "f4")
    world.b.import_array(array)
    array.__dlpack__(stream=int(world.b.handle))


def fail(world: World) -> None:
    for failing in (lambda: world.near.load_module(b"nonsense"), lambda: world.a.alloc(1 << 50)):
        try:
            failing()
        except CudaError:
            continue
        raise AssertionError("it must fail")


def fail_to_destroy(world: World) -> None:
    stream = world.near.new_stream()
    with world.machine.fail("cuStreamDestroy", with_=1):
        try:
            stream.close()
        except CudaError:
            streams = state_of(world.machine).handles.streams
            del streams[int(next(reversed(streams)))]  # the driver's loss, not the library's


def break_off_a_capture(world: World) -> None:
    try:
        with world.a.capture():
            world.a.zeros(4, "u4")
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass


def hold_a_session(world: World) -> None:
    threads = threading.active_count()
    with emulator.session(devices=2) as machine:
        for name in ("launches", "scatter", "graphs", "clients"):
            SCENARIOS[name](World(machine))
    end = time.monotonic() + IDLE_SECONDS / 2
    while threading.active_count() > threads:  # its workers have been told to end
        if time.monotonic() > end:
            raise AssertionError("threads of a session have not ended with it")
        time.sleep(0.001)


def work_in_a_thread(world: World) -> None:
    thread = threading.Thread(target=SCENARIOS["small_copies"], args=(world,))
    thread.start()
    thread.join()


# A reset ends the `gc.freeze` of the process, and then all that was frozen seems to be new.
_NOT_REPEATED: Final = ("resets",)
OPERATIONS: Final[dict[str, Callable[[World], None]]] = {
    **{name: scenario for name, scenario in SCENARIOS.items() if name not in _NOT_REPEATED},
    **{
        operation.__name__: operation
        for operation in (
            allocate, copy, make_a_stream, record, make_a_context, leave_circles, launch_anew,
            export, fail, fail_to_destroy, break_off_a_capture, hold_a_session, work_in_a_thread,
        )
    },
}  # fmt: skip


def run_campaign(seconds: float, seed: int) -> Report:
    """Repeat each operation for its share of the time, at most 100,000 times."""
    outcome = Report()
    names = sorted(OPERATIONS)
    random.Random(seed).shuffle(names)
    end = time.monotonic() + seconds
    try:
        with emulator.session(devices=2) as machine:
            world = World(machine)
            for device in state_of(machine).devices.visible:
                # Freed memory that waits takes other pieces' place in other numbers each time, and
                # what is remembered of it other words' place.
                device.model.memory.quarantine_bytes = 0
                device.model.memory._ranges.freed = deque(maxlen=1)
            for number, name in enumerate(names):
                # What one operation leaves of its time the others have.
                share = (end - time.monotonic()) / (len(names) - number)
                cycles, grown = repeat(OPERATIONS[name], world, share)
                outcome.count(f"cycles of {name}", cycles)
                outcome.failures += [f"{name}, {cycles:,} cycles: {text}" for text in grown]
            world.close()
    finally:
        gc.unfreeze()
    return outcome


def repeat(
    operation: Callable[[World], None], world: World, seconds: float
) -> tuple[int, list[str]]:
    """Repeat an operation for about so long; gives how often, and what has grown."""
    for _ in range(_WARM):
        operation(world)
    before, cycles = _sizes(world), 0
    end = time.monotonic() + seconds
    while cycles < _WARM or (time.monotonic() < end and cycles < MOST_CYCLES):
        operation(world)
        cycles += 1
    after, more = _sizes(world), max(cycles, _ENOUGH)
    grown = after.grown(before, cycles)
    # What only fills a cache grows less and less, and what is new in another's place, such as what
    # an event remembers, does not grow with the cycles.
    for _ in range(_TRIES if grown else 0):
        for _ in range(more):
            operation(world)
        cycles += more
        before, after = after, _sizes(world)
        grown = after.grown(before, more)
        if not grown:
            break
    return cycles, grown


def _sizes(world: World) -> Sizes:
    """What there is now; what is there already counts no more as an object."""
    for _ in range(3):  # what a box destroys leaves circles of the emulator's behind it
        gc.collect()
    sizes = Sizes(world.machine)
    gc.freeze()
    return sizes


class Sizes:
    """What there is of everything now."""

    def __init__(self, machine: emulator.Emulator) -> None:
        self.driver = leftovers(machine)
        self.files = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
        self.threads = sum(not _helps_copies(each) for each in threading.enumerate())
        self.types = Counter(type(each).__qualname__ for each in gc.get_objects())
        self.blocks = sys.getallocatedblocks()
        self.resident = _resident_bytes()

    def grown(self, before: Sizes, cycles: int) -> list[str]:
        """What is more by so much that each cycle, or each second one, left something.

        `before` was taken before what there was then was frozen, which counts no more.
        """
        grown = [
            f"{more} more {kind} of the driver"
            for kind, count in self.driver.items()
            if (more := count - before.driver[kind]) > 0
        ]
        if self.files > before.files:
            grown.append(f"{self.files - before.files} more open files")
        if self.threads > before.threads:
            grown.append(f"{self.threads - before.threads} more threads")
        grown += [
            f"{count} objects of type {name}"
            for name, count in self.types.items()
            if count >= max(cycles // 2, _WARM)
        ]
        if self.blocks - before.blocks > cycles // 2 + _SPARE:
            grown.append(f"{self.blocks - before.blocks} more blocks of memory")
        # Pages come and go by the mebibyte; what leaks shows over many cycles.
        if self.resident - before.resident > (64 << 20) + 100 * cycles:
            grown.append(f"{(self.resident - before.resident) >> 20} MiB more")
        return grown


def _helps_copies(thread: threading.Thread) -> bool:
    """Whether it is one of the threads that are kept, so many a processor at most."""
    return thread.name == "cudadrv-staging"


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
