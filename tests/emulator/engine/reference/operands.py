"""What the operands of one thread's instructions stand for: registers, constants, places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import (
    Address,
    FloatImmediate,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Sink,
    Space,
    SpecialRegister,
    Symbol,
)
from tests.emulator.engine.reference.integers import wrap
from tests.emulator.engine.reference.state import NotCovered, Thread

if TYPE_CHECKING:
    from tests.emulator.engine.reference.interpreter import Interpreter

SPACES = ("global", "shared", "local", "param", "const")
# Where generic addresses have the memory of a block and of a thread.
WINDOWS = {"shared": 1 << 61, "local": 1 << 62}
_WINDOW_BYTES = 1 << 32
# The addresses of functions.
_CODE = 1 << 60


class Operands:
    """The registers, parameters and local memory of a function that one thread executes."""

    def __init__(
        self, interpreter: Interpreter, name: str, thread: Thread, shared: dict[str, int]
    ) -> None:
        self.interpreter = interpreter
        self.body = interpreter.module.body(name)
        self.thread = thread
        self.shared = shared
        self.registers: dict[str, int] = {}
        self.params: dict[str, bytes | bytearray] = {}
        self._local: dict[str, bytearray] = {}
        for variable in self.body.variables:
            where = self.params if variable.space is Space.PARAM else self._local
            where[variable.name] = bytearray(variable.nbytes)

    def value(self, operand: Operand) -> int:
        if isinstance(operand, Register):
            return self.registers[operand.name]
        if isinstance(operand, Immediate):
            return wrap(operand.value, 64)
        if isinstance(operand, FloatImmediate):
            return operand.bits
        if isinstance(operand, Negated):
            return 1 - self.registers[operand.operand.name]
        if isinstance(operand, SpecialRegister):
            return self.thread.place[operand.name]
        if isinstance(operand, Symbol) and operand.name in self.shared:
            return self.shared[operand.name] + operand.offset
        if isinstance(operand, Symbol) and operand.name in self._local:
            return operand.offset
        if isinstance(operand, Symbol) and operand.name in self.interpreter.module.functions:
            return _CODE + list(self.interpreter.module.functions).index(operand.name)
        raise NotCovered(str(operand))

    def function(self, operand: Operand) -> str:
        """The name of the function that a call names or points to."""
        if isinstance(operand, Symbol):
            return operand.name
        return list(self.interpreter.module.functions)[self.value(operand) - _CODE]

    def write(self, operand: Operand, value: int, signed: bool = False, bits: int = 0) -> None:
        if isinstance(operand, Sink):
            return
        assert isinstance(operand, Register)
        width = 1 if operand.ptx_type == "pred" else 8 * TYPE_BYTES[operand.ptx_type]
        if signed and value >> (bits - 1):
            value -= 1 << bits
        self.registers[operand.name] = wrap(value, width)

    def place(self, i: Instruction, operand: Operand, nbytes: int) -> tuple[bytearray, int]:
        """The memory that an address means, and where in it."""
        assert isinstance(operand, Address)
        space = next((word for word in i.modifiers if word in SPACES), "generic")
        base = operand.base
        if space == "param":
            assert isinstance(base, Symbol)
            data = self.params[base.name]
            return (data if isinstance(data, bytearray) else bytearray(data)), operand.offset
        if isinstance(base, Symbol) and base.name in self._local:
            return self._local[base.name], operand.offset
        address = (0 if base is None else self.value(base)) + operand.offset
        if space == "generic":
            space = space_of(address)
            address -= WINDOWS.get(space, 0)
        if space == "shared":
            return self.interpreter.memory.shared, address
        if space == "local":
            (only,) = self._local.values()
            return only, address
        return self.interpreter.memory.place(wrap(address, 64), nbytes)


def space_of(address: int) -> str:
    """The memory that a generic address means."""
    for space, start in WINDOWS.items():
        if start <= address < start + _WINDOW_BYTES:
            return space
    return "global"
