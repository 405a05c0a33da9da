"""Products of small matrices by a warp, A * B + C. PTX ISA, "mma.sync"."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.ops.matrix.matrix_arithmetic import (
    OPTIONS,
    Matrices,
    Types,
    product,
    product_in_steps,
)
from ptx.emulate.ops.matrix.matrix_element import element_types, held, plain_words
from ptx.emulate.ops.matrix.matrix_fragment import (
    Fragment,
    Words,
    fragment,
    quad_fragment,
    shape_of,
)
from ptx.emulate.ops.warp.lane_sync import sync_warp
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Operand

Arithmetic = Callable[[Matrices, Matrices, Matrices, Types, tuple[str, ...]], Matrices]


class Product(NamedTuple):
    """One instruction: its types and modifiers, and the fragments of D, A, B and C."""

    types: Types
    options: tuple[str, ...]
    fragments: tuple[Fragment, Fragment, Fragment, Fragment]
    arithmetic: Arithmetic


def multiply(fibre: Fibre, group: Group, what: Product, *words: list[Value]) -> list[Value]:
    """The registers of D for each thread, from those of A, B and C."""
    target, *sources = what.fragments
    a, b, c = (
        source.gathered(words_of(fibre, group, role, values))
        for source, role, values in zip(sources, "abc", words, strict=True)
    )
    return dealt(group, target.spread(what.arithmetic(a, b, c, what.types, what.options)))


def dealt(group: Group, found: Words) -> list[Value]:
    """For each register, (n,) its value in each thread of the fibre."""
    flat = found.reshape(-1, found.shape[-1])
    if not group.dense:
        flat = flat.take(group.mine, axis=0)
    return list(np.ascontiguousarray(flat.T))


def words_of(fibre: Fibre, group: Group, role: str, values: list[Value]) -> Words:
    """(warps, 32, registers): what all lanes of the group brought."""
    grids = [
        group.grid(fibre, f"{role}{k}", value).reshape(-1, WARP) for k, value in enumerate(values)
    ]
    return np.stack(grids, axis=-1)


def emit_product(e: Emitter, i: Instruction, what: Product) -> None:
    """Wait for the whole warp, and multiply what the operands hold."""
    lists: dict[str, list[str]] = {}
    for role, operand, source in zip("abc", i.operands[1:], what.fragments[1:], strict=True):
        lists[role] = read(e, operand, source)
    brought = {f"{role}{k}": name for role, names in lists.items() for k, name in enumerate(names)}
    group = sync_warp(e, i, brought)
    texts = ", ".join(f"[{', '.join(names)}]" for names in lists.values())
    call = f"{e.helper(multiply)}(f, {group}, {e.scope.bind(what, 'product')}, {texts})"
    found = e.temporary(call)
    target = what.fragments[0]
    results = [f"{found}[{k}]" for k in range(target.registers)]
    e.assign_all(i.operands[0], held(target.element), results)


def read(e: Emitter, operand: Operand, source: Fragment) -> list[str]:
    """The names of a fragment's registers."""
    names = [e.temporary(value) for value in e.values(operand, held(source.element))]
    if len(names) != source.registers:
        raise e.refuse(f"{len(names)} registers for a fragment of {source.registers}")
    return names


def options_of(e: Emitter, i: Instruction) -> tuple[str, ...]:
    """The modifier that changes the result, if there is one."""
    found = tuple(word for word in i.modifiers if word in OPTIONS)
    if len(found) > 1:
        raise e.refuse(f"it has {' and '.join(found)}")
    return found


def _emit(e: Emitter, i: Instruction) -> None:
    name = plain_words(i)[2]
    types = element_types(i)
    if ".".join(types) not in _FORMS[name]:
        raise e.refuse("tensor cores do not multiply these types in this shape")
    d, a, b, c = types
    options = options_of(e, i)
    if a == "b1" and not options:
        raise e.refuse("it needs .xor or .and")
    shape = shape_of(name)
    fragments = (
        fragment(shape, d, "c"), fragment(shape, a, "a"), fragment(shape, b, "b"),
        fragment(shape, c, "c"),
    )  # fmt: skip
    emit_product(e, i, Product((d, a, b, c), options, fragments, product))


def _emit_quads(e: Emitter, i: Instruction) -> None:
    d, a, b, c = element_types(i)
    _, _, _, left, right = plain_words(i)
    fragments = (
        quad_fragment(d, "c", "row"), quad_fragment(a, "a", left), quad_fragment(b, "b", right),
        quad_fragment(c, "c", "row"),
    )  # fmt: skip
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
    """What may follow the shape: types that the parser does not know, and options."""
    element = forms.split(".")[1]
    if element in ("s4", "u4"):
        return ("s4", "u4", "satfinite")
    if element == "b1":
        return ("b1", "xor", "and", "popc")
    if element in ("s8", "u8"):
        return ("satfinite",)
    return ("rn", "rz", "rm", "rp") if element == "f64" else ()


def known_types(forms: str) -> str:
    """The types among them that the parser knows, as the table has them."""
    return ".".join(word for word in forms.split(".") if word not in ("s4", "u4", "b1"))


for _shape, _all in _FORMS.items():
    for _types, _options in {known_types(form): modifiers_of(form) for form in _all}.items():
        operation(
            f"mma.sync.aligned.{_shape}.row.col", (_types,), 4, _emit, effect=Effect.SYNCS,
            modifiers=_options, section="mma.sync",
        )  # fmt: skip
for _a in ("row", "col"):
    for _b in ("row", "col"):
        operation(
            f"mma.sync.aligned.m8n8k4.{_a}.{_b}", (*_HALF, "f32.f16.f16.f16"), 4, _emit_quads,
            effect=Effect.SYNCS, section="mma.sync",
        )  # fmt: skip
