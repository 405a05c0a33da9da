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
from typing import Final, NamedTuple

from ptx.emulate.check.findings import demangled
from ptx.emulate.codegen.cfg import Block
from ptx.emulate.codegen.scope import FunctionScope
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
            for operation_step in steps:
                for number, target in enumerate(operation_step.targets):
                    changed |= self._add(target.name, self._result(operation_step, number))

    def of(self, site: Site) -> frozenset[Origin] | None:
        """Return the origins of the addresses of an access; None if they are unknown."""
        sums = self._sums_of_address(site)
        if not sums:
            return None
        origins: set[Origin] = set()
        for address_sum in sums:
            if len(address_sum) != 1:
                return None
            ((origin, factor),) = address_sum
            if factor != 1:
                return None
            origins.add(origin)
        return frozenset(origins)

    def _sums_of_address(self, site: Site) -> Value:
        instruction = site.instruction
        if "tensor" in site.facts.words:
            return None  # nothing shows which of its accesses this is
        addresses = [operand for operand in instruction.operands if isinstance(operand, Address)]
        if len(addresses) == 2 and site.facts.kind is InstructionKind.COPY:
            address = addresses[0 if site.writes else 1]
        elif len(addresses) == 1:
            address = addresses[0]
        else:
            return None
        return self._value(address.base) if address.base is not None else None

    def _add(self, name: str, added: Value) -> bool:
        """A register may hold these sums as well; whether that is new."""
        sums = self._registers.get(name, _NOTHING)
        if sums is None or added == _NOTHING:
            return False
        merged = None if added is None or len(sums | added) > _MOST_SUMS else sums | added
        self._registers[name] = merged
        return merged != sums

    def _result(self, step: _Step, number: int) -> Value:
        instruction, sources = step.instruction, step.sources
        opcode, facts = instruction.opcode, instruction.facts
        if facts.kind is InstructionKind.LOAD and facts.space == "param":
            return self._parameter(instruction, number)
        if facts.gives_number:
            return _PLAIN
        values = [self._value(value) for value in sources]
        if any(value == _NOTHING for value in values):
            return _NOTHING
        if opcode == "and":
            return _masked(values, sources)
        if all(value == _PLAIN for value in values):
            return _PLAIN
        if any(value is None for value in values) or len(step.targets) > 1:
            return None
        operand_sums = [value for value in values if value is not None]
        if facts.passes_operand and len(operand_sums) <= 2:
            return frozenset().union(*operand_sums)
        if opcode == "selp":
            return operand_sums[0] | operand_sums[1]
        if facts.kind is InstructionKind.ADDITION and len(operand_sums) == 2:
            return _added(operand_sums[0], operand_sums[1], -1 if opcode == "sub" else 1)
        if opcode == "mad" and operand_sums[0] == operand_sums[1] == _PLAIN:
            return operand_sums[2]
        if opcode in ("or", "xor") and _PLAIN in operand_sums:
            return next(value for value in operand_sums if value != _PLAIN)
        if opcode == "neg":
            return _added(_PLAIN, operand_sums[0], -1)
        return None

    def _parameter(self, instruction: Instruction, number: int) -> Value:
        """Return the value that a load of kernel parameters writes to one of its destinations."""
        address = instruction.operands[1]
        if not isinstance(address, Address) or not isinstance(address.base, Symbol):
            return None  # an array of pointers, by an index
        if not instruction.facts.type_suffix.endswith("64"):
            return _PLAIN
        origin = self._parameter_at(
            address.base.name, address.base.offset + address.offset + 8 * number
        )
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
            values = [self._value(item) for item in operand.items]
            if _NOTHING in values:
                return _NOTHING
            return _PLAIN if all(value == _PLAIN for value in values) else None
        return _PLAIN


def _registers(operands: Iterable[Operand]) -> Iterable[Register]:
    for operand in operands:
        if isinstance(operand, Register):
            yield operand
        elif isinstance(operand, Vector):
            yield from _registers(operand.items)
        elif isinstance(operand, Pair):
            yield from _registers((operand.first, operand.second))


def _masked(values: list[Value], sources: tuple[Operand, ...]) -> Value:
    """`and`: a mask of low bits gives a number, one of high bits the pointer, aligned."""
    masks = [operand.value for operand in sources if isinstance(operand, Immediate)]
    if not masks:
        return _PLAIN if all(element == _PLAIN for element in values) else None
    if 0 <= masks[0] < _MOST_OFFSET:
        return _PLAIN
    return next(
        (
            value
            for value, source in zip(values, sources, strict=True)
            if not isinstance(source, Immediate)
        ),
        _PLAIN,
    )


def _added(first: Sums, second: Sums, sign: int) -> Value:
    sums: set[Sum] = set()
    for first_sum in first:
        for second_sum in second:
            factors = dict(first_sum)
            for origin, factor in second_sum:
                factors[origin] = factors.get(origin, 0) + sign * factor
            sums.add(frozenset((pointer, factor) for pointer, factor in factors.items() if factor))
    return frozenset(sums) if len(sums) <= _MOST_SUMS else None


@dataclass(frozen=True, slots=True)
class _Function:
    blocks: list[Block]
    scope: FunctionScope
    sites: list[Site]


class SharedVariables(NamedTuple):
    """The shared memory of a kernel.

    Attributes:
        offsets, sizes: of its variables; a size is 0 of those that end with the block's memory.
        nbytes: of all.
    """

    offsets: dict[str, int]
    sizes: dict[str, int]
    nbytes: int


class KernelOrigins:
    """The origins of a kernel's accesses, found on first use; `shared` are its variables."""

    def __init__(self, shared: SharedVariables) -> None:
        self._shared = shared
        self._functions: list[_Function] = []
        self._found: dict[tuple[frozenset[int], int], dict[Site, frozenset[Origin]]] = {}

    def add(self, blocks: list[Block], scope: FunctionScope, sites: list[Site]) -> None:
        """A function more."""
        self._functions.append(_Function(blocks, scope, sites))

    def find(self, pointers: frozenset[int]) -> dict[Site, frozenset[Origin]]:
        """The origins where the parameters at these offsets are pointers, and no others."""
        key = pointers, len(self._functions)
        origins = self._found.get(key)
        if origins is None:
            origins = self._found[key] = {}
            for function in self._functions:
                self._find(function, pointers, origins)
        return origins

    def _find(
        self, function: _Function, pointers: frozenset[int], of_sites: dict[Site, frozenset[Origin]]
    ) -> None:
        scope = function.scope

        def parameter_at(name: str, offset: int) -> Origin | None:
            if not scope.function.is_entry or name not in scope.kernel_parameters:
                return None
            position = scope.frame.params[name] + offset
            return Origin(name, "global", parameter=position) if position in pointers else None

        origins = PointerOrigins(
            function.blocks, lambda name: self._variable(scope, name), parameter_at
        )
        for site in function.sites:
            origin = origins.of(site)
            if origin is not None:
                of_sites[site] = origin

    def _variable(self, scope: FunctionScope, name: str) -> Origin | None:
        """The origin of a variable that a function names."""
        if name in scope.frame.offsets:
            if not scope.function.is_entry:
                return None  # where it lies depends on the calls
            start = scope.frame.offsets[name]
            sizes = {variable.name: variable.nbytes for variable in scope.body.variables}
            return (
                Origin(name, "local", start=start, end=start + sizes[name])
                if sizes.get(name)
                else None
            )
        bare, _, is_nested = name.partition("@")
        if bare in self._shared.offsets and not (is_nested and name in scope.layout.globals):
            start, nbytes = self._shared.offsets[bare], self._shared.sizes[bare]
            return Origin(
                demangled(bare), "shared", start=start, end=start + nbytes if nbytes else 0
            )
        if name in scope.layout.globals:
            start, nbytes = scope.layout.globals[name]
            return Origin(demangled(bare), "global", start=start, end=start + nbytes)
        return None
