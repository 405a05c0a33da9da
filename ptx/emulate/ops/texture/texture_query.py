"""Questions about textures and surfaces. PTX ISA, "txq", "suq", "istypep".

A GPU's driver loads no kernel that asks a handle for anything but its extents: the rest is refused
here as well. For `istypep` a handle is no opaque variable, as on a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.memory.texture import Image
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.texture.texture import handle_of
from ptx.emulate.texture.cubemap import FACES
from ptx.emulate.texture.handles import by_handle
from ptx.isa.model import Instruction

if TYPE_CHECKING:
    from ptx.emulate.threads.fibre import Fibre

_EXTENTS = ("width", "height", "depth")
_REFUSED = (
    "channel_data_type", "channel_order", "normalized_coords", "force_unnormalized_coords",
    "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "array_size", "num_mipmap_levels",
    "num_samples", "memory_layout",
)  # fmt: skip


def extents_of(image: Image, *, has_rows: bool = True) -> tuple[int, int, int]:
    """Width, height and depth as a GPU gives them: layers count in the next free place."""
    if image.cube:
        cubes = image.layers // FACES
        return image.width, image.height, cubes if cubes > 1 else 0
    if image.height:
        return image.width, image.height, image.depth or image.layers
    return image.width, image.layers or int(has_rows), 0


def ask_texture(fibre: Fibre, i: Instruction, which: int, handle: Value, level: Value) -> Value:
    """`txq`: an extent of a level; 0 where there is no such level."""
    numbers = np.broadcast_to(level, (fibre.n,))
    found = np.zeros(fibre.n, dtype=np.uint32)
    textures = fibre.device.textures
    for here, texture in by_handle(fibre, handle, textures, "texture", i):
        extents = [
            extents_of(image, has_rows=not texture.is_linear_memory)[which]
            for image in texture.levels
        ]
        asked = numbers if here is None else numbers.take(here)
        is_level = (asked >= 0) & (asked < len(extents))
        values = np.array(extents, dtype=np.uint32).take(np.where(is_level, asked, 0))
        values = np.where(is_level, values, np.uint32(0))
        if here is None:
            found = values
        else:
            found[here] = values
    return found[0] if handle.ndim == 0 and level.ndim == 0 else found


def ask_surface(fibre: Fibre, i: Instruction, which: int, handle: Value) -> Value:
    """`suq`: an extent."""
    found = np.zeros(fibre.n, dtype=np.uint32)
    for here, image in by_handle(fibre, handle, fibre.device.surfaces, "surface", i):
        extents = extents_of(image, has_rows=False)
        found[slice(None) if here is None else here] = extents[which]
    return found[0] if handle.ndim == 0 else found


def _query(e: Emitter, i: Instruction) -> None:
    asked = [word for word in i.modifiers if word in _EXTENTS]
    if len(asked) != 1:
        raise e.refuse("the driver loads no kernel that asks this of a handle")
    which = _EXTENTS.index(asked[0])
    has_level = "level" in i.modifiers
    if len(i.operands) != 2 + has_level:
        raise e.refuse("its operands do not fit")
    handle = handle_of(e, i.operands[1])
    name = e.scope.bind(i, "instruction")
    if i.opcode == "suq":
        found = f"{e.helper(ask_surface)}(f, {name}, {which}, {handle})"
    else:
        level = e.value(i.operands[2], "s32") if has_level else e.constant(0, "s32")
        found = f"{e.helper(ask_texture)}(f, {name}, {which}, {handle}, {level})"
    e.assign(i.operands[0], "u32", found)


def _is_type(e: Emitter, i: Instruction) -> None:
    handle_of(e, i.operands[1])
    e.assign(i.operands[0], "pred", e.constant(0, "pred"))


operation(
    "txq", ("b32",), (2, 3), _query, effect=Effect.MEMORY, section="txq",
    modifiers=("level", *_EXTENTS, *_REFUSED),
)  # fmt: skip
operation(
    "suq", ("b32",), 2, _query, effect=Effect.MEMORY, section="suq",
    modifiers=(*_EXTENTS, *_REFUSED),
)  # fmt: skip
operation("istypep", ("texref", "samplerref", "surfref"), 2, _is_type, section="istypep")
