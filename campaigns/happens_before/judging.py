"""What the check says of a kernel beside what the model says."""

from __future__ import annotations

import numpy as np

from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Threads
from ptx.emulate.observer import Access, Observer, Watcher
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner

from .model import Step, Walk
from .operations import Kernel

_LOST = "an update is lost"


class _StepList(Observer):
    """Lists the operations of a kernel as threads execute them."""

    def __init__(self, kernel: Kernel, steps: list[Step]) -> None:
        lines = enumerate(kernel.ptx.splitlines(), 1)
        self._numbers = {line: int(text.split("//")[1]) for line, text in lines if "//" in text}
        self._kernel = kernel
        self._steps = steps

    def access(self, access: Access) -> None:
        if access.is_complete:
            self.add(access.threads, access.site, "load", "store", "add")

    def swap(self, access: Access, wrote: Value) -> None:
        self.add(access.threads, access.site, "swap")

    def begin_copy(
        self,
        threads: Threads,
        addresses: Addresses,
        offset: int,
        site: Site,
        objects: Index | None = None,
    ) -> None:
        if not site.writes:
            self.add(threads, site, "copy")

    def add(self, threads: Threads, site: Site, *kinds: str) -> None:
        """Add the operation of these threads if it is of one of these kinds."""
        number = self._numbers.get(site.instruction.line)
        if number is not None and self._kernel.operations[number].kind in kinds:
            start = threads.blocks.first * self._kernel.geometry.threads
            self._steps.append((number, (threads.lane_numbers() + start).tolist()))


def judged(kernel: Kernel) -> tuple[list[Finding], Walk]:
    """The races that the check reports, as lost updates are none, and what the model knows."""
    runner, findings = KernelRunner(kernel.ptx, 1 << 20), Findings()
    memory = runner.put(np.zeros(kernel.words, np.uint32))
    geometry = kernel.geometry
    steps: list[Step] = []
    listed = _StepList(kernel, steps)
    limits = Limits(
        checks={"race"},
        findings=findings,
        chunk_threads=geometry.chunk_blocks * geometry.threads,
        share_from=1,
        watchers=(Watcher(lambda launch: listed),),
    )
    runner.launch(
        "k",
        geometry.blocks,
        geometry.threads,
        memory,
        limits=limits,
        cluster=(geometry.cluster, 1, 1),
    )
    return [each for each in findings.found if _LOST not in each.benign], Walk(kernel, steps)


def complaint_about(kernel: Kernel) -> str:
    """What the check says of a kernel that the model denies; nothing if they agree."""
    found, walk = judged(kernel)
    if walk.races and not found:
        return f"a race was missed: operations {sorted(set(walk.races))[:4]}"
    if found and not walk.open:
        return f"accused of no race: {found[0]}"
    return ""
