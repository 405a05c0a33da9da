"""Products in tensor memory, begun by one thread. PTX ISA, "tcgen05.mma", "tcgen05.mma.ws".

What they calculate is in `tensor_arithmetic`. The collector buffer holds what memory holds, so that
its qualifiers change nothing.

A product is done at once. In an ordered launch it is done when it is waited for.
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.order.ordered_blocks import Work, ordered_blocks
from ptx.emulate.memory.site import Site
from ptx.emulate.memory.tensor_memory import LANES
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.tensor_memory.tensor_arithmetic import (
    ProductOperands,
    TensorProduct,
    multiply_one,
    note_product,
)
from ptx.emulate.ops.tensor_memory.tensor_operand import one_by_one, tensor_address
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Address, Immediate, Instruction, Operand, Vector

_MOST_SCALE: Final = 15


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
    works: list[Work] = []
    for one, d, a, b, w, p, disabled, where in each_thread:
        given = ProductOperands(d, a, b, w, p, disabled, where)
        if fibre.blocks.races is not None:
            note_product(one, what, given)
        works.append(partial(multiply_one, one, what, given))
    return works


def _disabled(fibre: Fibre, masks: list[Value]) -> NDArray[np.bool_]:
    """(n, 128) the lanes that each thread excludes."""
    if not masks:
        return np.zeros((fibre.n, LANES), dtype=np.bool_)
    words = np.stack([fibre.spread(mask).astype("<u4") for mask in masks], axis=1)
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)


def _emit(e: Emitter, i: Instruction) -> None:
    is_weight_stationary = i.modifiers[1] == "ws"
    kind = i.modifiers[2 + is_weight_stationary].removeprefix("kind::")
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
    here = isinstance(left, Address)
    reads, writes = (Site(i, "tensor", "u32", 1, writes=each) for each in (False, True))
    what = TensorProduct(i, kind, site, reads, writes, here, scale, chunks, is_weight_stationary)
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
_USES: Final = ("fill", "use", "lastuse", "discard")
_COLLECTOR = tuple(f"collector::a::{use}" for use in _USES)
_COLLECTOR_OF_B = tuple(f"collector::b{k}::{use}" for k in range(4) for use in _USES)

for _kind in ("f16", "tf32", "f8f6f4", "i8"):
    operation(
        f"tcgen05.mma.cta_group::1.kind::{_kind}", ("",), (5, 6, 7), _emit, effect=Effect.MEMORY,
        modifiers=_COLLECTOR, writes=0, section="tcgen05.mma",
    )  # fmt: skip
for _kind in ("f16", "tf32", "f8f6f4", "i8"):
    operation(
        f"tcgen05.mma.ws.cta_group::1.kind::{_kind}", ("",), 5, _emit, effect=Effect.MEMORY,
        modifiers=_COLLECTOR_OF_B, writes=0, section="tcgen05.mma.ws",
    )  # fmt: skip
for _kind in ("mxf8f6f4", "mxf4", "mxf4nvf4"):
    operation(
        f"tcgen05.mma.cta_group::1.kind::{_kind}.block_scale", ("",), 7, _emit,
        effect=Effect.MEMORY, modifiers=(*_COLLECTOR, *_CHUNKS, "block16", "block32"), writes=0,
        section="tcgen05.mma",
    )  # fmt: skip
