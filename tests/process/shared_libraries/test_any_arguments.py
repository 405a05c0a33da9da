"""Each exported function of the stand-ins, with any arguments, in every way to call it.

The process goes on: no function crashes it, hangs, or raises.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.any_arguments import (
    NATIVE_WAYS,
    WAYS,
    Trial,
    build,
    compiler,
    runs_native_programs,
)

LEAST_CALLS = 10_000
SUCCEED = 250
"""Functions that succeed in the ways in which the driver works, with live handles."""


def _trials(folder: Path, ways: tuple[str, ...], first_seed: int, *, native: bool) -> list[Trial]:
    if compiler() is None:
        pytest.skip("needs a compiler of C")
    built = build(folder, native=native)
    return [
        Trial(folder / way, built, way, seed, native=native)
        for seed, way in enumerate(ways, first_seed)
    ]


def _check(trials: list[Trial]) -> None:
    assert "\n".join(trial.wrong for trial in trials if trial.wrong) == ""
    assert min(trial.calls for trial in trials) > LEAST_CALLS
    assert max(len(trial.worked) for trial in trials) > SUCCEED


@pytest.mark.slow
def test_each_function_returns_whatever_its_arguments_are(tmp_path: Path) -> None:
    _check(_trials(tmp_path, WAYS, 101, native=False))


@pytest.mark.slow
@pytest.mark.skipif(
    not runs_native_programs(), reason="needs x86-64 and a Python with a shared library"
)
def test_each_function_returns_in_programs_without_python(tmp_path: Path) -> None:
    _check(_trials(tmp_path, NATIVE_WAYS, 201, native=True))
