"""The origins of the addresses that a kernel accesses: pointer parameters, or variables.

A register is followed as a sum of pointers, each with a factor; all other terms are plain numbers.
If the sum has one pointer, once, the address has that pointer as its origin.

For example, `a + 4 * i` has the origin `a`. `p + (b - a)` has the origin `b` if `p` is `a`, and an
unknown one if `p` was loaded.

A register that several instructions write may be any of several sums. The order of execution is
ignored, so a result holds anywhere in the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ptx.emulate.check.findings import demangled
from ptx.emulate.codegen.cfg import Block
from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.memory.pointer_extents import Origin
from ptx.emulate.memory.site import Site
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Address, Immediate, Instruction, Operand, Pair, Register, Symbol, Vector

Sum = frozenset[tuple[Origin, int]]
Sums = frozenset[Sum]
_PLAIN: Final[Sums] = frozenset({frozenset()})
_NOTHING: Final[Sums] = frozenset()  # of a register that nothing has written yet
_MOST_SUMS: Final = 4
_MOST_OFFSET: Final = 1 << 31

Value = Sums | None  # None: not followed


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction that writes registers."""

    instruction: Instruction
    targets: tuple[Register, ...]
    sources: tuple[Operand, ...]


class PointerOrigins:
    """The sums that the registers of one function may hold.

    Args:
        blocks: the function.
        origin_of: the origin that a symbol names; None where it is followed no further.
        parameter_at: the origin that a load from a symbol and an offset gives, if it is a pointer.
    """

    def __init__(
        self,
        blocks: Iterable[Block],
        origin_of: Callable[[str], Origin | None],
        parameter_at: Callable[[str, int], Origin | None],
    ) -> None:
        self._origin_of = origin_of
        self._parameter_at = parameter_at
        self._registers: dict[str, Value] = {}
        steps = [
            _Step(
                step.instruction,
                tuple(_registers(step.instruction.operands[: step.operation.writes])),
                step.instruction.operands[step.operation.writes :],
            )
            for block in blocks
            for step in block.steps
            if step.operation.writes
        ]
        changed = True
        while changed:  # it ends, as sums are only added, and no more than a few
            changed = False
            for each in steps:
                for number, target in enumerate(each.targets):
                    changed |= self._add(target.name, self._result(each, number))

    def of(self, site: Site) -> frozenset[Origin] | None:
        """Return the origins of the addresses of an access; None if they are unknown."""
        sums = self._sums_of_address(site)
        if not sums:
            return None
        found: set[Origin] = set()
        for each in sums:
            if len(each) != 1:
                return None
            ((origin, factor),) = each
            if factor != 1:
                return None
            found.add(origin)
        return frozenset(found)

    def _sums_of_address(self, site: Site) -> Value:
        instruction = site.instruction
        if "tensor" in site.facts.words:
            return None  # nothing shows which of its accesses this is
        places = [each for each in instruction.operands if isinstance(each, Address)]
        if len(places) == 2 and site.facts.kind is InstructionKind.COPY:
            place = places[0 if site.writes else 1]
        elif len(places) == 1:
            place = places[0]
        else:
            return None
        return self._value(place.base) if place.base is not None else None

    def _add(self, name: str, more: Value) -> bool:
        """A register may hold these sums as well; whether that is new."""
        known = self._registers.get(name, _NOTHING)
        if known is None or more == _NOTHING:
            return False
        both = None if more is None or len(known | more) > _MOST_SUMS else known | more
        self._registers[name] = both
        return both != known

    def _result(self, step: _Step, number: int) -> Value:
        instruction, sources = step.instruction, step.sources
        opcode, facts = instruction.opcode, instruction.facts
        if facts.kind is InstructionKind.LOAD and facts.space == "param":
            return self._parameter(instruction, number)
        if facts.gives_number:
            return _PLAIN
        values = [self._value(each) for each in sources]
        if any(each == _NOTHING for each in values):
            return _NOTHING
        if opcode == "and":
            return _masked(values, sources)
        if all(each == _PLAIN for each in values):
            return _PLAIN
        if any(each is None for each in values) or len(step.targets) > 1:
            return None
        known = [each for each in values if each is not None]
        if facts.passes_operand and len(known) <= 2:
            return frozenset().union(*known)
        if opcode == "selp":
            return known[0] | known[1]
        if facts.kind is InstructionKind.ADDITION and len(known) == 2:
            return _added(known[0], known[1], -1 if opcode == "sub" else 1)
        if opcode == "mad" and known[0] == known[1] == _PLAIN:
            return known[2]
        if opcode in ("or", "xor") and _PLAIN in known:
            return next(each for each in known if each != _PLAIN)
        if opcode == "neg":
            return _added(_PLAIN, known[0], -1)
        return None

    def _parameter(self, instruction: Instruction, number: int) -> Value:
        """Return the value that a load of kernel parameters writes to one of its destinations."""
        place = instruction.operands[1]
        if not isinstance(place, Address) or not isinstance(place.base, Symbol):
            return None  # an array of pointers, by an index
        if not instruction.facts.type_suffix.endswith("64"):
            return _PLAIN
        origin = self._parameter_at(place.base.name, place.base.offset + place.offset + 8 * number)
        return _PLAIN if origin is None else frozenset({frozenset({(origin, 1)})})

    def _value(self, operand: Operand) -> Value:
        if isinstance(operand, Register):
            return self._registers.get(operand.name, _NOTHING)
        if isinstance(operand, Address):
            return self._value(operand.base) if operand.base is not None else _PLAIN
        if isinstance(operand, Symbol):
            origin = self._origin_of(operand.name)
            return None if origin is None else frozenset({frozenset({(origin, 1)})})
        if isinstance(operand, Vector):
            values = [self._value(each) for each in operand.items]
            if _NOTHING in values:
                return _NOTHING
            return _PLAIN if all(each == _PLAIN for each in values) else None
        return _PLAIN


def _registers(operands: Iterable[Operand]) -> Iterable[Register]:
    for each in operands:
        if isinstance(each, Register):
            yield each
        elif isinstance(each, Vector):
            yield from _registers(each.items)
        elif isinstance(each, Pair):
            yield from _registers((each.first, each.second))


def _masked(values: list[Value], sources: tuple[Operand, ...]) -> Value:
    """`and`: a mask of low bits gives a number, one of high bits the pointer, aligned."""
    masks = [each.value for each in sources if isinstance(each, Immediate)]
    if not masks:
        return _PLAIN if all(each == _PLAIN for each in values) else None
    if 0 <= masks[0] < _MOST_OFFSET:
        return _PLAIN
    return next((value for value, source in zip(values, sources, strict=True)
                 if not isinstance(source, Immediate)), _PLAIN)  # fmt: skip


def _added(one: Sums, other: Sums, sign: int) -> Value:
    found: set[Sum] = set()
    for left in one:
        for right in other:
            factors = dict(left)
            for origin, factor in right:
                factors[origin] = factors.get(origin, 0) + sign * factor
            found.add(frozenset((each, factor) for each, factor in factors.items() if factor))
    return frozenset(found) if len(found) <= _MOST_SUMS else None


@dataclass(frozen=True, slots=True)
class _Function:
    blocks: list[Block]
    scope: FunctionScope
    sites: list[Site]


class KernelOrigins:
    """The origins of a kernel's accesses, found on first use.

    Args:
        code: the kernel.
        shared_sizes: the bytes of its shared variables; 0 of those that end with the block's.
    """

    def __init__(self, code: KernelCode, shared_sizes: dict[str, int]) -> None:
        self._code = code
        self._shared_sizes = shared_sizes
        self._functions: list[_Function] = []
        self._found: dict[tuple[frozenset[int], int], dict[Site, frozenset[Origin]]] = {}

    def add(self, blocks: list[Block], scope: FunctionScope, sites: list[Site]) -> None:
        """A function more."""
        self._functions.append(_Function(blocks, scope, sites))

    def find(self, pointers: frozenset[int]) -> dict[Site, frozenset[Origin]]:
        """The origins where the parameters at these offsets are pointers, and no others."""
        key = pointers, len(self._functions)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = {}
            for function in self._functions:
                self._find(function, pointers, found)
        return found

    def _find(
        self, function: _Function, pointers: frozenset[int], found: dict[Site, frozenset[Origin]]
    ) -> None:
        scope = function.scope

        def parameter_at(name: str, offset: int) -> Origin | None:
            if not scope.function.is_entry or name not in scope.kernel_parameters:
                return None
            at = scope.frame.params[name] + offset
            return Origin(name, "global", parameter=at) if at in pointers else None

        origins = PointerOrigins(
            function.blocks, lambda name: self._variable(scope, name), parameter_at
        )
        for site in function.sites:
            origin = origins.of(site)
            if origin is not None:
                found[site] = origin

    def _variable(self, scope: FunctionScope, name: str) -> Origin | None:
        """The origin of a variable that a function names."""
        if name in scope.frame.offsets:
            if not scope.function.is_entry:
                return None  # where it lies depends on the calls
            start = scope.frame.offsets[name]
            sizes = {each.name: each.nbytes for each in scope.body.variables}
            return (
                Origin(name, "local", start=start, end=start + sizes[name])
                if sizes.get(name)
                else None
            )
        bare = name.partition("@")[0]
        if bare in self._code.shared_offsets:
            start, nbytes = self._code.shared_offsets[bare], self._shared_sizes[bare]
            return Origin(
                demangled(bare), "shared", start=start, end=start + nbytes if nbytes else 0
            )
        if name in scope.layout.globals:
            start, nbytes = scope.layout.globals[name]
            return Origin(demangled(name), "global", start=start, end=start + nbytes)
        return None
