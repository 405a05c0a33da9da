"""Products D = A * B + D in tensor memory, begun by one thread. PTX ISA, "tcgen05.mma".

D has a row in each lane and a column in each column, of 16 bits in the lower half, where the upper
one becomes zero. Of 64 rows each 16 lie in the lanes of one warp. A is in shared memory or, 32
bytes of each row in 8 columns, in tensor memory; B is in shared memory.

The ISA leaves order and rounding of the sums open, and no GPU was asked: products are exact, they
are added to D in the order of k in float64, and the sum is rounded once to nearest. The collector
buffer holds what memory holds, so that its qualifiers change nothing.

With `.block_scale` chunks of each row of A and column of B have a factor each, a byte in tensor
memory ("Block Scaling"): that of row r in lane r % 32 of each of the four warps and column r / 32,
those of further chunks in the next bytes.

A product is done at once. In an ordered launch it is done when it is waited for.
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.fibre import Fibre
from ptx.emulate.exec.order.ordered_blocks import ordered_blocks
from ptx.emulate.exec.order.tensor_work import Work
from ptx.emulate.memory.site import Site
from ptx.emulate.memory.tensor_memory import LANES
from ptx.emulate.model.errors import TensorMemoryFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.matrix.matrix_arithmetic import Matrices, product
from ptx.emulate.ops.matrix.matrix_element import decoded, encoded, separate
from ptx.emulate.ops.matrix.matrix_scaled import decoded_factors, sum_of_products
from ptx.emulate.ops.matrix.shared_matrix import SharedMatrix
from ptx.emulate.ops.tensor_memory.product_descriptor import (
    BadDescriptor,
    ProductDescriptor,
    Scaling,
    product_descriptor,
)
from ptx.emulate.ops.tensor_memory.tensor_operand import (
    one_by_one,
    require_known_layout,
    slots,
    tensor_address,
)
from ptx.isa.model import Address, Immediate, Instruction, Operand, Vector

_HALF: Final = 16  # lanes, and bits
_WORDS: Final = 8  # of a row of A in tensor memory
_MOST_SCALE: Final = 15
_FIRST = np.zeros(1, dtype=np.int64)
_ONE = np.zeros(1, dtype=np.intp)


class TensorProduct(NamedTuple):
    """One instruction: its kind, how shared memory is read, where A is, and 2**-scale before D.

    `chunks`: how many factors a row has, 0 without any.
    """

    instruction: Instruction
    kind: str
    site: Site
    left_is_here: bool
    scale: int
    chunks: int


class _Operands(NamedTuple):
    """What one thread gives."""

    target: int
    left: int
    right: int
    word: int
    adds: bool
    disabled: NDArray[np.bool_]  # (128,) by lane
    factors: tuple[int, ...]  # where those of A and B are


def multiply(
    fibre: Fibre, what: TensorProduct, target: Value, left: Value, right: Value, word: Value,
    adds: Value, masks: list[Value], factors: list[Value],
) -> None:  # fmt: skip
    """The product of each thread, one after the other."""
    for work in _works(fibre, what, target, left, right, word, adds, masks, factors):
        work()


def multiply_later(
    fibre: Fibre, what: TensorProduct, target: Value, left: Value, right: Value, word: Value,
    adds: Value, masks: list[Value], factors: list[Value],
) -> None:  # fmt: skip
    """The same, when somebody waits for it."""
    works = _works(fibre, what, target, left, right, word, adds, masks, factors)
    ordered_blocks(fibre).late_copies.tensor_work.add(fibre, works)


def _works(
    fibre: Fibre, what: TensorProduct, target: Value, left: Value, right: Value, word: Value,
    adds: Value, masks: list[Value], factors: list[Value],
) -> list[Work]:  # fmt: skip
    columns = [fibre.spread(value).tolist() for value in (target, left, right, word, adds)]
    places = zip(*(fibre.spread(each).tolist() for each in factors), strict=True)
    each_thread = zip(
        one_by_one(fibre), *columns, _disabled(fibre, masks),
        places if factors else repeat((), fibre.n), strict=True,
    )  # fmt: skip
    return [
        partial(_multiply, one, what, _Operands(d, a, b, w, p, disabled, where))
        for one, d, a, b, w, p, disabled, where in each_thread
    ]


def _disabled(fibre: Fibre, masks: list[Value]) -> NDArray[np.bool_]:
    """(n, 128) the lanes that each thread excludes."""
    if not masks:
        return np.zeros((fibre.n, LANES), dtype=np.bool_)
    words = np.stack([fibre.spread(mask).astype("<u4") for mask in masks], axis=1)
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)


def _multiply(fibre: Fibre, what: TensorProduct, given: _Operands) -> None:
    try:
        form = product_descriptor(given.word, what.kind, what.chunks)
    except BadDescriptor as bad:
        raise _fault(fibre, what, f"its instruction descriptor {given.word:#010x} {bad}") from None
    lanes = _lanes(fibre, what, form, given.target)
    a = _left(fibre, what, form, given, lanes)
    b = _shared(fibre, what, form.b, form.n, form.transposed[1], given.right).swapaxes(1, 2)
    a, b = (-x if negated else x for x, negated in zip((a, b), form.negated, strict=True))
    if form.scaling is not None:
        each = a.shape[2] // form.scaling.chunks
        of_a, of_b = (
            _factors(fibre, what, form.scaling, given.factors[k], rows, form.scaling.places[k])
            for k, rows in enumerate((form.m, form.n))
        )
        a, b = a * np.repeat(of_a, each, axis=2), b * np.repeat(of_b, each, axis=2).swapaxes(1, 2)
    kept = ~given.disabled[lanes]
    column = (given.target & 0xFFFF) + np.arange(form.n)
    memory, at = fibre.blocks.tensor_memory, (slots(fibre), lanes[None, kept, None], column)
    c = np.zeros((1, int(kept.sum()), form.n), dtype=np.int64 if form.d == "s32" else np.float64)
    if given.adds:
        cells = memory.read(fibre, *at, what.instruction)
        c = _numbers(cells, form.d) * (1 if form.d == "s32" else 2.0**-what.scale)
    total = _sum(a[:, kept], b, c, form)
    memory.write(fibre, *at, what.instruction, _cells(total, form.d))


def _sum(a: Matrices, b: Matrices, c: Matrices, form: ProductDescriptor) -> Matrices:
    types = (form.d, form.a, form.b, form.d)
    if form.d == "s32":
        return product(a, b, c, types, ("satfinite",) if form.saturates else ())
    return sum_of_products(a, b, c, types)


def _lanes(
    fibre: Fibre, what: TensorProduct, form: ProductDescriptor, address: int
) -> NDArray[np.intp]:
    """(m,) the lane of each row. PTX ISA, "Data Path Layout Organization", D and F.

    Raises:
        TensorMemoryFault: rows do not begin at that lane.
    """
    first, row = address >> 16, np.arange(form.m)
    firsts = (0,) if form.m == LANES else (0, _HALF)
    if first not in firsts:
        raise _fault(
            fibre, what,
            f"{form.m} rows begin at lane {first} of tensor memory, not at"
            f" {' or '.join(map(str, firsts))}",
        )  # fmt: skip
    lane = row if form.m == LANES else row // _HALF * WARP + row % _HALF + first
    return lane.astype(np.intp)


def _left(
    fibre: Fibre, what: TensorProduct, form: ProductDescriptor, given: _Operands,
    lanes: NDArray[np.intp],
) -> Matrices:  # fmt: skip
    """A: (1, m, k)"""
    if not what.left_is_here:
        return _shared(fibre, what, form.a, form.m, form.transposed[0], given.left)
    if form.transposed[0]:
        raise _fault(fibre, what, "A is transposed, which it cannot be in tensor memory")
    if given.left >> 16 != given.target >> 16:
        raise _fault(fibre, what, "A and D begin at different lanes of tensor memory")
    column = (given.left & 0xFFFF) + np.arange(_WORDS)
    words = fibre.blocks.tensor_memory.read(
        fibre, slots(fibre), lanes[None, :, None], column, what.instruction
    )
    return decoded(separate(words, form.a).reshape(1, form.m, -1), form.a)


def _factors(
    fibre: Fibre, what: TensorProduct, scaling: Scaling, address: int, rows: int, place: int
) -> Matrices:
    """(1, rows, chunks) the factors of rows of A, or of columns of B.

    Raises:
        TensorMemoryFault: they begin at another lane than 0, or their four copies differ.
    """
    if address >> 16:
        raise _fault(fibre, what, f"factors begin at lane {address >> 16} of tensor memory")
    row = np.arange(rows)
    lane = row[:, None] % WARP + np.arange(0, LANES, WARP)
    column = (address & 0xFFFF) + row[:, None] // WARP
    words = fibre.blocks.tensor_memory.read(
        fibre, slots(fibre), lane[None], column[None], what.instruction
    )
    octets = np.ascontiguousarray(words, dtype="<u4")[..., None].view(np.uint8)
    used = octets[..., place : place + scaling.chunks]
    differ = (used != used[:, :, :1]).any(axis=(2, 3))
    if differ.any():
        raise _fault(
            fibre, what,
            f"the factors of row {int(np.argmax(differ))} differ among the lanes of the four warps",
        )  # fmt: skip
    return decoded_factors(used[:, :, 0], scaling.factor)


def _shared(
    fibre: Fibre, what: TensorProduct, element: str, rows: int, transposed: bool, descriptor: int
) -> Matrices:
    """(1, rows, k)"""
    require_known_layout(fibre, what.instruction, descriptor)
    matrix = SharedMatrix(element, rows, transposed, what.site)
    return matrix.read(fibre, _ONE, np.array([descriptor], dtype=np.uint64), _FIRST)


def _numbers(cells: NDArray[np.uint32], element: str) -> NDArray[Any]:
    if element == "f16":
        return decoded(cells.astype(np.uint16), element)
    return decoded(cells, element)


def _cells(values: Matrices, element: str) -> NDArray[np.uint32]:
    if element == "f16":
        return encoded(np.stack([values, np.zeros_like(values)], axis=-1), element)
    return encoded(values[..., None], element)


def _fault(fibre: Fibre, what: TensorProduct, said: str) -> TensorMemoryFault:
    return TensorMemoryFault(f"{what.instruction.text}: {said}", fibre.where(0, what.instruction))


def _emit(e: Emitter, i: Instruction) -> None:
    kind = i.modifiers[2].removeprefix("kind::")
    target, left, right, word, *rest = i.operands
    chunks = _chunks(e, i, kind) if "block_scale" in i.modifiers else 0
    factors = [tensor_address(e, rest.pop(0)) for _ in range(2 if chunks else 0)]
    masks: tuple[Operand, ...] = ()
    if isinstance(rest[0], Vector):
        masks = rest[0].items
        del rest[0]
    scale = 0
    if len(rest) == 2:
        given = rest.pop()
        if kind not in ("f16", "tf32") or not isinstance(given, Immediate):
            raise e.refuse("only D of .kind::f16 and .kind::tf32 is scaled, by a constant")
        scale = given.value
    if len(rest) != 1 or not 0 <= scale <= _MOST_SCALE:
        raise e.refuse(f"behind the mask it takes a predicate and a scale of 0 to {_MOST_SCALE}")
    if len(masks) * WARP not in (0, LANES):
        raise e.refuse(f"its mask has {len(masks)} words, not 4")
    site = Site(i, "shared", "u32", 4, writes=False)
    e.scope.sites.append(site)
    what = TensorProduct(i, kind, site, isinstance(left, Address), scale, chunks)
    operands = [
        tensor_address(e, target),
        tensor_address(e, left) if what.left_is_here else e.temporary(e.value(left, "u64")),
        e.temporary(e.value(right, "u64")),
        e.temporary(e.value(word, "u32")),
        e.temporary(e.value(rest[0], "pred")),
    ]
    words = [e.temporary(e.value(mask, "b32")) for mask in masks]
    function = e.helper(multiply_later if e.late.copies else multiply)
    name = e.scope.bind(what, "product")
    lists = f"[{', '.join(words)}], [{', '.join(factors)}]"
    e.line(f"{function}(f, {name}, {', '.join(operands)}, {lists})")


def _chunks(e: Emitter, i: Instruction, kind: str) -> int:
    """How many factors a row has."""
    words = {"block16", "block32", *_CHUNKS} & {*i.modifiers}
    default = {"mxf8f6f4": 1, "mxf4": 2}.get(kind, 0)
    if len(words) > 1 or (not words and not default):
        raise e.refuse("it needs one of .scale_vec::2X, .scale_vec::4X, .block16, .block32")
    word = words.pop() if words else ""
    return {**_CHUNKS, "": default, "block16": 4, "block32": default or 2}[word]


_CHUNKS: Final = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
_COLLECTOR = tuple(f"collector::a::{each}" for each in ("fill", "use", "lastuse", "discard"))

for _kind in ("f16", "tf32", "f8f6f4", "i8"):
    operation(
        f"tcgen05.mma.cta_group::1.kind::{_kind}", ("",), (5, 6, 7), _emit, effect=Effect.MEMORY,
        modifiers=_COLLECTOR, writes=0, section="tcgen05.mma",
    )  # fmt: skip
for _kind in ("mxf8f6f4", "mxf4", "mxf4nvf4"):
    operation(
        f"tcgen05.mma.cta_group::1.kind::{_kind}.block_scale", ("",), 7, _emit,
        effect=Effect.MEMORY, modifiers=(*_COLLECTOR, *_CHUNKS, "block16", "block32"), writes=0,
        section="tcgen05.mma",
    )  # fmt: skip
