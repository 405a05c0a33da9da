"""Copies of tensors, by tensor maps.

PTX ISA, "cp.async.bulk.tensor", "cp.async.bulk.prefetch.tensor". Not executed: `tile::gather4`,
`tile::scatter4`, `im2col::w`, `cta_group` and `override`, which devices of compute capability 10.0
have.
"""

from __future__ import annotations

from functools import partial

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.order.ordered_blocks import Stage, ordered_blocks
from ptx.emulate.exec.sync.bulk_copy import Place
from ptx.emulate.exec.sync.tensor_copy import (
    Sites,
    Tensor,
    TensorStore,
    tensor_loads,
    tensor_pieces,
    tensor_stores,
)
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.asynchronous.bulk_copy import SIGNAL, place, signal
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Address, Bracket, Instruction, Operand, Register, Symbol, Vector

DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")
_SECTION = "cp.async.bulk.tensor"
_HINT, _MULTICAST = "L2::cache_hint", "multicast::cluster"
_UNITS = {1: ("u8", 1), 2: ("u16", 1), 4: ("u32", 1), 8: ("u64", 1), 16: ("u64", 2)}


def load_tensor(
    fibre: Fibre, tensor: Tensor, target: Place, targets: Sites, barrier: Place,
    ranks: Value | None = None,
) -> None:  # fmt: skip
    """To shared memory."""
    for each in tensor_loads(fibre, tensor, target, targets, barrier, ranks):
        each.note()
        each.copy()
        each.tell()


def load_tensor_later(
    fibre: Fibre, tensor: Tensor, target: Place, targets: Sites, barrier: Place,
    ranks: Value | None = None,
) -> None:  # fmt: skip
    """The same when a thread waits for the phase that counts the bytes."""
    for each in tensor_loads(fibre, tensor, target, targets, barrier, ranks):
        each.note()
        ordered_blocks(fibre).late_copies.add(each.fibre, each.barrier, each.copy, each.tell)


def store_tensor(fibre: Fibre, tensor: Tensor, source: Place, sources: Sites) -> None:
    """To global memory."""
    for each in tensor_stores(fibre, tensor, source, sources):
        each.note()
        each.read()
        each.write()


def store_tensor_later(fibre: Fibre, tensor: Tensor, source: Place, sources: Sites) -> None:
    """The same: read when the group's reads are waited for, written when all of it is."""
    for each in tensor_stores(fibre, tensor, source, sources):
        each.note()
        read = partial(_read_later, each)
        ordered_blocks(fibre).late_copies.bulk.add(each.fibre, read)


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
    """How many dimensions an instruction names."""
    return next(int(word[0]) for word in i.modifiers if word in DIMENSIONS)


def tensor_operand(e: Emitter, i: Instruction, operand: Operand, offsets: str, sites: str) -> str:
    """The name of the `Tensor` of an operand `[map, {coordinates}]`."""
    if not isinstance(operand, Bracket) or len(operand.items) != 2:
        raise e.refuse("it needs a tensor map with coordinates")
    base, coordinates = operand.items
    if isinstance(base, Register | Symbol):
        base = Address(base, 0)
    if not isinstance(coordinates, Vector) or len(coordinates.items) != dimensions(i):
        raise e.refuse("its coordinates are not as many as the tensor's dimensions")
    where, offset, space = e.address(base, "generic")
    halves = e.site(space, "u64", 8)  # of its 128 bytes
    values = "".join(f"{e.value(each, 's32')}, " for each in coordinates.items)
    tensor_map = f"{e.helper(Place)}({where}, {offset}, {halves})"
    return e.temporary(f"{e.helper(Tensor)}({tensor_map}, ({values}), {offsets}, {sites})")


def im2col_offsets(e: Emitter, i: Instruction, rest: list[Operand]) -> str:
    """The offsets of `im2col`, as text, None for tiles; takes their operand away."""
    if "im2col" not in i.modifiers:
        return "()" if "im2col_no_offs" in i.modifiers else "None"
    given = rest.pop(0) if rest else None
    count = dimensions(i) - 2
    if count < 1 or not isinstance(given, Vector) or len(given.items) != count:
        raise e.refuse("im2col needs an offset for each dimension but the first and the last")
    values = "".join(f"{e.value(each, 'u16')}, " for each in given.items)
    return f"({values})"


def _copy(e: Emitter, i: Instruction) -> None:
    """Either way."""
    spaces = facts_of(i).spaces
    if len(spaces) != 2:
        raise e.refuse("it needs the spaces of its target and its source")
    if spaces[0] == "global":
        _store(e, i)
    else:
        _load(e, i)


def _load(e: Emitter, i: Instruction) -> None:
    target, tensor, barrier, *rest = i.operands
    offsets = im2col_offsets(e, i, rest)
    many = _MULTICAST in i.modifiers
    if SIGNAL not in i.modifiers or len(rest) != many + (_HINT in i.modifiers):
        raise e.refuse("its operands do not fit")
    source = tensor_operand(e, i, tensor, offsets, _sites(e, "global", writes=False))
    to = place(e, target, "shared", "u64", 2, writes=True)
    every = f"{source}, {to}, {_sites(e, 'shared', writes=True)}, {signal(e, barrier)}"
    if many:
        every += f", {e.value(rest[0], 'u16')}"
    function = load_tensor_later if e.late.copies else load_tensor
    e.line(f"{e.helper(function)}(f, {every})")


def _store(e: Emitter, i: Instruction) -> None:
    tensor, source, *rest = i.operands
    if "bulk_group" not in i.modifiers or len(rest) != (_HINT in i.modifiers):
        raise e.refuse("its operands do not fit")
    offsets = im2col_offsets(e, i, [])
    target = tensor_operand(e, i, tensor, offsets, _sites(e, "global", writes=True))
    of = place(e, source, "shared", "u64", 2, writes=False)
    every = f"{target}, {of}, {_sites(e, 'shared', writes=False)}"
    function = store_tensor_later if e.late.copies else store_tensor
    e.line(f"{e.helper(function)}(f, {every})")


def _prefetch(e: Emitter, i: Instruction) -> None:
    tensor, *rest = i.operands
    offsets = im2col_offsets(e, i, rest)
    if len(rest) != (_HINT in i.modifiers):
        raise e.refuse("its operands do not fit")
    e.line(f"{e.helper(prefetch_tensor)}(f, {tensor_operand(e, i, tensor, offsets, '{}')})")


for _words in DIMENSIONS:
    operation(
        f"cp.async.bulk.tensor.{_words}", ("",), (2, 3, 4, 5, 6), _copy, effect=Effect.MEMORY,
        writes=0, section=_SECTION,
        modifiers=("shared::cluster", "shared::cta", "global", "tile", "im2col", "im2col_no_offs",
                   "bulk_group", SIGNAL, _MULTICAST, _HINT),
    )  # fmt: skip
    operation(
        f"cp.async.bulk.prefetch.tensor.{_words}.L2.global", ("",), (1, 2, 3), _prefetch,
        effect=Effect.MEMORY, writes=0, modifiers=("tile", "im2col", _HINT),
        section="cp.async.bulk.prefetch.tensor",
    )  # fmt: skip
