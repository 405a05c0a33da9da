"""Values that nothing has written, in registers: of shared and local memory, and of registers.

As in Valgrind's memcheck, copying an undefined value is not a fault. Neither is a value that an
`and`, an `or` or a selection masks out. A result of a shuffle, vote, match or reduction of a warp
is undefined if a value that it depends on is. A fault is a use of such a value: by a branch, an
address, an atomic operation, or a store to global memory. A store to shared or local memory leaves
the location unwritten. The use of a value of memory ends the launch; that of a register is a
finding, as an element of a vector may have no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.findings import Access, Finding, Findings
from ptx.emulate.check.register_marks import (
    FIRST_MARK,
    Marks,
    RegisterMarks,
    RegisterUse,
    either,
    of_present,
    present_lanes,
)
from ptx.emulate.kernel_facts import FunctionFacts
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import UninitialisedRead, Where, bytes_text
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Threads
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Instruction, Register, Vector

_Reads = Marks  # (n,) for each thread the number of the read, 0 for what is defined
_MOST_READS: Final = 1000  # that have a number of their own

STORED: Final = (-1, -1)
"""Stands for values about to be stored, so that the dict is not empty meanwhile."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A load of unwritten bytes: `first` has by lane the start of the lane's last such access."""

    site: Site
    space: str
    first: dict[int, int]


class UndefinedValues(RegisterMarks):
    """The registers of a chunk's threads that have such values; empty as long as none has.

    Args:
        lanes: how many threads the chunk has.
        functions: of the kernel.
        findings: receives the uses of registers that nothing has written, if there are any.
    """

    def __init__(
        self, lanes: int, functions: Sequence[FunctionFacts], findings: Findings | None
    ) -> None:
        super().__init__(lanes)
        self._functions = functions
        self._findings = findings
        self._reads: list[_Read | str] = []  # a load, or the name of a register
        self._known: dict[tuple[Site, str] | str, int] = {}

    def note_read(
        self,
        threads: Threads,
        wrong: NDArray[np.bool_],
        first: Index,
        site: Site,
        space: str,
        passed_on: _Reads | None,
    ) -> bool:
        """Record that a load gives registers undefined values; False if its registers are unknown.

        `wrong` is (threads, elements), `first` where each thread's access begins. `passed_on` has
        the reads that gave what is stored there, 0 for others; None for none.
        """
        target = site.instruction.operands[0]
        elements = target.items if isinstance(target, Vector) else (target,)
        if site.facts.kind is not InstructionKind.LOAD or len(elements) != wrong.shape[1]:
            return False
        lanes = threads.lane_numbers()
        number = self._number_of((site, space))
        read = self._reads[FIRST_MARK - number]
        assert isinstance(read, _Read)
        reads = np.where(wrong, np.int32(number), np.int32(0))
        if passed_on is not None:
            reads = np.where(wrong & (passed_on > 0), passed_on, reads)
        if len(first) == 1:  # all threads read one place
            first, reads = np.full(len(lanes), first[0]), np.repeat(reads, len(lanes), axis=0)
        present = threads.present
        if present is not None:
            lanes, first, reads = lanes[present], first[present], reads[present]
        undefined = reads.any(axis=1)
        lanes_and_bytes = zip(lanes[undefined].tolist(), first[undefined].tolist(), strict=True)
        read.first.update(lanes_and_bytes)
        function = threads.calls[-1].function if threads.calls else 0
        for element, reads_of_element in zip(elements, reads.T, strict=True):
            if isinstance(element, Register):
                key = len(threads.calls), self._functions[function].numbers[element.name]
                self._set(key, lanes, reads_of_element)
        return True

    def _number_of(self, source: tuple[Site, str] | str) -> int:
        """The number of a register, or of a read that begins; of later ones that of one before."""
        number = self._known.get(source)
        if number is None or (len(self._reads) < _MOST_READS and not isinstance(source, str)):
            number = self._known[source] = FIRST_MARK - len(self._reads)
            self._reads.append(source if isinstance(source, str) else _Read(*source, {}))
        return number

    # Called by generated code, before the instruction is executed.

    def begins(self, threads: Threads, unwritten: Mapping[int, str]) -> None:
        """A function begins, which may read these registers before it writes them."""
        lanes = present_lanes(threads)
        for number, name in unwritten.items():
            marks = np.full(len(lanes), self._number_of(name), dtype=np.int32)
            self._set((len(threads.calls), number), lanes, marks)

    def combines(
        self,
        threads: Threads,
        use: RegisterUse,
        decided: Sequence[Value],
        guard: Value | None = None,
    ) -> None:
        """`and` or `or` of two; `decided` is where each of them alone decides the result."""
        lanes = present_lanes(threads)
        reads_of_sources = [self._of(threads, lanes, (source,)) for source in use.sources]
        for index, other in ((0, 1), (1, 0)):
            reads = reads_of_sources[index]
            if reads is not None:
                leaves_out = of_present(threads, decided[other])
                if reads_of_sources[other] is not None:
                    leaves_out = leaves_out & (reads_of_sources[other] == 0)
                reads_of_sources[index] = np.where(leaves_out, np.int32(0), reads)
        self._write(threads, lanes, use, either(reads_of_sources), guard)

    def compares(
        self, threads: Threads, use: RegisterUse, decided: Value, guard: Value | None = None
    ) -> None:
        """A comparison, joined with its last source; `decided` is where that alone decides."""
        lanes = present_lanes(threads)
        *compared, other = use.sources
        by = self._of(threads, lanes, (other,))
        reads = self._of(threads, lanes, compared)
        if reads is not None:
            leaves_out = of_present(threads, decided)
            if by is not None:
                leaves_out = leaves_out & (by == 0)
            reads = np.where(leaves_out, np.int32(0), reads)
        self._write(threads, lanes, use, either([reads, by]), guard)

    def loads(self, threads: Threads, use: RegisterUse) -> None:
        """A load is about to write its registers."""
        lanes = present_lanes(threads)
        self._check(threads, lanes, use, use.address)
        self._write(threads, lanes, use, None, None)

    def stores(self, threads: Threads, use: RegisterUse, outside: Value) -> None:
        """A store; `outside`: the threads that store to memory that other blocks see."""
        lanes = present_lanes(threads)
        self._check(threads, lanes, use, use.address)
        if outside.any():
            seen = lanes if outside.ndim == 0 else lanes[of_present(threads, outside)]
            self._reject(threads, seen, self._of_elements(threads, seen, use), use.instruction)
        if outside.all():
            return
        stored = np.zeros((len(use.sources), self._lanes), dtype=np.int32)
        for row, source in zip(stored, use.sources, strict=True):
            reads = self._of(threads, lanes, (source,))
            if reads is not None:
                row[lanes] = reads
        if stored.any():
            self[STORED] = stored

    def meets(self, threads: Threads, use: RegisterUse) -> None:
        """Lanes of a warp are about to exchange values; `use.address` names the lanes."""
        self._check(threads, present_lanes(threads), use, use.address)

    def exchanged_reads(self, threads: Threads, registers: Sequence[int]) -> Value:
        """Return for each thread the read that its value in an exchange depends on, 0 for none."""
        reads = self._of(threads, present_lanes(threads), registers)
        return np.int32(0) if reads is None else reads

    def receives(self, threads: Threads, use: RegisterUse, reads: Value) -> None:
        """The result of an exchange depends on `reads`, and on each thread's own sources."""
        lanes = present_lanes(threads)
        received = np.broadcast_to(np.asarray(reads, dtype=np.int32), lanes.shape)
        of_sources = self._of(threads, lanes, use.sources)
        self._write(threads, lanes, use, either([received, of_sources]), None)

    def needs(self, threads: Threads, use: RegisterUse) -> None:
        """Check an instruction that needs all of its operands."""
        lanes = present_lanes(threads)
        self._check(threads, lanes, use, (*use.sources, *use.address))
        self._write(threads, lanes, use, None, None)

    # Called by accesses.

    def stored(self, threads: Threads) -> _Reads | None:
        """(elements, n) the undefined values of the current store; None if there are none."""
        rows = self.get(STORED)
        return None if rows is None else rows[:, threads.lane_numbers()]

    def _write(
        self,
        threads: Threads,
        lanes: Index,
        use: RegisterUse,
        marks: _Reads | None,
        guard: Value | None,
    ) -> None:
        self.pop(STORED, None)
        super()._write(threads, lanes, use, marks, guard)

    def _of_elements(self, threads: Threads, lanes: Index, use: RegisterUse) -> _Reads | None:
        """The marks of what a store writes; a vector may have elements without a value."""
        of_each = [self._of(threads, lanes, (source,)) for source in use.sources]
        reads = either(of_each)
        if reads is None:
            return None
        whole = np.all([each if each is not None else np.zeros_like(reads) for each in of_each], 0)
        return np.where(whole | ~self._are_registers(reads), reads, np.int32(0))

    def _are_registers(self, reads: _Reads) -> NDArray[np.bool_]:
        numbers = [number for source, number in self._known.items() if isinstance(source, str)]
        return np.isin(reads, numbers)

    def _check(
        self, threads: Threads, lanes: Index, use: RegisterUse, registers: Sequence[int | None]
    ) -> None:
        self.pop(STORED, None)
        self._reject(threads, lanes, self._of(threads, lanes, registers), use.instruction)

    def _reject(
        self, threads: Threads, lanes: Index, reads: _Reads | None, user: Instruction
    ) -> None:
        while reads is not None and reads.any():
            number = int(reads[int(np.argmax(reads != 0))])
            lane = int(lanes[int(np.argmax(reads == number))])
            read = self._reads[FIRST_MARK - number]
            use = threads.where(int(np.argmax(threads.lane_numbers() == lane)), user)
            if isinstance(read, _Read):
                raise _fault(threads, lane, read, user.text, use)
            self._report(read, use)
            for marks in self.values():  # it counts as written from here on
                marks[marks == number] = 0
            reads = np.where(reads == number, np.int32(0), reads)

    def _report(self, register: str, use: Where) -> None:
        if self._findings is None:
            return
        self._findings.add(
            Finding(
                check="init",
                kernel=use.kernel,
                first=Access("read", use),
                second=None,
                space="register",
                address=0,
                nbytes=0,
                memory="",
                benign="",
                missing="a value for the variable on every path to here, or for the operand of "
                "inline assembly",
                variable=register,
            )
        )


def _fault(threads: Threads, lane: int, read: _Read, text: str, use: Where) -> UninitialisedRead:
    """The error of a value of memory; it may be another thread's, if both had a register."""
    position = int(np.argmax(threads.lane_numbers() == lane))
    address = read.first.get(lane, next(iter(read.first.values())))
    line = f", {use.source_file}:{use.source_line}" if use.source_file else ""
    return UninitialisedRead(
        f"read of {bytes_text(read.site.total)} at {read.space} address {address:#x}, which"
        f" nothing has written\n  needed by {text} at PTX line {use.ptx_line}{line}",
        threads.where(position, read.site.instruction),
        address=address,
        nbytes=read.site.total,
        space=read.space,
    )
