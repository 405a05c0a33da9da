"""Products of narrow floats of several formats, with factors for blocks of them.

PTX ISA, "mma.sync" with `.kind`, "Block Scaling for mma.sync". Each row of A and column of B may be
cut into one, two or four chunks, each of which is multiplied by a factor of its own: a power of two
(`ue8m0`) or a float without a sign (`ue4m3`). Of four lanes a pair brings the factors of A, those
of its group's row and of the row 8 further down, and one lane those of B; the selectors say which,
and which of a word's bytes.

The ISA leaves order and rounding of the sums open. No GPU was asked: products are exact, they are
added to C in the order of k in float64, and the sum is rounded once to nearest.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.model.errors import EmulationFault
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.matrix.matrix_arithmetic import Matrices, Types
from ptx.emulate.ops.matrix.matrix_element import element_types, held, plain_words
from ptx.emulate.ops.matrix.matrix_fragment import Fragment, fragment, shape_of
from ptx.emulate.ops.matrix.matrix_product import (
    Product,
    dealt,
    emit_product,
    known_types,
    pairs,
    read,
    words_of,
)
from ptx.emulate.ops.warp.lane_sync import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Operand, Vector

Factors = NDArray[np.float64]
_CHUNKS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}


class Scaled(NamedTuple):
    """One instruction: its product, the type of factors, and how many a row has."""

    product: Product
    instruction: Instruction
    factor: str
    chunks: int


def sum_of_products(
    a: Matrices, b: Matrices, c: Matrices, types: Types, options: tuple[str, ...] = ()
) -> Matrices:
    """A * B + C."""
    total = c
    for k in range(a.shape[2]):
        total = total + a[:, :, k, None] * b[:, None, k, :]
    return total


def multiply_scaled(
    fibre: Fibre, group: Group, what: Scaled, scales: list[Value], *words: list[Value]
) -> list[Value]:
    """The registers of D for each thread; `scales`: for A and B a word, the byte, the lane.

    Raises:
        EmulationFault: a selector names no byte or no lane.
    """
    target, *sources = what.product.fragments
    a, b, c = (
        source.gathered(words_of(fibre, group, role, values))
        for source, role, values in zip(sources, "abc", words, strict=True)
    )
    brought = words_of(fibre, group, "scale", scales)
    of_a = _factors(fibre, what, brought[:, :, :3], 2)
    of_b = _factors(fibre, what, brought[:, :, 3:], 4)
    # (warps, 8 groups, 2 lanes, chunks): the second lane has the rows 8 further down.
    rows = of_a.transpose(0, 2, 1, 3).reshape(len(a), 16, what.chunks)
    columns = of_b[:, :, 0].swapaxes(1, 2)
    each = a.shape[2] // what.chunks
    a = a * np.repeat(rows, each, axis=2)
    b = b * np.repeat(columns, each, axis=1)
    return dealt(group, target.spread(sum_of_products(a, b, c, what.product.types)))


def _factors(fibre: Fibre, what: Scaled, brought: NDArray[np.uint32], choices: int) -> Factors:
    """(warps, 8, lanes, chunks) of float64; a warp has one selector, that of its first lane."""
    lanes = 4 // choices
    byte, lane = (brought[:, 0, k].astype(np.intp) for k in (1, 2))
    if ((byte % what.chunks != 0) | (byte + what.chunks > 4) | (lane >= choices)).any():
        raise EmulationFault(
            f"a selector of {what.instruction.text} that names no byte or no lane: {{{byte[0]},"
            f" {lane[0]}}}, where bytes are multiples of {what.chunks} below 4, and lanes below"
            f" {choices}",
            fibre.where(0, what.instruction),
        )
    words = np.ascontiguousarray(brought[:, :, 0]).reshape(-1, 8, 4)
    chosen = (lane[:, None] * lanes + np.arange(lanes))[:, None, :]
    octets = np.take_along_axis(words, chosen, axis=2)[..., None] >> np.uint32(8) * np.arange(
        4, dtype=np.uint32
    )
    at = (byte[:, None] + np.arange(what.chunks))[:, None, None, :]
    bits = np.take_along_axis(octets & np.uint32(255), at, axis=3).astype(np.uint8)
    return decoded_factors(bits, what.factor)


def decoded_factors(bits: NDArray[np.uint8], factor: str) -> Factors:
    """What the bits of factors mean: "ue8m0" or "ue4m3"."""
    if factor == "ue8m0":
        return np.where(bits == 255, np.nan, np.ldexp(1.0, bits.astype(np.intc) - 127))
    halves = ieee.from_narrow(bits & np.uint8(127), source=ieee.E4M3)
    return np.asarray(halves).view(np.float16).astype(np.float64)


def _types_of(i: Instruction) -> tuple[Types, tuple[Fragment, Fragment, Fragment, Fragment]]:
    d, a, b, c = element_types(i)
    name = plain_words(i)[2]
    if name == "m16n8k64":
        a = b = "e2m1x8"
    shape = shape_of(name)
    fragments = (
        fragment(shape, d, "c"), fragment(shape, a, "a"), fragment(shape, b, "b"),
        fragment(shape, c, "c"),
    )  # fmt: skip
    return (d, a, b, c), fragments


def _emit(e: Emitter, i: Instruction) -> None:
    if len(element_types(i)) != 4:
        raise e.refuse("it needs the types of four matrices")
    types, fragments = _types_of(i)
    emit_product(e, i, Product(types, (), fragments, sum_of_products))


def _scale(e: Emitter, data: Operand, selector: Operand) -> list[str]:
    """The names of a word with factors, the byte and the lane."""
    words = data.items if isinstance(data, Vector) else (data,)
    chosen = selector.items if isinstance(selector, Vector) else ()
    if len(words) != 1 or len(chosen) != 2:
        raise e.refuse("factors are one word, and a selector is a byte and a lane")
    names = [e.temporary(e.value(words[0], "b32"))]
    # Selectors are 16-bit registers or constants.
    return names + [e.temporary(f"({e.value(x, 'u16')}).astype({e.dtype('u32')})") for x in chosen]


def _emit_scaled(e: Emitter, i: Instruction) -> None:
    chunks = [_CHUNKS[word] for word in i.modifiers if word in _CHUNKS]
    factors = [word for word in i.modifiers if word in ("ue8m0", "ue4m3")]
    kind = next(word for word in i.modifiers if word.startswith("kind::"))
    count = chunks[0] if chunks else _DEFAULT_CHUNKS.get(kind, 0)
    if len(element_types(i)) != 4 or len(factors) != 1 or (factors[0], count) not in _SCALES[kind]:
        raise e.refuse("tensor cores do not scale these types so")
    types, fragments = _types_of(i)
    what = Scaled(Product(types, (), fragments, sum_of_products), i, factors[0], count)
    lists = {
        role: read(e, operand, source)
        for role, operand, source in zip("abc", i.operands[1:4], fragments[1:], strict=True)
    }
    scales = [*_scale(e, *i.operands[4:6]), *_scale(e, *i.operands[6:8])]
    brought = {f"{role}{k}": name for role, names in lists.items() for k, name in enumerate(names)}
    brought |= {f"scale{k}": name for k, name in enumerate(scales)}
    group = sync_warp(e, i, brought)
    texts = ", ".join(f"[{', '.join(names)}]" for names in (scales, *lists.values()))
    bound = e.scope.bind(what, "scaled")
    found = e.temporary(f"{e.helper(multiply_scaled)}(f, {group}, {bound}, {texts})")
    results = [f"{found}[{k}]" for k in range(fragments[0].registers)]
    e.assign_all(i.operands[0], held(types[0]), results)


_NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
_UNKNOWN = ("e2m3", "e3m2", "e2m1")  # no types of the parser's
_DEFAULT_CHUNKS = {"kind::mxf8f6f4": 1, "kind::mxf4": 2}
_SCALES = {
    "kind::mxf8f6f4": {("ue8m0", 1)},
    "kind::mxf4": {("ue8m0", 2)},
    "kind::mxf4nvf4": {("ue8m0", 2), ("ue8m0", 4), ("ue4m3", 4)},
}
"""By kind, the types of factors, and how many a row may have."""


def _suffixes(results: tuple[str, ...], elements: tuple[str, ...]) -> set[str]:
    forms = itertools.chain.from_iterable(pairs(result, *elements) for result in results)
    known = (".".join(w for w in form.split(".") if w not in _UNKNOWN) for form in forms)
    return {known_types(form) for form in known}


for _suffix in _suffixes(("f32", "f16"), _NARROW):
    operation(
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4", (_suffix,), 4, _emit,
        effect=Effect.SYNCS, modifiers=_UNKNOWN, section="mma.sync",
    )  # fmt: skip
for _kind, _shape, _elements in (
    ("mxf8f6f4", "m16n8k32", _NARROW), ("mxf4", "m16n8k64", ("e2m1",)),
    ("mxf4nvf4", "m16n8k64", ("e2m1",)),
):  # fmt: skip
    for _suffix in _suffixes(("f32",), _elements):
        operation(
            f"mma.sync.aligned.{_shape}.row.col.kind::{_kind}.block_scale", (_suffix,), 8,
            _emit_scaled, effect=Effect.SYNCS, modifiers=(*_UNKNOWN, *_CHUNKS, "ue8m0", "ue4m3"),
            section="mma.sync",
        )  # fmt: skip
