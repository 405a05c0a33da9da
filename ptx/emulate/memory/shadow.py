"""Which bytes of shared and local memory were written, for the check of uninitialised reads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.site import Site, used_bytes_of
from ptx.emulate.memory.undefined_values import UndefinedValues
from ptx.emulate.memory.written import WORD, WRITTEN, Flags, Use
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import UninitialisedRead
from ptx.emulate.model.threads import Threads
from ptx.isa.model import Instruction

_READ_FIRST = ("atom", "red")
_KNOWN, _UNDEFINED = 1, 2  # flags of bytes that were written, the latter with an undefined value


class Shadow:
    """One flag for each byte of the shared memory of `blocks` and of the local one of `threads`.

    The strides are the bytes that each block and each thread has; shared memory from
    `reserved_start` on is the system's, and zero when a block begins. `uses_of` says what becomes
    of each element that an instruction loads; () if that is no load to registers. `undefined`
    takes values that nothing has written, where the code follows them; else a use of them is a
    fault.
    """

    def __init__(
        self,
        blocks: int,
        shared_stride: int,
        reserved_start: int,
        threads: int,
        local_stride: int,
        uses_of: Callable[[Instruction], tuple[Use, ...]],
        undefined: UndefinedValues | None = None,
    ) -> None:
        self._uses_of = uses_of
        self._undefined = undefined
        # By space the reads that gave the bytes which are flagged as undefined.
        self._passed_on: dict[str, NDArray[np.int32]] = {}
        self._strides = {"shared": shared_stride, "local": local_stride}
        sizes = {"shared": blocks * shared_stride, "local": threads * local_stride}
        self._flags: dict[str, NDArray[np.uint8]] = {
            space: np.zeros(nbytes, dtype=np.uint8) for space, nbytes in sizes.items()
        }
        self._flags["shared"].reshape(blocks, shared_stride)[:, reserved_start:] = _KNOWN
        self._views: dict[str, dict[int, Flags]] = {
            space: {nbytes: flags.view(whole.dtype) for nbytes, whole in WRITTEN.items()}
            for space, flags in self._flags.items()
        }

    def note(
        self, threads: Threads, start: int, index: Index | int, site: Site, space: str
    ) -> None:
        """An access to the elements at `index` from byte `start` on, and to those of their vectors.

        Raises:
            UninitialisedRead: a thread reads what no thread has written.
        """
        reads = not site.writes or site.instruction.opcode in _READ_FIRST
        if self._undefined and site.writes and not reads:
            self._store(threads, start, index, site, space)
            return
        view = self._views[space].get(site.nbytes)
        if view is not None:
            elements, whole = view[start >> site.shift :], WRITTEN[site.nbytes]
            if not reads or all((_of(elements[k:], index) == whole).all() for k in site.parts):
                for k in range(site.count if site.writes else 0):
                    elements[k:][index] = whole
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

    def _wrong(self, flags: NDArray[np.uint8], used: Index, site: Site) -> NDArray[np.bool_]:
        """(threads, elements) which threads use bytes that are not known, or copy none that is.

        `flags` is (threads, bytes); the bytes are those of the numbers `used` of an access.
        """
        known = flags == _KNOWN
        uses: tuple[Use, ...] = ()
        if not site.writes and not known.all():
            uses = self._uses_of(site.instruction)
            if site.instruction.opcode == "cp":
                uses = (Use.COPIED,) * site.count
        if len(uses) != site.count:
            uses = (Use.USED,) * site.count
        wrong = np.zeros((len(known), site.count), dtype=np.bool_)
        # The padding of a structure that a function takes or gives comes by itself.
        alone = site.total < WORD or "param" in site.instruction.modifiers
        nothing = (flags == _UNDEFINED).all(axis=1) if alone else ~known.any(axis=1)
        for element, use in enumerate(uses):
            if use is Use.USED:
                wrong[:, element] = ~known[:, used // site.nbytes == element].all(axis=1)
            elif use is Use.COPIED:
                wrong[:, element] = nothing
        return wrong

    def _is_followed(
        self, threads: Threads, wrong: NDArray[np.bool_], first: Index, site: Site,
        space: str,
    ) -> bool:  # fmt: skip
        """Whether the values go on as undefined ones."""
        if self._undefined is None:
            return False
        known = self._passed_on.get(space)
        starts = first[:, None] + site.nbytes * np.arange(site.count)
        return self._undefined.note_read(
            threads, wrong, first % self._strides[space], site, space,
            None if known is None else known[starts],
        )  # fmt: skip

    def _store(
        self, threads: Threads, start: int, index: Index | int, site: Site, space: str
    ) -> None:
        """Elements are written, but for those whose value is undefined."""
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

    def copy(
        self, rows: Index | slice, source: int, target: int, nbytes: int, threads: int
    ) -> None:
        """Bytes were copied within the local memory of each of `rows`."""
        for each in (self._flags["local"], self._passed_on.get("local")):
            if each is not None:
                of_thread = each.reshape(threads, -1)
                part = of_thread[rows, source : source + nbytes]
                of_thread[rows, target : target + nbytes] = part

    def _fault(
        self, threads: Threads, position: int, first: int, site: Site, space: str
    ) -> UninitialisedRead:
        address = first % self._strides[space]
        return UninitialisedRead(
            f"read of {site.total} bytes at {space} address {address:#x}, which nothing has"
            " written",
            threads.where(position, site.instruction),
            address=address, nbytes=site.total, space=space,
        )  # fmt: skip


def _of(elements: Flags, index: Index | int) -> Flags:
    """Elements that lie within, which `take` gives sooner than an index does."""
    found: Flags = elements.take(index, mode="clip")
    return found
