"""Moves, packing, generic addresses, loads, stores and cache hints.

PTX ISA, "Data Movement and Conversion Instructions": "mov", "cvta", "isspacep", "prmt", "ld",
"ldu", "st", "prefetch", "createpolicy".

In an ordered launch other blocks see weak stores late. Strong operations are visible at once:
atomic operations, and volatile or relaxed stores. A release or a fence makes all earlier stores of
its block visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from ptx.emulate.access.faults import SeveralMemories
from ptx.emulate.access.memory_access import divide, load, load_vector, locate, store
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.exec.order.ordered_blocks import OrderedBlocks, ordered_blocks
from ptx.emulate.memory.generic_addresses import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    WINDOW_BYTES,
    is_global,
    is_mixed,
)
from ptx.emulate.memory.site import Site, used_bytes_of, used_elements
from ptx.emulate.model.addresses import Addresses, addresses_in
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of, width_of
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)


def nothing(_e: Emitter, _i: Instruction) -> None:
    """Emit no code."""


_AXES = "xyzw"
_TYPES = tuple(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64))
_WINDOWS = {
    "shared": SHARED_WINDOW,
    "shared::cta": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
}
_SPACES = ("global", "const", "param", "param::entry", *_WINDOWS)


def _move(e: Emitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    target, source = i.operands
    if kind[0] == "f" and (isinstance(source, Vector) or isinstance(target, Vector)):
        raise e.reject("registers are packed and unpacked as bits: .b32, .b64")
    if isinstance(source, Vector):
        e.assign(target, kind, _packed(e, kind, source))
    elif isinstance(target, Vector):
        _unpack(e, kind, target, e.temporary(e.value(source, kind)))
    else:
        e.assign(target, kind, e.value(source, kind))


def _packed(e: Emitter, kind: str, source: Vector) -> str:
    """The elements side by side, the first lowest."""
    bits = 8 * width_of(kind) // len(source.items)
    part = f"u{bits}"
    pieces: list[str] = []
    for position, item in enumerate(source.items):
        piece = f"{e.value(item, part)}.astype({e.dtype(kind)})"
        if position:
            piece = f"({piece} << {e.constant(position * bits, kind)})"
        pieces.append(piece)
    return " | ".join(pieces)


def _unpack(e: Emitter, kind: str, target: Vector, value: str) -> None:
    bits = 8 * width_of(kind) // len(target.items)
    part = f"u{bits}"
    for position, item in enumerate(target.items):
        if isinstance(item, Sink):
            continue
        piece = f"({value} >> {e.constant(position * bits, kind)})" if position else value
        e.assign(item, part, f"{piece}.astype({e.dtype(part)})")


def _move_vector(e: Emitter, i: Instruction) -> None:
    """`mov.v2.u32`, `mov.v4.f32`: from registers, numbers, or a special register such as %tid."""
    kind = kind_of(type_suffix(i))
    target, source = i.operands
    targets = target.items if isinstance(target, Vector) else ()
    sources: tuple[Operand, ...] = source.items if isinstance(source, Vector) else ()
    if isinstance(source, SpecialRegister) and width_of(kind) == 4:
        sources = tuple(SpecialRegister(f"{source.name}.{axis}") for axis in _AXES)
    if len(targets) != len(sources):
        raise e.reject("it moves as many elements as it has registers in braces")
    values = [e.temporary(e.value(each, kind)) for each in sources]
    for item, value in zip(targets, values, strict=True):
        if not isinstance(item, Sink):
            e.assign(item, kind, value)


def _space(e: Emitter, i: Instruction) -> str:
    space = next((word for word in i.modifiers if word in _SPACES), None)
    if space is None:
        raise e.reject("it needs a state space")
    return space


def _convert_address(e: Emitter, i: Instruction) -> None:
    """`cvta[.to]`: generic addresses of shared and local memory lie in windows of their own."""
    kind, space = type_suffix(i), _space(e, i)
    value = e.value(i.operands[1], kind)
    window = _WINDOWS.get(space)
    if space.startswith("param") and e.scope.is_parameter(i.operands[1]):
        window = LOCAL_WINDOW  # a function has its parameters in its frame
    if window is not None:
        sign = "-" if "to" in i.modifiers else "+"
        value = f"{value} {sign} {e.constant(window, kind)}"
    elif space == "const" and kind == "u64":
        value = f"{e.helper(of_constants)}({value}, {e.scope.const_base})"
    e.assign(i.operands[0], kind, value)


def of_constants(addresses: Value, base: int) -> Value:
    """Return addresses of constants, some of which were in a register of 32 bits."""
    is_short = addresses < np.uint64(1 << 32)
    return np.where(is_short, addresses | np.uint64(base), addresses)[()]


def within(addresses: Value, low: int, high: int) -> Value:
    """Return whether 64-bit addresses lie in low <= a < high."""
    values = addresses.astype(np.uint64)
    inside: Value = (values >= np.uint64(low)) & (values < np.uint64(high))
    return inside


def _is_in_space(e: Emitter, i: Instruction) -> None:
    """Write `isspacep`: addresses in no other window are global, and so are parameters."""
    source, space = i.operands[1], _space(e, i)
    value = e.temporary(e.value(source, "u64"))
    test = e.helper(within)
    windows = {name: [(start, start + WINDOW_BYTES)] for name, start in _WINDOWS.items()}
    windows["const"] = e.scope.const_ranges()
    if space.startswith("param"):
        ranges = [(PARAM_WINDOW, PARAM_WINDOW + WINDOW_BYTES)]
    elif space == "global":
        ranges = [*windows["shared"], *windows["local"], *windows["const"]]
    else:
        ranges = windows[space] or [(0, 0)]
    inside = " | ".join(f"{test}({value}, {low}, {high})" for low, high in ranges)
    e.assign(i.operands[0], "pred", f"~({inside})" if space == "global" else inside)


operation("mov", (*_TYPES, "f32", "f64", "pred"), 2, _move, section="mov")
for _width in ("v2", "v4"):
    operation(f"mov.{_width}", (*_TYPES, "f32", "f64"), 2, _move_vector, section="mov")
operation("cvta", ("u32", "u64"), 2, _convert_address, modifiers=["to", *_SPACES], section="cvta")
operation("isspacep", ("",), 2, _is_in_space, modifiers=_SPACES, section="isspacep")


def joined(low: Value, high: Value) -> Value:
    """Two 64-bit words as one value of 16 bytes."""
    words = np.empty((*np.broadcast(low, high).shape, 2), dtype=np.uint64)
    words[..., 0], words[..., 1] = low, high
    return words.view(np.complex128)[..., 0]


def word(value: Value, index: int) -> Value:
    """The lower (0) or upper (1) 64 bits."""
    return (
        np.asarray(value)
        .reshape(-1)
        .view(np.uint64)
        .reshape(-1, 2)[:, index][slice(None) if value.ndim else 0]
    )


def _move_wide(e: Emitter, i: Instruction) -> None:
    target, source = i.operands
    if isinstance(source, Vector):
        halves = source.items[: len(source.items) // 2], source.items[len(source.items) // 2 :]
        low, high = (_packed(e, "u64", Vector(half)) for half in halves)
        e.assign(target, "b128", f"{e.helper(joined)}({low}, {high})")
    elif isinstance(target, Vector):
        value = e.temporary(e.value(source, "b128"))
        half = len(target.items) // 2
        for index in (0, 1):
            items = target.items[index * half : (index + 1) * half]
            _unpack(e, "u64", Vector(items), e.temporary(f"{e.helper(word)}({value}, {index})"))
    else:
        e.assign(target, "b128", e.value(source, "b128"))


operation("mov", ("b128",), 2, _move_wide, section="mov")


# The selector that each mode means, by the two lowest bits of its third operand.
SELECTORS: dict[str, tuple[int, int, int, int]] = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
_SIGNS = 8  # in a selector's digit: copies of the byte's sign instead of the byte


def permute(a: Value, b: Value, selector: Value) -> Value:
    """Four bytes of the eight of b:a, chosen by four hexadecimal digits."""
    wide = (b.astype(np.uint64) << np.uint64(32)) | a
    result: Value = np.uint32(0)
    for position in range(4):
        digit = (selector >> np.uint32(4 * position)) & np.uint32(15)
        byte = wide >> ((digit & np.uint32(7)) << np.uint32(3)).astype(np.uint64)
        byte = byte.astype(np.uint32) & np.uint32(0xFF)
        signs = (byte >> np.uint32(7)) * np.uint32(0xFF)
        is_sign = (digit >> np.uint32(3)) * np.uint32(0xFF)
        chosen = (byte & ~is_sign) | (signs & is_sign)
        result = result | (chosen << np.uint32(8 * position))
    return result


def selector_of(mode: str, amount: Value) -> Value:
    """The selector that a mode means for each thread's third operand."""
    table = np.array(SELECTORS[mode], dtype=np.uint32)
    return table.take(amount & np.uint32(3))[()]


def _pieces(selector: int) -> Iterator[tuple[int, int, int, bool]]:
    """Yield source word, left shift in bits, mask of the result, and whether signs are copied.

    Bytes of one word that move by the same distance are one piece.
    """
    masks: dict[tuple[int, int, bool], int] = {}
    for position in range(4):
        digit = selector >> (4 * position) & 15
        word, byte = divmod(digit & 7, 4)
        signs = bool(digit & _SIGNS)
        # A sign is brought to bit 31 first, then spread.
        shift = 8 * (3 - byte) if signs else 8 * (position - byte)
        key = (word, shift, signs)
        masks[key] = masks.get(key, 0) | 0xFF << 8 * position
    for (word, shift, signs), mask in masks.items():
        yield word, shift, mask, signs


def _constant_permute(e: Emitter, words: tuple[str, str], selector: int) -> str:
    """An expression of shifts and masks for a selector that is known."""
    parts: list[str] = []
    for word, shift, mask, signs in _pieces(selector):
        part = words[word]
        kept_bits = 0xFFFFFFFF
        if shift > 0:
            part = f"({part} << {e.constant(shift, 'u32')})"
            kept_bits = 0xFFFFFFFF << shift & 0xFFFFFFFF
        elif shift < 0:
            part = f"({part} >> {e.constant(-shift, 'u32')})"
            kept_bits = 0xFFFFFFFF >> -shift
        if signs:
            spread = f"{part}.view({e.dtype('s32')}) >> {e.constant(31, 's32')}"
            part, kept_bits = f"({spread}).view({e.dtype('u32')})", 0xFFFFFFFF
        if mask != kept_bits:
            part = f"({part} & {e.constant(mask, 'u32')})"
        parts.append(part)
    return " | ".join(parts)


def _permute(e: Emitter, i: Instruction) -> None:
    target, *sources, amount = i.operands
    modes = [word for word in i.modifiers if word in SELECTORS]
    if len(modes) > 1:
        raise e.reject("it takes one mode")
    a, b = (e.value(source, "u32") for source in sources)
    if isinstance(amount, Immediate):
        selector = SELECTORS[modes[0]][amount.value & 3] if modes else amount.value
        e.assign(target, "u32", _constant_permute(e, (a, b), selector))
        return
    chosen = e.value(amount, "u32")
    if modes:
        chosen = f"{e.helper(selector_of)}({modes[0]!r}, {chosen})"
    e.assign(target, "u32", f"{e.helper(permute)}({a}, {b}, {chosen})")


operation("prmt", ("b32",), 4, _permute, modifiers=SELECTORS, section="prmt")


_MOST_WAYS: Final = 16  # a chunk: each takes its stores away and puts them back
_MOST_READS: Final = 16  # that may be of a loop that waits for a write of another chunk
_GIVE_WAY: Final = 2  # one time in so many another chunk continues where others may see a store


def publish(fibre: Fibre) -> None:
    """A fence that other blocks take note of."""
    ordered_blocks(fibre).late_stores.publish()


def order_write(e: Emitter, addresses: str, offset: int, site: str, *, strong: bool) -> None:
    """Emit what comes before a write in an ordered launch; others see a `strong` one at once."""
    if e.late.stores:
        e.line(f"{e.helper(note_write)}(f, {addresses}, {offset}, {site}, strong={strong})")


def note_write(
    fibre: Fibre, addresses: Addresses, offset: int, site: Site, *, strong: bool
) -> None:
    """Global memory is about to be written.

    Raises:
        MemoryFault: an address is out of bounds, freed or misaligned.
    """
    if site.space == "generic" and is_mixed(addresses, offset):
        for _, part, addresses_of_part in divide(fibre, addresses, offset):
            note_write(part, addresses_of_part, offset, site, strong=strong)
        return
    if not is_global(addresses, offset, site):
        return
    blocks = ordered_blocks(fibre)
    try:
        elements, index = locate(fibre, addresses, offset, site, is_access=False)
    except SeveralMemories as several:
        every = addresses.every(fibre.n)
        for positions in several.groups:
            part = fibre.subset(positions, ())
            note_write(part, addresses_in(every[positions]), offset, site, strong=strong)
        return
    if strong:
        blocks.late_stores.publish_at(elements, index, site.count)
        _give_way(fibre, blocks)
    else:
        blocks.reads = 0
        blocks.late_stores.note(elements, np.unique(index), site.count)


def _give_way(fibre: Fibre, blocks: OrderedBlocks) -> None:
    """Switch to another chunk that sees this store, but not the ones before."""
    decisions = blocks.decisions
    if not blocks.late_stores or blocks.ways_given >= _MOST_WAYS:
        return
    if decisions.late or decisions.early(_GIVE_WAY):
        blocks.ways_given += 1
        fibre.scheduler.give_way()


def note_read(fibre: Fibre) -> None:
    """Global memory was read as others write it; after many reads alone another chunk continues.

    Threads that wait for others read again and again, or repeat an atomic operation. The others
    would wait for the end of a turn.
    """
    blocks = ordered_blocks(fibre)
    blocks.reads += 1
    if blocks.reads >= _MOST_READS:
        blocks.reads = 0
        fibre.scheduler.give_way()


_ACCESS_TYPES = (
    *(f"{sign}{bits}" for sign in "bus" for bits in (8, 16, 32, 64)),
    "f32",
    "f64",
    "b128",
)
_ACCESS_SPACES = (
    "global", "const", "local", "shared", "shared::cta", "shared::cluster", "param",
    "param::entry", "param::func",
)  # fmt: skip
_EVICTION = ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
# Ordering and cache modifiers change nothing here: every access is done at once, in order.
_HINTS = (
    "weak", "volatile", "relaxed", "acquire", "release", "mmio", "cta", "cluster", "gpu", "sys",
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified", "L2::cache_hint",
    *(f"{level}::{eviction}" for level in ("L1", "L2") for eviction in _EVICTION),
    "L2::64B", "L2::128B", "L2::256B",
)  # fmt: skip
_VECTORS = ("v2", "v4", "v8")


def space_of(i: Instruction) -> str:
    """The space that an instruction names: const is global memory, none is generic."""
    space = i.facts.space
    return "global" if space == "const" else space


def _count(e: Emitter, i: Instruction, operand: Operand) -> int:
    """Return how many elements a load or store moves."""
    expected = i.facts.vector
    count = len(operand.items) if isinstance(operand, Vector) else 1
    if count != expected:
        raise e.reject(f"it moves {expected} elements and names {count}")
    return count


def _load(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    target, source = i.operands[:2]
    count = _count(e, i, target)
    if space_of(i) == "param" and _load_parameter(e, i, ptx_type, count):
        return
    addresses, offset, space = e.address(source, space_of(i))
    site = e.site(space, ptx_type, count)
    e.note_access(addresses, offset, site)
    facts = i.facts
    if (
        e.late.stores
        and space in ("global", "generic")
        and (facts.is_strong or facts.reads_past_l1)
    ):
        e.line(f"{e.helper(note_read)}(f)")
    if count == 1:
        e.join_loads(addresses, offset)
        function = e.helper(load)
        e.assign_all(target, ptx_type, [f"{function}(f, {addresses}, {offset}, {site})"])
        return
    elements = e.temporary(f"{e.helper(load_vector)}(f, {addresses}, {offset}, {site})")
    e.assign_all(target, ptx_type, _of_used(e, i, ptx_type, count, elements))


def _of_used(e: Emitter, i: Instruction, ptx_type: str, count: int, elements: str) -> list[str]:
    """An expression for each element of a vector; zero for one that was not loaded."""
    values = [e.constant(0, kind_of(ptx_type))] * count
    for index, element in enumerate(used_elements(i, width_of(kind_of(ptx_type)), count)):
        values[element] = f"{elements}[{index}]"
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
    used_bytes = used_bytes_of(i, width * count)
    if start + used_bytes[0] < 0 or start + used_bytes[-1] >= e.scope.param_bytes:
        raise e.reject("it reads outside of the kernel's parameters")
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
    addresses, offset, space = e.address(target, space_of(i))
    site = e.site(space, ptx_type, len(values), writes=True)
    e.note_access(addresses, offset, site)
    if space in ("global", "generic"):
        if e.late.stores and i.facts.publishes:
            e.line(f"{e.helper(publish)}(f)")
        order_write(e, addresses, offset, site, strong=i.facts.is_strong)
    e.line(f"{e.helper(store)}(f, {addresses}, {offset}, {site}, {', '.join(values)})")


operation(
    "ld",
    _ACCESS_TYPES,
    (2, 3),
    _load,
    effect=Effect.MEMORY,
    modifiers=(*_ACCESS_SPACES, *_HINTS, *_VECTORS),
    section="ld",
)
operation(
    "ldu",
    _ACCESS_TYPES,
    2,
    _load,
    effect=Effect.MEMORY,
    modifiers=("global", *_VECTORS),
    section="ldu",
)
operation(
    "st",
    _ACCESS_TYPES,
    (2, 3),
    _store,
    effect=Effect.MEMORY,
    writes=0,
    modifiers=(*_ACCESS_SPACES, *_HINTS, *_VECTORS),
    section="st",
)
for _name in ("prefetch", "prefetchu", "applypriority", "discard"):
    operation(
        _name,
        ("",),
        (1, 2),
        nothing,
        writes=0,
        section="prefetch",
        modifiers=("global", "local", "L1", "L2", *_HINTS),
    )


_PRIORITIES = ("evict_first", "evict_last", "evict_normal", "evict_unchanged")


def _policy(e: Emitter, i: Instruction) -> None:
    """Any value: there is no cache, so all policies are the same."""
    e.assign(i.operands[0], "b64", e.constant(0, "u64"))


operation(
    "createpolicy",
    ("b64",),
    (1, 2, 4),
    _policy,
    modifiers=[
        "range",
        "fractional",
        "cvt",
        "global",
        "L2",
        *(f"L2::{priority}" for priority in _PRIORITIES),
    ],
    section="createpolicy",
)
