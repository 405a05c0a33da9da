"""Matrix products with opaque fragments. PTX ISA, "wmma.mma"."""

from __future__ import annotations

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.ops.matrix.matrix_arithmetic import Matrices, Types, product
from ptx.emulate.ops.matrix.matrix_element import element_types, plain_words
from ptx.emulate.ops.matrix.matrix_fragment import opaque_fragment, shape_of
from ptx.emulate.ops.matrix.matrix_product import (
    Product,
    emit_product,
    known_types,
    modifiers_of,
    options_of,
)
from ptx.isa.model import Instruction


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
        raise e.refuse("tensor cores do not multiply these types in this shape")
    d, a, b, c = words if len(words) == 4 else (words[0], "f16", "f16", words[1])
    shape = shape_of(name)
    fragments = (
        opaque_fragment(shape, d, "c"), opaque_fragment(shape, a, "a"),
        opaque_fragment(shape, b, "b"), opaque_fragment(shape, c, "c"),
    )  # fmt: skip
    arithmetic = in_halves if a == "tf32" else product
    emit_product(e, i, Product((d, a, b, c), options_of(e, i), fragments, arithmetic))


_LARGE = (
    *(f"{d}.{c}" for d in ("f16", "f32") for c in ("f16", "f32")),
    "f32.bf16.bf16.f32", "s32.s8.s8.s32", "s32.u8.u8.s32",
)  # fmt: skip
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
        f"wmma.mma.{prefix}sync.aligned.{orders}.{shape}", (forms,), 4, _multiply,
        effect=Effect.SYNCS, modifiers=options, section="wmma.mma",
    )  # fmt: skip


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
