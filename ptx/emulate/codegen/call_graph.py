"""Which functions of a module call which, and how much local memory a chain of calls takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from ptx.emulate.memory.layout import frame_layout
from ptx.isa.errors import PtxSyntaxError
from ptx.isa.model import Arguments, Instruction, Operand, Register, Symbol, SymbolValue
from ptx.isa.module import PtxModule

_TAKEN = re.compile(r"\bmov\.[bu]64\s+%[\w$]+\s*,\s*([A-Za-z_$][\w$]*)\s*;")


def call_target(instruction: Instruction) -> Operand | None:
    """Return the target of a `call`: results stand before it, arguments after it."""
    return next((o for o in instruction.operands if not isinstance(o, Arguments)), None)


class CallGraph:
    """The calls in a module, as one kernel needs them.

    Attributes:
        is_recursive: whether `depth` found calls that may come back to a function that is open.
    """

    def __init__(self, module: PtxModule) -> None:
        self._module = module
        self._depth: dict[str, int] = {}
        self.is_recursive: bool = False

    def callees(self, name: str) -> list[str]:
        """The defined functions that a function calls by their names."""
        names: dict[str, None] = {}
        for instruction in self._calls(name):
            target = call_target(instruction)
            if isinstance(target, Symbol):
                real = self._module.aliases.get(target.name, target.name)
                function = self._module.functions.get(real)
                if function is not None and function.span is not None and not function.is_entry:
                    names[real] = None
        return list(names)

    def calls_by_address(self, name: str) -> bool:
        """Return whether a function calls an address in a register."""
        return any(
            isinstance(call_target(instruction), Register) for instruction in self._calls(name)
        )

    def reaches_addresses(self, name: str) -> bool:
        """Return whether a function, or any that it reaches by name, calls by an address."""
        visited: set[str] = set()
        waiting = [name]
        while waiting:
            function = waiting.pop()
            if self.calls_by_address(function):
                return True
            visited.add(function)
            waiting += [callee for callee in self.callees(function) if callee not in visited]
        return False

    @cached_property
    def with_address(self) -> tuple[str, ...]:
        """The defined functions whose addresses are used anywhere in the module."""
        names = {match[1] for match in _TAKEN.finditer(self._module.text)}
        for variable in self._module.static_variables:
            names.update(e.name for e in variable.initialiser if isinstance(e, SymbolValue))
        real_names = {self._module.aliases.get(name, name) for name in names}
        return tuple(
            name
            for name, function in self._module.functions.items()
            if name in real_names and function.span is not None and not function.is_entry
        )

    def depth(self, name: str) -> int:
        """Bytes of local memory that a function and the deepest chain of its calls take.

        A call by address may reach any function of the module that has an address. One that may
        call itself counts once.
        """
        if name in self._depth:
            return self._depth[name]
        # The functions of the chain in hand, with those to visit; bytes of the deepest so far.
        waiting = {name: iter(self._reached(name))}
        callee_depths = [0]
        while waiting:
            last, callees = next(reversed(waiting.items()))
            callee = next(callees, None)
            if callee is None:
                frame = frame_layout(self._module.functions[last], self._module.body(last))
                self._depth[last] = frame.nbytes + callee_depths.pop()
                del waiting[last]
                callee = last
            elif callee in waiting:
                self.is_recursive = True
            elif callee not in self._depth:
                try:
                    waiting[callee] = iter(self._reached(callee))
                    callee_depths.append(0)
                except PtxSyntaxError:
                    pass  # reported where the function is called
                continue
            if callee_depths:
                callee_depths[-1] = max(callee_depths[-1], self._depth.get(callee, 0))
        return self._depth[name]

    def _reached(self, name: str) -> list[str]:
        reached = dict.fromkeys(self.callees(name))
        if self.calls_by_address(name):
            reached.update(dict.fromkeys(self.with_address))
        return list(reached)

    def _calls(self, name: str) -> Iterator[Instruction]:
        for statement in self._module.body(name).statements:
            if isinstance(statement, Instruction) and statement.opcode == "call":
                yield statement
