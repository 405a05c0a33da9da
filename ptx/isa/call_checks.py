"""Check calls and indirect branches, as ptxas does: their tables, and how calls pass parameters.

PTX ISA, "call", "brx.idx".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import (
    Address,
    Arguments,
    Body,
    FloatImmediate,
    Function,
    Immediate,
    Instruction,
    Label,
    Operand,
    Parameter,
    Prototype,
    Register,
    Sink,
    Space,
    Symbol,
    Variable,
)

Formals = tuple[Sequence[Parameter], Sequence[Parameter]]
_ADDRESSED = {"ld": 1, "st": 0, "cvta": 1}  # the place of the operand with an address


class CallChecks:
    """The calls and indirect branches of one function.

    `functions` and `aliases` are those of the module.
    """

    def __init__(
        self,
        function: Function,
        body: Body,
        functions: Mapping[str, Function],
        aliases: Mapping[str, str],
    ) -> None:
        self._body = body
        self._functions = functions
        self._aliases = aliases
        self._results = {p.name for p in function.returns if p.space is Space.PARAM}
        self._parameters = {p.name for p in function.params if p.space is Space.PARAM}
        self._is_entry = function.is_entry
        self._passed = {v.name: v for v in body.variables if v.space is Space.PARAM}
        self._returned = set[str]()  # by the calls so far

    def fault(self) -> tuple[str, int]:
        """The first fault and its line; "" without one."""
        labels = {each.name for each in self._body.statements if isinstance(each, Label)}
        for targets in self._body.tables.values():
            for target in targets:
                if target not in labels and self._is_no_function(target):
                    return f"{target} is neither a label nor a function declared here", 0
        for place, statement in enumerate(self._body.statements):
            if statement.__class__ is not Instruction:
                continue
            fault = ""
            if statement.opcode in ("call", "brx"):
                fault = self._fault_of_table(statement, place)
                if not fault and statement.opcode == "call":
                    fault = self._fault_of_call(statement)
            elif statement.opcode in _ADDRESSED:
                fault = self._fault_of_access(statement)
            if fault:
                return f"{fault}: {statement.text}", statement.line
        return "", 0

    def _is_no_function(self, name: str) -> bool:
        function = self._functions.get(name)
        return function is None or function.is_entry

    def _fault_of_table(self, instruction: Instruction, place: int) -> str:
        """Why an instruction cannot use its table or prototype, "" where it can."""
        last = instruction.operands[-1] if instruction.operands else None
        if isinstance(last, Symbol) and self._body.declared_at.get(last.name, 0) > place:
            return f"{last.name} is not declared before"
        return ""

    def _fault_of_access(self, instruction: Instruction) -> str:
        """Why an instruction cannot use the name of a parameter, "" where it can."""
        opcode, place = instruction.opcode, _ADDRESSED[instruction.opcode]
        operand = instruction.operands[place] if place < len(instruction.operands) else None
        symbol = operand.base if isinstance(operand, Address) else operand
        if not isinstance(symbol, Symbol):
            return ""
        name = symbol.name
        if name in self._passed:
            if opcode == "cvta":
                return "" if symbol.offset else f"{name} is passed by a call, and has no address"
            if instruction.guard is not None:
                return f"{name} is passed by a call, and no guarded instruction accesses it"
            if opcode == "ld" and name not in self._returned:
                return f"no call before has the result {name}"
        elif opcode == "st" and name in self._parameters and not self._is_entry:
            return f"{name} is a parameter of this function, which only reads it"
        elif opcode == "ld" and name in self._results:
            return f"{name} is the result of this function, which only writes it"
        return ""

    def _fault_of_call(self, call: Instruction) -> str:
        """Why a call's arguments do not fit its target, "" where they do."""
        place = target_place(call)
        lists: dict[str, tuple[Operand, ...]] = {"results": (), "arguments": ()}
        for number, listed in enumerate(call.operands):
            if isinstance(listed, Arguments):
                lists["results" if number < place else "arguments"] = listed.items
        self._returned |= {each.name for each in lists["results"] if isinstance(each, Symbol)}
        formals = formals_of(call, self._body, self._functions, self._aliases)
        if formals is None:
            return ""
        for (noun, items), expected in zip(lists.items(), formals, strict=True):
            if len(items) != len(expected):
                return f"the call has {len(items)} {noun}, and its target has {len(expected)}"
            for item, formal in zip(items, expected, strict=True):
                if not self._fits(item, formal, is_result=noun == "results"):
                    return f"an operand of the call does not fit {formal.name}, .{formal.ptx_type}"
        return ""

    def _fits(self, item: Operand, formal: Parameter, *, is_result: bool) -> bool:
        if isinstance(item, Symbol):
            passed = self._passed.get(item.name)
            return passed is not None and not item.offset and _fits_formal(passed, formal)
        if isinstance(item, Sink):
            return is_result
        if formal.is_array:
            return False
        if isinstance(item, Register):  # no element of a vector
            return "." not in item.name and are_alike(item.ptx_type, formal.ptx_type)
        if isinstance(item, Immediate):
            return formal.ptx_type[0] != "f"
        if not isinstance(item, FloatImmediate):
            return False
        is_of_size = item.width == 8 * TYPE_BYTES[formal.ptx_type]
        return formal.ptx_type in ("f32", "f64") or (formal.ptx_type[0] == "b" and is_of_size)


def target_place(call: Instruction) -> int:
    """The place of a call's target among its operands, -1 if it has none."""
    operands = enumerate(call.operands)
    return next((n for n, each in operands if not isinstance(each, Arguments)), -1)


def formals_of(
    call: Instruction, body: Body, functions: Mapping[str, Function], aliases: Mapping[str, str]
) -> Formals | None:
    """The results and parameters of a call's target, None where they are unknown."""
    place = target_place(call)
    target, last = call.operands[place], call.operands[-1]
    called: Function | Prototype | None = None
    if place >= 0 and isinstance(target, Symbol):
        called = functions.get(aliases.get(target.name, target.name))
    elif isinstance(last, Symbol):
        called = body.prototypes.get(last.name)
        names = body.tables.get(last.name, ())
        called = called or next((functions.get(name) for name in names), None)
    return (called.returns, called.params) if called is not None else None


def are_alike(a: str, b: str) -> bool:
    """Return whether a value of one type may be passed as another: by size, and kind of number."""
    if TYPE_BYTES[a] != TYPE_BYTES[b]:
        return False
    kinds = {a[0], b[0]}
    return "b" in kinds or len(kinds) == 1 or kinds == {"u", "s"} or "f16x2" in (a, b)


def _fits_formal(passed: Variable | Parameter, formal: Parameter) -> bool:
    """Return whether a parameter of the caller may be passed as one of the target."""
    is_array = passed.is_array if isinstance(passed, Parameter) else bool(passed.shape)
    if is_array != formal.is_array or passed.align != formal.align:
        return False
    if not is_array:
        return are_alike(passed.ptx_type, formal.ptx_type)
    is_alike = passed.ptx_type == formal.ptx_type or "b" in (passed.ptx_type[0], formal.ptx_type[0])
    return is_alike and formal.nbytes in (0, passed.nbytes)
