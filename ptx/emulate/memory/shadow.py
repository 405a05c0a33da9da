"""Which bytes of shared and local memory were written, for the check of uninitialised reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import UninitialisedRead

if TYPE_CHECKING:
    from ptx.emulate.exec.fibre import Fibre
    from ptx.emulate.exec.scheduler import Chunk
    from ptx.emulate.memory.access import Site

_READ_FIRST = ("atom", "red")


class Shadow:
    """One flag for each byte of a chunk's shared and local memory."""

    def __init__(self, chunk: Chunk) -> None:
        geometry = chunk.geometry
        self._flags: dict[str, NDArray[np.bool_]] = {
            "shared": np.zeros(geometry.blocks * chunk.shared_stride, dtype=np.bool_),
            "local": np.zeros(geometry.threads * chunk.local_stride, dtype=np.bool_),
        }

    def note(
        self, fibre: Fibre, elements: NDArray[Any], index: Index | int, site: Site, space: str
    ) -> None:
        """An access to `elements[index]`, and what lies behind them in a vector.

        Raises:
            UninitialisedRead: a thread reads what no thread has written.
        """
        chunk = fibre.chunk
        memory = chunk.shared if space == "shared" else chunk.local
        start = elements.ctypes.data - memory.ctypes.data
        first = start + (np.atleast_1d(np.asarray(index, dtype=np.int64)) << site.shift)
        every = first[:, None] + np.arange(site.total)
        flags = self._flags[space]
        if not site.writes or site.instruction.opcode in _READ_FIRST:
            known = flags[every].all(axis=1)
            if not known.all():
                self._fail(fibre, int(np.argmin(known)), first, site, space)
        if site.writes:
            flags[every] = True

    def copy(
        self, rows: Index | slice, source: int, target: int, nbytes: int, threads: int
    ) -> None:
        """Bytes were copied within the local memory of each of `rows`."""
        flags = self._flags["local"].reshape(threads, -1)
        flags[rows, target : target + nbytes] = flags[rows, source : source + nbytes]

    def _fail(
        self, fibre: Fibre, position: int, first: NDArray[np.int64], site: Site, space: str
    ) -> None:
        chunk = fibre.chunk
        stride = chunk.shared_stride if space == "shared" else chunk.local_stride
        address = int(first[position]) % stride
        raise UninitialisedRead(
            f"read of {site.total} bytes at {space} address {address:#x}, which nothing has"
            " written",
            chunk.launch.where(fibre, position, site.instruction),
            address=address, nbytes=site.total, space=space,
        )  # fmt: skip
