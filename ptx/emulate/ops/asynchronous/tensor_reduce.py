"""Boxes of shared memory that are combined into a tensor. PTX ISA, "cp.reduce.async.bulk.tensor".

Elements are combined one by one, each by an atomic operation; those out of bounds are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from ptx.emulate.access.memory_access import load
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.order.ordered_blocks import Stage, ordered_blocks
from ptx.emulate.exec.sync.bulk_copy import Place
from ptx.emulate.exec.sync.tensor_copy import (
    Sites,
    Tensor,
    TensorPieces,
    TensorWrite,
    tensor_pieces,
)
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import InvalidTensorMap
from ptx.emulate.model.tensor_map import ELEMENT_TYPES
from ptx.emulate.model.types import kind_of, unsigned
from ptx.emulate.ops.asynchronous.bulk_copy import place
from ptx.emulate.ops.asynchronous.tensor_copy import DIMENSIONS, im2col_offsets, tensor_operand
from ptx.emulate.ops.memory.atomic import atomic
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_HINT = "L2::cache_hint"
_ORDERED: Final = ("u32", "s32", "u64", "s64", "f16", "bf16")
_BITS: Final = ("u32", "s32", "u64", "s64")
_TYPES: Final = {
    "add": (*_ORDERED, "f32", "f64"), "min": _ORDERED, "max": _ORDERED, "inc": ("u32",),
    "dec": ("u32",), "and": _BITS, "or": _BITS, "xor": _BITS,
}  # fmt: skip


class TensorReduction(TensorWrite):
    """Boxes that are combined with what stands in the tensor."""

    def __init__(
        self, pieces: TensorPieces, place: Place, sources: Sites, targets: Sites, name: str
    ) -> None:
        element = pieces.layout.element
        super().__init__(pieces, place, sources[element], targets[element])
        self._name = name

    def combine(self, positions: Index | None) -> None:
        """Do it for some of the threads; None: for all."""
        pieces = self.pieces.part(positions)
        chosen = pieces.within()
        if not len(chosen):
            return
        part, where = pieces.access(pieces.inside, chosen)
        values = part.spread(load(part, where, 0, self.source)).view(self.target.dtype)
        part, where = pieces.access(pieces.outside, chosen)
        element = pieces.layout.type
        atomic(
            part, where, 0, self.target, self._name, element.sums_as, (values,), values, False,
            keeps_subnormals=not element.flushes,
        )  # fmt: skip


def tensor_reductions(
    fibre: Fibre, tensor: Tensor, source: Place, sources: Sites, name: str
) -> Iterator[TensorReduction]:
    """The reductions that an instruction issues.

    Raises:
        InvalidTensorMap: the tensor is of a type that the operation does not take.
    """
    for pieces in tensor_pieces(fibre, tensor, by_element=True):
        element = pieces.layout.type
        if element.sums_as not in _TYPES[name]:
            raise InvalidTensorMap(
                f"a reduction by `{name}` into a tensor of {element.name}, which takes "
                f"{', '.join(_TYPES[name])}",
                pieces.fibre.where(0, source.site.instruction),
            )
        of = source.part(fibre.n, pieces.positions)
        yield TensorReduction(pieces, of, sources, tensor.sites, name)


def reduce_tensor(fibre: Fibre, tensor: Tensor, source: Place, sources: Sites, name: str) -> None:
    """Combine boxes into global memory."""
    for each in tensor_reductions(fibre, tensor, source, sources, name):
        each.note()
        each.combine(None)


def reduce_tensor_later(
    fibre: Fibre, tensor: Tensor, source: Place, sources: Sites, name: str
) -> None:
    """The same when the group is waited for."""
    for each in tensor_reductions(fibre, tensor, source, sources, name):
        each.note()
        ordered_blocks(fibre).late_copies.bulk.add(each.fibre, partial(_land, each))


def _land(reduction: TensorReduction, fibre: Fibre, positions: Index | None) -> Stage | None:
    ordered_blocks(fibre).late_stores.publish()
    reduction.combine(positions)
    return None


def _sites(e: Emitter, space: str, *, writes: bool) -> str:
    """The accesses to one memory by the number of the type of elements, as text.

    Shared memory is read as bits.
    """
    sites: list[str] = []
    for number, element in ELEMENT_TYPES.items():
        kind = "u16" if element.name in ("f16", "bf16") else kind_of(element.sums_as)
        name = e.site(space, kind if writes else unsigned(kind), writes=writes)
        sites.append(f"{number}: {name}")
    return f"{{{', '.join(sites)}}}"


def _reduce(e: Emitter, i: Instruction) -> None:
    tensor, source, *rest = i.operands
    if "bulk_group" not in i.modifiers or len(rest) != (_HINT in i.modifiers):
        raise e.refuse("its operands do not fit")
    offsets = im2col_offsets(e, i, [])
    target = tensor_operand(e, i, tensor, offsets, _sites(e, "global", writes=True))
    of = place(e, source, "shared", "u64", 2, writes=False)
    name = next(word for word in i.modifiers if word in _TYPES)
    every = f"{target}, {of}, {_sites(e, 'shared', writes=False)}, {name!r}"
    function = reduce_tensor_later if e.late.copies else reduce_tensor
    e.line(f"{e.helper(function)}(f, {every})")


for _words in DIMENSIONS:
    for _name in _TYPES:
        operation(
            f"cp.reduce.async.bulk.tensor.{_words}.global.shared::cta.{_name}", ("",), (2, 3),
            _reduce, effect=Effect.MEMORY, writes=0, section="cp.reduce.async.bulk.tensor",
            modifiers=("tile", "im2col_no_offs", "bulk_group", _HINT),
        )  # fmt: skip
