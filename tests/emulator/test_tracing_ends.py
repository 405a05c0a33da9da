"""That a trace puts the driver's functions back, whatever ends it or keeps it from beginning."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import cudadrv
from campaigns.interrupts.points import Interrupter
from cudadrv import emulator, tracing
from cudadrv.driver.driver_selection import Driver, current
from cudadrv.errors import InvalidValueError
from cudadrv.tracing import Trace, trace
from cudadrv.tracing.recording import TracedApi
from tests.several_threads import all_at_once

from .test_tracing import spans, written


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session() as machine:
        yield machine


class Renewing:
    """Stands for a launcher; raises what it is given when it is to take the functions anew."""

    def __init__(self, driver: Driver, *raised: BaseException | None) -> None:
        self.raised = list(raised)
        self.times = 0
        driver.launchers.add(self)

    def on_owner_closed(self, owner: object) -> None:
        """Nothing is held."""

    def reset(self) -> None:
        self.times += 1
        error = self.raised.pop(0) if self.raised else None
        if error is not None:
            raise error


def test_an_error_in_the_block_passes_and_the_file_is_written(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    with pytest.raises(ZeroDivisionError), trace(tmp_path / "trace.json"):
        _ = 1 / 0
    assert current().api is machine
    assert written(tmp_path / "trace.json")["traceEvents"]


def test_a_file_that_cannot_be_written_is_reported_at_once(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        trace(tmp_path / "missing" / "trace.json").__enter__()
    assert current().api is machine
    with trace(tmp_path / "trace.json"):
        pass


def test_an_interrupt_while_entering_leaves_the_driver_as_it_was(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    driver = current()
    one = Renewing(driver, KeyboardInterrupt())
    others = [Renewing(driver), Renewing(driver)]
    recording = trace(tmp_path / "trace.json")
    with pytest.raises(KeyboardInterrupt):
        recording.__enter__()
    assert driver.api is machine
    assert [other.times for other in others] == [2, 2]
    del one
    with recording:
        assert driver.api is not machine
    assert driver.api is machine


def test_an_interrupt_while_leaving_leaves_the_driver_as_it_was(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    driver = current()
    one = Renewing(driver, None, KeyboardInterrupt())
    other = Renewing(driver)
    path = tmp_path / "trace.json"
    with pytest.raises(KeyboardInterrupt), trace(path) as recording, recording.span("mine"):
        pass
    assert (one.times, other.times) == (3, 3)  # the second time for the interrupt
    assert driver.api is machine
    assert spans(tmp_path / "trace.json", device=False) == ["mine"]


def in_tracing(code: CodeType) -> bool:
    return os.path.dirname(code.co_filename) == os.path.dirname(tracing.__file__)


def trace_once(path: Path, stream: cudadrv.Stream, array: cudadrv.DeviceArray[Any]) -> None:
    with trace(path):
        stream.fill(array, 1)


@pytest.fixture
def without_collections() -> Iterator[None]:
    """What interrupts a finalizer that a collection calls goes no further."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.usefixtures("without_collections")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # those of broken traces
def test_an_interrupt_at_any_point_leaves_the_driver_as_it_was(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    stream = cudadrv.cuda_context_for(0).new_stream()
    array = stream.zeros(4, "u1")
    path = tmp_path / "trace.json"
    for number in range(2000):
        interrupter = Interrupter(number, in_tracing)
        if not interrupter.run(lambda: trace_once(path, stream, array)):
            break
        if current().api is not machine:
            gc.collect()  # an interrupt before the first line of `__exit__`
        assert current().api is machine, interrupter.place
    gc.collect()
    assert 100 < number < 1999
    stream.fill(array, 2)
    assert stream.to_host(array).tolist() == [2] * 4


def test_a_trace_that_was_never_left_ends_when_it_goes(
    machine: emulator.Emulator, tmp_path: Path
) -> None:
    with pytest.warns(ResourceWarning, match="unclosed file"):  # that of the trace
        trace(tmp_path / "trace.json").__enter__()
    assert current().api is machine
    with trace(tmp_path / "trace.json"):
        assert current().api is not machine


def test_of_two_threads_one_records(machine: emulator.Emulator, tmp_path: Path) -> None:
    start = threading.Barrier(4)
    refused: list[int] = []
    entered: list[Trace] = []

    def enter(number: int) -> None:
        recording = trace(tmp_path / f"{number}.json")
        start.wait()
        try:
            entered.append(recording.__enter__())
        except InvalidValueError:
            refused.append(number)

    all_at_once([partial(enter, number) for number in range(4)])
    (recording,) = entered
    assert recording.path is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == [recording.path.name]
    with pytest.raises(InvalidValueError, match="already"):
        recording.__enter__()
    assert isinstance(current().api, TracedApi)
    recording.__exit__(None, None, None)
    assert current().api is machine
