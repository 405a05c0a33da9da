"""The check of infinities and NaNs that calculations make of finite numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.findings import Access, Finding, Findings
from ptx.emulate.check.nonfinite_values import NonfiniteValues, Origin
from ptx.emulate.check.nonfinite_writer import NonfiniteWriter
from ptx.emulate.kernel_facts import Instrument
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.threads import ThreadBlocks, Threads
from ptx.emulate.observer import ObservedLaunch, Observer
from ptx.isa.model import Instruction


class NonfiniteResults(Observer):
    """The check of one launch.

    Args:
        findings: receives what it finds.
        launch: the launch.
    """

    def __init__(self, findings: Findings, launch: ObservedLaunch) -> None:
        self._kernel = launch.code.kernel
        self._findings = findings
        self._reported: dict[tuple[int, bool, int], tuple[int, int]] = {}

    def begin(self, blocks: ThreadBlocks, shared: NDArray[np.uint8]) -> Observer:
        """Return the check of a chunk."""
        return ChunkNonfiniteResults(NonfiniteValues(blocks.geometry.threads, self.report))

    def report(self, threads: Threads, origin: Origin, lane: int, user: Instruction) -> None:
        """Report a value once for each instruction that made one, with the first such thread."""
        key = id(origin.use.instruction), origin.is_nan, id(origin.caller)
        blocks = threads.blocks
        thread = blocks.first * blocks.geometry.threads_per_block + lane
        index, first = self._reported.get(key, (len(self._findings.found), thread))
        if key in self._reported and thread >= first:
            return
        finding = self._finding(blocks, origin, lane, user)
        if key in self._reported:
            self._findings.found[index] = finding
        else:
            self._findings.add(finding)
            if len(self._findings.found) == index:
                thread = -1  # an earlier launch or instruction has one of the same line: it stays
        self._reported[key] = index, thread

    def _finding(
        self, blocks: ThreadBlocks, origin: Origin, lane: int, user: Instruction
    ) -> Finding:
        instruction = origin.use.instruction
        located = origin.located
        kind = "NaN" if origin.is_nan else "infinity"
        use = Access(user.text.partition(" ")[0], blocks.where(None, user)).line
        use = "which stays in memory" if user is instruction else f"used by {use}"
        return Finding(
            check="nan",
            kernel=self._kernel,
            second=None,
            first=Access(instruction.text.partition(" ")[0], blocks.where(lane, located)),
            space="register",
            address=0,
            nbytes=0,
            memory="",
            benign="",
            kind=kind,
            missing=f"{origin.text(lane)}; {use}",
            variable=origin.target,
        )


class ChunkNonfiniteResults(Observer):
    """The check of a chunk of blocks."""

    def __init__(self, values: NonfiniteValues) -> None:
        self._values = values

    def follow(self, instrument: Instrument) -> object | None:
        """Return the marked values, which generated code follows."""
        return self._values if isinstance(instrument, NonfiniteWriter) else None

    def copy_local(self, lanes: Index | slice, source: int, target: int, nbytes: int) -> None:
        """Follow parameters and results of functions, which a call or a return copied."""
        if self._values:
            self._values.copy_parameters(lanes, source, target, nbytes)


def nonfinite_results(findings: Findings, launch: ObservedLaunch) -> NonfiniteResults | None:
    """Return the observer of a launch; None if its kernel calculates with no floats."""
    return NonfiniteResults(findings, launch) if launch.code.may_calculate else None
