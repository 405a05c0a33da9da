"""Counts of a launch, a kernel or a line, which can be added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ptx.emulate.count.instruction_class import InstructionClass


@dataclass(frozen=True, slots=True)
class Executed:
    """Instructions that were executed.

    Attributes:
        warps: how many times a warp executed one, with whichever of its threads.
        threads: executions by threads, without those whose guard was false.
    """

    warps: int = 0
    threads: int = 0

    def __add__(self, other: Executed) -> Executed:
        return Executed(self.warps + other.warps, self.threads + other.threads)


@dataclass(frozen=True, slots=True)
class Branches:
    """Branches.

    Attributes:
        executed: how many times a warp executed one: by a condition, an index, or the address of a
            function.
        divergent: how many times its threads diverged; a call of three functions counts twice.
    """

    executed: int = 0
    divergent: int = 0

    def __add__(self, other: Branches) -> Branches:
        return Branches(self.executed + other.executed, self.divergent + other.divergent)


@dataclass(frozen=True, slots=True)
class GlobalTraffic:
    """Loads from, or stores to, global memory.

    Attributes:
        requests: how many times a warp executed such an instruction.
        sectors: pieces of 32 bytes, aligned, that a request's threads touch; of all requests.
        least_sectors: pieces that would hold the same bytes, were they together and aligned.
    """

    requests: int = 0
    sectors: int = 0
    least_sectors: int = 0

    def __add__(self, other: GlobalTraffic) -> GlobalTraffic:
        return GlobalTraffic(
            self.requests + other.requests,
            self.sectors + other.sectors,
            self.least_sectors + other.least_sectors,
        )


@dataclass(frozen=True, slots=True)
class SharedTraffic:
    """Loads from, or stores to, shared memory.

    Attributes:
        requests: how many times a warp executed such an instruction.
        wavefronts: turns that the 32 banks of four bytes need for them.
        least_wavefronts: turns for the same access without a conflict.
    """

    requests: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0

    @property
    def conflicts(self) -> int:
        """Turns that are only needed because different words lie in one bank."""
        return self.wavefronts - self.least_wavefronts

    def __add__(self, other: SharedTraffic) -> SharedTraffic:
        return SharedTraffic(
            self.requests + other.requests,
            self.wavefronts + other.wavefronts,
            self.least_wavefronts + other.least_wavefronts,
        )


@dataclass(frozen=True, slots=True)
class AtomicTraffic:
    """Atomic operations and reductions.

    Attributes:
        requests: how many times a warp executed such an instruction.
        threads: how many times a thread did.
        turns: that the memory takes. In global memory a piece of 32 bytes takes as many as a
            request's threads share the address in it that most share; in shared memory a bank takes
            one for each thread, and the fullest bank decides.
        ways: for each request how many threads share the address that most share; of all requests.
        addresses: how many different ones an instruction of a launch accessed; the sum over
        instructions.
        most_on_one: the most accesses of one instruction of one launch to one address.
    """

    requests: int = 0
    threads: int = 0
    turns: int = 0
    ways: int = 0
    addresses: int = 0
    most_on_one: int = 0

    def __add__(self, other: AtomicTraffic) -> AtomicTraffic:
        return AtomicTraffic(
            self.requests + other.requests,
            self.threads + other.threads,
            self.turns + other.turns,
            self.ways + other.ways,
            self.addresses + other.addresses,
            max(self.most_on_one, other.most_on_one),
        )


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of executed instructions, branches and accesses.

    Attributes:
        classes: the instructions of each class that occurred.
        global_copies: what `cp.async` reads.
        shared_loads, shared_stores: those of `ldmatrix` and `stmatrix` too.
    """

    classes: Mapping[InstructionClass, Executed] = field(default_factory=dict)
    branches: Branches = Branches()
    global_loads: GlobalTraffic = GlobalTraffic()
    global_stores: GlobalTraffic = GlobalTraffic()
    global_copies: GlobalTraffic = GlobalTraffic()
    shared_loads: SharedTraffic = SharedTraffic()
    shared_stores: SharedTraffic = SharedTraffic()
    global_atomics: AtomicTraffic = AtomicTraffic()
    shared_atomics: AtomicTraffic = AtomicTraffic()

    def of(self, *classes: InstructionClass) -> Executed:
        """The instructions of some classes."""
        return sum((self.classes.get(kind, Executed()) for kind in classes), Executed())

    @property
    def executed(self) -> Executed:
        """All instructions."""
        return sum(self.classes.values(), Executed())

    def __add__(self, other: Counts) -> Counts:
        every = [kind for kind in InstructionClass if kind in {*self.classes, *other.classes}]
        return Counts(
            {kind: self.of(kind) + other.of(kind) for kind in every},
            self.branches + other.branches,
            self.global_loads + other.global_loads,
            self.global_stores + other.global_stores,
            self.global_copies + other.global_copies,
            self.shared_loads + other.shared_loads,
            self.shared_stores + other.shared_stores,
            self.global_atomics + other.global_atomics,
            self.shared_atomics + other.shared_atomics,
        )


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """A line of CUDA; of PTX, with `file` empty, where the kernel has no line information."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{self.file or 'PTX'}:{self.number}"
