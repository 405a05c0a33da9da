"""The comparisons of a kernel whose outcome a variable decides that launches keep, by its PTX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final

from ptx.isa.effects import MemoryNames, memory_names
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Address, Instruction, Operand, Register, Symbol
from ptx.isa.module import PtxModule
from ptx.isa.registers import registers_in

_STORES: Final = (InstructionKind.STORE, InstructionKind.REDUCTION)
_ON_CHIP: Final = ("shared", "local", "param")


@dataclass(frozen=True, slots=True)
class KeptComparison:
    """A comparison of a value that a variable decides.

    Attributes:
        function: the name of its function.
        variables: the names of the variables.
    """

    function: str
    instruction: Instruction
    variables: tuple[str, ...]


def kept_comparisons(module: PtxModule, kernel: str, kept: Set[str]) -> Sequence[KeptComparison]:
    """Return the comparisons of a kernel and its functions that depend on some variables.

    Values are followed through registers, and through memory as a whole: a load of shared memory
    may give all that the kernel stores there.
    """
    return list(_Following(memory_names(module, kernel), kept).comparisons())


class _Following:
    """Which variables the values in registers and memory depend on."""

    def __init__(self, memory: MemoryNames, kept: Set[str]) -> None:
        self._memory = memory
        # By a function and a register, or by "" and memory.
        self._known: dict[tuple[str, str], frozenset[str]] = {
            ("", name): frozenset({name}) for name in kept
        }
        while self._follow():
            pass

    def comparisons(self) -> Iterator[KeptComparison]:
        """Yield the comparisons of which an operand depends on a variable."""
        for function, i in self._memory:
            if i.opcode not in ("setp", "set") or i.guard is not None:
                continue
            variables = self._of(function, i.operands[1:3])
            if variables and isinstance(i.operands[0], Register):
                yield KeptComparison(function, i, tuple(sorted(variables)))

    def _follow(self) -> bool:
        """Pass dependencies on once; return whether any is new."""
        is_new = False
        for function, i in self._memory:
            if not i.operands:
                continue
            values = self._of(function, i.operands)
            places = self._places(function, i)
            if i.facts.kind in _STORES or i.facts.is_atomic or i.facts.kind is InstructionKind.CALL:
                for place in places:
                    is_new |= self._add(("", place), values)
            loaded = values.union(*(self._known.get(("", each), frozenset()) for each in places))
            if i.facts.kind not in _STORES and loaded:
                for register in registers_in(i.operands[0]):
                    is_new |= self._add((function, register.name), loaded)
        return is_new

    def _of(self, function: str, operands: Sequence[Operand]) -> frozenset[str]:
        """Return what values depend on; addresses select, and so they count."""
        found: set[str] = set()
        for operand in operands:
            base = operand.base if isinstance(operand, Address) else operand
            for register in registers_in(base) if base is not None else ():
                found |= self._known.get((function, register.name), frozenset())
        return frozenset(found)

    def _places(self, function: str, i: Instruction) -> Set[str]:
        """Return the names of the memory that an instruction accesses."""
        if i.facts.kind is InstructionKind.CALL:
            return frozenset({"param"})
        if i.facts.space in _ON_CHIP:
            is_argument = i.facts.space == "param" and self._is_argument(function, i)
            return frozenset() if is_argument else frozenset({i.facts.space})
        return self._memory.of(function, i)

    def _is_argument(self, function: str, i: Instruction) -> bool:
        bases = [each.base for each in i.operands if isinstance(each, Address)]
        return function == self._memory.kernel and any(
            isinstance(each, Symbol) and each.name in self._memory.arguments for each in bases
        )

    def _add(self, key: tuple[str, str], names: frozenset[str]) -> bool:
        before = self._known.get(key, frozenset())
        self._known[key] = before | names
        return not names <= before
