"""What a kernel may touch, by its PTX alone: arguments, variables, clocks, calls.

Addresses are followed through registers, whatever the order of instructions. So a kernel may touch
less than is listed. An address that comes out of memory is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final

from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import (
    Address,
    Function,
    Instruction,
    Operand,
    Register,
    Space,
    SpecialRegister,
    Symbol,
)
from ptx.isa.module import PtxModule
from ptx.isa.registers import registers_in
from ptx.isa.signature import reachable_functions

OTHER: Final = "memory behind an address that is not followed"
_TIMES: Final = ("clock", "globaltimer")
_PLACES: Final = ("smid", "nsmid", "warpid", "nwarpid", "gridid", "pm")
_OFF_CHIP: Final = ("generic", "global", "const")
_STORES: Final = (InstructionKind.STORE, InstructionKind.STORE_MATRIX)
_LOADS: Final = (InstructionKind.LOAD, InstructionKind.LOAD_MATRIX)
_ATOMIC_WORDS: Final = ("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas")
_NO_TARGET: Final = (*_STORES, InstructionKind.REDUCTION, InstructionKind.COPY)


@dataclass(frozen=True, slots=True)
class Effects:
    """What a kernel and its functions may touch; each name once.

    Arguments are "argument 0" and so on. A variable has its name in PTX.

    Attributes:
        reads, writes, updates: memory that loads, stores and atomic operations or asynchronous
            copies may reach.
        kept: the variables that it may write, which the next launch of the module finds.
        hardware: the special registers that differ from run to run: clocks, multiprocessors.
        calls: functions without a body here, such as vprintf; "an address" for calls by one.
        atomics: the atomic operations, with their types, such as "add.f32".
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    updates: tuple[str, ...]
    kept: tuple[str, ...]
    hardware: tuple[str, ...]
    calls: tuple[str, ...]
    atomics: tuple[str, ...] = ()


class MemoryNames:
    """The instructions of a kernel and its functions, with the memory that each may access.

    Attributes:
        kernel: its name; arguments: the names of its parameters.
    """

    def __init__(self, tracing: _Tracing) -> None:
        self._tracing = tracing
        self.kernel: str = tracing.kernel.name
        self.arguments: frozenset[str] = frozenset(each.name for each in tracing.kernel.params)

    def __iter__(self) -> Iterator[tuple[str, Instruction]]:
        """Yield each instruction with the name of its function."""
        for function, instructions in self._tracing.bodies:
            for instruction in instructions:
                yield function.name, instruction

    def of(self, function: str, instruction: Instruction) -> Set[str]:
        """Return the names of memory that outlives the launch, as `Effects` has them."""
        return frozenset(self._tracing.touched(function, instruction))


def memory_names(module: PtxModule, kernel: str) -> MemoryNames:
    """Return which memory the instructions of a kernel may access."""
    tracing = _Tracing(module, kernel)
    tracing.follow()
    return MemoryNames(tracing)


def effects_of(module: PtxModule, kernel: str) -> Effects:
    """Return what a kernel of a module may touch."""
    return _Tracing(module, kernel).effects()


class _Tracing:
    """Where the addresses in a kernel's registers come from."""

    def __init__(self, module: PtxModule, kernel: str) -> None:
        self._module = module
        self.kernel: Function = module.functions[kernel]
        names = reachable_functions(module, kernel)
        functions = [module.functions[name] for name in names]
        self.bodies: list[tuple[Function, list[Instruction]]] = [
            (function, _instructions(module, function))
            for function in functions
            if function.span is not None
        ]
        self._external = [each.name for each in functions if each.span is None]
        self._arguments = {
            parameter.name: f"argument {number}"
            for number, parameter in enumerate(self.kernel.params)
        }
        # By function and register.
        self._origins: dict[tuple[str, str], Set[str]] = {}

    def effects(self) -> Effects:
        """Follow the addresses, then list the accesses."""
        self.follow()
        found: dict[str, dict[str, None]] = {
            name: {} for name in ("reads", "writes", "updates", "hardware", "calls", "atomics")
        }
        for function, instructions in self.bodies:
            for instruction in instructions:
                kind = self._access(instruction)
                if kind:
                    for name in self.touched(function.name, instruction):
                        found[kind][name] = None
                found["hardware"] |= dict.fromkeys(_hardware(instruction))
                if instruction.facts.is_atomic:
                    found["atomics"][_atomic_name(instruction)] = None
                if instruction.facts.kind is InstructionKind.CALL and any(
                    isinstance(each, Register) for each in instruction.operands
                ):
                    found["calls"]["an address"] = None
        found["calls"] |= dict.fromkeys(self._external)
        stored = {**found["writes"], **found["updates"]}
        kept = tuple(name for name in stored if name in self._module.variables)
        return Effects(**{name: tuple(names) for name, names in found.items()}, kept=kept)

    def follow(self) -> None:
        """Follow the addresses through registers."""
        while self._follow():
            pass

    def _follow(self) -> bool:
        """Pass on the origins of addresses once; return whether any is new."""
        is_new = False
        for function, instructions in self.bodies:
            for instruction in instructions:
                if instruction.facts.kind in _NO_TARGET or not instruction.operands:
                    continue
                origins = self._result(function, instruction)
                for register in _values_in(instruction.operands[0]) if origins else ():
                    key = function.name, register.name
                    before = self._origins.get(key, frozenset())
                    if not origins <= before:
                        self._origins[key] = before | origins
                        is_new = True
        return is_new

    def _result(self, function: Function, instruction: Instruction) -> Set[str]:
        """Return the origins of an instruction's result, if it may be an address."""
        facts = instruction.facts
        if facts.kind is InstructionKind.LOAD:
            if facts.type_suffix not in ("u64", "b64", "s64"):
                return frozenset()
            return self._loaded(function, instruction)
        if not (facts.is_calculation or facts.is_move or facts.passes_operand):
            return frozenset()
        if facts.kind is InstructionKind.MULTIPLICATION or instruction.opcode in ("shl", "shr"):
            return frozenset()  # of an index or a size
        origins: set[str] = set()
        # Of a product and a sum, the sum's part is the address.
        first = 3 if facts.kind is InstructionKind.MULTIPLY_ADD else 1
        for operand in instruction.operands[first:]:
            if isinstance(operand, Symbol):
                origins |= self._of_symbol(operand.name)
            for register in _values_in(operand):
                if register.ptx_type[1:] == "64" and register.ptx_type[0] in "bus":
                    origins |= self._origins.get((function.name, register.name), frozenset())
        return origins

    def _loaded(self, function: Function, instruction: Instruction) -> Set[str]:
        if instruction.facts.space != "param":
            return frozenset({OTHER})
        address = instruction.operands[1]
        name = (
            address.base.name
            if isinstance(address, Address) and isinstance(address.base, Symbol)
            else ""
        )
        if function is self.kernel and name in self._arguments:
            return frozenset({self._arguments[name]})
        # A parameter or a result of a function: any address of the kernel's.
        return frozenset(self._arguments.values()) | {OTHER}

    def _of_symbol(self, name: str) -> Set[str]:
        variable = self._module.variables.get(name)
        is_kept = variable is not None and variable.space in (Space.GLOBAL, Space.CONST)
        return frozenset({name if is_kept else ""})  # "" is memory of the launch

    def _access(self, instruction: Instruction) -> str:
        """Return the kind of access to memory that outlives the launch; "" for none."""
        facts = instruction.facts
        if facts.space not in _OFF_CHIP:
            return ""
        if facts.kind in _LOADS:
            return "reads"
        if facts.kind in _STORES:
            return "writes"
        return "updates" if facts.is_atomic or facts.kind is InstructionKind.COPY else ""

    def touched(self, function: str, instruction: Instruction) -> Iterator[str]:
        """Yield the names of the memory that an access may reach."""
        for operand in instruction.operands:
            if not isinstance(operand, Address):
                continue
            origins: Set[str] = frozenset({OTHER})
            if isinstance(operand.base, Symbol):
                origins = self._of_symbol(operand.base.name)
            elif isinstance(operand.base, Register):
                key = function, operand.base.name
                # Of a register without an origin, such as a number, nothing is known.
                origins = self._origins.get(key) or origins
            yield from sorted(origins - {""})


def _instructions(module: PtxModule, function: Function) -> list[Instruction]:
    statements = module.body(function.name).statements
    return [statement for statement in statements if isinstance(statement, Instruction)]


def _values_in(operand: Operand) -> Iterator[Register]:
    """Return the registers that an operand names, but for those of an address."""
    return registers_in(operand) if not isinstance(operand, Address) else iter(())


def _atomic_name(instruction: Instruction) -> str:
    """Return the operation of an atomic instruction, and its type."""
    words = [word for word in instruction.modifiers if word in _ATOMIC_WORDS]
    return ".".join([*words, instruction.facts.type_suffix]) if words else instruction.opcode


def _hardware(instruction: Instruction) -> Iterator[str]:
    """Yield the special registers that differ from run to run."""
    for operand in instruction.operands:
        if isinstance(operand, SpecialRegister):
            bare = operand.name.removeprefix("%")
            if bare in _PLACES or bare.startswith(_TIMES):
                yield f"%{bare}"
