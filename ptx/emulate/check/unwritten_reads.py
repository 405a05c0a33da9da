"""Reads of global memory that nothing has written.

Copying an unwritten value is not reported, unless every byte of the copy is unwritten: a load whose
value is only stored copies the flags as well. So the padding of structures is not reported. An
unused element of a vector is not reported either.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.findings import Access, Finding, Findings
from ptx.emulate.memory.device_memory import (
    WORD,
    WRITTEN,
    DeviceMemory,
    Flags,
    Use,
    WrittenBytes,
)
from ptx.emulate.memory.site import Memory, Site
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import Where
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Threads
from ptx.emulate.observer import Access as ObservedAccess, ObservedLaunch, Observer, TexelFlags
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Instruction

COPY_KERNEL: Final = "cudadrv_copy_elements"
"""A kernel of this name copies like the driver, which may read unwritten bytes."""
_WIDEST: Final = 8  # bytes of the flags of one element
_MOST_COPIED: Final = 64  # values that were loaded to be copied, and may still be stored


class UnwrittenReads(Observer):
    """The reads of one launch.

    Args:
        findings: receives them.
        launch: the launch.
    """

    spaces: tuple[str, ...] = ("global",)

    def __init__(self, findings: Findings, launch: ObservedLaunch) -> None:
        self._kernel = launch.code.kernel
        self._uses_of = launch.code.uses_of
        self._findings = findings
        self._uses: dict[Instruction, tuple[Use, ...]] = {}
        self._holes: tuple[Site, dict[int, Flags]] | None = None
        self._newest: dict[int, Flags] | None = None
        self._copied: deque[tuple[Value, Flags]] = deque(maxlen=_MOST_COPIED)
        self._reported: set[Site] = set()

    def access(self, access: ObservedAccess) -> None:
        """Check accesses of threads to global memory."""
        self._holes = None
        memory, site, values = access.memory, access.site, access.values
        written = None if memory is None else memory.written
        if memory is None or written is None:
            return
        elements = _Elements(written, access.first, access.positions, site)
        reads_first = site.facts.is_atomic
        if (reads_first or not site.writes) and elements.lack_after_a_look():
            flags = elements.flags()
            # A value that was reported counts as written from here on: its copies have one cause.
            if not self._judge(access.threads, memory, elements, flags) and not reads_first:
                self._holes = site, flags
        if not site.writes:
            return
        if not self._copied:
            elements.mark()
            return
        for k in range(site.count):
            elements.put(k, self._flags_of(values[k]) if values else None)

    def flag_texels(self, memory: DeviceMemory, address: int, nbytes: int) -> TexelFlags | None:
        """Return the flags of the image's written bytes; None where memory has no such flags."""
        written = memory.written
        if written is None:
            return None
        return TexelFlags(written.of(address - memory.base, nbytes), are_good=True)

    def read_flagged(self, where: Where, memory: DeviceMemory, address: int, nbytes: int) -> None:
        """Report a thread that reads a texel, which nothing has written, of an image."""
        self._findings.add(
            Finding(
                check="init",
                kernel=self._kernel,
                first=Access("read", where),
                second=None,
                space="texture",
                address=address,
                nbytes=nbytes,
                memory=str(memory.find(address) or ""),
                benign="",
                missing="a copy to the array, or a kernel by a surface, that writes the texel",
            )
        )

    def loaded(self, site: Site, values: list[Value]) -> None:
        """Remember the flags of values that a load gave, as some may be copied with them."""
        known, self._holes = self._holes, None
        holes = self._newest = None if known is None or known[0] is not site else known[1]
        if holes is not None and len(holes) == len(values):
            self._copied.extend(zip(values, holes.values(), strict=True))

    def _flags_of(self, value: Value) -> Flags | None:
        """The flags of a value that was loaded and is stored as it was."""
        for loaded, flags in self._copied:
            if (
                value.ndim
                and value.nbytes == loaded.nbytes == flags.nbytes
                and value.ctypes.data == loaded.ctypes.data
            ):
                return flags
        # Bytes have wider registers, so the stored value is another one; this kernel stores each
        # byte next after its load.
        if self._kernel == COPY_KERNEL and value.nbytes == value.size and self._newest is not None:
            (flags,) = self._newest.values()
            return flags if flags.size == value.size else None
        return None

    def _judge(
        self, threads: Threads, memory: Memory, elements: _Elements, flags_of: dict[int, Flags]
    ) -> bool:
        """Report a thread that uses what nothing has written, or copies nothing else.

        Return whether this place was reported, now or before.
        """
        site = elements.site
        if site in self._reported:
            return True
        uses = None if self._kernel == COPY_KERNEL else self._used(site)
        if uses is None:
            return False
        wrong = np.zeros(len(next(iter(flags_of.values()))), dtype=np.bool_)
        for k, flags in flags_of.items():
            if uses[k] is Use.USED:
                wrong |= _lacks(flags)
        if Use.COPIED in uses and site.total >= WORD:
            wrong |= np.all([_is_empty(flags) for flags in flags_of.values()], axis=0)
        if not wrong.any():
            return False
        self._reported.add(site)
        position = int(np.argmax(wrong))
        unwritten = sum(flags[position].tobytes().count(0) for flags in flags_of.values())
        address = memory.base + elements.byte(position)
        self._findings.add(
            Finding(
                check="init",
                kernel=self._kernel,
                first=Access(
                    "atomic" if site.writes else "read", threads.where(position, site.instruction)
                ),
                second=None,
                space="global",
                address=address,
                nbytes=site.total,
                memory=str(memory.find(address) or ""),
                benign="",
                missing=f"write {unwritten} of them before, by a kernel, a copy or a fill",
            )
        )
        return True

    def _used(self, site: Site) -> tuple[Use, ...] | None:
        """Return how each element is used; None if the instruction only copies all of it."""
        instruction, facts = site.instruction, site.facts
        if facts.kind is InstructionKind.COPY and "reduce" not in facts.words:
            return None
        if facts.is_atomic and "exch" not in facts.words:
            return (Use.USED,) * site.count
        uses = self._uses.get(instruction)
        if uses is None:
            uses = self._uses[instruction] = self._uses_of(instruction)
        return uses if len(uses) == site.count else (Use.USED,) * site.count


class _Elements:
    """The elements of one access, with their flags.

    A flag's array has no element of more than 64 bits: those have two columns.
    """

    def __init__(
        self, written: WrittenBytes, first: int, index: Index | int | slice, site: Site
    ) -> None:
        self.site = site
        self._written = written
        self._first = first
        self._index = index
        self._is_wide = site.nbytes > _WIDEST
        self._whole = WRITTEN[min(site.nbytes, _WIDEST)]
        flags = written.elements(min(site.nbytes, _WIDEST))
        self._flags: Flags = flags.reshape(-1, 2) if self._is_wide else flags

    def _of(self, k: int) -> Flags:
        part = self._flags[self._first + k :]
        if isinstance(self._index, np.ndarray):
            selected: Flags = part.take(self._index, axis=0, mode="clip")
            return selected
        return part[self._index]

    def lack(self) -> bool:
        """Return whether some byte that is read was not written."""
        return any((self._of(k) != self._whole).any() for k in self.site.parts)

    def lack_after_a_look(self) -> bool:
        """Return the same, if the host may have written in the meantime."""
        if not self.lack():
            return False
        self._written.settle()
        return self.lack()

    def flags(self) -> dict[int, Flags]:
        """Return the flags of each element that is read, (threads,) or (threads, 2)."""
        flags_of = {}
        for k in self.site.parts:
            flags = np.array(self._of(k))
            flags_of[k] = flags if flags.ndim > self._is_wide else flags[None]
        return flags_of

    def mark(self) -> None:
        """Mark all elements as written."""
        for k in range(self.site.count):
            self._flags[self._first + k :][self._index] = self._whole

    def put(self, k: int, flags: Flags | None) -> None:
        """One element of each thread is written, with these flags where it is a copy."""
        self._flags[self._first + k :][self._index] = self._whole if flags is None else flags
        if flags is not None:
            self._written.version += 1

    def byte(self, position: int) -> int:
        """Return the byte at which the access of a thread begins."""
        if isinstance(self._index, slice):
            element = int(self._index.start) + int(self._index.step or 1) * position
        else:
            element = int(np.atleast_1d(self._index)[position])
        return (self._first + element) * self.site.nbytes


def _lacks(flags: Flags) -> NDArray[np.bool_]:
    return np.asarray(_in_one_row(flags != WRITTEN[flags.itemsize]).any(axis=1))


def _is_empty(flags: Flags) -> NDArray[np.bool_]:
    return np.asarray(_in_one_row(flags == 0).all(axis=1))


def _in_one_row(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(threads, parts of the element)."""
    return flags.reshape(len(flags), -1)
