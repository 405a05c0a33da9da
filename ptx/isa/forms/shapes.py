"""The shapes of a function's operands, and whether its instructions are of PTX."""

from __future__ import annotations

from ptx.isa.forms.operand_kinds import Shape
from ptx.isa.forms.table import form_table
from ptx.isa.model import (
    Address,
    Arguments,
    Body,
    Bracket,
    FloatImmediate,
    Function,
    Immediate,
    Instruction,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptx.isa.module import PtxModule
from ptx.isa.special_registers import special_type


class Shapes:
    """The shapes of the operands of one function."""

    def __init__(self, module: PtxModule, function: Function) -> None:
        self._module = module
        self._function = function
        body = module.body(function.name)
        self._table = form_table()
        self._with_values = False
        self._spaces = self._spaces_of(body)

    def _spaces_of(self, body: Body) -> dict[str, str]:
        """The space of each name of the function."""
        function = self._function
        of_parameters = "kparam" if function.is_entry else "fparam"
        spaces = {p.name: of_parameters for p in (*function.returns, *function.params)}
        spaces |= {v.name: v.space.value for v in body.variables}
        spaces |= {s.name: "label" for s in body.statements if isinstance(s, Label)}
        spaces |= dict.fromkeys(body.tables, "table")
        return spaces | dict.fromkeys(body.prototypes, "prototype")

    def space(self, name: str) -> str:
        """The space of a symbol: also "label", "code", "entry", or "?" where it is not declared."""
        space = self._spaces.get(name)
        if space is not None:
            return space
        variable = self._module.variables.get(name)
        if variable is not None:
            is_handle = variable.ptx_type in ("texref", "samplerref", "surfref")
            return variable.ptx_type if is_handle else variable.space.value
        function = self._module.functions.get(name)
        if function is None:
            return "?"
        return "entry" if function.is_entry else "code"

    def shape(self, operand: Operand) -> Shape:
        """The shape of an operand."""
        match operand:
            case Register():
                return operand.ptx_type
            case Address(base, _):
                return "[", None if base is None else self.shape(base)
            case Immediate(value):
                return f"#{value}" if self._with_values else "#"
            case FloatImmediate():
                return f"#f{operand.width}"
            case SpecialRegister():
                return _of_special(operand.name)
            case Sink():
                return "_"
            case Symbol():
                return "&+" if operand.offset else "&", self.space(operand.name)
            case Negated(register):
                return "!", register.ptx_type
            case Selected(register, selector, negated):
                return ".", selector, "-" if negated else "", register.ptx_type
            case Vector(items):
                return "{", *map(self.shape, items)
            case Arguments(items):
                return "(", *map(self.shape, items)
            case Bracket(items):
                return "[[", *map(self.shape, items)
            case Pair(first, second):
                return "|", self.shape(first), self.shape(second)

    def has_values(self, instruction: Instruction) -> bool:
        """Return whether numbers among the operands count, which their shapes leave out."""
        opcode = instruction.opcode
        return opcode in self._table.opcodes and self._table.has_values(opcode)

    def fault(self, instruction: Instruction) -> str:
        """Why an instruction is none of PTX, "" if it is one."""
        if instruction.opcode not in self._table.opcodes:
            return ""
        shapes = self.of_operands(instruction)
        return self._table.fault(instruction.opcode, instruction.modifiers, shapes)

    def of_operands(self, instruction: Instruction) -> tuple[Shape, ...]:
        """The shapes of all operands, with the values of numbers where they count."""
        self._with_values = self.has_values(instruction)
        shapes = tuple(map(self.shape, instruction.operands))
        self._with_values = False
        return shapes


_HALVES = frozenset({"tid", "ntid", "ctaid", "nctaid"})


def _of_special(name: str) -> str:
    """The shape of a special register; an "h" marks one that smaller moves take as well."""
    stem = name[1:].partition(".")[0]
    is_smaller = (stem in _HALVES and "." in name) or stem == "gridid"
    return f"%{special_type(name)}{'h' if is_smaller else ''}"
