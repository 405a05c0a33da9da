"""The names of one function: registers by number, symbols, and what generated code binds."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ptx.emulate.codegen.analysis.float_registers import (
    registers_with_visible_bits,
    registers_without_subnormals,
)
from ptx.emulate.codegen.registers import CARRY
from ptx.emulate.kernel_facts import LateWork
from ptx.emulate.memory.layout import FrameLayout, ModuleLayout
from ptx.emulate.model.addresses import addresses_in
from ptx.emulate.model.errors import UndefinedSymbol, UnsupportedInstruction
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import NUMPY, kind_of, unsigned, width_of
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import Body, FloatImmediate, Function, Instruction, Operand, Register, Symbol
from ptx.isa.signature import kernel_params


class Namespace:
    """Objects that the generated code of a kernel names; equal constants share a name."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self._known: dict[object, str] = {}

    def bind(self, value: object, hint: str = "k") -> str:
        """The name of an object."""
        key: object = id(value)
        if isinstance(value, np.generic):
            key = (value.dtype.str, value.tobytes())
        name = self._known.get(key)
        if name is None:
            name = f"{hint}_{len(self.names)}"
            self.names[name] = value
            self._known[key] = name
        return name


class FunctionScope:
    """The names of one function of a kernel, and their meanings.

    Attributes:
        numbers: of the registers, by name.
        invariants: the slot in the launch's cache of a result that chunks share, by the identity of
            its instruction.
        late: the work that is deferred.
        lane_values: floats that the code of single threads names.
        width: bytes of each register; stored_kind: the kind in which it is held between blocks.
    """

    def __init__(
        self,
        kernel: str,
        function: Function,
        body: Body,
        frame: FrameLayout,
        layout: ModuleLayout,
        shared: dict[str, int],
        namespace: Namespace,
        late: LateWork,
    ) -> None:
        self.kernel = kernel
        self.late = late
        self.function = function
        self.body = body
        self.frame = frame
        self.layout = layout
        self.aliases: dict[str, str] = layout.aliases
        self._shared = shared
        self._namespace = namespace
        self.addresses_in: str = namespace.bind(addresses_in, "addresses_in")
        self.numbers: dict[str, int] = {}
        self.width: list[int] = []
        self.stored_kind: list[str] = []
        self._number_registers()
        self.invariants: dict[int, int] = {}
        self.lane_values: dict[object, object] = {}
        self._parameters = {
            *frame.params,
            *(param.name for param in (*function.returns, *function.params)),
        }
        self._prefer_written_kinds()

    def _number_registers(self) -> None:
        """Number the registers of the body, and the carry."""
        for register in (*self.body.registers, CARRY):
            self.numbers[register.name] = len(self.width)
            kind = kind_of(register.ptx_type)
            self.width.append(TYPE_BYTES[register.ptx_type])
            self.stored_kind.append(kind if kind[0] in "fp" else unsigned(kind))

    def _prefer_written_kinds(self) -> None:
        """Hold a register as the type that its first instruction writes, to save views."""
        decided: set[int] = set()
        for statement in self.body.statements:
            if not isinstance(statement, Instruction) or not statement.operands:
                continue
            target = statement.operands[0]
            if not isinstance(target, Register):
                continue
            number = self.number(target)
            kinds = statement.facts.types
            if number in decided or not kinds or target.ptx_type == "pred":
                continue
            decided.add(number)
            try:
                kind = kind_of(kinds[0])
            except KeyError:
                continue
            if kind != "pred" and width_of(kind) == self.width[number]:
                self.stored_kind[number] = kind

    def number(self, register: Register) -> int:
        """The number of a register."""
        return self.numbers[register.name]

    def bind(self, value: object, hint: str = "k") -> str:
        """Return the name of an object in generated code."""
        return self._namespace.bind(value, hint)

    def scalar(self, name: str) -> np.generic | None:
        """The constant that a name of the generated code stands for, None for anything else."""
        value = self._namespace.names.get(name)
        return value if isinstance(value, np.generic) else None

    @cached_property
    def visible_bits(self) -> frozenset[str]:
        """Names of the registers whose NaN bits are visible to the function."""
        return registers_with_visible_bits(self.body)

    @cached_property
    def without_subnormals(self) -> frozenset[str]:
        """Names of the registers that never hold a subnormal float32."""
        return registers_without_subnormals(self.body)

    @property
    def kernel_parameters(self) -> frozenset[str]:
        """The symbols of an entry's own parameters that no variable of its body hides."""
        return frozenset(self.frame.params) - frozenset(self.frame.offsets)

    def unsupported(self, instruction: Instruction, reason: str) -> UnsupportedInstruction:
        """The error that an instruction of this function is not executed."""
        return UnsupportedInstruction(self.kernel, instruction.text, instruction.line, reason)

    def is_parameter(self, operand: Operand) -> bool:
        """Return whether an operand names a parameter or result of this function, no kernel."""
        is_named = isinstance(operand, Symbol) and operand.name in self._parameters
        return is_named and not self.function.is_entry

    def space_of_register(self, user: Instruction) -> str:
        """Return the space of an address in a register that `.param` accesses.

        A function has its parameters in its frame, and `mov` gives their addresses there. The
        parameters of a kernel have generic addresses.
        """
        is_of_kernel = self.function.is_entry or "param::entry" in user.modifiers
        return "generic" if is_of_kernel else "local"

    def symbol(self, name: str, user: Instruction) -> tuple[str, str]:
        """The space of a symbol and an expression for its address there: digits where constant.

        `user` is the instruction that names it.

        Raises:
            UndefinedSymbol: the module does not define it.
        """
        if name in self.frame.offsets:
            offset = self.frame.offsets[name]
            if self.function.is_entry:
                return "local", str(offset)
            return "local", f"(f.stack_pointer + {offset})"
        if name in self.frame.params:
            return "param", str(self.frame.params[name])
        bare, _, is_nested = name.partition("@")
        if bare in self._shared and not (is_nested and name in self.layout.globals):
            return "shared", str(self._shared[bare])
        if name in self.layout.globals:
            return "global", str(self.layout.globals[name][0])
        function = self.layout.module.functions.get(self.real_name(name))
        if function is not None and function.span is not None:
            return "code", str(self.layout.code[function.name])
        raise UndefinedSymbol(self.kernel, name, user.line)

    @cached_property
    def param_bytes(self) -> int:
        """Size of the kernel's parameter block."""
        return kernel_params(self.function.params)[1]

    def frame_place(self, name: str, user: Instruction) -> tuple[int, int]:
        """Offset and size of a `.param` variable of this function's frame.

        Raises:
            UnsupportedInstruction: there is no such variable.
        """
        for variable in self.body.variables:
            if variable.name == name:
                return self.frame.offsets[name], variable.nbytes
        for param in (*self.function.returns, *self.function.params):
            if param.name == name and name in self.frame.offsets:
                return self.frame.offsets[name], param.nbytes
        raise self.unsupported(user, f"{name} is no .param variable of this function")

    def real_name(self, name: str) -> str:
        """The function that a name means, through `.alias`."""
        return self.aliases.get(name, name)

    @property
    def const_base(self) -> int:
        """What an address of constants lacks in a register of 32 bits."""
        return self.layout.const_base

    def const_ranges(self) -> list[tuple[int, int]]:
        """The address ranges of the module's constant variables."""
        return list(self.layout.const_ranges)

    def zeros(self) -> list[Value]:
        """The registers before anything is written."""
        return [NUMPY[kind](0) for kind in self.stored_kind]


class Constants:
    """Names of typed scalars; the same scalar gets the same name."""

    def __init__(self, scope: FunctionScope) -> None:
        self._scope = scope
        self._known: dict[tuple[str, int | float | str], str] = {}

    def number(self, value: int | float, kind: str) -> str:
        """The name of a scalar of a kind; an integer is taken modulo its width."""
        key = (kind, repr(value))  # 0.0, -0.0 and 0 are equal, and not the same
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self._scope.bind(_scalar(value, kind))
        return name

    def dtype(self, ptx_type: str) -> str:
        """The name of a PTX type's NumPy type."""
        key = ("dtype", ptx_type)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = self._scope.bind(NUMPY[kind_of(ptx_type)])
        return name

    def exact(self, operand: FloatImmediate, kind: str) -> str:
        """The name of a floating-point constant by its bits; "" where its width does not fit."""
        bits, width = operand.bits, operand.width // 8
        if width == 8 and width_of(kind) == 4:
            with np.errstate(all="ignore"):
                narrow = np.uint64(bits).view(np.float64).astype(np.float32)
            bits, width = int(narrow.view(np.uint32)), 4
        if width != width_of(kind):
            return ""
        return self._scope.bind(NUMPY[unsigned(kind)](bits).view(NUMPY[kind]))


def _scalar(value: int | float, kind: str) -> np.generic:
    if kind == "pred":
        return np.bool_(value)
    if kind[0] in "us":
        wrapped = int(value) & ((1 << 8 * width_of(kind)) - 1)
        return NUMPY[unsigned(kind)](wrapped).view(NUMPY[kind])
    return NUMPY[kind](value)
