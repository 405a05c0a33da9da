"""Loads and stores of single threads. PTX ISA, "ld", "st"."""

from __future__ import annotations

from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_registers import held_as
from ptx.emulate.codegen.lane.lane_table import lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.emulate.exec.lane.lane_memory import Elsewhere, lane_load, lane_store
from ptx.emulate.memory.site import Site
from ptx.emulate.model.types import kind_of, unsigned, width_of
from ptx.emulate.ops.memory.load_store import space_of
from ptx.emulate.threads.rows import float_of_word, word_of_float
from ptx.isa.model import Address, Instruction, Operand, Register, Sink, Symbol, Vector

_TYPES = (*(f"{sign}{bits}" for sign in "bus" for bits in (8, 16, 32, 64)), "f32", "f64")


class _Place:
    """Where an access goes: the address in a register or none, what is added, the space."""

    def __init__(self, e: LaneEmitter, operand: Operand, space: str) -> None:
        if not isinstance(operand, Address):
            e.refuse()
        self.offset: int = operand.offset
        self.width: int = 0
        self.base: str = "0"
        self.space: str = space
        if isinstance(operand.base, Register):
            self.space = "generic" if space == "param" else space
            self.width = e.scope.width[e.scope.number(operand.base)]
            if self.width not in (4, 8):
                e.refuse()
            self.base = e.bits(operand.base, f"u{8 * self.width}")
        elif isinstance(operand.base, Symbol):
            found, self.base = e.scope.symbol(operand.base.name, e.instruction)
            self.space = "generic" if (space, found) == ("generic", "param") else found

    @property
    def expression(self) -> str:
        """The address."""
        return f"{self.base} + {self.offset}" if self.offset else self.base

    @property
    def arguments(self) -> str:
        """The same for the long way."""
        return f"{self.base}, {self.width}, {self.offset}"


def _site(e: LaneEmitter, i: Instruction, place: _Place, kind: str, count: int) -> Site:
    if i.used_bytes:
        e.refuse()
    found = Site(i, place.space, kind, count, writes=i.opcode == "st")
    e.scope.sites.append(found)
    e.sites.append(found)
    return found


def _begin(e: LaneEmitter, place: _Place, site: Site) -> tuple[str, str, str]:
    """The test for the short way, an expression of the first element's index, and the memory.

    For a global access the memory is `v`, its bits are `w`.
    """
    address = e.temporary(place.expression)
    even = f" and not {address} & {site.total - 1}" if site.total > 1 else ""
    if place.space in ("shared", "local"):
        memory = e.bench(f"{place.space}_{site.kind}")
        start = "R[-3]" if place.space == "shared" else "R[-2]"
        most = e.before(f"{place.space}_bytes", f"B.{place.space}_bytes")
        return (
            f"0 <= {address} <= {most} - {site.total}{even}",
            f"{start} + {address} >> {site.shift}",
            memory,
        )
    version = e.before("version", "B.memory.version")
    e.line(f"low, high, known, first, v, w = {e.scope.bind(site, 'site')}.window")
    return (
        f"low <= {address} <= high and known == {version}{even}",
        f"({address} >> {site.shift}) - first", "v",
    )  # fmt: skip


def _load(e: LaneEmitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    target = i.operands[0]
    items = target.items if isinstance(target, Vector) else (target,)
    if space_of(i) == "param" and _load_parameter(e, i, kind, items):
        return
    place = _Place(e, i.operands[1], space_of(i))
    if place.space == "param":
        e.refuse()
    # Bits without a sign, as a row holds them; `assign` extends them where the register is wider.
    site = _site(e, i, place, unsigned(kind) if kind[0] == "s" else kind, len(items))
    test, index, memory = _begin(e, place, site)
    results = [e.temporary("None") for _ in items] if len(items) > 1 else [f"x{len(e.lines)}"]
    e.line(f"if {test}:")
    if len(items) > 1:
        e.line(f"    k = {index}")
        index = "k"
    for at, result in enumerate(results):
        e.line(f"    {result} = {memory}[{index}{f' + {at}' if at else ''}]")
        if kind == "f32":
            bits = "w" if memory == "v" else e.bench(memory.replace("f32", "u32"))
            again = f"{bits}[{index}{f' + {at}' if at else ''}]"
            e.line(f"    if {result} != {result}: {result} = {e.helper(float_of_word)}({again})")
    _otherwise(
        e,
        f"{', '.join(results)}{',' if len(results) == 1 else ''} = ",
        lane_load_call(e, place, site),
    )
    for item, result in zip(items, results, strict=True):
        if not isinstance(item, Sink):
            e.assign(item, kind, result)


def lane_load_call(e: LaneEmitter, place: _Place, site: Site) -> str:
    """The long way of a load."""
    return f"{e.helper(lane_load)}(f, {place.arguments}, {e.scope.bind(site, 'site')})"


def _otherwise(e: LaneEmitter, target: str, call: str) -> None:
    """The long way: at once for one thread; several stop, and take it together."""
    e.line(
        f"else: {target}{call}"
        if e.alone
        else f"else: raise {e.scope.bind(Elsewhere, 'elsewhere')}"
    )


def _load_parameter(e: LaneEmitter, i: Instruction, kind: str, items: tuple[Operand, ...]) -> bool:
    """A kernel parameter at a fixed place."""
    source = i.operands[1]
    if not isinstance(source, Address) or not isinstance(source.base, Symbol) or i.used_bytes:
        return False
    space, expression = e.scope.symbol(source.base.name, i)
    if space != "param":
        return False
    params, start = e.bench("params"), int(expression) + source.offset
    for at, item in enumerate(items):
        if not isinstance(item, Sink):
            e.assign(item, kind, f"{params}[{kind!r}, {start + at * width_of(kind)}]")
    return True


def _store(e: LaneEmitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    source = i.operands[1]
    items = source.items if isinstance(source, Vector) else (source,)
    place = _Place(e, i.operands[0], space_of(i))
    if place.space == "param":
        e.refuse()
    stored = unsigned(kind)
    if held_as(kind) != "int" or all(_is_float(e, item, kind) for item in items):
        stored = f"f{8 * width_of(kind)}"
        values = [e.real(item, stored) for item in items]
    else:
        values = [e.bits(item, kind) for item in items]
    site = _site(e, i, place, stored, len(items))
    test, index, memory = _begin(e, place, site)
    e.line(f"if {test}:")
    if len(items) > 1:
        e.line(f"    k = {index}")
        index = "k"
    for at, value in enumerate(values):
        there = f"{memory}[{index}{f' + {at}' if at else ''}]"
        if stored != "f32":
            e.line(f"    {there} = {value}")
            continue
        bits = "w" if memory == "v" else e.bench(memory.replace("f32", "u32"))
        e.line(f"    if {value} == {value}: {there} = {value}")
        there = f"{bits}[{index}{f' + {at}' if at else ''}]"
        e.line(f"    else: {there} = {e.helper(word_of_float)}({value})")
    site_name = e.scope.bind(site, "site")
    call = f"{e.helper(lane_store)}(f, {place.arguments}, {site_name}, {', '.join(values)})"
    _otherwise(e, "", call)


def _is_float(e: LaneEmitter, item: Operand, kind: str) -> bool:
    """Whether a register is held as a float of a type's width, so that its bits are asked for."""
    return (
        isinstance(item, Register)
        and width_of(kind) in (4, 8)
        and e.scope.width[e.scope.number(item)] == width_of(kind)
        and e.held(item) == f"f{8 * width_of(kind)}"
    )


lane_operation("ld", _TYPES, _load)
lane_operation("ldu", _TYPES, _load)
lane_operation("st", _TYPES, _store)
