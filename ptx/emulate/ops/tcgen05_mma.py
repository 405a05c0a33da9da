"""Products in tensor memory, D = A * B + D, begun by one thread.

PTX ISA, "tcgen05.mma", "tcgen05.mma.ws", "Data Path Layout", "Instruction descriptor".

**Descriptor.** Its fields, from bit: 2 sparse, 3 saturate, 4 the type of D, 7 that of A, 10 that of
B. 13 and 14 negate A and B, 15 and 16 transpose them, 17 columns / 8, 24 rows / 16, 30 a shift that
only `.ws` has.

With factors for blocks: 4 the first factor of B in its word, 23 their type, 27 rows / 128, 29 the
first factor of A, 31 whether k is 96. Reserved and undefined values are a fault.

**Layout.** D has a row in each lane and a column in each column. 16-bit elements take the lower
half, and the upper one becomes zero. 64 rows lie in the lanes of four warps, 16 in each. With `.ws`
64 and 32 rows begin again in the next lanes with the second half or the further quarters of the
columns. A is in shared memory or, 32 bytes of each row in 8 columns, in tensor memory; B is in
shared memory.

With `.block_scale` chunks of each row of A and column of B have a factor each, a byte in tensor
memory ("Block Scaling"). The factor of row r lies in lane r % 32 of each of the four warps and
column r / 32. Factors of further chunks lie in the next bytes.

**Arithmetic.** The ISA leaves order and rounding of the sums open, and they were not measured on a
GPU. Products are exact, they are added to D in the order of k in float64, and the sum is rounded
once to nearest. The collector buffer equals memory, so that its qualifiers change nothing. A
product is done at once. In an ordered launch it is done at the wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.order.ordered_blocks import Work, ordered_blocks
from ptx.emulate.exec.sync.issued_copies import note_cells, note_work
from ptx.emulate.memory.site import Site
from ptx.emulate.model.errors import TensorMemoryFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.matrix import Matrices, SharedMatrix, decoded, encoded, product, separate
from ptx.emulate.ops.mma import decoded_factors, sum_of_products
from ptx.emulate.ops.tcgen05 import one_by_one, require_known_layout, slots, tensor_address
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.tensor_memory import LANES
from ptx.isa.model import Address, Immediate, Instruction, Operand, Vector

_RESERVED: Final = 1 << 6 | 1 << 23 | 1 << 29
_TARGETS: Final = {
    "f16": {0: "f16", 1: "f32"},
    "tf32": {1: "f32"},
    "f8f6f4": {0: "f16", 1: "f32"},
    "i8": {2: "s32"},
}
_FACTORS: Final = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": {0: "e4m3", 1: "e5m2"},
    "i8": {0: "u8", 1: "s8"},
}
_PACKED: Final = ("mxf4", "mxf4nvf4")
_SCALES: Final = {
    "mxf8f6f4": {("ue8m0", 1)},
    "mxf4": {("ue8m0", 2)},
    "mxf4nvf4": {("ue8m0", 2), ("ue8m0", 4), ("ue4m3", 4)},
}
"""By kind, the types of factors, and how many of them a row may have."""
_RESERVED_SCALED: Final = 1 | 1 << 1 | 1 << 3 | 1 << 6 | 7 << 24
_NARROWER: Final = {3: "e2m3", 4: "e3m2", 5: "e2m1"}
_MOST_COLUMNS: Final = 256
_FEW_COLUMNS: Final = 32  # from which on those of integers grow by 16


class BadDescriptor(ValueError):
    """A descriptor is invalid; the message names the reason."""


class Scaling(NamedTuple):
    """Factors of rows of A and columns of B: their type, how many each has, and their first bytes.

    The bytes are those of a word in tensor memory.
    """

    factor: str
    chunks: int
    places: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ProductDescriptor:
    """The product of an instruction: D (m, n) of type `d`, A of type `a`, B of type `b`."""

    d: str
    a: str
    b: str
    m: int
    n: int
    negated: tuple[bool, bool]
    transposed: tuple[bool, bool]
    saturates: bool = False
    scaling: Scaling | None = None


@lru_cache(maxsize=256)  # by the word, of which programs have few
def product_descriptor(
    word: int, kind: str, chunks: int = 0, *, is_weight_stationary: bool = False
) -> ProductDescriptor:
    """The fields of a descriptor for a kind, such as "f16"; `chunks`: factors that a row has.

    Raises:
        BadDescriptor: the ISA has no such product, or the emulator does not support it.
    """
    return _scaled(word, kind, chunks) if chunks else _plain(word, kind, is_weight_stationary)


def _plain(word: int, kind: str, is_weight_stationary: bool) -> ProductDescriptor:
    if word >> 2 & 1 or word & 3:
        raise BadDescriptor("is of a sparse product, which the emulator does not execute")
    if is_weight_stationary and word >> 30:
        raise BadDescriptor("shifts B, which the emulator does not know")
    if word & _RESERVED or word >> 30:
        raise BadDescriptor("has bits set that must be zero")
    d = _TARGETS[kind].get(word >> 4 & 3)
    a, b = (_factor(kind, word >> first_bit & 7) for first_bit in (7, 10))
    if d is None or not a or not b:
        raise BadDescriptor(f"names types that .kind::{kind} does not have")
    if d == "f16" and "bf16" in (a, b):
        raise BadDescriptor("makes f16 of bf16, which the emulator does not know")
    negated, transposed = _flags(word)
    if kind == "i8" and any(negated):
        raise BadDescriptor("negates integers")
    if kind != "i8" and word >> 3 & 1:
        raise BadDescriptor("saturates what is no integer")
    if kind == "tf32" and any(transposed):
        raise BadDescriptor(
            "transposes 32-bit elements, which lie swizzled by 128 bytes in pieces of 32; the"
            " emulator does not know that layout"
        )
    m, n = (word >> 24 & 31) * 16, (word >> 17 & 63) * 8
    if is_weight_stationary:
        if m not in (32, 64, 128) or n not in (64, 128, 256):
            raise BadDescriptor(f"has {m} rows of A and {n} columns of B, which .ws does not take")
    else:
        _require_shape(kind, m, n, transposed[1])
    return ProductDescriptor(d, a, b, m, n, negated, transposed, bool(word >> 3 & 1))


def _scaled(word: int, kind: str, chunks: int) -> ProductDescriptor:
    if word >> 2 & 1:
        raise BadDescriptor("is of a sparse product, which the emulator does not execute")
    packed = kind in _PACKED
    if word & (_RESERVED_SCALED | packed << 12) or (not packed and word >> 31):
        raise BadDescriptor("has bits set that must be zero")
    if word >> 31:
        raise BadDescriptor("takes 96 elements along k, which the emulator does not know")
    if packed:
        a = b = "e2m1x8" if (word >> 7 & 7, word >> 10 & 3) == (1, 1) else None
    else:
        a, b = (_factor("f8f6f4", word >> first_bit & 7) for first_bit in (7, 10))
    if a is None or b is None:
        raise BadDescriptor(f"names types that .kind::{kind} does not have")
    factor = "ue8m0" if word >> 23 & 1 else "ue4m3"
    if (factor, chunks) not in _SCALES[kind]:
        raise BadDescriptor(f"names factors of {factor}, of which a row has no {chunks}")
    first_bytes = (word >> 29 & 3, word >> 4 & 3)
    if any(byte % chunks for byte in first_bytes):
        raise BadDescriptor(
            f"lets {chunks} factors begin at bytes {first_bytes[0]} and {first_bytes[1]}"
        )
    negated, transposed = _flags(word)
    if packed and any(transposed):
        raise BadDescriptor("transposes elements of 4 bits")
    m, n = (word >> 27 & 3) * 128, (word >> 17 & 63) * 8
    if m != 128:
        raise BadDescriptor(f"has {m} rows of A, not 128")
    _require_shape(kind, m, n, transposed[1])
    scaling = Scaling(factor, chunks, first_bytes)
    return ProductDescriptor("f32", a, b, m, n, negated, transposed, scaling=scaling)


def _flags(word: int) -> tuple[tuple[bool, bool], tuple[bool, bool]]:
    """Return whether A and B are negated, and whether they are transposed."""
    bits = [bool(word >> bit & 1) for bit in (13, 14, 15, 16)]
    return (bits[0], bits[1]), (bits[2], bits[3])


def _factor(kind: str, number: int) -> str | None:
    if kind == "f8f6f4" and number in _NARROWER:
        raise BadDescriptor(
            f"names the type {_NARROWER[number]}; how elements of 6 and 4 bits lie is not known to"
            " the emulator"
        )
    return _FACTORS[kind].get(number)


def _require_shape(kind: str, m: int, n: int, transposes_b: bool) -> None:
    """Raises BadDescriptor: the ISA has no such shape for one block and a dense A."""
    if m not in (64, 128):
        raise BadDescriptor(f"has {m} rows of A, not 64 or 128")
    fits = 0 < n <= _MOST_COLUMNS and (kind != "i8" or n <= _FEW_COLUMNS or n % 16 == 0)
    if not fits:
        raise BadDescriptor(f"has {n} columns of B, which .kind::{kind} does not take")
    if transposes_b and kind in ("i8", "f8f6f4", "mxf8f6f4") and n % 16:
        raise BadDescriptor(f"transposes {n} columns of 8-bit elements, no multiple of 16")


_HALF: Final = 16  # lanes, and bits
_WORDS: Final = 8  # of a row of A in tensor memory
_FIRST = np.zeros(1, dtype=np.int64)
_ONE = np.zeros(1, dtype=np.intp)
Numbers = NDArray[np.intp]


class TensorProduct(NamedTuple):
    """One instruction: its kind, how shared memory is read, where A is, and 2**-scale before D.

    `site` is the access to shared memory, `reads` and `writes` are those to tensor memory.
    `chunks`: how many factors a row has, 0 without any; `is_weight_stationary`: `.ws`.
    """

    instruction: Instruction
    kind: str
    site: Site
    reads: Site
    writes: Site
    left_is_in_tensor_memory: bool
    scale: int
    chunks: int
    is_weight_stationary: bool


class ProductOperands(NamedTuple):
    """The operands of one thread."""

    target: int
    left: int
    right: int
    word: int
    adds: bool
    disabled: NDArray[np.bool_]  # (128,) by lane
    factors: tuple[int, ...]  # where those of A and B are


def multiply_one(fibre: Fibre, product: TensorProduct, operands: ProductOperands) -> None:
    """The product of one thread.

    Raises:
        TensorMemoryFault: a descriptor or an address is none.
    """
    try:
        form = product_descriptor(
            operands.word,
            product.kind,
            product.chunks,
            is_weight_stationary=product.is_weight_stationary,
        )
    except BadDescriptor as bad:
        raise _fault(
            fibre, product, f"its instruction descriptor {operands.word:#010x} {bad}"
        ) from None
    lane, column = _places(fibre, product, form, operands.target)
    a = _left(fibre, product, form, operands, lane[:, 0])
    b = _shared(fibre, product, form.b, form.n, form.transposed[1], operands.right).swapaxes(1, 2)
    a, b = (-x if negated else x for x, negated in zip((a, b), form.negated, strict=True))
    if form.scaling is not None:
        a, b = _with_factors(fibre, product, form, form.scaling, operands, a, b)
    is_enabled = ~operands.disabled[lane[:, 0]]
    memory, indices = fibre.blocks.tensor_memory, (slots(fibre), lane[None, is_enabled], column)
    c = np.zeros(
        (1, int(is_enabled.sum()), form.n), dtype=np.int64 if form.d == "s32" else np.float64
    )
    if operands.adds:
        cells = memory.read(fibre, *indices, product.instruction)
        c = _numbers(cells, form.d) * (1 if form.d == "s32" else 2.0**-product.scale)
    total = _sum(a[:, is_enabled], b, c, form)
    memory.write(fibre, *indices, product.instruction, _cells(total, form.d))


def note_product(fibre: Fibre, product: TensorProduct, operands: ProductOperands) -> None:
    """Report one thread's product, which begins now, to the race check."""
    try:
        form = product_descriptor(
            operands.word,
            product.kind,
            product.chunks,
            is_weight_stationary=product.is_weight_stationary,
        )
    except BadDescriptor:
        return  # a fault when it is executed
    lane, column = _places(fibre, product, form, operands.target)
    rows = lane[::_HALF]  # the others are of the same halves
    if product.left_is_in_tensor_memory:
        words = (operands.left & 0xFFFF) + np.arange(_WORDS)
        note_cells(fibre, "work", _ONE, rows[None, :, :1], words, product.reads)
    factors = (
        []
        if product.left_is_in_tensor_memory
        else [(form.a, form.m, form.transposed[0], operands.left)]
    )
    for element, count, transposed, descriptor in (
        *factors,
        (form.b, form.n, form.transposed[1], operands.right),
    ):
        matrix = SharedMatrix(element, count, transposed, product.site)
        pieces = matrix.pieces(np.array([descriptor], dtype=np.uint64), _FIRST)
        note_work(fibre, "work", _ONE, pieces, product.site)
    halves = np.arange(0, LANES, _HALF)[None, :, None]
    for address, count in zip(operands.factors, (form.m, form.n), strict=False):
        columns = (address & 0xFFFF) + np.arange(-(-count // WARP))
        note_cells(fibre, "work", _ONE, halves, columns, product.reads)
    is_enabled = ~operands.disabled[lane[:, 0]].reshape(-1, _HALF).all(axis=1)
    if is_enabled.any():
        note_cells(fibre, "work", _ONE, rows[None, is_enabled], column, product.writes)


def _with_factors(
    fibre: Fibre,
    product: TensorProduct,
    form: ProductDescriptor,
    scaling: Scaling,
    operands: ProductOperands,
    a: Matrices,
    b: Matrices,
) -> tuple[Matrices, Matrices]:
    """A and B with their factors."""
    per_chunk = a.shape[2] // scaling.chunks
    of_a, of_b = (
        np.repeat(_factors(fibre, product, scaling, address, rows, first_byte), per_chunk, axis=2)
        for address, rows, first_byte in zip(
            operands.factors, (form.m, form.n), scaling.places, strict=True
        )
    )
    return a * of_a, b * of_b.swapaxes(1, 2)


def _sum(a: Matrices, b: Matrices, c: Matrices, form: ProductDescriptor) -> Matrices:
    types = (form.d, form.a, form.b, form.d)
    if form.d == "s32":
        return product(a, b, c, types, ("satfinite",) if form.saturates else ())
    return sum_of_products(a, b, c, types)


def _places(
    fibre: Fibre, product: TensorProduct, form: ProductDescriptor, address: int
) -> tuple[Numbers, Numbers]:
    """(m, n) the lane and (n,) the column of each element of D.

    Raises:
        TensorMemoryFault: rows do not begin at that lane.
    """
    first, row, column = address >> 16, np.arange(form.m)[:, None], np.arange(form.n)
    halves = form.m < LANES and not product.is_weight_stationary
    if first not in ((0, _HALF) if halves else (0,)):
        raise _fault(
            fibre,
            product,
            f"{form.m} rows begin at lane {first} of tensor memory, not at"
            f" {'0 or 16' if halves else '0'}",
        )
    if halves:
        row = row // _HALF * WARP + row % _HALF + first
    width = form.n if halves else form.n * form.m // LANES
    lane = row + column // width * form.m
    return lane.astype(np.intp), (address & 0xFFFF) + column % width


def _left(
    fibre: Fibre,
    product: TensorProduct,
    form: ProductDescriptor,
    operands: ProductOperands,
    lanes: Numbers,
) -> Matrices:
    """A: (1, m, k)"""
    if not product.left_is_in_tensor_memory:
        return _shared(fibre, product, form.a, form.m, form.transposed[0], operands.left)
    if form.transposed[0]:
        raise _fault(fibre, product, "A is transposed, which it cannot be in tensor memory")
    if operands.left >> 16 != operands.target >> 16:
        raise _fault(fibre, product, "A and D begin at different lanes of tensor memory")
    if product.is_weight_stationary and form.m < LANES:
        raise _fault(
            fibre,
            product,
            f"where {form.m} rows of A lie in tensor memory with .ws is not known to the emulator",
        )
    column = (operands.left & 0xFFFF) + np.arange(_WORDS)
    words = fibre.blocks.tensor_memory.read(
        fibre, slots(fibre), lanes[None, :, None], column, product.instruction
    )
    return decoded(separate(words, form.a).reshape(1, form.m, -1), form.a)


def _factors(
    fibre: Fibre, product: TensorProduct, scaling: Scaling, address: int, rows: int, first_byte: int
) -> Matrices:
    """(1, rows, chunks) the factors of rows of A, or of columns of B.

    Raises:
        TensorMemoryFault: they begin at another lane than 0, or their four copies differ.
    """
    if address >> 16:
        raise _fault(fibre, product, f"factors begin at lane {address >> 16} of tensor memory")
    row = np.arange(rows)
    lane = row[:, None] % WARP + np.arange(0, LANES, WARP)
    column = (address & 0xFFFF) + row[:, None] // WARP
    words = fibre.blocks.tensor_memory.read(
        fibre, slots(fibre), lane[None], column[None], product.instruction
    )
    octets = np.ascontiguousarray(words, dtype="<u4")[..., None].view(np.uint8)
    used_octets = octets[..., first_byte : first_byte + scaling.chunks]
    differ = (used_octets != used_octets[:, :, :1]).any(axis=(2, 3))
    if differ.any():
        raise _fault(
            fibre,
            product,
            f"the factors of row {int(np.argmax(differ))} differ among the lanes of the four warps",
        )
    return decoded_factors(used_octets[:, :, 0], scaling.factor)


def _shared(
    fibre: Fibre, product: TensorProduct, element: str, rows: int, transposed: bool, descriptor: int
) -> Matrices:
    """(1, rows, k)"""
    require_known_layout(fibre, product.instruction, descriptor)
    matrix = SharedMatrix(element, rows, transposed, product.site)
    return matrix.read(fibre, _ONE, np.array([descriptor], dtype=np.uint64), _FIRST)


def _numbers(cells: NDArray[np.uint32], element: str) -> NDArray[Any]:
    if element == "f16":
        return decoded(cells.astype(np.uint16), element)
    return decoded(cells, element)


def _cells(values: Matrices, element: str) -> NDArray[np.uint32]:
    if element == "f16":
        return encoded(np.stack([values, np.zeros_like(values)], axis=-1), element)
    return encoded(values[..., None], element)


def _fault(fibre: Fibre, product: TensorProduct, reason: str) -> TensorMemoryFault:
    return TensorMemoryFault(
        f"{product.instruction.text}: {reason}", fibre.where(0, product.instruction)
    )


_MOST_SCALE: Final = 15


def multiply(
    fibre: Fibre,
    late: bool,
    product: TensorProduct,
    operands: tuple[Value, ...],
    masks: list[Value],
    factors: list[Value],
) -> None:
    """The product of each thread, one after the other; `late`: when somebody waits for it.

    `operands`: D, A, B, the instruction descriptor, and whether D is added.
    """
    columns = [fibre.spread(value).tolist() for value in operands]
    factor_addresses = zip(
        *(fibre.spread(factor_address).tolist() for factor_address in factors), strict=True
    )
    each_thread = zip(
        one_by_one(fibre),
        *columns,
        _disabled(fibre, masks),
        factor_addresses if factors else repeat((), fibre.n),
        strict=True,
    )
    works: list[Work] = []
    for thread, d, a, b, w, p, disabled, where in each_thread:
        thread_operands = ProductOperands(d, a, b, w, p, disabled, where)
        if fibre.blocks.order_observers:
            note_product(thread, product, thread_operands)
        works.append(partial(multiply_one, thread, product, thread_operands))
    if late:
        ordered_blocks(fibre).late_copies.tensor_work.add(fibre, works)
        return
    for work in works:
        work()


def _disabled(fibre: Fibre, masks: list[Value]) -> NDArray[np.bool_]:
    """(n, 128) the lanes that each thread excludes."""
    if not masks:
        return np.zeros((fibre.n, LANES), dtype=np.bool_)
    words = np.stack([fibre.spread(mask).astype("<u4") for mask in masks], axis=1)
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)


def _emit(e: Emitter, i: Instruction) -> None:
    is_weight_stationary = i.modifiers[1] == "ws"
    kind = i.modifiers[2 + is_weight_stationary].removeprefix("kind::")
    target, left, right, word, *remaining = i.operands
    chunks = _chunks(e, i, kind) if "block_scale" in i.modifiers else 0
    factors = [tensor_address(e, remaining.pop(0)) for _ in range(2 if chunks else 0)]
    masks: tuple[Operand, ...] = ()
    if isinstance(remaining[0], Vector):
        masks = remaining[0].items
        del remaining[0]
    scale = _scale(e, remaining.pop(), kind) if len(remaining) == 2 else 0
    if len(remaining) != 1 or not 0 <= scale <= _MOST_SCALE:
        raise e.reject(f"behind the mask it takes a predicate and a scale of 0 to {_MOST_SCALE}")
    if len(masks) * WARP not in (0, LANES):
        raise e.reject(f"its mask has {len(masks)} words, not 4")
    site = Site(i, "shared", "u32", 4, writes=False)
    e.sites.append(site)
    left_is_in_tensor_memory = isinstance(left, Address)
    reads, writes = (
        Site(i, "tensor", "u32", 1, writes=writes_cells) for writes_cells in (False, True)
    )
    product = TensorProduct(
        i, kind, site, reads, writes, left_is_in_tensor_memory, scale, chunks, is_weight_stationary
    )
    operands = [
        tensor_address(e, target),
        tensor_address(e, left)
        if product.left_is_in_tensor_memory
        else e.temporary(e.value(left, "u64")),
        e.temporary(e.value(right, "u64")),
        e.temporary(e.value(word, "u32")),
        e.temporary(e.value(remaining[0], "pred")),
    ]
    words = [e.temporary(e.value(mask, "b32")) for mask in masks]
    name = e.scope.bind(product, "product")
    lists = f"({', '.join(operands)}), [{', '.join(words)}], [{', '.join(factors)}]"
    e.line(f"{e.helper(multiply)}(f, {e.late.copies}, {name}, {lists})")


def _scale(e: Emitter, operand: Operand, kind: str) -> int:
    """Return the constant by which D is scaled."""
    if kind not in ("f16", "tf32") or not isinstance(operand, Immediate):
        raise e.reject("only D of .kind::f16 and .kind::tf32 is scaled, by a constant")
    return operand.value


def _chunks(e: Emitter, i: Instruction, kind: str) -> int:
    """Return how many factors a row has."""
    words = {"block16", "block32", *_CHUNKS} & {*i.modifiers}
    default = {"mxf8f6f4": 1, "mxf4": 2}.get(kind, 0)
    if len(words) > 1 or (not words and not default):
        raise e.reject("it needs one of .scale_vec::2X, .scale_vec::4X, .block16, .block32")
    word = words.pop() if words else ""
    return {**_CHUNKS, "": default, "block16": 4, "block32": default or 2}[word]


_CHUNKS: Final = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
_USES: Final = ("fill", "use", "lastuse", "discard")
_COLLECTOR = tuple(f"collector::a::{use}" for use in _USES)
_COLLECTOR_OF_B = tuple(f"collector::b{k}::{use}" for k in range(4) for use in _USES)

for _kind in ("f16", "tf32", "f8f6f4", "i8"):
    operation(
        f"tcgen05.mma.cta_group::1.kind::{_kind}",
        ("",),
        (5, 6, 7),
        _emit,
        effect=Effect.MEMORY,
        modifiers=_COLLECTOR,
        writes=0,
        section="tcgen05.mma",
    )
for _kind in ("f16", "tf32", "f8f6f4", "i8"):
    operation(
        f"tcgen05.mma.ws.cta_group::1.kind::{_kind}",
        ("",),
        5,
        _emit,
        effect=Effect.MEMORY,
        modifiers=_COLLECTOR_OF_B,
        writes=0,
        section="tcgen05.mma.ws",
    )
for _kind in ("mxf8f6f4", "mxf4", "mxf4nvf4"):
    operation(
        f"tcgen05.mma.cta_group::1.kind::{_kind}.block_scale",
        ("",),
        7,
        _emit,
        effect=Effect.MEMORY,
        modifiers=(*_COLLECTOR, *_CHUNKS, "block16", "block32"),
        writes=0,
        section="tcgen05.mma",
    )
