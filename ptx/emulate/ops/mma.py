"""Products of small matrices by a warp, A * B + C. PTX ISA, "mma.sync", "mma.sp".

**Sparse A.** A holds two of every four neighbours in a row (of two f32 one, of eight 4-bit integers
two pairs). Metadata selects them, by two indices of two bits for each such chunk.

A lane's metadata belong to the row of its group and the row 8 further down. For 16- and 32-bit
elements each half of a word belongs to one row; for narrower ones lanes alternate. The selector
names the lane among four, or the pair, that supplies the metadata.

**Block scaling.** Each row of A and column of B may have one, two or four chunks, each with a
factor of its own. A factor is a power of two (`ue8m0`) or a float without a sign (`ue4m3`). Of four
lanes a pair supplies the factors of A, for its group's row and the row 8 further down. One lane
supplies those of B. The selectors name these lanes, and the bytes of their words.

The ISA leaves order and rounding of the sums open, and they were not measured on a GPU. Products
are exact, they are added to C in the order of k in float64, and the sum is rounded once to nearest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import EmulationFault
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.matrix import (
    OPTIONS,
    WIDTHS,
    Fragment,
    Matrices,
    MatrixShape,
    Types,
    Words,
    element_types,
    fragment,
    held,
    plain_words,
    product,
    product_in_steps,
    quad_fragment,
    shape_of,
)
from ptx.emulate.ops.warp import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Immediate, Instruction, Operand, Vector

Arithmetic = Callable[[Matrices, Matrices, Matrices, Types, tuple[str, ...]], Matrices]


class Product(NamedTuple):
    """One instruction: its types and modifiers, and the fragments of D, A, B and C."""

    types: Types
    options: tuple[str, ...]
    fragments: tuple[Fragment, Fragment, Fragment, Fragment]
    arithmetic: Arithmetic


def multiply(fibre: Fibre, group: Group, product: Product, *words: list[Value]) -> list[Value]:
    """The registers of D for each thread, from those of A, B and C."""
    a, b, c = gathered(fibre, group, product, words)
    result = product.arithmetic(a, b, c, product.types, product.options)
    return dealt(group, product.fragments[0].spread(result))


def gathered(
    fibre: Fibre, group: Group, product: Product, words: Sequence[list[Value]]
) -> tuple[Matrices, ...]:
    """A, B and C, from the registers of the whole warps."""
    return tuple(
        source.gathered(words_of(fibre, group, role, values))
        for source, role, values in zip(product.fragments[1:], "abc", words, strict=True)
    )


def dealt(group: Group, words: Words) -> list[Value]:
    """Return for each register (n,) its value in each thread of the fibre."""
    flat = words.reshape(-1, words.shape[-1])
    if not group.dense:
        flat = flat.take(group.mine, axis=0)
    return list(np.ascontiguousarray(flat.T))


def words_of(fibre: Fibre, group: Group, role: str, values: list[Value]) -> Words:
    """(warps, 32, registers): the values of all lanes of the group."""
    grids = [
        group.grid(fibre, f"{role}{k}", value).reshape(-1, WARP) for k, value in enumerate(values)
    ]
    return np.stack(grids, axis=-1)


def emit_product(
    e: Emitter,
    i: Instruction,
    product: Product,
    function: Callable[..., list[Value]] = multiply,
    form: object = None,
    **more: list[str],
) -> None:
    """Wait for the whole warp, and multiply its operands.

    `form`: what `function` gets instead of the product. `more`: further words of each lane, by
    their role; `function` gets them before those of A, B and C.
    """
    for role, operand, source in zip("abc", i.operands[1:4], product.fragments[1:], strict=True):
        more[role] = read(e, operand, source)
    exchanged = {f"{role}{k}": name for role, names in more.items() for k, name in enumerate(names)}
    group = sync_warp(e, i, exchanged)
    texts = ", ".join(f"[{', '.join(names)}]" for names in more.values())
    call = f"{e.helper(function)}(f, {group}, {e.scope.bind(form or product, 'product')}, {texts})"
    registers = e.temporary(call)
    target = product.fragments[0]
    results = [f"{registers}[{k}]" for k in range(target.registers)]
    e.assign_all(i.operands[0], held(target.element), results)


def read(e: Emitter, operand: Operand, source: Fragment) -> list[str]:
    """The names of a fragment's registers."""
    names = [e.temporary(value) for value in e.values(operand, held(source.element))]
    if len(names) != source.registers:
        raise e.reject(f"{len(names)} registers for a fragment of {source.registers}")
    return names


def options_of(e: Emitter, i: Instruction) -> tuple[str, ...]:
    """The modifier that changes the result, if there is one."""
    options = tuple(word for word in i.modifiers if word in OPTIONS)
    if len(options) > 1:
        raise e.reject(f"it has {' and '.join(options)}")
    return options


def fragments_of(
    shape: MatrixShape,
    types: Sequence[str],
    make_fragment: Callable[[MatrixShape, str, str], Fragment] = fragment,
) -> tuple[Fragment, Fragment, Fragment, Fragment]:
    """The fragments of D, A, B and C."""
    d, a, b, c = (
        make_fragment(shape, element, role) for element, role in zip(types, "cabc", strict=True)
    )
    return d, a, b, c


def _emit(e: Emitter, i: Instruction) -> None:
    name = plain_words(i)[2]
    types = element_types(i)
    if ".".join(types) not in _FORMS[name]:
        raise e.reject("tensor cores do not multiply these types in this shape")
    d, a, b, c = types
    options = options_of(e, i)
    if a == "b1" and not options:
        raise e.reject("it needs .xor or .and")
    fragments = fragments_of(shape_of(name), types)
    emit_product(e, i, Product((d, a, b, c), options, fragments, product))


def _emit_quads(e: Emitter, i: Instruction) -> None:
    d, a, b, c = element_types(i)
    _, _, _, left, right = plain_words(i)
    fragments = (
        quad_fragment(d, "c", "row"),
        quad_fragment(a, "a", left),
        quad_fragment(b, "b", right),
        quad_fragment(c, "c", "row"),
    )
    emit_product(e, i, Product((d, a, b, c), (), fragments, product_in_steps))


def pairs(result: str, *elements: str) -> tuple[str, ...]:
    """The types of D, A, B and C for every pair of factors, C like D."""
    return tuple(f"{result}.{a}.{b}.{result}" for a in elements for b in elements)


_HALF = ("f16.f16.f16.f16", "f32.f16.f16.f32")
_DOUBLE = pairs("f64", "f64")
_TF32 = pairs("f32", "tf32")
_BF16 = pairs("f32", "bf16")
_BYTES = pairs("s32", "s8", "u8")
_NIBBLES = pairs("s32", "s4", "u4")
_BITS = pairs("s32", "b1")
_NARROW = (*pairs("f32", "e4m3", "e5m2"), *pairs("f16", "e4m3", "e5m2"))
_FORMS = {
    "m8n8k4": _DOUBLE,
    "m8n8k16": _BYTES,
    "m8n8k32": _NIBBLES,
    "m8n8k128": _BITS,
    "m16n8k4": (*_DOUBLE, *_TF32),
    "m16n8k8": (*_DOUBLE, *_TF32, *_BF16, *_HALF),
    "m16n8k16": (*_DOUBLE, *_BF16, *_HALF, *_BYTES, *_NARROW),
    "m16n8k32": (*_BYTES, *_NIBBLES, *_NARROW),
    "m16n8k64": _NIBBLES,
    "m16n8k128": _BITS,
    "m16n8k256": _BITS,
}
"""By shape, the types of D, A, B and C."""


def modifiers_of(forms: str) -> tuple[str, ...]:
    """Return the modifiers that may follow the shape: types unknown to the parser, and options."""
    element = forms.split(".")[1]
    if element in ("s4", "u4"):
        return ("s4", "u4", "satfinite")
    if element == "b1":
        return ("b1", "xor", "and", "popc")
    if element in ("s8", "u8"):
        return ("satfinite",)
    return ("rn", "rz", "rm", "rp") if element == "f64" else ()


def known_types(forms: str) -> str:
    """Return the types among them that the parser recognises, as the table has them."""
    return ".".join(word for word in forms.split(".") if word not in ("s4", "u4", "b1"))


for _shape, _all in _FORMS.items():
    for _types, _options in {known_types(form): modifiers_of(form) for form in _all}.items():
        operation(
            f"mma.sync.aligned.{_shape}.row.col",
            (_types,),
            4,
            _emit,
            effect=Effect.SYNCS,
            modifiers=_options,
            section="mma.sync",
        )
for _a in ("row", "col"):
    for _b in ("row", "col"):
        operation(
            f"mma.sync.aligned.m8n8k4.{_a}.{_b}",
            (*_HALF, "f32.f16.f16.f16"),
            4,
            _emit_quads,
            effect=Effect.SYNCS,
            section="mma.sync",
        )


Nibbles = NDArray[np.uint32]  # (warps, 16, chunks): the two indices of each chunk of a row
_CHUNK = {32: 2, 16: 4, 8: 4, 4: 8}  # elements, by their bits


class Sparse(NamedTuple):
    """One instruction: its product, of fragments as they are held, its k and its selector."""

    product: Product
    instruction: Instruction
    k: int
    selector: int


def multiply_sparse(
    fibre: Fibre, group: Group, sparse: Sparse, metadata: list[Value], *words: list[Value]
) -> list[Value]:
    """The registers of D for each thread.

    Raises:
        EmulationFault: metadata name an element twice, or not in order where they must.
    """
    types, options, fragments, _ = sparse.product
    a, b, c = gathered(fibre, group, sparse.product, words)
    width = WIDTHS[types[1]]
    (metadata_words,) = words_of(fibre, group, "metadata", metadata).transpose(2, 0, 1)
    ordered = "sp::ordered_metadata" in sparse.instruction.modifiers
    nibbles = nibbles_of(metadata_words, width, sparse.k, sparse.selector)
    chosen = columns(fibre, nibbles, width, sparse.instruction, ordered=ordered)
    rows = b[np.arange(len(b))[:, None, None], chosen]
    return dealt(group, fragments[0].spread(product(a, rows, c, types, options)))


def lanes_of(k: int, width: int) -> int:
    """Return how many of four lanes supply metadata."""
    return k // _CHUNK[width] // 4


def nibbles_of(metadata: NDArray[np.uint32], width: int, k: int, selector: int) -> Nibbles:
    """From (warps, 32) words."""
    chunks, lanes = k // _CHUNK[width], lanes_of(k, width)
    words = metadata.reshape(-1, 8, 4)[:, :, lanes * selector : lanes * (selector + 1)]
    parts = words[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & np.uint32(15)
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
        held_columns = [start + first // 2]
    else:
        wrong = first >= second if ordered else first == second
        held_columns = [start + first, start + second]
    if width == 4:
        held_columns = [start + 2 * index + part for index in (first, second) for part in (0, 1)]
    if wrong.any():
        expected = "elements in order" if ordered else "different elements"
        name = "mma.sp" if instruction.opcode == "mma" else "wgmma.mma_async.sp"
        where = fibre.where(0, instruction)
        raise EmulationFault(f"metadata of {name} that do not name {expected}", where)
    return np.stack(held_columns, axis=-1).reshape(*nibbles.shape[:2], -1)


def selector_of(e: Emitter, operand: Operand, k: int, width: int) -> int:
    """The sparsity selector: which lane or lanes of four supply metadata."""
    most = 4 // lanes_of(k, width)
    if not isinstance(operand, Immediate) or not 0 <= operand.value < most:
        raise e.reject(f"its selector must be a constant below {most}")
    return operand.value


def _emit_sparse(e: Emitter, i: Instruction) -> None:
    name = next(word for word in plain_words(i) if word in _SPARSE_FORMS)
    types = element_types(i)
    if ".".join(types) not in _SPARSE_FORMS[name]:
        raise e.reject("tensor cores do not multiply these types in this shape")
    d, a, b, c = types
    shape = shape_of(name)
    selector = selector_of(e, i.operands[5], shape.k, WIDTHS[a])
    fragments = (
        fragment(shape, d, "c"),
        fragment(MatrixShape(shape.m, shape.n, shape.k // 2), a, "a"),
        fragment(shape, b, "b"),
        fragment(shape, c, "c"),
    )
    sparse = Sparse(
        Product((d, a, b, c), options_of(e, i), fragments, product), i, shape.k, selector
    )
    metadata = [e.temporary(e.value(i.operands[4], "b32"))]
    emit_product(e, i, sparse.product, multiply_sparse, sparse, metadata=metadata)


_SPARSE_FORMS = {
    "m16n8k8": pairs("f32", "tf32"),
    "m16n8k16": (*pairs("f32", "tf32"), *pairs("f32", "bf16"), *_HALF),
    "m16n8k32": (*pairs("f32", "bf16"), *_HALF, *_BYTES),
    "m16n8k64": (*_BYTES, *_NIBBLES, *pairs("f32", "e4m3", "e5m2")),
    "m16n8k128": _NIBBLES,
}
"""By shape, the types of D, A, B and C."""
for _shape, _all in _SPARSE_FORMS.items():
    for _types, _options in {known_types(form): modifiers_of(form) for form in _all}.items():
        for _kind in ("sp", "sp::ordered_metadata"):
            operation(
                f"mma.{_kind}.sync.aligned.{_shape}.row.col",
                (_types,),
                6,
                _emit_sparse,
                effect=Effect.SYNCS,
                modifiers=_options,
                section="mma.sp",
            )


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
    fibre: Fibre, group: Group, scaled: Scaled, scales: list[Value], *words: list[Value]
) -> list[Value]:
    """The registers of D for each thread; `scales`: for A and B a word, the byte, the lane.

    Raises:
        EmulationFault: a selector names no byte or no lane.
    """
    a, b, c = gathered(fibre, group, scaled.product, words)
    scale_words = words_of(fibre, group, "scale", scales)
    of_a = _factors(fibre, scaled, scale_words[:, :, :3], 2)
    of_b = _factors(fibre, scaled, scale_words[:, :, 3:], 4)
    # (warps, 8 groups, 2 lanes, chunks): the second lane has the rows 8 further down.
    rows = of_a.transpose(0, 2, 1, 3).reshape(len(a), 16, scaled.chunks)
    columns = of_b[:, :, 0].swapaxes(1, 2)
    per_chunk = a.shape[2] // scaled.chunks
    a = a * np.repeat(rows, per_chunk, axis=2)
    b = b * np.repeat(columns, per_chunk, axis=1)
    result = sum_of_products(a, b, c, scaled.product.types)
    return dealt(group, scaled.product.fragments[0].spread(result))


def _factors(
    fibre: Fibre, scaled: Scaled, scale_words: NDArray[np.uint32], choices: int
) -> Factors:
    """(warps, 8, lanes, chunks) of float64; a warp has one selector, that of its first lane."""
    lanes = 4 // choices
    byte, lane = (scale_words[:, 0, k].astype(np.intp) for k in (1, 2))
    if ((byte % scaled.chunks != 0) | (byte + scaled.chunks > 4) | (lane >= choices)).any():
        raise EmulationFault(
            f"a selector of {scaled.instruction.text} that names no byte or no lane: {{{byte[0]},"
            f" {lane[0]}}}, where bytes are multiples of {scaled.chunks} below 4, and lanes below"
            f" {choices}",
            fibre.where(0, scaled.instruction),
        )
    words = np.ascontiguousarray(scale_words[:, :, 0]).reshape(-1, 8, 4)
    chosen = (lane[:, None] * lanes + np.arange(lanes))[:, None, :]
    octets = np.take_along_axis(words, chosen, axis=2)[..., None] >> np.uint32(8) * np.arange(
        4, dtype=np.uint32
    )
    bytes_of_chunks = (byte[:, None] + np.arange(scaled.chunks))[:, None, None, :]
    bits = np.take_along_axis(octets & np.uint32(255), bytes_of_chunks, axis=3).astype(np.uint8)
    return decoded_factors(bits, scaled.factor)


def decoded_factors(bits: NDArray[np.uint8], factor: str) -> Factors:
    """Return the values of factors in the format "ue8m0" or "ue4m3"."""
    if factor == "ue8m0":
        return np.where(bits == 255, np.nan, np.ldexp(1.0, bits.astype(np.intc) - 127))
    halves = ieee.from_narrow(bits & np.uint8(127), source=ieee.E4M3)
    return np.asarray(halves).view(np.float16).astype(np.float64)


def _types_of(i: Instruction) -> tuple[Types, tuple[Fragment, Fragment, Fragment, Fragment]]:
    d, a, b, c = element_types(i)
    name = plain_words(i)[2]
    if name == "m16n8k64":
        a = b = "e2m1x8"
    return (d, a, b, c), fragments_of(shape_of(name), (d, a, b, c))


def _emit_kind(e: Emitter, i: Instruction) -> None:
    if len(element_types(i)) != 4:
        raise e.reject("it needs the types of four matrices")
    types, fragments = _types_of(i)
    emit_product(e, i, Product(types, (), fragments, sum_of_products))


def _scale(e: Emitter, data: Operand, selector: Operand) -> list[str]:
    """The names of a word with factors, the byte and the lane."""
    words = data.items if isinstance(data, Vector) else (data,)
    chosen = selector.items if isinstance(selector, Vector) else ()
    if len(words) != 1 or len(chosen) != 2:
        raise e.reject("factors are one word, and a selector is a byte and a lane")
    names = [e.temporary(e.value(words[0], "b32"))]
    # Selectors are 16-bit registers or constants.
    return names + [e.temporary(f"({e.value(x, 'u16')}).astype({e.dtype('u32')})") for x in chosen]


def _emit_scaled(e: Emitter, i: Instruction) -> None:
    chunks = [_CHUNKS[word] for word in i.modifiers if word in _CHUNKS]
    factors = [word for word in i.modifiers if word in ("ue8m0", "ue4m3")]
    kind = next(word for word in i.modifiers if word.startswith("kind::"))
    count = chunks[0] if chunks else _DEFAULT_CHUNKS.get(kind, 0)
    if len(element_types(i)) != 4 or len(factors) != 1 or (factors[0], count) not in _SCALES[kind]:
        raise e.reject("tensor cores do not scale these types so")
    types, fragments = _types_of(i)
    scaled = Scaled(Product(types, (), fragments, sum_of_products), i, factors[0], count)
    scale = [*_scale(e, *i.operands[4:6]), *_scale(e, *i.operands[6:8])]
    emit_product(e, i, scaled.product, multiply_scaled, scaled, scale=scale)


_NARROW_TYPES = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
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
    executed_forms = (".".join(w for w in form.split(".") if w not in _UNKNOWN) for form in forms)
    return {known_types(form) for form in executed_forms}


for _suffix in _suffixes(("f32", "f16"), _NARROW_TYPES):
    operation(
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4",
        (_suffix,),
        4,
        _emit_kind,
        effect=Effect.SYNCS,
        modifiers=_UNKNOWN,
        section="mma.sync",
    )
for _kind, _shape, _elements in (
    ("mxf8f6f4", "m16n8k32", _NARROW_TYPES),
    ("mxf4", "m16n8k64", ("e2m1",)),
    ("mxf4nvf4", "m16n8k64", ("e2m1",)),
):
    for _suffix in _suffixes(("f32",), _elements):
        operation(
            f"mma.sync.aligned.{_shape}.row.col.kind::{_kind}.block_scale",
            (_suffix,),
            8,
            _emit_scaled,
            effect=Effect.SYNCS,
            modifiers=(*_UNKNOWN, *_CHUNKS, "ue8m0", "ue4m3"),
            section="mma.sync",
        )
