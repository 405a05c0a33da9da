"""The limits of a launch: steps, chunk sizes, stack, and which checks are made."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptx.argument_checks import checks
from ptx.emulate.model.grid_dependency import GridDependency
from ptx.errors import PtxArgumentValueError

if TYPE_CHECKING:  # a context loads no parser, and no check
    from ptx.emulate.check.findings import Findings
    from ptx.emulate.observer import Watcher


_NUMBERS = ("max_steps", "chunk_threads", "share_from", "stack_bytes", "threads", "hardware_seed")


@dataclass(frozen=True, slots=True)
class FewThreads:
    """Thresholds for holding the registers of a fibre thread by thread, in rows.

    A kernel gives the same bits and the same faults in either form.

    Attributes:
        most: number of threads for which rows take about as long as NumPy's arrays.
        most_in_loop: the same where they go through a loop in one function.
        most_apart: the same where fibres part and meet at every few blocks.
        heat: visits of few threads to a block before it gets code for single threads.
        settled: blocks that a fibre of few threads executes before it gets rows.
        switches: called before each block; True changes the fibre to the other form, for tests.
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
            many threads execute counts once for each 1,024 of them, and a change to other threads
            as eight. The limit grows by half of itself as long as threads exit, or words of the
            device's memory change for the first time. It is at least four such steps for each
            1,024 bytes of allocated memory. The default takes some ten seconds.
        chunk_threads: threads that are executed together, whole blocks of them.
        share_from: threads of a chunk from which on it shares values with later chunks that depend
            only on a thread's position in its block. For fewer, a look-up is no faster than
            computing.
        stack_bytes: local memory of a thread where calls recurse; a sixteenth of it is for the
            functions of other modules, where calls by an address may reach them.
        divergent_barriers: let threads of one warp meet at different aligned barriers, such as the
            `__syncthreads()` of both branches of an `if`. PTX leaves that undefined, so that it is
            a fault otherwise.
        strict_barriers: report a barrier that exited threads did not reach, and threads of a block
            that meet at different aligned barriers. PTX allows both ("exit", "barrier"): a barrier
            waits for the threads that have not exited, and warps may come from different places.
        check_synchronisation: report threads that go around a barrier, or an instruction of their
            warp, at which others wait; a GPU continues once they have exited.
        checks: the checks to make, by their names in the table of `watchers.py`.
            "race": races. "divide": divisions of integers by zero. "unwritten": unwritten reads of
            global memory that has flags for that (`DeviceMemory.watch_writes`). "undefined": uses
            of unwritten values of shared or local memory; takes several times as long. "bounds":
            accesses out of the array or variable that their addresses were made from.
        findings: receives what the first three find; the others end the launch by a fault.
        accessed: with the race check, called at the end with the `LaunchAccesses`.
        dependency: if launches may overlap, the dependencies on this one and its neighbours.
        few_threads: when few threads run one by one, which changes the time alone.
        threads: of the interpreter that execute the chunks of one launch, where chunks cannot
            depend on each other; results are those of one thread. 0 gives as many as there are
            processors if the interpreter runs threads at once, else one.
        watchers: more observers of each launch.
        hardware_seed: changes what no result may depend on: the numbers of multiprocessors, grids
            and performance counters, and the time and rate of the clocks.

    Raises:
        TypeError: a number is none, or `checks` is no collection of texts.
        ValueError: a number is too small.
    """

    max_steps: int = 2_000_000
    chunk_threads: int = 65536
    share_from: int = 2048
    stack_bytes: int = 16384
    divergent_barriers: bool = False
    strict_barriers: bool = False
    check_synchronisation: bool = False
    checks: Set[str] = frozenset()
    findings: Findings | None = None
    accessed: Callable[[Any], None] | None = None  # the class stands in a layer above
    dependency: GridDependency | None = None
    few_threads: FewThreads = FewThreads()
    threads: int = 0
    watchers: tuple[Watcher, ...] = ()
    hardware_seed: int = 0

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            checks.integer_fields(self, name)
            number: int = getattr(self, name)
            if number < (name in ("max_steps", "chunk_threads")):
                raise PtxArgumentValueError(f"Limits: {name} is {number}: give more")
        names = checks.elements("Limits: checks", self.checks)
        texts = frozenset(checks.text("Limits: a check", name) for name in names)
        object.__setattr__(self, "checks", texts)


DEFAULT_LIMITS = Limits()
