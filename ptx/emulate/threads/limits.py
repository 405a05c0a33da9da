"""The limits of a launch: steps, chunk sizes, stack, and which checks are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptx.argument_checks import checks
from ptx.emulate.check.accessed_bytes import LaunchAccesses
from ptx.emulate.check.findings import Findings
from ptx.emulate.model.grid_dependency import GridDependency
from ptx.errors import PtxArgumentValueError


@dataclass(frozen=True, slots=True)
class FewThreads:
    """When the threads of a fibre have their registers one by one, in rows.

    A kernel gives the same bits and the same faults in either form.

    Attributes:
        most: threads whose rows take about as long as NumPy's arrays of all of them.
        most_in_loop: the same where they go through a loop in one function.
        most_apart: the same where fibres part and meet at every few blocks.
        heat: visits of few threads to a block before it gets code for single threads.
        settled: blocks that a fibre of few threads executes before it gets rows.
        switches: tells before each block whether the fibre is to have the other form, for tests.
    """

    most: int = 16
    most_in_loop: int = 40
    most_apart: int = 512
    heat: int = 24
    settled: int = 6
    switches: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one launch.

    Attributes:
        max_steps: basic blocks that a chunk of thread blocks may execute before `Runaway`; one that
            many threads execute counts once for each 1,024 of them, and going on with other
            threads as eight. The default takes some ten seconds.
        chunk_threads: threads that are executed together, whole blocks of them.
        share_from: threads of a chunk from which on it shares with later ones what depends on a
            thread's place in its block alone; for fewer, finding is no faster than computing.
        stack_bytes: local memory of a thread where calls recurse; a sixteenth of it is for the
            functions of other modules, where calls by an address may reach them.
        divergent_barriers: let threads of one warp meet at different aligned barriers, such as the
            `__syncthreads()` of both branches of an `if`. PTX leaves that undefined, so that it is
            a fault otherwise.
        strict_barriers: report a barrier that exited threads did not reach, and threads of a block
            that meet at different aligned barriers. PTX allows both ("exit", "barrier"): a barrier
            waits for the threads that have not exited, and warps may come from different places.
        check_uninitialised: report where a value is needed of shared or local memory that nothing
            has written; takes several times as long.
        check_bounds: hold accesses to the array or variable that their addresses were made from.
        check_synchronisation: report threads that go around a barrier, or an instruction of their
            warp, at which others wait; a GPU goes on once they have exited.
        findings: where races are put; None looks for none.
        unwritten: where reads of global memory are put that nothing has written, of memory that
            has flags for that (`DeviceMemory.watch_writes`); None looks for none.
        accessed: where races are looked for, called at the end with what the launch accessed.
        dependency: where launches may overlap, what this one and its neighbours tell each other.
        few_threads: when few threads run one by one, which changes the time alone.
    """

    max_steps: int = 2_000_000
    chunk_threads: int = 65536
    share_from: int = 2048
    stack_bytes: int = 16384
    divergent_barriers: bool = False
    strict_barriers: bool = False
    check_uninitialised: bool = False
    check_bounds: bool = False
    check_synchronisation: bool = False
    findings: Findings | None = None
    unwritten: Findings | None = None
    accessed: Callable[[LaunchAccesses], None] | None = None
    dependency: GridDependency | None = None
    few_threads: FewThreads = FewThreads()

    def __post_init__(self) -> None:
        for name in ("max_steps", "chunk_threads", "share_from", "stack_bytes"):
            number = checks.integer(f"Limits: {name}", getattr(self, name))
            if number < (name in ("max_steps", "chunk_threads")):
                raise PtxArgumentValueError(f"Limits: {name} is {number}: give more")


DEFAULT_LIMITS = Limits()
