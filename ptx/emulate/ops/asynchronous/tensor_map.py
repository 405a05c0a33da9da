"""Changes of tensor maps. PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy".

Where the fields lie is the emulator's own, see `ptx.emulate.model.tensor_map`.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.access.memory_access import load_vector, store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.exec.sync.bulk_copy import Place
from ptx.emulate.model.addresses import addresses_in
from ptx.emulate.model.tensor_map import FIELDS, NBYTES
from ptx.emulate.model.types import kind_of, width_of
from ptx.emulate.ops.asynchronous.bulk_copy import place
from ptx.emulate.ops.memory.late_store import publish, store_weak
from ptx.emulate.ops.nothing import nothing
from ptx.emulate.ops.warp.barrier import note_fence, note_proxy_fence
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Immediate, Instruction

_SCOPES = ("cta", "cluster", "gpu", "sys")
_PIECE = 16


def copy_map(fibre: Fibre, target: Place, source: Place) -> None:
    """`tensormap.cp_fenceproxy`: 128 bytes, once for each warp."""
    _, first = np.unique(fibre.lane_numbers() // 32, return_index=True)
    part = fibre.subset(first.astype(np.intp), ())
    for offset in range(0, NBYTES, _PIECE):
        of = addresses_in(source.every(fibre.n)[first] + offset)
        to = addresses_in(target.every(fibre.n)[first] + offset)
        store(part, to, 0, target.site, *load_vector(part, of, 0, source.site))


def _replace(e: Emitter, i: Instruction) -> None:
    field = FIELDS[i.modifiers[2]]
    where, offset, space = e.address(i.operands[0], facts_of(i).space)
    number = 0
    if len(i.operands) == 3:
        ordinal = i.operands[1]
        if not isinstance(ordinal, Immediate) or not 0 <= ordinal.value < field.places:
            raise e.refuse(f"the number of the field is a constant below {field.places}")
        number = ordinal.value
    if (len(i.operands) == 3) != (field.places > 1) or "b1024" not in i.modifiers:
        raise e.refuse("its operands do not fit")
    if type_suffix(i) != ("b64" if field.kind == "u64" else "b32"):
        raise e.refuse(f"the field is of {'b64' if field.kind == 'u64' else 'b32'}")
    value = e.value(i.operands[-1], type_suffix(i))
    if kind_of(type_suffix(i)) != field.kind:
        value = f"({value}).astype({e.dtype(field.kind)})"
    site = e.site(space, field.kind, writes=True)
    at = offset + field.at + number * width_of(field.kind)
    function = store_weak if e.late.stores else store
    e.line(f"{e.helper(function)}(f, {where}, {at}, {site}, {value})")


def _copy(e: Emitter, i: Instruction) -> None:
    size = i.operands[2]
    if not isinstance(size, Immediate) or size.value != NBYTES:
        raise e.refuse(f"the size is {NBYTES}")
    target = place(e, i.operands[0], "global", "u64", 2, writes=True)
    source = place(e, i.operands[1], "shared", "u64", 2, writes=False)
    e.line(f"{e.helper(copy_map)}(f, {target}, {source})")
    e.line(f"{e.helper(note_proxy_fence)}(f, 'tensormap release')")
    e.line(f"{e.helper(note_fence)}(f, {facts_of(i).scope!r})")
    if e.late.stores:
        e.line(f"{e.helper(publish)}(f)")


def _fence(e: Emitter, i: Instruction) -> None:
    """Tensor maps are read as ordinary memory, so that it is a fence of that as well."""
    acquires = "acquire" in i.modifiers
    if len(i.operands) != (2 if acquires else 0):
        raise e.refuse("its operands do not fit")
    size = i.operands[-1] if acquires else Immediate(NBYTES)
    if not isinstance(size, Immediate) or size.value != NBYTES:
        raise e.refuse(f"the size is {NBYTES}")
    if not acquires:
        e.line(f"{e.helper(note_proxy_fence)}(f, 'tensormap release')")
    e.line(f"{e.helper(note_fence)}(f, {facts_of(i).scope!r})")
    if "release" not in i.modifiers:  # it knows what the fence has taken over
        e.line(f"{e.helper(note_proxy_fence)}(f, 'tensormap acquire')")
    if e.late.stores and not acquires:
        e.line(f"{e.helper(publish)}(f)")


for _name in FIELDS:
    operation(
        f"tensormap.replace.tile.{_name}", ("b32", "b64"), (2, 3), _replace, effect=Effect.MEMORY,
        writes=0, modifiers=("global", "shared::cta", "b1024"), section="tensormap.replace",
    )  # fmt: skip
operation(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release", ("",), 3, _copy,
    effect=Effect.MEMORY, writes=0, modifiers=("sync", "aligned", *_SCOPES),
    section="tensormap.cp_fenceproxy",
)  # fmt: skip
operation(
    "fence.proxy.tensormap::generic", ("",), (0, 2), _fence, effect=Effect.MEMORY, writes=0,
    modifiers=("acquire", "release", *_SCOPES), section="fence",
)  # fmt: skip
for _words in ("tensormap", "param.tensormap", "const.tensormap"):
    operation(f"prefetch.{_words}", ("",), 1, nothing, writes=0, section="prefetch")
