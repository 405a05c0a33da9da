"""Which bytes of shared and local memory were written, for the check of uninitialised reads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.site import Site, used_bytes_of
from ptx.emulate.memory.written import WORD, WRITTEN, Flags, Use
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import UninitialisedRead
from ptx.emulate.model.threads import Threads
from ptx.isa.model import Instruction

_READ_FIRST = ("atom", "red")


class Shadow:
    """One flag for each byte of the shared memory of `blocks` and of the local one of `threads`.

    The strides are the bytes that each block and each thread has. `uses_of` says what becomes of
    each element that an instruction loads; () if that is no load to registers.
    """

    def __init__(
        self,
        blocks: int,
        shared_stride: int,
        threads: int,
        local_stride: int,
        uses_of: Callable[[Instruction], tuple[Use, ...]],
    ) -> None:
        self._uses_of = uses_of
        self._strides = {"shared": shared_stride, "local": local_stride}
        sizes = {"shared": blocks * shared_stride, "local": threads * local_stride}
        self._flags: dict[str, NDArray[np.uint8]] = {
            space: np.zeros(nbytes, dtype=np.uint8) for space, nbytes in sizes.items()
        }
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
        view = self._views[space].get(site.nbytes)
        if view is not None:
            elements, whole = view[start >> site.shift :], WRITTEN[site.nbytes]
            if not reads or all((elements[k:][index] == whole).all() for k in site.parts):
                for k in range(site.count if site.writes else 0):
                    elements[k:][index] = whole
                return
        first = start + (np.atleast_1d(np.asarray(index, dtype=np.int64)) << site.shift)
        used = np.array(used_bytes_of(site.instruction, site.total))
        every = first[:, None] + used
        flags = self._flags[space]
        if reads:
            wrong = self._wrong(flags[every] != 0, used, site)
            if wrong.any():
                position = int(np.argmax(wrong))
                raise self._fault(threads, position, int(first[position]), site, space)
        if site.writes:
            flags[every] = 1

    def _wrong(self, known: NDArray[np.bool_], used: Index, site: Site) -> NDArray[np.bool_]:
        """Which threads use bytes that are not known, or copy none that is.

        `known` is (threads, bytes); the bytes are those of the numbers `used` of an access.
        """
        uses: tuple[Use, ...] = ()
        if not site.writes and not known.all():
            uses = self._uses_of(site.instruction)
            if site.instruction.opcode == "cp":
                uses = (Use.COPIED,) * site.count
        if len(uses) != site.count:
            uses = (Use.USED,) * site.count
        of_byte = np.array(uses)[used // site.nbytes]
        wrong = ~known[:, of_byte == Use.USED].all(axis=1)
        # The padding of a structure that a function takes or gives comes by itself.
        alone = site.total < WORD or "param" in site.instruction.modifiers
        if Use.COPIED in uses and not alone:
            wrong |= ~known.any(axis=1)
        return np.asarray(wrong)

    def copy(
        self, rows: Index | slice, source: int, target: int, nbytes: int, threads: int
    ) -> None:
        """Bytes were copied within the local memory of each of `rows`."""
        flags = self._flags["local"].reshape(threads, -1)
        flags[rows, target : target + nbytes] = flags[rows, source : source + nbytes]

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
