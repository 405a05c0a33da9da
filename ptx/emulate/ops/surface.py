"""Reads and writes of surfaces through handles in registers. PTX ISA, "suld", "sust", "sured"."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.model.types import NUMPY, kind_of
from ptx.emulate.ops.texture import items_of, place_of
from ptx.emulate.texture.surface_access import AXES, SurfaceForm, load, reduce, store
from ptx.isa.model import Instruction, Operand

_LENGTHS = {"1d": (1,), "2d": (2,), "3d": (4, 3), "a1d": (2,), "a2d": (4, 3)}
_MODES = ("trap", "clamp", "zero")
_VECTORS = ("v2", "v4")
_CACHES = ("ca", "cg", "cs", "cv", "wb", "wt")
_REDUCTIONS = ("add", "min", "max", "and", "or")
_MOST_BYTES = 16


def _form(e: Emitter, i: Instruction, *, writes: bool, reduction: str = "") -> SurfaceForm:
    geometries = [word for word in i.modifiers if word in AXES]
    modes = [word for word in i.modifiers if word in _MODES]
    if len(geometries) != 1 or len(modes) > 1:
        raise e.reject("it needs one geometry and one boundary mode")
    kind = kind_of(type_suffix(i))
    count = i.facts.vector
    form = SurfaceForm(
        i,
        geometries[0],
        modes[0] if modes else "trap",
        i.modifiers[0] == "p",
        np.dtype(NUMPY[kind]),
        count,
        writes,
        reduction,
    )
    if form.nbytes > _MOST_BYTES:
        raise e.reject(f"it moves {form.nbytes} bytes; {_MOST_BYTES} are the most")
    return form


def _place(e: Emitter, form: SurfaceForm, operand: Operand) -> tuple[str, list[str]]:
    """The handle, and the layer, if there is one, before the coordinates."""
    handle, coordinates = place_of(e, operand)
    items = items_of(e, coordinates, _LENGTHS[form.geometry])
    used_items = items[: AXES[form.geometry] + (form.geometry[0] == "a")]
    return handle, [e.value(item, "s32") for item in used_items]


def _load(e: Emitter, i: Instruction) -> None:
    form = _form(e, i, writes=False)
    handle, coordinates = _place(e, form, i.operands[1])
    target = i.operands[0]
    items_of(e, target, (form.count,))
    name = e.scope.bind(form, "form")
    texels = e.temporary(f"{e.helper(load)}(f, {name}, {handle}, {', '.join(coordinates)})")
    e.assign_all(target, type_suffix(i), [f"{texels}[{k}]" for k in range(form.count)])


def _write(e: Emitter, i: Instruction, form: SurfaceForm, function: str) -> None:
    handle, coordinates = _place(e, form, i.operands[0])
    items = items_of(e, i.operands[1], (form.count,))
    values = [e.value(item, type_suffix(i)) for item in items]
    name = e.scope.bind(form, "form")
    every = ", ".join((*coordinates, *values))
    e.line(f"{function}(f, {name}, {handle}, {len(coordinates)}, {every})")


def _store(e: Emitter, i: Instruction) -> None:
    _write(e, i, _form(e, i, writes=True), e.helper(store))


def _reduce(e: Emitter, i: Instruction) -> None:
    reduction = next((word for word in i.modifiers if word in _REDUCTIONS), "")
    if not reduction:
        raise e.reject("it needs an operation")
    _write(e, i, _form(e, i, writes=True, reduction=reduction), e.helper(reduce))


_GEOMETRIES = (*AXES, *_MODES)
operation(
    "suld.b",
    ("b8", "b16", "b32", "b64"),
    2,
    _load,
    effect=Effect.MEMORY,
    section="suld",
    modifiers=(*_GEOMETRIES, *_VECTORS, *_CACHES),
)
operation(
    "sust.b",
    ("b8", "b16", "b32", "b64"),
    2,
    _store,
    effect=Effect.MEMORY,
    writes=0,
    section="sust",
    modifiers=(*_GEOMETRIES, *_VECTORS, *_CACHES),
)
operation(
    "sust.p",
    ("b32",),
    2,
    _store,
    effect=Effect.MEMORY,
    writes=0,
    section="sust",
    modifiers=(*_GEOMETRIES, *_VECTORS, *_CACHES),
)
_REDUCED = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"), "and": ("b32",), "or": ("b32",),
}  # fmt: skip
for _name, _types in _REDUCED.items():
    operation(
        f"sured.b.{_name}",
        _types,
        2,
        _reduce,
        effect=Effect.MEMORY,
        writes=0,
        section="sured",
        modifiers=("1d", "2d", "3d", *_MODES),
    )
    operation(
        f"sured.p.{_name}",
        ("b32",),
        2,
        _reduce,
        effect=Effect.MEMORY,
        writes=0,
        section="sured",
        modifiers=("1d", "2d", "3d", *_MODES),
    )
