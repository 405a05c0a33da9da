"""Matrices between shared memory and a warp. PTX ISA, "ldmatrix", "stmatrix", "movmatrix".

**16-bit elements.** A row is 8 elements, 16 bytes. Lane l holds elements 2*(l%4) and 2*(l%4)+1 of
row l/4 in one word; lane 8*m+r holds the address of row r of matrix m.

**Bytes** (m16n16, m8n16, m16n8). A row in memory is 16 bytes, at the address that a lane supplies.
Elements of 6 or 4 bits are packed at its start, followed by padding, and become the low bits of a
byte each. Lane l has group l/4 and place l%4.

- An 8x16 matrix: the lane has bytes 4*place to 4*place+3 of row group.
- A 16x16 matrix is loaded transposed. The first word has byte group of rows 4*place to 4*place+3,
  the second word byte group+8.
- A 16x8 matrix is stored transposed, from words in the layout of D of `mma`: two columns of row
  group, and of row group+8. Each column is a row in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import load_vector, locate, store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Index, addresses_in
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.data_movement import space_of
from ptx.emulate.ops.matrix import plain_words
from ptx.emulate.ops.warp import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_SPACES = ("shared", "shared::cta", "trans")
Words = NDArray[np.uint32]


def _element(word: Value, position: Value) -> Value:
    """(n,) uint16: an element of each word, the low one for even places."""
    return (word >> (np.uint32(16) * (position & 1).astype(np.uint32))).astype(np.uint16)


def _packed(low: Value, high: Value) -> Words:
    joined: Words = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    return joined


def _lanes(group: Group) -> tuple[Index, Index]:
    lane = group.mine & (WARP - 1)
    return lane, group.mine - lane


def load_matrices(
    fibre: Fibre, group: Group, address: Value, count: int, transposed: bool, site: Site
) -> list[Words]:
    """`ldmatrix`: for each matrix the word of each thread."""
    rows = group.grid(fibre, "address", address)
    lane, first = _lanes(group)

    def row(matrix: int, number: Index) -> NDArray[Any]:
        addresses = addresses_in(rows.take(first + 8 * matrix + number))
        return np.stack(
            [np.broadcast_to(w, lane.shape) for w in load_vector(fibre, addresses, 0, site)]
        )

    threads = np.arange(len(lane))
    words: list[Words] = []
    for matrix in range(count):
        if not transposed:
            words.append(row(matrix, lane >> 2)[lane & 3, threads])
            continue
        column = lane >> 2
        low, high = (row(matrix, 2 * (lane & 3) + k)[column >> 1, threads] for k in (0, 1))
        words.append(_packed(_element(low, column), _element(high, column)))
    return words


def store_matrices(
    fibre: Fibre,
    group: Group,
    address: Value,
    transposed: bool,
    sites: tuple[Site, Site],
    *words: Value,
) -> None:
    """`stmatrix`: each thread writes its two elements of each matrix."""
    rows = group.grid(fibre, "address", address)
    lane, first = _lanes(group)
    row_site, element_site = sites
    for matrix, word in enumerate(words):
        for k in (0, 1):
            pair = 2 * (lane & 3) + k
            number, column = (pair, lane >> 2) if transposed else (lane >> 2, pair)
            start = rows.take(first + 8 * matrix + number)
            locate(fibre, addresses_in(start), 0, row_site, is_access=False)  # it is in bounds
            value = np.broadcast_to(_element(word, np.int64(k)), lane.shape)
            store(fibre, addresses_in(start + 2 * column), 0, element_site, value)


def transpose(fibre: Fibre, group: Group, word: Value) -> Words:
    """`movmatrix.trans`: the transposed matrix's word of each thread."""
    grid = group.grid(fibre, "word", word)
    lane, first = _lanes(group)
    column = lane >> 2
    low, high = (
        _element(grid.take(first + 4 * (2 * (lane & 3) + k) + (column >> 1)), column)
        for k in (0, 1)
    )
    return _packed(low, high)


def row_address(e: Emitter, i: Instruction, operand: int) -> tuple[str, str]:
    """The variable with every thread's address, and the space."""
    addresses, offset, space = e.address(i.operands[operand], space_of(i))
    return e.temporary(f"{addresses}.every(f.n) + {offset}"), space


def _count_rows(e: Emitter, address: str, site: str) -> None:
    e.note_access(f"{e.helper(addresses_in)}({address})", 0, site)


def _load(e: Emitter, i: Instruction) -> None:
    count = _COUNTS[plain_words(i)[3]]
    address, space = row_address(e, i, 1)
    site = e.site(space, "u32", 4)
    group = sync_warp(e, i, {"address": address})
    _count_rows(e, address, site)
    call = f"{e.helper(load_matrices)}(f, {group}, {address}, {count}"
    words = e.temporary(f"{call}, {'trans' in i.modifiers}, {site})")
    e.assign_all(i.operands[0], "b32", [f"{words}[{k}]" for k in range(count)])


def _store(e: Emitter, i: Instruction) -> None:
    source = i.operands[1]
    words = [e.temporary(word) for word in e.values(source, "b32")]
    if len(words) != _COUNTS[plain_words(i)[3]]:
        raise e.reject("the number of matrices and of registers differ")
    address, space = row_address(e, i, 0)
    row_site = e.site(space, "u32", 4, writes=True)
    sites = f"({row_site}, {e.site(space, 'u16', writes=True)})"
    group = sync_warp(e, i, {"address": address})
    _count_rows(e, address, row_site)
    call = f"{e.helper(store_matrices)}(f, {group}, {address}, {'trans' in i.modifiers}, {sites}"
    e.line(f"{call}, {', '.join(words)})")


def _move(e: Emitter, i: Instruction) -> None:
    word = e.temporary(e.value(i.operands[1], "b32"))
    group = sync_warp(e, i, {"word": word})
    e.assign(i.operands[0], "b32", f"{e.helper(transpose)}(f, {group}, {word})")


for _count in _COUNTS:
    operation(
        f"ldmatrix.sync.aligned.m8n8.{_count}",
        ("b16",),
        2,
        _load,
        effect=Effect.SYNCS,
        modifiers=_SPACES,
        section="ldmatrix",
    )
    operation(
        f"stmatrix.sync.aligned.m8n8.{_count}",
        ("b16",),
        2,
        _store,
        effect=Effect.SYNCS,
        modifiers=_SPACES,
        writes=0,
        section="stmatrix",
    )
operation(
    "movmatrix.sync.aligned.m8n8.trans",
    ("b16",),
    2,
    _move,
    effect=Effect.SYNCS,
    section="movmatrix",
)


_ROW = 16
_SHARED = ("shared", "shared::cta")
_PACKED = {"b6x16_p32": 6, "b4x16_p64": 4}
Octets = NDArray[np.uint8]


def _unpacked(octets: Octets, bits: int) -> Octets:
    """(n, 16) elements of (n, 16) bytes of memory."""
    if bits == 8:
        return octets
    element_bits = np.unpackbits(octets, axis=1, bitorder="little")[:, : _ROW * bits]
    weights = (1 << np.arange(bits)).astype(np.uint8)
    elements: Octets = element_bits.reshape(-1, _ROW, bits) @ weights
    return elements


class _Rows:
    """The rows of matrices, by the addresses that lanes hold."""

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
        row = np.stack([np.broadcast_to(word, self._here.shape) for word in words], axis=1)
        return _unpacked(np.ascontiguousarray(row).view(np.uint8), bits)

    def word_of(self, columns: list[Octets]) -> Value:
        """(n,) four bytes, the first one lowest."""
        joined = np.ascontiguousarray(np.stack(columns, axis=1))
        return joined.view(np.uint32)[:, 0]

    def element(self, octets: Octets, column: Index) -> Octets:
        """(n,) one element of each row."""
        return octets[self._here, column]


def load_wide(
    fibre: Fibre, group: Group, address: Value, count: int, bits: int, site: Site
) -> list[Value]:
    """`ldmatrix.m8n16`: for each matrix the word of each thread."""
    rows = _Rows(fibre, group, address, site)
    words = []
    for matrix in range(count):
        octets = rows.read(8 * matrix + rows.group, bits)
        words.append(rows.word_of([rows.element(octets, 4 * rows.place + k) for k in range(4)]))
    return words


def load_square(
    fibre: Fibre, group: Group, address: Value, count: int, bits: int, site: Site
) -> list[Value]:
    """`ldmatrix.m16n16.trans`: for each matrix two words of each thread."""
    rows = _Rows(fibre, group, address, site)
    words = []
    for matrix in range(count):
        four = [rows.read(_ROW * matrix + 4 * rows.place + k, bits) for k in range(4)]
        words += [
            rows.word_of([rows.element(row, rows.group + half) for row in four]) for half in (0, 8)
        ]
    return words


def store_tall(
    fibre: Fibre, group: Group, address: Value, sites: tuple[Site, Site], *words: Value
) -> None:
    """`stmatrix.m16n8.trans`: each thread writes its four elements of each matrix."""
    row_site, element_site = sites
    rows = _Rows(fibre, group, address, row_site)
    for matrix, word in enumerate(words):
        for k in range(4):
            start = rows.start(8 * matrix + 2 * rows.place + k % 2)
            locate(fibre, addresses_in(start), 0, row_site, is_access=False)  # it is in bounds
            value = (np.broadcast_to(word, start.shape) >> np.uint32(8 * k)).astype(np.uint8)
            store(fibre, addresses_in(start + rows.group + 8 * (k // 2)), 0, element_site, value)


def _load_bytes(e: Emitter, i: Instruction) -> None:
    _, _, shape, number, *_ = plain_words(i)
    packed = [_PACKED[word] for word in i.modifiers if word in _PACKED]
    is_plain = "b8" in i.modifiers
    if len(packed) + is_plain != 1 or ("b8x16" in i.modifiers) == is_plain:
        raise e.reject("it loads .b8, or .b8x16 from .b6x16_p32 or .b4x16_p64")
    if (shape == "m16n16") != ("trans" in i.modifiers):
        raise e.reject("16x16 matrices are transposed, and 8x16 ones are not")
    address, space = row_address(e, i, 1)
    site = e.site(space, "u32", 4)
    group = sync_warp(e, i, {"address": address})
    e.note_access(f"{e.helper(addresses_in)}({address})", 0, site)
    function = e.helper(load_square if shape == "m16n16" else load_wide)
    bits = packed[0] if packed else 8
    count = _COUNTS[number]
    words = e.temporary(f"{function}(f, {group}, {address}, {count}, {bits}, {site})")
    results = count * (2 if shape == "m16n16" else 1)
    e.assign_all(i.operands[0], "b32", [f"{words}[{k}]" for k in range(results)])


def _store_bytes(e: Emitter, i: Instruction) -> None:
    words = [e.temporary(word) for word in e.values(i.operands[1], "b32")]
    if len(words) != _COUNTS[plain_words(i)[3]]:
        raise e.reject("the number of matrices and of registers differ")
    if "trans" not in i.modifiers:
        raise e.reject("16x8 matrices are transposed")
    address, space = row_address(e, i, 0)
    row_site = e.site(space, "u32", 4, writes=True)
    sites = f"({row_site}, {e.site(space, 'u8', writes=True)})"
    group = sync_warp(e, i, {"address": address})
    e.note_access(f"{e.helper(addresses_in)}({address})", 0, row_site)
    e.line(f"{e.helper(store_tall)}(f, {group}, {address}, {sites}, {', '.join(words)})")


for _shape, _numbers, _types in (
    ("m16n16", ("x1", "x2"), ("b8", "")),
    ("m8n16", ("x1", "x2", "x4"), ("",)),
):
    for _number in _numbers:
        operation(
            f"ldmatrix.sync.aligned.{_shape}.{_number}",
            _types,
            2,
            _load_bytes,
            effect=Effect.SYNCS,
            modifiers=(*_SHARED, "trans", "b8x16", *_PACKED),
            section="ldmatrix",
        )
for _number in _COUNTS:
    operation(
        f"stmatrix.sync.aligned.m16n8.{_number}",
        ("b8",),
        2,
        _store_bytes,
        effect=Effect.SYNCS,
        modifiers=(*_SHARED, "trans"),
        writes=0,
        section="stmatrix",
    )
