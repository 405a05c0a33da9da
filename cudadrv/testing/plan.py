"""`CudaTestPlan`: the needs of one test, by its markers and fixtures, and its session."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from inspect import signature
from typing import Final, Literal

import pytest

from .. import border
from ..errors import ArgumentValueError
from .choices import CHECK, Choices, profile_named

Place = Literal["gpu", "emulator"]

# Every fixture of the plugin needs the first; those that need the emulator, the second too.
CUDA_TEST: Final = "_cuda_test"
CUDA_EMULATOR: Final = "_cuda_emulator"

MARKERS: Final = (
    "gpu(*, real=False): the test needs a CUDA device, emulated or not; a real one with real=True",
    "multi_gpu(n, *, real=False): the test needs n CUDA devices",
    "emulated(*, profile, devices, order, seed, check, ..., seeds): the test runs on the emulator, "
    "with these arguments of cudadrv.emulator.session; with seeds=N once for each of N seeds",
    "may_leak(reason): the test may leave memory, streams, events and modules behind",
    "cuda_budget: the test needs a CUDA device; with --cuda-budget it runs on the emulator, and "
    "the counts of its kernels are compared with budget.json beside it",
)


@dataclass(frozen=True, slots=True)
class CudaTestPlan:
    """The needs of a test.

    Attributes:
        place: where it must run; None if the run decides.
        gpus: the number of devices that it needs.
        arguments: those of `emulated`.
        may_leak: True if it may leak.
        seeds: its number of seeds, 0 for one run; None if the run decides.
        counts: True if its kernels are counted for its budget.
    """

    place: Place | None
    gpus: int
    arguments: Mapping[str, object]
    may_leak: bool
    seeds: int | None = None
    counts: bool = False

    def leaks_count(self, choices: Choices) -> bool:
        """Return True if the test fails when it leaks."""
        return choices.leaks_fail and not self.may_leak


def plan_of(node: pytest.Item, fixtures: Collection[str], choices: Choices) -> CudaTestPlan | None:
    """Return the plan of a test; None if it needs no CUDA.

    Raises:
        ArgumentValueError: its markers are wrong.
    """
    emulated = list(node.iter_markers("emulated"))
    gpu, multi_gpu = node.get_closest_marker("gpu"), node.get_closest_marker("multi_gpu")
    budget = node.get_closest_marker("cuda_budget")
    counts = budget is not None and choices.budget != "off"
    needs_emulator = bool(emulated) or CUDA_EMULATOR in fixtures or counts
    if not (needs_emulator or gpu or multi_gpu or budget or CUDA_TEST in fixtures):
        return None
    is_real = [_is_real(mark) for mark in (gpu, multi_gpu) if mark is not None]
    if any(is_real) and needs_emulator:
        raise ArgumentValueError("the test asks for a real GPU, and for the emulator")
    arguments: dict[str, object] = {}
    for marker in reversed(emulated):  # the nearest one decides
        if marker.args:
            raise ArgumentValueError("emulated: name the arguments, as in emulated(devices=2)")
        arguments |= marker.kwargs
    place: Place | None = "emulator" if needs_emulator else "gpu" if any(is_real) else None
    may_leak = node.get_closest_marker("may_leak") is not None
    gpus = 1 if multi_gpu is None else _count(multi_gpu)
    seeds = _take_seeds(arguments)
    if counts:  # in one order, as an order can change what a kernel executes
        arguments.pop("seed", None)
        arguments["order"], seeds = "immediate", 0
    return CudaTestPlan(place, gpus, arguments, may_leak, seeds, counts)


def unmarked(node: pytest.Item) -> CudaTestPlan:
    """Return the plan of a test without a marker or fixture that says what it needs."""
    return CudaTestPlan(None, 1, {}, may_leak=node.get_closest_marker("may_leak") is not None)


def _take_seeds(arguments: dict[str, object]) -> int | None:
    """Remove `seeds`, which is no argument of a session, from the arguments of `emulated`."""
    has_order = bool(arguments.keys() & {"order", "seed"})
    match arguments.pop("seeds", None):
        case None:
            return 0 if has_order else None
        case int(seeds) if seeds > 0:
            if has_order:
                raise ArgumentValueError("emulated: seeds goes without order and seed")
            return seeds
        case wrong:
            raise ArgumentValueError(f"emulated: seeds is {wrong}: give how many seeds, from 1")


def _is_real(marker: pytest.Mark) -> bool:
    wrong = marker.kwargs.keys() - {"real"}
    if wrong or (marker.name == "gpu" and marker.args):
        form = "gpu(real=True)" if marker.name == "gpu" else "multi_gpu(2, real=True)"
        raise ArgumentValueError(f"{marker.name}: takes nothing but {form}")
    return bool(marker.kwargs.get("real"))


def _count(marker: pytest.Mark) -> int:
    match marker.args:
        case (int(count),) if count > 0:
            return count
    raise ArgumentValueError("multi_gpu: give the number of devices, as in multi_gpu(2)")


def session_arguments(plan: CudaTestPlan, choices: Choices) -> dict[str, object]:
    """Return the arguments of `cudadrv.emulator.session` for a test.

    Raises:
        ArgumentValueError: an argument or a profile is unknown.
    """
    from ptx.emulate import DEFAULT_LIMITS  # which loads the emulator

    from ..emulator import DeviceProperties, EmulatedDevice, session
    from ..emulator.checks import Checks

    known_names = {"profile", *signature(session).parameters, *DeviceProperties.__annotations__}
    _reject_unknown(plan.arguments, known_names - {"raise_findings", "properties"})
    if plan.counts:  # a budget depends on the test alone, not on the run's devices
        choices = replace(choices, profile="", devices=1)
    arguments = dict(plan.arguments)
    profile = arguments.pop("profile", choices.profile or EmulatedDevice())
    if not isinstance(profile, EmulatedDevice):
        profile = profile_named(profile)
    devices = arguments.pop("devices", choices.devices)
    if hasattr(devices, "__index__"):
        names = arguments.keys() & DeviceProperties.__annotations__.keys()
        properties = {name: arguments.pop(name) for name in names}
        # The values are the marker's; `EmulatedDevice` checks them.
        device = replace(profile, **properties)  # type: ignore[arg-type]
        count = border.int_in_range("devices", devices)
        devices = (device,) * max(count, plan.gpus)
    elif "profile" in plan.arguments:
        raise ArgumentValueError("give a profile, or the devices themselves")
    # The values are the marker's here as well.
    check: str | Sequence[str] | None = arguments.pop("check", None)  # type: ignore[assignment]
    if check is None and CHECK not in os.environ:
        check = [name for name in Checks.default() if name == "assemble"]
    names = set(Checks.chosen(DEFAULT_LIMITS, check).names) - {"leak"}
    if plan.leaks_count(choices):
        names.add("leak")
    return {"devices": devices, "check": sorted(names), **arguments}


def _reject_unknown(arguments: Mapping[str, object], names: set[str]) -> None:
    """Raise for arguments that `emulated` does not have."""
    for name in sorted(arguments.keys() - names):
        close = get_close_matches(name, names, 1)
        suggestion = f": did you mean {close[0]!r}?" if close else ""
        raise ArgumentValueError(
            f"it takes no argument {name!r}{suggestion}\n  it takes {', '.join(sorted(names))}"
        )
