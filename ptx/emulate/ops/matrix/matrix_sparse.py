"""Products of a matrix A that is half zeros, of which only the others are held.

PTX ISA, "mma.sp". Of every four neighbours in a row of A two are held (of two f32 one, of eight
4-bit integers two pairs), and metadata says which: for each such chunk two indices of two bits. A
lane's metadata are of the rows of its group and of 8 further down: for 16- and 32-bit elements the
lower half of a word is of one row and the upper half of the other, for narrower ones lanes take
turns. Of four lanes the selector says which one, or which pair, brings the metadata.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import EmulationFault
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.matrix.matrix_arithmetic import product
from ptx.emulate.ops.matrix.matrix_element import WIDTHS, element_types, held, plain_words
from ptx.emulate.ops.matrix.matrix_fragment import MatrixShape, fragment, shape_of
from ptx.emulate.ops.matrix.matrix_product import (
    Product,
    dealt,
    known_types,
    modifiers_of,
    options_of,
    pairs,
    read,
    words_of,
)
from ptx.emulate.ops.warp.lane_sync import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Immediate, Instruction, Operand

Nibbles = NDArray[np.uint32]  # (warps, 16, chunks): the two indices of each chunk of a row
_CHUNK = {32: 2, 16: 4, 8: 4, 4: 8}  # elements, by their bits


class Sparse(NamedTuple):
    """One instruction: its product, of fragments as they are held, its k and its selector."""

    product: Product
    instruction: Instruction
    k: int
    selector: int


def multiply_sparse(
    fibre: Fibre, group: Group, what: Sparse, metadata: Value, *words: list[Value]
) -> list[Value]:
    """The registers of D for each thread.

    Raises:
        EmulationFault: metadata name an element twice, or not in order where they must.
    """
    types, options, (target, *sources), _ = what.product
    a, b, c = (
        source.gathered(words_of(fibre, group, role, values))
        for source, role, values in zip(sources, "abc", words, strict=True)
    )
    width = WIDTHS[types[1]]
    (given,) = words_of(fibre, group, "metadata", [metadata]).transpose(2, 0, 1)
    ordered = "sp::ordered_metadata" in what.instruction.modifiers
    nibbles = nibbles_of(given, width, what.k, what.selector)
    chosen = columns(fibre, nibbles, width, what.instruction, ordered=ordered)
    rows = b[np.arange(len(b))[:, None, None], chosen]
    return dealt(group, target.spread(product(a, rows, c, types, options)))


def lanes_of(k: int, width: int) -> int:
    """How many of four lanes bring metadata."""
    return k // _CHUNK[width] // 4


def nibbles_of(metadata: NDArray[np.uint32], width: int, k: int, selector: int) -> Nibbles:
    """From (warps, 32) words."""
    chunks, lanes = k // _CHUNK[width], lanes_of(k, width)
    each = metadata.reshape(-1, 8, 4)[:, :, lanes * selector : lanes * (selector + 1)]
    parts = each[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
    if width >= 16:
        parts = parts.reshape(-1, 8, lanes, 2, 4).transpose(0, 3, 1, 2, 4)
    else:
        parts = parts.reshape(-1, 8, lanes // 2, 2, 8).transpose(0, 3, 1, 2, 4)
    return parts.reshape(-1, 16, chunks)


def columns(
    fibre: Fibre, nibbles: Nibbles, width: int, instruction: Instruction, *, ordered: bool
) -> Index:
    """(warps, 16, held) the column of each element of A that is held.

    Raises:
        EmulationFault: metadata name an element twice, or not in order where they must.
    """
    first, second = (nibbles & 3).astype(np.intp), (nibbles >> 2).astype(np.intp)
    start = np.arange(nibbles.shape[2]) * _CHUNK[width]
    if width == 32:
        wrong = (second != first + 1) | (first % 2 != 0)
        found = [start + first // 2]
    else:
        wrong = first >= second if ordered else first == second
        found = [start + first, start + second]
    if width == 4:
        found = [start + 2 * index + part for index in (first, second) for part in (0, 1)]
    if wrong.any():
        wanted = "elements in order" if ordered else "different elements"
        name = "mma.sp" if instruction.opcode == "mma" else "wgmma.mma_async.sp"
        where = fibre.where(0, instruction)
        raise EmulationFault(f"metadata of {name} that do not name {wanted}", where)
    return np.stack(found, axis=-1).reshape(*nibbles.shape[:2], -1)


def selector_of(e: Emitter, operand: Operand, k: int, width: int) -> int:
    """The sparsity selector: which lane or lanes of four bring metadata."""
    most = 4 // lanes_of(k, width)
    if not isinstance(operand, Immediate) or not 0 <= operand.value < most:
        raise e.refuse(f"its selector must be a constant below {most}")
    return operand.value


def _emit(e: Emitter, i: Instruction) -> None:
    name = next(word for word in plain_words(i) if word in _FORMS)
    types = element_types(i)
    if ".".join(types) not in _FORMS[name]:
        raise e.refuse("tensor cores do not multiply these types in this shape")
    d, a, b, c = types
    shape = shape_of(name)
    selector = selector_of(e, i.operands[5], shape.k, WIDTHS[a])
    fragments = (
        fragment(shape, d, "c"), fragment(MatrixShape(shape.m, shape.n, shape.k // 2), a, "a"),
        fragment(shape, b, "b"), fragment(shape, c, "c"),
    )  # fmt: skip
    what = Sparse(Product((d, a, b, c), options_of(e, i), fragments, product), i, shape.k, selector)
    lists = {
        role: read(e, operand, source)
        for role, operand, source in zip("abc", i.operands[1:4], fragments[1:], strict=True)
    }
    metadata = e.temporary(e.value(i.operands[4], "b32"))
    brought = {f"{role}{k}": name for role, names in lists.items() for k, name in enumerate(names)}
    group = sync_warp(e, i, {**brought, "metadata0": metadata})
    texts = ", ".join(f"[{', '.join(names)}]" for names in lists.values())
    bound = e.scope.bind(what, "sparse")
    found = e.temporary(f"{e.helper(multiply_sparse)}(f, {group}, {bound}, {metadata}, {texts})")
    results = [f"{found}[{k}]" for k in range(fragments[0].registers)]
    e.assign_all(i.operands[0], held(d), results)


_HALF = ("f16.f16.f16.f16", "f32.f16.f16.f32")
_BYTES = pairs("s32", "s8", "u8")
_NIBBLES = pairs("s32", "s4", "u4")
_FORMS = {
    "m16n8k8": pairs("f32", "tf32"),
    "m16n8k16": (*pairs("f32", "tf32"), *pairs("f32", "bf16"), *_HALF),
    "m16n8k32": (*pairs("f32", "bf16"), *_HALF, *_BYTES),
    "m16n8k64": (*_BYTES, *_NIBBLES, *pairs("f32", "e4m3", "e5m2")),
    "m16n8k128": _NIBBLES,
}
"""By shape, the types of D, A, B and C."""
for _shape, _all in _FORMS.items():
    for _types, _options in {known_types(form): modifiers_of(form) for form in _all}.items():
        for _kind in ("sp", "sp::ordered_metadata"):
            operation(
                f"mma.{_kind}.sync.aligned.{_shape}.row.col", (_types,), 6, _emit,
                effect=Effect.SYNCS, modifiers=_options, section="mma.sp",
            )  # fmt: skip
