"""What the check says of a kernel beside what the model says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np

from ptx.emulate.check.chunk_races import ChunkRaces
from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Threads
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner

from .model import Step, Walk
from .operations import Kernel

_LOST = "an update is lost"


@contextmanager
def _listed(kernel: Kernel) -> Iterator[list[Step]]:
    """The accesses of a kernel that is launched here, in the order in which they are executed."""
    steps: list[Step] = []
    lines = enumerate(kernel.ptx.splitlines(), 1)
    numbers = {line: int(text.split("//")[1]) for line, text in lines if "//" in text}

    def list_it(races: ChunkRaces, threads: Threads, site: Site, *kinds: str) -> None:
        number = numbers.get(site.instruction.line)
        if number is not None and kernel.operations[number].kind in kinds:
            start = races.first * kernel.geometry.threads
            steps.append((number, (threads.lane_numbers() + start).tolist()))

    def note(
        self: ChunkRaces, threads: Threads, space: str, addresses: Addresses,
        offset: int, site: Site, values: tuple[Value, ...] = (), wrote: Value | None = None,
    ) -> None:  # fmt: skip
        list_it(self, threads, site, "load", "store", "add", "swap")
        noted(self, threads, space, addresses, offset, site, values, wrote)

    def issue(
        self: ChunkRaces, threads: Threads, addresses: Addresses, offset: int, site: Site,
        objects: Index | None = None,
    ) -> None:  # fmt: skip
        if not site.writes:
            list_it(self, threads, site, "copy")
        issued(self, threads, addresses, offset, site, objects)

    noted, issued = ChunkRaces.note, ChunkRaces.issue
    with mock.patch.multiple(ChunkRaces, note=note, issue=issue):
        yield steps


def judged(kernel: Kernel) -> tuple[list[Finding], Walk]:
    """The races that the check reports, as lost updates are none, and what the model knows."""
    runner, findings = KernelRunner(kernel.ptx, 1 << 20), Findings()
    memory = runner.put(np.zeros(kernel.words, np.uint32))
    geometry = kernel.geometry
    limits = Limits(
        findings=findings, chunk_threads=geometry.chunk_blocks * geometry.threads, share_from=1
    )
    with _listed(kernel) as steps:
        runner.launch(
            "k", geometry.blocks, geometry.threads, memory, limits=limits,
            cluster=(geometry.cluster, 1, 1),
        )  # fmt: skip
    return [each for each in findings.found if _LOST not in each.benign], Walk(kernel, steps)


def complaint_about(kernel: Kernel) -> str:
    """What the check says of a kernel that the model denies; nothing if they agree."""
    found, walk = judged(kernel)
    if walk.races and not found:
        return f"a race was missed: operations {sorted(set(walk.races))[:4]}"
    if found and not walk.open:
        return f"accused of no race: {found[0]}"
    return ""
