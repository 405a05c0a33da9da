"""Fetches from textures, and queries of textures and surfaces.

PTX ISA, "tex", "tld4", "txq", "suq", "istypep". A GPU's driver loads no kernel that queries a
handle for anything but its extents: other queries are rejected here as well. For `istypep` a handle
is no opaque variable, as on a GPU. Module-scope `.texref` variables, separate samplers,
multisampled and depth-compared textures are rejected: NVRTC emits none of them.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.memory.texture_object import TexelImage
from ptx.emulate.model.geometry import Value
from ptx.emulate.texture.handles import by_handle
from ptx.emulate.texture.sampling import FACES
from ptx.emulate.texture.texture_fetch import AXES, CHANNELS, TextureForm, fetch
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Address, Bracket, Instruction, Operand, Pair, Register, Vector

_LENGTHS = {
    "1d": (1,),
    "2d": (2,),
    "3d": (4, 3),
    "a1d": (2,),
    "a2d": (4, 3),
    "cube": (4, 3),
    "acube": (4,),
}
_DERIVATIVES = {"1d": (1,), "2d": (2,), "3d": (4, 3), "cube": (4, 3)}


def handle_of(e: Emitter, operand: Operand) -> str:
    """The 64-bit handle that an instruction names."""
    if isinstance(operand, Address) and isinstance(operand.base, Register) and not operand.offset:
        operand = operand.base
    if not isinstance(operand, Register):
        raise e.reject(
            "only texture and surface objects, whose handles are in registers, are emulated, no"
            " module-scope references"
        )
    if operand.ptx_type not in ("b64", "u64", "s64"):
        raise e.reject(f"{operand.name} is no register of 64 bits, so it holds no handle")
    return e.temporary(e.value(operand, "u64"))


def items_of(e: Emitter, operand: Operand, lengths: tuple[int, ...]) -> tuple[Operand, ...]:
    """The elements of a vector, or a single operand, of one of these lengths."""
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if len(items) not in lengths:
        raise e.reject(f"a vector of {len(items)} elements where {lengths[0]} belong")
    return items


def place_of(e: Emitter, operand: Operand) -> tuple[str, Operand]:
    """The handle and the coordinates of `[a, c]`."""
    if not isinstance(operand, Bracket):
        raise e.reject("it needs a handle and coordinates in brackets")
    if len(operand.items) != 2:
        raise e.reject("samplers of their own are not emulated")
    return handle_of(e, operand.items[0]), operand.items[1]


def geometry_of(e: Emitter, i: Instruction) -> str:
    """The one geometry that an instruction names."""
    geometries = [word for word in i.modifiers if word in AXES]
    if len(geometries) != 1:
        raise e.reject("it needs one geometry")
    return geometries[0]


def _coordinates(e: Emitter, operand: Operand, geometry: str, ptx_type: str) -> list[str]:
    """The layer, if there is one, and the coordinates."""
    items = items_of(e, operand, _LENGTHS[geometry])
    layered = geometry[0] == "a"
    used_items = items[: AXES[geometry] + layered]
    types = (["u32"] if layered else []) + [ptx_type] * AXES[geometry]
    return [e.value(item, kind) for item, kind in zip(used_items, types, strict=True)]


def _vector(e: Emitter, operand: Operand, geometry: str, ptx_type: str) -> list[str]:
    """A derivative or an offset: one value for each coordinate."""
    plain = geometry.removeprefix("a")
    items = items_of(e, operand, _DERIVATIVES[plain])
    return [e.value(item, ptx_type) for item in items[: AXES[plain]]]


def _texture(e: Emitter, i: Instruction) -> None:
    geometry = geometry_of(e, i)
    component = next((word for word in "rgba" if word in i.modifiers), "")
    result, ptx_type = type_suffix(i).split(".")
    target, residence = _targets(i.operands[0])
    handle, coordinates = place_of(e, i.operands[1])
    remaining = list(i.operands[2:])
    if geometry in ("cube", "acube") and ptx_type != "f32":
        raise e.reject("a cubemap needs coordinates of type f32")
    values = _coordinates(e, coordinates, geometry, ptx_type)
    has_level, has_gradients = "level" in i.modifiers, "grad" in i.modifiers
    if has_gradients and ptx_type != "f32":
        raise e.reject("gradients need coordinates of type f32")
    if len(remaining) < has_level + 2 * has_gradients:
        raise e.reject("its level or gradients are missing")
    if has_level:
        values.append(e.value(remaining.pop(0), ptx_type))
    for _ in range(2 * has_gradients):
        values += _vector(e, remaining.pop(0), geometry, "f32")
    has_offset = bool(remaining)
    if has_offset:
        if (
            len(remaining) > 1
            or not isinstance(remaining[0], Vector)
            or geometry in ("cube", "acube")
        ):
            raise e.reject("depth comparison is not emulated")
        values += _vector(e, remaining[0], geometry, "s32")
    halves = result == "f16x2"
    form = TextureForm(
        i, geometry, component, ptx_type == "s32", has_level, has_gradients, has_offset, halves
    )
    count = CHANNELS // 2 if halves else CHANNELS
    items_of(e, target, (count,))
    name = e.scope.bind(form, "form")
    texels = e.temporary(f"{e.helper(fetch)}(f, {name}, {handle}, {', '.join(values)})")
    view = f".view({e.dtype(result)})" if result != "f16x2" else ""
    e.assign_all(target, result, [f"{texels}[{k}]{view}" for k in range(count)])
    if residence is not None:
        e.assign(residence, "pred", e.constant(1, "pred"))


def _targets(operand: Operand) -> tuple[Operand, Operand | None]:
    """The vector of results, and the predicate that is true if the texture is resident."""
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return operand, None


_TYPES = tuple(f"{result}.{by}" for result in ("u32", "s32", "f32") for by in ("s32", "f32"))
operation(
    "tex",
    _TYPES,
    (2, 3, 4, 5),
    _texture,
    effect=Effect.MEMORY,
    section="tex",
    modifiers=("base", "level", "grad", "v4", *AXES),
)
operation(
    "tex",
    ("f16x2.s32", "f16x2.f32"),
    (2, 3, 4, 5),
    _texture,
    effect=Effect.MEMORY,
    section="tex",
    modifiers=("base", "level", "grad", "v2", *AXES),
)
operation(
    "tld4",
    ("u32.f32", "s32.f32", "f32.f32"),
    (2, 3),
    _texture,
    effect=Effect.MEMORY,
    section="tld4",
    modifiers=(*"rgba", "v4", "2d", "a2d", "cube", "acube"),
)


_EXTENTS = ("width", "height", "depth")
_REJECTED = (
    "channel_data_type", "channel_order", "normalized_coords", "force_unnormalized_coords",
    "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "array_size", "num_mipmap_levels",
    "num_samples", "memory_layout",
)  # fmt: skip


def extents_of(image: TexelImage, *, has_rows: bool = True) -> tuple[int, int, int]:
    """Width, height and depth as a GPU gives them: layers count in the next free place."""
    if image.cube:
        cubes = image.layers // FACES
        return image.width, image.height, cubes if cubes > 1 else 0
    if image.height:
        return image.width, image.height, image.depth or image.layers
    return image.width, image.layers or int(has_rows), 0


def query_texture(
    fibre: Fibre, i: Instruction, dimension: int, handle: Value, level: Value
) -> Value:
    """`txq`: an extent of a level; 0 where there is no such level."""
    numbers = np.broadcast_to(level, (fibre.n,))
    results = np.zeros(fibre.n, dtype=np.uint32)
    textures = fibre.device.textures
    for positions, texture in by_handle(fibre, handle, textures, "texture", i):
        extents = [
            extents_of(image, has_rows=not texture.is_linear_memory)[dimension]
            for image in texture.levels
        ]
        levels = numbers if positions is None else numbers.take(positions)
        is_level = (levels >= 0) & (levels < len(extents))
        values = np.array(extents, dtype=np.uint32).take(np.where(is_level, levels, 0))
        values = np.where(is_level, values, np.uint32(0))
        if positions is None:
            results = values
        else:
            results[positions] = values
    return results[0] if handle.ndim == 0 and level.ndim == 0 else results


def query_surface(fibre: Fibre, i: Instruction, dimension: int, handle: Value) -> Value:
    """`suq`: an extent."""
    results = np.zeros(fibre.n, dtype=np.uint32)
    for positions, image in by_handle(fibre, handle, fibre.device.surfaces, "surface", i):
        extents = extents_of(image, has_rows=False)
        results[slice(None) if positions is None else positions] = extents[dimension]
    return results[0] if handle.ndim == 0 else results


def _query(e: Emitter, i: Instruction) -> None:
    extents = [word for word in i.modifiers if word in _EXTENTS]
    if len(extents) != 1:
        raise e.reject("the driver loads no kernel that asks this of a handle")
    dimension = _EXTENTS.index(extents[0])
    has_level = "level" in i.modifiers
    if len(i.operands) != 2 + has_level:
        raise e.reject("its operands do not fit")
    handle = handle_of(e, i.operands[1])
    name = e.scope.bind(i, "instruction")
    if i.opcode == "suq":
        expression = f"{e.helper(query_surface)}(f, {name}, {dimension}, {handle})"
    else:
        level = e.value(i.operands[2], "s32") if has_level else e.constant(0, "s32")
        expression = f"{e.helper(query_texture)}(f, {name}, {dimension}, {handle}, {level})"
    e.assign(i.operands[0], "u32", expression)


def _is_type(e: Emitter, i: Instruction) -> None:
    handle_of(e, i.operands[1])
    e.assign(i.operands[0], "pred", e.constant(0, "pred"))


operation(
    "txq",
    ("b32",),
    (2, 3),
    _query,
    effect=Effect.MEMORY,
    section="txq",
    modifiers=("level", *_EXTENTS, *_REJECTED),
)
operation(
    "suq",
    ("b32",),
    2,
    _query,
    effect=Effect.MEMORY,
    section="suq",
    modifiers=(*_EXTENTS, *_REJECTED),
)
operation("istypep", ("texref", "samplerref", "surfref"), 2, _is_type, section="istypep")
