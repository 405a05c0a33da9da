"""Run programs over inputs of each size, and judge what is reported."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Final

import numpy as np

import ptx
from ptx.emulate.check.findings import Findings
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner

from . import (
    block_programs,
    bulk_programs,
    cluster_programs,
    graph_programs,
    group_programs,
    handover_programs,
)
from .graph_inputs import SHAPES, SIZES, Input, array, graph
from .program import HEADER, HEARD, Program

_MODULE: Final = 64  # programs that are compiled together
MOST_STEPS: Final = 50_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was reported of a program over the inputs of one size.

    Attributes:
        program, size: of what.
        reports: what was found or raised, in words; of a faulty program those of the first input
            that showed any.
        seconds: how long it took.
    """

    program: Program
    size: str
    reports: tuple[str, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the faulty one was found, or the right one was not accused."""
        return bool(self.reports) != self.program.is_right


def programs() -> list[Program]:
    """All of them, by pattern."""
    rooms = (
        graph_programs, block_programs, handover_programs, group_programs, cluster_programs,
        bulk_programs,
    )  # fmt: skip
    found = [each for room in rooms for pattern in room.PATTERNS for each in pattern.programs()]
    assert len({each.symbol for each in found}) == len(found)
    return found


def judge(
    chosen: list[Program], sizes: Iterable[str] = SIZES, seconds: float = 1e9
) -> Iterator[Verdict]:
    """Compile the programs, many at once, and run each over all inputs of these sizes."""
    end = time.monotonic() + seconds
    for start in range(0, len(chosen), _MODULE):
        some = chosen[start : start + _MODULE]
        runner = KernelRunner(compiled(some), 1 << 24)
        for program in some:
            for size in sizes:
                began = time.monotonic()
                reports = _reports(runner, program, size)
                yield Verdict(program, size, reports, time.monotonic() - began)
                if time.monotonic() > end:
                    return


def judge_in(
    jobs: int, chosen: list[Program], sizes: Sequence[str], seconds: float
) -> Iterator[Verdict]:
    """The same in so many processes, each of which has programs of all patterns."""
    if jobs == 1:
        yield from judge(chosen, sizes, seconds)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        parts = [chosen[start::jobs] for start in range(jobs)]
        waiting = [pool.submit(_judged, part, sizes, seconds) for part in parts]
        for each in as_completed(waiting):
            yield from each.result()


def _judged(chosen: list[Program], sizes: Sequence[str], seconds: float) -> list[Verdict]:
    return list(judge(chosen, sizes, seconds))


def source_of(some: list[Program]) -> str:
    """The CUDA C++ of several programs."""
    return HEADER + "\n".join(each.text for each in some)


def compiled(some: list[Program]) -> str:
    """The PTX of several programs in one module."""
    # Programs are made of the same parts, of which some use a variable less.
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), lineinfo=True, extra=("-w",))
    text = ptx.compile(source_of(some), options, name="truth.cu").ptx
    assert text is not None
    return text


def _reports(runner: KernelRunner, program: Program, size: str) -> tuple[str, ...]:
    found: list[str] = []
    for given in inputs(program, size):
        found += _launched(runner, program, given)
        if found:
            break
    return tuple(found)


def inputs(program: Program, size: str) -> Iterator[Input]:
    """What a program is launched with: an array, or a graph of each shape."""
    if program.over == "element":
        yield array(size, program.block, program.kind)
        return
    for shape in SHAPES:
        yield graph(shape, size, program.block, program.kind, program.over)


def _launched(runner: KernelRunner, program: Program, given: Input) -> list[str]:
    """Launch once in fresh memory; what was found that is not benign, or raised."""
    findings = Findings()
    addresses = []
    arguments = []
    for value in given.values:
        if isinstance(value, np.ndarray):
            addresses.append(runner.put(value))
            arguments.append(addresses[-1])
        else:
            arguments.append(value)
    limits = Limits(checks={"race"}, findings=findings, max_steps=MOST_STEPS, strict_barriers=False)
    raised = []
    try:
        clusters = -(-given.threads // (program.block * program.cluster))
        runner.launch(
            program.symbol,
            clusters * program.cluster,
            program.block,
            *arguments,
            cooperative=program.cooperative,
            cluster=(program.cluster, 1, 1),
            limits=limits,
        )
    except ptx.PtxError as error:
        raised.append(f"{type(error).__name__}: {error}")
    for address in addresses:
        runner.memory.free(address)
    told_apart = program.fault == HEARD
    return [str(each) for each in findings.found if told_apart or not each.benign] + raised
