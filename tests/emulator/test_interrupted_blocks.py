"""A block that an interrupt ends at any point of its entry or exit leaves the state before it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
from campaigns.interrupts.points import Interrupter
from cudadrv import emulator
from cudadrv.driver.driver_selection import current, current_or_none
from cudadrv.emulator.calls.call import state_of
from cudadrv.memory.resource import _block
from tests.at_each_line import Line, raising

from .calls import ok

Block = contextlib.AbstractContextManager[Any]


def current_context() -> int:
    return int(ok(current().api.cuCtxGetCurrent()))


# By name: makes the block, and the state that it changes for its time.
BLOCKS: Final[dict[str, tuple[Callable[[], Block], Callable[[], object]]]] = {
    "using_memory": (lambda: cudadrv.using_memory(cudadrv.memory.CountedMemory()), _block.get),
    "bound": (lambda: cudadrv.cuda_context_for(1).bound(), current_context),
    "session": (emulator.session, current_or_none),
    "unordered": (
        lambda: cudadrv.cuda_context_for(0).default_stream.unordered(),
        lambda: cudadrv.cuda_context_for(0).default_stream._handle.unordered,
    ),
}


# A session has a thousand points.
SLOW: Final = ("session",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in BLOCKS]
)
def test_an_interrupt_of_a_block_leaves_the_state_before_it(name: str) -> None:
    make, state = BLOCKS[name]
    with emulator.session(devices=2):
        cudadrv.cuda_context_for(1)
        cudadrv.cuda_context_for(0).bind()

        def act() -> None:
            with make():
                pass

        act()
        before = state()
        whole = Interrupter(1 << 60)
        whole.run(act)
        assert whole.points > 2
        for number in range(whole.points):
            interrupter = Interrupter(number)
            interrupter.run(act)
            assert state() == before, interrupter.place


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("is_before", [True, False])
def test_an_interrupted_end_of_a_registration_is_made_up_for(
    is_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory at the address could not be registered again."""
    with emulator.session():
        here = np.zeros(16, np.int32)
        registered = cudadrv.memory.RegisteredArray(here)
        api = current().api
        unregister = api.cuMemHostUnregister

        def interrupted(address: int) -> object:
            monkeypatch.setattr(api, "cuMemHostUnregister", unregister)
            if not is_before:
                ok(unregister(address))
            raise KeyboardInterrupt

        monkeypatch.setattr(api, "cuMemHostUnregister", interrupted)
        registered.close()
        del registered
        for _ in range(2):
            with cudadrv.memory.RegisteredArray(here):
                pass


def test_an_interrupt_where_counting_begins_leaves_no_counter() -> None:
    entered: list[emulator.Counters] = []

    def act(machine: emulator.Emulator) -> None:
        with machine.counting() as counters:
            entered.append(counters)

    with emulator.session(devices=2) as machine:
        for number in itertools.count():
            line = Line(number, ["emulator/emulator.py"], raising(KeyboardInterrupt))
            with contextlib.suppress(KeyboardInterrupt):
                line.run(partial(act, machine))
            if entered:
                break
            devices = state_of(machine).devices.visible
            assert [device.counters for device in devices] == [(), ()], line.place
    assert number > 5


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_line_of_the_release_of_a_registration_is_made_up_for() -> None:
    here = np.zeros(16, np.int32)
    kept = [here]
    with emulator.session():
        for number in itertools.count():
            registered = cudadrv.memory.RegisteredArray(here)
            files = ["driver/context_handle.py", "driver/handle.py"]
            line = Line(number, files, raising(KeyboardInterrupt))
            with contextlib.suppress(KeyboardInterrupt):
                line.run(registered.close)
            registered.close()  # an interrupt may come before it begins
            del registered
            if not line.place:
                break
            if line.place.endswith("__del__"):  # nothing of it has begun
                kept.append(here)
                here = np.zeros(16, np.int32)
            with cudadrv.memory.RegisteredArray(here):
                pass
    assert number > 20
