"""Matrices in shared memory, as a descriptor says. PTX ISA, "wgmma" and "tcgen05", descriptors.

A matrix is rows of A (columns of B) by 32 bytes along k, by 64 the B of a sparse product. It is
K-major, in memory 16 bytes of a row beside each other, or, of 16-bit elements and for `tcgen05` of
8-bit ones, MN-major: 8 or 16 rows of one k beside each other. These 16 bytes lie

- without swizzling: 8 of them in a line, which is 8 rows of the first half of k (or k 0 to 7 of as
  many rows), and from line to line by the leading and the stride offset;
- with it: in rows of 32, 64 or 128 bytes, eight of which are a pattern; then bits of the address
  from 4 on are exclusive-ored with those from 7 on, less the base offset.

A descriptor's fields, from bit: 0 the address, 16 the leading, 32 the stride offset, each of 14
bits and in units of 16 bytes; 49 the base offset, 3 bits; 62 the swizzling, of `tcgen05` 61. What
the ISA leaves to figures is as an H100 was seen to read. Of 64 bytes along k in rows of 32 the ISA
does not say where the second half lies, and they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import load_vector
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Index, addresses_in
from ptx.emulate.model.errors import EmulationFault
from ptx.emulate.ops.matrix.matrix_element import WIDTHS, decoded, separate
from ptx.emulate.threads.fibre import Fibre

Matrices = NDArray[Any]  # (n, rows, k) of float64, or int64 for s32
Numbers = NDArray[np.int64]
_UNIT: Final = 16
_WIDTHS: Final = np.array([16, 128, 64, 32])  # by the field at bit 62: bytes of a pattern's row
_MASKS: Final = np.array([0, 7, 3, 1])  # which of three bits are swizzled


@dataclass(frozen=True, slots=True)
class SharedMatrix:
    """How an instruction reads one factor from shared memory.

    Attributes:
        element: the type; rows: how many each warp reads.
        transposed: whether it is MN-major.
        site: the access of 16 bytes.
        k_bytes: how much of a row it reads.
    """

    element: str
    rows: int
    transposed: bool
    site: Site
    k_bytes: int = 32

    def read(
        self, fibre: Fibre, threads: Index, descriptors: NDArray[np.uint64], first: Numbers
    ) -> Matrices:
        """(warps, rows, k): what one thread of each warp names; `first` is each warp's first row.

        Raises:
            MemoryFault: it reaches out of the block's shared memory.
        """
        words = self.load(fibre, threads, descriptors, first)
        elements = separate(words, self.element)
        if self.transposed:
            elements = np.ascontiguousarray(elements.swapaxes(1, 2))
        return decoded(elements.reshape(len(threads), self.rows, -1), self.element)

    def load(
        self, fibre: Fibre, threads: Index, descriptors: NDArray[np.uint64], first: Numbers
    ) -> NDArray[np.uint32]:
        """The same as words: (warps, rows, words of a row), or as they lie where MN-major.

        Raises:
            EmulationFault: it lies as the emulator does not know.
        """
        fields = _DescriptorFields(descriptors)
        if not self.transposed and self.k_bytes > _WIDTHS[3] and (fields.width == _WIDTHS[3]).any():
            raise EmulationFault(
                f"{self.site.instruction.text} reads 64 bytes along k in rows that are swizzled by"
                " 32 bytes, which the emulator does not know: swizzle by 64 or 128 bytes",
                fibre.where(int(threads[0]), self.site.instruction),
            )
        pieces = self.pieces(descriptors, first)
        each = pieces[0].size
        part = fibre.subset(np.repeat(threads, each), ())
        loaded = load_vector(part, addresses_in(pieces.reshape(-1)), 0, self.site)
        words = np.stack([np.broadcast_to(word, (pieces.size,)) for word in loaded], axis=-1)
        return words.reshape(*pieces.shape[:2], -1)

    def pieces(self, descriptors: NDArray[np.uint64], first: Numbers) -> Numbers:
        """The address of each 16 bytes, for each warp, which begins with a row."""
        return self._addresses(_DescriptorFields(descriptors), first[:, None])

    def _addresses(self, d: _DescriptorFields, first: Numbers) -> Numbers:
        """Of each 16 bytes: (warps, rows, 2 or 4), or (warps, k, rows / 8 or 16) if MN-major."""
        if not self.transposed:
            row = first + np.arange(self.rows)
            half = np.arange(self.k_bytes // _UNIT)
            line = (row % 8 * d.width + row // 8 * d.stride)[..., None]
            along = np.where(d.plain, d.leading, _UNIT)[..., None] * half
            return d.swizzled(line + along)
        # The two offsets change their parts where nothing is swizzled.
        beside = 8 * _UNIT // WIDTHS[self.element]
        k = np.arange(self.k_bytes * beside // _UNIT)
        group = (first + beside * np.arange(self.rows // beside)) // beside
        line = k % 8 * d.width + k // 8 * np.where(d.plain, d.leading, d.stride)
        count = d.width // _UNIT
        along = group % count * _UNIT + group // count * np.where(d.plain, d.stride, d.leading)
        return d.swizzled(line[..., None] + along[:, None, :])


class _DescriptorFields:
    """The fields of descriptors, (warps, 1) each."""

    def __init__(self, descriptors: NDArray[np.uint64]) -> None:
        bits = descriptors[:, None].view(np.int64)
        self.start, self.leading, self.stride = (
            (bits >> at & 0x3FFF) * _UNIT for at in (0, 16, 32)
        )
        self.base = bits >> 49 & 7
        mode = bits >> 62 & 3
        self.plain = mode == 0
        self.width: Numbers = _WIDTHS[mode]
        self._mask: Numbers = _MASKS[mode]

    def swizzled(self, offsets: Numbers) -> Numbers:
        """The addresses at offsets, (warps, …, …)."""
        start, base, mask = (x[..., None] for x in (self.start, self.base, self._mask))
        address = start + offsets
        found: Numbers = address ^ ((address >> 7) - base & mask) << 4
        return found
