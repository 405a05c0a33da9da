"""The interface of operations' emitters: operands as Python expressions, results as assignments.

One `Emitter` serves one function; the generator starts each block and hands it the instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ptx.emulate.access.memory_access import load, store
from ptx.emulate.codegen.block_registers import BlockRegisters
from ptx.emulate.codegen.scope import Constants, FunctionScope
from ptx.emulate.kernel_facts import Instrument, LateWork
from ptx.emulate.memory.generic_addresses import PARAM_WINDOW
from ptx.emulate.memory.site import Site
from ptx.emulate.model.errors import UnsupportedInstruction
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of, unsigned, width_of
from ptx.emulate.threads.special_registers import known_special
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import (
    Address,
    FloatImmediate,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)

_FARTHEST = 2**32  # of a constant offset


def choose(condition: Value, yes: Value, no: Value) -> Value:
    """`yes` where the condition holds, else `no`; stays a scalar where all three are."""
    if condition.ndim == 0:
        return yes if condition else no
    return np.where(condition, yes, no)


class OperationInstrument(Instrument):
    """Writes code for an observer where operations are written; each method may write nothing."""

    def access(self, e: Emitter, addresses: str, offset: int, site: str) -> None:
        """The fibre accesses memory there, as `Emitter.address` and `Emitter.site` name it."""

    def bring(self, e: Emitter, i: Instruction) -> dict[str, str]:
        """Return what lanes of a warp bring to an exchange beside their values, by name."""
        return {}

    def exchange(
        self, e: Emitter, i: Instruction, target: Operand, marks: str, sources: tuple[Operand, ...]
    ) -> None:
        """The result of an exchange depends on `marks`, an expression of those that lanes brought.

        It also depends on `sources`, which are the lane's own.
        """


MARKS: Final = "marks"
"""The name by which lanes of a warp bring marks of their values to an exchange."""


class Emitter:
    """Writes the body of one basic block after another.

    Attributes:
        scope: the function's registers, symbols and names.
        instruments: those that write code for observers.
        instruction: the one that is being emitted.
        here, following: numbers of this block and of the one after it, for `return`.
        targets: of an indexed branch.
        live_results: the registers that this instruction writes and that are read later; live_out:
            mask of those that are read after this block.
        functions: number of each function of the kernel that is called by its name.
        sites: the accesses of what was written so far.
    """

    def __init__(
        self, scope: FunctionScope, instruments: Sequence[OperationInstrument] = ()
    ) -> None:
        self.scope = scope
        self.instruments = instruments
        self.instruction: Instruction = Instruction("", (), (), None, 0, None)
        self.here: int = 0
        self.following: int = 0
        self.live_results: frozenset[int] = frozenset()
        self.live_out = 0
        self.targets: tuple[int, ...] = ()
        self.first = 0
        self.functions: dict[str, int] = {}
        self.sites: list[Site] = []
        self._constants = Constants(scope)
        self._registers = BlockRegisters(scope, self._constants)
        self._numbers = scope.numbers
        self._condition = ""
        # By the name of the addresses and the kind of an element: the first of several loads.
        self._first_loads: dict[tuple[str, str], tuple[int, Site]] = {}

    @property
    def late(self) -> LateWork:
        """The kinds of work that are deferred."""
        return self.scope.late

    # For the generator.

    def begin(self, here: int, following: int) -> None:
        """Start a block."""
        self.here = here
        self.following = following
        self._registers.begin()
        self._first_loads.clear()

    def start(self, instruction: Instruction) -> None:
        """Go on to the next instruction."""
        self.instruction = instruction
        self._condition = ""
        facts = instruction.facts
        is_load = facts.kind is InstructionKind.LOAD
        if facts.is_strong or facts.reads_past_l1 or not (facts.is_calculation or is_load):
            self._first_loads.clear()
        self._registers.slot = self.scope.invariants.get(id(instruction))

    @property
    def lines(self) -> list[str]:
        """The block's code so far."""
        return self._registers.lines

    def flush(self, live: int) -> None:
        """Store the registers that were written and are in the mask `live`."""
        self._registers.flush(live)

    # For operations: reading.

    def reject(self, reason: str = "") -> UnsupportedInstruction:
        """The error that this instruction is not executed; raise it."""
        return self.scope.unsupported(self.instruction, reason)

    def value(self, operand: Operand, ptx_type: str) -> str:
        """An expression (a name) for an operand, read as a PTX type: its bits are reinterpreted."""
        kind = kind_of(ptx_type)
        if isinstance(operand, Register):
            return self._register(self._numbers[operand.name], kind)
        if isinstance(operand, Immediate):
            value = operand.value
            return self.constant(float(value) if kind in ("f32", "f64", "f16") else value, kind)
        if isinstance(operand, FloatImmediate):
            return self._float_immediate(operand, kind)
        if isinstance(operand, Negated):
            return f"(~{self.value(operand.operand, ptx_type)})"
        if isinstance(operand, SpecialRegister):
            return self._special(operand.name, kind)
        if isinstance(operand, Symbol):
            return self._symbol(operand, kind)
        raise self.reject(f"it cannot take the operand {operand}")

    def values(self, operand: Operand, ptx_type: str) -> list[str]:
        """The elements of a vector operand; one for any other."""
        if isinstance(operand, Vector):
            return [self.value(item, ptx_type) for item in operand.items]
        return [self.value(operand, ptx_type)]

    def is_used(self, operand: Operand) -> bool:
        """Return whether a destination is read later; a sink never is."""
        if isinstance(operand, Register):
            return self._numbers[operand.name] in self.live_results
        if isinstance(operand, Vector):
            return any(self.is_used(item) for item in operand.items)
        if isinstance(operand, Pair):
            return self.is_used(operand.first) or self.is_used(operand.second)
        return False

    def constant(self, value: int | float, kind: str) -> str:
        """The name of a NumPy scalar of a kind; an integer is taken modulo its width."""
        return self._constants.number(value, kind)

    def helper(self, function: Callable[..., object]) -> str:
        """The name by which generated code calls a Python function."""
        return self.scope.bind(function, function.__name__)

    def dtype(self, ptx_type: str) -> str:
        """The name of a PTX type's NumPy type."""
        return self._constants.dtype(ptx_type)

    # For operations: writing.

    def line(self, code: str) -> None:
        """One statement."""
        self._registers.lines.append(code)

    def temporary(self, expression: str) -> str:
        """The name of a new variable that holds an expression's value."""
        return self._registers.temporary(expression)

    def assign(self, operand: Operand, ptx_type: str, expression: str) -> None:
        """Write a destination; the expression has exactly the NumPy type of `ptx_type`.

        A wider register is filled by its sign or by zeros. Under a guard, threads that it excludes
        retain the old value.
        """
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register):
            raise self.reject(f"it cannot write to {operand}")
        number = self._numbers[operand.name]
        kind = kind_of(ptx_type)
        size = self.scope.width[number]
        if (kind == "pred") != (self.scope.stored_kind[number] == "pred"):
            raise self.reject("a predicate and a number are mixed")
        if kind != "pred" and size != width_of(kind):
            if size < width_of(kind):
                raise self.reject(f"{operand.name} is too narrow for its result")
            kind = f"s{8 * size}" if kind[0] == "s" else f"u{8 * size}"
            if ptx_type[0] == "f":
                expression = f"({expression}).view({self.dtype(unsigned(kind_of(ptx_type)))})"
            expression = f"({expression}).astype({self.dtype(kind)})"
        if self.instruction.guard is not None:
            expression = self._guarded(number, kind, expression)
        self._registers.write(number, kind, expression)

    def assign_all(self, operand: Operand, ptx_type: str, expressions: list[str]) -> None:
        """Write the elements of a vector destination, or a single one."""
        items = operand.items if isinstance(operand, Vector) else (operand,)
        if len(items) != len(expressions):
            raise self.reject(f"{len(items)} destinations for {len(expressions)} values")
        for item, expression in zip(items, expressions, strict=True):
            self.assign(item, ptx_type, expression)

    def add_later(self, operand: Operand, left: Operand, right: Operand) -> bool:
        """Put off an integer sum until its value is needed; an address may never need it.

        False where it cannot be put off.
        """
        if self.instruction.guard is not None or not isinstance(operand, Register):
            return False
        return self._registers.write_sum(self._numbers[operand.name], left, right)

    def scale_later(self, operand: Operand, factor: Operand, kind: str, shift: int) -> bool:
        """Put off the 64-bit product of a 32-bit register and 2**shift, as `add_later` a sum.

        False where it cannot be put off.
        """
        if self.instruction.guard is not None or not isinstance(operand, Register):
            return False
        if not isinstance(factor, Register):
            return False
        number = self._numbers[operand.name]
        return self._registers.write_product(number, factor, kind, shift)

    def leave(self, expression: str) -> None:
        """Store the registers that are live after this block; return the next block, or GONE."""
        self.flush(self.live_out)
        self.line(f"return {expression}")

    # For operations: memory.

    def site(self, space: str, ptx_type: str, count: int = 1, *, writes: bool = False) -> str:
        """The name of a `Site` for this instruction."""
        if writes and space == "param":
            raise self.reject("a kernel's parameters are not written")
        site = Site(self.instruction, space, kind_of(ptx_type), count, writes=writes)
        self.sites.append(site)
        return self.scope.bind(site, "site")

    def join_loads(self, addresses: str, offset: int) -> None:
        """Let the first load of this block from some addresses know the site made last."""
        site = self.sites[-1]
        if site.space != "global" or self.instruction.guard is not None:
            return
        first_offset, first = self._first_loads.setdefault((addresses, site.kind), (offset, site))
        if first is not site and offset > first_offset:
            first.neighbours.append((offset - first_offset, site))

    def address(self, operand: Operand, space: str) -> tuple[str, int, str]:
        """A memory operand: the name of its `Addresses`, a constant offset, and the space it is in.

        The space differs from the given one if a symbol determines it more exactly.
        """
        if not isinstance(operand, Address):
            raise self.reject(f"it needs an address, not {operand}")
        if not -_FARTHEST <= operand.offset < (2**63 if operand.base is None else _FARTHEST):
            raise self.reject(f"the offset {operand.offset} is beyond the address space")
        if operand.base is None:
            return self._registers.same_address(str(operand.offset)), 0, space
        if isinstance(operand.base, Symbol):
            space_of_symbol, expression = self.scope.symbol(operand.base.name, self.instruction)
            if space_of_symbol == "code":
                raise self.reject(f"{operand.base.name} is a function, which is not read")
            if space == "generic" and space_of_symbol == "param":
                space_of_symbol = "generic"
            space = space_of_symbol
            return self._registers.same_address(expression), operand.offset, space
        if space == "param":
            space = self.scope.space_of_register(self.instruction)
        number = self._numbers[operand.base.name]
        if self.scope.width[number] not in (4, 8):
            raise self.reject(f"{operand.base.name} is no register of 32 or 64 bits")
        addresses = self._registers.addresses(number)
        if self.scope.width[number] == 4 and self.instruction.facts.space == "const":
            addresses = self.temporary(f"{addresses}.moved({self.scope.const_base})")
        return addresses, operand.offset, space

    # For operations: observers.

    def note_access(self, addresses: str, offset: int, site: str) -> None:
        """Write code that observes an access, as `address` and `site` name it."""
        for instrument in self.instruments:
            instrument.access(self, addresses, offset, site)

    def bring(self, i: Instruction) -> dict[str, str]:
        """Return what lanes of a warp bring to an exchange beside their values, by name."""
        return {
            name: value
            for instrument in self.instruments
            for name, value in instrument.bring(self, i).items()
        }

    def note_exchange(
        self, i: Instruction, target: Operand, marks: str, sources: tuple[Operand, ...] = ()
    ) -> None:
        """Write code that observes an exchange, as `OperationInstrument.exchange` describes."""
        for instrument in self.instruments:
            instrument.exchange(self, i, target, marks, sources)

    def parameter(self, symbol: Symbol, ptx_type: str, offset: int = 0) -> str:
        """The value of a `.param` variable of this function, as the arguments of a call."""
        addresses, start, space = self.address(Address(symbol, offset), "param")
        site = self.site(space, ptx_type)
        return self.temporary(f"{self.helper(load)}(f, {addresses}, {start}, {site})")

    def set_parameter(self, symbol: Symbol, ptx_type: str, expression: str) -> None:
        """Write a `.param` variable of this function, as the results of a call."""
        addresses, start, space = self.address(Address(symbol, 0), "param")
        site = self.site(space, ptx_type, writes=True)
        self.line(f"{self.helper(store)}(f, {addresses}, {start}, {site}, {expression})")

    # Operands of each form.

    def _register(self, number: int, kind: str) -> str:
        size = self.scope.width[number]
        if size > 8 and kind != "u128":
            raise self.reject("a 128-bit register is only moved")
        if kind == "pred" or size == width_of(kind):
            name = self._registers.read(number, kind)
            if not name:
                raise self.reject("a predicate and a number are mixed")
            return name
        if size < width_of(kind):
            raise self.reject("an operand's register is narrower than the instruction's type")
        if kind[0] == "f":
            part = self._register(number, unsigned(kind))
            return f"{part}.view({self.dtype(kind)})"
        return f"{self._register(number, f'u{8 * size}')}.astype({self.dtype(kind)})"

    def _guarded(self, number: int, kind: str, expression: str) -> str:
        """A result for the threads that the guard names, the register's old value for others."""
        guard = self.instruction.guard
        assert guard is not None
        condition = self._condition
        if not condition:
            condition = self.value(guard.register, "pred")
            if self._numbers[guard.register.name] == number:
                condition = self.temporary(condition)  # further results need it as it was
            self._condition = condition
        old = self._register(number, kind)
        pick = self.helper(choose)
        if_true, if_false = (old, expression) if guard.negated else (expression, old)
        return f"{pick}({condition}, {if_true}, {if_false})"

    def _float_immediate(self, operand: FloatImmediate, kind: str) -> str:
        name = self._constants.exact(operand, kind)
        if not name:
            raise self.reject("a floating-point constant has another width than the type")
        return name

    def _special(self, name: str, kind: str) -> str:
        known_kind = known_special(name)
        if known_kind is None:
            raise self.reject(f"the emulator has no special register {name}")
        value = f"f.special({name[1:]!r})"
        if width_of(known_kind) == width_of(kind):
            return value if known_kind == kind else f"{value}.view({self.dtype(kind)})"
        return f"{value}.astype({self.dtype(kind)})"

    def _symbol(self, symbol: Symbol, kind: str) -> str:
        """The address of a symbol, as `mov` gives it."""
        space, expression = self.scope.symbol(symbol.name, self.instruction)
        offset = symbol.offset
        if space == "param":
            offset += PARAM_WINDOW
        if expression.isdigit():
            return self.constant(int(expression) + offset, kind)
        return f"{self.dtype(kind)}({expression} + {offset})"
