"""Loads and stores in every space. PTX ISA, "ld", "ldu", "st", "prefetch"."""

from __future__ import annotations

from collections.abc import Callable

from ptx.emulate.access.memory_access import load, load_vector, store
from ptx.emulate.codegen.count_writer import count_access
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.memory.site import used_bytes_of, used_elements
from ptx.emulate.model.types import kind_of, width_of
from ptx.emulate.ops.memory.late_store import publish, store_strong, store_weak
from ptx.emulate.ops.nothing import nothing
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Address, Instruction, Operand, Symbol, Vector

_TYPES = (*(f"{sign}{bits}" for sign in "bus" for bits in (8, 16, 32, 64)), "f32", "f64", "b128")
_SPACES = (
    "global", "const", "local", "shared", "shared::cta", "shared::cluster", "param",
    "param::entry", "param::func",
)  # fmt: skip
_EVICTION = ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
# What orders or caches an access changes nothing here: every access is done at once, in order.
_HINTS = (
    "weak", "volatile", "relaxed", "acquire", "release", "mmio", "cta", "cluster", "gpu", "sys",
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified", "L2::cache_hint",
    *(f"{level}::{eviction}" for level in ("L1", "L2") for eviction in _EVICTION),
    "L2::64B", "L2::128B", "L2::256B",
)  # fmt: skip
_VECTORS = ("v2", "v4", "v8")


def space_of(i: Instruction) -> str:
    """The space that an instruction names: const is global memory, none is generic."""
    space = facts_of(i).space
    return "global" if space == "const" else space


def _count(e: Emitter, i: Instruction, operand: Operand) -> int:
    """How many elements a load or store moves."""
    wanted = facts_of(i).vector
    count = len(operand.items) if isinstance(operand, Vector) else 1
    if count != wanted:
        raise e.refuse(f"it moves {wanted} elements and names {count}")
    return count


def _load(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    target, source = i.operands[:2]
    count = _count(e, i, target)
    if space_of(i) == "param" and _load_parameter(e, i, ptx_type, count):
        return
    where, offset, space = e.address(source, space_of(i))
    site = e.site(space, ptx_type, count)
    count_access(e, where, offset, site)
    if count == 1:
        function = e.helper(load)
        e.assign_all(target, ptx_type, [f"{function}(f, {where}, {offset}, {site})"])
        return
    found = e.temporary(f"{e.helper(load_vector)}(f, {where}, {offset}, {site})")
    e.assign_all(target, ptx_type, _of_used(e, i, ptx_type, count, found))


def _of_used(e: Emitter, i: Instruction, ptx_type: str, count: int, found: str) -> list[str]:
    """An expression for each element of a vector; zero for one that was not loaded."""
    values = [e.constant(0, kind_of(ptx_type))] * count
    for place, element in enumerate(used_elements(i, width_of(kind_of(ptx_type)), count)):
        values[element] = f"{found}[{place}]"
    return values


def _load_parameter(e: Emitter, i: Instruction, ptx_type: str, count: int) -> bool:
    """A kernel parameter at a fixed place: one value for all threads, read once a launch."""
    source = i.operands[1]
    if not isinstance(source, Address) or not isinstance(source.base, Symbol):
        return False
    space, expression = e.scope.symbol(source.base.name, e.instruction)
    if space != "param":
        return False
    kind = kind_of(ptx_type)
    start = int(expression) + source.offset
    width = width_of(kind)
    used = used_bytes_of(i, width * count)
    if start + used[0] < 0 or start + used[-1] >= e.scope.param_bytes:
        raise e.refuse("it reads outside of the kernel's parameters")
    values = [e.constant(0, kind)] * count
    for k in used_elements(i, width, count):
        values[k] = f"f.blocks.launch.params[{kind!r}, {start + k * width}]"
    e.assign_all(i.operands[0], ptx_type, values)
    return True


def _store(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    target, source = i.operands[:2]
    _count(e, i, source)
    values = e.values(source, ptx_type)
    where, offset, space = e.address(target, space_of(i))
    site = e.site(space, ptx_type, len(values), writes=True)
    count_access(e, where, offset, site)
    function: Callable[..., None] = store
    if e.late.stores and space in ("global", "generic"):
        function = store_strong if facts_of(i).is_strong else store_weak
        if facts_of(i).publishes:
            e.line(f"{e.helper(publish)}(f)")
    e.line(f"{e.helper(function)}(f, {where}, {offset}, {site}, {', '.join(values)})")


operation(
    "ld", _TYPES, (2, 3), _load, effect=Effect.MEMORY,
    modifiers=(*_SPACES, *_HINTS, *_VECTORS), section="ld",
)  # fmt: skip
operation(
    "ldu", _TYPES, 2, _load, effect=Effect.MEMORY, modifiers=("global", *_VECTORS), section="ldu"
)
operation(
    "st", _TYPES, (2, 3), _store, effect=Effect.MEMORY, writes=0,
    modifiers=(*_SPACES, *_HINTS, *_VECTORS), section="st",
)  # fmt: skip
for _name in ("prefetch", "prefetchu", "applypriority", "discard"):
    operation(
        _name, ("",), (1, 2), nothing, writes=0, section="prefetch",
        modifiers=("global", "local", "L1", "L2", *_HINTS),
    )  # fmt: skip
