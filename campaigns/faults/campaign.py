"""All cases in an order that the seed gives, as many as the time allows."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator
from typing import Final

from ..report import Report
from .case import Case, Clean, HangingError, run_case, run_clean
from .scenarios import SCENARIOS

# Invalid value, out of memory, illegal address, not supported, unknown.
CODES: Final = (1, 2, 700, 801, 999)
# Functions that are not tried, by why.
NOT_TRIED: Final = {
    "cuFuncGetParamCount": "it is for machine code, and the emulator's images are PTX",
    "cuFuncGetParamInfo": "it is for machine code, and the emulator's images are PTX",
    "cuGraphChildGraphNodeGetGraph": "a trace alone calls it, for the names of a graph's kernels",
    "cuGraphKernelNodeGetParams": "a trace alone calls it, for the names of a graph's kernels",
    "cuKernelGetName": "a trace alone calls it, for the names of a graph's kernels",
    "cuGetErrorString": "it tells of a failure, and is asked for nothing else",
    "cuInit": "it is called before a failure can be planned",
    "cuIpcCloseMemHandle": "another process has to have made what it closes",
    "cuIpcOpenEventHandle": "another process has to have made what it opens",
    "cuIpcOpenMemHandle": "another process has to have made what it opens",
    "cuUserObjectRelease": "it is called where another call has failed, and one fails at a time",
    **dict.fromkeys(
        (
            "cuArray3DGetDescriptor",
            "cuGLGetDevices",
            "cuGraphicsGLRegisterBuffer",
            "cuGraphicsGLRegisterImage",
            "cuGraphicsMapResources",
            "cuGraphicsResourceGetMappedPointer",
            "cuGraphicsSubResourceGetMappedArray",
            "cuGraphicsUnmapResources",
            "cuGraphicsUnregisterResource",
        ),
        "the emulator has no OpenGL; tests/emulator/test_opengl.py lets each fail",
    ),
}


def run_campaign(seconds: float, seed: int) -> Report:
    """Let each function fail at its first, middle and last call, in each scenario."""
    try:
        return _attack(seconds, seed)
    finally:
        gc.unfreeze()


def _attack(seconds: float, seed: int) -> Report:
    outcome = Report(skipped=dict(NOT_TRIED))
    end = time.monotonic() + seconds
    chooser = random.Random(seed)
    kinds = [(name, is_warm) for name in SCENARIOS for is_warm in (False, True)]
    chooser.shuffle(kinds)
    waiting: list[tuple[Clean, list[Case]]] = []
    while time.monotonic() < end and (kinds or waiting):
        if kinds:
            # All scenarios are measured soon, so that a short run has something of each.
            waiting.append(_prepared(*kinds.pop(), chooser))
        for clean, cases in list(waiting):
            until = time.monotonic() + _SHARE
            for _ in range(min(_AT_ONCE, len(cases))):
                if time.monotonic() >= end:
                    return outcome
                if not _try(cases.pop(), clean, outcome):
                    return outcome
                if time.monotonic() >= until:
                    break  # a reset takes a hundred times as long as most cases
            if not cases:
                waiting.remove((clean, cases))
    return outcome


_AT_ONCE: Final = 3
_SHARE: Final = 0.2  # seconds of one scenario in a round


def _freeze() -> None:
    """Let no collection look at what there is already, which would take most of the time.

    A reset of a context ends that.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def _prepared(scenario: str, is_warm: bool, chooser: random.Random) -> tuple[Clean, list[Case]]:
    _freeze()
    clean = run_clean(scenario, is_warm)
    cases = [
        Case(scenario, function, nth, times, code, is_warm)
        for function, times in clean.calls.items()
        if function not in NOT_TRIED
        for nth in _places(times)
        for code in CODES
    ]
    chooser.shuffle(cases)
    return clean, cases


def _places(times: int) -> Iterator[int]:
    """The first, the middle and the last call."""
    yield from sorted({1, (times + 1) // 2, times})


def _try(case: Case, clean: Clean, outcome: Report) -> bool:
    """Whether the process may go on."""
    outcome.count(f"failing calls in scenario {case.scenario}")
    _freeze()
    try:
        outcome.failures += [f"{case}: {text}" for text in run_case(case, clean)]
    except HangingError as error:
        outcome.failures.append(str(error))
        return False
    return True
