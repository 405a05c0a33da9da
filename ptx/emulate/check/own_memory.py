"""The check of shared, local and tensor memory that nothing has written."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.findings import Findings
from ptx.emulate.check.undefined_values import UndefinedValues
from ptx.emulate.check.undefined_writer import UndefinedWriter
from ptx.emulate.kernel_facts import Instrument
from ptx.emulate.memory.device_memory import WORD, WRITTEN, Flags, Use
from ptx.emulate.memory.site import Site, used_bytes_of
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import UninitialisedRead, bytes_text
from ptx.emulate.model.geometry import Geometry
from ptx.emulate.model.threads import ThreadBlocks, Threads
from ptx.emulate.observer import Access, ObservedLaunch, Observer, Places
from ptx.emulate.threads.tensor_memory import COLUMNS, LANES
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Instruction

_KNOWN: Final = 1  # flag of a byte that was written
_UNDEFINED: Final = 2  # with an undefined value


class OwnMemory(Observer):
    """The check of one launch; `findings` receives uses of registers that nothing has written."""

    def __init__(self, findings: Findings | None, launch: ObservedLaunch) -> None:
        self._findings = findings
        self._launch = launch
        instruments = launch.code.instruments
        self._follows = any(isinstance(each, UndefinedWriter) for each in instruments)

    def begin(self, blocks: ThreadBlocks, shared: NDArray[np.uint8]) -> Observer:
        """Return the check of a chunk: one flag for each byte of its shared and local memory."""
        code, shape = self._launch.code, blocks.geometry
        undefined = None
        if self._follows:
            undefined = UndefinedValues(shape.threads, code.functions, self._findings)
        return ChunkOwnMemory(self._launch, blocks, undefined)


class ChunkOwnMemory(Observer):
    """One flag for each byte of the shared memory of blocks, and of the local memory of threads.

    `undefined` receives unwritten values if the code follows them. Without it a use of them is a
    fault. Shared memory that the system reserves is zero when a block begins.
    """

    spaces: tuple[str, ...] = ("shared", "local")

    def __init__(
        self, launch: ObservedLaunch, blocks: ThreadBlocks, undefined: UndefinedValues | None
    ) -> None:
        shape = blocks.geometry
        self._shape: Geometry = shape
        self._uses_of = launch.code.uses_of
        self._undefined = undefined
        # By space the reads that gave the bytes which are flagged as undefined.
        self._passed_on: dict[str, NDArray[np.int32]] = {}
        self._strides = {"shared": blocks.shared_stride, "local": blocks.local_stride}
        sizes = {
            "shared": shape.blocks * blocks.shared_stride,
            "local": shape.threads * blocks.local_stride,
        }
        self._flags: dict[str, NDArray[np.uint8]] = {
            space: np.zeros(nbytes, dtype=np.uint8) for space, nbytes in sizes.items()
        }
        of_blocks = self._flags["shared"].reshape(shape.blocks, blocks.shared_stride)
        of_blocks[:, launch.reserved_start :] = _KNOWN
        self._views: dict[str, dict[int, Flags]] = {
            space: {nbytes: flags.view(written.dtype) for nbytes, written in WRITTEN.items()}
            for space, flags in self._flags.items()
        }

    @cached_property
    def _written_cells(self) -> NDArray[np.bool_]:
        """Which cells of tensor memory were written. Most kernels have none."""
        return np.zeros((self._shape.blocks, LANES, COLUMNS), dtype=np.bool_)

    def follow(self, instrument: Instrument) -> object | None:
        """Return the undefined values in registers, which generated code follows."""
        return self._undefined if isinstance(instrument, UndefinedWriter) else None

    def access(self, access: Access) -> None:
        """Record an access to elements, and to their vectors.

        Raises:
            UninitialisedRead: a thread reads what no thread has written.
        """
        threads, space, site = access.threads, access.space, access.site
        index, start = access.positions, access.first << site.shift
        assert not isinstance(index, slice)  # of global memory alone
        reads = (not site.writes or site.facts.is_atomic) and not site.is_padding
        if self._undefined and site.writes and not reads:
            self._store(threads, start, index, site, space)
            return
        view = self._views[space].get(site.nbytes)
        if view is not None:
            elements, written = view[access.first :], WRITTEN[site.nbytes]
            if not reads or all((_of(elements[k:], index) == written).all() for k in site.parts):
                for k in range(site.count if site.writes else 0):
                    elements[k:][index] = written
                return
        first = start + (np.atleast_1d(np.asarray(index, dtype=np.int64)) << site.shift)
        used = np.array(used_bytes_of(site.instruction, site.total))
        every = first[:, None] + used
        flags = self._flags[space]
        if reads:
            wrong = self._wrong(flags[every], used, site)
            if wrong.any() and not self._is_followed(threads, wrong, first, site, space):
                position = int(np.argmax(wrong.any(axis=1)))
                raise self._fault(threads, position, int(first[position]), site, space)
        if site.writes:
            flags[every] = _KNOWN

    def copy_local(self, lanes: Index | slice, source: int, target: int, nbytes: int) -> None:
        """Copy the flags of bytes that were copied within the local memory of threads."""
        for flags in (self._flags["local"], self._passed_on.get("local")):
            if flags is not None:
                of_thread = flags.reshape(self._shape.threads, -1)
                part = of_thread[lanes, source : source + nbytes]
                of_thread[lanes, target : target + nbytes] = part

    def read_cells(self, threads: Threads, cells: Places, instruction: Instruction) -> None:
        """Check a read of tensor memory.

        Raises:
            UninitialisedRead: nothing has written a cell.
        """
        is_written = self._written_cells[cells]
        if is_written.all():
            return
        first = tuple(np.argwhere(~is_written)[0])
        lane, column = (int(coordinate[first]) for coordinate in cells[1:])
        raise UninitialisedRead(
            f"read of lane {lane}, column {column} of tensor memory, which nothing has written",
            threads.where(int(first[0]), instruction),
            address=lane << 16 | column,
            nbytes=4,
            space="tensor",
        )

    def write_cells(self, cells: Places) -> None:
        """Record a write of tensor memory."""
        self._written_cells[cells] = True

    def free_cells(self, block: int, first: int, columns: int) -> None:
        """Forget the writes of columns that a block frees."""
        self._written_cells[block, :, first : first + columns] = False

    def _wrong(self, flags: NDArray[np.uint8], used: Index, site: Site) -> NDArray[np.bool_]:
        """(threads, elements) mask of threads that use undefined bytes, or copy nothing else.

        `flags` is (threads, bytes); the bytes are those of the numbers `used` of an access.
        """
        is_defined = flags == _KNOWN
        uses: tuple[Use, ...] = ()
        if not site.writes and not is_defined.all():
            uses = self._uses_of(site.instruction)
            if site.facts.kind is InstructionKind.COPY:
                uses = (Use.COPIED,) * site.count
        if len(uses) != site.count:
            uses = (Use.USED,) * site.count
        wrong = np.zeros((len(is_defined), site.count), dtype=np.bool_)
        # The padding of a structure that a function takes or gives comes by itself.
        stands_alone = site.total < WORD or site.facts.space == "param"
        copies_nothing = (
            (flags == _UNDEFINED).all(axis=1) if stands_alone else ~is_defined.any(axis=1)
        )
        for element, use in enumerate(uses):
            if use is Use.USED:
                wrong[:, element] = ~is_defined[:, used // site.nbytes == element].all(axis=1)
            elif use is Use.COPIED:
                wrong[:, element] = copies_nothing
        return wrong

    def _is_followed(
        self, threads: Threads, wrong: NDArray[np.bool_], first: Index, site: Site, space: str
    ) -> bool:
        """Return whether the values stay undefined."""
        if self._undefined is None:
            return False
        passed_on = self._passed_on.get(space)
        starts = first[:, None] + site.nbytes * np.arange(site.count)
        return self._undefined.note_read(
            threads,
            wrong,
            first % self._strides[space],
            site,
            space,
            None if passed_on is None else passed_on[starts],
        )

    def _store(
        self, threads: Threads, start: int, index: Index | int, site: Site, space: str
    ) -> None:
        """Mark elements as written, except those whose value is undefined."""
        assert self._undefined is not None
        first = start + (np.atleast_1d(np.asarray(index, dtype=np.int64)) << site.shift)
        every = first[:, None] + np.arange(site.total)
        self._flags[space][every] = _KNOWN
        stored = self._undefined.stored(threads)
        if stored is None:
            return
        if len(first) == 1:  # all threads store to one place, the last one last
            stored = stored[:, -1:]
        reads = np.repeat(stored.T, site.nbytes, axis=1)
        self._flags[space][every[reads != 0]] = _UNDEFINED
        if space not in self._passed_on:
            self._passed_on[space] = np.zeros(len(self._flags[space]), dtype=np.int32)
        self._passed_on[space][every] = reads

    def _fault(
        self, threads: Threads, position: int, first: int, site: Site, space: str
    ) -> UninitialisedRead:
        address = first % self._strides[space]
        return UninitialisedRead(
            f"read of {bytes_text(site.total)} at {space} address {address:#x}, which nothing has"
            " written",
            threads.where(position, site.instruction),
            address=address,
            nbytes=site.total,
            space=space,
        )


def _of(elements: Flags, index: Index | int) -> Flags:
    """Elements that lie within, which `take` gives sooner than an index does."""
    selected: Flags = elements.take(index, mode="clip")
    return selected
