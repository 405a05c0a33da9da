"""The campaigns find what they look for: planted faults of the library."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from campaigns.faults import case, scenarios
from campaigns.faults.campaign import NOT_TRIED
from campaigns.faults.case import Case, run_case, run_clean
from campaigns.faults.world import World, expect
from campaigns.leaks import repeat
from cudadrv import emulator
from cudadrv.driver.driver_api import FUNCTIONS
from cudadrv.errors import CudadrvError
from tests.patience import SECONDS

pytestmark = pytest.mark.slow

kept: list[object] = []


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    kept.clear()
    yield
    kept.clear()


def swallowing(world: World) -> None:
    try:
        world.a.zeros(4, "u4")
    except CudadrvError:
        pass


def untyped(world: World) -> None:
    try:
        world.a.zeros(4, "u4")
    except CudadrvError as error:
        raise ValueError("something was wrong") from error


def wrong(world: World) -> None:
    array = world.a.to_device(np.zeros(4, "u4"))
    try:
        world.a.fill(array, 1)
    except CudadrvError:
        expect(world.a.to_host(array), 1)


def losing(world: World) -> None:
    array = world.a.empty(4, "u4")
    try:
        world.a.fill(array, 1)
    except CudadrvError:
        kept.append(array)
        raise


def staying_broken(world: World) -> None:
    if kept:
        raise ZeroDivisionError
    try:
        world.a.zeros(4, "u4")
    except CudadrvError:
        kept.append(world)
        raise


@pytest.mark.parametrize(
    ("scenario", "found"),
    [
        (swallowing, "a lost error"),
        (untyped, "an untyped error"),
        (wrong, "a wrong value"),
        (losing, "left over: {'streams': '1 for 0', 'memory': '1 for 0'}"),
        (staying_broken, "the same again, without a fault: ZeroDivisionError"),
    ],
)
def test_what_does_not_hold_in_a_failing_call_is_found(
    scenario: Callable[[World], None], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scenarios.SCENARIOS, scenario.__name__, scenario)
    clean = run_clean(scenario.__name__, is_warm=False)
    function = next(name for name in clean.calls if name.startswith("cuMemset"))
    given = Case(scenario.__name__, function, 1, clean.calls[function], code=801, is_warm=False)
    assert any(text.startswith(found) for text in run_case(given, clean))


def test_a_case_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go, before = threading.Event(), set(threading.enumerate())
    monkeypatch.setattr(case, "SECONDS", 0.2)
    monkeypatch.setitem(scenarios.SCENARIOS, "hanging", lambda world: bool(let_go.wait(SECONDS)))
    with pytest.raises(case.HangingError, match="hangs"):
        run_case(Case("hanging", "cuEventCreate", 1, 1, 1, is_warm=False), case.Clean())
    let_go.set()
    for thread in set(threading.enumerate()) - before:
        thread.join()  # its session ends


def keep_an_object(world: World) -> None:
    kept.append([kept])


def keep_bytes(world: World) -> None:
    kept.extend(bytes(100) for _ in range(100))


def keep_a_stream(world: World) -> None:
    kept.append(world.near.new_stream())


@pytest.mark.parametrize(
    ("operation", "found"),
    [
        (keep_an_object, "objects of type list"),
        (keep_bytes, "more blocks of memory"),
        (keep_a_stream, "more streams of the driver"),
    ],
)
def test_what_grows_is_found(operation: Callable[[World], None], found: str) -> None:
    with emulator.session(devices=2) as machine:
        _, grown = repeat(operation, World(machine), 0.0)
    assert any(found in text for text in grown)


def test_every_function_of_the_driver_fails_in_some_scenario_or_is_named() -> None:
    called: set[str] = set()
    for scenario in scenarios.SCENARIOS:
        called |= run_clean(scenario, is_warm=False).calls.keys()
    assert set(FUNCTIONS) - called <= NOT_TRIED.keys()
