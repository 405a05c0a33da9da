"""Findings of checks, once for each pair of access sites in the program."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol

from ptx.emulate.model.errors import (
    Deadlock,
    EmulationFault,
    MemoryFault,
    Runaway,
    SynchronisationFault,
    UninitialisedRead,
    Where,
    bytes_text,
)
from ptx.shown_path import shown_path

HOST: Final = "the host"
"""Stands for an instruction when the host itself accesses memory."""


@dataclass(frozen=True, slots=True)
class Place:
    """An access site in a program that a finding names.

    Attributes:
        what: the operation there.
        file, line: of CUDA or Python; None if unknown.
        where: the thread that did it; None on the host.
    """

    what: str
    file: str | None
    line: int | None
    where: Where | None = None


class Found(Protocol):
    """The interface of all findings; the text of a finding has several short lines."""

    # It is a dataclass, so that a report can have all of its fields.
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def check(self) -> str:
        """The check that found it."""

    @property
    def kernel(self) -> str:
        """The kernel, or ""."""

    @property
    def places(self) -> tuple[Place, ...]:
        """The access sites, in the order in which they ran."""

    @property
    def variable(self) -> str:
        """The variable, or ""."""

    @property
    def benign(self) -> str:
        """The reason why it is likely intentional, or ""."""

    @property
    def is_told(self) -> bool:
        """True if a call has already failed with this finding."""


@dataclass(frozen=True, slots=True)
class Access:
    """One side of a race.

    Attributes:
        what: "read", "write" or "atomic".
        where: kernel, block, thread, and the lines of PTX and CUDA; of a copy and the like, which
            is named as the instruction of no kernel, the line of the host's program.
        queued_at: where the host launched the kernel, if another launch or a copy is compared; of
            the host's own access, between which calls it was.
    """

    what: str
    where: Where
    queued_at: str = ""

    @classmethod
    def of_host(
        cls, what: str, operation: str, file: str | None, line: int | None, queued_at: str
    ) -> Access:
        """Return the access of an operation that the host queued, such as a copy; "" is its own."""
        return cls(what, Where("", None, None, operation or HOST, 0, file, line), queued_at)

    @property
    def line(self) -> str:
        """What it does, and its lines."""
        return f"{self.what} at {self._lines}"

    @property
    def _lines(self) -> str:
        where = self.where
        line = f"PTX line {where.ptx_line}"
        if where.source_line is None:
            return line
        return f"{where.shown_file}:{where.source_line} ({line})"

    @property
    def place(self) -> Place:
        """The place."""
        return Place(self.what, self.where.source_file, self.where.source_line, self.where)

    def __str__(self) -> str:
        where, line = self.where, self._lines
        if where.instruction == HOST:
            return f"{self.what} by {HOST}, {self.queued_at}"
        if not where.kernel:
            return f"{self.what} by a {where.instruction}, called at {shown_path(self.queued_at)}"
        if where.block is None:
            launched = f", launched at {shown_path(self.queued_at)}" if self.queued_at else ""
            return f"{self.what} by kernel {where.kernel}, at {line}{launched}"
        return f"{self.what} by block {where.block}, thread {where.thread}, at {line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a program that a check found.

    Attributes:
        check: the check that found it: "race", "init", "divide" or "nan".
        kernel: the kernel, that of the second access where two race; "" where none has part.
        first, second: both accesses of a race, in the order in which the emulator executed them, a
            load where its value is needed; of a read of what nothing has written, or an access to a
            block that may not have begun, the only one.
        space: "global", "shared", "texture" or "register"; of a texture `address` is where its
            image begins.
        address: of the first byte that both access; 0 of registers.
        nbytes: how many bytes the second one accesses; 0 of registers.
        memory: the allocation, in words.
        benign: the reason why it is likely intentional, or "".
        missing: what would order the two, or what should have come before.
        variable: the name of the variable, where it has one; those of registers.
        kind: the sort of race, if it is no plain one: "proxy fence missing"; "NaN" or
            "infinity".
    """

    check: str
    kernel: str
    first: Access
    second: Access | None
    space: str
    address: int
    nbytes: int
    memory: str
    benign: str
    missing: str
    variable: str = ""
    kind: str = ""
    is_told: ClassVar[bool] = False

    @property
    def places(self) -> tuple[Place, ...]:
        """Both places, or the only one."""
        return tuple([side.place for side in (self.first, self.second) if side is not None])

    @property
    def _place(self) -> str:
        if self.check == "divide":
            return "an integer division by zero"
        if self.check == "nan":
            return "the first NaN" if self.kind == "NaN" else "the first infinity"
        if self.space == "register":
            return f"registers {self.variable} of PTX"
        return f"{bytes_text(self.nbytes)} of {self.space} memory at {self.address:#x}"

    def __str__(self) -> str:
        kernel = f"kernel {self.kernel}, " if self.kernel else ""
        lines = [f"{self.check}: {kernel}{self._place}"]
        if self.memory:
            lines.append(f"  in {self.memory}")
        lines.append(f"  {self.first}")
        if self.second is None:
            lines.append(f"  {self.kind or _WITHOUT_SECOND[self.check]}: {self.missing}")
        else:
            reason = self.kind or "nothing orders the two"
            lines += [f"  {self.second}", f"  {reason}: {self.missing}"]
        if self.benign:
            lines.append(f"  it may be meant so: {self.benign}")
        return "\n".join(lines)


# Why an access is at fault alone.
_WITHOUT_SECOND: Final = {
    "race": "the block whose they are may not have begun",
    "init": "nothing has written them all",
    "divide": "its result is unspecified",
}


@dataclass(frozen=True, slots=True)
class KernelFault:
    """A fault of a kernel that a check is about; its launch failed with it.

    Attributes:
        check: the check: "sync", "bounds" or "init".
        kind: the name of the error's class.
        text: the text of the error.
        where: kernel, block, thread, and the lines of PTX and CUDA.
    """

    check: str
    kind: str
    text: str
    where: Where
    variable: ClassVar[str] = ""
    benign: ClassVar[str] = ""
    is_told: ClassVar[bool] = True

    @classmethod
    def of(cls, fault: EmulationFault) -> KernelFault | None:
        """Return the finding that a fault of a kernel is; None where no check is about it."""
        for kind, check in _CHECKS:
            if isinstance(fault, kind):
                text = str(fault).removesuffix(f" ({fault.where})")
                return cls(check, type(fault).__name__, text, fault.where)
        return None

    @property
    def kernel(self) -> str:
        """The kernel."""
        return self.where.kernel

    @property
    def places(self) -> tuple[Place, ...]:
        """The instruction at which the kernel stopped."""
        return (Place("stopped", self.where.source_file, self.where.source_line, self.where),)

    def __str__(self) -> str:
        where = self.where
        line = f"PTX line {where.ptx_line}"
        if where.source_line is not None:
            line = f"{where.source_file}:{where.source_line} ({line})"
        thread = f", block {where.block}, thread {where.thread}" if where.thread else ""
        return "\n".join(
            (
                f"{self.check}: {self.kind} in kernel {self.kernel}{thread}",
                f"  {self.text}",
                f"  {where.instruction} at {line}",
            )
        )


_CHECKS: tuple[tuple[type[EmulationFault], str], ...] = (
    (UninitialisedRead, "init"),
    (MemoryFault, "bounds"),
    (Deadlock, "sync"),
    (Runaway, "sync"),
    (SynchronisationFault, "sync"),
)


# Itanium C++ ABI, "Mangling": names have their lengths before them. The name of a variable in a
# function follows an E, and a number may follow it. Names of namespaces stand between N and E.
_LOCAL = re.compile(r"E(?=(\d+))")
_BEHIND_LOCAL = re.compile(r"(_\d+|__\d+_)?")


def demangled(symbol: str) -> str:
    """Return the name of a variable in CUDA without its scopes: `s` of `_ZZ4turnE1s`."""
    if symbol.startswith("_ZZ"):
        for match in _LOCAL.finditer(symbol):
            name, end = _name_at(symbol, match.end())
            if name and _BEHIND_LOCAL.fullmatch(symbol, end):
                return name
        return symbol
    offset = len("_Z") if symbol.startswith("_Z") else len(symbol)
    while offset < len(symbol) and symbol[offset] in "NKL":
        offset += 1
    last = symbol
    while True:
        name, offset = _name_at(symbol, offset)
        if not name:
            return last
        last = name


def _name_at(symbol: str, offset: int) -> tuple[str, int]:
    """The name after its length at an index, and its end; "" if there is none."""
    digits = re.compile(r"\d+").match(symbol, offset)
    if digits is None:
        return "", offset
    end = digits.end() + int(digits[0])
    return (symbol[digits.end() : end], end) if end <= len(symbol) else ("", offset)


@dataclass(frozen=True, slots=True)
class MissingOrder:
    """Two operations of two streams that nothing orders, in the order of their calls.

    Operations of one stream run in their order. So an order of two operations also orders all
    before the first one with all after the second one.

    Attributes:
        first_track, first: the stream of the earlier call, and its place there.
        second_track, second: those of the later call.
        is_of_allocation: whether one of them only allocates the memory.
    """

    first_track: int
    first: int
    second_track: int
    second: int
    is_of_allocation: bool = False

    def implies(self, other: MissingOrder) -> bool:
        """Return whether the order of these two is also one of the others."""
        return (
            (self.first_track, self.second_track) == (other.first_track, other.second_track)
            and self.first >= other.first
            and self.second <= other.second
        )


@dataclass
class Findings:
    """The findings of all launches on a device.

    Attributes:
        found: each once.
    """

    found: list[Finding] = field(default_factory=list)
    _numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    # By the index of a race: what lacks an order at each of its times.
    _missing: dict[int, list[MissingOrder]] = field(default_factory=dict)

    def add(self, finding: Finding, missing: MissingOrder | None = None) -> None:
        """Keep a finding, unless one of the same two places is known.

        `missing` are the operations that race, if it is about whole operations.
        """
        sides = [side for side in (finding.first, finding.second) if side is not None]
        lines_of_sides = tuple([(side.what, *_line(side.where)) for side in sides])
        key = (finding.check, finding.kind, finding.kernel, lines_of_sides, bool(finding.benign))
        number = self._numbers.setdefault(key, len(self.found))
        if number == len(self.found):
            self.found.append(finding)
        if missing is not None and len(self._missing.setdefault(number, [])) <= _MOST_ORDERS:
            self._missing[number].append(missing)

    def causes(self) -> tuple[Finding, ...]:
        """Return the findings without those that follow from others.

        A race of operations follows if the order that another one lacks would order its
        operations, too. A read of unwritten memory follows from the race with the write that it
        should have waited for.
        """
        found = tuple(self.found)
        kept = [finding for number, finding in enumerate(found) if not self._follows(number)]
        late = {
            place
            for number, orders in self._missing.items()
            if not orders[0].is_of_allocation
            for place in _late_reads(found[number])
        }
        return tuple(each for each in kept if not (each.check == "init" and _read(each) in late))

    def _follows(self, number: int) -> bool:
        own = self._missing.get(number, ())
        if not own or len(own) > _MOST_ORDERS:
            return False
        others = [
            (other_number, order)
            for other_number, orders in self._missing.copy().items()
            if other_number != number
            for order in orders
        ]
        return all(
            any(
                order.implies(each) and (order != each or other_number < number)
                for other_number, order in others
            )
            for each in own
        )


_MOST_ORDERS = 64  # of one finding; one with more follows from no other
_Read = tuple[str, str, str | None, int]  # the kernel, the memory, the file and the line


def _read(finding: Finding) -> _Read:
    where = finding.first.where
    return where.kernel, finding.memory, *_line(where)


def _late_reads(finding: Finding) -> list[_Read]:
    """Return the reads of a race of operations, which miss the other one's write."""
    return [
        (side.where.kernel, finding.memory, *_line(side.where))
        for side in (finding.first, finding.second)
        if side is not None and side.what == "read"
    ]


def _line(where: Where) -> tuple[str | None, int]:
    """A line of CUDA, or of PTX where that is all there is."""
    if where.source_line is not None:
        return where.source_file, where.source_line
    return None, where.ptx_line
