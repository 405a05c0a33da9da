"""Sums that atomic operations make in memory, beside what was there before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ptx.emulate.access.memory_access import Elements, locate
from ptx.emulate.codegen.analysis.float_flow import Calculation
from ptx.emulate.memory.generic_addresses import is_mixed
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.float_format import FloatFormat, Parts
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Register


@dataclass(frozen=True, slots=True)
class FloatUse:
    """An instruction that calculates with floats, or decides by them.

    Attributes:
        calculation: the operands, as written.
        targets, sources: the numbers of the registers of both; None for a constant.
        located: the instruction, with the line before it if it has none.
    """

    instruction: Instruction
    calculation: Calculation
    targets: tuple[int, ...]
    sources: tuple[int | None, ...]
    located: Instruction


@dataclass(frozen=True)
class SumPlace:
    """An instruction that adds to memory.

    Attributes:
        kind: the format of its sums.
        memory: its address, as written.
        added: the registers that are added; none for constants.
    """

    instruction: Instruction
    kind: FloatFormat
    memory: str
    added: tuple[Register, ...]

    @cached_property
    def use(self) -> FloatUse:
        """The calculation of a sum: what was in memory, and what is added."""
        before = Register(self.memory, self.kind.ptx_type)
        added = self.added[:1] or (Register("constant", self.kind.ptx_type),)
        sources = tuple([(each, self.kind) for each in (before, *added)])
        i = self.instruction
        return FloatUse(i, Calculation(self.kind, (), sources), (), (), i)


@dataclass(frozen=True, slots=True)
class MemorySums:
    """The elements to which threads add, and what they had before.

    Attributes:
        place: the instruction.
        elements: the memory; index: (n,) the element of each thread, or one of all.
        before: (n,) of each element of a vector.
        values: what each thread adds, likewise.
        threads: how many there are.
    """

    place: SumPlace
    elements: Elements
    index: Index
    before: tuple[Elements, ...]
    values: tuple[Value, ...]
    threads: int

    def made(self) -> Iterator[tuple[bool, int, Parts, tuple[Parts, ...]]]:
        """Yield NaN and infinity, if finite numbers made one: the first thread that made it.

        Each has whether it is NaN, the position of the thread, the sum and its operands.
        """
        for number, (before, value) in enumerate(zip(self.before, self.values, strict=True)):
            after = self.elements[number:][self.index]
            if self.place.kind.has_nonfinite(after):
                yield from self._made(self._parts(before), self._parts(value), self._parts(after))

    def _parts(self, value: Value) -> Parts:
        return self.place.kind.parts(np.broadcast_to(value, (self.threads,)))

    def _made(
        self, before: Parts, added: Parts, after: Parts
    ) -> Iterator[tuple[bool, int, Parts, tuple[Parts, ...]]]:
        kind = self.place.kind
        are_nans = kind.are_nans(after)
        for is_nan, wrong, explains in (
            (True, are_nans, kind.are_nans),
            (False, kind.are_nonfinite(after) & ~are_nans, kind.are_nonfinite),
        ):
            # What one thread adds explains the sums of all that add to the same element.
            explained = self._of_elements(explains(added)) | explains(before)
            made = wrong & ~explained
            if made.any():
                row, part = np.unravel_index(int(np.argmax(made)), made.shape)
                position, so_far = self._first(int(row), int(part), before, added, is_nan)
                yield is_nan, position, after[[row]], (so_far, added[[position]])

    def _first(
        self, row: int, part: int, before: Parts, added: Parts, is_nan: bool
    ) -> tuple[int, Parts]:
        """Return the thread whose addition made an element NaN or infinite, and the sum before."""
        kind = self.place.kind
        places = np.broadcast_to(self.index, (self.threads,))
        positions = np.flatnonzero(places == places[row])
        numbers = kind.floats(np.concatenate([before[[row], part], added[positions, part]]))
        with np.errstate(all="ignore"):
            sums = kind.of_floats(np.add.accumulate(numbers))
        are_wrong = kind.are_nans(sums) if is_nan else kind.are_nonfinite(sums)
        step = max(1, int(np.argmax(are_wrong)))
        so_far = before[[row]].copy()
        so_far[0, part] = sums[step - 1]
        return int(positions[step - 1]), so_far

    def _of_elements(self, flags: Parts) -> Parts:
        """Return for each thread whether any that adds to the same element has a flag."""
        if not flags.any():
            return flags
        _, group = np.unique(np.broadcast_to(self.index, (self.threads,)), return_inverse=True)
        found = np.zeros((int(np.max(group)) + 1, flags.shape[1]), dtype=np.bool_)
        np.logical_or.at(found, group, flags)
        return found[group]


def sums_before(
    fibre: Fibre,
    addresses: Addresses,
    offset: int,
    site: Site,
    place: SumPlace,
    values: tuple[Value, ...],
) -> MemorySums | None:
    """Return what is in memory before an atomic addition; None for addresses of several spaces."""
    if site.space == "generic" and is_mixed(addresses, offset):
        return None
    elements, index = locate(fibre, addresses, offset, site, is_access=False)
    places = np.asarray(index)
    before = tuple([elements[number:][places].copy() for number in range(len(values))])
    return MemorySums(place, elements, places, before, values, fibre.n)
