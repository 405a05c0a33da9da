"""The emitter for an instruction's code for a single thread.

Expressions are of Python numbers, as `threads/rows.py` has them: an integer's bits, unsigned and
within its width; a float; a bool. An operation without such code is left to NumPy: `NoLaneCode`.
"""

from __future__ import annotations

from ptx.emulate.codegen.lane.lane_registers import FLOATS, LaneRegisters, NoLaneCode, held_as
from ptx.emulate.codegen.scope import Constants, FunctionScope
from ptx.emulate.memory.generic_addresses import PARAM_WINDOW
from ptx.emulate.memory.site import Site
from ptx.emulate.model.types import kind_of, width_of
from ptx.emulate.threads.rows import double_of_long, float_of_word, long_of_double
from ptx.emulate.threads.special_registers import known_special
from ptx.isa.model import (
    FloatImmediate,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Sink,
    SpecialRegister,
    Symbol,
)


class LaneEmitter(LaneRegisters):
    """Writes the code of a part of a basic block.

    Attributes:
        instruction: the one that is being emitted.
        alone: whether the code is for one thread, which may go slow ways; that for several stops.
        sites: of the accesses so far.
    """

    def __init__(self, scope: FunctionScope, *, alone: bool) -> None:
        super().__init__(scope)
        self.instruction: Instruction = Instruction("", (), (), None, 0, None)
        self.alone = alone
        self.sites: list[Site] = []
        self._constants = Constants(scope)
        self._temporaries = 0

    # For the writers.

    def begin(self) -> None:
        """Start a part: nothing is loaded."""
        super().begin()
        self.sites = []
        self._temporaries = 0

    @property
    def prelude(self) -> list[str]:
        """The assignments at the start of the function."""
        return [f"{name} = {value}" for name, value in self._prelude.items()]

    def function(self, name: str, result: int | None) -> str:
        """Return the part as a function; `result` is its result for all threads, if known."""
        head = self.prelude
        body = self.lines or ["pass"]
        if self.alone:
            return f"def {name}(f, R):\n    " + "\n    ".join((*head, *body))
        loop = "\n        ".join(("for R in rows:", *body))
        if result is not None:
            return f"def {name}(f, rows):\n    " + "\n    ".join((*head, loop, f"return {result}"))
        return f"def {name}(f, rows):\n    " + "\n    ".join((*head, "N = []", loop, "return N"))

    # For operations: reading.

    def bits(self, operand: Operand, ptx_type: str) -> str:
        """An expression (a name or a number) for an operand's bits, as an unsigned number."""
        kind = kind_of(ptx_type)
        mask = self.ones(kind)
        if isinstance(operand, Register):
            number = self.scope.number(operand)
            size = self.scope.width[number]
            if size < width_of(kind) or size > 8 or self.scope.stored_kind[number] == "pred":
                self.reject()
            name = self._as(number, "int")
            return name if size == width_of(kind) else f"({name} & {mask})"
        if isinstance(operand, Immediate):
            return str(operand.value & mask)
        if isinstance(operand, SpecialRegister):
            return self._special(operand.name, kind)
        if isinstance(operand, Symbol):
            return self._symbol(operand, mask)
        raise NoLaneCode

    def signed(self, operand: Operand, ptx_type: str) -> str:
        """Return an operand as a signed number."""
        bits = 8 * width_of(kind_of(ptx_type))
        if isinstance(operand, Immediate):
            value = operand.value & (1 << bits) - 1
            return f"({value - (value >> bits - 1 << bits)})"
        top = 1 << bits - 1
        return f"(({self.bits(operand, ptx_type)} ^ {top}) - {top})"

    def integer(self, operand: Operand, ptx_type: str) -> str:
        """The number that an operand of an integer type is."""
        return (
            self.signed(operand, ptx_type) if ptx_type[0] == "s" else self.bits(operand, ptx_type)
        )

    def ordered(self, operand: Operand, ptx_type: str) -> str:
        """A number that is in the same order as the operand of an integer type."""
        if ptx_type[0] != "s":
            return self.bits(operand, ptx_type)
        top = 1 << 8 * width_of(kind_of(ptx_type)) - 1
        text = self.bits(operand, ptx_type)
        return str(int(text) ^ top) if text.isdigit() else f"({text} ^ {top})"

    def real(self, operand: Operand, ptx_type: str) -> str:
        """A name or a number for an operand of type f32 or f64."""
        if isinstance(operand, Register):
            number = self.scope.number(operand)
            if self.scope.width[number] != width_of(ptx_type) or ptx_type not in FLOATS:
                self.reject()
            return self._as(number, ptx_type)
        if isinstance(operand, Immediate):
            return self.constant(float(operand.value))
        if isinstance(operand, FloatImmediate):
            name = self._constants.exact(operand, ptx_type)
            scalar = self.scope.scalar(name) if name else None
            if scalar is None:
                self.reject()
            if ptx_type == "f32":
                return self.constant(float_of_word(int.from_bytes(scalar.tobytes(), "little")))
            return self.constant(double_of_long(int.from_bytes(scalar.tobytes(), "little")))
        raise NoLaneCode

    def predicate(self, operand: Operand) -> str:
        """A name for a predicate."""
        if isinstance(operand, Negated):
            return f"(not {self.predicate(operand.operand)})"
        if (
            isinstance(operand, Register)
            and self.scope.stored_kind[self.scope.number(operand)] == "pred"
        ):
            return self._as(self.scope.number(operand), "pred")
        if isinstance(operand, Immediate):
            return str(bool(operand.value))
        raise NoLaneCode

    @staticmethod
    def ones(ptx_type: str) -> int:
        """All bits of a type."""
        return (1 << 8 * width_of(kind_of(ptx_type))) - 1

    def constant(self, value: float) -> str:
        """The name of a float, or itself."""
        if value - value == 0.0:
            return repr(value) if str(value)[0] != "-" else f"({value!r})"
        bits = long_of_double(value)
        return self.helper_value(("float", bits), value)

    # For operations: writing.

    def line(self, code: str) -> None:
        """One statement."""
        self.lines.append(code)

    def temporary(self, expression: str) -> str:
        """The name of a new variable."""
        self._temporaries += 1
        name = f"t{self._temporaries}"
        self.lines.append(f"{name} = {expression}")
        return name

    def target(self, operand: Operand, ptx_type: str) -> str:
        """Return the variable that the following lines set to a result of a type.

        It is the destination's own variable if the widths are equal and there is no guard.
        Otherwise it is a temporary, which the caller then passes to `assign`.
        """
        if (
            isinstance(operand, Register)
            and self.instruction.guard is None
            and self.scope.width[self.scope.number(operand)] == width_of(kind_of(ptx_type))
        ):
            return f"r{self.scope.number(operand)}"
        self._temporaries += 1
        return f"t{self._temporaries}"

    def assign(self, operand: Operand, ptx_type: str, expression: str) -> None:
        """Write a destination; the expression has the form in which a row holds `ptx_type`.

        A wider register is filled by its sign or by zeros. Under a guard a thread that it excludes
        keeps the old value.
        """
        if isinstance(operand, Sink):
            return
        if not isinstance(operand, Register):
            self.reject()
        number = self.scope.number(operand)
        kind = kind_of(ptx_type)
        size = self.scope.width[number]
        form = held_as(kind)
        if (kind == "pred") != (self.scope.stored_kind[number] == "pred") or size > 8:
            self.reject()
        if kind != "pred" and size != width_of(kind):
            if form != "int" or size < width_of(kind):
                self.reject()
            if kind[0] == "s":
                top = 1 << 8 * width_of(kind) - 1
                expression = f"(({expression}) ^ {top}) - {top} & {(1 << 8 * size) - 1}"
        name = f"r{number}"
        guard = self.instruction.guard
        if guard is None:
            if expression != name:
                self.lines.append(f"{name} = {expression}")
        else:
            old = self._as(number, form)
            condition = self._as(self.scope.number(guard.register), "pred")
            expression = f"({expression})"  # it may be a choice itself
            if_true, if_false = (old, expression) if guard.negated else (expression, old)
            self.lines.append(f"{name} = {if_true} if {condition} else {if_false}")
        self._note_written(number, form)

    # Operands of each form.

    def _special(self, name: str, kind: str) -> str:
        known_kind = known_special(name)
        if known_kind is None or "clock" in name or "timer" in name:
            self.reject()  # a time is read once for all threads
        value = f"B.special({name[1:]!r}, R)"
        self.before("B", "f.scheduler.lanes.memory")
        return self.temporary(f"{value} & {self.ones(kind)}")

    def _symbol(self, symbol: Symbol, mask: int) -> str:
        """The address of a symbol, as `mov` gives it."""
        space, expression = self.scope.symbol(symbol.name, self.instruction)
        offset = symbol.offset
        if space == "param":
            offset += PARAM_WINDOW
        if expression.isdigit():
            return str(int(expression) + offset & mask)
        return f"({expression} + {offset} & {mask})"
