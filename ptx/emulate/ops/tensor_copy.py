"""Copies and reductions of tensors by tensor maps, and changes of the maps.

PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "cp.async.bulk.prefetch.tensor",
"tensormap.replace", "tensormap.cp_fenceproxy". Not executed: `tile::gather4`, `tile::scatter4`,
`im2col::w`, `cta_group` and `override`, which devices of compute capability 10.0 have. The layout
of a tensor map is the emulator's own, see `ptx.emulate.model.tensor_map`. A reduction combines
elements one by one, each by an atomic operation; those out of bounds are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np

from ptx.emulate.access.memory_access import load, load_vector, store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.exec.order.ordered_blocks import Stage, ordered_blocks
from ptx.emulate.exec.sync.bulk_copy import Pointer
from ptx.emulate.exec.sync.tensor_copy import (
    Sites,
    Tensor,
    TensorPieces,
    TensorStore,
    TensorWrite,
    tensor_loads,
    tensor_pieces,
    tensor_stores,
)
from ptx.emulate.model.addresses import Index, addresses_in
from ptx.emulate.model.errors import InvalidTensorMap
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.tensor_map import ELEMENT_TYPES, FIELDS, NBYTES
from ptx.emulate.model.types import kind_of, unsigned, width_of
from ptx.emulate.ops.atomic import atomic
from ptx.emulate.ops.barrier import note_fence, note_proxy_fence
from ptx.emulate.ops.bulk_copy import SIGNAL, place, signal
from ptx.emulate.ops.data_movement import nothing, order_write, publish
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import (
    Address,
    Bracket,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)

_SCOPES = ("cta", "cluster", "gpu", "sys")
_PIECE = 16


def copy_map(fibre: Fibre, target: Pointer, source: Pointer) -> None:
    """`tensormap.cp_fenceproxy`: 128 bytes, once for each warp."""
    _, first = np.unique(fibre.lane_numbers() // 32, return_index=True)
    part = fibre.subset(first.astype(np.intp), ())
    for offset in range(0, NBYTES, _PIECE):
        of = addresses_in(source.every(fibre.n)[first] + offset)
        to = addresses_in(target.every(fibre.n)[first] + offset)
        store(part, to, 0, target.site, *load_vector(part, of, 0, source.site))


def _replace(e: Emitter, i: Instruction) -> None:
    field = FIELDS[i.modifiers[2]]
    addresses, offset, space = e.address(i.operands[0], i.facts.space)
    number = 0
    if len(i.operands) == 3:
        ordinal = i.operands[1]
        if not isinstance(ordinal, Immediate) or not 0 <= ordinal.value < field.places:
            raise e.reject(f"the number of the field is a constant below {field.places}")
        number = ordinal.value
    if (len(i.operands) == 3) != (field.places > 1) or "b1024" not in i.modifiers:
        raise e.reject("its operands do not fit")
    if type_suffix(i) != ("b64" if field.kind == "u64" else "b32"):
        raise e.reject(f"the field is of {'b64' if field.kind == 'u64' else 'b32'}")
    value = e.value(i.operands[-1], type_suffix(i))
    if kind_of(type_suffix(i)) != field.kind:
        value = f"({value}).astype({e.dtype(field.kind)})"
    site = e.site(space, field.kind, writes=True)
    field_offset = offset + field.at + number * width_of(field.kind)
    order_write(e, addresses, field_offset, site, strong=False)
    e.line(f"{e.helper(store)}(f, {addresses}, {field_offset}, {site}, {value})")


def _copy_map(e: Emitter, i: Instruction) -> None:
    size = i.operands[2]
    if not isinstance(size, Immediate) or size.value != NBYTES:
        raise e.reject(f"the size is {NBYTES}")
    target = place(e, i.operands[0], "global", "u64", 2, writes=True)
    source = place(e, i.operands[1], "shared", "u64", 2, writes=False)
    e.line(f"{e.helper(copy_map)}(f, {target}, {source})")
    e.line(f"{e.helper(note_proxy_fence)}(f, 'tensormap release')")
    e.line(f"{e.helper(note_fence)}(f, {i.facts.scope!r})")
    if e.late.stores:
        e.line(f"{e.helper(publish)}(f)")


def _fence(e: Emitter, i: Instruction) -> None:
    """Tensor maps are read as ordinary memory, so that it is a fence of that as well."""
    acquires = "acquire" in i.modifiers
    if len(i.operands) != (2 if acquires else 0):
        raise e.reject("its operands do not fit")
    size = i.operands[-1] if acquires else Immediate(NBYTES)
    if not isinstance(size, Immediate) or size.value != NBYTES:
        raise e.reject(f"the size is {NBYTES}")
    if not acquires:
        e.line(f"{e.helper(note_proxy_fence)}(f, 'tensormap release')")
    e.line(f"{e.helper(note_fence)}(f, {i.facts.scope!r})")
    if "release" not in i.modifiers:  # it includes what the fence has acquired
        e.line(f"{e.helper(note_proxy_fence)}(f, 'tensormap acquire')")
    if e.late.stores and not acquires:
        e.line(f"{e.helper(publish)}(f)")


for _name in FIELDS:
    operation(
        f"tensormap.replace.tile.{_name}",
        ("b32", "b64"),
        (2, 3),
        _replace,
        effect=Effect.MEMORY,
        writes=0,
        modifiers=("global", "shared::cta", "b1024"),
        section="tensormap.replace",
    )
operation(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release",
    ("",),
    3,
    _copy_map,
    effect=Effect.MEMORY,
    writes=0,
    modifiers=("sync", "aligned", *_SCOPES),
    section="tensormap.cp_fenceproxy",
)
operation(
    "fence.proxy.tensormap::generic",
    ("",),
    (0, 2),
    _fence,
    effect=Effect.MEMORY,
    writes=0,
    modifiers=("acquire", "release", *_SCOPES),
    section="fence",
)
for _words in ("tensormap", "param.tensormap", "const.tensormap"):
    operation(f"prefetch.{_words}", ("",), 1, nothing, writes=0, section="prefetch")


DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")
_SECTION = "cp.async.bulk.tensor"
_HINT, _MULTICAST = "L2::cache_hint", "multicast::cluster"
_UNITS = {1: ("u8", 1), 2: ("u16", 1), 4: ("u32", 1), 8: ("u64", 1), 16: ("u64", 2)}


def load_tensor(
    fibre: Fibre,
    late: bool,
    tensor: Tensor,
    target: Pointer,
    targets: Sites,
    barrier: Pointer,
    ranks: Value | None = None,
) -> None:
    """To shared memory; `late`: when a thread waits for the phase that counts the bytes."""
    for tensor_load in tensor_loads(fibre, tensor, target, targets, barrier, ranks):
        tensor_load.note()
        if late:
            ordered_blocks(fibre).late_copies.add(
                tensor_load.fibre, tensor_load.barrier, tensor_load.copy, tensor_load.deliver
            )
        else:
            tensor_load.copy()
            tensor_load.deliver()


def store_tensor(fibre: Fibre, late: bool, tensor: Tensor, source: Pointer, sources: Sites) -> None:
    """To global memory.

    `late`: it is read when the group's reads are waited for, and written when all of it is.
    """
    for tensor_store in tensor_stores(fibre, tensor, source, sources):
        tensor_store.note()
        if late:
            read = partial(_read_later, tensor_store)
            ordered_blocks(fibre).late_copies.bulk.add(tensor_store.fibre, read)
        else:
            tensor_store.read()
            tensor_store.write()


def _read_later(store: TensorStore, fibre: Fibre, positions: Index | None) -> Stage:
    part = store.part(positions)
    part.read()

    def write(_: Fibre, __: Index | None) -> Stage | None:
        ordered_blocks(fibre).late_stores.publish()
        part.write()
        return None

    return write


def prefetch_tensor(fibre: Fibre, tensor: Tensor) -> None:
    """To the L2 cache, which is not here: a map or coordinates that are wrong are a fault."""
    tensor_pieces(fibre, tensor)


def _sites(e: Emitter, space: str, *, writes: bool) -> str:
    """The accesses of an instruction to one memory, by the bytes of a piece, as text."""
    sites = (
        f"{nbytes}: {e.site(space, kind, count, writes=writes)}"
        for nbytes, (kind, count) in _UNITS.items()
    )
    return f"{{{', '.join(sites)}}}"


def dimensions(i: Instruction) -> int:
    """Return how many dimensions an instruction names."""
    return next(int(word[0]) for word in i.modifiers if word in DIMENSIONS)


def tensor_operand(e: Emitter, i: Instruction, operand: Operand, offsets: str, sites: str) -> str:
    """The name of the `Tensor` of an operand `[map, {coordinates}]`."""
    if not isinstance(operand, Bracket) or len(operand.items) != 2:
        raise e.reject("it needs a tensor map with coordinates")
    base, coordinates = operand.items
    if isinstance(base, Register | Symbol):
        base = Address(base, 0)
    if not isinstance(coordinates, Vector) or len(coordinates.items) != dimensions(i):
        raise e.reject("its coordinates are not as many as the tensor's dimensions")
    addresses, offset, space = e.address(base, "generic")
    halves = e.site(space, "u64", 8)  # of its 128 bytes
    values = "".join(f"{e.value(coordinate, 's32')}, " for coordinate in coordinates.items)
    tensor_map = f"{e.helper(Pointer)}({addresses}, {offset}, {halves})"
    return e.temporary(f"{e.helper(Tensor)}({tensor_map}, ({values}), {offsets}, {sites})")


def im2col_offsets(e: Emitter, i: Instruction, remaining: list[Operand]) -> str:
    """The offsets of `im2col`, as text, None for tiles; takes their operand away."""
    if "im2col" not in i.modifiers:
        return "()" if "im2col_no_offs" in i.modifiers else "None"
    offsets = remaining.pop(0) if remaining else None
    count = dimensions(i) - 2
    if count < 1 or not isinstance(offsets, Vector) or len(offsets.items) != count:
        raise e.reject("im2col needs an offset for each dimension but the first and the last")
    values = "".join(f"{e.value(offset, 'u16')}, " for offset in offsets.items)
    return f"({values})"


def _copy(e: Emitter, i: Instruction) -> None:
    """Either way."""
    spaces = i.facts.spaces
    if len(spaces) != 2:
        raise e.reject("it needs the spaces of its target and its source")
    if spaces[0] == "global":
        _write(e, i, _sites, store_tensor)
    else:
        _load(e, i)


def _load(e: Emitter, i: Instruction) -> None:
    target, tensor, barrier, *remaining = i.operands
    offsets = im2col_offsets(e, i, remaining)
    is_multicast = _MULTICAST in i.modifiers
    if SIGNAL not in i.modifiers or len(remaining) != is_multicast + (_HINT in i.modifiers):
        raise e.reject("its operands do not fit")
    source = tensor_operand(e, i, tensor, offsets, _sites(e, "global", writes=False))
    to = place(e, target, "shared", "u64", 2, writes=True)
    every = f"{source}, {to}, {_sites(e, 'shared', writes=True)}, {signal(e, barrier)}"
    if is_multicast:
        every += f", {e.value(remaining[0], 'u16')}"
    e.line(f"{e.helper(load_tensor)}(f, {e.late.copies}, {every})")


def _write(
    e: Emitter, i: Instruction, sites: Callable[..., str], function: Callable[..., None], *more: str
) -> None:
    """A store or a reduction, which differ in the accesses and in the function."""
    tensor, source, *remaining = i.operands
    if "bulk_group" not in i.modifiers or len(remaining) != (_HINT in i.modifiers):
        raise e.reject("its operands do not fit")
    offsets = im2col_offsets(e, i, [])
    target = tensor_operand(e, i, tensor, offsets, sites(e, "global", writes=True))
    of = place(e, source, "shared", "u64", 2, writes=False)
    every = ", ".join((target, of, sites(e, "shared", writes=False), *more))
    e.line(f"{e.helper(function)}(f, {e.late.copies}, {every})")


def _prefetch(e: Emitter, i: Instruction) -> None:
    tensor, *remaining = i.operands
    offsets = im2col_offsets(e, i, remaining)
    if len(remaining) != (_HINT in i.modifiers):
        raise e.reject("its operands do not fit")
    e.line(f"{e.helper(prefetch_tensor)}(f, {tensor_operand(e, i, tensor, offsets, '{}')})")


for _words in DIMENSIONS:
    operation(
        f"cp.async.bulk.tensor.{_words}", ("",), (2, 3, 4, 5, 6), _copy, effect=Effect.MEMORY,
        writes=0, section=_SECTION,
        modifiers=("shared::cluster", "shared::cta", "global", "tile", "im2col", "im2col_no_offs",
                   "bulk_group", SIGNAL, _MULTICAST, _HINT),
    )  # fmt: skip
    operation(
        f"cp.async.bulk.prefetch.tensor.{_words}.L2.global",
        ("",),
        (1, 2, 3),
        _prefetch,
        effect=Effect.MEMORY,
        writes=0,
        modifiers=("tile", "im2col", _HINT),
        section="cp.async.bulk.prefetch.tensor",
    )


_ORDERED: Final = ("u32", "s32", "u64", "s64", "f16", "bf16")
_BITS: Final = ("u32", "s32", "u64", "s64")
_TYPES: Final = {
    "add": (*_ORDERED, "f32", "f64"), "min": _ORDERED, "max": _ORDERED, "inc": ("u32",),
    "dec": ("u32",), "and": _BITS, "or": _BITS, "xor": _BITS,
}  # fmt: skip


class TensorReduction(TensorWrite):
    """Boxes that are combined with what stands in the tensor."""

    def __init__(
        self, pieces: TensorPieces, pointer: Pointer, sources: Sites, targets: Sites, name: str
    ) -> None:
        element = pieces.layout.element
        super().__init__(pieces, pointer, sources[element], targets[element])
        self._name = name

    def combine(self, positions: Index | None) -> None:
        """Do it for some of the threads; None: for all."""
        pieces = self.pieces.part(positions)
        chosen = pieces.within()
        if not len(chosen):
            return
        part, addresses = pieces.access(pieces.inside, chosen)
        values = part.spread(load(part, addresses, 0, self.source)).view(self.target.dtype)
        part, addresses = pieces.access(pieces.outside, chosen)
        element = pieces.layout.type
        atomic(
            part,
            addresses,
            0,
            self.target,
            self._name,
            element.sums_as,
            (values,),
            values,
            False,
            keeps_subnormals=not element.flushes,
        )


def tensor_reductions(
    fibre: Fibre, tensor: Tensor, source: Pointer, sources: Sites, name: str
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


def reduce_tensor(
    fibre: Fibre, late: bool, tensor: Tensor, source: Pointer, sources: Sites, name: str
) -> None:
    """Combine boxes into global memory; `late`: when the group is waited for."""
    for reduction in tensor_reductions(fibre, tensor, source, sources, name):
        reduction.note()
        if late:
            ordered_blocks(fibre).late_copies.bulk.add(reduction.fibre, partial(_land, reduction))
        else:
            reduction.combine(None)


def _land(reduction: TensorReduction, fibre: Fibre, positions: Index | None) -> Stage | None:
    ordered_blocks(fibre).late_stores.publish()
    reduction.combine(positions)
    return None


def _reduced_sites(e: Emitter, space: str, *, writes: bool) -> str:
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
    name = next(word for word in i.modifiers if word in _TYPES)
    _write(e, i, _reduced_sites, reduce_tensor, repr(name))


for _words in DIMENSIONS:
    for _name in _TYPES:
        operation(
            f"cp.reduce.async.bulk.tensor.{_words}.global.shared::cta.{_name}",
            ("",),
            (2, 3),
            _reduce,
            effect=Effect.MEMORY,
            writes=0,
            section="cp.reduce.async.bulk.tensor",
            modifiers=("tile", "im2col_no_offs", "bulk_group", _HINT),
        )
