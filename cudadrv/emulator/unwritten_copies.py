"""Copies to the host of elements that nothing has written.

A copy does not use padding, so an element counts as written if one of its bytes was. The driver
does not know the elements of memory; this library reports those of its arrays. Elsewhere padding
could explain a few bytes, but not `_LEAST_RUN` of them one after the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.findings import Access, Finding, Findings
from ptx.emulate.memory.device_memory import WrittenBytes

from .call_site import host_place, user_call_site

Flags = NDArray[np.uint8]
_LEAST_RUN: Final = 16  # bytes: the widest elements of structures are aligned to so many
_COPY: Final = "copy to the host"
_ADVICE: Final = (
    "does the grid cover all of them? If the others have no values, copy the written part alone"
)


@dataclass(frozen=True, slots=True)
class CopiedElements:
    """The elements of copies from a range of memory, while they are queued.

    Attributes:
        address, nbytes: the range.
        itemsize: bytes of an element; 0 if the copies are not checked, None if it is unknown.
        call_site: where the user copies them.
    """

    address: int
    nbytes: int
    itemsize: int | None
    call_site: str

    def holds(self, address: int, nbytes: int) -> bool:
        """Return whether a copy is a part of the range."""
        return self.address <= address and address + nbytes <= self.address + self.nbytes


@dataclass(frozen=True, slots=True)
class UnwrittenElements:
    """Elements of one copy that nothing has written.

    Attributes:
        address: of the first.
        nbytes: of all of them.
        words: which they are.
    """

    address: int
    nbytes: int
    words: str


class CopyCheck:
    """The check of one copy, which runs later.

    Attributes:
        elements: the elements that the library has reported, or the copy's own range.
    """

    def __init__(self, copies: UnwrittenCopies, elements: CopiedElements) -> None:
        self.elements = elements
        self._copies = copies

    def look(self, flags: Flags, address_of: Callable[[int], int]) -> UnwrittenElements | None:
        """Return the unwritten elements among some bytes.

        Args:
            flags: (rows, bytes of a row), of bytes that are written.
            address_of: returns the address of a byte by its position in `flags`.
        """
        itemsize = self.elements.itemsize
        if itemsize is None or flags.size % itemsize:
            found = _unwritten_runs(flags)
        else:
            is_written = np.asarray(flags.reshape(-1, itemsize).any(axis=1))
            found = _unwritten_elements(is_written, itemsize)
        if found is None:
            return None
        first, nbytes, words = found
        return UnwrittenElements(address_of(first), nbytes, words)

    def report(self, unwritten: UnwrittenElements) -> None:
        """Report them; no lock of a device is held."""
        self._copies.report(self.elements.call_site, unwritten)


class UnwrittenCopies:
    """The copies of one emulator.

    Args:
        findings: receives what is found.
        allocation_at: returns the start and the description of the allocation at an address.
        flags_at: returns which bytes of device memory are written.
    """

    def __init__(
        self,
        findings: Findings,
        allocation_at: Callable[[int], tuple[int, str] | None],
        flags_at: Callable[[int, int], Flags | None],
    ) -> None:
        self._findings = findings
        self._allocation_at = allocation_at
        self._flags_at = flags_at
        self._announced: list[CopiedElements] = []

    @contextmanager
    def copying(self, address: int, nbytes: int, itemsize: int | None) -> Iterator[None]:
        """Let copies from a range that are queued in a block be of such elements.

        Threads that help the copy are part of the block. An outer block of the range prevails.
        """
        elements = CopiedElements(address, nbytes, itemsize, user_call_site())
        try:
            self._announced.append(elements)  # inside, so that an interrupt after it takes it back
            yield
        finally:
            with contextlib.suppress(ValueError):
                self._announced.remove(elements)

    def unwritten(self, address: int, nbytes: int, itemsize: int) -> NDArray[np.bool_]:
        """Return which elements of device memory nothing has written; work on it is complete."""
        flags = self._flags_at(address, nbytes)
        if flags is None:
            return np.zeros(nbytes // itemsize, np.bool_)
        return np.asarray(~flags.reshape(-1, itemsize).any(axis=1))

    def check_of(self, address: int, nbytes: int, itemsize: int | None) -> CopyCheck | None:
        """Return the check of a copy of bytes to the host that is queued now; None for none."""
        for elements in self._announced.copy():
            if elements.holds(address, nbytes):
                return CopyCheck(self, elements) if elements.itemsize != 0 else None
        return CopyCheck(self, CopiedElements(address, nbytes, itemsize, user_call_site()))

    def report(self, call_site: str, unwritten: UnwrittenElements) -> None:
        """Report unwritten elements, once for each allocation: they have one cause."""
        allocation = self._allocation_at(unwritten.address)
        memory = "" if allocation is None else allocation[1]
        known = [found.memory for found in self._findings.found if found.check == "init"]
        if memory and memory in known:
            return
        place = host_place("read", call_site)
        self._findings.add(
            Finding(
                check="init",
                kernel="",
                first=Access.of_host("read", _COPY, place.file, place.line, call_site),
                second=None,
                space="global",
                address=unwritten.address,
                nbytes=unwritten.nbytes,
                memory=memory,
                benign="",
                missing=f"{unwritten.words}\n    {_ADVICE}",
            )
        )


_Found = tuple[int, int, str]  # the first byte, the number of bytes, and which they are


def _unwritten_elements(is_written: NDArray[np.bool_], itemsize: int) -> _Found | None:
    numbers = np.flatnonzero(~is_written)
    if not len(numbers):
        return None
    first, last, count = int(numbers[0]), int(numbers[-1]), len(numbers)
    which = f"{first}" if count == 1 else f"{first} to {last}"
    if count < last - first + 1:
        which = f"from {first} on, the last {last}"
    words = f"{count} of {len(is_written)} elements, {which}"
    return first * itemsize, count * itemsize, words


def _unwritten_runs(flags: Flags) -> _Found | None:
    """Return the runs of unwritten bytes that no padding explains."""
    length = flags.shape[-1]
    least = length if WrittenBytes.word_nbytes <= length < _LEAST_RUN else _LEAST_RUN
    edges = np.zeros((len(flags), length + 2), np.int8)
    edges[:, 1:-1] = flags == 0
    steps = np.diff(edges, axis=1)
    rows, starts = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1]
    is_long = ends - starts >= least
    if not is_long.any():
        return None
    rows, starts, ends = rows[is_long], starts[is_long], ends[is_long]
    count = int((ends - starts).sum())
    first = int(rows[0]) * length + int(starts[0])
    return first, count, f"{count} of {flags.size} bytes, the first at {first}"
