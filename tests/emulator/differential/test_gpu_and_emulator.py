"""The recorded PTX gives the recorded bits: on the emulator, and on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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

CASES = [(source, case) for source in sources() for case in source.cases]


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


@pytest.fixture(scope="module")
def latest() -> Iterator[Callable[[Source], Loaded]]:
    """Gives a source, loaded, again and again until another is asked for.

    As a fixture with the source as its parameter it would be loaded for each case.
    """
    with ExitStack() as stack:
        found: dict[str, Loaded] = {}

        def get(source: Source) -> Loaded:
            if source.name not in found:
                found.clear()
                stack.close()
                found[source.name] = stack.enter_context(loaded(source))
            return found[source.name]

        yield get


@pytest.mark.parametrize(
    ("source", "case"),
    few(CASES, 90),
    ids=[f"{source.name}/{case.name}" for source, case in CASES],
)
def test_results_are_those_of_the_gpu(
    latest: Callable[[Source], Loaded], source: Source, case: Case
) -> None:
    its = latest(source)
    got = run(its.module, its.stream, case)
    comparison = compare(case, its.recording.results[case.name], got)
    assert comparison.problems == ()
