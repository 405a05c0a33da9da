"""Matrices of bytes spread over a warp. PTX ISA, "ldmatrix", "stmatrix": m16n16, m8n16, m16n8.

A row in memory is 16 bytes, at the address that a lane brings. Elements of 6 or 4 bits lie packed
at its start, with padding behind, and become the low bits of a byte each. Lane l has group l/4 and
place l%4. Of an 8x16 matrix it has bytes 4*place to 4*place+3 of row group. A 16x16 matrix is
loaded transposed: its first word has byte group of rows 4*place to 4*place+3, its second word byte
group+8. A 16x8 matrix is stored transposed, from words as `mma` has them of D: two columns of row
group, and of row group+8; each column is a row in memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import load_vector, locate, store
from ptx.emulate.codegen.count_writer import count_access
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Index, addresses_in
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.matrix.matrix_element import plain_words
from ptx.emulate.ops.matrix.matrix_move import row_address
from ptx.emulate.ops.warp.lane_sync import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_ROW = 16
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_SPACES = ("shared", "shared::cta")
_PACKED = {"b6x16_p32": 6, "b4x16_p64": 4}
Octets = NDArray[np.uint8]


def _unpacked(octets: Octets, bits: int) -> Octets:
    """(n, 16) elements of (n, 16) bytes of memory."""
    if bits == 8:
        return octets
    each = np.unpackbits(octets, axis=1, bitorder="little")[:, : _ROW * bits]
    weights = (1 << np.arange(bits)).astype(np.uint8)
    found: Octets = each.reshape(-1, _ROW, bits) @ weights
    return found


class _Rows:
    """The rows of matrices, by the addresses that lanes bring."""

    def __init__(self, fibre: Fibre, group: Group, address: Value, site: Site) -> None:
        self._fibre = fibre
        self._site = site
        lane = group.mine & (WARP - 1)
        self._first: Index = group.mine - lane
        self._starts = group.grid(fibre, "address", address)
        self.group: Index = lane >> 2
        self.place: Index = lane & 3
        self._here = np.arange(len(lane))

    def start(self, number: Index) -> NDArray[np.int64]:
        """(n,) the address of one row for each thread."""
        return self._starts.take(self._first + number)

    def read(self, number: Index, bits: int) -> Octets:
        """(n, 16) the elements of one row for each thread."""
        words = load_vector(self._fibre, addresses_in(self.start(number)), 0, self._site)
        whole = np.stack([np.broadcast_to(word, self._here.shape) for word in words], axis=1)
        return _unpacked(np.ascontiguousarray(whole).view(np.uint8), bits)

    def word_of(self, columns: list[Octets]) -> Value:
        """(n,) four bytes, the first one lowest."""
        joined = np.ascontiguousarray(np.stack(columns, axis=1))
        return joined.view(np.uint32)[:, 0]

    def element(self, octets: Octets, at: Index) -> Octets:
        """(n,) one element of each row."""
        return octets[self._here, at]


def load_wide(
    fibre: Fibre, group: Group, address: Value, count: int, bits: int, site: Site
) -> list[Value]:
    """`ldmatrix.m8n16`: for each matrix the word of each thread."""
    rows = _Rows(fibre, group, address, site)
    found = []
    for matrix in range(count):
        octets = rows.read(8 * matrix + rows.group, bits)
        found.append(rows.word_of([rows.element(octets, 4 * rows.place + k) for k in range(4)]))
    return found


def load_square(
    fibre: Fibre, group: Group, address: Value, count: int, bits: int, site: Site
) -> list[Value]:
    """`ldmatrix.m16n16.trans`: for each matrix two words of each thread."""
    rows = _Rows(fibre, group, address, site)
    found = []
    for matrix in range(count):
        four = [rows.read(_ROW * matrix + 4 * rows.place + k, bits) for k in range(4)]
        found += [
            rows.word_of([rows.element(row, rows.group + below) for row in four])
            for below in (0, 8)
        ]
    return found


def store_tall(
    fibre: Fibre, group: Group, address: Value, sites: tuple[Site, Site], *words: Value
) -> None:
    """`stmatrix.m16n8.trans`: each thread writes its four elements of each matrix."""
    whole, one = sites
    rows = _Rows(fibre, group, address, whole)
    for matrix, word in enumerate(words):
        for k in range(4):
            start = rows.start(8 * matrix + 2 * rows.place + k % 2)
            locate(fibre, addresses_in(start), 0, whole, is_access=False)  # it is in bounds
            value = (np.broadcast_to(word, start.shape) >> np.uint32(8 * k)).astype(np.uint8)
            store(fibre, addresses_in(start + rows.group + 8 * (k // 2)), 0, one, value)


def _load(e: Emitter, i: Instruction) -> None:
    _, _, shape, number, *_ = plain_words(i)
    packed = [_PACKED[word] for word in i.modifiers if word in _PACKED]
    is_plain = "b8" in i.modifiers
    if len(packed) + is_plain != 1 or ("b8x16" in i.modifiers) == is_plain:
        raise e.refuse("it loads .b8, or .b8x16 from .b6x16_p32 or .b4x16_p64")
    if (shape == "m16n16") != ("trans" in i.modifiers):
        raise e.refuse("16x16 matrices are transposed, and 8x16 ones are not")
    address, space = row_address(e, i, 1)
    site = e.site(space, "u32", 4)
    group = sync_warp(e, i, {"address": address})
    count_access(e, f"{e.helper(addresses_in)}({address})", 0, site)
    function = e.helper(load_square if shape == "m16n16" else load_wide)
    bits = packed[0] if packed else 8
    count = _COUNTS[number]
    found = e.temporary(f"{function}(f, {group}, {address}, {count}, {bits}, {site})")
    results = count * (2 if shape == "m16n16" else 1)
    e.assign_all(i.operands[0], "b32", [f"{found}[{k}]" for k in range(results)])


def _store(e: Emitter, i: Instruction) -> None:
    words = [e.temporary(word) for word in e.values(i.operands[1], "b32")]
    if len(words) != _COUNTS[plain_words(i)[3]]:
        raise e.refuse("the number of matrices and of registers differ")
    if "trans" not in i.modifiers:
        raise e.refuse("16x8 matrices are transposed")
    address, space = row_address(e, i, 0)
    whole = e.site(space, "u32", 4, writes=True)
    sites = f"({whole}, {e.site(space, 'u8', writes=True)})"
    group = sync_warp(e, i, {"address": address})
    count_access(e, f"{e.helper(addresses_in)}({address})", 0, whole)
    e.line(f"{e.helper(store_tall)}(f, {group}, {address}, {sites}, {', '.join(words)})")


for _shape, _numbers, _types in (
    ("m16n16", ("x1", "x2"), ("b8", "")), ("m8n16", ("x1", "x2", "x4"), ("",)),
):  # fmt: skip
    for _number in _numbers:
        operation(
            f"ldmatrix.sync.aligned.{_shape}.{_number}", _types, 2, _load, effect=Effect.SYNCS,
            modifiers=(*_SPACES, "trans", "b8x16", *_PACKED), section="ldmatrix",
        )  # fmt: skip
for _number in _COUNTS:
    operation(
        f"stmatrix.sync.aligned.m16n8.{_number}", ("b8",), 2, _store, effect=Effect.SYNCS,
        modifiers=(*_SPACES, "trans"), writes=0, section="stmatrix",
    )  # fmt: skip
