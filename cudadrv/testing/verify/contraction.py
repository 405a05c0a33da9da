"""`contractions`: the sums and differences that ptxas may fuse with a product."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ptx.emulate.codegen.table import find_operation
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import (
    Address,
    Arguments,
    Body,
    Bracket,
    Instruction,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Vector,
)

_FLOATS: Final = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"})
_ROUNDINGS: Final = frozenset({"rn", "rz", "rm", "rp"})
_ENDS: Final = frozenset({
    InstructionKind.BRANCH, InstructionKind.CALL, InstructionKind.RETURN, InstructionKind.EXIT,
    InstructionKind.TRAP,
})  # fmt: skip


_SUM: Final = re.compile(r"(@!?[\w$%]+\s+)?\b(add|sub)\.([\w.]+)\s+([^;]+);")
_PRODUCT: Final = re.compile(r"\bmul\.[\w.]+\s+([^;]+);")
_REGISTERS: Final = {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32", "f32x2": "b64"}


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum or a difference that may be fused with a product.

    Attributes:
        total: the `add` or `sub`.
        product: the `mul`.
        is_direct: whether the sum reads the product's own register, and the factors are still in
            theirs.
    """

    total: Instruction
    product: Instruction
    is_direct: bool

    def fused_line(self, lines: Sequence[str]) -> str | None:
        """Return the line of the sum with `fma.rn` in its place; None if that cannot be written.

        Args:
            lines: of the PTX.
        """
        line = lines[self.total.line - 1]
        total, product = _SUM.search(line), _PRODUCT.search(lines[self.product.line - 1])
        if total is None or product is None or not self.is_direct:
            return None
        guard, opcode, modifiers, operands = total.groups(default="")
        result, first, second = (each.strip() for each in operands.split(","))
        register, *factors = (each.strip() for each in product[1].split(","))
        is_first = first == register
        addend = second if is_first else first
        ptx_type = self.total.facts.types[0]
        before = ""
        if opcode == "sub":
            negated = addend if is_first else factors[0]
            kind = _REGISTERS.get(ptx_type, ptx_type)
            before = f".reg .{kind} %negated; neg.{ptx_type} %negated, {negated}; "
            addend, factors[0] = ("%negated", factors[0]) if is_first else (addend, "%negated")
        fused = f"fma.rn.{modifiers} {result}, {', '.join(factors)}, {addend};"
        return line[: total.start()] + f"{{ {before}{guard}{fused} }}" + line[total.end() :]


@dataclass(slots=True)
class _Product:
    """One product without a rounding modifier.

    Attributes:
        instruction: the `mul`.
        sums: what reads it and could be fused with it, with `Contraction.is_direct`.
        is_read: whether anything else reads it, so that it stays.
        is_current: whether its factors are still in their registers.
    """

    instruction: Instruction
    sums: list[tuple[Instruction, bool]] = field(default_factory=list)
    is_read: bool = False
    is_current: bool = True


def contractions(body: Body) -> tuple[Contraction, ...]:
    """Return the `add` and `sub` that ptxas may fuse with a `mul`, in their order.

    PTX allows it where neither has a rounding modifier. ptxas fuses within a basic block, also
    through `mov` and `neg`, if everything that reads the product is fused with it.
    """
    blocks = list(_blocks(body))
    read_later = frozenset[str]().union(*map(_read_before_written, blocks))
    found: dict[int, Contraction] = {}
    for block in blocks:
        for product in _products(block, read_later):
            for total, is_direct in () if product.is_read else product.sums:
                contraction = Contraction(total, product.instruction, is_direct)
                found.setdefault(id(total), contraction)
    return tuple(found[id(each)] for block in blocks for each in block if id(each) in found)


def _blocks(body: Body) -> Iterator[list[Instruction]]:
    """Yield the instructions of each basic block."""
    block: list[Instruction] = []
    for statement in body.statements:
        if not isinstance(statement, Label):
            block.append(statement)
            if statement.facts.kind not in _ENDS:
                continue
        yield block
        block = []
    yield block


def _read_before_written(block: list[Instruction]) -> frozenset[str]:
    """Return the registers that a block reads from those before it."""
    read: set[str] = set()
    written: set[str] = set()
    for instruction in block:
        results, operands = _results_and_operands(instruction)
        read |= operands - written
        if instruction.guard is not None:  # the former value may stay
            read |= results - written
        written |= results
    return frozenset(read)


def _products(block: list[Instruction], read_later: frozenset[str]) -> list[_Product]:
    """Return the products of a block, with what reads them."""
    found: list[_Product] = []
    holders: dict[str, _Product] = {}  # by register
    for instruction in block:
        results, operands = _results_and_operands(instruction)
        read = [holders[name] for name in sorted(operands) if name in holders]
        passed: _Product | None = None
        if _is_sum(instruction) and _is_once(instruction):
            for product in read:
                if _fits(product.instruction, instruction):
                    is_direct = (
                        product.is_current
                        and product.instruction.operands[0] in (instruction.operands[1:])
                    )
                    product.sums.append((instruction, is_direct))
                else:
                    product.is_read = True
        elif read and _passes(instruction):
            passed = read[0]
        else:
            for product in read:
                product.is_read = True
        for name in results & holders.keys():
            if instruction.guard is not None:
                holders[name].is_read = True
            del holders[name]
        for product in found:
            product.is_current &= results.isdisjoint(_factors(product.instruction))
        if _is_product(instruction):
            passed = _Product(instruction)
            found.append(passed)
        if passed is not None:
            holders.update(dict.fromkeys(results, passed))
    for name, product in holders.items():
        product.is_read |= name in read_later
    return found


def _factors(product: Instruction) -> set[str]:
    return {name for operand in product.operands[1:] for name in _names(operand)}


def _is_product(instruction: Instruction) -> bool:
    return (
        instruction.facts.kind is InstructionKind.MULTIPLICATION
        and _is_unrounded_float(instruction)
        and instruction.guard is None
        and "sat" not in instruction.modifiers
    )


def _is_sum(instruction: Instruction) -> bool:
    return instruction.facts.kind is InstructionKind.ADDITION and _is_unrounded_float(instruction)


def _is_unrounded_float(instruction: Instruction) -> bool:
    types = instruction.facts.types
    return len(types) == 1 and types[0] in _FLOATS and _ROUNDINGS.isdisjoint(instruction.modifiers)


def _is_once(instruction: Instruction) -> bool:
    """Return whether both operands of a sum differ: x + x is no fused operation."""
    return instruction.operands[1] != instruction.operands[2]


def _fits(product: Instruction, total: Instruction) -> bool:
    """Return whether one fused instruction has the type and the `.ftz` of both."""
    return product.facts.types == total.facts.types and ("ftz" in product.modifiers) == (
        "ftz" in total.modifiers
    )


def _passes(instruction: Instruction) -> bool:
    """Return whether a `mov` or `neg` hands a product on."""
    if instruction.guard is not None or not isinstance(instruction.operands[1], Register):
        return False
    return instruction.opcode == "mov" or (
        instruction.opcode == "neg" and instruction.facts.types[0] in _FLOATS
    )


def _results_and_operands(instruction: Instruction) -> tuple[set[str], set[str]]:
    """Return the names of the registers that an instruction writes, and that it reads."""
    record = find_operation(instruction)
    writes = 0 if record is None else record.writes
    results = {name for each in instruction.operands[:writes] for name in _names(each)}
    first = 0 if record is None or record.updates else writes
    operands = {name for each in instruction.operands[first:] for name in _names(each)}
    if any(isinstance(each, Address | Bracket) for each in instruction.operands[:writes]):
        operands |= results
    return results, operands


def _names(operand: Operand) -> Iterator[str]:
    """Yield the names of the registers in an operand."""
    match operand:
        case Register(name=name):
            yield name
        case Address(base=Register(name=name)):
            yield name
        case Vector(items=items) | Arguments(items=items) | Bracket(items=items):
            for item in items:
                yield from _names(item)
        case Pair(first=first, second=second):
            yield from _names(first)
            yield from _names(second)
        case Negated(operand=register) | Selected(register=register):
            yield register.name
        case _:
            pass
