"""The recorded PTX gives the recorded bits: on the emulator, and on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import cudadrv
import ptx
from tests.differential.case import Case, Source
from tests.differential.comparison import compare
from tests.differential.corpus import sources
from tests.differential.execution import machine, run
from tests.differential.recording import Recording, path_of

CASES = [(source, case) for source in sources() for case in source.cases]


@dataclass(frozen=True)
class Loaded:
    """A source's recording, and its PTX on the device."""

    recording: Recording
    module: cudadrv.Module
    stream: cudadrv.Stream


@pytest.fixture(scope="module")
def loaded(request: pytest.FixtureRequest) -> Iterator[Loaded]:
    source: Source = request.param
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
    ("loaded", "case"),
    CASES,
    indirect=["loaded"],
    ids=[f"{source.name}/{case.name}" for source, case in CASES],
)
def test_results_are_those_of_the_gpu(loaded: Loaded, case: Case) -> None:
    got = run(loaded.module, loaded.stream, case)
    comparison = compare(case, loaded.recording.results[case.name], got)
    assert comparison.problems == ()
