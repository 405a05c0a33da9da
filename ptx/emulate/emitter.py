"""What an operation's emitter writes with: operands as Python expressions, results as assignments.

One `Emitter` serves one function; the generator starts each block and hands it the instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptx.emulate.access import Site, load, store
from ptx.emulate.device import LOCAL_WINDOW, PARAM_WINDOW
from ptx.emulate.errors import UnsupportedInstruction
from ptx.emulate.geometry import Value
from ptx.emulate.scope import FunctionScope
from ptx.emulate.span import Span, number as number_span
from ptx.emulate.special import known_special
from ptx.emulate.types import NUMPY, kind_of, unsigned, width_of
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

_LONGEST_CHAIN = 8  # sums of sums that are put off together


def choose(condition: Value, yes: Value, no: Value) -> Value:
    """`yes` where the condition holds, else `no`; stays a scalar where all three are."""
    if condition.ndim == 0:
        return yes if condition else no
    return np.where(condition, yes, no)


class Emitter:
    """Writes the body of one basic block after another.

    Attributes:
        scope: the function's registers, symbols and names.
        instruction: the one that is being emitted.
        here, following: numbers of this block and of the one behind it, as `return` gives them.
        targets: of an indexed branch.
        live_results: the registers that this instruction writes and that are read later; live_out:
            mask of those that are read after this block.
        functions: number of each function of the kernel; entries: their first blocks.
    """

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope
        self.instruction = Instruction("", (), (), None, 0, None)
        self.lines: list[str] = []
        self.here = 0
        self.following = 0
        self.live_results: frozenset[int] = frozenset()
        self.live_out = 0
        self.targets: tuple[int, ...] = ()
        self.first = 0
        self.functions: dict[str, int] = {}
        self.entries: list[int] = []
        self._kinds: dict[int, str] = {}
        self._views: dict[tuple[int, str], str] = {}
        self._spans: dict[int, str] = {}
        self._pending: dict[int, tuple[Operand, Operand]] = {}
        self._depths: dict[int, int] = {}
        self._constants: dict[int, np.generic] = {}
        self._dependents: dict[int, list[int]] = {}
        self._viewed: dict[int, list[str]] = {}
        self._written: set[int] = set()
        self._temporaries = 0

    # For the generator.

    def begin(self, here: int, following: int) -> None:
        """Start a block."""
        self.lines = []
        self.here, self.following = here, following
        self._kinds.clear()
        self._views.clear()
        self._spans.clear()
        self._pending.clear()
        self._depths.clear()
        self._constants.clear()
        self._dependents.clear()
        self._viewed.clear()
        self._written.clear()
        self._temporaries = 0

    def flush(self, live: int) -> None:
        """Store the registers that were written and are in the mask `live`."""
        for number in sorted(self._written):
            if live >> number & 1:
                self._settle(number)
                name = self._as_kind(number, self.scope.home[number])
                self.line(f"R[{number}] = {name}")

    # For operations: reading.

    def refuse(self, reason: str = "") -> UnsupportedInstruction:
        """The error that this instruction is not executed; raise it."""
        return UnsupportedInstruction(
            self.scope.kernel, self.instruction.text, self.instruction.line, reason
        )

    def value(self, operand: Operand, ptx_type: str) -> str:
        """An expression (a name) for an operand, read as a PTX type: its bits are reinterpreted."""
        kind = kind_of(ptx_type)
        if isinstance(operand, Register):
            return self._register(self.scope.number(operand), kind)
        if isinstance(operand, Immediate):
            return self._immediate(operand.value, kind)
        if isinstance(operand, FloatImmediate):
            return self._float_immediate(operand, kind)
        if isinstance(operand, Negated):
            return f"(~{self.value(operand.operand, ptx_type)})"
        if isinstance(operand, SpecialRegister):
            return self._special(operand.name, kind)
        if isinstance(operand, Symbol):
            return self._symbol(operand, kind)
        raise self.refuse(f"it cannot take the operand {operand}")

    def values(self, operand: Operand, ptx_type: str) -> list[str]:
        """The elements of a vector operand; one for any other."""
        if isinstance(operand, Vector):
            return [self.value(item, ptx_type) for item in operand.items]
        return [self.value(operand, ptx_type)]

    def is_used(self, operand: Operand) -> bool:
        """Whether a destination is read later; a sink never is."""
        if isinstance(operand, Register):
            return self.scope.number(operand) in self.live_results
        if isinstance(operand, Vector):
            return any(self.is_used(item) for item in operand.items)
        if isinstance(operand, Pair):
            return self.is_used(operand.first) or self.is_used(operand.second)
        return False

    def constant(self, value: int | float, kind: str) -> str:
        """The name of a NumPy scalar of a kind; an integer is taken modulo its width."""
        if kind == "pred":
            return self.scope.bind(np.bool_(value))
        if kind[0] in "us":
            bits = 8 * width_of(kind)
            wrapped = int(value) & ((1 << bits) - 1)
            return self.scope.bind(NUMPY[unsigned(kind)](wrapped).view(NUMPY[kind]))
        return self.scope.bind(NUMPY[kind](value))

    def helper(self, function: Callable[..., object]) -> str:
        """The name by which generated code calls a Python function."""
        return self.scope.bind(function, function.__name__)

    def dtype(self, ptx_type: str) -> str:
        """The name of a PTX type's NumPy type."""
        return self.scope.bind(NUMPY[kind_of(ptx_type)])

    # For operations: writing.

    def line(self, code: str) -> None:
        """One statement."""
        self.lines.append(code)

    def temporary(self, expression: str) -> str:
        """The name of a new variable that holds an expression's value."""
        self._temporaries += 1
        name = f"t{self._temporaries}"
        self.line(f"{name} = {expression}")
        return name

    def assign(self, operand: Operand, ptx_type: str, expression: str) -> None:
        """Write a destination; the expression has exactly the NumPy type of `ptx_type`.

        A wider register is filled by its sign or by zeros. Under a guard, threads that it excludes
        keep the old value.
        """
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register):
            raise self.refuse(f"it cannot write to {operand}")
        number = self.scope.number(operand)
        kind = kind_of(ptx_type)
        size = self.scope.width[number]
        if kind != "pred" and size != width_of(kind):
            if size < width_of(kind):
                raise self.refuse(f"{operand.name} is too narrow for its result")
            kind = f"s{8 * size}" if kind[0] == "s" else f"u{8 * size}"
            if ptx_type[0] == "f":
                expression = f"({expression}).view({self.dtype(unsigned(kind_of(ptx_type)))})"
            expression = f"({expression}).astype({self.dtype(kind)})"
        guard = self.instruction.guard
        if guard is not None:
            condition = self.value(guard.register, "pred")
            old = self._register(number, kind)
            pick = self.helper(choose)
            yes, no = (old, expression) if guard.negated else (expression, old)
            expression = f"{pick}({condition}, {yes}, {no})"
        self._forget(number)
        self.line(f"r{number} = {expression}")
        scalar = self.scope.scalar(expression)
        if scalar is not None:
            self._constants[number] = scalar
        self._kinds[number] = kind
        self._written.add(number)

    def leave(self, expression: str) -> None:
        """Store what is live behind this block and return the number of the next block, or GONE."""
        self.flush(self.live_out)
        self.line(f"return {expression}")

    def assign_all(self, operand: Operand, ptx_type: str, expressions: list[str]) -> None:
        """Write the elements of a vector destination, or a single one."""
        items = operand.items if isinstance(operand, Vector) else (operand,)
        if len(items) != len(expressions):
            raise self.refuse(f"{len(items)} destinations for {len(expressions)} values")
        for item, expression in zip(items, expressions, strict=True):
            self.assign(item, ptx_type, expression)

    def add_later(self, operand: Operand, left: Operand, right: Operand) -> bool:
        """Put off an integer sum until its value is needed; as an address it may never be.

        False where it cannot be put off.
        """
        if self.instruction.guard is not None or not isinstance(operand, Register):
            return False
        number = self.scope.number(operand)
        if self.scope.width[number] not in (4, 8) or operand in (left, right):
            return False
        if not all(isinstance(each, Register | Immediate) for each in (left, right)):
            return False
        depth = 1
        for each in (left, right):
            if isinstance(each, Register):
                depth += self._depths.get(self.scope.number(each), 0)
        if depth > _LONGEST_CHAIN:
            for each in (left, right):
                if isinstance(each, Register):
                    self._settle(self.scope.number(each))
            depth = 1
        self._forget(number)
        self._pending[number] = (left, right)
        for each in (left, right):
            if isinstance(each, Register):
                self._dependents.setdefault(self.scope.number(each), []).append(number)
        self._depths[number] = depth
        self._kinds[number] = self._sum_kind(number)
        self._written.add(number)
        return True

    # For operations: memory.

    def site(self, space: str, ptx_type: str, count: int = 1, *, writes: bool = False) -> str:
        """The name of a `Site` for this instruction."""
        made = Site(self.instruction, space, kind_of(ptx_type), count, writes=writes)
        self.scope.sites.append(made)
        return self.scope.bind(made, "site")

    def address(self, operand: Operand, space: str) -> tuple[str, int, str]:
        """A memory operand: the name of its `Span`, a constant offset, and the space it is in.

        The space differs from the asked one where a symbol says better.
        """
        if not isinstance(operand, Address):
            raise self.refuse(f"it needs an address, not {operand}")
        if operand.base is None:
            return self._number_span(str(operand.offset)), 0, space
        if isinstance(operand.base, Symbol):
            found, expression = self.scope.symbol(operand.base.name, self)
            if space == "generic" and found == "param":
                found = "generic"
            space = found
            return self._number_span(expression), operand.offset, space
        if space == "param":
            space = "generic"
        return self._span(self.scope.number(operand.base)), operand.offset, space

    def parameter(self, symbol: Symbol, ptx_type: str, offset: int = 0) -> str:
        """The value of a `.param` variable of this function, as the arguments of a call."""
        where, at, space = self.address(Address(symbol, offset), "param")
        site = self.site(space, ptx_type)
        return self.temporary(f"{self.helper(load)}(f, {where}, {at}, {site})")

    def set_parameter(self, symbol: Symbol, ptx_type: str, expression: str) -> None:
        """Write a `.param` variable of this function, as the results of a call."""
        where, at, space = self.address(Address(symbol, 0), "param")
        site = self.site(space, ptx_type, writes=True)
        self.line(f"{self.helper(store)}(f, {where}, {at}, {site}, {expression})")

    def _number_span(self, expression: str) -> str:
        return self.temporary(f"{self.helper(number_span)}({expression})")

    def _span(self, number: int) -> str:
        found = self._spans.get(number)
        if found is None:
            pending = self._pending.get(number)
            if pending is not None:
                left, right = (self._operand_span(each) for each in pending)
                expression = f"{left}.plus({right})"
            else:
                expression = f"{self.scope.span}({self._name(number)})"
            found = self._spans[number] = self.temporary(expression)
        return found

    def _operand_span(self, operand: Operand) -> str:
        if isinstance(operand, Register):
            return self._span(self.scope.number(operand))
        assert isinstance(operand, Immediate)
        return self.scope.bind(Span(operand.value, None))

    # Registers.

    def _name(self, number: int) -> str:
        """The variable of a register, loaded if it was not yet."""
        self._settle(number)
        if number not in self._kinds:
            self._kinds[number] = self.scope.home[number]
            self.line(f"r{number} = R[{number}]")
        return f"r{number}"

    def _settle(self, number: int) -> None:
        """Compute a sum that was put off."""
        pending = self._pending.pop(number, None)
        self._depths.pop(number, None)
        if pending is not None:
            kind = self._sum_kind(number)
            left, right = (self.value(each, kind) for each in pending)
            self.line(f"r{number} = {left} + {right}")

    def _sum_kind(self, number: int) -> str:
        home = self.scope.home[number]
        return home if home[0] in "us" else f"s{8 * self.scope.width[number]}"

    def _forget(self, number: int) -> None:
        """The register is about to change: settle what depends on its old value."""
        for other in self._dependents.pop(number, ()):
            pending = self._pending.get(other)
            if pending is not None and any(
                isinstance(each, Register) and self.scope.number(each) == number for each in pending
            ):
                self._settle(other)
        self._pending.pop(number, None)
        self._constants.pop(number, None)
        self._depths.pop(number, None)
        self._spans.pop(number, None)
        for kind in self._viewed.pop(number, ()):
            self._views.pop((number, kind), None)

    def _register(self, number: int, kind: str) -> str:
        size = self.scope.width[number]
        if size > 8 and kind != "u128":
            raise self.refuse("a 128-bit register is only moved")
        if kind == "pred" or size == width_of(kind):
            return self._as_kind(number, kind)
        if size < width_of(kind):
            raise self.refuse("an operand's register is narrower than the instruction's type")
        if kind[0] == "f":
            part = self._register(number, unsigned(kind))
            return f"{part}.view({self.dtype(kind)})"
        return f"{self._name(number)}.astype({self.dtype(kind)})"

    def _as_kind(self, number: int, kind: str) -> str:
        name = self._name(number)
        current = self._kinds[number]
        if current == kind:
            return name
        if "pred" in (kind, current):
            raise self.refuse("a predicate and a number are mixed")
        view = self._views.get((number, kind))
        if view is None and number in self._constants:
            return self.scope.bind(self._constants[number].view(NUMPY[kind]))
        if view is None:
            view = self._views[number, kind] = f"{name}_{kind}"
            self._viewed.setdefault(number, []).append(kind)
            self.line(f"{view} = {name}.view({self.dtype(kind)})")
        return view

    # Other operands.

    def _immediate(self, value: int, kind: str) -> str:
        if kind in ("f32", "f64", "f16"):
            return self.constant(float(value), kind)
        return self.constant(value, kind)

    def _float_immediate(self, operand: FloatImmediate, kind: str) -> str:
        bits, width = operand.bits, operand.width // 8
        if width == 8 and width_of(kind) == 4:
            narrow = np.uint64(bits).view(np.float64).astype(np.float32)
            bits, width = int(narrow.view(np.uint32)), 4
        if width != width_of(kind):
            raise self.refuse("a floating-point constant has another width than the type")
        exact = NUMPY[unsigned(kind)](bits)
        return self.scope.bind(exact.view(NUMPY[kind]))

    def _special(self, name: str, kind: str) -> str:
        found = known_special(name)
        if found is None:
            raise self.refuse(f"the emulator has no special register {name}")
        value = f"f.special({name[1:]!r})"
        if width_of(found) == width_of(kind):
            return value if found == kind else f"{value}.view({self.dtype(kind)})"
        return f"{value}.astype({self.dtype(kind)})"

    def _symbol(self, symbol: Symbol, kind: str) -> str:
        """The address of a symbol, as `mov` gives it."""
        space, expression = self.scope.symbol(symbol.name, self)
        offset = symbol.offset
        if self.scope.is_parameter(symbol.name):
            offset += PARAM_WINDOW if space == "param" else LOCAL_WINDOW
        if expression.isdigit():
            return self.constant(int(expression) + offset, kind)
        return f"{self.dtype(kind)}({expression} + {offset})"
