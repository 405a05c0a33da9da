"""8x8 matrices of 16-bit elements spread over a warp. PTX ISA, "ldmatrix", "stmatrix", "movmatrix".

A row is 8 elements, 16 bytes. Lane l holds elements 2*(l%4) and 2*(l%4)+1 of row l/4 in one word;
lane 8*m+r brings the address of row r of matrix m.
"""

from __future__ import annotations

from typing import Any

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
from ptx.emulate.ops.memory.load_store import space_of
from ptx.emulate.ops.warp.lane_sync import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_SPACES = ("shared", "shared::cta", "trans")
Words = NDArray[np.uint32]


def _element(word: Value, place: Value) -> Value:
    """(n,) uint16: an element of each word, the low one for even places."""
    return (word >> (np.uint32(16) * (place & 1).astype(np.uint32))).astype(np.uint16)


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
        where = addresses_in(rows.take(first + 8 * matrix + number))
        return np.stack(
            [np.broadcast_to(w, lane.shape) for w in load_vector(fibre, where, 0, site)]
        )

    here = np.arange(len(lane))
    found: list[Words] = []
    for matrix in range(count):
        if not transposed:
            found.append(row(matrix, lane >> 2)[lane & 3, here])
            continue
        column = lane >> 2
        low, high = (row(matrix, 2 * (lane & 3) + k)[column >> 1, here] for k in (0, 1))
        found.append(_packed(_element(low, column), _element(high, column)))
    return found


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
    whole, one = sites
    for matrix, word in enumerate(words):
        for k in (0, 1):
            pair = 2 * (lane & 3) + k
            number, column = (pair, lane >> 2) if transposed else (lane >> 2, pair)
            start = rows.take(first + 8 * matrix + number)
            locate(fibre, addresses_in(start), 0, whole, is_access=False)  # it is in bounds
            value = np.broadcast_to(_element(word, np.int64(k)), lane.shape)
            store(fibre, addresses_in(start + 2 * column), 0, one, value)


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
    where, offset, space = e.address(i.operands[operand], space_of(i))
    return e.temporary(f"{where}.every(f.n) + {offset}"), space


def _count_rows(e: Emitter, address: str, site: str) -> None:
    count_access(e, f"{e.helper(addresses_in)}({address})", 0, site)


def _load(e: Emitter, i: Instruction) -> None:
    count = _COUNTS[plain_words(i)[3]]
    address, space = row_address(e, i, 1)
    site = e.site(space, "u32", 4)
    group = sync_warp(e, i, {"address": address})
    _count_rows(e, address, site)
    call = f"{e.helper(load_matrices)}(f, {group}, {address}, {count}"
    found = e.temporary(f"{call}, {'trans' in i.modifiers}, {site})")
    e.assign_all(i.operands[0], "b32", [f"{found}[{k}]" for k in range(count)])


def _store(e: Emitter, i: Instruction) -> None:
    source = i.operands[1]
    words = [e.temporary(word) for word in e.values(source, "b32")]
    if len(words) != _COUNTS[plain_words(i)[3]]:
        raise e.refuse("the number of matrices and of registers differ")
    address, space = row_address(e, i, 0)
    whole = e.site(space, "u32", 4, writes=True)
    sites = f"({whole}, {e.site(space, 'u16', writes=True)})"
    group = sync_warp(e, i, {"address": address})
    _count_rows(e, address, whole)
    call = f"{e.helper(store_matrices)}(f, {group}, {address}, {'trans' in i.modifiers}, {sites}"
    e.line(f"{call}, {', '.join(words)})")


def _move(e: Emitter, i: Instruction) -> None:
    word = e.temporary(e.value(i.operands[1], "b32"))
    group = sync_warp(e, i, {"word": word})
    e.assign(i.operands[0], "b32", f"{e.helper(transpose)}(f, {group}, {word})")


for _count in _COUNTS:
    operation(
        f"ldmatrix.sync.aligned.m8n8.{_count}", ("b16",), 2, _load, effect=Effect.SYNCS,
        modifiers=_SPACES, section="ldmatrix",
    )  # fmt: skip
    operation(
        f"stmatrix.sync.aligned.m8n8.{_count}", ("b16",), 2, _store, effect=Effect.SYNCS,
        modifiers=_SPACES, writes=0, section="stmatrix",
    )  # fmt: skip
operation(
    "movmatrix.sync.aligned.m8n8.trans", ("b16",), 2, _move, effect=Effect.SYNCS,
    section="movmatrix",
)  # fmt: skip
