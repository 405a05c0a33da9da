"""The recorded PTX gives the recorded bits: on the emulator, and on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

import cudadrv
import ptx
from tests.emulator.differential.case import Case, Source
from tests.emulator.differential.comparison import compare
from tests.emulator.differential.corpus import sources
from tests.emulator.differential.execution import machine, run
from tests.emulator.differential.recording import Recording, path_of
from tests.short_cases import few


@dataclass(frozen=True)
class Loaded:
    """A source's recording, and its PTX on the device."""

    recording: Recording
    module: cudadrv.Module
    stream: cudadrv.Stream


@contextmanager
def loaded(source: Source) -> Iterator[Loaded]:
    if not path_of(source).exists():
        pytest.skip("no GPU has recorded this source yet")
    recording = Recording.load(path_of(source))
    with machine() as context:
        target = ptx.Target.cubin(recording.target)
        least, own = target.compute_capability, context.device.compute_capability
        if own < least or (target.suffix and own != least):
            only = " and no other" if target.suffix else ""
            pytest.skip(f"needs a device of compute capability {least[0]}.{least[1]}{only}")
        with context.new_stream() as stream, context.load_module(recording.ptx) as module:
            yield Loaded(recording, module, stream)


@pytest.mark.parametrize(
    "every", [8, pytest.param(1, marks=pytest.mark.slow)], ids=["an eighth", "all"]
)
@pytest.mark.parametrize("source", few(sources(), 3), ids=lambda source: source.name)
def test_results_are_those_of_the_gpu(source: Source, every: int) -> None:
    with loaded(source) as its:
        found = {case.name: problems_of(its, case) for case in source.cases[::every]}
    assert {name: problems for name, problems in found.items() if problems} == {}


def problems_of(its: Loaded, case: Case) -> tuple[str, ...]:
    try:
        got = run(its.module, its.stream, case)
    except cudadrv.CudadrvError as error:
        return (f"{type(error).__name__}: {error}",)
    return compare(case, its.recording.results[case.name], got).problems
