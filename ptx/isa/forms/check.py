"""Check that the instructions of a module are of PTX, as NVIDIA's assembler does at the load."""

from __future__ import annotations

import re
from typing import Final

from ptx.isa.errors import PtxSyntaxError
from ptx.isa.forms.operand_kinds import Shape
from ptx.isa.forms.shapes import Shapes
from ptx.isa.instruction_facts import InstructionFacts
from ptx.isa.model import Function, Instruction, Linkage, Register, SymbolValue
from ptx.isa.module import PtxModule
from ptx.isa.opcodes.opcode_table import ROWS

NEWEST: Final = (9, 5)
"""The version of PTX whose forms the table has. Modules of later ones are not checked."""

SYSTEM_FUNCTIONS: Final = frozenset({"vprintf", "malloc", "free", "__assertfail"})
"""Those that the device supplies, as ptxas knows them."""

DEVICE_FUNCTIONS: Final = SYSTEM_FUNCTIONS | {"cudaGraphSetConditional"}
"""All that PTX declares and the device supplies (PTX Interoperability, "System Calls")."""

# The assembler of driver 580 defines it too, without `libcudadevrt` (measured).
_OF_THE_ASSEMBLER: Final = DEVICE_FUNCTIONS | {"cudaGraphLaunch"}
_SYMBOL: Final = re.compile(r"Symbol\(name='([^']+)'")

# Forms that were found right, of all modules: the facts of an opcode with its modifiers, which are
# one object, and the shapes of the operands.
_RIGHT: Final = set[tuple[InstructionFacts | Shape, ...]]()
_MOST_FORMS: Final = 1 << 16


def check_forms(module: PtxModule) -> None:
    """Check every instruction of every function, and that each function has a body.

    Raises:
        PtxSyntaxError: at the first instruction that PTX does not have, or as `check_bodies`.
    """
    check_bodies(module)
    major, _, minor = module.version.partition(".")
    if (int(major), int(minor)) > NEWEST:
        return
    if len(_RIGHT) > _MOST_FORMS:
        _RIGHT.clear()
    for function in module.functions.values():
        if function.span is not None:
            _check_function(module, function)


def check_bodies(module: PtxModule) -> None:
    """Check that each function has a body, unless another module may have it.

    Debug information that `.target` announces must be there as well.

    Raises:
        PtxSyntaxError: at a function that is declared without `.extern`, or at `.target`.
    """
    if module.lacks_sections:
        raise _error_at(
            module,
            module.line_of(".target"),
            ".target has the option debug, and no section has debug information",
        )
    elsewhere = SYSTEM_FUNCTIONS | module.aliases.keys()
    for function in module.functions.values():
        if function.span is not None or function.linkage is Linkage.EXTERN:
            continue
        if function.name not in elsewhere:
            kind = "kernel" if function.is_entry else "function"
            raise _error_at(
                module,
                function.line,
                f"the {kind} {function.name} is declared without .extern and has no body",
            )


def undefined_function(module: PtxModule) -> tuple[str, str, str, int] | None:
    """Return a function that the module uses and does not define, its user, and the line.

    The driver's assembler rejects these, also in functions that nothing calls, and those of the
    device's runtime, which a link with `libcudadevrt` defines.
    """
    declared = {f.name for f in module.functions.values() if f.span is None and not f.is_entry}
    declared -= _OF_THE_ASSEMBLER | module.aliases.keys()
    if not declared:
        return None
    for variable in module.static_variables:
        for value in variable.initialiser:
            if isinstance(value, SymbolValue) and value.name in declared:
                return value.name, "variable", variable.name, variable.line
    for function in module.functions.values():
        if function.span is None or declared.isdisjoint(module.uses(function.name).names):
            continue
        for statement in module.body(function.name).statements:
            if statement.__class__ is Instruction:
                for name in declared.intersection(_SYMBOL.findall(repr(statement.operands))):
                    noun = "kernel" if function.is_entry else "function"
                    return name, noun, function.name, statement.line
    return None


def _check_function(module: PtxModule, function: Function) -> None:
    shapes = Shapes(module, function)
    statements = [
        statement
        for statement in module.body(function.name).statements
        if statement.__class__ is Instruction
    ]
    # The parser makes one object for operands of one text, so there are few.
    operands = {id(operand): operand for each in statements for operand in each.operands}
    shape_of = {
        number: operand.ptx_type if operand.__class__ is Register else shapes.shape(operand)
        for number, operand in operands.items()
    }
    shape = shape_of.__getitem__
    for statement in statements:
        form = (statement.facts, *map(shape, map(id, statement.operands)))
        if form in _RIGHT:
            continue
        if statement.opcode not in ROWS:
            raise _error(module, statement, "PTX has no such instruction")
        fault = shapes.fault(statement)
        if fault:
            raise _error(module, statement, fault)
        if not shapes.has_values(statement):
            _RIGHT.add(form)


def _error_at(module: PtxModule, line: int, fault: str) -> PtxSyntaxError:
    source_line = module.text.split("\n")[line - 1]
    return PtxSyntaxError(fault, line=line, column=1, source_line=source_line)


def _error(module: PtxModule, instruction: Instruction, fault: str) -> PtxSyntaxError:
    line = module.text.split("\n")[instruction.line - 1]
    return PtxSyntaxError(
        f"{fault}: {instruction.text}",
        line=instruction.line,
        column=len(line) - len(line.lstrip()) + 1,
        source_line=line,
        width=len(line.strip()),
    )
