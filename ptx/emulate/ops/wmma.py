"""Products with opaque fragments. PTX ISA, "wmma.load", "wmma.store", "wmma.mma".

Every row (column, by the order) must start at a multiple of its size up to 16 bytes, of 8 bytes for
float64. The ISA and the CUDA manual require more; an H100 needs this in shared memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import load, store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.errors import Misaligned
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.data_movement import space_of
from ptx.emulate.ops.matrix import (
    WIDTHS,
    Fragment,
    Matrices,
    Types,
    element_types,
    held,
    opaque_fragment,
    plain_words,
    product,
    shape_of,
)
from ptx.emulate.ops.mma import (
    Product,
    emit_product,
    fragments_of,
    known_types,
    modifiers_of,
    options_of,
)
from ptx.emulate.ops.warp import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_SPACES = ("global", "shared", "shared::cta")


class FragmentMove:
    """The fragment and memory of one load or store.

    Attributes:
        site: the access to a unit: a whole register where its elements lie side by side in memory,
            otherwise an element.
        line, along: (32, units) which row (column) a lane's units are in, and the bytes from its
            start.
        width: bits of an element; the stride counts elements.
        align: what the start of each row (column) must be a multiple of.
    """

    __slots__ = ("align", "along", "line", "site", "units", "width")

    def __init__(self, i: Instruction, space: str, fragment: Fragment, order: str) -> None:
        line, along = fragment.row, fragment.column
        if order == "col":
            line, along = along, line
        self.width: int = WIDTHS[fragment.element]
        nbytes = self.width * (int(np.max(along)) + 1) // 8
        self.align: int = 8 if self.width == 64 else min(16, nbytes)
        per_register = line.shape[2]
        if _side_by_side(line, along):
            line, along = line[:, :, 0], along[:, :, 0]
            kind = "f64" if self.width == 64 else "u32"
        else:
            line, along = line.reshape(32, -1), along.reshape(32, -1)
            kind = f"u{self.width}"
        self.site: Site = Site(i, space, kind, 1, writes=plain_words(i)[0] == "store")
        self.line: Index = line
        self.along: Index = along * self.width // 8
        self.units: int = fragment.registers * (
            1 if line.shape[1] == fragment.registers else per_register
        )


def _side_by_side(line: Index, along: Index) -> bool:
    """Return whether the elements of each register are neighbours in memory."""
    first = along[:, :, :1] + np.arange(along.shape[2])
    return bool((line == line[:, :, :1]).all() and (along == first).all())


def _starts(
    fibre: Fibre, start: Addresses, at: int, stride: Value, move: FragmentMove
) -> NDArray[np.int64]:
    """(units, n) the address of each thread's units.

    Raises:
        Misaligned: a row or column does not start where one may.
    """
    base = start.every(fibre.n) + at
    pitch = np.asarray(stride, dtype=np.uint32).astype(np.int64) * move.width
    wrong = (base & (move.align - 1) != 0) | (pitch & (8 * move.align - 1) != 0)
    if wrong.any():
        position = int(np.argmax(wrong))
        address = int(base[position]) % (1 << 64)
        elements = np.broadcast_to(stride, base.shape)[position]
        raise Misaligned(
            f"a matrix at {move.site.space} address {address:#x} with a stride of {elements}"
            f" elements of {move.width} bits; rows (columns) must start at multiples of"
            f" {move.align} bytes",
            fibre.where(position, move.site.instruction),
            address=address,
            nbytes=move.align,
            space=move.site.space,
        )
    lane = np.broadcast_to(np.asarray(fibre.place("laneid"), dtype=np.intp), (fibre.n,))
    addresses: NDArray[np.int64] = move.line.T.take(lane, axis=1) * (pitch >> 3)
    addresses += move.along.T.take(lane, axis=1)
    addresses += base
    return addresses


def load_fragment(
    fibre: Fibre, start: Addresses, at: int, stride: Value, move: FragmentMove
) -> list[Value]:
    """`wmma.load`: for each register, (n,) the elements that each thread holds."""
    addresses = _starts(fibre, start, at, stride, move)
    units = [
        np.broadcast_to(load(fibre, addresses_in(unit_addresses), 0, move.site), (fibre.n,))
        for unit_addresses in addresses
    ]
    if move.site.nbytes >= 4:
        return list(units)
    per_register = 4 // move.site.nbytes
    return [
        np.stack(units[k : k + per_register], axis=-1).view(np.uint32)[:, 0]
        for k in range(0, len(units), per_register)
    ]


def store_fragment(
    fibre: Fibre, start: Addresses, at: int, stride: Value, move: FragmentMove, *words: Value
) -> None:
    """`wmma.store`: each thread writes its elements."""
    units: list[Value] = []
    for word in words:
        register = np.ascontiguousarray(np.broadcast_to(word, (fibre.n,)))
        units += list(register.view(move.site.dtype).reshape(fibre.n, -1).T)
    for unit_addresses, unit in zip(_starts(fibre, start, at, stride, move), units, strict=True):
        store(fibre, addresses_in(unit_addresses), 0, move.site, np.ascontiguousarray(unit))


def _element(e: Emitter, i: Instruction) -> str:
    types = element_types(i)
    if len(types) != 1:
        raise e.reject("it moves elements of one type")
    return types[0]


def _moved(e: Emitter, i: Instruction, operand: int) -> tuple[str, Fragment]:
    """Wait for the whole warp; the arguments that a load and a store share, and the fragment."""
    _, role, _, _, order, shape, *_ = plain_words(i)
    fragment = opaque_fragment(shape_of(shape), _element(e, i), "c" if role == "d" else role)
    addresses, offset, space = e.address(i.operands[operand], space_of(i))
    move = FragmentMove(i, space, fragment, order)
    e.sites.append(move.site)
    if len(i.operands) == 3:
        stride = e.temporary(e.value(i.operands[2], "u32"))
    else:
        stride = e.constant(fragment.columns if order == "row" else fragment.rows, "u32")
    sync_warp(e, i, {})
    return f"f, {addresses}, {offset}, {stride}, {e.scope.bind(move, 'move')}", fragment


def _load(e: Emitter, i: Instruction) -> None:
    arguments, fragment = _moved(e, i, 1)
    registers = e.temporary(f"{e.helper(load_fragment)}({arguments})")
    results = [f"{registers}[{k}]" for k in range(fragment.registers)]
    e.assign_all(i.operands[0], held(fragment.element), results)


def _store(e: Emitter, i: Instruction) -> None:
    words = [e.temporary(word) for word in e.values(i.operands[1], held(_element(e, i)))]
    arguments, fragment = _moved(e, i, 0)
    if len(words) != fragment.registers:
        raise e.reject(f"{len(words)} registers for a fragment of {fragment.registers}")
    e.line(f"{e.helper(store_fragment)}({arguments}, {', '.join(words)})")


_LARGE_SHAPES = ("m16n16k16", "m8n32k16", "m32n8k16")
_ELEMENTS = {
    **dict.fromkeys(_LARGE_SHAPES, (("f16", "bf16", "s8", "u8"), ("f16", "f32", "s32"))),
    "m16n16k8": (("tf32",), ("f32",)),
    "m8n8k4": (("f64",), ("f64",)),
    "m8n8k32": (("s4", "u4"), ("s32",)),
    "m8n8k128": (("b1",), ("s32",)),
}
"""By shape, the types of A and B, and those of C and D."""


def _move_records(role: str, order: str, shape: str, elements: tuple[str, ...]) -> None:
    """Records for the loads, or for the stores, of one role."""
    move, writes = (_store, 0) if role == "d" else (_load, 1)
    packed = elements[0] in ("s4", "u4", "b1")
    operation(
        f"wmma.{'store' if role == 'd' else 'load'}.{role}.sync.aligned.{order}.{shape}",
        ("",) if packed else elements,
        (2, 3),
        move,
        effect=Effect.SYNCS,
        writes=writes,
        modifiers=(*_SPACES, *elements) if packed else _SPACES,
        section="wmma.store" if role == "d" else "wmma.load",
    )


for _shape, (_factors, _results) in _ELEMENTS.items():
    for _order in ("row", "col"):
        # Elements that share a byte are only loaded along it.
        _along = _factors[0] not in ("s4", "u4", "b1")
        if _along or _order == "row":
            _move_records("a", _order, _shape, _factors)
        if _along or _order == "col":
            _move_records("b", _order, _shape, _factors)
        _move_records("c", _order, _shape, _results)
        _move_records("d", _order, _shape, _results)


def in_halves(
    a: Matrices, b: Matrices, c: Matrices, types: Types, options: tuple[str, ...]
) -> Matrices:
    """A * B + C of tf32, of which an H100 adds four columns of A at a time."""
    half = product(a[:, :, :4], b[:, :4], c, types, options)
    return product(a[:, :, 4:], b[:, 4:], half, types, options)


def _multiply(e: Emitter, i: Instruction) -> None:
    words = element_types(i)
    name = next(word for word in plain_words(i) if word in _FORMS)
    if ".".join(words) not in _FORMS[name]:
        raise e.reject("tensor cores do not multiply these types in this shape")
    d, a, b, c = words if len(words) == 4 else (words[0], "f16", "f16", words[1])
    fragments = fragments_of(shape_of(name), (d, a, b, c), opaque_fragment)
    arithmetic = in_halves if a == "tf32" else product
    emit_product(e, i, Product((d, a, b, c), options_of(e, i), fragments, arithmetic))


_LARGE = (
    *(f"{d}.{c}" for d in ("f16", "f32") for c in ("f16", "f32")),
    "f32.bf16.bf16.f32",
    "s32.s8.s8.s32",
    "s32.u8.u8.s32",
)
_FORMS = {
    "m16n16k16": _LARGE,
    "m8n32k16": _LARGE,
    "m32n8k16": _LARGE,
    "m16n16k8": ("f32.tf32.tf32.f32",),
    "m8n8k4": ("f64.f64.f64.f64",),
    "m8n8k32": ("s32.s4.s4.s32", "s32.u4.u4.s32"),
    "m8n8k128": ("s32.b1.b1.s32",),
}
"""By shape, the types of D, A, B and C; those of A and B are left away for f16."""


def _operate(prefix: str, orders: str, shape: str, forms: str, options: tuple[str, ...]) -> None:
    operation(
        f"wmma.mma.{prefix}sync.aligned.{orders}.{shape}",
        (forms,),
        4,
        _multiply,
        effect=Effect.SYNCS,
        modifiers=options,
        section="wmma.mma",
    )


for _shape, _all in _FORMS.items():
    for _forms, _options in {known_types(form): modifiers_of(form) for form in _all}.items():
        if _forms == "s32.s32":
            # Elements that share a byte are only multiplied along it.
            for _prefix in ("xor.popc.", "and.popc.") if "b1" in _options else ("",):
                _operate(_prefix, "row.col", _shape, _forms, _options)
            continue
        for _order in ("row", "col"):
            for _other in ("row", "col"):
                _operate("", f"{_order}.{_other}", _shape, _forms, _options)
